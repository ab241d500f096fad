"""The pictures of a study by name: what each of them shows by the options of `onlinecal plot`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from onlinecal.core.errors import InvalidParameter, meant
from onlinecal.core.words import counted
from onlinecal.report import plots
from onlinecal.report.class_plot import events_of
from onlinecal.report.gammas import study_gammas
from onlinecal.study.curves import Study, columns_of, runs_of

#: curves in one picture, which takes some minutes then
CURVES = 1000


class Kind(NamedTuple):
    """The options that a picture takes, the most columns unasked, and what it is drawn of.

    That is the study, curves, Γ of each pair, or Γ of classes of one pair.
    """

    takes: tuple[str, ...] = ()
    most: int | None = None
    of: str = "study"


KINDS: Mapping[str, Kind] = {
    "curves": Kind(("measure",), 4, "curves"),
    "exponents": Kind(("measure",)),
    "pareto": Kind(("measure",), 2),
    "sweep": Kind(("measure", "against", "bars"), 8),
    "delays": Kind(("measure",), 2),
    "people": Kind(),
    "groups": Kind(("measure",)),
    "reliability": Kind(("run", "round", "group", "bins"), of="gammas"),
    "regret": Kind(("run", "round", "group", "measure"), of="gammas"),
    "witness": Kind(("run", "round", "group"), of="gammas"),
    "classes": Kind(("run", "round", "bins"), of="classes"),
    "triangle": Kind(("run", "round"), of="classes"),
    "tasks": Kind(),
    "runs": Kind(("measure", "linear"), 4, "curves"),
    "slopes": Kind(("measure",), 4, "curves"),
}


def draw(
    study: Study,
    kind: str = "curves",
    *,
    measure: Sequence[str] = (),
    look: Mapping[str, Any] | None = None,
    **options: Any,
) -> tuple[Figure, str]:
    """A picture of a study, and a remark on what is not drawn, or "".

    Options are those that the picture takes (`KINDS`); None is not given.
    """
    kind = meant("picture", kind, KINDS)
    options = {name: value for name, value in options.items() if value is not None}
    found, given = KINDS[kind], {"measure": measure} if measure else {}
    for option in given | options:
        if option not in found.takes:
            of = ", ".join(name for name, other in KINDS.items() if option in other.takes)
            raise InvalidParameter(f"--{option} with --kind {kind}; expected it with --kind {of}")
    plot, style = getattr(plots, kind), {"title": study.title} | dict(look or {})
    if found.of in ("gammas", "classes"):
        mine = "classes" if any(c.of_classes for c in study.columns.values()) else "gammas"
        if found.of != mine:
            kinds = ", ".join(name for name, other in KINDS.items() if other.of == mine)
            games = "classes" if mine == "classes" else "outcomes 0 and 1"
            raise InvalidParameter(f"--kind {kind} in games of {games}; expected --kind {kinds}")
        if len(measure) > 1:
            raise InvalidParameter(f"--kind {kind} of {' and '.join(measure)}; expected one --measure")
        run, group = options.pop("run", None), options.pop("group", "")
        gammas = study_gammas(study, options.pop("round", None), run, group)
        which = f"{counted(runs_of(study.cells))} together" if run is None else f"run {run}"
        style["title"] = " · ".join(filter(None, (style["title"], group, which)))
        if mine == "classes":
            if len(gammas) > 1:
                raise InvalidParameter(
                    f"--kind {kind} of {len(gammas)} pairs of a forecaster and a nature; expected one, chosen by "
                    "--forecaster and --nature"
                )
            ((pair, gamma),) = gammas.items()
            style["title"] = " · ".join(filter(None, (style["title"], " against ".join(pair))))
            if kind == "classes":  # without the band of reliability diagrams, as below
                return plots.reliability(events_of(gamma)[0], band=None, **options, **style), ""
            return plot(gamma, **style), ""
        if kind == "reliability":
            options["band"] = None  # in a game predictions depend on outcomes
        return plot(gammas, **options, **({"measure": measure[0]} if measure else {}), **style), ""
    if not found.takes:
        return plot(study, **style), ""
    if kind == "groups":
        return plot(study, measure or None, **style), ""
    if kind == "sweep" and "against" not in options:
        raise InvalidParameter("--kind sweep against nothing; expected --against with a parameter, or T")
    shown = [column.name for column in columns_of(study, measure or None, found.most)]
    others = [name for name, c in study.columns.items() if name not in shown and not c.stream]
    others += [f"of a part such as {name!r}" for name, c in study.columns.items() if c.stream][:1]
    left = (
        f"not drawn, --measure adds them: {', '.join(others)}"
        if others and found.most and not measure
        else ""
    )
    if found.of == "study":
        return plot(study, shown, **options, **style), left
    curves = study.curves(shown)
    if len(curves) > CURVES:
        raise InvalidParameter(
            f"{len(curves):,} curves; expected at most {CURVES:,}, chosen by --forecaster, --nature and --measure; "
            "--kind exponents and --kind sweep draw many as one"
        )
    if options.pop("linear", False):
        options["scale"] = "linear"
    if kind == "curves":
        labels = {name for cell in study.cells for name in cell.groups}
        groups = [
            name for name, c in study.columns.items() if c.stream in labels and name == f"ece @ {c.stream}"
        ]
        options["groups"] = study.curves(groups) if groups else []
    return plot(curves, **options, **style), left
