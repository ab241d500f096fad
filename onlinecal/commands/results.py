"""Commands that play scenarios, and print, draw and keep their results."""

import shlex
import sys
from pathlib import Path
from typing import Any

import typer

from onlinecal.commands.base import (
    JSON,
    OVERWRITE,
    RESULTS,
    answer,
    argument,
    aside,
    flag,
    option,
    page_name,
    people_rows_of,
    study_of,
)
from onlinecal.core.words import number_of

#: the number of pairs that cannot be played, and of cells that failed, that are named
NAMED = 5


def run(
    scenario: Path = argument("a TOML file, or a name in `onlinecal list scenarios`", "SCENARIO"),
    output: Path | None = option("results file; default results/NAME.db", "--output", "-o"),
    resume: bool = flag("go on with an unfinished results file", "--resume"),
    overwrite: bool = flag("replace an existing results file", "--overwrite"),
    seed: int | None = option("in place of the scenario's"),
    runs: int | None = option("the same for the number of runs"),
    horizon: list[int] | None = option("the same for T; several, for a game of each, by repeating it"),
    dry_run: bool = flag("play nothing: how many cells and rounds, by which loops", "--dry-run"),
    jobs: int | None = option(
        "how many processes; default all cores, by threads but for much plain Python", "--jobs", "-j"
    ),
    scheduler: str | None = option(
        "of a Dask cluster that plays, such as tcp://host:8786", "--scheduler", metavar="ADDRESS"
    ),
    as_json: bool = JSON,
) -> None:
    """Play a scenario: totals, exponents and a results file.

    Exit 1 if cells failed.
    """
    from onlinecal.report.terminal import print_json
    from onlinecal.report.totals import totals, totals_data
    from onlinecal.scenario import load
    from onlinecal.study.curves import Study
    from onlinecal.study.executors import all_cores, executor_of
    from onlinecal.study.outlook import measuring, slow_measures
    from onlinecal.study.session import Session

    executor = executor_of(jobs, scheduler)
    with aside():
        loaded = load(scenario, _changed(seed, runs, horizon))
    path = output or Path("results") / f"{loaded.scenario.name}.db"
    if dry_run:
        _print_outlook(loaded.cells, path, resume=resume, as_json=as_json)
        return
    if jobs is None and scheduler is None:
        executor = all_cores(loaded.cells)
    given = {"--jobs": jobs, "--scheduler": scheduler}
    more = [word for name, value in given.items() if value is not None for word in (name, str(value))]
    command = [str(scenario), *loaded.options.split(), *more, *(["--json"] if as_json else [])]
    meta = loaded.meta | {"command": shlex.join(command)}
    with (
        aside(),
        executor,
        Session.open(loaded.cells, meta, path, resume=resume, overwrite=overwrite) as session,
    ):
        refused = loaded.cells.incompatible
        notes = [f"not played: {who!r} against {whom!r}: {why}" for who, whom, why in refused[:NAMED]]
        if len(refused) > NAMED:
            notes.append(f"nor are {len(refused) - NAMED:,} more pairs; `onlinecal status` names all of them")
        long = slow_measures(measuring(loaded.cells, session.store.runs()))
        for remark in filter(None, (*notes, *session.remarks, long)):
            print(f"note: {remark}", file=sys.stderr)
        try:
            failed = session.play(executor)
        except KeyboardInterrupt:
            done = f"{len(session.store.finished())} of {len(loaded.cells)} cells are finished and kept in {path}"
            print(f"stopped: {done}; go on with: {session.store.go_on}", file=sys.stderr)
            raise typer.Exit(130) from None
        study = Study.of(session.store)
    if as_json:
        people = [{"measure": "decision makers", **c.as_json()} for c in people_rows_of(study)]
        print_json(totals_data(totals(study)) + people)
    elif study.cells:
        _print_results(study, path)
    if failed:
        _print_failed(failed, len(loaded.cells), path)
        raise typer.Exit(1)


def _print_outlook(cells: Any, path: Path, *, resume: bool, as_json: bool) -> None:
    """Print what a run would play; with `resume` the results file counts."""
    from onlinecal.study.outlook import outlook
    from onlinecal.study.store import Store

    there = {}
    if resume and path.exists():
        with Store.open(path) as store:
            there = store.runs()
    found = outlook(cells, there)
    answer(as_json, {"results": str(path), **vars(found)}, found.lines)
    if path.exists() and not resume and not as_json:
        print(f"{path} exists; --dry-run --resume counts what is in it")


def _print_results(study: Any, path: Path) -> None:
    from onlinecal.report.comparing import of_all, of_people
    from onlinecal.report.terminal import say
    from onlinecal.report.totals import long, main_columns, print_overview, ways_on

    title, measures = study.title or study.name, main_columns(study, streams=True)
    if long(study, measures):
        print_overview(study, title, measures)
        print(f"\nresults: {path}\n{ways_on(path, measures[0])}")
        return
    say(title)
    of_all(study, measures).print()
    if people := people_rows_of(study):
        print()
        of_people(people).print()
    print(f"\nresults: {path}\npicture: onlinecal plot {shlex.quote(str(path))}")


def _changed(seed: int | None, runs: int | None, horizon: list[int] | None) -> dict[str, Any]:
    """The keys of the scenario that options give."""
    given: dict[str, Any] = {"seed": seed, "runs": runs}
    if horizon:
        given |= {"horizon": horizon[0]} if len(horizon) == 1 else {"horizons": horizon}
    return {key: value for key, value in given.items() if value is not None}


def _print_failed(failed: Any, cells: int, path: Path) -> None:
    sys.stdout.flush()
    print(f"{len(failed)} of {cells} cells failed:", file=sys.stderr)
    for cell, fault in failed[:NAMED]:
        print(f"  {cell.players} at T = {cell.horizon}: {fault}", file=sys.stderr)
    more = f"; `onlinecal status {shlex.quote(str(path))}` shows all" if len(failed) > NAMED else ""
    print(f"--resume plays them again{more}", file=sys.stderr)


def new(
    file: Path = argument("what is to be written, such as my.toml or log.csv", "FILE"),
    like: str | None = option("one of `onlinecal list scenarios`; default template"),
    overwrite: bool = OVERWRITE,
) -> None:
    """Write a scenario with comments, to be changed and played.

    With the ending .csv, an example of a log of forecasts.
    """
    from onlinecal.core.writing import create

    create(file, like, overwrite)
    name = shlex.quote(str(file))
    then = "play it: onlinecal run" if file.suffix == ".toml" else "measure it: onlinecal measure"
    print(f"wrote {file}; {then} {name}")


def status(results: Path = RESULTS, as_json: bool = JSON) -> None:
    """The state of a study, also while it is played.

    Cells that are done, failed or left, and the process that writes them.
    """
    from onlinecal.study.status import Status

    found = Status.of(results)
    answer(as_json, found.as_json(), found.lines)
    if found.go_on and not as_json:
        print(f"go on with: {found.go_on}")  # unbroken, so that it can be pasted


def compare(
    results: Path = RESULTS,
    measure: str | None = option("which column; default the first of the scenario", "--measure", "-m"),
    nature: list[str] | None = option("which natures; may be repeated"),
    all_: bool = flag("forecasters × all measures, a table for each nature", "--all"),
    ranking: bool = flag("ranks of the forecasters, and which orders are beyond doubt", "--ranking"),
    pareto: tuple[str, str] | None = option(
        "who is not dominated in two measures", "--pareto", metavar="MEASURE MEASURE"
    ),
    markdown: bool = flag("as Markdown; alone, all exponents beside the proven ones", "--markdown"),
    paired: bool = flag("differences between forecasters on the same outcomes, run by run", "--paired"),
    people: bool = flag("the swap regret of those who join and leave", "--people"),
    as_json: bool = JSON,
) -> None:
    """Compare forecasters by one measure, against each nature.

    Final totals, exponents with 95 % intervals, and the best known rates.
    """
    from onlinecal.report.comparing import answer as compared

    flags = {"paired": paired, "people": people, "all": all_, "ranking": ranking}
    study = study_of(results)
    some = study.only(None, nature) if nature else study
    compared(some, flags, measure, pareto, markdown=markdown, as_json=as_json)


def plot(
    results: Path = RESULTS,
    output: Path | None = option(".png, .svg or .pdf; default beside the results", "--output", "-o"),
    kind: str = option(
        "curves, slopes, runs, exponents, pareto, sweep, tasks, people, groups, delays, reliability, regret, "
        "witness, classes, or triangle",
        default="curves",
    ),
    measure: list[str] | None = option("which columns; may be repeated", "--measure", "-m"),
    forecaster: list[str] | None = option("which forecasters; may be repeated"),
    nature: list[str] | None = option("which natures; may be repeated"),
    against: str | None = option("of sweep: a parameter of forecasters or natures, or T"),
    bars: str | None = option("of sweep: deviation (default), quartiles, or interval"),
    run: int | None = option("which run of a picture of levels; default all", min=0),
    round: int | None = option("which checkpoint of it; default the last"),
    group: str | None = option("of which group or stream it is; default all rounds"),
    bins: int | None = option("of reliability and classes, in place of levels", min=1),
    linear: bool = flag("linear axes of runs", "--linear"),
    dark: bool = flag("for a dark page", "--dark"),
    width: str | None = option("column (3.4), page (7), or inches"),
    columns: int | None = option("the most panels beside each other", min=1),
    dpi: int = option("points an inch of a PNG", default=150, min=20, max=1200),
    caption: Path | None = option("a text file for the caption, which is not in the picture then"),
    no_caption: bool = flag("leave the caption out", "--no-caption"),
) -> None:
    """Draw totals against T, or another picture.

    Logarithmic axes, with bands, bounds and slopes.
    """
    from onlinecal.core.errors import InvalidParameter
    from onlinecal.core.writing import whole
    from onlinecal.report.pictures import draw
    from onlinecal.report.style import inches, save
    from onlinecal.report.terminal import say

    if against is not None and kind not in ("curves", "sweep"):
        raise InvalidParameter(f"{kind} and sweep are 2 pictures; expected one --kind")
    kind = kind if against is None else "sweep"
    inches(width)  # before anything is read
    figure, left = draw(
        study_of(results).only(forecaster, nature, schedules=kind == "delays"), kind, measure=measure or (),
        against=against, bars=bars, run=run, round=round, group=group, bins=bins, linear=linear or None,
        look={"dark": dark, "width": width, "columns": columns, "caption": caption is None and not no_caption},
    )  # fmt: skip
    own = "" if kind == "curves" else f"-{kind}"
    path = output or results.with_name(f"{results.stem}{own}.png")
    save(figure, path, dpi)
    files = str(path)
    if caption is not None:
        with whole(caption) as new:
            new.write_text(f"{figure.get_label()}\n", encoding="utf-8")
        files += f" and {caption}"
    say("; ".join(filter(None, (f"wrote {files}", left))))


def report(
    results: Path = RESULTS,
    output: Path | None = option("an .html file; default beside the results", "--output", "-o"),
) -> None:
    """Write a study as one HTML page.

    The question, a summary, tables, pictures, and the commands that repeat it.
    """
    from onlinecal.report.page import page_of
    from onlinecal.study.status import Status
    from onlinecal.study.store import Store

    page_name(output)
    study, status = study_of(results), Status.of(results)
    path = output or results.with_suffix(".html")
    with Store.open(results) as store:
        meta = store.meta
    page_of(study, meta, status.cells, str(results), status.failed).write(path)
    print(f"wrote {path}")


def measure_again(
    results: Path = RESULTS,
    measure: list[str] | None = option(
        "a name, module:function, or a table { name = ..., ... }; may be repeated", "--measure", "-m"
    ),
    task: list[str] | None = option("the same of a decision task; may be repeated"),
) -> None:
    """Add columns to a results file, without playing.

    They are measured on the level sets that the file keeps.
    """
    from onlinecal.core.errors import InvalidData
    from onlinecal.study.again import measure_file_again, panel_of
    from onlinecal.study.store import Store

    with Store.open(results) as store:
        plan = store.plan()
    longest, there = max((c.horizon for c in plan), default=None), [h.column for c in plan for h in c.columns]
    with aside():
        count, reasons = measure_file_again(results, panel_of(measure or [], task or [], longest, there))
    for (name, why), cells in reasons.items():
        print(
            f"note: {name!r} is not computed, since {why}: {number_of(len(cells), 'cell')}, such as {cells[0]}; "
            "in a scenario, `onlinecal run SCENARIO --resume` plays it",
            file=sys.stderr,
        )
    if reasons and not count:
        raise InvalidData(f"{results}: nothing can be computed from what it keeps; nothing has changed")
    if count:
        print(f"{results}: new columns of {number_of(count, 'cell')}")
    else:
        print(f"{results} has all of it")


def export(
    results: Path = RESULTS,
    output: Path = option("a .csv or .parquet file", "--output", "-o", default=...),
    overwrite: bool = OVERWRITE,
) -> None:
    """Write all totals as one table, for other tools.

    A row for each number.
    """
    from onlinecal.study.tables import export

    print(f"wrote {output}: {number_of(export(study_of(results).cells, output, overwrite), 'row')}")


def merge(
    results: list[Path] = argument("results files", "RESULTS"),
    output: Path = option("the new results file", "--output", "-o", default=...),
    overwrite: bool = OVERWRITE,
) -> None:
    """Write several results files into one.

    All cells, runs and columns; files that contradict each other are refused.
    """
    from onlinecal.study.copies import merge

    for remark in merge(results, output, overwrite=overwrite):
        print(f"note: {remark}", file=sys.stderr)
    print(f"results: {output}")
