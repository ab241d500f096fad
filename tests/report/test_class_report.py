"""The report of forecasts of several classes: what its verdict follows from, and what a terminal leaves out."""

from dataclasses import replace

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.logs.class_reading import AskedClasses
from onlinecal.logs.classes import evaluate_classes
from onlinecal.logs.reading import Log
from onlinecal.report.class_report import LEFT_OUT, data, document_of, verdict

ASKED = AskedClasses(columns="p_*")


def log_of(k, **more):
    """Of k classes that are as likely as each other, forecast exactly."""
    return Log(
        "f.csv", {f"p_{i}": np.full(2 * k, 1 / k) for i in range(k)}, np.arange(2 * k) % k, "y", **more
    )


def evaluated(log, draws=0):
    labels = [f"c{i}" for i in range(len(log.forecasts))]
    p = np.column_stack([*log.forecasts.values()])
    return evaluate_classes(p, [labels[y] for y in log.outcomes], draws=draws, labels=labels)


@pytest.fixture(scope="module")
def three():
    """A log of three classes, and its measures."""
    log = log_of(3)
    return log, evaluated(log, 20)


@pytest.mark.parametrize(
    ("change", "p", "calibration", "words", "then"),
    [
        ({}, 0.0625, "refuted", "Not calibrated (p = 0.0625, all classes at once): probabilities of 'c1' from 0.2–0.3 "
         "are too low by 0.25.", "measure f.csv --outcome y --classes 'p_*' -o f_classes.png"),
        ({"bias": -0.25, "highest": 0.2}, 0.0625, "refuted", "probabilities of 'c1' at 0.2 are too high by 0.25.", ""),
        ({"label": None}, 0.0625, "refuted", "probabilities of the likeliest class from 0.2–0.3 are too low by 0.25.",
         ""),
        ({}, 0.0626, "not refuted", "Calibration is not refuted (p = 0.0626, all classes at once). The largest error: "
         "probabilities of 'c1' from 0.2–0.3 are too low by 0.25.", "more rows, four times as many"),
        ({"bias": 0.0}, 1.0, "not refuted", "Calibration is not refuted (p = 1, all classes at once).", ""),
    ],
)  # fmt: skip
def test_what_a_verdict_of_classes_follows_from(three, change, p, calibration, words, then):
    log, found = three
    others = [replace(one, adjusted=1.0, cutoff_ce=0.0) for one in found.classes]
    others[1] = replace(others[1], **{"adjusted": p, "cutoff_ce": 0.25, "bias": 0.25, "lowest": 0.2, "highest": 0.3}
                        | change)  # fmt: skip
    said = verdict(log, ASKED, replace(found, classes=tuple(others), level=0.9375))
    assert said.calibration == calibration
    assert said.words.endswith(words)
    assert then in said.next


@pytest.mark.parametrize(
    ("draws", "words", "then"),
    [(0, "Without draws", "--draws 200"), (20, "There are too few clusters", "more")],
)
def test_a_verdict_of_classes_without_a_test_says_why(three, draws, words, then):
    log, found = three
    untested = replace(
        found, draws=draws, classes=tuple(replace(one, adjusted=None) for one in found.classes)
    )
    said = verdict(log, ASKED, untested)
    assert said.calibration == data(log, ASKED, untested)["verdict"]["calibration"] == "not tested"
    assert said.words.startswith(words)
    assert then in said.next


@pytest.mark.parametrize(("k", "more"), [(4, ""), (5, "1 more class: "), (6, "2 more classes: ")])
def test_a_terminal_shows_four_classes_and_counts_the_others(k, more):
    log = log_of(k)
    said, whole = (document_of(log, ASKED, evaluated(log), drawn=drawn) for drawn in (False, True))
    (section,), (every,) = said.sections, whole.sections
    measures, classes = (
        [part.content.frame.index for part in each.parts if part.kind == "table"] for each in (section, every)
    )
    assert (len(measures[1]), len(classes[1])) == (5, k + 1)  # and the top label
    assert {*classes[0]} - {*measures[0]} == {*LEFT_OUT} & {*classes[0]}
    notes = [part.content for part in section.parts if part.kind == "notes"]
    assert notes == ([[f"{more}--json, or -o page.html."]] if more else [])
    assert not [part for part in every.parts if part.kind == "notes"]
    assert said.title == f"f.csv: {2 * k} rows, {k} classes in 'p_0' to 'p_{k - 1}', outcome 'y'"


@pytest.mark.parametrize(
    ("more", "units"),
    [
        ({}, "Rows are"), ({"times": np.arange(6.0)}, "Rows, or blocks of them in time, are"),
        ({"clusters": np.arange(6)}, "Clusters are"),
        ({"times": np.arange(6.0), "clusters": np.arange(6)}, "Clusters, or blocks of them in time, are"),
    ],
)  # fmt: skip
def test_a_report_of_classes_says_what_is_independent(three, more, units):
    _, found = three
    text = " ".join(document_of(log_of(3, **more), ASKED, found).text().split())
    assert f"Intervals: 95 % each. {units} taken as independent." in text


def test_a_picture_of_an_evaluation_takes_no_outcomes_beside_it(three):
    log, found = three
    assert len(oc.plots.classes_table(found)["label"].unique()) == 3
    with pytest.raises(oc.OnlinecalError):
        oc.plots.classes_table(found, log.outcomes)
