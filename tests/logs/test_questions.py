"""Questions that are forecast many times: which column tells them apart, and that each counts once."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from onlinecal.logs import questions
from onlinecal.logs.measuring import Settings
from onlinecal.logs.reading import Asked
from onlinecal.monitoring.monitor import Monitor
from onlinecal.monitoring.watching import watch
from tests.command_line import onlinecal
from tests.logs.made import report


def daily(generator):
    """60 calibrated questions, each forecast on 40 days."""
    chances = generator.uniform(0.05, 0.95, 60)
    outcomes = (generator.random(60) < chances) * 1
    day, question = np.divmod(np.arange(2400), 60)
    p = np.clip(chances[question] + generator.normal(0.0, 0.005, 2400), 0.01, 0.99).round(3)
    return pd.DataFrame({"day": day, "question": question, "forecast": p, "outcome": outcomes[question]})


def people(generator):
    """80 motions, each forecast by 5 to 19 people with much the same knowledge, under an unusual name."""
    chances = generator.uniform(0.1, 0.9, 80)
    outcomes = (generator.random(80) < chances) * 1
    motion = np.repeat(np.arange(80), generator.integers(5, 20, 80))
    p = np.clip(chances[motion] + generator.normal(0.0, 0.1, len(motion)), 0.01, 0.99).round(2)
    names = np.char.add("motion ", motion.astype(str))
    return pd.DataFrame(
        {
            "motion": names,
            "site": motion % 2,
            "forecast": p,
            "outcome": outcomes[motion],
            "row": range(len(p)),
        }
    )


def measured(file, **asked):
    return report(file, settings=Settings(99, measures=("cutoff_ce",)), **asked)


@pytest.mark.parametrize(
    ("panel", "name", "asked"),
    [(daily, "question", {"time": "day"}), (daily, "question", {}), (people, "motion", {})],
)
def test_questions_that_come_back_are_clusters(tmp_path, panel, name, asked, seed):
    file = tmp_path / "f.csv"
    table = panel(np.random.default_rng([seed, 110]))
    table.to_csv(file, index=False)
    found, named, by_hand = (
        measured(file, **asked, **more) for more in ({}, {"key": name}, {"cluster": name})
    )
    (row,) = by_hand.columns[0].evaluation.rows
    assert row.p_value > 0.001
    for one in (found, named):
        assert one.cluster == name
        said = [each for each in one.said if "--id none" in each]
        assert said == [
            f"{table[name].nunique()} questions in {name!r}, each with one outcome, are one cluster each (--id none "
            "takes rows as independent)"
        ]
        assert one.columns[0].evaluation.rows == (row,)
    assert measured(file, **asked, questions=False).cluster == asked.get("time", "")


def seen_later(generator, labels):
    """400 events of independent forecasts, and a column of them."""
    p = generator.uniform(0.02, 0.98, 400).round(2)
    y = (generator.random(400) < p) * 1
    return pd.DataFrame({"forecast": p, "outcome": y, "column": labels(generator, p, y)})


WRONG = {
    "a site": lambda g, p, y: np.where(g.random(400) < 0.5, "a", "b"),
    "a row": lambda g, p, y: np.arange(400),
    "a customer": lambda g, p, y: g.integers(0, 60, 400),
    "the outcome in words": lambda g, p, y: np.where(y == 1, "won", "lost"),
    "an amount": lambda g, p, y: np.where(y == 1, 26, 14) + g.integers(0, 12, 400) + np.rint(4 * (p - 0.5)),
    "a score": lambda g, p, y: [
        f"{b + 1 + a if won else b}:{b if won else a + b}"
        for a, b, won in zip(g.poisson(1, 400), g.poisson(1.2, 400), y, strict=True)
    ],
    "a question, sometimes empty": lambda g, p, y: [
        "" if i % 20 == 0 and not won else f"{round(9 * one)}{won}"
        for i, (one, won) in enumerate(zip(p, y, strict=True))
    ],
}


@pytest.mark.parametrize("labels", WRONG.values(), ids=WRONG)
def test_other_columns_are_no_questions(tmp_path, labels, seed):
    seen_later(np.random.default_rng([seed, 111]), labels).to_csv(tmp_path / "f.csv", index=False)
    assert measured(tmp_path / "f.csv").cluster == ""
    monitor = Monitor()
    watch(monitor, tmp_path / "f.csv", Asked())
    assert monitor.events == 400


def test_labels_are_questions_where_chance_makes_outcomes_constant_in_one_of_1000_cases():
    """By the product over labels of Σ shareⁿ; and where they explain a tenth of forecasts, as adjusted R² says."""
    for size, there in ((5, False), (6, True)):  # (2 · 2⁻⁵)² = 1/256 and (2 · 2⁻⁶)² = 1/1024
        of, y = np.repeat([0, 1], size), np.repeat([0.0, 1.0], size)
        assert questions._constant(of, y) is there
        assert not questions._constant(of, np.where(np.arange(2 * size) == 0, 1.0, y))
    for outcomes, amount in (([0, 0, 1], True), ([1, 0, 0], True), ([0, 1, 0], False)):  # of 14, 20 and 100
        assert (
            questions._amount(["20", "100", "14"], np.array([2, 0, 1]), np.array(outcomes, float)) is amount
        )
    rng = np.random.default_rng(1)
    of, p = np.repeat(np.arange(12), 4), rng.random(48)
    y = (of % 2) * 1.0
    p = 0.9 * p + 0.1 * of / 12
    within, between = (
        sum(((p[label == k] - p[label == k].mean()) ** 2).sum() for k in np.unique(label))
        for label in (of, y)
    )
    assert questions._explained(p, of, y) == pytest.approx(1.0 - within / (48 - 12) / (between / (48 - 2)))
    assert questions._explained(np.full(48, 0.5), of, y) == 1.0


@pytest.mark.parametrize(("labels", "there"), [(9, False), (10, True)])
def test_a_column_with_an_unusual_name_has_ten_labels_at_least(tmp_path, labels, there):
    """One with a usual name has two."""
    of = np.repeat(np.arange(labels), 12)
    table = pd.DataFrame(
        {"motion": np.char.add("m", of.astype(str)), "forecast": 0.1 + of % 5 / 10, "outcome": of % 2}
    )
    table.to_csv(tmp_path / "f.csv", index=False)
    assert report(tmp_path / "f.csv").cluster == "motion" * there
    table.rename(columns={"motion": "Question ID"}).to_csv(tmp_path / "f.csv", index=False)
    assert report(tmp_path / "f.csv").cluster == "Question ID"


@pytest.mark.parametrize(("share", "there"), [(0.0999, False), (0.1, True)])
def test_a_column_with_an_unusual_name_explains_a_tenth_of_forecasts_at_least(
    tmp_path, monkeypatch, share, there
):
    people(np.random.default_rng(1)).to_csv(tmp_path / "f.csv", index=False)
    monkeypatch.setattr(questions, "_explained", lambda *of: share)
    assert report(tmp_path / "f.csv").cluster == "motion" * there


def test_a_question_counts_once_by_its_first_forecast(tmp_path, seed):
    table = daily(np.random.default_rng([seed, 112]))
    table.to_csv(tmp_path / "f.csv", index=False)
    first = table.drop_duplicates("question")
    once = Monitor()
    once.update(first.forecast, first.outcome)
    # Outcomes may also come later, and forecasts of open questions before them.
    late = pd.concat([table.assign(outcome=""), first.assign(forecast="")])
    late.to_csv(tmp_path / "late.csv", index=False)
    for name, asked in (("f", Asked()), ("f", Asked(key="question")), ("late", Asked(key="question"))):
        monitor, said = Monitor(), []
        watch(monitor, tmp_path / f"{name}.csv", asked, say=said.append)
        assert (monitor.events, monitor.open, monitor.log_e) == (60, 0, once.log_e)
        assert said[-1] == "2,340 later lines of the same questions not counted"
        assert any("by its first forecast" in each for each in said) == (asked.key is None)
    each = Monitor()
    watch(each, tmp_path / "f.csv", Asked(questions=False))
    assert each.events == 2400


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("question,p,y\nq1,0.3,1\nq1,0.4,1\nq1,0.5,0\n", "line 4: question 'q1' has the outcome 0, and 1 in line 2"),
        ("p,y,market\n.3,0,b\n.2,1,a\n.1,0,b\n.4,0,a\n", "line 5: question 'a' has the outcome 0, and 1 in line 3"),
    ],
)  # fmt: skip
def test_several_outcomes_of_a_question_are_refused(tmp_path, text, said):
    (tmp_path / "f.csv").write_text(text)
    column = "question" if "question" in text else "market"
    for command in ("measure f.csv --draws 0", "watch f.csv"):
        done = onlinecal(f"{command} --id {column}", cwd=tmp_path, rc=2)
        assert f"f.csv, {said}; expected one outcome a question" in done.stderr


def better_and_better(generator):
    """Forecasts of a Brownian motion above a level, at 40 times before its end."""
    time = np.arange(40) / 40 * 0.9
    walk = np.append(0.0, np.cumsum(generator.normal(0.0, (0.9 / 40) ** 0.5, 39)))
    level = generator.normal(0.0, 0.7)
    last = walk[-1] + generator.normal(0.0, (1.0 - time[-1]) ** 0.5)
    return np.clip(norm.sf((level - walk) / (1.0 - time) ** 0.5), 0.001, 0.999), float(last > level)


def until_it_happens(generator):
    """Forecasts of an event within 40 days; its question closes when it happens."""
    rate = generator.uniform(0.003, 0.05)
    day = generator.geometric(rate)
    return 1.0 - (1.0 - rate) ** np.arange(40, max(40 - day, 0), -1), float(day <= 40)


@pytest.mark.parametrize(
    ("question", "other", "fails"),
    [(better_and_better, np.mean, 400), (until_it_happens, lambda p: p[-1], 60)],
)
def test_first_forecasts_are_calibrated_and_means_or_last_ones_are_not(question, other, fails, seed):
    """Of 100 panels first forecasts alarm in 1, the others in 98 and 100; by chance 8 of 20 at 5 % in 1 of 10^6."""
    alarms = np.zeros(2, dtype=int)
    for i in range(20):
        generator = np.random.default_rng([seed, 113, i])
        forecasts, outcomes = zip(*(question(generator) for _ in range(fails)), strict=True)
        for j, chosen in enumerate((lambda p: p[0], other)):
            monitor = Monitor()
            monitor.update([chosen(p) for p in forecasts], outcomes)
            alarms[j] += bool(monitor.alarms)
    assert alarms[0] < 8 < alarms[1]
