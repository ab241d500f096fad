"""Commands that play scenarios, and say how far they are."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from onlinecal.commands.base import Json, Overwrite, Results, argument, aside, option, people_rows_of
from onlinecal.core.words import number_of

#: the number of pairs that cannot be played, and of cells that failed, that are named
NAMED = 5


def run(
    scenario: Annotated[
        Path, argument("a TOML file, or one of `onlinecal list scenarios`, such as quickstart", "SCENARIO")
    ],
    output: Annotated[Path | None, option("results file; default results/NAME.db", "--output", "-o")] = None,
    resume: Annotated[bool, option("go on with an unfinished results file", "--resume")] = False,
    overwrite: Annotated[bool, option("start an existing results file anew", "--overwrite")] = False,
    seed: Annotated[int | None, option("in place of the scenario's")] = None,
    runs: Annotated[int | None, option("the same for the number of runs")] = None,
    horizon: Annotated[
        list[int] | None, option("the same for T; several, for a game of each, by repeating it")
    ] = None,
    dry_run: Annotated[
        bool, option("play nothing: how many cells, which loops, about how long and large", "--dry-run")
    ] = False,
    jobs: Annotated[
        int | None,
        option(
            "how many cores; default all, but for what takes some seconds only this process", "--jobs", "-j"
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        option("of a Dask cluster that plays, such as tcp://host:8786", "--scheduler", metavar="ADDRESS"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Play a scenario: a table of final totals and growth exponents, and a results file. Exit 1 if cells failed."""
    from onlinecal.report.curves import Study
    from onlinecal.report.tables import print_json
    from onlinecal.report.totals import totals
    from onlinecal.scenario import load
    from onlinecal.study.executors import executor_of
    from onlinecal.study.session import Session

    executor = executor_of(jobs, scheduler)
    with aside():
        loaded = load(scenario, _changed(seed, runs, horizon))
    path = output or Path("results") / f"{loaded.scenario.name}.db"
    if dry_run:
        from onlinecal.report.outlook import print_outlook

        print_outlook(loaded.cells, path, resume=resume, as_json=as_json)
        return
    _say_if_slow(loaded.cells)
    with (
        aside(),
        executor,
        Session.open(loaded.cells, loaded.meta, path, resume=resume, overwrite=overwrite) as session,
    ):
        refused = loaded.cells.incompatible
        notes = [f"not played: {who!r} against {whom!r}: {why}" for who, whom, why in refused[:NAMED]]
        if len(refused) > NAMED:
            notes.append(f"nor are {len(refused) - NAMED:,} more pairs; `onlinecal status` names all of them")
        for remark in (*notes, *session.remarks):
            print(f"note: {remark}", file=sys.stderr)
        try:
            failed = session.play(executor)
            for remark in executor.remarks:
                print(f"note: {remark}", file=sys.stderr)
        except KeyboardInterrupt:
            output_again = [*loaded.options.split(), *(["--output", str(output)] if output else [])]
            done = f"{session.finished} of {len(loaded.cells)} cells are finished and kept in {path}"
            on = f"onlinecal run {shlex.join([str(scenario), *output_again])} --resume"
            print(f"stopped: {done}; go on with: {on}", file=sys.stderr)
            raise typer.Exit(130) from None
        study = Study.of(session.results())
    if as_json:
        people = [{"measure": "decision makers", **c.as_json()} for c in people_rows_of(study)]
        print_json([row.as_json() for row in totals(study)] + people)
    elif study.cells:
        _print_results(study, path)
    if failed:
        _print_failed(failed, len(loaded.cells), path)
        raise typer.Exit(1)


def _print_results(study: Any, path: Path) -> None:
    from onlinecal.report.totals import long, main_columns, print_overview, print_totals, ways_on

    title, measures = study.title or study.name, main_columns(study, streams=True)
    if long(study, measures):
        print_overview(study, title, measures)
        print(f"\nresults: {path}\n{ways_on(path, measures[0])}")
        return
    print_totals(study, title, measures)
    if people := people_rows_of(study):
        from onlinecal.report.comparing import of_people

        print()
        of_people(people).print()
    print(f"\nresults: {path}\npicture: onlinecal plot {path}")


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
        who = f"{cell.forecaster.label!r} against {cell.nature_label!r} at T = {cell.horizon}"
        print(f"  {who}: {fault.text}", file=sys.stderr)
    more = f"; `onlinecal status {shlex.quote(str(path))}` shows all" if len(failed) > NAMED else ""
    print(f"--resume plays them again{more}", file=sys.stderr)


def _say_if_slow(cells: Any) -> None:
    """One line before a run that may well take longer than ten minutes."""
    from onlinecal.study.outlook import may_be_slow, outlook, slow

    if may_be_slow(cells) and slow(found := outlook(cells, 0.5)):
        from onlinecal.report.outlook import duration_range

        many = number_of(len(cells), "cell")
        time = f"{duration_range(found)} in one process if nothing of it is there"
        print(f"note: {many}, {time}; --dry-run says more, Ctrl-C keeps what is finished", file=sys.stderr)


def new(
    file: Annotated[Path, argument("what is to be written, such as my.toml or log.csv", "FILE")],
    like: Annotated[str | None, option("one of `onlinecal list scenarios`; default template")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Write a scenario with comments, to be changed and played; or (.csv) an example of a log of forecasts."""
    from onlinecal.core.shipped import create

    create(file, like, overwrite)
    name = shlex.quote(str(file))
    then = "play it: onlinecal run" if file.suffix == ".toml" else "measure it: onlinecal measure"
    print(f"wrote {file}; {then} {name}")


def status(results: Results, as_json: Json = False) -> None:
    """How far a study is, also while it is played: what is done, failed, left, cannot be played, and who writes it."""
    from onlinecal.report.tables import say
    from onlinecal.study.status import Status

    found = Status.of(results)
    if as_json:
        from onlinecal.report.tables import print_json

        print_json(found.as_json())
        return
    for line in found.lines():
        say(line)
