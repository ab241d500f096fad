"""How numbers are written in sentences; and text without Unicode: √ as sqrt, ≤ as <=, and so on."""

import codecs
import io
import sys
import unicodedata
from collections.abc import Collection, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal


def number_of(count: int, thing: str) -> str:
    """How many of a thing there are.

    >>> number_of(1, "run"), number_of(1_000, "finished cell"), number_of(0, "pair")
    ('1 run', '1,000 finished cells', '0 pairs')
    """
    return f"{count:,} {thing}{'s' * (count != 1)}"


def listed(names: Sequence[str], most: int = 12, between: str = ", ") -> str:
    """The first names, and how many more there are.

    >>> listed(["a", "b", "c"], 3), listed(["a", "b", "c"], 1)
    ('a, b, c', 'a, and 2 more')
    """
    more = [f"and {len(names) - most:,} more"] * (len(names) > most)
    return between.join([*names[:most], *more])


def ends(values: Collection[int]) -> str:
    """The least and the largest of some numbers: ``4–16``, or ``4`` where that is all."""
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"


def counted(runs: Collection[int]) -> str:
    """The number of runs: ``1 run``, or ``4–16 runs``."""
    words = ends(runs)
    return f"{words} run{'' if words == '1' else 's'}"


def fixed(exponent: float, digits: int = 2) -> str:
    """An exponent with some digits after the point, and no minus before zeros.

    >>> fixed(-0.001), fixed(-0.006), fixed(0.5)
    ('0.00', '-0.01', '0.50')
    """
    return f"{round(exponent, digits) + 0.0:.{digits}f}"


def at_least(number: float, digits: int) -> str:
    """The least number with `digits` digits that is no smaller: of an upper bound.

    >>> at_least(33.6507875007, 8), at_least(2.24e-11, 2), at_least(0.5, 12)
    ('33.650788', '2.3e-11', '0.5')
    """
    return _rounded(number, digits, ROUND_CEILING)


def at_most(number: float, digits: int) -> str:
    """The greatest number with `digits` digits that is no larger: of a lower bound.

    >>> at_most(33.6500186788, 8)
    '33.650018'
    """
    return _rounded(number, digits, ROUND_FLOOR)


def with_error(number: float, error: float) -> str:
    """A number in 12 digits with an error of at most `error`, and a bound on that of the written digits.

    >>> with_error(6.509627442442, 2e-13), with_error(0.5, 0.0)
    ('6.50962744244 ± 3e-12', '0.5 ± 0')
    """
    text = f"{number:.12g}"
    return f"{text} ± {at_least(error + abs(float(Decimal(text) - Decimal(number))), 1)}"


def _rounded(number: float, digits: int, how: str) -> str:
    return f"{Context(prec=digits, rounding=how).create_decimal_from_float(number):g}"


#: what a character is written as; Greek letters by their names, letters with accents without them
PLAIN = {
    "√": "sqrt ", "·": "*", "×": "x", "±": "+-", "≤": "<=", "≥": ">=", "≈": "~", "→": "->", "←": "<-",
    "↦": "|->", "−": "-", "–": "-", "—": "-", "‖": "||", "⟨": "<", "⟩": ">", "∣": "|", "†": "+", "…": "...", "′": "'",
    "″": "''", "‴": "'''", "‘": "'", "’": "'", "“": "\"", "”": "\"", "∈": "in", "∝": "~", "∞": "inf", "∫": "integral ",
    "⌈": "ceil(", "⌉": ")", "⌊": "floor(", "⌋": ")", "§": "section ", "°": " degrees", "²": "^2", "³": "^3",
    "¹": "^1", "⁰": "^0", "⁴": "^4", "⁵": "^5", "⁶": "^6", "⁷": "^7", "⁸": "^8", "⁹": "^9", "⁻": "^-",
    "ⁿ": "^n", "ᵀ": "^T", "₀": "_0", "₊": "_+", "ℓ": "l", "½": "1/2", "ł": "l", "Ł": "L", "ø": "o",
    "Ø": "O", "ß": "ss", "æ": "ae", "œ": "oe", "≠": "!=", "∑": "sum ", "∂": "d", "•": "*", "€": "EUR",
    "ε": "eps", "∘": " o ", "▲": "^", "▽": "v", "\u0302": "^", "\u0303": "~",
}  # fmt: skip


def readable(text: str, encoding: str | None = None) -> str:
    """The text with words in place of what an encoding has not; without one, that of stdout.

    >>> readable("2√T + 1 ≤ Ω(T^α)", "ascii")
    '2sqrt T + 1 <= Omega(T^alpha)'
    """
    encoding = encoding or getattr(sys.stdout, "encoding", None) or "utf-8"
    codecs.register_error("onlinecal", _handler)
    return text.encode(encoding, "onlinecal").decode(encoding)


def _plain(character: str) -> str:
    if character in PLAIN:
        return PLAIN[character]
    name = unicodedata.name(character, "")
    if name.startswith("GREEK ") and " LETTER " in name:
        letter = name.rpartition(" LETTER ")[2].partition(" ")[0].lower().replace("lamda", "lambda")
        return letter.capitalize() if "CAPITAL" in name else letter
    bare = unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode()
    return bare or ("" if unicodedata.combining(character) else "?")


def _handler(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_plain, error.object[error.start : error.end])), error.end


def use() -> None:
    """Make stdout and stderr write in this way."""
    codecs.register_error("onlinecal", _handler)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="onlinecal")
