"""The engine: a forecaster and a nature meet round by round on a simulated clock, many runs in lockstep.

Round t = 1, 2, …: the forecaster states the law of p_t; nature, from what its `Sight` allows, states q_t; the engine
draws p_t from the law and y_t = 1[u_t < q_t] from streams that depend only on the seed, the role, the strategies, the
horizon and the number of the run. Players never draw their moves, so an adversary sees exactly what it declares, and a
run's course does not depend on which other runs are played beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import simpy
from numpy.typing import NDArray

from onlinecal._compile import kernel
from onlinecal.errors import InvalidForecast, InvalidParameter, OnlinecalError, failure
from onlinecal.forecasters.base import Floats, Forecaster, ForecasterView, Law, Unplayable
from onlinecal.joint import JointDistribution
from onlinecal.ledger import GridLedger, Ledger, RealLedger
from onlinecal.natures.base import Nature, NatureView, Sight
from onlinecal.strategy import strategy_key, strategy_name
from onlinecal.streams import Stream

#: the longest game: level counts and the clock stay exact far beyond, patience does not
LONGEST = 10**9
#: of the engine: rounds, draws, ledger, Γ and what is read of it; raised when a game comes out otherwise, since results
#: are kept under it (tests/versions.py)
VERSION = 1
#: rounds whose uniforms are drawn at a time
BLOCK = 1024


class Game:
    """One forecaster against one nature, in several runs; pausable between rounds.

    Parameters
    ----------
    forecaster : Forecaster
    nature : Nature
    horizon : int
        T, from 1 to 10^9; players that are tuned to a horizon are tuned to this one.
    runs : range
        Which runs to play. Run r is the same game in whatever batch it is played.
    seed : int
        Of all the randomness.

    Raises
    ------
    InvalidParameter
        A horizon or number of runs out of range; a nature that cannot play as long or does not reveal what the
        forecaster needs; not enough memory.

    Notes
    -----
    Between calls of `advance` a game can be pickled, and continues identically.
    """

    def __init__(
        self, forecaster: Forecaster, nature: Nature, *, horizon: int, runs: range, seed: int = 0
    ) -> None:
        check_horizon(horizon)
        if len(runs) < 1:
            raise InvalidParameter("runs is empty; expected at least one run")
        check_pair(forecaster, nature, horizon)
        self.names = strategy_name(forecaster), strategy_name(nature)
        keys = strategy_key(forecaster), strategy_key(nature)
        size, at = len(runs), f"T={horizon}"
        self.horizon, self.runs, self.time = horizon, runs, 0
        self.forecaster = start("forecaster", forecaster, horizon, runs, seed)
        self.nature = start("nature", nature, horizon, runs, seed)
        # The coins belong to nature alone: every forecaster faces the same ones.
        self._coins = Stream(seed, ("outcome", keys[1], at), runs)
        self._dice = Stream(seed, ("forecast", keys[0], at), runs)
        self._needs = forecaster.needs
        self._hears = nature.sight >= Sight.HISTORY and hasattr(self.nature, "update")
        self._views = ForecasterView(0, {}), NatureView(self.names[1], nature.sight)
        self._sight = nature.sight
        self._shown = Law(1, 1)  # of no player, so the first law of the game is a new one
        self._q = np.empty(size)
        self._outcome = np.zeros(size, np.int64)
        self._values = np.empty(size)
        self._blocks: tuple[Floats, Floats] | None = None
        self.ledger: Ledger | None = None

    def advance(self, until: int, progress: Callable[[int], None] | None = None) -> None:
        """Plays up to and including round `until`.

        Parameters
        ----------
        until : int
            At most the horizon; nothing happens if that round has been played.
        progress : callable, optional
            Told the number of rounds played since it was last told.

        Raises
        ------
        InvalidForecast
            A player stated something that is not a law or a probability, or failed; the message names it and the
            round, and the game stands before that round.
        """
        if until > self.horizon:
            raise InvalidParameter(f"round {until} is beyond the horizon {self.horizon}")
        clock = simpy.Environment(initial_time=self.time)
        clock.process(self._rounds(clock, until, progress))
        clock.run()

    def gammas(self) -> list[JointDistribution]:
        """Γ of each run so far; needs one round."""
        if self.ledger is None:
            raise InvalidParameter("no round has been played; Γ needs one")
        return self.ledger.gammas(self.time)

    def ask(self) -> Law:
        """What the forecaster would state in the next round; asking changes nothing."""
        try:
            return self.forecaster.forecast(self._look(self.time + 1))
        except OnlinecalError:
            raise
        except Exception as error:
            raise self._failed("forecaster", self.time, error) from error

    @property
    def certain(self) -> bool:
        """Whether the law of the last round left nothing to chance in any run."""
        return bool(((self._shown.weights == 0.0) | (self._shown.weights == 1.0)).all())

    def certificates(self) -> dict[str, Floats]:
        """What the forecaster can prove of its own play so far: name → (runs,) totals."""
        certify = getattr(self.forecaster, "certificates", None)
        return certify() if certify is not None else {}

    def __getstate__(self) -> dict[str, Any]:
        # Views of arrays come back as copies, so nature is shown the law anew.
        return self.__dict__ | {"_shown": Law(1, 1)}

    # ---------------------------------------------------------------- a round

    def _rounds(
        self, clock: simpy.Environment, until: int, progress: Callable[[int], None] | None
    ) -> Generator[simpy.Event, None, None]:
        nature, forecast, update = self.nature, self.forecaster.forecast, self.forecaster.update
        probability = nature.probability
        nature_view = self._views[1]
        outcome, q = self._outcome, self._q
        t = told = self.time
        turn = "nature"
        try:
            while self.time < until:
                t, row = self.time, self.time % BLOCK
                if row == 0 or self._blocks is None:
                    last = self._blocks or (None, None)
                    self._blocks = self._dice.block(BLOCK, out=last[0]), self._coins.block(BLOCK, out=last[1])
                    if progress is not None and t > told:
                        progress(t - told)
                        told = t
                dice, coins = self._blocks
                nature_view.round = t + 1
                turn = "nature"
                view = self._look(t + 1)
                turn = "forecaster"
                law = forecast(view)
                if law is not self._shown:
                    self._meet(law)
                chosen = self._chosen
                if law.grid is None:
                    bad = _draw_real(law.atoms, law.weights, dice, row, law.drawn, chosen)
                else:
                    bad = _draw_grid(
                        law.atoms, law.weights, law.grid, dice, row, law.drawn, chosen, self._values
                    )
                if bad >= 0:
                    raise self._refuse_law(law, bad)
                turn = "nature"
                stated = probability(nature_view)
                try:
                    q[...] = stated
                except (TypeError, ValueError):
                    raise self._refuse_probability(stated) from None
                bad = self.ledger.settle(t, chosen, q, coins, row, outcome)  # type: ignore[union-attr]
                if bad >= 0:
                    raise self._refuse_probability(q[bad], bad)
                self.time = t + 1
                turn = "forecaster"
                update(chosen, outcome)
                if self._hears:
                    turn = "nature"
                    nature.update(self._values, outcome)
                yield clock.timeout(1)
        except OnlinecalError:
            raise
        except Exception as error:
            raise self._failed(turn, t, error) from error
        if progress is not None and self.time > told:
            progress(self.time - told)

    def _look(self, t: int) -> ForecasterView:
        """What the forecaster sees in round t."""
        view = self._views[0]
        view.round = t
        if self._needs:
            revealed = self.nature.context(t)
            view.context = {kind: revealed[kind] for kind in self._needs}
        return view

    def _meet(self, law: Law) -> None:
        """First sight of a law object: check its form, and show it to nature as far as that may see it."""
        size = len(self.runs)
        good = (
            isinstance(law, Law)
            and law.atoms.ndim == 2
            and law.atoms.shape == law.weights.shape
            and len(law.atoms) == size
            and law.weights.dtype == np.float64
            and law.atoms.dtype == (np.float64 if law.grid is None else np.int64)
        )
        if not good:
            raise InvalidForecast(
                f"forecaster {self.names[0]!r} returned {_brief(law)} in round {self.time + 1}; expected its Law with "
                f"atoms and weights of shape ({size}, size)"
            )
        if self.ledger is None:
            self.ledger = RealLedger(size, self.horizon) if law.grid is None else GridLedger(size, law.grid)
            self._chosen: NDArray[Any] = np.zeros(size, law.atoms.dtype)
            if law.grid is None:
                self._values = self._chosen
        elif law.grid is not None and law.grid is not getattr(self.ledger, "grid", None):
            raise InvalidForecast(f"forecaster {self.names[0]!r} changed its grid in round {self.time + 1}")
        self._shown = law
        self._views[1].show(law, self._values)

    def _failed(self, turn: str, t: int, error: Exception) -> InvalidForecast:
        """A player's own error, with its name and the round, of which t came before."""
        who = f"{turn} {self.names[turn == 'nature']!r}"
        if isinstance(error, Unplayable):
            return InvalidForecast(
                f"{who} stated {_brief(error.said)} in round {t + 1}, run {self.runs[error.run]}; "
                f"expected {error.expected}"
            )
        return InvalidForecast(f"{who} failed in round {t + 1}: {failure(error)}")

    def _refuse_law(self, law: Law, run: int) -> InvalidForecast:
        atoms, weights = law.atoms[run], law.weights[run]
        if law.grid is not None:
            inside = (atoms >= 0) & (atoms < len(law.grid))
            atoms = np.where(inside, law.grid[np.where(inside, atoms, 0)], np.nan)
        return InvalidForecast(
            f"forecaster {self.names[0]!r} stated the forecasts {_brief(atoms)} with weights {_brief(weights)} "
            f"in round {self.time + 1}, run {self.runs[run]}; expected values in [0, 1] and weights ≥ 0 that sum to 1"
        )

    def _refuse_probability(self, stated: Any, run: int | None = None) -> InvalidForecast:
        where = "" if run is None else f", run {self.runs[run]}"
        return InvalidForecast(
            f"nature {self.names[1]!r} stated q = {_brief(stated)} in round {self.time + 1}{where}; "
            f"expected a probability in [0, 1], or one for each of the {len(self.runs)} runs"
        )


def check_horizon(horizon: Any) -> None:
    """Refuse a horizon that is not an integer from 1 to 10^9."""
    if not isinstance(horizon, (int, np.integer)) or isinstance(horizon, bool) or not 1 <= horizon <= LONGEST:
        raise InvalidParameter(f"horizon = {horizon!r}; expected an integer from 1 to 10^9")


def start(role: str, strategy: Any, horizon: int, runs: range, seed: int) -> Any:
    """A player of the strategy for a game of this horizon, with the stream that belongs to it."""
    try:
        stream = Stream(seed, (role, strategy_key(strategy), f"T={horizon}"), runs)
        return strategy.start(horizon, len(runs), stream)
    except OnlinecalError as error:
        raise InvalidParameter(f"{role} {strategy_name(strategy)!r} at T = {horizon}: {error}") from error
    except MemoryError as error:
        raise InvalidParameter(
            f"{role} {strategy_name(strategy)!r} needs more memory than there is for {len(runs)} run(s) at T = "
            f"{horizon}: {error}; expected fewer runs at a time, a shorter horizon or a coarser grid"
        ) from None
    except Exception as error:
        raise InvalidParameter(
            f"{role} {strategy_name(strategy)!r} cannot be started at T = {horizon}: {failure(error)}"
        ) from error


def check_pair(forecaster: Forecaster, nature: Nature, horizon: int) -> None:
    """Refuse a nature that cannot play as long, or does not reveal what the forecaster needs."""
    if nature.length is not None and horizon > nature.length:
        raise InvalidParameter(
            f"horizon = {horizon}, but nature {strategy_name(nature)!r} has {nature.length} rounds; "
            f"expected at most {nature.length}"
        )
    missing = sorted(forecaster.needs - nature.reveals)
    if missing:
        raise InvalidParameter(
            f"forecaster {strategy_name(forecaster)!r} needs {', '.join(missing)}, which nature "
            f"{strategy_name(nature)!r} does not reveal"
        )


def checkpoints(horizon: int, per_decade: int = 8, first: int = 10) -> list[int]:
    """Geometric times up to and including the horizon: `per_decade` for each factor of ten, from `first` on.

    >>> checkpoints(1000, per_decade=2)
    [10, 32, 100, 316, 1000]
    """
    check_horizon(horizon)
    steps = int(np.floor(per_decade * np.log10(max(horizon, first) / first) + 1e-9))
    times = {round(first * 10 ** (i / per_decade)) for i in range(steps + 1)}
    return sorted({t for t in times if t < horizon} | {int(horizon)})


def _brief(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.ndim == 1 and len(value) <= 4:
        return "[" + ", ".join(f"{v:.12g}" for v in value) + "]"
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= 60 else text[:57] + "…"


@kernel
def _draw_grid(atoms, weights, grid, dice, row, drawn, chosen, values):
    runs, size = atoms.shape
    for r in range(runs):
        total, pick, u = 0.0, -1, dice[row, r]
        for j in range(size):
            w, i = weights[r, j], atoms[r, j]
            if not (w >= 0.0 and 0 <= i < len(grid)):
                return r
            # The last atom with weight is the pick where rounding leaves the sum below u.
            if w > 0.0 and total <= u:
                pick = j
            total += w
        if not abs(total - 1.0) <= 1e-9:
            return r
        drawn[r] = pick
        chosen[r] = atoms[r, pick]
        values[r] = grid[atoms[r, pick]]
    return -1


@kernel
def _draw_real(atoms, weights, dice, row, drawn, chosen):
    runs, size = atoms.shape
    for r in range(runs):
        total, pick, u = 0.0, -1, dice[row, r]
        for j in range(size):
            w, p = weights[r, j], atoms[r, j]
            if not (w >= 0.0 and 0.0 <= p <= 1.0):
                return r
            if w > 0.0 and total <= u:
                pick = j
            total += w
        if not abs(total - 1.0) <= 1e-9:
            return r
        drawn[r] = pick
        chosen[r] = atoms[r, pick] + 0.0  # −0.0 becomes 0.0
    return -1
