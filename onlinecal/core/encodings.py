"""Readable text where the terminal has no Unicode: √ is written sqrt, ≤ as <=, and so on."""

from __future__ import annotations

import codecs
import io
import sys
import unicodedata

#: what a character is written as; Greek letters by their names, letters with accents without them
PLAIN = {
    "√": "sqrt ", "·": "*", "×": "x", "±": "+-", "≤": "<=", "≥": ">=", "≈": "~", "→": "->", "←": "<-",
    "↦": "|->", "−": "-", "–": "-", "—": "-", "‖": "||", "∣": "|", "†": "+", "…": "...", "′": "'",
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
