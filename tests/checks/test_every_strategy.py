"""Rules that must hold for every registered strategy, whatever it does.

The cases come from the registries (tests/examples.py), so a new strategy is covered when it is registered. They are
played in parts, one of which is fast.
"""

import json
import math
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from onlinecal.checks.conformance import CHECKS, RUNS, _open, _Pair, _repeat, digest, play_game
from onlinecal.core.strategy import strategy_key, strategy_label
from onlinecal.forecasters import FORECASTERS, Forecaster, as_forecaster
from onlinecal.natures import NATURES, Nature
from tests import examples
from tests.by_hand import Half
from tests.marks import some_fast


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("examples")


PARTS = 12


def paired(folder, seed):
    return [_Pair(*pair, seed) for pair in examples.pairs(folder)]


@pytest.fixture(scope="session")
def pairs(folder, seed):
    return paired(folder, seed)


def once(pairs):
    """Of these pairs one with each strategy."""
    last = {id(one): pair for pair in pairs for one in (pair.forecaster, pair.nature)}
    return [*{id(pair): pair for pair in last.values()}.values()]


def name(pair):
    return f"{strategy_key(pair.forecaster)} against {strategy_key(pair.nature)}"


def digests(pairs):
    return {name(pair): digest(pair.straight) for pair in pairs}


def test_every_strategy_is_covered(pairs):
    assert {type(pair.forecaster) for pair in pairs} >= set(FORECASTERS.values())
    assert {type(pair.nature) for pair in pairs} >= set(NATURES.values())


SPAWNED = """
import json, pathlib, sys
from tests.checks.test_every_strategy import digests, once, paired
json.dump([hash("a"), digests(once(paired(pathlib.Path(sys.argv[1]), int(sys.argv[2]))))], sys.stdout)
"""


@pytest.mark.slow
def test_same_seed_same_trace_in_a_spawned_process_with_another_hash_seed(folder, pairs, seed):
    """In one game of each strategy."""
    root = Path(__file__).parents[2]
    path = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH", "")]))
    other = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    done = subprocess.run(
        [sys.executable, "-c", SPAWNED, str(folder), str(seed)], cwd=root, capture_output=True, text=True,
        env=os.environ | {"PYTHONHASHSEED": other, "PYTHONPATH": path},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    hashed, there = json.loads(done.stdout)
    assert hashed != hash("a")
    assert there == digests(once(pairs))


@pytest.mark.parametrize("part", some_fast(PARTS, range(PARTS)))
@pytest.mark.parametrize("check", [check for _, check in CHECKS if check is not _repeat])
def test_the_checks_find_no_fault_in_ours(check, pairs, part):
    """In the games of all pairs. Where a question is asked by hand in each round, in one game of each strategy.

    That the same seed plays the same is shown above, and what they state of themselves in test_facts.py.
    """
    pairs = pairs[part::PARTS]
    for pair in once(pairs) if check is _open else pairs:
        assert check(pair) == "", name(pair)


def curious(kinds, seen):
    """A forecaster that needs these kinds of context and notes what it is shown."""

    class Curious(Half):
        needs = kinds

        def forecast(self, round):
            seen.append(round.context)
            return 0.5

    return as_forecaster(Curious)


def test_context_is_what_is_declared_and_goes_to_those_who_need_it(folder, seed):
    for nature in examples.natures(folder):
        asked, unasked = [], []
        play_game(curious(nature.reveals, asked), nature, seed, until=20)
        play_game(curious(frozenset(), unasked), nature, seed, until=20)
        assert unasked == [{}] * 20 * len(RUNS)
        assert len(asked) == 20 * len(RUNS)
        for context in asked:
            assert set(context) == nature.reveals
            assert all(math.isfinite(value) for value in context.values())


def test_specifications_can_be_named_compared_and_pickled(folder):
    for spec in [*examples.natures(folder), *examples.forecasters(folder)]:
        copy = pickle.loads(pickle.dumps(spec))
        assert copy == spec
        assert strategy_key(copy) == strategy_key(spec)
        assert hash(copy) == hash(spec)
        assert strategy_label(spec)
        assert type(spec).__name__ in repr(spec)
        assert isinstance(spec, Forecaster | Nature)
