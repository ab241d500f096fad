"""Commands that measure, recalibrate and watch forecasts of users."""

import sys
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from onlinecal.commands.base import (
    ABOVE,
    DELIMITER,
    DROP,
    ENCODING,
    JSON,
    NEGATIVE,
    OVERWRITE,
    PERCENT,
    POSITIVE,
    RESOLUTIONS,
    answer,
    argument,
    flag,
    option,
    page_name,
)
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.words import number_of

#: alarms that are printed one by one; of more than these only the first, the last and their numbers
PRINTED = 10


def measure(
    file: str = argument(
        "a CSV (.gz), Parquet or JSON file with forecasts and outcomes, or - for stdin", "FILE"
    ),
    forecast: list[str] | None = option("a column of probabilities; may be repeated", "--forecast", "-f"),
    outcome: list[str] | None = option(
        "the column of outcomes; or one for each --forecast, in their order", "--outcome", "-y"
    ),
    positive: str | None = POSITIVE,
    negative: list[str] | None = NEGATIVE,
    drop: list[str] | None = DROP,
    above: float | None = ABOVE,
    fractional: bool = flag(
        "outcomes between 0 and 1, such as ties of .5, are expected outcomes", "--fractional"
    ),
    resolutions: str | None = RESOLUTIONS,
    classes: str | None = option(
        "outcomes are labels of classes, with a column of probabilities each, named after it: a,b,c or 'p_*', for a "
        "report of all; without a value each class is measured against the rest (--forecast, or all)",
        "--classes",
        metavar="[COLUMNS]",
    ),
    labels: str | None = option(
        "the labels of the --classes, a,b,c; default by the names of columns", metavar="LABELS"
    ),
    by: list[str] | None = option("a column of groups, each measured by itself; may be repeated"),
    groups: list[str] | None = option(
        "columns of 0 and 1, or of up to 16 texts, with commas: groups that may overlap; all of them at once, and the "
        "worst; may be repeated"
    ),
    time: str | None = option("a column of times or dates, in order"),
    weight: str | None = option("a column of weights"),
    cluster: str | None = option(
        "a column of labels; rows with the same one may depend on each other; default --id, or --time",
        "--cluster",
    ),
    key: str | None = option(
        "a column that tells questions apart that are forecast many times; none: no column (default: looked for)",
        "--id",
    ),
    name: list[str] | None = option(
        "which measures, or all; may be repeated; default eight", "--measure", "-m"
    ),
    draws: int = option("for intervals, and for p-values; 0 for neither", default=200),
    level: float = option("of the intervals", default=0.95),
    percent: bool = PERCENT,
    skip_missing: bool = flag("leave out rows without a forecast or an outcome", "--skip-missing"),
    sort: bool = flag("bring rows into the order of --time", "--sort"),
    html: Path | None = option(
        "an .html page as well, which needs no other file; or a .png, .svg or .pdf with the reliability of all columns",
        "--output",
        "-o",
    ),
    as_json: bool = JSON,
    seed: int = option("", default=0, hidden=True),
    delimiter: str | None = option("", hidden=True),
    encoding: str | None = option("", hidden=True),
    in_parts: bool | None = option("", "--in-parts/--in-memory", hidden=True),
) -> None:
    """Measure a log of forecasts.

    Eight measures, or all, with intervals; the worst decision, scores, cautions.

    Rarely needed: --seed of the draws, --delimiter, --encoding, --in-parts or --in-memory.
    """
    from onlinecal.core.errors import InvalidParameter
    from onlinecal.logs.class_reading import AskedClasses
    from onlinecal.logs.evaluation import DECIDING
    from onlinecal.logs.measuring import Settings
    from onlinecal.logs.source import report_of
    from onlinecal.measures import with_all
    from onlinecal.report import measured
    from onlinecal.report.terminal import print_json

    pictures = ".png", ".svg", ".pdf"
    page_name(html, *pictures)
    if key is not None and cluster is not None:
        raise InvalidParameter(f"--id {key} beside --cluster {cluster}; expected one or the other")
    asked = AskedClasses(
        tuple(forecast or ()), outcome[0] if outcome else None, positive, classes is not None, tuple(by or ()),
        tuple(groups or ()), time, weight, cluster, percent, skip_missing, sort, delimiter=delimiter,
        encoding=encoding, negative=tuple(negative or ()), drop=tuple(drop or ()), above=above,
        fractional=fractional, resolutions=resolutions, columns=classes or "", labels=labels, **_questions(key),
    )  # fmt: skip
    if classes or labels is not None:
        others = {
            "--forecast": forecast, "--positive": positive, "--negative": negative, "--above": above,
            "--groups": groups, "--fractional": fractional, "--resolutions": resolutions, "--measure": name,
            "--in-parts": in_parts,
        }  # fmt: skip
        if beside := [word for word, value in others.items() if value is not None and value is not False]:
            raise InvalidParameter(
                f"{beside[0]} beside --classes {classes}; expected one without the other, or --classes without "
                "columns, which measures each class by itself"
            )
        if not classes or (outcome and len(outcome) > 1):
            given = f"--classes {classes} with several outcomes" if classes else f"--labels {labels}"
            raise InvalidParameter(f"{given}; expected --classes with columns and one --outcome")
        _measure_classes(file, asked, (draws, level, seed), html, as_json)
        return
    if classes is not None and positive is not None:
        raise InvalidParameter(f"--classes beside --positive {positive}; expected one or the other")
    names = with_all(name or DECIDING)
    settings = Settings(draws, level, seed, tuple(names))
    report = report_of(file, asked, settings, in_parts, outcome or ())
    if html is not None and html.suffix.lower() in pictures:
        from onlinecal.report import plots
        from onlinecal.report.page_pictures import reliability_of

        found = {column.name: column.evaluation for column in report.columns[: measured.DRAWN]}
        plots.save(reliability_of(found, Path(report.source).name), html)
    elif html is not None:
        measured.document_of(report, drawn=True).write(html)
    if as_json:
        print_json(measured.data(report))
        return
    print(measured.document_of(report).text())
    if html is not None:
        print(f"wrote {html}")


def _measure_classes(
    file: str, asked: Any, settings: tuple[int, float, int], page: Path | None, as_json: bool
) -> None:
    from onlinecal.logs.class_reading import evaluation_of
    from onlinecal.report import class_report
    from onlinecal.report.terminal import print_json

    log, found = evaluation_of(file, asked, *settings)
    if page is not None and page.suffix.lower() in (".png", ".svg", ".pdf"):
        from onlinecal.report import plots

        plots.save(plots.classes(found, title=Path(log.source).name), page)
    elif page is not None:
        class_report.document_of(log, asked, found, drawn=True).write(page)
    if as_json:
        print_json(class_report.data(log, asked, found))
        return
    print(class_report.document_of(log, asked, found).text())
    if page is not None:
        print(f"wrote {page}")


def watch(
    file: Path = argument("a CSV file with forecasts and outcomes, or - for standard input", "FILE"),
    forecast: str | None = option("column of forecasts; default forecast, p, …", "--forecast", "-f"),
    outcome: str | None = option("column of outcomes; default outcome, y, label, …", "--outcome", "-y"),
    key: str | None = option(
        "column that tells questions apart; each counts once, outcomes may come later; none: each line counts",
        "--id",
    ),
    time: str | None = option("column of times, which must not descend"),
    positive: str | None = POSITIVE,
    negative: list[str] | None = NEGATIVE,
    drop: list[str] | None = DROP,
    above: float | None = ABOVE,
    percent: bool = PERCENT,
    skip_missing: bool = flag("leave out lines without a forecast or an outcome", "--skip-missing"),
    delimiter: str | None = DELIMITER,
    alpha: float | None = option("probability of a false alarm, for ever; default 0.05"),
    restart: str | None = option("after an alarm: spend (default), same or never; see oc.Monitor"),
    open_at_once: int | None = option("the number of open questions bet on; nothing is assumed of outcomes"),
    follow: bool = flag("wait for more lines at the end", "--follow"),
    state: Path | None = option("a file that keeps the watch; from it the same watch goes on where it ended"),
    as_json: bool = JSON,
) -> None:
    """Watch forecasts: an alarm when they are miscalibrated.

    Exit 1 if there was an alarm, 130 if stopped by Ctrl-C.
    """
    from onlinecal.core.errors import InvalidData
    from onlinecal.logs.columns import READING, Asked, options_of
    from onlinecal.monitoring.alarms import summary
    from onlinecal.monitoring.watching import watch
    from onlinecal.report.terminal import print_json
    from onlinecal.report.verdict import command, new_name
    from onlinecal.study.lock import writing

    told: list[Any] = []

    def say(alarm: Any) -> None:
        told.append(alarm)
        if as_json:
            print_json(asdict(alarm), in_one_line=True)
        elif len(told) <= PRINTED:
            print(alarm, flush=True)

    source = None if str(file) == "-" else file
    asked = Asked(
        forecasts=(forecast,) if forecast is not None else (), outcome=outcome, positive=positive, time=time,
        percent=percent, skip_missing=skip_missing, delimiter=delimiter, negative=tuple(negative or ()),
        drop=tuple(drop or ()), above=above, **_questions(key),
    )  # fmt: skip
    with nullcontext() if state is None else writing(state):
        monitor = _monitor(state, alpha, restart, open_at_once)
        if not as_json:
            print(f"{monitor.promise}", file=sys.stderr)
        stopped = watch(
            monitor, source, asked, follow=follow, state=state, found=say,
            say=lambda text: None if as_json else print(text, file=sys.stderr),
        )  # fmt: skip
    if monitor.events == 0 and not monitor.open and not stopped:
        name = "standard input" if source is None else file
        raise InvalidData(f"{name} has no rows; expected at least one")
    if not as_json and len(told) > PRINTED:
        print("…", *summary(told), sep="\n")
    _print_watch(monitor, as_json)
    if monitor.alarms and not as_json:
        sure = f"a false alarm has a probability of at most {monitor.alpha:g}"
        print(f"Not calibrated ({sure}): {monitor.alarms[-1].witness.verdict}.")
        given = {"--forecast": forecast, "--outcome": outcome, "--time": time}
        if source is not None:
            more = [*options_of(asked, READING), f"-o {new_name(str(file))}"]
            print(f"Next: {command('recalibrate', str(file), given, *more)}")
    if stopped:
        raise typer.Exit(130)
    if monitor.alarms:
        raise typer.Exit(1)


def _questions(key: str | None) -> dict[str, Any]:
    """The settings of --id: a column, or the word for no column."""
    return {"questions": False} if key == "none" else {"key": key}


def _monitor(state: Path | None, alpha: float | None, restart: str | None, open_at_once: int | None) -> Any:
    """A new monitor, or the one that was saved; its settings must be those of the options."""
    from onlinecal.core.errors import InvalidParameter
    from onlinecal.monitoring.monitor import Monitor

    if state is None or not state.exists():
        chosen: Any = "spend" if restart is None else restart
        return Monitor(0.05 if alpha is None else alpha, restart=chosen, open_at_once=open_at_once)
    monitor = Monitor.load(state)
    for name, asked in (("alpha", alpha), ("restart", restart), ("open_at_once", open_at_once)):
        if asked is not None and asked != getattr(monitor, name):
            said = (
                f"--{name.replace('_', '-')} {asked}, but {state} is of a watch with {getattr(monitor, name)}"
            )
            raise InvalidParameter(f"{said}; expected the same, or another --state")
    return monitor


def _print_watch(monitor: Any, as_json: bool) -> None:
    from onlinecal.report.terminal import print_json

    bias = monitor.bias()
    if as_json:
        row = {
            "events": monitor.events, "open": monitor.open, "alarms": len(monitor.alarms), "log_e": monitor.log_e,
            "p_value": monitor.p_value, "bias": bias.total, "bias_lower": bias.lower, "bias_upper": bias.upper,
        }  # fmt: skip
        print_json(row, in_one_line=True)
        return
    held = " or held until an earlier one is known" if monitor.open_at_once is None else ""
    waiting = f", {monitor.open:,} open{held}" if monitor.open else ""
    print(f"{number_of(monitor.events, 'event')}{waiting}, {number_of(len(monitor.alarms), 'alarm')}")
    since = "the last alarm" if monitor.alarms else "the beginning"
    print(f"since {since}: e = {monitor.e_value:.3g}, always-valid p = {monitor.p_value:.3g}")
    if bias.count:
        mean, low, high = (value / bias.count for value in (bias.total, bias.lower, bias.upper))
        interval = f"{mean:.4f} [{low:.4f}, {high:.4f}]"
        print(f"mean outcome − mean forecast: {interval} (95 %, at all times together)")


def recalibrate(
    file: str = argument(
        "a CSV (.gz), Parquet or JSON file of forecasts and outcomes, or - for stdin", "FILE"
    ),
    output: Path = option("a .csv or .parquet file: all columns and one more", "--output", "-o", default=...),
    overwrite: bool = OVERWRITE,
    forecaster: str = option(
        "aggregated (default), calibeating, platt, tracking, isotonic_refitted, platt_refitted, "
        "smooth_refitted, venn_abers_refitted, a forecaster (with --bins), module:Class, or a table "
        "{ name = ..., ... }",
        "--with",
        default="aggregated",
    ),
    bins: int | None = option("the number of bins of the base forecast, each with a copy of the forecaster"),
    forecast: str | None = option("column of forecasts; default forecast, p, …", "--forecast", "-f"),
    outcome: str | None = option(
        "column of outcomes, empty if not known yet; default outcome, y, label, …", "--outcome", "-y"
    ),
    positive: str | None = POSITIVE,
    negative: list[str] | None = NEGATIVE,
    drop: list[str] | None = DROP,
    above: float | None = ABOVE,
    resolutions: str | None = RESOLUTIONS,
    time: str | None = option("column of times or dates, in order"),
    resolved: str | None = option("column of times at which outcomes became known; default --time"),
    column: str = option("name of the new column", default="recalibrated"),
    save: Path | None = option("a file for the map of a ..._refitted method, fitted to all known outcomes"),
    apply: Path | None = option("recalibrate by the map in a file of --save; outcomes are not needed"),
    horizon: int | None = option("the number of forecasts, for forecasters tuned to it; default unknown"),
    percent: bool = PERCENT,
    skip_missing: bool = flag("leave out rows without a forecast", "--skip-missing"),
    sort: bool = flag("take rows in the order of --time", "--sort"),
    delimiter: str | None = DELIMITER,
    encoding: str | None = ENCODING,
    measure: list[str] | None = option("what is measured; may be repeated", "--measure", "-m"),
    draws: int = option("for 95 % intervals; 0 for none", default=400, min=0),
    seed: int = option("of all the randomness", default=0),
    as_json: bool = JSON,
) -> None:
    """Recalibrate a log of forecasts in time order.

    A new column that never looks ahead, and measures before and after.
    """
    from onlinecal.logs.columns import Asked
    from onlinecal.recalibration.files import apply_file, recalibrate_file
    from onlinecal.report.terminal import print_json

    asked = Asked(
        forecasts=(forecast,) if forecast is not None else (), outcome=outcome, positive=positive, time=time,
        resolved=resolved, percent=percent, skip_missing=skip_missing, sort=sort, delimiter=delimiter,
        encoding=encoding, negative=tuple(negative or ()), drop=tuple(drop or ()), above=above,
        resolutions=resolutions,
    )  # fmt: skip
    if apply is not None:
        if save is not None:
            raise InvalidParameter("--apply with --save; expected one of them")
        count, said = apply_file(file, output, apply, column=column, asked=asked, overwrite=overwrite)
        wrote = f"wrote {output}: {number_of(count, 'row')}, the new column is {column!r}"
        answer(
            as_json,
            {"output": str(output), "column": column, "rows": count, "said": said},
            lambda: [*said, wrote],
        )
        return
    found, said = recalibrate_file(
        file, output, forecaster, column=column, asked=asked, overwrite=overwrite, bins=bins, horizon=horizon,
        measures=measure, bootstrap=draws, seed=seed, save=save,
    )  # fmt: skip
    if as_json:
        print_json(found.table().to_dict("records"))
        for caution in found.cautions:
            print(f"caution: {caution}", file=sys.stderr)
        return
    rows = number_of(len(found.forecasts), "row")
    print(found, "", *said, f"wrote {output}: {rows}, the new column is {column!r}", sep="\n")
