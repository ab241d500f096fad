"""The pictures of `onlinecal plot`, by name, and the measures and Γ of a study that they show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.report.curves import Study, columns_of, runs_of

#: of Γ: of the level sets that a study keeps
OF_GAMMA = ("reliability", "regret", "witness")
#: beside the curves
KINDS = (
    "exponents",
    "pareto",
    "sweep",
    "delays",
    "people",
    "questions",
    *OF_GAMMA,
    "tasks",
    "runs",
    "slopes",
)
#: the option that asks for a picture, where it has another name
OPTIONS = {"sweep": "against"}
#: panels of Γ in one picture
MOST = 36
#: curves in one picture, which takes some minutes then
CURVES = 1000
#: option → the kinds that take it; of measures, those that do not
TAKES = {
    "measure": ("people", "questions", "reliability", "witness", "tasks"),
    "run": OF_GAMMA,
    "round": OF_GAMMA,
    "bins": ("reliability",),
    "linear": ("runs",),
    "against": ("sweep",),
    "bars": ("sweep",),
}


@dataclass(frozen=True)
class Wanted:
    """A picture of a study, by the options of the command."""

    kind: str = "curves"
    measures: tuple[str, ...] = ()
    run: int | None = None
    round: int | None = None
    bins: int | None = None
    linear: bool = False
    against: str = ""
    bars: str | None = None

    def __post_init__(self) -> None:
        name = "a picture of curves" if self.kind == "curves" else f"--{OPTIONS.get(self.kind, self.kind)}"
        several = " and ".join(self.measures)
        for option, kinds in TAKES.items():
            name_of = "measures" if option == "measure" else option
            given = getattr(self, name_of) != type(self).__dataclass_fields__[name_of].default
            if given and (self.kind in kinds) == (option == "measure"):
                draws = "draws no measures" if option == "measure" else f"has no use for --{option}"
                raise InvalidParameter(f"{name} {draws}; expected no --{option}")
        if self.kind == "sweep" and not self.against:
            raise InvalidParameter("a sweep against nothing; expected --against with a parameter, or T")
        if self.kind == "regret" and len(self.measures) > 1:
            raise InvalidParameter(f"{name} of {several}; expected one --measure")
        if self.kind == "pareto" and len(self.measures) not in (0, 2):
            raise InvalidParameter(f"{name} of {several}; expected two --measure")


def draw(study: Study, wanted: Wanted, look: Mapping[str, Any] = MappingProxyType({})) -> tuple[Any, str]:
    """The axes of a picture in a new figure of this look, and the remark on what it leaves out, or ""."""
    from onlinecal.report import plots

    look, kind = {"title": study.title, **look}, wanted.kind
    if kind in OF_GAMMA:
        options: dict[str, Any] = {}
        if kind == "regret" and wanted.measures:
            options["measure"] = wanted.measures[0]
        elif kind == "reliability":
            # In a game predictions depend on outcomes, and the band is for predictions that were fixed before.
            options |= {"bins": wanted.bins, "band": None}
        found, moved = gammas(study, wanted.round, wanted.run)
        said = f"not drawn, as Γ is not kept exactly: {'; '.join(moved)}" if moved else ""
        return getattr(plots, kind)(found, **options, **look), said
    if kind in ("people", "tasks"):
        return getattr(plots, kind)(study, **look), ""
    shown, others = _shown(study, wanted)
    left = f"not drawn, --measure adds them: {', '.join(others)}" if others else ""
    if kind in ("exponents", "pareto", "delays"):
        return getattr(plots, kind)(study, shown, **look), "" if kind == "exponents" else left
    if kind == "sweep":
        look["bars"] = wanted.bars or "deviation"
        return plots.sweep(study, shown, wanted.against, **look), left
    if kind == "runs":
        look["scale"] = "linear" if wanted.linear else "log"
    drawn = study.curves(shown)
    if len(drawn) > CURVES:
        raise InvalidParameter(
            f"{len(drawn):,} curves; expected at most {CURVES:,}, chosen by --forecaster, --nature and --measure; "
            "--exponents and --against draw many as one"
        )
    return getattr(plots, kind)(drawn, **look), left


def _shown(study: Study, wanted: Wanted) -> tuple[list[str], list[str]]:
    """The columns that are drawn, and, where none were named, those that are not."""
    if wanted.measures:
        return [column.name for column in columns_of(study, wanted.measures)], []
    # Measures of all rounds first; streams, brackets, tasks and certificates are drawn when asked for.
    plain = [
        name
        for name, c in study.columns.items()
        if c.kind in ("measure", "function") and not c.end and not c.stream
    ] or study.measures
    most = {"exponents": None, "delays": 2, "pareto": 2, "sweep": 8}.get(wanted.kind, 4)
    shown = plain[:most]
    return shown, [name for name in study.measures if name not in shown]


def gammas(
    study: Study, round: int | None = None, run: int | None = None
) -> tuple[dict[str, JointDistribution], list[str]]:
    """Label → Γ of each pair in its longest game, of a run or of all together; and the pairs without an exact one."""
    longest = {}
    for cell in sorted(study.cells, key=lambda cell: cell.horizon):
        if round is None or round in cell.rounds.tolist():
            longest[cell.forecaster, cell.nature] = cell
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
                f"Γ of {who} against {whom} at T = {cell.rounds[at]:,} is not kept exactly in "
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
