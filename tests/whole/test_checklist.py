"""The checklist of the papers: each row that is marked as there names a test or a scenario that exists."""

import pytest

from tests.checklist import FILE, MARKS, faults, papers

ROWS = [row for paper in papers() for row in paper["row"]]


def test_no_row_is_marked_without_a_test_or_a_scenario():
    assert faults(ROWS) == [], f"change {FILE.name} and run python -m tests.readme"


def test_all_papers_have_rows():
    assert len(papers()) == 6
    assert len(ROWS) > 140
    assert {row["state"] for row in ROWS} == set(MARKS)


HERE = "tests/whole/test_checklist.py"
GONE = HERE.replace("checklist", "gone")
ROW = {"id": "Z1", "where": "§1", "what": "w", "kind": "example", "state": "yes"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "Z1: nothing behind ✔; expected a test or a scenario"),
        ({"seen": [f"{HERE}::test_gone"]}, f"Z1: there is no {HERE}::test_gone"),
        ({"seen": [f"{GONE}::test_a"]}, f"Z1: there is no {GONE}::test_a"),
        ({"seen": [HERE]}, f"Z1: there is no {HERE}"),
        ({"seen": ["scenarios/gone.toml"]}, "Z1: there is no scenarios/gone.toml"),
        ({"state": "done", "seen": []}, "Z1: state 'done'; expected one of yes, partly, no, statement"),
        ({"state": "no"}, "Z1: ✘ without a word on what is missing"),
        ({"state": "statement", "sean": []}, "Z1: unknown key sean"),
    ],
)  # fmt: skip
def test_a_row_that_says_what_is_not_so_is_found(change, said):
    assert faults([ROW | change]) == [said]
    row = ROW | {"state": "statement"}
    assert faults([row, row]) == ["Z1: given twice"]
