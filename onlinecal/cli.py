"""The command line: `onlinecal run`, `status`, `compare`, `plot`, `report`, `list`, `show`, `check`."""

from __future__ import annotations

import functools
import io
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

# Everything heavy is imported in the command that needs it: help answers at once.

app = typer.Typer(
    name="onlinecal",
    help="Simulator and measuring instrument for online calibration.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

Results = Annotated[
    Path, typer.Argument(metavar="RESULTS", help="a results file, such as results/quickstart.db")
]
Json = Annotated[bool, typer.Option("--json", help="print JSON instead of a table")]


def _command(function: Callable[..., None]) -> Callable[..., None]:
    """Registers a command whose expected errors are one line on stderr and exit status 2."""

    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> None:
        from onlinecal.core.errors import OnlinecalError

        try:
            function(*args, **kwargs)
            if sys.stdout is not None:
                sys.stdout.flush()
        except OnlinecalError as error:
            print("error:", " ".join(str(error).split()), file=sys.stderr)
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            print("stopped", file=sys.stderr)
            raise typer.Exit(130) from None
        except OSError as error:
            # What is still to be said, Python says in the end: to nobody, for they have failed to take it.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            if isinstance(error, BrokenPipeError):
                raise typer.Exit(0) from None  # whoever read our output has seen enough
            where = error.filename or "what was to be printed"
            print(f"error: {where} cannot be read or written: {error.strerror or error}", file=sys.stderr)
            raise typer.Exit(2) from None

    app.command(function.__name__.removesuffix("_").replace("_", "-"))(guarded)
    return guarded


@_command
def run(
    scenario: Annotated[
        Path, typer.Argument(metavar="SCENARIO", help="a TOML file, such as scenarios/quickstart.toml")
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="results file; default results/NAME.db")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="go on with an unfinished results file")] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="start an existing results file anew")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="play nothing: how many cells, which loops, about how long and large"),
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            "-j",
            help="how many cores; default all, but for what takes some seconds only this process",
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            "--scheduler", metavar="ADDRESS", help="of a Dask cluster that plays, such as tcp://host:8786"
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Play a scenario: a table of final totals and growth exponents, and a results file. Exit 1 if cells failed."""
    from onlinecal.report import console as tables
    from onlinecal.report.curves import Study
    from onlinecal.scenario import load
    from onlinecal.study.executors import executor_of
    from onlinecal.study.session import Session

    executor = executor_of(jobs, scheduler)
    loaded = load(scenario)
    path = output or Path("results") / f"{loaded.scenario.name}.db"
    if dry_run:
        from onlinecal.report.outlook import print_outlook

        print_outlook(loaded.cells, path, resume=resume, as_json=as_json)
        return
    _say_if_slow(loaded.cells)
    with (
        executor,
        Session.open(loaded.cells, loaded.meta, path, resume=resume, overwrite=overwrite) as session,
    ):
        notes = [
            f"not played: {who!r} against {whom!r}: {why}" for who, whom, why in loaded.cells.incompatible
        ]
        for remark in (*notes, *session.remarks):
            print(f"note: {remark}", file=sys.stderr)
        try:
            failed = session.play(executor)
            for remark in executor.remarks:
                print(f"note: {remark}", file=sys.stderr)
        except KeyboardInterrupt:
            output_again = ["--output", str(output)] if output else []
            print(
                f"stopped: {session.finished} of {len(loaded.cells)} cells are finished and kept in {path}; "
                f"go on with: onlinecal run {shlex.join([str(scenario), *output_again])} --resume",
                file=sys.stderr,
            )
            raise typer.Exit(130) from None
        study = Study.of(session.results())
    if as_json:
        people = [{"measure": "decision makers", **c.as_json()} for c in _people_rows(study)]
        tables.print_json(tables.totals(study) + people)
    elif study.cells:
        tables.print_totals(study, study.title or study.name)
        if people := _people_rows(study):
            from onlinecal.report.summaries import print_people

            print()
            print_people(people)
        print(f"\nresults: {path}\npicture: onlinecal plot {path}")
    if failed:
        _print_failed(failed, len(loaded.cells), path)
        raise typer.Exit(1)


def _print_failed(failed: Any, cells: int, path: Path) -> None:
    sys.stdout.flush()
    print(f"{len(failed)} of {cells} cells failed:", file=sys.stderr)
    for cell, fault in failed[:5]:
        who = f"{cell.forecaster.label!r} against {cell.nature_label!r} at T = {cell.horizon}"
        print(f"  {who}: {fault.text}", file=sys.stderr)
    more = f"; `onlinecal status {shlex.quote(str(path))}` shows all" if len(failed) > 5 else ""
    print(f"--resume plays them again{more}", file=sys.stderr)


@_command
def status(results: Results, as_json: Json = False) -> None:
    """How far a study is, also while it is played: what is done, failed, left, cannot be played, and who writes it."""
    from onlinecal.study.status import Status

    found = Status.of(results)
    if as_json:
        from onlinecal.report.console import print_json

        print_json(found.as_json())
        return
    for line in found.lines():
        print(line)


def _say_if_slow(cells: Any) -> None:
    """One line before a run that may well take longer than ten minutes."""
    from onlinecal.study.outlook import may_be_slow, outlook, slow

    if may_be_slow(cells) and slow(found := outlook(cells, 0.5)):
        from onlinecal.report.outlook import duration_range

        many = f"{len(cells):,} cell{'s' * (len(cells) > 1)}"
        print(
            f"note: {many}, {duration_range(found)} in one process if nothing of it is there; --dry-run says more, "
            "Ctrl-C keeps what is finished",
            file=sys.stderr,
        )


@_command
def compare(
    results: Results,
    measure: Annotated[
        str | None, typer.Option(help="which column; default cdl, or the first that there is")
    ] = None,
    nature: Annotated[list[str] | None, typer.Option(help="which natures; may be repeated")] = None,
    all_: Annotated[
        bool, typer.Option("--all", help="forecasters × all measures, a table for each nature")
    ] = False,
    ranking: Annotated[
        bool, typer.Option("--ranking", help="ranks of the forecasters, and which orders are beyond doubt")
    ] = False,
    pareto: Annotated[
        tuple[str, str] | None,
        typer.Option("--pareto", metavar="MEASURE MEASURE", help="who is not dominated in two measures"),
    ] = None,
    markdown: Annotated[
        bool,
        typer.Option(
            "--markdown",
            help="as Markdown; by itself the exponents of all columns beside the proven ones",
        ),
    ] = False,
    paired: Annotated[
        bool,
        typer.Option("--paired", help="differences between forecasters on the same outcomes, run by run"),
    ] = False,
    people: Annotated[
        bool, typer.Option("--people", help="the swap regret of those who join and leave")
    ] = False,
    as_json: Json = False,
) -> None:
    """Forecasters × natures for one measure: final totals, exponents with 95 % intervals, and the best known rates."""
    from onlinecal.report.comparing import Question, answer

    flags = {"paired": paired, "people": people, "all": all_, "ranking": ranking}
    question = Question.of(flags, measure, pareto, markdown=markdown, as_json=as_json)
    study = _study(results)
    answer(study.only(None, nature) if nature else study, question)


def _people_rows(study: Any) -> Any:
    """What became of decision makers; empty where there are none."""
    from onlinecal.report.people_rows import people_rows

    return people_rows(study) if any(cell.people for cell in study.cells) else []


@_command
def plot(
    results: Annotated[
        Path,
        typer.Argument(
            metavar="RESULTS",
            help="a results file, such as results/quickstart.db; with --questions a scenario",
        ),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help=".png, .svg or .pdf; default beside the results")
    ] = None,
    measure: Annotated[list[str] | None, typer.Option(help="which columns; may be repeated")] = None,
    forecaster: Annotated[list[str] | None, typer.Option(help="which forecasters; may be repeated")] = None,
    nature: Annotated[list[str] | None, typer.Option(help="which natures; may be repeated")] = None,
    exponents: Annotated[
        bool, typer.Option("--exponents", help="a heat map of the fitted exponents instead of curves")
    ] = False,
    delays: Annotated[bool, typer.Option("--delays", help="totals by delay instead: what it costs")] = False,
    people: Annotated[
        bool, typer.Option("--people", help="the swap regret of those who join and leave instead")
    ] = False,
    questions: Annotated[
        bool, typer.Option("--questions", help="when a scenario's questions are asked and known instead")
    ] = False,
    reliability: Annotated[
        bool, typer.Option("--reliability", help="mean outcomes against predictions instead")
    ] = False,
    regret: Annotated[
        bool, typer.Option("--regret", help="the regret of every threshold, and the worst task, instead")
    ] = False,
    witness: Annotated[bool, typer.Option("--witness", help="what smooth_ce sees instead")] = False,
    tasks: Annotated[bool, typer.Option("--tasks", help="the regrets of each task instead")] = False,
    runs: Annotated[bool, typer.Option("--runs", help="every single run instead")] = False,
    slopes: Annotated[
        bool, typer.Option("--slopes", help="how fast totals grow from T to T instead")
    ] = False,
    run: Annotated[
        int | None, typer.Option(help="which run of a picture of levels; default all", min=0)
    ] = None,
    round: Annotated[int | None, typer.Option(help="which checkpoint of it; default the last")] = None,
    bins: Annotated[int | None, typer.Option(help="of --reliability, in place of levels", min=1)] = None,
    linear: Annotated[bool, typer.Option("--linear", help="linear axes of --runs")] = False,
    dark: Annotated[bool, typer.Option("--dark", help="for a dark page")] = False,
    width: Annotated[str | None, typer.Option(help="column (3.4), page (7), or inches")] = None,
) -> None:
    """Draw totals against T on logarithmic axes, with bands, bounds and slopes; or one of the other pictures."""
    from onlinecal.core.errors import InvalidParameter
    from onlinecal.report.pictures import Wanted, draw
    from onlinecal.report.style import inches, save

    others = {
        "exponents": exponents, "delays": delays, "people": people, "questions": questions, "reliability": reliability,
        "regret": regret, "witness": witness, "tasks": tasks, "runs": runs, "slopes": slopes,
    }  # fmt: skip
    asked = [name for name, wanted in others.items() if wanted]
    if len(asked) > 1:
        raise InvalidParameter(f"--{asked[0]} and --{asked[1]} are two pictures; expected one of the two")
    for option, given in (("forecaster", forecaster), ("nature", nature)):
        if given and questions:
            raise InvalidParameter(f"--questions draws no {option}s; expected no --{option}")
    inches(width, 0.0)  # before anything is read
    kind = asked[0] if asked else "curves"
    wanted = Wanted(kind, tuple(measure or ()), run, round, bins, linear, dark, width)
    if questions:
        _plot_questions(results, output, dark, width)
        return
    study = _study(results).only(forecaster, nature, schedules=delays)
    # The heat map had the name of the curves before there were other pictures.
    own = "" if kind in ("curves", "exponents") else f"-{kind}"
    path = output or results.with_name(f"{results.stem}{own}.png")
    axes, left = draw(study, wanted)
    save(axes.flat[0].figure, path)
    print(f"wrote {path}" + (f"; not drawn, --measure adds them: {', '.join(left)}" if left else ""))


def _plot_questions(scenario: Path, output: Path | None, dark: bool, width: str | None) -> None:
    """When the questions of a scenario are asked and known, by each of its schedules, at its shortest horizon."""
    from onlinecal.report.question_plot import plot_questions
    from onlinecal.report.questions import question_bars
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


@_command
def report_(
    results: Results,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="an .html file; default beside the results")
    ] = None,
) -> None:
    """Write a study as one HTML page: what was asked, a summary, tables, pictures, and how to repeat it."""
    from onlinecal.core.errors import InvalidParameter
    from onlinecal.report.page import html, page_of, write
    from onlinecal.study.store import Store

    path = output or results.with_suffix(".html")
    if path.suffix.lower() not in (".html", ".htm"):
        raise InvalidParameter(f"{path}: expected a name that ends in .html")
    study = _study(results)
    with Store.open(results) as store:
        meta, planned = store.meta, len(store.plan())
    write(html(page_of(study, meta, planned, str(results))), path)
    print(f"wrote {path}")


@_command
def list_(
    kind: Annotated[
        str,
        typer.Argument(
            help="forecasters, natures, measures, tasks, responses, arrivals, delays, or rates; all but rates if left "
            "out"
        ),
    ] = "",
    as_json: Json = False,
) -> None:
    """What there is to play and to measure."""
    from onlinecal.report import catalogue
    from onlinecal.report import console as tables

    tables.print_catalogue(catalogue.rows(kind), as_json=as_json)


@_command
def show(
    name: Annotated[
        str,
        typer.Argument(
            help="a forecaster, nature, measure, task, response, arrivals or delay, or module:Class"
        ),
    ],
    as_json: Json = False,
) -> None:
    """All that is known about one of them: rule, parameters, guarantees, source."""
    from onlinecal.report import catalogue
    from onlinecal.report import console as tables

    found = catalogue.entries(name)
    if as_json:
        tables.print_json(found if len(found) > 1 else found[0])
        return
    for i, entry in enumerate(found):
        print("\n" if i else "", end="")
        tables.print_entry(entry, as_json=False)


@_command
def check(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="strategies, or module:Class; all if left out"),
    ] = None,
    horizon: Annotated[int, typer.Option(help="T")] = 10_000,
    runs: Annotated[int, typer.Option(help="independent runs", min=1, max=100_000)] = 16,
    seed: Annotated[int, typer.Option(help="of all the randomness")] = 0,
    as_json: Json = False,
) -> None:
    """Measure every guarantee where it applies; for NAMEs also run the conformance checks. Exit 1 if one fails."""
    from onlinecal.checks.guarantees import report
    from onlinecal.report import console as tables

    found = report(names or [], horizon=horizon, runs=runs, seed=seed)
    if as_json:
        tables.print_json(found.rows())
    else:
        tables.print_check(found)
    if not found.good:
        raise typer.Exit(1)


@_command
def measure_again(
    results: Results,
    measure: Annotated[
        list[str] | None,
        typer.Option(help="a name, module:function, or a table { name = ..., ... }; may be repeated"),
    ] = None,
    task: Annotated[
        list[str] | None, typer.Option(help="the same of a decision task; may be repeated")
    ] = None,
) -> None:
    """Add columns to a results file from the level sets that it keeps, without playing."""
    from onlinecal.core.errors import InvalidData
    from onlinecal.report.kept import panel_of
    from onlinecal.study.later import measure_file_again
    from onlinecal.study.store import Store

    with Store.open(results) as store:
        longest = max((cell.horizon for cell in store.plan()), default=None)
    count, reasons = measure_file_again(results, panel_of(measure or [], task or [], longest))
    for (name, why), cells in reasons.items():
        print(
            f"note: {name!r} is not computed, since {why}: {len(cells)} cells, such as {cells[0]}; in a scenario, "
            "`onlinecal run SCENARIO --resume` plays it",
            file=sys.stderr,
        )
    if reasons and not count:
        raise InvalidData(f"{results}: nothing can be computed from what it keeps; nothing has changed")
    print(f"{results}: {count} cells have new columns" if count else f"{results} has all of it")


@_command
def export(
    results: Results,
    output: Annotated[Path, typer.Option("--output", "-o", help="a .csv or .parquet file")],
) -> None:
    """Write all totals as one table, a row for each number, for other tools."""
    from onlinecal.report.export import export

    print(f"wrote {output}: {export(_study(results), output):,} rows")


@_command
def merge(
    results: Annotated[list[Path], typer.Argument(metavar="RESULTS RESULTS ...", help="results files")],
    output: Annotated[Path, typer.Option("--output", "-o", help="the new results file")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace an existing results file")] = False,
) -> None:
    """Write several results files into one: all cells, runs and columns; what contradicts itself is refused."""
    from onlinecal.study.copies import merge

    for remark in merge(results, output, overwrite=overwrite):
        print(f"note: {remark}", file=sys.stderr)
    print(f"results: {output}")


def _study(path: Path) -> Any:
    from onlinecal.core.errors import StoreError
    from onlinecal.report.curves import Study
    from onlinecal.study.store import Store

    with Store.open(path) as store:
        study, planned = Study.of(store.results()), len(store.plan())
    if not study.cells:
        raise StoreError(f"{path} has no finished cells yet; go on with: onlinecal run SCENARIO --resume")
    if len(study.cells) < planned:
        print(
            f"{len(study.cells)} of {planned} cells are finished; go on with: onlinecal run SCENARIO --resume",
            file=sys.stderr,
        )
    return study


def main() -> None:
    """The console script."""
    # What a terminal cannot show is replaced, as stderr does by itself: tables hold ×, ± and whatever labels hold.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    app()
