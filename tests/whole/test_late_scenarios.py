"""The scenarios with delays and with decision makers: played small, interrupted, edited and resumed."""

import re
from pathlib import Path

from onlinecal.scenario import load
from onlinecal.study.session import Session
from tests.results import equal, read

SCENARIOS = Path(__file__).parents[2] / "scenarios"

#: what makes them small: a pattern that stands in the file once, and what takes its place
SMALL = {
    "delays": ((r"horizons = .*", "horizons = [30, 60]"), (r"runs = .*", "runs = 2"), (r"100, 1000\]", "15, 20]")),
    "newsroom": (
        (r"horizon = .*", "horizon = 300"), (r"runs = .*", "runs = 2"), (r"per_decade = 24", "per_decade = 3"),
        (r"count = 180", "count = 12"), (r"count = 18\b", "count = 3"), (r"rate = 0\.02 ", "rate = 0.1 "),
        (r"rate = 0\.0025", "rate = 0.05"), (r"scale = 200", "scale = 20"),
        (r"join = 5000", "join = 50"), (r"leave = 8000", "leave = 80"), (r"cap = 4000", "cap = 100"),
    ),
}  # fmt: skip


def small(name, folder, *edits):
    """The scenario in a small form, with further edits, as it would stand in a user's file."""
    text = (SCENARIOS / f"{name}.toml").read_text()
    for old, new in (*SMALL[name], *edits):
        text, found = re.subn(f"(?m){old}", new, text)
        assert found == (2 if old == r"scale = 200" else 1), f"{old} stands {found} times in {name}.toml"
    file = folder / f"{name}.toml"
    file.write_text(text)
    return load(file)


def played(loaded, path, *, until=None, **options):
    """Plays up to `until` cells: the keys of what was played, and the remarks."""
    with Session.open(loaded.cells, loaded.meta, path, **options) as session:
        before = set(session.store.runs())
        # As if stopped there, in a file of which nothing has been played.
        (session if until is None else Session(loaded.cells[:until], session.store)).play()
        return set(session.store.runs()) - before, session.remarks


def test_decision_makers_and_open_questions_are_resumed_to_the_same_numbers(tmp_path):
    loaded = small("newsroom", tmp_path)
    whole, parts = tmp_path / "whole.db", tmp_path / "parts.db"
    played(loaded, whole)
    half = len(loaded.cells) // 2
    first, _ = played(loaded, parts, until=half)
    second, remarks = played(loaded, parts, resume=True)
    assert (len(first), len(second), remarks) == (half, len(loaded.cells) - half, [])
    assert equal(read(whole), read(parts))
    for one, other in zip(read(whole).cells, read(parts).cells, strict=True):
        assert (one.people, one.open) == (other.people, other.open)


def test_a_delay_that_is_replaced_leaves_the_others(tmp_path):
    keys = {cell.key for cell in small("delays", tmp_path).cells}
    # People and schedules are part of what results are kept under: in every cell of the newsroom.
    newsroom = {cell.key for cell in small("newsroom", tmp_path).cells}
    for edit in (
        (r"join = 50$", "join = 51"),
        (r'name = "poisson", rate = 2\b', 'name = "poisson", rate = 3'),
    ):
        assert newsroom.isdisjoint(cell.key for cell in small("newsroom", tmp_path, edit).cells)
    edited = small("delays", tmp_path, (r"delays = \[0, 1, 10,", "delays = [0, 2, 10,"))
    assert {cell.schedule.label for cell in edited.cells if cell.key not in keys} == {"delay 2"}
