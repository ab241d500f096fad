"""Numbers of everything that has a version, beside those on record: a change of numbers must raise the version.

Results are kept under versions (`onlinecal.core.content`), so that those of before are never shown with those of after.
The record is ``versions.json``. After a version was raised, or something was added,

    python -m tests.versions

renews it; it refuses numbers that have changed under the same version.

Numbers count as the same up to 1e-9 of their size. Mathematical libraries differ by far less, a change of a rule makes
far more. Those of measures that are certain to less count so up to 1e-5. Games are sums over all rounds with a weight
for each round, so that a change in any round shows. The opponents are this file's own, so that only the one that plays
can change them.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from onlinecal.core.joint import JointDistribution
from onlinecal.core.strategy import strategy_name
from onlinecal.decisions.responses import RESPONSES, DecisionMaker, Noisy
from onlinecal.decisions.tasks import DecisionTask, QuadraticTask
from onlinecal.engine import game
from onlinecal.forecasters import FORECASTERS, Forecaster, Scalar
from onlinecal.measures import MEASURES
from onlinecal.natures import NATURES, Nature, Sight
from onlinecal.rounds.protocol import begin
from tests import examples

RECORD = Path(__file__).with_name("versions.json")
ROUNDS, RUNS = 120, 3
#: relative; see above
SAME, LOOSE = 1e-9, 1e-5

Entry = dict[str, Any]  # version, numbers


# ---------------------------------------------------------------- opponents


def weight(t: int, k: int = 0) -> float:
    """In [1/2, 3/2), another one for each round; of several sums, too."""
    return 0.5 + (t * (k + 1) * 0.6180339887498949) % 1.0


@dataclass(frozen=True)
class Script(Nature):
    """Recites probabilities, or moves away from the mean forecast; notes what is stated and drawn."""

    against: bool = False
    sight = Sight.DRAW
    reveals = frozenset({"base", "features", "truth", "stream"})  # all that any forecaster needs
    streams = ("0", "1", "2")

    def start(self, horizon, stream):
        return _Script(self.against)


class _Script:
    def __init__(self, against):
        self.against, self.notes = against, [0.0, 0.0]

    def context(self, round):
        base = weight(round.number, 2) / 2.0
        return dict.fromkeys(("base", "features", "truth"), base) | {"stream": round.number % 3}

    def streams_of(self, first, last):
        return np.arange(first, last + 1) % 3

    def probability(self, round):
        mean = sum(v * w for v, w in round.law.items())
        self.notes[0] += weight(round.number) * mean
        self.notes[1] += weight(round.number, 1) * round.forecast
        if self.against:
            return 0.9 if mean < 0.5 else 0.1
        return 0.25 + 0.5 * ((round.number * 0.7548776662466927) % 1.0)


@dataclass(frozen=True)
class Waver(Forecaster):
    """Two atoms of a grid, or two reals, that move with the round; notes what it is told before."""

    grid: bool = True
    needs: frozenset[str] = field(default=frozenset(), metadata={"key": False})

    def start(self, horizon, stream):
        return _Waver(self.grid)


class _Waver:
    def __init__(self, grid):
        self.grid, self.notes = grid, [0.0]

    def forecast(self, round):
        t = round.number
        first, second = (t % 8 / 8, (8 - t % 5) / 8) if self.grid else (0.3, weight(t) / 2.0)
        return {first: 0.25, second: 0.75} if first != second else first

    def update(self, forecast, outcome, round):
        for kind in sorted(round.context):
            self.notes[0] += weight(round.number, 3) * round.context[kind]


@dataclass(frozen=True)
class Overheard(Nature):
    """Another nature; a sum is taken of its probabilities."""

    of: Nature = None  # type: ignore[assignment]

    @property
    def sight(self):
        return self.of.sight

    @property
    def reveals(self):
        return self.of.reveals

    @property
    def streams(self):
        return self.of.streams

    @property
    def length(self):
        return self.of.length

    def start(self, horizon, stream):
        return begin("nature", self.of, horizon, stream)


class Mean:
    """A forecaster for one run, as people write it."""

    def __init__(self, horizon):
        self.ones, self.rounds = 1.0, 2.0

    def forecast(self):
        mean = self.ones / self.rounds
        return {mean: 0.75, 0.0123: 0.25} if self.rounds % 3 else mean

    def update(self, forecast, outcome):
        self.ones += outcome * (1.0 + forecast)
        self.rounds += 2.0


# ---------------------------------------------------------------- numbers


def played(forecaster: Forecaster, nature: Nature) -> list[float]:
    """A short game: what was noted, or the probabilities, and the predictions and outcomes of Γ."""
    each = game.Game(forecaster, nature, horizon=ROUNDS, runs=range(RUNS), seed=1)
    probabilities = np.zeros(RUNS)
    if isinstance(nature, Script):
        each.advance(ROUNDS)
    while each.asked < ROUNDS:
        question = each.ask()
        probabilities += weight(question.number) * question.probability
        each.resolve(question)
    noted = [] if isinstance(nature, Script) else probabilities.tolist()
    for player in (each.nature, each.forecaster):
        notes = [getattr(seat.player, "notes", []) for seat in getattr(player.memory, "seats", [])]
        noted += np.transpose(notes).ravel().tolist()
    gammas = each.gammas()
    noted += [float(total) for totals in each.certificates().values() for total in totals]
    return (
        noted + [float(g.predictions @ g.counts) for g in gammas] + [float(g.positives.sum()) for g in gammas]
    )


def gammas() -> list[JointDistribution]:
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


def values(found: Any) -> list[float]:
    return [found.lower, found.upper] if hasattr(found, "lower") else [float(found)]


def measured(record: Any) -> list[float]:
    calls = [record.bind(**record.example)]
    if record.modulus is not None or record.fallback is not None:
        calls.append(record.bind(**record.example, max_levels=8))
    return [value for call in calls for gamma in gammas() for value in values(call(gamma))]


def entries() -> Iterator[tuple[str, Entry]]:
    """Everything that has a version: name, version and numbers."""
    engine = [
        number
        for forecaster in (Waver(), Waver(grid=False), Scalar(Mean))
        for nature in (Script(), Script(True))
        for number in played(forecaster, nature)
    ]
    yield "engine", entry(game.VERSION, engine)
    with tempfile.TemporaryDirectory() as folder:
        forecasters, natures = examples.forecasters(Path(folder)), examples.natures(Path(folder))
    for name, cls in FORECASTERS.items():
        mine = [f for f in forecasters if strategy_name(f) == name]
        found = [number for f in mine for nature in (Script(), Script(True)) for number in played(f, nature)]
        yield f"forecaster {name}", entry(cls.version, found)
    for name, cls in NATURES.items():
        mine = [Overheard(n) for n in natures if strategy_name(n) == name]
        found = [
            number
            for n in mine
            for grid in (True, False)
            for number in played(Waver(grid=grid, needs=n.reveals), n)
        ]
        yield f"nature {name}", entry(cls.version, found)
    for name, record in MEASURES.items():
        yield f"measure {name}", entry(record.version, measured(record))
    payoffs = [[0.3, 0.8], [0.55, 0.55], [1.0, 0.1]]
    for task in (
        DecisionTask("three", payoffs),
        QuadraticTask(),
        DecisionMaker(DecisionTask("t", payoffs), Noisy()),
    ):
        found = [number for gamma in gammas() for number in task.account(gamma)]
        yield f"task {type(task).__name__}", entry(type(task).version, found)
    for name, cls in RESPONSES.items():
        beliefs = [cls().beliefs(gamma) for gamma in gammas()]
        found = [
            float(part)
            for b in beliefs
            for part in (b.mass @ b.predictions**2, b.mass @ b.means**2, b.weight)
        ]
        yield f"response {name}", entry(cls.version, found)


def entry(version: int, numbers: list[float]) -> Entry:
    """In twelve digits; infinities as text, which JSON has none for."""
    digits = [float(f"{number:.12g}") for number in numbers]
    return {"version": version, "numbers": [d if math.isfinite(d) else str(d) for d in digits]}


# ---------------------------------------------------------------- the record


def same(name: str, first: list[Any], second: list[Any]) -> bool:
    """Up to what libraries may differ by, or a measure says of itself."""
    record = MEASURES.get(name.removeprefix("measure "))
    loose = record is not None and (record.accuracy or record.bracket)
    size = LOOSE if loose else SAME
    return len(first) == len(second) and all(
        math.isclose(float(a), float(b), rel_tol=size, abs_tol=1e-3 * size)
        for a, b in zip(first, second, strict=True)
    )


def recorded() -> dict[str, Entry]:
    return json.loads(RECORD.read_text()) if RECORD.exists() else {}


def complaint(name: str, old: Entry | None, new: Entry) -> str:
    """Says what has to be done about an entry; "" where it is as on record."""
    where = {"engine": "VERSION in onlinecal/engine/game.py"}.get(name, f"`version` of {name}")
    if old is None:
        return f"{name} is not on record: run `python -m tests.versions` and commit tests/versions.json"
    if new["version"] > old["version"]:
        return (
            f"{name} has version {new['version']}, {old['version']} on record: run `python -m tests.versions`"
        )
    if new["version"] < old["version"]:
        return f"{name} has version {new['version']}, below {old['version']} on record: a version is never lowered"
    if not same(name, old["numbers"], new["numbers"]):
        return (
            f"the numbers of {name} have changed under version {new['version']}. Results files keep numbers under it, "
            "and would show old ones beside new ones. If the change is meant, raise "
            f"{where} to {new['version'] + 1}, run `python -m tests.versions`, and commit tests/versions.json; if not, "
            "undo it"
        )
    return ""


def renewed(old: Mapping[str, Entry], new: Mapping[str, Entry]) -> tuple[dict[str, Entry], list[str]]:
    """The record as it is to be, and what is refused: other numbers under the same version.

    Where the version of the engine was raised, games may come out otherwise though no player has changed. Results are
    kept under both.
    """
    engine = new["engine"]["version"] > old.get("engine", {"version": 0})["version"]
    record, refused = {}, []
    for name, found in new.items():
        before = old.get(name)
        said = complaint(name, before, found)
        raised = before is None or found["version"] > before["version"]
        played = name.startswith(("forecaster ", "nature "))  # by the engine
        if raised or (said and engine and played and found["version"] == before["version"]):
            record[name] = found
        else:
            record[name] = before
            refused += [said] if said else []
    return record, refused


def written(record: Mapping[str, Entry]) -> str:
    """A line for each entry, so that a change shows as one."""
    lines = (f"{json.dumps(name)}: {json.dumps(each, allow_nan=False)}" for name, each in record.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main() -> int:
    old = recorded()
    record, refused = renewed(old, dict(entries()))
    if refused:
        print(*refused, "nothing was written", sep="\n", file=sys.stderr)
        return 1
    RECORD.write_text(written(record))
    for name in sorted(record.keys() ^ old.keys()):
        print("added" if name in record else "removed", name)
    for name in sorted(record.keys() & old.keys()):
        if record[name] != old[name]:
            print("renewed", name)
    return 0


if __name__ == "__main__":
    # As the tests see it: the randomness of a forecaster for one run depends on the name of its module.
    from tests import versions

    sys.exit(versions.main())
