"""Delays, streams and decision makers on the command line, as a user would use them."""

import json

import pytest

from onlinecal.schedules import ARRIVALS, DELAYS
from tests.command_line import onlinecal
from tests.whole.test_late_scenarios import small


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder in which the small newsroom and the small delays have been played."""
    folder = tmp_path_factory.mktemp("late")
    for name in ("newsroom", "delays"):
        small(name, folder)
    said = onlinecal("run", "newsroom.toml", cwd=folder, columns=200).stdout
    folder.joinpath("said").write_text(said)
    rows = onlinecal("run", "delays.toml", "--json", cwd=folder).stdout
    folder.joinpath("rows").write_text(rows)
    return folder


def test_run_says_what_is_open_and_what_became_of_decision_makers(folder):
    said = (folder / "said").read_text()
    rows = json.loads(onlinecal("compare", "results/newsroom.db", "--people", "--json", cwd=folder).stdout)
    open = rows[0]["open"]
    assert open > 0
    assert f"T = 300, {open} open at the end\n" in said
    unseen = rows[0]["without_known_outcome"]
    left = f", {unseen} without a question whose outcome is known" if unseen else ""
    assert f"swap regret of 17 decision makers{left}; {open} questions open at the end" in said
    for text in ("the questions of weather", "ece @ sports", "the editor"):
        assert text in said
    assert {(row["forecaster"], row["decision_makers"]) for row in rows} == {
        (who, 17) for who in ("forecast hedging", "hedging by desk", "K29*", "K29* by desk")
    }
    for row in rows:
        assert f"{row['worst']['label']}" in said


def test_json_has_open_questions_and_decision_makers(folder):
    rows = json.loads((folder / "rows").read_text())
    assert {row["open"] for row in rows} == {0, 1, 10, 15, 20}
    assert all(("delay" in row["nature"]) == (row["open"] > 0) for row in rows)
    again = onlinecal("run", "newsroom.toml", "--resume", "--json", cwd=folder).stdout
    people = [row for row in json.loads(again) if row["measure"] == "decision makers"]
    assert people == [
        {"measure": "decision makers", **row}
        for row in json.loads(
            onlinecal("compare", "results/newsroom.db", "--people", "--json", cwd=folder).stdout
        )
    ]


def test_compare_paired(folder):
    rows = json.loads(
        onlinecal("compare", "results/delays.db", "--paired", "--measure", "ece", "--json", cwd=folder).stdout
    )
    assert len(rows) == 10 * 10  # pairs of five forecasters; two natures by five delays
    # Where all runs differ by the same there is no interval.
    assert all(row["same_in_all_runs"] == (row["low"] is None) == (row["high"] is None) for row in rows)
    known = [row for row in rows if not row["same_in_all_runs"]]
    assert len(known) > 50
    assert all(row["low"] <= row["difference"] <= row["high"] for row in known)
    said = onlinecal(
        "compare", "results/delays.db", "--paired", "--measure", "ece", cwd=folder, columns=400
    ).stdout
    assert "almost one step ahead − K29*" in said
    assert "the 100 intervals hold all together with 95 %" in " ".join(said.split())
    said = onlinecal("compare", "results/delays.db", "--paired", "--markdown", cwd=folder, rc=2).stderr
    assert said == "error: --markdown and --paired are two tables; expected one of the two\n"
    said = onlinecal("compare", "results/delays.db", "--people", cwd=folder, rc=2).stderr
    assert said.startswith("error: nobody joins or leaves in this study")


def test_plots(folder):
    for arguments, file in (
        (("results/delays.db", "--delays", "--nature", "drift"), "results/delays-delays.png"),
        (("results/newsroom.db", "--people"), "results/newsroom-people.png"),
        (("newsroom.toml", "--questions"), "results/newsroom-questions.png"),
        (("results/newsroom.db", "--measure", "ece"), "results/newsroom.png"),
    ):
        said = onlinecal("plot", *arguments, cwd=folder).stdout
        assert said.startswith(f"wrote {file}")
        assert (folder / file).read_bytes().startswith(b"\x89PNG")
    for arguments, said in (
        (
            ("results/delays.db", "--delays", "--people"),
            "--delays and --people are two pictures; expected one of the two",
        ),
        (
            ("delays.toml", "--questions", "--nature", "drift"),
            "--questions draws no natures; expected no --nature",
        ),
        (
            ("results/delays.db", "--delays", "--nature", "drfit"),
            "unknown nature 'drfit'; did you mean 'drift'?",
        ),
    ):
        assert onlinecal("plot", *arguments, cwd=folder, rc=2).stderr == f"error: {said}\n"


def test_arrivals_and_delays_are_in_the_catalogue(folder):
    for kind, known in (("arrivals", ARRIVALS), ("delays", DELAYS)):
        rows = json.loads(onlinecal("list", kind, "--json", cwd=folder).stdout)
        assert [row["name"] for row in rows] == list(known)
        assert all(row["summary"] for row in rows)
    assert "rate : float, default 1" in onlinecal("show", "poisson", cwd=folder).stdout
