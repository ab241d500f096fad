"""The catalogue × its properties: columns of its table, invariances, moved predictions and many levels."""

import inspect
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinecal.core.errors import MissingParameter
from onlinecal.core.joint import JointDistribution
from onlinecal.measures import MEASURES, Bracket, ece, with_all
from onlinecal.measures.base import Measure, Sampling, ends
from tests.marks import some_fast
from tests.oracles.moduli import MODULI
from tests.strategies import ANY, calibrated_gammas, gammas
from tests.witnesses import EVERY, case_id

levels = JointDistribution.from_levels
#: thresholds and moments look up from 0, bins hold their lower edge, and a cube root is not its mirror image. Nor are
#: blocks of levels, which are counted from the left
ONE_SIDED = {
    "step_ce", "subsampled_step_ce", "low_degree_ce", "binned_ece", "binned_ece_width", "binned_ce", "mce", "ace",
    "rmsce",
}  # fmt: skip


def sided(record, options):
    given = callable(options.get("metric")) or options.get("task") == "umbrella"
    if record.name == "soft_binned_loss":  # of an odd m alone an interval lies around 1/2
        given = 2 * options.get("threshold", 8) != options.get("m", 16) + 1
    return record.name in ONE_SIDED or given or options.get("soft") is False or "blocks" in options


def value(record, options, gamma):
    return ends(record.function(gamma, **options))


def close(record, options, pair):
    """Within what the measure states of itself."""
    if record.name == "smooth_ece":
        return pytest.approx(pair, abs=2e-4)
    narrow = options.get("kernel") == "gaussian" and options.get("scale", 1.0) < 0.0224
    return pytest.approx(pair, abs=2e-7 if record.name == "smooth_ece_at" or narrow else 1e-9)


def each(keep=lambda record, options: True):
    return pytest.mark.parametrize(("record", "options"), [c for c in EVERY if keep(*c)], ids=case_id)


def split(gamma, shares):
    """The same Γ from a list in which each level comes in two pieces, in another order."""
    share = np.resize(shares, gamma.levels)
    n, s = ([*(x * share)[::-1], *(x * (1.0 - share))] for x in (gamma.counts, gamma.positives))
    return JointDistribution.from_counts([*gamma.predictions[::-1], *gamma.predictions], n, np.minimum(s, n))


@pytest.mark.parametrize(("record", "options"), some_fast(3, EVERY), ids=case_id)
@given(gamma=gammas(), shares=st.lists(st.sampled_from([0.25, 0.5, 0.75]), min_size=1, max_size=4))
def test_order_split_of_mass_and_exchange_of_outcomes_do_not_matter(record, options, gamma, shares):
    whole = value(record, options, gamma)
    assert record.least <= whole[0] <= whole[1] <= record.largest
    assert value(record, options, split(gamma, shares)) == close(record, options, whole)
    if not sided(record, options):
        # Exactly representable, so that 1 − v is exact; rounding to such a grid may join levels.
        gamma = gamma.round(1024)[0]
        assert value(record, options, gamma.flip()) == close(record, options, value(record, options, gamma))


@each(lambda record, options: record.complete.startswith("yes"))
@given(gamma=calibrated_gammas())
def test_calibrated_is_exactly_zero(record, options, gamma):
    """It is proved up to the rounding of a bound."""
    assert value(record, options, gamma) == (0.0, 0.0)
    if record.witness is not None:
        assert record.explain(gamma, **options).upper <= 5e-15


PARTS = "witness", "counterpart", "within", "upper", "limit", "fallback", "many"
OF_SAMPLES = "deviations", "limits", "norm", "cells", "share", "refuses", "means"


@pytest.mark.parametrize("record", MEASURES.values(), ids=case_id)
def test_options_have_one_default_in_all_parts_of_a_record(record):
    parts = [getattr(record, name) for name in PARTS]
    if isinstance(record.sampling, Sampling):
        parts += [getattr(record.sampling, name) for name in OF_SAMPLES]
    for part in filter(None, parts):
        for option, parameter in inspect.signature(part).parameters.items():
            if option in record.options and parameter.default not in (parameter.empty, None):
                assert parameter.default == record.options[option], (part, option)


def test_ranges_are_no_wider_than_values():
    for record in MEASURES.values():
        if record.largest not in (1.0, math.inf):
            options = {"bins": 1} if "bins" in record.options else {}
            assert value(record, options, levels([1.0], [1], [0.0]))[1] == record.largest, record.name


def test_all_stands_for_every_measure_that_is_not_named_beside_it():
    names = [spec["name"] for spec in with_all(["all"])]
    assert names == list(MEASURES)
    for rounds, more in ((None, []), (400, ["true_distance"]), (401, []), (1, ["true_distance"])):
        assert [spec["name"] for spec in with_all(["all"], rounds)] == names + more
    given = [{"name": "random_interval_ce", "epsilon": 0.5}, "all", "ece"]
    first, *rest = with_all(given, others=["ece", "brier", "random_interval_ce", "cdl"])
    assert (first, rest) == (given[0], [{"name": "brier"}, {"name": "cdl"}, "ece"])
    assert with_all(("ece", given[0]), 1) == ["ece", given[0]]


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        (
            "random_interval_ce",
            {},
            r"needs the option 'epsilon'; expected such as \{ name = .*, epsilon = 0.1 \}",
        ),
        (
            "smooth_ece_at",
            {"transform": "logit"},
            "needs the option 'sigma'; .* sigma = 0.1, transform = 'logit'",
        ),
    ],
)
def test_an_option_that_must_be_given_is_asked_for(name, options, said):
    with pytest.raises(MissingParameter, match=said):
        MEASURES[name].bind(**options)


def both(gamma, *, low, high):
    return low + high


def test_several_options_that_must_be_given_are_asked_for_together():
    with pytest.raises(MissingParameter, match="'both' needs the options 'low' and 'high'; expected"):
        Measure(both, "", "", "", example={"low": 1, "high": 2}).bind()


def test_up_to_how_many_levels_a_measure_goes_by_itself():
    record = MEASURES["interval_ce"]
    for options, most in (({}, 200_000), ({"width": "max"}, 50_000), ({"max_levels": 7}, 7)):
        assert record.limit(**options) == most
        assert [record.may_bracket(options, k) for k in (most, most + 1, None)] == [False, True, True]
    assert record.result == "exact for k ≤ 200 000, then a bracket"
    assert [MEASURES[name].may_bracket({}, 1) for name in ("ece", "distance_lower")] == [False, True]
    assert (MEASURES["ece"].result, MEASURES["distance_lower"].result) == ("exact", "bracket")
    assert MEASURES["smooth_ece_at"].result == MEASURES["smooth_ece_at"].accuracy != ""


@pytest.mark.parametrize(
    ("kernel", "scale", "within"),
    [
        ("laplace", 0.01, 0.0),
        ("gaussian", 0.02237, 0.0),
        ("gaussian", 0.02236, 4e-8),
        ("gaussian", 5e-324, 4e-8),
    ],
)
def test_the_error_of_a_gaussian_is_stated_where_pairs_are_added(kernel, scale, within):
    record, gamma = MEASURES["kernel_ce"], levels([0.4, 0.6], [1, 1], [1, 0])
    assert record.error(gamma, kernel=kernel, scale=scale) == within
    assert record.error(gamma, kernel=kernel) == record.error(gamma) == 0.0


# ---------------------------------------------------------------- columns

EPS = 1e-4


def lower(name, gamma):
    return value(MEASURES[name], MEASURES[name].example, gamma)[0]


@pytest.mark.parametrize("name", [m.name for m in MEASURES.values() if m.sound.startswith("yes")])
@given(gamma=gammas(max_levels=5))
def test_sound_is_positive_unless_calibrated(name, gamma):
    gamma = gamma.round(32)[0]
    assert ece(gamma) < 1e-3 or lower(name, gamma) > 0.0


PAIR = levels([0.51, 0.59], [1, 1], [0.59, 0.51])
SPREAD = levels([0.5 - EPS, 0.5 + EPS], [1, 1], [1, 0])
MEAN = levels([0.2, 0.8], [1, 1], [0.3, 0.7])
TURNS = levels(MANY := np.arange(20, 81) / 100, [1] * 61, MANY + 0.1 * (-1.0) ** np.arange(61))
#: for each measure that is not sound: options, Γ that is not calibrated, and the most that it sees of that
BLIND = {
    "binned_ece": ({}, PAIR, 1e-15),
    "binned_ce": ({}, PAIR, 1e-15),
    "soft_binned_ece": ({"bins": 1}, MEAN, 1e-15),
    "soft_binned_loss": ({"m": 3, "threshold": 2}, levels([0.5], [1], [0.51]), 1e-15),
    "random_interval_ce": ({"epsilon": 0.5}, SPREAD, 0.01),
    "smooth_ece_at": ({"sigma": 0.5}, SPREAD, 0.01),
    "cfdl": ({"task": "v_shaped"}, levels([0.6], [1], [0.7]), 1e-15),
    "u_calibration": ({}, levels([0.2, 0.8], [1, 1], [0.1, 0.9]), 1e-15),
    "scdl_binned": ({}, levels([0.5], [1], [0.51]), 1e-15),
    "weighted_ce": ({}, MEAN, 1e-15),
    "low_degree_ce": ({}, levels([0.2, 0.4, 0.6, 0.8], [1] * 4, [0.21, 0.37, 0.63, 0.79]), 1e-15),
    "rmsce": ({}, PAIR, 1e-15),
    "ace": ({"bins": 1}, PAIR, 1e-15),
    "brier_skill": ({}, levels([0.6], [1], [0.7]), 0.0),
    **{name: ({}, TURNS, 0.015) for name in ("ici", "e50", "e90")},
}


def test_who_is_blind_to_what():
    assert set(BLIND) == {m.name for m in MEASURES.values() if not m.sound.startswith("yes")}
    for name, (options, gamma, most) in BLIND.items():
        assert ece(gamma) > 5e-3
        assert MEASURES[name].function(gamma, **options) <= most, name


# ---------------------------------------------------------------- moved predictions


def truth(record, gamma, options):
    """The ends between which the value certainly is."""
    (low, high), within = value(record, options, gamma), record.error(gamma, **options)
    return low - within, high + within


@st.composite
def moves(draw):
    """A Γ, the same with each level moved anywhere, near or far, and the mean distance."""
    gamma = draw(ANY | gammas(12))
    size = draw(st.sampled_from([0.0, 1e-9, 1e-4, 0.01, 0.1, 1.0]))
    steps = draw(st.lists(st.floats(-size, size), min_size=gamma.levels, max_size=gamma.levels))
    after = np.clip(gamma.predictions + np.array(steps), 0.0, 1.0)
    moved = float(gamma.mass @ np.abs(after - gamma.predictions))
    order = np.argsort(after, kind="stable")
    parts = after[order], gamma.counts[order], gamma.positives[order], gamma.means[order]
    return gamma, JointDistribution.from_sorted_levels(*parts), min(moved, 1.0)


def apart(name, options, before, after):
    """How far the values on both certainly are apart."""
    one, other = (truth(MEASURES[name], gamma, options) for gamma in (before, after))
    return max(one[0] - other[1], other[0] - one[1])


def proved(record, options):
    """Whether something is proved of the measure with these options."""
    known = inspect.signature(MODULI[record.name]).parameters if record.name in MODULI else ()
    return record.name in MODULI and all(name in known for name in options)


@each(proved)
@given(case=moves())
def test_no_value_moves_further_than_its_modulus(record, options, case):
    before, after, moved = case
    rounding = 2e-12 + 8e-16 * before.levels
    assert apart(record.name, options, before, after) <= MODULI[record.name](moved, **options) + rounding


@each(lambda record, options: record.limit is not None)
@given(gamma=ANY | gammas(12), most=st.integers(1, 12))
def test_many_levels_have_a_bracket(record, options, gamma, most):
    low, high = truth(record, gamma, options)
    bound = record.bind(max_levels=most, **options)(gamma)
    assert isinstance(bound, Bracket) == (gamma.levels > most)
    assert ends(bound)[0] <= high + 1e-9
    assert ends(bound)[1] >= low - 1e-9


def halves(apart, left, right):
    """Two outcomes, of `left` just below 1/2 and of `right` just above; at one point where nothing is between them."""
    if apart == 0.0:
        return levels([0.5], [1], [(left + right) / 2])
    return levels([0.5 - apart, 0.5 + apart], [1, 1], [left, right])


def crossed(h):
    """Residuals −, then + at 1/2, then −: which of those at 1/2 are on which side decides how they can be grouped."""
    v = [0.4, 0.5 - h, 0.5 + h, 0.6]
    return tuple(levels(v, [1, 1, 1, 1], [0.0, a, 1.0 - a, 1.0]) for a in (0.9, 0.1))


def fair(h):
    """A fair coin at 1/4 and at 3/4, or its outcomes apart, so that some can be grouped with those at the other."""
    v = [0.25, 0.25 + h, 0.25 + 2 * h]
    apart = levels(v + [1 - x for x in v[::-1]], [3, 1, 2, 2, 1, 3], [0, 1, 1, 0, 0, 1])
    return apart, levels([0.25, 0.75], [6, 6], [0.5, 0.5])


def parted(h):
    return halves(h, 1, 0), halves(0.0, 1, 0)


def swapped(h):
    return halves(h, 1, 0), halves(h, 0, 1)


#: of every other measure two Γ as close as you like between which it jumps, and by how much
JUMPS = {
    "ece": ({}, parted, 0.49),
    **{name: ({"bins": 2}, parted, 0.49) for name in ("binned_ece", "binned_ece_width", "binned_ce")},
    **{name: ({}, parted, 0.49) for name in ("mce", "ici", "e50", "e90")},
    **{name: ({"bins": 2}, parted, 0.49) for name in ("ace", "rmsce")},
    # A rare event is predicted, or not.
    "brier_skill": ({}, lambda h: (levels([0, 1], [1, h], [0, 1]), levels([0], [1 + h], [h / (1 + h)])), 0.9),
    "interval_ce": ({}, crossed, 0.05),
    "interval_ce_bracket": ({}, crossed, 0.05),
    "distance_upper": ({}, fair, 0.08),
    "cutoff_ce": ({}, parted, 0.24),
    "step_ce": ({}, parted, 0.24),
    # Of two rounds at ½ or just beside it: where both are drawn, the first is repaired or not.
    "subsampled_step_ce": ({}, lambda h: (halves(h, 1, 0), levels([0.5], [2], [0.5])), 0.06),
    **{name: ({}, swapped, 0.4) for name in ("cdl", "v_cdl", "u_calibration")},
    "cfdl": ({"task": "v_shaped"}, swapped, 0.4),
    "log_loss": ({}, lambda h: (levels([h], [1], [1]), levels([h * h], [1], [1])), 0.6),
    "nce": ({}, lambda h: tuple(levels([x, 1 - h], [1, 1], [1, 0]) for x in (h, h * h)), 0.4),
}


def test_every_measure_has_a_modulus_or_jumps():
    assert set(JUMPS) == set(MEASURES) - set(MODULI)
    # Continuous are those with a modulus, and means that are infinite at the ends; with a given ω, if that is.
    continuous = {name for name, record in MEASURES.items() if record.continuous not in ("no", "as ω")}
    assert continuous == set(MODULI) - {"weighted_ce"} | {"log_loss", "nce"}
    for name, (options, pair, gap) in JUMPS.items():
        for near in (1e-2, 1e-4, 1e-6, 1e-8):
            one, other = (ends(MEASURES[name].function(gamma, **options)) for gamma in pair(near))
            assert max(one[0] - other[1], other[0] - one[1]) > gap * (1 - 4 * near) - 2 * near, name
