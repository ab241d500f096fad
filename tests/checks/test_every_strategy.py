"""What must hold for every registered strategy, whatever it does.

The cases come from the registries (tests/examples.py), so a new strategy is covered when it is registered.
"""

import dataclasses
import json
import math
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from onlinecal.checks import conformance as conformance_module
from onlinecal.checks.conformance import CHECKS, HORIZON, RUNS, conformance, digest, play_game, trace
from onlinecal.core.strategy import strategy_key, strategy_label
from onlinecal.engine.driving import BLOCK
from onlinecal.engine.game import Game
from onlinecal.forecasters import FORECASTERS, Constant, Forecaster, as_forecaster
from onlinecal.natures import NATURES, Nature
from onlinecal.report.catalogue import entry, rows
from tests import examples
from tests.by_hand import Half


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("examples")


@pytest.fixture(scope="session")
def pairs(folder):
    return examples.pairs(folder)


@pytest.fixture(scope="session")
def here(pairs, seed):
    """The trace of one game of each pair."""
    return {name(*pair): trace(play_game(*pair, seed)) for pair in pairs}


def name(forecaster, nature):
    return f"{strategy_key(forecaster)} against {strategy_key(nature)}"


def digests(folder, seed):
    """Of all cases; what the spawned process computes."""
    return {name(*pair): digest(trace(play_game(*pair, seed))) for pair in examples.pairs(Path(folder))}


def test_every_strategy_is_covered(pairs):
    assert {type(f) for f, _ in pairs} >= set(FORECASTERS.values())
    assert {type(nature) for _, nature in pairs} >= set(NATURES.values())


def test_who_has_no_example_is_named(monkeypatch, tmp_path):
    @dataclasses.dataclass(frozen=True)
    class Fussy(Nature):
        taste: float

    monkeypatch.setitem(NATURES, "fussy", Fussy)
    with pytest.raises(
        AssertionError, match="nature 'fussy' has the required parameters taste: add an example"
    ):
        examples.natures(tmp_path)

    @dataclasses.dataclass(frozen=True)
    class Clairvoyant(Constant):
        needs = frozenset({"tomorrow"})

    monkeypatch.delitem(NATURES, "fussy")
    monkeypatch.setitem(FORECASTERS, "clairvoyant", Clairvoyant)
    with pytest.raises(AssertionError, match=r"needs \['tomorrow'\], which no example of a nature reveals"):
        examples.pairs(tmp_path)


def test_same_seed_same_trace_in_a_spawned_process_with_another_hash_seed(folder, here, seed):
    code = (
        "import json, sys; from tests.checks.test_every_strategy import digests; "
        "json.dump([hash('a'), digests(sys.argv[1], int(sys.argv[2]))], sys.stdout)"
    )
    root = Path(__file__).parents[2]
    path = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH", "")]))
    other = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder), str(seed)],
        env=os.environ | {"PYTHONHASHSEED": other, "PYTHONPATH": path},
        cwd=root,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    hashed, there = json.loads(done.stdout)
    assert hashed != hash("a")
    assert [case for case in here if digest(here[case]) != there[case]] == []


def test_split_runs_are_joined_runs(pairs, here, seed):
    for forecaster, nature in pairs:
        split = trace(play_game(forecaster, nature, seed, range(2))) + trace(
            play_game(forecaster, nature, seed, range(2, 3))
        )
        assert split == here[name(forecaster, nature)], name(forecaster, nature)


def test_a_game_that_is_pickled_on_the_way_goes_on_identically(pairs, here, seed):
    for forecaster, nature in pairs:
        game = Game(forecaster, nature, horizon=HORIZON, runs=RUNS, seed=seed)
        # Before, within and at the end of a block; and once before the first round.
        for until in (0, 1, HORIZON // 3, BLOCK, HORIZON):
            game = pickle.loads(pickle.dumps(game))
            game.advance(until)
        assert trace(game) == here[name(forecaster, nature)], name(forecaster, nature)


def test_forecasts_are_pure_and_laws_sum_to_one(pairs, seed):
    for forecaster, nature in pairs:
        game = play_game(forecaster, nature, seed, until=200)
        first = game.laws()
        assert game.laws() == first, name(forecaster, nature)
        assert all(min(law.values()) > 0 for law in first)
        assert [sum(law.values()) for law in first] == pytest.approx([1] * len(RUNS), abs=1e-9)


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


def test_the_catalogue_copes_with_all(folder):
    listed = {row["name"] for row in rows()}
    for registered in (*NATURES, *FORECASTERS):
        assert registered in listed
        assert entry(registered)["documentation"]
    required = {p["name"] for p in entry("mixture")["parameters"] if p["required"]}
    assert required == {"natures"}


def test_the_checks_for_plug_ins_find_no_fault_in_ours(folder, monkeypatch):
    """That which is not made above in another way, against one opponent; for what they state see test_facts.py."""
    monkeypatch.setattr("onlinecal.checks.conformance.stated_facts", lambda strategy: ())
    (open,) = (check for check in CHECKS if "while a round is open" in check[0])
    monkeypatch.setattr("onlinecal.checks.conformance.CHECKS", [open])
    opponents = conformance_module._opponents
    monkeypatch.setattr(conformance_module, "_opponents", lambda strategy: opponents(strategy)[:1])
    for strategy in (*examples.forecasters(folder), *examples.natures(folder)):
        assert [(found.check, found.fault) for found in conformance(strategy)] == [(open[0], "")], (
            strategy_key(strategy)
        )


@pytest.mark.slow
def test_the_checks_for_plug_ins_find_nothing_in_ours(folder, seed, full):
    """All of them, against the opponents of `onlinecal check`; in the small size a sixth of our strategies, another one
    for other seeds.
    """
    every = [*examples.forecasters(folder), *examples.natures(folder)]
    for strategy in every if full else every[seed % 6 :: 6]:
        assert faults(strategy) == {}, strategy_key(strategy)


def faults(strategy):
    return {found.check: found.fault for found in conformance(strategy) if found.fault}
