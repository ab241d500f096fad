"""The command that looks for the worst nature."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from onlinecal.commands.base import Json, Overwrite, option


def search(
    against: Annotated[
        str, option("a forecaster: its name, or a table { name = ..., ... } as in a scenario")
    ],
    horizon: Annotated[int, option("T")],
    measure: Annotated[str, option("whose total T·μ is made large")] = "cdl",
    nature: Annotated[
        list[str] | None,
        option(
            "where to look: a name, or a table with ranges { from = ..., to = ... }; repeat it for several; "
            "default: thresholds and ratchets on biases, coins, Markov chains, pieces, mixtures"
        ),
    ] = None,
    runs: Annotated[int, option("games of each nature in the search")] = 8,
    evaluations: Annotated[int, option("about how many natures are played")] = 400,
    fresh: Annotated[int, option("games of the estimate, which the search has not seen")] = 64,
    seed: Annotated[int, option("the same seed gives the same search")] = 0,
    output: Annotated[
        Path, option("a new file: the scenario with the nature that was found", "--output", "-o")
    ] = Path("worst.toml"),
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Search for the worst nature of a game too long to be solved, and estimate in fresh games what it does."""
    from onlinecal.core.writing import check_ending, whole
    from onlinecal.naming import said_table
    from onlinecal.report.tables import print_json
    from onlinecal.search import worst

    check_ending(output, ".toml")
    with whole(output, overwrite) as new:
        found = worst.search(
            said_table("against", against), measure, horizon=horizon, runs=runs, evaluations=evaluations, fresh=fresh,
            seed=seed, natures=[said_table("nature", each) for each in nature] if nature else None,
        )  # fmt: skip
        new.write_text(found.scenario(), encoding="utf-8")
    if as_json:
        print_json(_as_json(found))
    else:
        for line in _said(found, output):
            print(line)
    if found.interrupted:
        print("stopped: this is the best so far", file=sys.stderr)
        raise typer.Exit(130)


def _as_json(found: Any) -> dict[str, Any]:
    low, high = found.interval
    return {
        "against": found.against, "measure": found.measure, "horizon": found.horizon, "nature": found.nature,
        "mean": found.mean, "low": low, "high": high, "fresh": len(found.totals), "seed": found.seed,
        "fresh_seed": found.fresh_seed, "evaluations": found.evaluations, "interrupted": found.interrupted,
        "tried": [
            {"nature": each.label, "evaluations": each.evaluations, "best": each.best} for each in found.tried
        ],
    }  # fmt: skip


def _said(found: Any, output: Path) -> list[str]:
    from onlinecal.search.spaces import toml

    if len(found.totals):
        (low, high), fresh = found.interval, f"{len(found.totals)} fresh games of T = {found.horizon:,}"
        estimate = (
            f"T·{found.measure} = {found.mean:.6g}, 95 % interval {low:.6g} to {high:.6g}, from {fresh}"
        )
    else:
        estimate = "none: stopped before the fresh games"
    best = "the best mean of each family in the search, which is too large"
    width = max(len(each.label) for each in found.tried)
    return [
        f"nature    {toml(found.nature)}",
        f"estimate  {estimate}",
        *(_in_units(found) if len(found.totals) else ()),
        f"searched  {found.evaluations} natures; {best}:",
        *(f"  {each.label:<{width}}  {each.best:>10.6g}  of {each.evaluations}" for each in found.tried),
        f"scenario  {output}; play it: onlinecal run {shlex.quote(str(output))}",
    ]


def _in_units(found: Any) -> list[str]:
    """The estimate in the units of rates that are known."""
    import math

    t = float(found.horizon)
    units = {"√T": math.sqrt(t), "√T ln T": math.sqrt(t) * math.log(t), "T^(2/3)": t ** (2 / 3)}
    said = ", ".join(f"{found.mean / unit:.3g} {name}" for name, unit in units.items() if unit > 0.0)
    return [f"          = {said}"]
