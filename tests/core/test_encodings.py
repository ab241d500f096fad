"""The output for terminals without Unicode."""

import io
import sys
from pathlib import Path

import pytest

import onlinecal
from onlinecal.core import words
from onlinecal.core.words import counted, readable

FILES = [
    *Path(onlinecal.__file__).parent.rglob("*.py"),
    *Path(onlinecal.__file__).parents[1].glob("scenarios/*.toml"),
]
SPECIAL = sorted(c for c in set().union(*(file.read_text("utf-8") for file in FILES)) if not c.isascii())


def test_there_are_words_for_every_character_that_the_package_writes():
    assert {"√", "≤", "μ", "Γ", "±"} <= set(SPECIAL)
    for character in SPECIAL:
        said = readable(character, "ascii")
        assert said.isascii()
        assert said
        assert "?" not in said, character


@pytest.mark.parametrize(
    ("text", "encoding", "said"),
    [
        ("O(√T) ± μ, Θ", "utf-8", "O(√T) ± μ, Θ"),
        ("O(√T) ± μ, Θ", "latin-1", "O(sqrt T) ± mu, Theta"),
        ("café λ Λ ε", "ascii", "cafe lambda Lambda eps"),
        ("雨 \udcff", "ascii", "? ?"),
        ("\udcff", "utf-8", "?"),
    ],
)
def test_only_what_is_missing_is_replaced(text, encoding, said):
    assert readable(text, encoding) == said


def test_streams_write_it_and_never_fail(monkeypatch):
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    words.use()
    for stream in (sys.stdout, sys.stderr):
        print("T·μ ≤ 2√T, 雨, \udcff", file=stream, flush=True)
        assert stream.buffer.getvalue() == b"T*mu <= 2sqrt T, ?, ?\n"
    assert readable("√") == "sqrt "  # of what stdout can show


def test_numbers_of_runs():
    assert [counted(runs) for runs in ([1], [1, 1], [1, 4], [16, 4, 1000])] == [
        "1 run", "1 run", "1–4 runs", "4–1,000 runs",
    ]  # fmt: skip
