"""A measured growth in the cells of tables and pictures, and the legend that says what it covers."""

from collections.abc import Iterable

from onlinecal.core.words import fixed
from onlinecal.growth import MORE, SMOOTH, WIDE, Growth

#: why there is no exponent (`fit_growth`)
NONE = "no exponent, as there are fewer than three T or a mean total is 0, negative or infinite"


def lines(growth: Growth) -> list[str]:
    """The lines of a narrow cell, exponent, interval, and slopes if it bends: ['T^0.50', '[0.48, 0.52]']."""
    found = [f"T^{fixed(growth.value)}", growth.interval] if growth.clear else ["T^?"]
    return found + [f"bends {growth.bow}"] * growth.bent


def line(growth: Growth) -> str:
    """The same in one line, without T."""
    return " ".join(lines(growth)).removeprefix("T^")


def literal(text: str) -> str:
    """A text as matplotlib shows it letter by letter: two ``$`` would be taken for mathematics."""
    return text.replace("$", r"\$")


def legend(shown: Iterable[Growth | None]) -> list[str]:
    """The legend of such cells: the meaning of intervals, and of the signs that occur."""
    cells = list(shown)
    growths = [growth for growth in cells if growth is not None]
    missing = [f"–: {NONE}"] if len(growths) < len(cells) else []
    if not growths:
        return missing
    one = " (along one game, over their last two decades)" if any(g.cut for g in growths) else ""
    slope = "the slope of the least-squares line in logarithms"
    many = ", of many of which one in twenty misses" if len(growths) > 1 else ""
    parts = [f"T^α: mean growth exponent over these T{one}, {slope}, with its own 95 % interval{many}"]
    if not all(g.clear for g in growths):
        parts.append(f"T^?: the interval is wider than {WIDE:g}; {MORE}")
    if any(g.bent for g in growths):
        parts.append(
            f"bends a…b: no power law over these T, by more than chance and {SMOOTH:.0%}; the slopes over their first "
            "and last half"
        )
    return parts + missing
