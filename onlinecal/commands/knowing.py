"""Commands that tell and check what there is to play and to measure."""

import typer

from onlinecal.commands.base import JSON, argument, aside, option


def list_(
    kind: str = argument(
        "forecasters, natures, worlds, measures, class_measures, tasks, responses, arrivals, delays, rates, or "
        "scenarios; all but the last two if left out",
        default="",
    ),
    as_json: bool = JSON,
) -> None:
    """List everything that can be played and measured."""
    from onlinecal.report import catalogue
    from onlinecal.report.listing import print_catalogue

    print_catalogue(catalogue.rows(kind), as_json=as_json)


def show(
    name: str = argument("a forecaster, nature, measure, task, response, arrivals or delay, or module:Class"),
    as_json: bool = JSON,
) -> None:
    """Show one of them: rule, parameters, guarantees, source."""
    from onlinecal.report import catalogue
    from onlinecal.report.listing import print_entry
    from onlinecal.report.terminal import print_json

    found = catalogue.entries(name)
    if as_json:
        print_json(found if len(found) > 1 else found[0])
        return
    for i, entry in enumerate(found):
        print("\n" if i else "", end="")
        print_entry(entry)


def check(
    names: list[str] | None = argument("strategies, or module:Class; all if left out", default=None),
    horizon: int = option("T", default=10_000),
    runs: int = option("independent runs", default=16, min=1, max=100_000),
    seed: int = option("of all the randomness", default=0),
    as_json: bool = JSON,
) -> None:
    """Measure every guarantee where it applies.

    For NAMEs also run the conformance checks. Exit 1 if one fails.
    """
    from onlinecal.checks.guarantees import report
    from onlinecal.report.listing import print_check
    from onlinecal.report.terminal import print_json

    with aside():
        found = report(names or [], horizon=horizon, runs=runs, seed=seed)
    if as_json:
        print_json(found.rows())
    else:
        print_check(found)
    if not found.good:
        raise typer.Exit(1)
