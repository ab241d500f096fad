"""Commands about games that are solved exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from onlinecal.commands.base import Json, argument, option
from onlinecal.core.words import at_least, at_most, with_error


def solve(
    m: Annotated[int, option("steps of the grid 0, 1/m, …, 1", "--m")],
    horizon: Annotated[int, option("T")],
    measure: Annotated[str, option("whose total T·μ the forecaster pays")] = "ece",
    sight: Annotated[
        str, option("what nature sees before it chooses: law, draw, or history (both choose at once)")
    ] = "law",
    after: Annotated[str, option("rounds that have been played, as forecast:outcome: 0.5:1,0.25:0")] = "",
    clip: Annotated[
        float | None,
        option("for longer games: a certified bracket of the value; biases of more are not told apart"),
    ] = None,
    as_json: Json = False,
) -> None:
    """The exact value of the calibration game on a grid, and how both sides play for it."""
    from onlinecal.exact import game, states
    from onlinecal.report.tables import print_json, say

    if clip is not None:
        _bracket(m, horizon, clip, measure, (sight, after), as_json)
        return
    counts = states.counts_of(after, m, horizon)
    solution = game.solve(m, horizon, measure, sight, keep=bool(after))
    here = solution.at(counts, horizon - int(counts[:, 0].sum()))
    rational = states.rational_text(m, horizon, measure, sight)
    if as_json:
        print_json(
            {
                "m": m, "horizon": horizon, "measure": measure, "sight": sight, "value": solution.value,
                "error": solution.error, "rational": rational or None, "states": solution.states,
                "stages": solution.stages, "left": here.left, "value_here": here.value,
                "law": [{"forecast": p, "weight": w} for p, w in zip(here.forecasts, here.weights, strict=True)],
                "q": here.q, "after": here.after.tolist(),
            }
        )  # fmt: skip
        return
    for line in _said(solution, here, rational):
        say(line)


def _bracket(m: int, horizon: int, clip: float, measure: str, given: tuple[str, str], as_json: bool) -> None:
    """Print a certified bracket."""
    from onlinecal.core.errors import InvalidParameter
    from onlinecal.exact.brackets import value_bracket
    from onlinecal.report.tables import print_json, say

    if given not in (("law", ""), ("history", "")):
        said = "--clip brackets the value of the whole game where nature sees the law"
        raise InvalidParameter(f"{said}; expected neither --sight draw nor --after with it")
    found = value_bracket(m, horizon, clip, measure)
    if as_json:
        names = "m", "horizon", "measure", "clip", "lower", "upper", "states"
        print_json({name: getattr(found, name) for name in names} | {"clip": clip})
        return
    say(f"total {measure} on 0, 1/{m}, …, 1 in T = {horizon} rounds; nature sees the law")
    say(f"value       between {at_most(found.lower, 12)} and {at_least(found.upper, 12)}, certified")
    most = f"{found.states:,} at most with the same rounds left"
    say(f"states      {most}; biases to {found.clip:g} are told apart")


def _said(solution: Any, here: Any, rational: str) -> list[str]:
    sees = {"law": "nature sees the law", "draw": "nature sees the draw", "history": "both choose at once"}
    lines = [
        f"total {solution.measure} on 0, 1/{solution.m}, …, 1 in T = {solution.horizon} rounds; {sees[solution.sight]}",
        f"value       {with_error(solution.value, solution.error)}" + (f" = {rational}" if rational else ""),
        f"states      {solution.states:,} at most with the same rounds left, {solution.stages:,} in all",
    ]
    if here.left < solution.horizon:
        lines.append(f"after {solution.horizon - here.left} rounds, the value is {here.value:.12g}")
    law = zip(here.forecasts, here.weights, strict=True)
    lines.append("forecaster  " + ", ".join(f"{p:.6g} with probability {w:.6g}" for p, w in law))
    if solution.sight == "draw":
        lines.append(f"nature      y = {here.q:.0f} for that forecast")
    else:
        lines.append(f"nature      y = 1 with probability {here.q:.6g}, which holds every law to the value")
    return lines


def exploit(
    forecaster: Annotated[str, argument("a name, or a table { name = ..., ... } as in a scenario")],
    horizon: Annotated[int, option("T")],
    m: Annotated[int | None, option("the forecaster's parameter m, steps of its grid", "--m")] = None,
    measure: Annotated[str, option("whose total T·μ the forecaster pays")] = "ece",
    sight: Annotated[str, option("what nature sees before it chooses: law or draw")] = "law",
    as_json: Json = False,
) -> None:
    """The worst nature for a forecaster, exactly, and what the forecaster pays beyond the best on its grid."""
    from onlinecal.core.errors import InvalidParameter
    from onlinecal.core.strategy import strategy_label
    from onlinecal.exploit import reply
    from onlinecal.naming import strategies_in
    from onlinecal.report.kept import said_table
    from onlinecal.report.tables import print_json, say

    spec = said_table("forecaster", forecaster)
    spec = {"name": spec} if isinstance(spec, str) else dict(spec)
    if m is not None:
        spec["m"] = m
    if not isinstance(spec.get("name"), str):
        raise InvalidParameter(f"forecaster {forecaster}; expected a name or a table with a name")
    chosen = strategies_in("forecaster", spec)
    found = reply.exploit(chosen, horizon, measure, sight)
    try:
        least, why = found.minimax(), ""
    except InvalidParameter as error:
        least, why = None, str(error)
    if as_json:
        print_json(
            {
                "forecaster": strategy_label(chosen), "horizon": horizon, "measure": measure, "sight": sight,
                "m": found.m, "value": found.value, "error": found.error, "states": found.states, "minimax": least,
                "exploitability": None if least is None else found.value - least,
            }
        )  # fmt: skip
        return
    sees = {"law": "sees the law", "draw": "sees the draw"}[sight]
    game = f"total {measure} of {strategy_label(chosen)} in T = {horizon} rounds"
    say(f"{game}, against the worst nature that {sees}")
    say(f"value           {with_error(found.value, found.error)}")
    say(f"states          {found.states:,} in all rounds")
    if least is None:
        say(f"minimax         {why or 'of an even grid 0, 1/m, …, 1 only'}")
    else:
        say(f"minimax         {least:.12g}, of the best forecaster on the same grid, m = {found.m}")
        say(f"exploitability  {found.value - least:.12g}")


def games(folder: Annotated[Path, argument("where exact.md and its pictures are written")]) -> None:
    """Write the page of exact values, optimal laws and exploitability: some minutes, and 3 GB of memory."""
    import matplotlib as mpl

    mpl.use("Agg")
    from onlinecal.core.writing import whole
    from onlinecal.report import games as tables
    from onlinecal.report import games_plot as drawn
    from onlinecal.report.panels import uncaptioned
    from onlinecal.report.style import save

    with whole(folder / "exact.md") as file:
        found = tables.games()
        pictures = [
            ("exact-values.png", drawn.plot_values, drawn.value_caption(found)),
            ("exact-law.png", lambda _: drawn.plot_law(), drawn.LAW_CAPTION),
            ("exact-exploitability.png", drawn.plot_exploited, drawn.EXPLOIT_CAPTION),
        ]
        with uncaptioned():
            for name, draw, _ in pictures:
                save(draw(found), folder / name)
        shown = [(name, words) for name, _, words in pictures]
        file.write_text(tables.page(found, shown, f"onlinecal games {folder}"), encoding="utf-8")
    print(f"wrote {folder / 'exact.md'} and {len(pictures)} pictures")
