"""The search for the nature, of several families, that costs a forecaster most in fresh games."""

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onlinecal.core.arrays import Floats
from onlinecal.core.errors import InvalidParameter, lacking
from onlinecal.core.progress import Progress
from onlinecal.core.strategy import named_table, strategy_label
from onlinecal.core.validation import count, integer
from onlinecal.face import play
from onlinecal.naming import strategies_in
from onlinecal.report.curves import summary
from onlinecal.search.spaces import SPACES, Space, nature_of, table_of, toml

#: natures that are compared once more, in games that no search has seen
CHOSEN_FROM = 8
#: kinds of games, for their seeds
SEARCH, CHOICE, FRESH = range(3)


@dataclass(frozen=True)
class Tried:
    """The result of one family."""

    label: str
    evaluations: int
    best: float


@dataclass(frozen=True)
class Found:
    """The worst nature that a search has found.

    Attributes
    ----------
    against, nature : mapping
        Tables of both players, as in a scenario.
    totals : (fresh,) floats
        T·μ in games that neither the search nor the choice has seen; empty where these were interrupted.
    interrupted : bool
        Whether Ctrl-C ended it.
    """

    against: Mapping[str, Any]
    nature: Mapping[str, Any]
    measure: str
    horizon: int
    seed: int
    fresh_seed: int
    totals: Floats = field(repr=False)
    tried: tuple[Tried, ...] = field(repr=False)
    interrupted: bool = False

    @property
    def mean(self) -> float:
        """Of T·μ; NaN without fresh games."""
        return summary(self.totals)[0] if len(self.totals) else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the mean by Student's t, from the fresh games alone."""
        if not len(self.totals):
            return math.nan, math.nan
        mean, half = summary(self.totals)
        return mean - half, mean + half

    @property
    def player(self) -> Any:
        """The nature itself."""
        return nature_of(self.nature)

    @property
    def evaluations(self) -> int:
        """Natures that were played in the search."""
        return sum(each.evaluations for each in self.tried)

    def scenario(self) -> str:
        """A scenario of exactly the fresh games, as text."""
        who = strategy_label(strategies_in("forecaster", dict(self.against)))
        by = f"found by `onlinecal search`, seed {self.seed}"
        lines = [f"# The worst nature of {self.evaluations} for {who}: {by}."]
        if len(self.totals):
            low, high = self.interval
            mean = f"{self.mean:.6g}, 95 % interval {low:.6g} to {high:.6g}"
            lines.append(f"# T·{self.measure} in these fresh games: {mean}.")
        lines += [
            f"title = {toml(f'The worst nature found for {who}, T = {self.horizon:,}')}",
            f"seed = {self.fresh_seed}",
            f"runs = {max(len(self.totals), 2)}",
            f"horizons = [{self.horizon}]",
            f"measures = [{toml(self.measure)}]",
            f"forecasters = [{toml(self.against)}]",
            f"natures = [{toml(self.nature)}]",
        ]
        return "\n".join(lines) + "\n"


def search(
    against: Any, measure: str = "cdl", *, horizon: int, natures: Iterable[Any] | None = None, runs: int = 8,
    evaluations: int = 400, fresh: int = 64, seed: int = 0, progress: bool | None = None,
) -> Found:  # fmt: skip
    r"""Looks for the nature that makes a forecaster pay most, among families of natures with parameters.

    Each family is searched by CMA-ES; after each stage the better half of the families goes on (successive halving).
    Natures are compared by the mean of T·μ in `runs` games, in each generation others. The most promising ones are then
    compared in further games. The chosen one plays `fresh` games. Their mean is an unbiased estimate, and a lower bound
    on the worst nature.

    Source: Hansen and Ostermeier 2001, CMA-ES (the library `cma`); Jamieson and Talwalkar 2016, successive halving.

    Parameters
    ----------
    against : Forecaster, its name, or a table as in a scenario
    measure : str, default "cdl"
        Of the catalogue, one number.
    horizon : int
        T.
    natures : iterable, optional
        Names, or tables as in a scenario in which numbers may be ranges ``{"from": 0.1, "to": 0.9}``, also with
        ``"spacing": "log"``. Default: `SPACES`.
    runs : int, default 8
        Games of each nature in the search.
    evaluations : int, default 400
        About how many natures are played in the search; at least one generation of each family.
    fresh : int, default 64
        Games of the estimate, from 2.
    seed : int, default 0
        The same seed gives the same search.
    progress : bool, optional
        As for `onlinecal.play`.

    Returns
    -------
    Found
        Also when it is interrupted (Ctrl-C) after the first generation: the best so far.
    """
    own = _table(against)
    given = SPACES if natures is None else [natures] if isinstance(natures, str | Mapping) else natures
    spaces = [Space.of(spec) for spec in given]
    if not spaces:
        raise InvalidParameter("natures = []; expected at least one")
    games = _Games(
        strategies_in("forecaster", dict(own)), measure, count("horizon", horizon), integer("search", "seed", seed, 0)
    )  # fmt: skip
    runs, fresh, evaluations = (
        count("runs", runs),
        count("fresh", fresh, 2),
        count("evaluations", evaluations),
    )
    families = [_Family(one, games, np.random.default_rng([games.seed, i])) for i, one in enumerate(spaces)]
    # About how many games there are.
    work = max(evaluations, sum(family.cube.size for family in families)) * runs + (CHOSEN_FROM + 2) * fresh
    interrupted, totals = False, np.zeros(0)
    with Progress(work * horizon, shown=progress) as games.bar:
        try:
            _halve(families, evaluations, runs)
        except KeyboardInterrupt:
            if not any(family.best for family in families):
                raise
            interrupted = True
        nature, stopped = _chosen(families, games, fresh, interrupted)
        try:
            games.bar.describe("fresh games")
            (totals,) = games.totals([nature], fresh, games.seed_for(FRESH))
        except KeyboardInterrupt:
            stopped = True
    tried = tuple(
        Tried(family.space.label, family.evaluations, family.value)
        for family in sorted(families, key=lambda family: -family.value)
        if family.best
    )
    return Found(
        own, nature, games.measure, games.horizon, games.seed, games.seed_for(FRESH), totals, tried,
        interrupted or stopped,
    )  # fmt: skip


def _library() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what it could draw
            import cma
    except ImportError as error:
        raise InvalidParameter(lacking("a search", "cma", "search", error)) from None
    return cma


class Cube:
    """A search for the largest value on [0, 1]^d by CMA-ES, generation by generation."""

    def __init__(self, dimension: int, generator: np.random.Generator) -> None:
        self.dimension = dimension
        self.size = 1 if dimension == 0 else 4 + int(3 * math.log(dimension))
        self._strategy: Any = None
        if dimension:
            options = {
                "bounds": [0.0, 1.0], "popsize": self.size, "verbose": -9, "seed": math.nan,
                "randn": lambda *shape: generator.standard_normal(shape),
            }  # fmt: skip
            # The library refuses a single coordinate: it gets a second one without effect.
            self._strategy = _library().CMAEvolutionStrategy([0.5] * max(dimension, 2), 0.3, options)
        self._points: list[Floats] = []

    def ask(self) -> list[Floats]:
        """The points of the next generation."""
        self._points = [np.zeros(0)] if self._strategy is None else self._strategy.ask()
        return [np.clip(point[: self.dimension], 0.0, 1.0) for point in self._points]

    def tell(self, values: Any) -> None:
        """Takes the values of the points; larger is better."""
        if self._strategy is not None:
            self._strategy.tell(self._points, [-float(value) for value in values])

    @property
    def middle(self) -> Floats:
        """Where it would look next."""
        if self._strategy is None:
            return np.zeros(0)
        middle: Floats = np.clip(self._strategy.result.xfavorite[: self.dimension], 0.0, 1.0)
        return middle

    @property
    def done(self) -> bool:
        """Whether another generation would bring nothing new."""
        return self._strategy is None or bool(self._strategy.stop())


class _Games:
    """Games of one forecaster."""

    def __init__(self, forecaster: Any, measure: str, horizon: int, seed: int) -> None:
        self.forecaster, self.measure, self.horizon, self.seed = forecaster, measure, horizon, seed
        self.bar: Any = None

    def seed_for(self, what: int, number: int = 0) -> int:
        return int(
            np.random.SeedSequence([self.seed, what, number]).generate_state(1, np.uint64)[0] >> np.uint64(12)
        )

    def totals(self, tables: Sequence[Mapping[str, Any]], runs: int, seed: int) -> list[Floats]:
        """T·μ of `runs` games of each nature; games of one seed have the same chance in them."""
        # A nature that is there twice plays once.
        found: dict[str, Floats] = {}
        for table in tables:
            if (key := repr(table)) not in found:
                found[key] = self._played(nature_of(table), runs, seed)
                self.bar.advance(runs * self.horizon)
        return [found[repr(table)] for table in tables]

    def _played(self, nature: Any, runs: int, seed: int) -> Floats:
        (cell,) = play(
            self.forecaster, nature, horizon=[self.horizon], runs=runs, seed=seed, measures=[self.measure],
            keep="none", progress=False,
        ).cells  # fmt: skip
        if len(cell.totals) != 1:
            raise InvalidParameter(
                f"measure {self.measure!r} has the columns {', '.join(cell.totals)}; expected one of one number"
            )
        last: Floats = next(iter(cell.totals.values()))[-1]
        return last


class _Family:
    """One space with its optimiser, and the best natures so far."""

    def __init__(self, space: Space, games: _Games, generator: np.random.Generator) -> None:
        self.space, self.games = space, games
        self.cube = Cube(len(space.free), generator)
        self.evaluations = self.generations = 0
        #: (mean, table), the largest first
        self.best: list[tuple[float, dict[str, Any]]] = []

    @property
    def value(self) -> float:
        return self.best[0][0] if self.best else -math.inf

    def play(self, evaluations: int, runs: int) -> None:
        """Generations of about this number of natures, one at least."""
        for _ in range(max(1, evaluations // self.cube.size)):
            if self.generations and self.cube.done:
                return
            self.games.bar.describe(self.space.label)
            tables = [self.space.table(point) for point in self.cube.ask()]
            found = self.games.totals(tables, runs, self.games.seed_for(SEARCH, self.generations))
            means = [float(each.mean()) for each in found]
            self.cube.tell(means)
            self.generations += 1
            self.evaluations += len(tables)
            for pair in zip(means, tables, strict=True):
                if all(table != pair[1] for _, table in self.best):
                    self.best.append(pair)
            self.best = sorted(self.best, key=lambda pair: -pair[0])[:CHOSEN_FROM]


def _halve(families: Sequence[_Family], evaluations: int, runs: int) -> None:
    left, stages = list(families), max(1, math.ceil(math.log2(len(families))))
    for _ in range(stages):
        for family in left:
            family.play(evaluations // (stages * len(left)), runs)
        left = sorted(left, key=lambda family: -family.value)[: (len(left) + 1) // 2]


def _chosen(
    families: Sequence[_Family], games: _Games, fresh: int, interrupted: bool
) -> tuple[dict[str, Any], bool]:
    """The best of the most promising natures in further games, and whether that was interrupted."""
    pairs = sorted((pair for family in families for pair in family.best), key=lambda pair: -pair[0])
    leader = max(families, key=lambda family: family.value)
    tables = [table for _, table in pairs[:CHOSEN_FROM]]
    if interrupted or len(tables) == 1:
        return tables[0], False
    if (middle := leader.space.table(leader.cube.middle)) not in tables:
        tables.append(middle)
    games.bar.describe("the most promising")
    try:
        found = games.totals(tables, fresh, games.seed_for(CHOICE))
    except KeyboardInterrupt:
        return tables[0], True
    return tables[int(np.argmax([each.mean() for each in found]))], False


def _table(against: Any) -> dict[str, Any]:
    if isinstance(against, str | Mapping):
        name, options = named_table("against =", against, "a table with a name")
        return {"name": name, **options}
    return table_of("forecaster", against)
