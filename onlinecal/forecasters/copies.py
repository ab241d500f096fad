"""Forecasters that share the rounds of a game out among copies of another."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from onlinecal.core.arrays import Floats
from onlinecal.core.columns import ALL, Column
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.guarantee import Guarantee
from onlinecal.core.specification import allow, optional, part, whole
from onlinecal.core.streams import Stream
from onlinecal.engine import steps
from onlinecal.engine.law import Unplayable
from onlinecal.engine.parts import begin_part
from onlinecal.engine.steps import Run, inner, kernel, note, shared, state
from onlinecal.forecasters.base import Forecaster, OfOthers
from onlinecal.forecasters.composed import Growing

#: measures with a total that is at most the sum over parts of the rounds: proved in docs/proofs.md
ADD_UP = frozenset(
    {
        "ece", "binned_ece", "binned_ece_width", "random_interval_ce", "smooth_ece_at", "kernel_ce", "weighted_ce",
        "smooth_ce", "cutoff_ce", "step_ce", "low_degree_ce", "distance_lower", "cdl", "v_cdl", "u_calibration",
        "scdl_binned", "cfdl", "brier", "log_loss",
    }
)  # fmt: skip
#: the same of what players certify
CERTIFICATES = frozenset({"distance_certificate", "kernel_ce_certificate"})


def adds_up(column: Column) -> bool:
    """Whether the total of a column is known to be at most the sum over any parts of the rounds."""
    if column.end == "upper":  # of a bracket, which may be wider over all rounds than over their parts
        return False
    if column.kind == "certificate":
        return column.measure in CERTIFICATES
    if column.of_task:
        return bool(column.quantity)
    options = dict(column.options)
    # Weights that stand beside the levels of Γ are others for each part.
    chosen = options.get("strategy") == "quantile" or options.get("omega") is not None
    return column.kind == "measure" and column.measure in ADD_UP and not chosen


class OfCopies(OfOthers):
    """A forecaster that plays by copies of another."""

    @property
    def certifies(self) -> frozenset[str]:  # type: ignore[override]
        # Sums of those of the copies, where these are proofs.
        return frozenset(self.of.certifies) & CERTIFICATES


#: the state of a whole: where the search for a free copy begins. Then of each copy the rounds asked, those open, and
#: the round in which it began. Shared: the rounds that a copy plays and the copies that have open questions, at most,
#: and how many copies there are. The note begins with the copy that plays and its number of the round.
FREE_FROM, WHOLE = range(2)
ASKED, OPEN, BEGUN, EACH = range(4)
ROUNDS_OF, MOST_OPEN, MANY = range(3)
COPY, NUMBER_OF, STREAM = range(3)


class Copies(Growing):
    """A forecaster that plays by copies of another, its parts.

    `make(k)` makes copy k, and `wanted(coming, copies)` is how many there must be; each has `open` questions open at
    most. The note has the context `more`, as `needs` of a player.
    """

    def __init__(
        self, make: Callable[[int], Any], wanted: Callable[[Any, int], int], choose: Any, certified: Iterable[str], *,
        more: Mapping[int, str] = MappingProxyType({}), share: float = math.inf, slots: float = math.inf,
        open: int | None = None, refusal: tuple[str, str] | None = None,
    ) -> None:  # fmt: skip
        form, first = make(0), STREAM + len(more)
        say, learn, draw, side = copy_steps(choose, first, form.say, form.learn, form.draw, form.side)
        names = sorted(certified)
        super().__init__(
            say, learn, [0.0], [share, slots, 0.0], size=form.size, grid=form.grid, draw=draw, side=side,
            note=first + form.note, needs={**more, **{first + place: kind for place, kind in form.needs.items()}},
            certificates=partial(summed_certificates, names=names) if names else None, refusal=refusal,
        )  # fmt: skip
        self.make, self.wanted, self.open, self.in_python = make, wanted, open, form.in_python
        self.form = _form(form)

    def make_room(self, coming: steps.Coming) -> None:
        """Begins the copies that will be needed."""
        self.reach(self.wanted(coming, len(self.parts)))
        super().make_room(coming if self.open is None else coming._replace(open=self.open))

    def begin(self, k: int) -> Any:
        """Copy k, on the grid of the others."""
        part = self.make(k)
        if _form(part) != self.form:
            what = "has copies of one forecaster on different grids"
            raise Unplayable(what, "the grid to depend on the horizon alone")
        return part

    def reach(self, many: int) -> None:
        """As `Growing.reach`, with room in the state."""
        new = many - len(self.parts)
        super().reach(many)
        if new > 0:
            self.state = np.hstack([self.state, np.zeros((len(self.state), EACH * new))])
            self.shared[MANY] = many


def _form(player: Any) -> Any:
    return player.size, player.note, player.needs, None if player.grid is None else player.grid.tobytes()


def summed_certificates(player: Copies, names: Sequence[str]) -> dict[str, Floats]:
    """Sums of the certificates of the copies that each run has asked, in the order in which they began."""
    copies = player.state[:, WHOLE:].reshape(len(player.state), -1, EACH)
    asked = [k for k in range(copies.shape[1]) if copies[:, k, ASKED].any()]
    if not asked:
        return {name: np.zeros(len(copies)) for name in names}
    parts: list[Any] = [player.parts[k] for k in asked]
    found = [part.certify(part) for part in parts]
    order = np.argsort(copies[:, asked, BEGUN], axis=1, kind="stable")
    totals = {}
    for name in names:
        each = np.where(copies[:, asked, ASKED], np.transpose([said[name] for said in found]), 0.0)
        totals[name] = np.cumsum(np.take_along_axis(each, order, axis=1), axis=1)[:, -1]
    return totals


@kernel
def first_free(run):
    """The first copy that has no open question and has not played all its rounds; −1 if too many are open."""
    mine, given = state(run), shared(run)
    share, slots, copies = given[ROUNDS_OF], given[MOST_OPEN], int(given[MANY])
    chosen, open, k = copies, 0, int(mine[FREE_FROM])
    while k < copies and (chosen == copies or slots < np.inf):
        at = WHOLE + EACH * k
        if mine[at + OPEN] != 0:
            open += 1
        elif chosen == copies and mine[at + ASKED] < share:
            chosen = k
        k += 1
    if slots == np.inf:
        mine[FREE_FROM] = chosen
    return chosen if chosen < copies and open < slots else -1


@kernel
def of_stream(run):
    """The copy of the stream of the question; −1 for none."""
    stream = note(run)[STREAM]
    return int(stream) if 0.0 <= stream < shared(run)[MANY] else -1


@kernel
def of_pattern(run):
    """The copy of the groups of the question: their memberships are the digits of its number."""
    k, j, noted = 0, 0, note(run)
    while (1 << j) < shared(run)[MANY]:
        k = 2 * k + int(noted[STREAM + j])
        j += 1
    return k


@cache
def copy_steps(choose: Any, first: int, say_one: Any, learn_one: Any, draw_one: Any, side_one: Any) -> Any:
    """The steps of a whole: those of the copy that `choose` takes, with its own note from place `first` on."""

    @kernel
    def begin_round(run, number):
        k = choose(run)
        if k >= 0:
            mine, noted, at = state(run), note(run), WHOLE + EACH * k
            if mine[at + ASKED] == 0:
                mine[at + BEGUN] = number
            mine[at + ASKED] += 1
            mine[at + OPEN] += 1
            noted[COPY], noted[NUMBER_OF] = k, mine[at + ASKED]
        return k

    def say(run: Run, number: int) -> int:
        k = begin_round(run, number)
        if k < 0:
            return 0
        return say_one(inner(run, k, first, 0), int(note(run)[NUMBER_OF]))

    def draw(run: Run, u: float, number: int) -> float:
        k = begin_round(run, number)
        if k < 0:
            return np.nan
        return draw_one(inner(run, k, first, 0), u, int(note(run)[NUMBER_OF]))

    def side(run: Run, number: int) -> float:
        noted = note(run)
        return side_one(inner(run, int(noted[COPY]), first, 0), int(noted[NUMBER_OF]))

    def learn(run: Run, place: int, forecast: float, outcome: int, number: int) -> int:
        mine, k, own = state(run), int(note(run)[COPY]), int(note(run)[NUMBER_OF])
        mine[WHOLE + EACH * k + OPEN] -= 1
        mine[FREE_FROM] = min(mine[FREE_FROM], k)
        return learn_one(inner(run, k, first, 0), place, forecast, outcome, own)

    return say, learn, draw if draw_one is not None else None, side if side_one is not None else None


def _slots_wanted(share: float, slots: float, coming: steps.Coming, count: int) -> int:
    """How many copies there must be. Of many, some more are begun, as all are laid out again."""
    needed = min(coming.open + int(coming.asked // share), 2 * slots)
    if needed <= count:
        return count
    few = FEW if slots < math.inf else 0
    return int(min(max(needed, count + count // 4, few), 2 * slots))


#: copies that begin together where there is a limit
FEW = 64


@dataclass(frozen=True)
class Delayed(OfCopies):
    r"""Copies of a forecaster, one for each question that is open at once, so that none meets a delay.

    Each question goes to the first copy without an open question that has rounds left, else to a new copy. Each copy
    plays a game of its own without delays. A delay of d rounds takes d + 1 copies.

    Guarantee: That of `of`, once for each copy, in the measures with totals that add up. Let B(T) be its bound, and b
    the most questions open at once, the one being asked included. Times of questions and outcomes do not depend on the
    game. The total over the resolved rounds is at most b·B(T). It is b·B(T/b) if B holds at every round and is concave.
    With `slots`, H = ⌈T/slots⌉ and b ≤ slots, at most K = b + ⌊(T − b)/H⌋ ≤ 2·slots copies begin, and the bound is
    K·B(H), or K·B(T/K) for such a B. Proof: docs/proofs.md.

    Information: As the copies. Time of one copy a round, memory of all. Certificates are the sums of the copies'.

    Source: Weinberger and Ordentlich 2002, "On delayed prediction of individual sequences". Joulani, György and
    Szepesvári 2013, "Online learning under delayed feedback", algorithm BOLD. Deviations: totals of calibration
    measures in place of regret; a copy that has played its rounds is replaced.

    Parameters
    ----------
    of : Forecaster
        The one that is copied.
    slots : int, optional
        The most questions that are open at once, from 1 to 10^9. Each copy is then tuned to ⌈T/slots⌉ rounds, and
        plays no more. Default: as many copies as it takes, each tuned to T.
    """

    version: ClassVar[int] = 2

    #: which copy forecasts depends on what is open (`onlinecal.core.strategy`)
    counts_open: ClassVar[bool] = True
    safe_under_delay: ClassVar[bool | None] = True
    allowed = allow(of=part("forecaster"), slots=optional(whole(1, 10**9)))

    of: Forecaster
    slots: int | None = None

    @property
    def needs_horizon(self) -> bool | None:  # type: ignore[override]
        return True if self.slots is not None else super().needs_horizon

    def steps_at(self, horizon: int) -> int | None:
        return self.of.steps_at(self._share(horizon))

    def start(self, horizon: int, stream: Stream) -> Copies:
        share, slots, refusal = math.inf, math.inf, None
        if self.slots is not None:
            share, slots = float(self._share(horizon)), float(self.slots)
            refusal = (
                f"has an open question in each of its {self.slots} slots and is asked another",
                f"at most {self.slots} open at once; raise `slots`, or leave it out",
            )
        return Copies(
            lambda k: begin_part(
                "forecaster", self.of, self._share(horizon), stream.child(f"slot {k}", "copy 0")
            ),
            partial(_slots_wanted, share, slots), first_free, self.certifies,
            share=share, slots=slots, open=1, refusal=refusal,
        )  # fmt: skip

    def _share(self, horizon: int) -> int:
        """To how many rounds a copy is tuned."""
        return horizon if self.slots is None else -(-horizon // self.slots)

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        return tuple(self._shared(g) for g in self.of.guarantees if g.upper and adds_up(g.column))

    def _shared(self, own: Guarantee) -> Guarantee:
        slots, slack = self.slots, own.slack

        def delayed(horizon: float, most: int) -> float:
            if slots is not None and most > slots:
                return math.inf
            most = min(most, int(horizon))
            each = horizon if slots is None else math.ceil(horizon / slots)
            # Those that still play, and those that have played all their rounds.
            copies = most if slots is None else most + int((horizon - most) // each)
            return copies * own.bound(horizon / copies if own.anytime else each)

        source = f"{own.source}; once for each copy, after Joulani, György and Szepesvári 2013"
        if slots is None:
            return replace(own, source=source, delayed=delayed)
        return replace(
            own,
            formula=f"{slots}·B(⌈T/{slots}⌉) with B(T) = {own.formula}",
            bound=lambda horizon: slots * own.bound(math.ceil(horizon / slots)),
            anytime=False,
            source=source,
            # Each copy with its share of the false failures.
            slack=None if slack is None else lambda horizon, runs, rate: (
                slots * slack(math.ceil(horizon / slots), runs, rate / slots)
            ),
            potential=None,
            delayed=delayed,
        )  # fmt: skip


@dataclass(frozen=True)
class Separate(OfCopies):
    """A copy of a forecaster for each stream of questions, or each set of groups, which plays no other rounds.

    Guarantee: In the rounds of each stream those of `of`, by their value at T. Over all rounds totals that add up (see
    `Delayed`) are at most the sum over the streams. Their number is nature's choice, so it is not one of the table's.

    Information: As the copies, which are told late what comes late. Needs the context ``stream``, the same in all runs,
    or the groups. Time of one copy a round, memory of all. Certificates of distance and kernel error are the sums of
    the copies'.

    Parameters
    ----------
    of : Forecaster
        The one that is copied. A copy begins when its stream is first seen, counts the rounds of its stream from 1, and
        is tuned to T.
    groups : sequence of str or "all", optional
        A copy has the rounds that are in the same of these groups, at most 8, or of all of nature's. Default: those of
        a stream.
    """

    of: Forecaster
    groups: Any = field(default=None, metadata={"key": "unless default"})

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        if self.groups is None:
            return super().needs | {"stream"}
        return super().needs | (frozenset() if self.groups == ALL else frozenset(self.groups))

    def facing(self, nature: Any) -> Any:
        told = super().facing(nature)
        return replace(told, groups=nature.group_names) if self.groups == ALL else told

    def steps_at(self, horizon: int) -> int | None:
        return self.of.steps_at(horizon)

    def start(self, horizon: int, stream: Stream) -> Copies:
        def begun(of: str) -> Callable[[int], Any]:
            return lambda k: begin_part("forecaster", self.of, horizon, stream.child(f"{of} {k}"))

        if self.groups is None:
            return Copies(
                begun("stream"), lambda coming, _: coming.streams, of_stream, self.certifies,
                more={STREAM: "stream"},
            )  # fmt: skip
        if len(self.groups) > 8:
            raise InvalidParameter(f"separate by {len(self.groups)} groups; expected at most 8, of 256 sets")
        return Copies(
            begun("groups"), lambda *_: 1 << len(self.groups), of_pattern, self.certifies,
            more=dict(enumerate(self.groups, STREAM)),
        )  # fmt: skip
