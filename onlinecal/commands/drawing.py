"""Commands that draw results, and write them as a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from onlinecal.commands.base import Results, argument, option, study_of


def plot(
    results: Annotated[
        Path,
        argument("a results file, such as results/quickstart.db; with --questions a scenario", "RESULTS"),
    ],
    output: Annotated[
        Path | None, option(".png, .svg or .pdf; default beside the results", "--output", "-o")
    ] = None,
    measure: Annotated[list[str] | None, option("which columns; may be repeated")] = None,
    forecaster: Annotated[list[str] | None, option("which forecasters; may be repeated")] = None,
    nature: Annotated[list[str] | None, option("which natures; may be repeated")] = None,
    exponents: Annotated[
        bool, option("a heat map of the fitted exponents instead of curves", "--exponents")
    ] = False,
    pareto: Annotated[bool, option("who is not dominated in two measures instead", "--pareto")] = False,
    delays: Annotated[bool, option("totals by delay instead: what it costs", "--delays")] = False,
    people: Annotated[
        bool, option("the swap regret of those who join and leave instead", "--people")
    ] = False,
    questions: Annotated[
        bool, option("when a scenario's questions are asked and known instead", "--questions")
    ] = False,
    reliability: Annotated[
        bool, option("mean outcomes against predictions instead", "--reliability")
    ] = False,
    regret: Annotated[
        bool, option("the regret of every threshold, and the worst task, instead", "--regret")
    ] = False,
    witness: Annotated[bool, option("what smooth_ce sees instead", "--witness")] = False,
    tasks: Annotated[bool, option("the regrets of each task instead", "--tasks")] = False,
    runs: Annotated[bool, option("every single run instead", "--runs")] = False,
    slopes: Annotated[bool, option("how fast totals grow from T to T instead", "--slopes")] = False,
    against: Annotated[
        str | None, option("values against a parameter of forecasters or natures, or against T, instead")
    ] = None,
    bars: Annotated[str | None, option("of --against: deviation (default), quartiles, or interval")] = None,
    run: Annotated[int | None, option("which run of a picture of levels; default all", min=0)] = None,
    round: Annotated[int | None, option("which checkpoint of it; default the last")] = None,
    bins: Annotated[int | None, option("of --reliability, in place of levels", min=1)] = None,
    linear: Annotated[bool, option("linear axes of --runs", "--linear")] = False,
    dark: Annotated[bool, option("for a dark page", "--dark")] = False,
    width: Annotated[str | None, option("column (3.4), page (7), or inches")] = None,
) -> None:
    """Draw totals against T on logarithmic axes, with bands, bounds and slopes; or one of the other pictures."""
    from onlinecal.core.errors import InvalidParameter
    from onlinecal.report.pictures import OPTIONS, Wanted, draw
    from onlinecal.report.style import inches, save
    from onlinecal.report.tables import say

    others = {
        "exponents": exponents, "pareto": pareto, "delays": delays, "people": people, "questions": questions,
        "reliability": reliability, "regret": regret, "witness": witness, "tasks": tasks, "runs": runs,
        "slopes": slopes, "sweep": against is not None,
    }  # fmt: skip
    asked = [name for name, wanted in others.items() if wanted]
    if len(asked) > 1:
        first, second = (OPTIONS.get(name, name) for name in asked[:2])
        raise InvalidParameter(f"--{first} and --{second} are two pictures; expected one of the two")
    for role, given in (("forecaster", forecaster), ("nature", nature)):
        if given and questions:
            raise InvalidParameter(f"--questions draws no {role}s; expected no --{role}")
    inches(width)  # before anything is read
    kind = asked[0] if asked else "curves"
    wanted = Wanted(kind, tuple(measure or ()), run, round, bins, linear, against or "", bars, dark, width)
    if questions:
        _plot_questions(results, output, dark, width)
        return
    study = study_of(results).only(forecaster, nature, schedules=delays)
    # The heat map had the name of the curves before there were other pictures.
    own = "" if kind in ("curves", "exponents") else f"-{kind}"
    path = output or results.with_name(f"{results.stem}{own}.png")
    axes, left = draw(study, wanted)
    save(axes.flat[0].figure, path)
    say("; ".join(filter(None, (f"wrote {path}", left))))


def _plot_questions(scenario: Path, output: Path | None, dark: bool, width: str | None) -> None:
    """Draw when the questions of a scenario are asked and known, by schedule, at its shortest horizon."""
    from onlinecal.report.late_plot import plot_questions, question_bars
    from onlinecal.report.style import save
    from onlinecal.scenario import load

    loaded = load(scenario)
    horizon = min(cell.horizon for cell in loaded.cells)
    schedules = list(dict.fromkeys(cell.schedule for cell in loaded.cells))
    bars = [question_bars(schedule, horizon, loaded.scenario.seed) for schedule in schedules]
    path = output or Path("results") / f"{loaded.scenario.name}-questions.png"
    title = loaded.scenario.title or loaded.scenario.name
    save(plot_questions(bars, title=title, dark=dark, width=width)[0, 0].figure, path)
    print(f"wrote {path}")


def report(
    results: Results,
    output: Annotated[
        Path | None, option("an .html file; default beside the results", "--output", "-o")
    ] = None,
) -> None:
    """Write a study as one HTML page: what was asked, a summary, tables, pictures, and how to repeat it."""
    from onlinecal.core.errors import InvalidParameter
    from onlinecal.report.page import html, page_of, write
    from onlinecal.study.status import Status
    from onlinecal.study.store import Store

    if output is not None and output.suffix.lower() not in (".html", ".htm"):
        raise InvalidParameter(f"{output}: expected a name that ends in .html")
    study, status = study_of(results), Status.of(results)
    path = output or results.with_suffix(".html")
    with Store.open(results) as store:
        meta = store.meta
    write(html(page_of(study, meta, status.cells, str(results), status.failed)), path)
    print(f"wrote {path}")
