"""Witnesses in words; what they prove is in test_witnesses."""

from __future__ import annotations

import pytest

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.measures import MEASURES, explain

RECORDS = list(MEASURES.values())


WITNESSED = [m for m in RECORDS if m.witness is not None]


# A word that the text of each witness has.
IN_WORDS = {
    "smooth_ce": "1-Lipschitz",
    "interval_ce": "intervals",
    "distance_lower": "moved to",
    "distance_upper": "groups",
    "cdl": "pays",
    "v_cdl": "pays",
    "u_calibration": "pays",
    "earthmover_distance": "2-Lipschitz",
    "cutoff_ce": "outcomes",
    "step_ce": "outcomes",
    "kernel_ce": "norm 1",
    "scdl": "best-respond",
    "scdl_binned": "rounded",
    "ece": "outcomes",
    "binned_ece": "hold levels",
    "binned_ece_width": "hold levels",
    "interval_ce_bracket": "intervals",
    "random_interval_ce": "shifts",
    "surrogate_interval_ce": "each holds one level",
    "smooth_ece": "smoothed",
    "smooth_ece_at": "smoothed",
    "low_degree_ce": "moment",
}


def by_id(record):
    return record.name


def test_who_has_a_witness():
    assert {m.name for m in WITNESSED} == set(IN_WORDS)


@pytest.mark.parametrize("record", WITNESSED, ids=by_id)
def test_the_witness_in_words(record):
    gamma = JointDistribution.from_levels([0.2, 0.5, 0.8], [1, 1, 2], [0.4, 0.1, 0.6])
    why = explain(gamma, record.name, **record.example)
    assert str(why).startswith(record.name)
    assert IN_WORDS[record.name] in str(why)


def test_there_is_a_word_about_no_witness():
    with pytest.raises(InvalidParameter, match="'brier' has no witness"):
        explain(JointDistribution.from_samples([0.5], [1]), "brier")
    with pytest.raises(InvalidParameter, match="needs the option 'epsilon'"):
        MEASURES["random_interval_ce"].bind()
