"""A measured growth in the cells of tables and pictures, and the legend that says what it covers."""

from collections.abc import Iterable

from onlinecal.core.words import fixed
from onlinecal.growth import SMOOTH, WIDE, Growth

#: what the totals of a curve are away from every power law
BEYOND = f"by more than chance and {SMOOTH:.0%}"
#: why there is no exponent (`fit_growth`)
NONE = "no exponent, as there are fewer than three T or a mean total is 0, negative or infinite"

#: a power of T with an exponent that is not clear, as matplotlib writes it
UNCLEAR = "$T^{?}$"


def lines(growth: Growth) -> list[str]:
    """The lines of a narrow cell, exponent, interval and signs: ['T^0.50', '[0.50, 0.50]'], or ['T^0.37…0.45']
    of a curve.
    """
    if growth.bent:
        return [f"T^{raised(growth)}"]
    found = [f"T^{raised(growth)}", growth.interval] if growth.clear else ["T^?"]
    if growth.shape == "jagged":
        found.append("jagged")
    if growth.hasty:
        found.append("> T")
    return found


def line(growth: Growth) -> str:
    """The same in one line, without T."""
    return " ".join(lines(growth)).removeprefix("T^")


def raised(growth: Growth) -> str:
    """The exponent of a T: ``0.50``, or ``0.65…0.57`` where there is no power law."""
    return growth.bow if growth.bent else fixed(growth.value)


def power(growth: Growth) -> str:
    """An exponent as matplotlib raises it; in its place the interval, on one line, where that is too wide."""
    if growth.clear or growth.bent:
        return f"$T^{{{raised(growth)}}}$"
    return f"{UNCLEAR} {growth.interval}".replace(" ", "\u00a0")


def literal(text: str) -> str:
    """A text as matplotlib shows it letter by letter: two ``$`` would be taken for mathematics."""
    return text.replace("$", r"\$")


def legend(shown: Iterable[Growth | None], each: str = "") -> list[str]:
    """The legend of such cells: the meaning of intervals, and of the signs that occur."""
    cells = list(shown)
    growths = [growth for growth in cells if growth is not None]
    missing = [f"–: {NONE}"] if len(growths) < len(cells) else []
    if not growths:
        return missing
    together = f"the intervals of each {each}" if each else f"the {len(growths)} intervals"
    covers = f"{together} hold all together with 95 %" if len(growths) > 1 else "with its 95 % interval"
    one = " (along one game, over their last two decades)" if any(g.cut for g in growths) else ""
    slope = "the slope of the least-squares line in logarithms"
    parts = [f"T^α: mean growth exponent over these T{one}, {slope}; {covers}"]
    plain = [g for g in growths if not g.bent]
    if not all(g.clear for g in plain):
        parts.append(f"T^?: the interval is wider than {WIDE:g}, so that it tells little")
    if any(g.shape == "jagged" for g in plain):
        parts.append("jagged: the totals scatter around the line by more than their runs do")
    if any(g.hasty for g in plain):
        parts.append("> T: faster than T, which cannot last")
    if len(plain) < len(growths):
        parts.append(f"T^a…b: no power law over these T, {BEYOND}; the slopes over their first and last half")
    return parts + missing
