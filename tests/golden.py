"""Numbers on record of all that has a version: games and bounds of strategies, measures, accounts and responses.

Beside them are those of what pictures look like: widths, colours, places, and what is drawn over what.

They are in ``golden.json``, a line each. Those of games were made by an engine that this one has replaced. The test in
tests/whole/test_golden.py fails where a number has become another. If that is meant, raise the `version` of what has
changed, and delete its lines: results are kept under it. A picture is looked at, and its line deleted. Then, as after
something was added,

    python -m tests.golden

writes the lines that are missing, and deletes those of what is gone.

Numbers count as the same up to 1e-9 of their size. Mathematical libraries differ by far less, a change of a rule makes
far more. Those of pictures, and of measures that are certain to less, count so up to 1e-5.
"""

from __future__ import annotations

import json
import math
import tempfile
from itertools import cycle, product
from pathlib import Path

import numpy as np

from onlinecal.core.joint import JointDistribution
from onlinecal.core.strategy import classes_of, strategy_key
from onlinecal.decisions.responses import RESPONSES, DecisionMaker, Noisy
from onlinecal.decisions.tasks import DecisionTask, QuadraticTask
from onlinecal.engine.game import Game
from onlinecal.forecasters import as_forecaster
from onlinecal.measures import MEASURES
from onlinecal.natures import Contrarian, UniformTruth
from onlinecal.schedules import Bursts, Constant, Pareto, Poisson, Schedule
from tests import examples
from tests.engine.games import Laws, Looks

RECORD = Path(__file__).with_suffix(".json")
ROUNDS, RUNS = 120, 2
SCHEDULES = (
    Schedule(),
    Schedule(delays=Constant(7)),
    Schedule(Poisson(2), Pareto()),
    Schedule(Bursts(5), Constant(2.5)),
)
#: relative; see above
SAME, LOOSE = 1e-9, 1e-5


# ---------------------------------------------------------------- games


def pairs():
    """Every strategy with some others; then strategies of several parts, some of which are in plain Python."""
    with tempfile.TemporaryDirectory() as folder:
        found = examples.pairs(Path(folder))
        found += [(mine, Contrarian()) for mine in examples.forecasters(Path(folder)) if not mine.needs]
        found += product(examples.FEW_FORECASTERS, examples.NESTED)
        plain = [as_forecaster(cls) for cls in (Laws, Looks)]
        found += [(whole(part), UniformTruth()) for whole in examples.WHOLES.values() for part in plain]
        yield from dict.fromkeys(found + examples.class_pairs())


def games(nested=False):
    """Forecaster, nature and schedule, by name; those of several parts, which take long to compile, or the others."""
    for (mine, theirs), schedule in zip(pairs(), cycle(SCHEDULES)):
        # Three slots are enough for this delay.
        schedule = Schedule(delays=Constant(2)) if getattr(mine, "slots", None) else schedule
        name = " – ".join(filter(None, (strategy_key(mine), strategy_key(theirs), schedule.label)))
        parts = "of", "natures", "parts", "then"
        whole = any(hasattr(each, part) for each in (mine, theirs) for part in parts)
        if nested is (whole or "tests." in name):
            yield name, mine, theirs, schedule


def played(mine, theirs, schedule):
    """Of each run sums over the levels of Γ; and what the forecaster certifies."""
    game = Game(mine, theirs, horizon=ROUNDS, runs=range(RUNS), seed=1, schedule=schedule)
    game.advance(ROUNDS)
    found = []
    for g in game.gammas():
        if classes_of(theirs):
            p, n = g.predictions, g.counts
            found += [*n @ p, *n @ p**2, *(p * g.tallies).sum(axis=0), *g.tallies.sum(axis=0)]
            continue
        p, n, ones = g.predictions, g.counts, g.positives
        found += [p @ n, p**2 @ n, p @ ones, ones.sum()]
    return found + [total for totals in game.certificates().values() for total in totals]


# ---------------------------------------------------------------- bounds


def bounds(strategy):
    """Of each guarantee the bound, its slack, the bound under delays, and the potential that proves it."""
    for guarantee in strategy.guarantees:
        for horizon in (1, 100, 10_000):
            yield guarantee.bound(horizon)
            if guarantee.slack is not None:
                yield guarantee.slack(horizon, 16, 1e-3)
            if guarantee.delayed is not None:
                yield guarantee.delayed(horizon, 7)
        if guarantee.potential is not None:
            of_nature = hasattr(strategy, "sight")
            pair = (examples.FEW_FORECASTERS[0], strategy) if of_nature else (strategy, UniformTruth())
            game = Game(*pair, horizon=ROUNDS, runs=range(1), seed=1)
            game.advance(ROUNDS)
            gamma, potential = game.gamma(0), guarantee.potential
            yield potential.of(gamma, ROUNDS)
            if potential.growth is not None:
                yield potential.growth(gamma, gamma.predictions[0], ROUNDS)


# ---------------------------------------------------------------- measures and accounts


def gammas():
    """A grid, reals far and near, a single level; none from a generator that a library might change."""
    t = np.arange(1, 41)
    reals = (t * 0.6180339887498949) % 1.0
    outcomes = ((t * 0.7548776662466927) % 1.0 < 0.2 + 0.6 * reals**2).astype(float)
    near = np.concatenate([0.5 + 1e-3 * reals[:6], [0.0, 1.0]])
    return [
        JointDistribution.from_counts(
            np.arange(11) / 10, 1 + t[:11] % 4, (t[:11] * 7 % 5) % (2 + t[:11] % 4)
        ),
        JointDistribution.from_samples(reals, outcomes),
        JointDistribution.from_samples(near, [1, 0, 1, 1, 0, 1, 0, 1]),
        JointDistribution.from_counts([0.375], [8], [5]),
    ]


def measured(record):
    """A measure of each Γ: both ends of a bracket, and where it can be made coarser, that too."""
    calls = [record.bind(**record.example)]
    if record.fallback is not None:
        calls.append(record.bind(**record.example, max_levels=8))
    found = [call(gamma) for call in calls for gamma in gammas()]
    return [
        end
        for value in found
        for end in ((value.lower, value.upper) if hasattr(value, "lower") else (value,))
    ]


def accounts():
    """The accounts of tasks of each kind, and the beliefs of each response, by name."""
    payoffs = [[0.3, 0.8], [0.55, 0.55], [1.0, 0.1]]
    three = DecisionTask("three", payoffs)
    for task in (three, QuadraticTask(), DecisionMaker(DecisionTask("t", payoffs), Noisy())):
        yield f"task {type(task).__name__}", [number for gamma in gammas() for number in task.account(gamma)]
    for name, cls in RESPONSES.items():
        beliefs = [cls().beliefs(gamma) for gamma in gammas()]
        sums = [(b.mass @ b.predictions**2, b.mass @ b.means**2, b.weight) for b in beliefs]
        yield f"response {name}", np.ravel(sums).tolist()


# ---------------------------------------------------------------- the record


def of_games():
    return {name: played(*given) for name, *given in games()}


def of_nested_games():
    return {name: played(*given) for name, *given in games(nested=True)}


def of_measures():
    return {f"measure {name}": measured(record) for name, record in MEASURES.items()} | dict(accounts())


def of_bounds():
    with tempfile.TemporaryDirectory() as folder:
        every = examples.forecasters(Path(folder)) + examples.natures(Path(folder))
        found = {f"bounds {strategy_key(each)}": [*bounds(each)] for each in every}
    return {name: numbers for name, numbers in found.items() if numbers}


def of_pictures():
    from tests.report.drawn import looks
    from tests.report.test_pictures import CASES, RARE, of, studied

    study = studied()
    return {
        f"picture {name}": looks(of(name)(*case.given(study), **case.options))
        for name, case in (CASES | RARE).items()
    }


#: all that is on record: each gives name → numbers
KINDS = of_games, of_nested_games, of_bounds, of_measures, of_pictures
#: how the names begin that are no games
BEGIN = {of_bounds: ("bounds ",), of_measures: ("measure ", "task ", "response "), of_pictures: ("picture ",)}


def now(kind):
    """The numbers in twelve digits; infinities as text."""
    return {name: [_written(float(number)) for number in numbers] for name, numbers in kind().items()}


def _written(number):
    return float(f"{number:.12g}") if math.isfinite(number) else str(number)


def same(name, first, second):
    """Up to what libraries may differ by, or a measure says of itself."""
    record = MEASURES.get(name.removeprefix("measure "))
    certain = not name.startswith("picture ") and (record is None or not (record.accuracy or record.bracket))
    size = SAME if certain else LOOSE
    return len(first) == len(second) and np.allclose(
        np.array(first, float), np.array(second, float), rtol=size, atol=1e-3 * size
    )


def recorded():
    return json.loads(RECORD.read_text()) if RECORD.exists() else {}


def main():
    old, new = recorded(), {name: numbers for kind in KINDS for name, numbers in now(kind).items()}
    each = (f"{json.dumps(name, ensure_ascii=False)}: {json.dumps(old.get(name, new[name]))}" for name in new)
    RECORD.write_text("{\n" + ",\n".join(each) + "\n}\n")
    print(f"{len(new.keys() - old.keys())} lines added, {len(old.keys() - new.keys())} deleted")


if __name__ == "__main__":
    from tests import golden  # the randomness of a plain class depends on the name of its module

    golden.main()
