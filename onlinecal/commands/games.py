"""Commands about games: solved exactly, the worst nature for a forecaster, and the search for one."""

import math
import shlex
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import typer

from onlinecal.commands.base import JSON, OVERWRITE, answer, argument, option
from onlinecal.core.words import at_least, at_most, number_of, with_error


def solve(
    m: int = option("steps of the grid 0, 1/m, …, 1", "--m", default=...),
    horizon: int = option("T", default=...),
    measure: str = option("the measure μ; the forecaster pays T·μ", "--measure", "-m", default="ece"),
    sight: str = option("the sight of nature: law, draw, or history (both choose at once)", default="law"),
    after: str = option("rounds that have been played, as forecast:outcome: 0.5:1,0.25:0", default=""),
    clip: float | None = option("for longer games: a bracket; larger biases are not told apart"),
    classes: int = option(
        "of more than 2 classes: ECE on the points of the simplex with multiples of 1/m", default=2
    ),
    as_json: bool = JSON,
) -> None:
    """Solve the calibration game on a grid exactly.

    The value, and how both sides play for it.
    """
    from onlinecal.core.errors import InvalidParameter
    from onlinecal.games import brackets, solving
    from onlinecal.games import rational as exactly

    if classes != 2:
        if (measure, after, clip) != ("ece", "", None):
            said = f"--classes {classes} solves the whole game of ece"
            raise InvalidParameter(f"{said}; expected neither --measure, --after nor --clip with it")
        answer(as_json, *_of_classes(classes, m, horizon, sight))
        return
    if clip is not None:
        if (sight, after) not in (("law", ""), ("history", "")):
            said = "--clip brackets the value of the whole game where nature sees the law"
            raise InvalidParameter(f"{said}; expected neither --sight draw nor --after with it")
        found = brackets.value_bracket(m, horizon, clip, measure)
        names = "m", "horizon", "measure", "lower", "upper", "states"
        data = {name: getattr(found, name) for name in names} | {"clip": clip}
        answer(as_json, data, lambda: _bracketed(found))
        return
    counts = exactly.counts_of(after, m, horizon)
    solution = solving.solve(m, horizon, measure, sight, keep=bool(after))
    here = solution.at(counts, horizon - int(counts[:, 0].sum()))
    rational = exactly.rational_text(m, horizon, measure, sight)
    data = {
        "m": m, "horizon": horizon, "measure": measure, "sight": sight, "value": solution.value,
        "error": solution.error, "rational": rational or None, "states": solution.states,
        "stages": solution.stages, "left": here.left, "value_here": here.value,
        "law": [{"forecast": p, "weight": w} for p, w in zip(here.forecasts, here.weights, strict=True)],
        "q": here.q, "after": here.after.tolist(),
    }  # fmt: skip
    answer(as_json, data, lambda: _said(solution, here, rational))


def _bracketed(found: Any) -> list[str]:
    return [
        f"total {found.measure} on 0, 1/{found.m}, …, 1 in T = {found.horizon} rounds; nature sees the law",
        f"value       between {at_most(found.lower, 12)} and {at_least(found.upper, 12)}, certified",
        f"states      {found.states:,} at most with the same rounds left; biases to {found.clip:g} are told apart",
    ]


SEES = {"law": "nature sees the law", "draw": "nature sees the draw", "history": "both choose at once"}


def _of_classes(classes: int, m: int, horizon: int, sight: str) -> tuple[dict[str, Any], Any]:
    from onlinecal.games import rational
    from onlinecal.games.classes import solve_classes

    found = solve_classes(classes, m, horizon, sight)
    value, q = float(found.value), [float(each) for each in found.q]
    error, rational_text = float(abs(found.value - Fraction(value))), rational.legible(found.value)
    law = [{"forecast": [k / m for k in v], "weight": float(w)} for v, w in found.law.items()]
    names = "classes", "m", "horizon", "sight", "states", "stages"
    data = {name: getattr(found, name) for name in names} | {
        "measure": "ece", "value": value, "error": error, "rational": rational_text or None, "law": law, "q": q,
    }  # fmt: skip
    points = [f"({', '.join(f'{k / m:.6g}' for k in v)})" for v in found.law]
    weights = [f"with probability {float(w):.6g}" for w in found.law.values()]
    shares = ", ".join(f"{each:.6g}" for each in q)
    lines = [
        f"total ece of {classes} classes on multiples of 1/{m} in T = {horizon} rounds; {SEES[sight]}",
        f"value       {_exactly(found.value, value) if rational_text else with_error(value, error)}",
        f"states      {found.states:,} at most with the same rounds left, {found.stages:,} in all",
        "forecaster  " + ", ".join(map(" ".join, zip(points, weights, strict=True))),
        f"nature      class {q.index(1.0) + 1} for that forecast"
        if sight == "draw"
        else f"nature      classes with probabilities {shares}, which hold every law to the value",
    ]
    return data, lambda: lines


def _exactly(value: Fraction, number: float) -> str:
    """The fraction, and where it is no whole number, the decimals that it is or begins with."""
    text = f"{number:.12g}"
    if value.denominator == 1:
        return text
    return f"{value} {'=' if Fraction(text) == value else '≈'} {text}"


def _said(solution: Any, here: Any, rational: str) -> list[str]:
    law = zip(here.forecasts, here.weights, strict=True)
    played = solution.horizon - here.left
    value = with_error(solution.value, solution.error)
    if rational:
        value = _exactly(Fraction(rational), solution.value)
    return [
        f"total {solution.measure} on 0, 1/{solution.m}, …, 1 in T = {solution.horizon} rounds; {SEES[solution.sight]}",
        f"value       {value}",
        f"states      {solution.states:,} at most with the same rounds left, {solution.stages:,} in all",
        *([f"after {played} rounds, the value is {here.value:.12g}"] if played else ()),
        "forecaster  " + ", ".join(f"{p:.6g} with probability {w:.6g}" for p, w in law),
        f"nature      y = {here.q:.0f} for that forecast"
        if solution.sight == "draw"
        else f"nature      y = 1 with probability {here.q:.6g}, which holds every law to the value",
    ]


def exploit(
    forecaster: str = argument("a name, or a table { name = ..., ... } as in a scenario"),
    horizon: int = option("T", default=...),
    m: int | None = option("the forecaster's parameter m, steps of its grid", "--m"),
    measure: str = option("the measure μ; the forecaster pays T·μ", "--measure", "-m", default="ece"),
    sight: str = option("what nature sees before it chooses: law or draw", default="law"),
    as_json: bool = JSON,
) -> None:
    """Find the worst nature for a forecaster, exactly.

    Also what the forecaster pays beyond the best on its grid.
    """
    from onlinecal.core.errors import InvalidParameter
    from onlinecal.core.strategy import named_table, strategy_label
    from onlinecal.exploit import reply
    from onlinecal.naming import said_table, strategy_of

    name, options = named_table("forecaster", said_table("FORECASTER", forecaster))
    chosen = strategy_of("forecaster", name, options if m is None else {**options, "m": m})
    found = reply.exploit(chosen, horizon, measure, sight)
    try:
        least, why = found.minimax(), ""
    except InvalidParameter as error:
        least, why = None, str(error)
    beyond = None if least is None else found.value - least
    data = {
        "forecaster": strategy_label(chosen), "horizon": horizon, "measure": measure, "sight": sight, "m": found.m,
        "value": found.value, "error": found.error, "states": found.states, "minimax": least, "exploitability": beyond,
    }  # fmt: skip
    lines = [
        f"total {measure} of {strategy_label(chosen)} in T = {horizon} rounds, against the worst nature that sees the "
        + sight,
        f"value           {with_error(found.value, found.error)}",
        f"states          {found.states:,} in all rounds",
    ]
    if least is None:
        lines.append(f"minimax         {why or 'of an even grid 0, 1/m, …, 1 only'}")
    else:
        lines.append(f"minimax         {least:.12g}, of the best forecaster on the same grid, m = {found.m}")
        lines.append(f"exploitability  {beyond:.12g}")
    answer(as_json, data, lambda: lines)


def search(
    against: str = option("a forecaster: its name, or a table { name = ..., ... }", default=...),
    horizon: int = option("T", default=...),
    measure: str = option("the measure of the total T·μ made large", "--measure", "-m", default="cdl"),
    nature: list[str] | None = option(
        "where to look: a name, or a table with ranges { from = ..., to = ... }; repeat it for several; "
        "default: thresholds and ratchets on biases, coins, Markov chains, pieces, mixtures"
    ),
    runs: int = option("games of each nature in the search", default=8),
    evaluations: int = option("about how many natures are played", default=400),
    fresh: int = option("games of the estimate, which the search has not seen", default=64),
    seed: int = option("the same seed gives the same search", default=0),
    output: Path = option(
        "a new file: the scenario with the nature that was found",
        "--output",
        "-o",
        default=Path("worst.toml"),
    ),
    overwrite: bool = OVERWRITE,
    as_json: bool = JSON,
) -> None:
    """Search for the worst nature in games too long to solve.

    Its effect is estimated in fresh games.
    """
    from onlinecal.core.writing import check_ending, whole
    from onlinecal.exploit import search as worst
    from onlinecal.naming import said_table

    check_ending(output, ".toml")
    with whole(output, overwrite) as new:
        found = worst.search(
            said_table("--against", against), measure, horizon=horizon, runs=runs, evaluations=evaluations, fresh=fresh,
            seed=seed, natures=[said_table("--nature", each) for each in nature] if nature else None,
        )  # fmt: skip
        new.write_text(found.scenario(), encoding="utf-8")
    low, high = found.interval
    names = (
        "against", "measure", "horizon", "nature", "mean", "seed", "fresh_seed", "evaluations", "interrupted",
    )  # fmt: skip
    tried = [{"nature": e.label, "evaluations": e.evaluations, "best": e.best} for e in found.tried]
    more = {"low": low, "high": high, "fresh": len(found.totals), "tried": tried}
    answer(as_json, {name: getattr(found, name) for name in names} | more, lambda: _searched(found, output))
    if found.interrupted:
        print("stopped: this is the best so far", file=sys.stderr)
        raise typer.Exit(130)


def _searched(found: Any, output: Path) -> list[str]:
    from onlinecal.exploit.spaces import toml

    lines = [f"nature    {toml(found.nature)}", "estimate  none: stopped before the fresh games"]
    if len(found.totals):
        (low, high), t = found.interval, float(found.horizon)
        fresh = f"{len(found.totals)} fresh games of T = {found.horizon:,}"
        lines[1] = (
            f"estimate  T·{found.measure} = {found.mean:.6g}, 95 % interval {low:.6g} to {high:.6g}, from {fresh}"
        )
        units = {"√T": math.sqrt(t), "√T ln T": math.sqrt(t) * math.log(t), "T^(2/3)": t ** (2 / 3)}
        said = ", ".join(f"{found.mean / unit:.3g} {name}" for name, unit in units.items() if unit > 0.0)
        lines.append(f"          = {said}")
    width = max(len(each.label) for each in found.tried)
    return [
        *lines,
        f"searched  {number_of(found.evaluations, 'nature')}; the best mean of each family in the search, which is too "
        "large:",
        *(f"  {each.label:<{width}}  {each.best:>10.6g}  of {each.evaluations}" for each in found.tried),
        f"scenario  {output}; play it: onlinecal run {shlex.quote(str(output))}",
    ]
