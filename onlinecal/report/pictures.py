"""The pictures of a study by name: what each of them shows by the options of `onlinecal plot`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, NamedTuple

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.study.curves import Study, columns_of, runs_of

#: panels of Γ in one picture
MOST = 36
#: curves in one picture, which takes some minutes then
CURVES = 1000


@dataclass(frozen=True)
class Wanted:
    """A picture of a study, by the options of the command."""

    kind: str = "curves"
    measure: tuple[str, ...] = ()
    run: int | None = None
    round: int | None = None
    bins: int | None = None
    linear: bool = False
    against: str = ""
    bars: str | None = None

    def __post_init__(self) -> None:
        kind, several = KINDS[self.kind], " and ".join(self.measure)
        name = "a picture of curves" if self.kind == "curves" else f"--{kind.option or self.kind}"
        for option in fields(self)[1:]:
            if getattr(self, option.name) != option.default and option.name not in kind.takes:
                draws = "draws no measures" if option.name == "measure" else f"has no use for --{option.name}"
                of = ", ".join(f"--{k.option or kind}" for kind, k in KINDS.items() if option.name in k.takes)
                raise InvalidParameter(f"{name} {draws}; expected no --{option.name}, which is of {of}")
        if self.kind == "sweep" and not self.against:
            raise InvalidParameter("a sweep against nothing; expected --against with a parameter, or T")
        if self.kind == "regret" and len(self.measure) > 1:
            raise InvalidParameter(f"{name} of {several}; expected one --measure")
        if self.kind == "pareto" and len(self.measure) not in (0, 2):
            raise InvalidParameter(f"{name} of {several}; expected two --measure")


#: positional arguments and options of a picture, and the remark on what it leaves out
Given = tuple[tuple[Any, ...], dict[str, Any], str]


class Kind(NamedTuple):
    """A picture of a study: what it is given, the options that it takes, and the most columns unasked."""

    given: Callable[[Study, Wanted], Given]
    takes: tuple[str, ...] = ()
    most: int | None = None
    #: the option that asks for it, where it has another name
    option: str = ""


def draw(study: Study, wanted: Wanted, look: Mapping[str, Any] = MappingProxyType({})) -> tuple[Any, str]:
    """The axes of a picture in a new figure of this look, and a remark on omissions, or ""."""
    from onlinecal.report import plots

    given, options, said = KINDS[wanted.kind].given(study, wanted)
    return getattr(plots, wanted.kind)(*given, **options, **{"title": study.title, **look}), said


def _columns(study: Study, wanted: Wanted) -> tuple[list[str], str]:
    """The columns that are drawn, and the remark on those that are not, where none were named."""
    most = KINDS[wanted.kind].most
    shown = [column.name for column in columns_of(study, wanted.measure or None, most)]
    others = [name for name in study.measures if name not in shown]
    said = most is not None and others and not wanted.measure
    return shown, f"not drawn, --measure adds them: {', '.join(others)}" if said else ""


def _curves(study: Study, wanted: Wanted) -> Given:
    shown, left = _columns(study, wanted)
    drawn = study.curves(shown)
    if len(drawn) > CURVES:
        raise InvalidParameter(
            f"{len(drawn):,} curves; expected at most {CURVES:,}, chosen by --forecaster, --nature and --measure; "
            "--exponents and --against draw many as one"
        )
    return (drawn,), {"scale": "linear" if wanted.linear else "log"} if wanted.kind == "runs" else {}, left


def _of_columns(study: Study, wanted: Wanted) -> Given:
    shown, left = _columns(study, wanted)
    more: dict[str, Any] = {}
    if wanted.kind == "sweep":
        more = {"against": wanted.against, "bars": wanted.bars or "deviation"}
    return (study, shown), more, left


def _of_gammas(study: Study, wanted: Wanted) -> Given:
    options: dict[str, Any] = {}
    if wanted.kind == "regret" and wanted.measure:
        options["measure"] = wanted.measure[0]
    elif wanted.kind == "reliability":
        # In a game predictions depend on outcomes, and the band is for predictions that were fixed before.
        options |= {"bins": wanted.bins, "band": None}
    found, left = gammas(study, wanted.round, wanted.run)
    return (found,), options, f"not drawn, as Γ is not kept: {'; '.join(left)}" if left else ""


_GAMMA = ("run", "round")
KINDS: Mapping[str, Kind] = {
    "curves": Kind(_curves, ("measure",), 4),
    "exponents": Kind(_of_columns, ("measure",)),
    "pareto": Kind(_of_columns, ("measure",), 2),
    "sweep": Kind(_of_columns, ("measure", "against", "bars"), 8, "against"),
    "delays": Kind(_of_columns, ("measure",), 2),
    "people": Kind(lambda study, _: ((study,), {}, "")),
    # Of a scenario, which the command reads.
    "questions": Kind(lambda study, _: ((study,), {}, "")),
    "reliability": Kind(_of_gammas, (*_GAMMA, "bins")),
    "regret": Kind(_of_gammas, (*_GAMMA, "measure")),
    "witness": Kind(_of_gammas, _GAMMA),
    "tasks": Kind(lambda study, _: ((study,), {}, "")),
    "runs": Kind(_curves, ("measure", "linear"), 4),
    "slopes": Kind(_curves, ("measure",), 4),
}


def gammas(
    study: Study, round: int | None = None, run: int | None = None
) -> tuple[dict[str, JointDistribution], list[str]]:
    """Label → Γ of each pair in its longest game, of a run or of all together; and pairs without one."""
    cells = sorted(study.cells, key=lambda cell: cell.horizon)
    longest = {(c.forecaster, c.nature): c for c in cells if round is None or round in c.rounds.tolist()}
    if not longest:
        known = sorted({t for cell in study.cells for t in cell.rounds.tolist()})
        raise InvalidParameter(
            f"round = {round}; expected one of the checkpoints {', '.join(map(str, known[:20]))}"
        )
    if len(longest) > MOST:
        raise InvalidParameter(
            f"{len(longest)} pairs of a forecaster and a nature; expected at most {MOST}, chosen by --forecaster and "
            "--nature"
        )
    found, left = {}, []
    refused = ""
    pairs = [(who, whom) for whom in study.natures for who in study.forecasters if (who, whom) in longest]
    for who, whom in pairs:
        cell = longest[who, whom]
        at = len(cell.rounds) - 1 if round is None else cell.rounds.tolist().index(round)
        (runs,) = runs_of([cell])
        if run is not None and not 0 <= run < runs:
            raise InvalidParameter(f"run = {run} of {who} against {whom}; expected 0 to {runs - 1}")
        there = [cell.gamma(at, r) for r in (range(runs) if run is None else [run])]
        parts = [gamma for gamma in there if gamma is not None]
        if len(parts) < len(there):
            refused = refused or (
                f"Γ of {who} against {whom} at T = {cell.rounds[at]:,} is not kept in "
                f'{len(there) - len(parts)} of {len(there)} runs; expected a study that was played with keep = "all", '
                "or a run of which it is"
            )
            left.append(f"{who} against {whom}")
            continue
        which = f", run {run}" if run is not None else f", {runs} runs together" if runs > 1 else ""
        label = f"{who} against {whom}, T = {int(cell.rounds[at]):,}{which}"
        found[label] = parts[0].merge(*parts[1:]) if len(parts) > 1 else parts[0]
    if not found:
        raise InvalidParameter(refused)
    return found, left
