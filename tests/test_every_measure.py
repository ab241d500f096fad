"""What holds for every measure of the catalogue: names in scenarios, many levels, invariances, bad input.

And its witnesses in words; what they prove is in test_witnesses.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onlinecal as oc
from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.measures import MEASURES, Bracket, explain
from onlinecal.scenario import load
from onlinecal.study.panel import Panel
from tests.gammas_metric import many_levels, split
from tests.strategies import calibrated_gammas, gammas

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


def ends(value):
    return (value.lower, value.upper) if isinstance(value, Bracket) else (value, value)


def by_id(record):
    return record.name


# -------------------------------------------------------------------- witnesses


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


# -------------------------------------------------------------------- names


@pytest.mark.parametrize("record", RECORDS, ids=by_id)
def test_every_measure_can_be_named_in_a_scenario(record, tmp_path):
    options = "".join(f", {key} = {value}" for key, value in record.example.items())
    path = tmp_path / "one.toml"
    path.write_text(
        f"horizon = 200\nruns = 2\nmeasures = [{{ name = '{record.name}'{options} }}]\n"
        "[[forecasters]]\nname = 'forecast_hedging'\n[[natures]]\nname = 'drift'\n"
    )
    cells = load(path).cells
    name = record.name
    if record.example:
        name += "(" + ", ".join(f"{key}={value}" for key, value in record.example.items()) + ")"
    columns = cells[0].panel.names
    assert columns == ([f"{name}[lower]", f"{name}[upper]"] if record.bracket else [name])
    values = cells[0].panel.read(many_levels(1, 50))
    assert values[0] <= values[-1]


def test_a_required_option_is_asked_for_before_the_game():
    with pytest.raises(InvalidParameter, match="'smooth_ece_at' needs the option 'sigma'"):
        Panel.of(["smooth_ece_at"])


def test_a_function_of_ones_own_keeps_its_name_and_its_meaning():
    def ece(gamma):
        return 0.125

    assert Panel.of([ece]).read(JointDistribution.from_samples([0.5], [1])) == [0.125]
    with pytest.raises(InvalidParameter, match="asked for twice"):
        Panel.of([ece, "ece"])


# -------------------------------------------------------------------- many levels


LIMITED = {
    "interval_ce": [{}, {"width": "max"}],
    "smooth_ce": [{}],
    "distance_lower": [{}],
    "kernel_ce": [{}, {"kernel": "gaussian", "scale": 0.1}, {"scale": 0.2}],
    "random_interval_ce": [{"epsilon": 0.1}, {"epsilon": 0.03}],
    "surrogate_interval_ce": [{}],
    "brier": [{}],
}
CASES = [(name, options) for name, many in LIMITED.items() for options in many]


def test_which_measures_take_max_levels():
    for record in RECORDS:
        if "max_levels" in record.options and record.fallback is None:
            continue  # distance_upper: up to which it enumerates
        if record.name in LIMITED:
            record.bind(max_levels=10, **record.example)
        else:
            with pytest.raises(InvalidParameter, match="nothing is proved"):
                record.bind(max_levels=10, **record.example)
    with pytest.raises(InvalidParameter, match="nothing is proved about rounding"):
        MEASURES["smooth_ce"].bind(max_levels=10, metric="logit")
    with pytest.raises(InvalidParameter, match="max_levels = 1"):
        MEASURES["smooth_ce"].bind(max_levels=1)


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
@given(gamma=gammas(max_levels=20), most=st.integers(2, 12))
@settings(max_examples=60)
def test_the_widened_bracket_holds_the_value(name, options, gamma, most):
    record = MEASURES[name]
    exact = record.function(gamma, **options)
    limited = record.bind(max_levels=most, **options)(gamma)
    if gamma.levels <= most:
        assert limited == exact
        return
    assert isinstance(limited, Bracket)
    low, high = ends(exact)
    assert limited.lower <= low + 1e-9
    assert limited.upper >= high - 1e-9
    assert 0.0 <= limited.lower <= limited.upper <= record.largest


@pytest.mark.parametrize("name", ["smooth_ce", "distance_lower", "brier"])
def test_a_finer_grid_gives_a_narrower_bracket(name):
    gamma = many_levels(3, 3000, 0.1)
    widths = [MEASURES[name].bind(max_levels=m)(gamma).width for m in (11, 101, 1001)]
    assert widths[0] > 5 * widths[1] > 25 * widths[2]


def test_a_measure_with_a_limit_has_two_columns_only_where_it_can_be_reached():
    spec = {"name": "interval_ce", "max_levels": 30}
    plain = Panel.of([spec], rounds=30)
    both = Panel.of([spec], rounds=31)
    assert plain.names == ["interval_ce(max_levels=30)"]
    assert both.names == ["interval_ce(max_levels=30)[lower]", "interval_ce(max_levels=30)[upper]"]
    few, many = many_levels(0, 20), many_levels(0, 3000)
    assert both.read(few) == plain.read(few) * 2
    low, high = both.read(many)
    assert low <= many.weight * MEASURES["interval_ce"].function(many) <= high
    assert Panel.of(["interval_ce"], rounds=10**5).names == ["interval_ce"]
    assert len(Panel.of(["interval_ce"]).columns) == 2


def test_a_bracket_can_be_tracked_in_a_game():
    class Fresh:
        """A new value in every round."""

        def __init__(self):
            self.round = 0

        def forecast(self):
            self.round += 1
            return (self.round * 0.6180339887) % 1.0

        def update(self, forecast, outcome):
            pass

    spec = {"name": "interval_ce", "max_levels": 50}
    study = oc.play(Fresh, oc.natures.Bernoulli(0.5), horizon=200, runs=1, measures=[spec, "distance_lower"])
    low, high = (study.curve(f"interval_ce(max_levels=50)[{end}]") for end in ("lower", "upper"))
    early = np.asarray(low.rounds) <= 50
    assert (low.mean[early] == high.mean[early]).all()
    assert low.mean[-1] < high.mean[-1]


# -------------------------------------------------------------------- invariances


def value(record, gamma):
    return record.function(gamma, **record.example)


@pytest.mark.parametrize("record", RECORDS, ids=by_id)
@given(gamma=gammas(), shares=st.lists(st.sampled_from([0.25, 0.5, 0.75]), min_size=1, max_size=4))
@settings(max_examples=30)
def test_order_and_split_of_mass_do_not_matter(record, gamma, shares):
    assert ends(value(record, split(gamma, shares))) == pytest.approx(ends(value(record, gamma)), abs=1e-9)


# What is not symmetric, and why: a threshold and a moment look up from 0; bins hold their lower edge.
ONE_SIDED = {"step_ce", "low_degree_ce", "binned_ece", "binned_ece_width"}


@pytest.mark.parametrize("record", [m for m in RECORDS if m.name not in ONE_SIDED], ids=by_id)
@given(gamma=gammas())
@settings(max_examples=30)
def test_exchange_of_outcomes(record, gamma):
    # Exactly representable, so that 1 − v is exact; rounding to such a grid may join levels.
    gamma = gamma.round(1024)[0]
    tolerance = 2e-4 if record.name == "smooth_ece" else 2e-7 if record.name == "smooth_ece_at" else 1e-9
    assert ends(value(record, gamma.flip())) == pytest.approx(ends(value(record, gamma)), abs=tolerance)


@pytest.mark.parametrize("record", [m for m in RECORDS if m.complete.startswith("yes")], ids=by_id)
@given(gamma=calibrated_gammas())
@settings(max_examples=30)
def test_calibrated_is_exactly_zero(record, gamma):
    assert ends(value(record, gamma)) == (0.0, 0.0)


# -------------------------------------------------------------------- ends of the range, and bad input


@pytest.mark.parametrize("record", RECORDS, ids=by_id)
@pytest.mark.parametrize("v", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("y", [0, 1])
def test_one_sample(record, v, y):
    gamma = JointDistribution.from_samples([v], [y])
    low, high = ends(value(record, gamma))
    wrong = abs(v - y)
    expected = {
        "binned_ece_width": wrong + 0.1,
        "kernel_ce": wrong,
        "cfdl": wrong**2,
        "brier": wrong**2,
        "log_loss": -math.log(1.0 - wrong) if wrong < 1.0 else math.inf,
        "nce": 0.0 if wrong == 0.0 else math.inf,
    }
    if record.name in {"v_cdl", "cdl", "u_calibration", "scdl", "scdl_binned"}:
        assert 0.0 <= low == high <= 1.0
        assert (low == 0.0) == (wrong == 0.0)
    else:
        want = expected.get(record.name, wrong)
        assert (low, high) == pytest.approx((want, want), abs=1e-9)


@pytest.mark.parametrize("record", RECORDS, ids=by_id)
@pytest.mark.parametrize("outcome", [0, 1])
@pytest.mark.parametrize(
    "p", [[0.0, 0.1, 0.2, 0.3, 0.4], [0.0, 1.0], [0.6, 0.7, 1.0], [1e-300, 0.5]], ids=str
)
def test_all_outcomes_equal(record, outcome, p):
    gamma = JointDistribution.from_samples(p, [outcome] * len(p))
    low, high = ends(value(record, gamma))
    assert 0.0 <= low <= high <= record.largest
    if record.name.startswith(("distance", "smooth_ce")) and record.name != "smooth_ece_at":
        # Everything errs to one side, so that nothing cancels: the mean error for a constant weight, and no less
        # has to be moved.
        mean = float(np.abs(np.asarray(p) - outcome).mean())
        assert (low, high) == pytest.approx((mean, mean), abs=2e-4 if record.name == "smooth_ece" else 1e-8)


BAD = {
    "nan": ([0.5, math.nan], [0, 1], r"p\[1\] = nan is a missing value"),
    "infinite": ([0.5, math.inf], [0, 1], r"p\[1\] = inf is outside"),
    "above one": ([0.5, 1.0 + 1e-12], [0, 1], r"p\[1\] = 1.000000000001 is outside"),
    "below zero": ([-1e-300, 0.5], [0, 1], r"p\[0\] = -1e-300 is outside"),
    "no outcome": ([0.5, 0.5], [0, 2], r"y\[1\] = 2.0 is not an outcome"),
    "missing outcome": ([0.5, 0.5], [math.nan, 1], r"y\[0\] = nan is a missing value"),
    "swapped": ([0, 1, 1], [0.2, 0.7, 0.9], "these look swapped"),
    "none": ([], [], "no samples"),
    "lengths": ([0.5], [0, 1], "p has 1 values and y has 2"),
    "two dimensions": ([[0.5, 0.5]], [0, 1], r"p has shape \(1, 2\)"),
    "two dimensions of y": ([0.5, 0.5], [[0], [1]], r"y has shape \(2, 1\)"),
    "a number": (0.5, 1, r"p has shape \(\)"),
    "text": (["half"], [1], "not a number"),
    "nothing": (None, [1], r"p has shape \(\)"),
    "a gap": (pd.Series([0.5, None, 0.2]), pd.Series([0, 1, 1]), r"p\[1\] = nan is a missing value"),
    "a gap of integers": (pd.Series([0.5, 0.1]), pd.Series([0, None], dtype="Int64"), "missing|not a number"),
    "complex": (np.array([0.5 + 0.1j]), [1], "p holds complex numbers"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_samples_are_named(case):
    p, y, says = BAD[case]
    with pytest.raises(InvalidData, match=says):
        oc.evaluate(p, y)


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        ([1, -1], r"weights\[1\] = -1.0"),
        ([0, 0], "weights sum to 0.0"),
        ([1, math.inf], r"weights\[1\] = inf"),
        ([1, math.nan], r"weights\[1\] = nan"),
        ([1], "weights has 1"),
        ([1e308, 1e308], "weights sum to inf"),
    ],
)
def test_bad_weights_are_named(weights, says):
    with pytest.raises(InvalidData, match=says):
        oc.evaluate([0.2, 0.5], [0, 1], weights=weights)


@pytest.mark.parametrize(
    ("p", "y"),
    [
        ([0.25, 0.5, 0.75, 0.75], [False, True, True, False]),
        (np.array([0.25, 0.5, 0.75, 0.75], np.float32), np.array([0, 1, 1, 0], np.int8)),
        ((0.25, 0.5, 0.75, 0.75), (0.0, 1.0, 1.0, 0.0)),
        (pd.Series([0.25, 0.5, 0.75, 0.75]), pd.Series([0, 1, 1, 0])),
        (np.array([0.75, 0.75, 0.5, 0.25])[::-1], np.array([0, 1, 1, 0], object)),
        (np.array([[0.25, 0.5, 0.75, 0.75]]).T[:, 0], np.array([0, 1, 1, 0], np.uint64)),
    ],
)
def test_other_kinds_of_numbers_mean_the_same(p, y):
    plain = oc.evaluate([0.25, 0.5, 0.75, 0.75], [0, 1, 1, 0]).table()
    other = oc.evaluate(p, y).table()
    pd.testing.assert_frame_equal(plain, other)


def test_predictions_that_are_outcomes():
    table = oc.evaluate([True, False, 1, 0], [1, 0, 1, 0]).table()
    assert (table.drop("binned_ece_width").upper == 0.0).all()


def test_float32_is_taken_for_the_number_that_it_is():
    single = np.array([0.3], np.float32)
    assert oc.evaluate(single, [0])["ece"] == float(single[0]) != 0.3


@pytest.mark.slow
def test_ten_million_samples(full):
    n = 10**7 if full else 10**6
    generator = np.random.default_rng(0)
    p = generator.random(n)
    result = oc.evaluate(p, generator.random(n) < p)
    table = result.table()
    # Hoeffding: the mean error of n independent outcomes exceeds this with probability below 2e-9.
    noise = math.sqrt(10.0 / n)
    assert result["weighted_ce"] < noise
    assert table.upper["distance_lower"] < 2e-3
    assert table.lower["interval_ce"] <= table.upper["interval_ce"] < 0.05
    assert (table.lower <= table.upper).all()
    assert table["value"]["brier"] == pytest.approx(1 / 6, abs=2 * noise)
