"""Tables and documents as text of any width, as Markdown, as HTML and as data."""

import numpy as np
import pandas as pd
import pytest

from onlinecal.report.document import Document, Part, Section, remarks_of
from onlinecal.report.tables import Table, broken, crossed, of_rows, records
from onlinecal.report.terminal import say

HEADINGS = ["forecaster", "swap_regret[umbrella]", "ece"]
TABLE = Table(
    "A title", of_rows(HEADINGS, [["a name", "1 ± 2", "3"], ["b", "1,000", "4\nT^0.5"]]), ["A `note`"]
)
WHOLE = ["forecaster  swap_regret[umbrella]  ece"]
IN_TWO = ["            swap_regret[", "forecaster     umbrella]    ece"]
#: of the first part where both columns do not fit beside the names
ALONE = ["            swap_regret[", "forecaster     umbrella]"]


@pytest.mark.parametrize(
    ("width", "heading", "parts"), [(80, WHOLE, 1), (40, WHOLE, 1), (39, IN_TWO, 1), (31, IN_TWO, 1), (30, ALONE, 2)]
)  # fmt: skip
def test_a_table_that_is_too_wide_has_broken_headings_and_then_parts(width, heading, parts):
    lines = TABLE.lines(width)
    assert lines[0] == "A title"
    assert [line.split() for line in lines[1 : 1 + len(heading)]] == [line.split() for line in heading]
    assert lines.count("A title (continued)") == parts - 1
    assert max(map(len, lines)) <= width
    assert lines[-1] == "A `note`"


def test_names_of_more_than_sixteen_letters_and_intervals_are_broken_where_headings_alone_are_not_enough():
    table = Table(
        "", of_rows(["who", "mean"], [["a name with tens", "123 ± 456"], ["a name with seven", "7"]])
    )
    assert table.lines(28)[1:] == ["a name with tens   123 ± 456", "a name with seven          7"]
    assert table.lines(27)[1:] == [
        "a name with tens    123", "                  ± 456", "a name with           7", "seven",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("a bb ccc", 8, ["a bb ccc"]), ("a bb ccc", 7, ["a bb", "ccc"]), ("a bb ccc", 3, ["a", "bb", "ccc"]),
        ("rounded(m=10)", 13, ["rounded(m=10)"]), ("rounded(m=10)", 12, ["rounded(m=", "10)"]),
        ("rounded(m=10)", 9, ["rounded(", "m=10)"]), ("regret[a,b]", 5, ["regret[", "a,b]"]), ("", 5, [""]),
        ("x rounded(m=10)", 13, ["x", "rounded(m=10)"]), ("x rounded(m=10)", 12, ["x rounded(m=", "10)"]),
    ],
)  # fmt: skip
def test_a_text_is_broken_between_words_and_in_longer_ones_at_signs(text, width, lines):
    assert broken(text, width).split("\n") == lines


def test_a_table_as_markdown_and_as_html():
    title, grid, note = TABLE.markdown().split("\n\n")
    assert (title, note) == ("**A title**", "A `note`.")
    assert grid.splitlines() == [
        "| forecaster | swap_regret[umbrella] | ece |", "|---|---|---|", "| a name | 1 ± 2 | 3 |",
        "| b | 1,000 | 4, T^0.5 |",
    ]  # fmt: skip
    page = TABLE.html()
    for part in ("<h3>A title</h3>", "swap_regret[<wbr>umbrella]", "<td>4<small>T^0.5</small></td>",
                 "<li>A <code>note</code></li>"):  # fmt: skip
        assert part in page


def test_rows_as_a_table_of_two_names_and_as_data():
    rows = pd.DataFrame({"who": ["b", "a", "a"], "whom": ["n", "n", "m"], "mean": [1.0, np.inf, 3.0],
                         "text": ["1", "inf", "3"]})  # fmt: skip
    texts = crossed(rows, "who", "whom", ["a", "b", "c"], ["m", "n", "o"], "text")
    assert (texts.index.tolist(), texts.to_numpy().tolist()) == (
        ["a", "b"],
        [["3", "inf", ""], ["", "1", ""]],
    )
    means = crossed(rows, "who", "whom", ["a", "b"], ["n"], "mean")
    assert means.to_numpy().tolist() == [[np.inf], [1.0]]
    data = pd.DataFrame({"x": [1.5, np.nan, -np.inf], "y": [[1.0, np.inf], [], [2.0]]})
    assert records(data) == [{"x": 1.5, "y": [1.0, None]}, {"x": None, "y": []}, {"x": None, "y": [2.0]}]


def test_a_document_leaves_out_what_is_empty_and_a_terminal_what_it_cannot_show(monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    sections = [
        Section("Nothing", [Part("p", ""), Part("pictures", [])]),
        Section("One", [Part("lead", "words " * 9), Part("pre", "a b"), Part("notes", ["A note."])], "one"),
        Section("", [Part("table", TABLE)]),
    ]
    document = Document(
        "A title", [Part("state", "Not for a terminal."), Part("caution", "Caution: x.")], sections
    )
    assert [section.title for section in document.sections] == ["One", ""]
    lines = document.text().splitlines()
    assert lines[:7] == [
        "A title", "Caution: x.", "", "== One", "words words words words words", "  words words words words", "A note.",
    ]  # fmt: skip
    assert lines[7:] == ["", *TABLE.lines(30)]
    monkeypatch.setenv("COLUMNS", "200")
    for letters, lines in ((80, 1), (81, 2)):
        title = "a " * 39 + "b" * (letters - 78)
        assert len(Document(title, [], []).text().splitlines()) == lines


def test_what_a_reader_said_and_what_it_cautions_against():
    said = remarks_of(["read by name", "caution: one row is there twice", "sorted"], ["too few"])
    assert said == [
        Part("p", "Read by name. Sorted."), Part("caution", "Caution: one row is there twice."),
        Part("caution", "Caution: too few."),
    ]  # fmt: skip


def test_lines_that_are_broken_go_on_below_their_text(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "12")
    say("  - one two three\nfour")
    assert capsys.readouterr().out.splitlines() == ["  - one two", "    three", "four"]
    say("one two three four", hang=0)
    assert capsys.readouterr().out.splitlines() == ["one two", "three four"]
