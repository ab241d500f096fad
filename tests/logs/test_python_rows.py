"""Samples as people have them in Python: weights, labels, other containers, scikit-learn's names."""

from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss

import onlinecal as oc
from onlinecal.core.errors import InvalidData, InvalidParameter, UnknownParameter
from onlinecal.measures import MEASURES, OF_SHORT_GAMES
from onlinecal.report.plots import reliability_table

#: functions of the rounds, which do not see Γ with half of every count as the same
OF_COUNTS = {"subsampled_smooth_ce", "subsampled_step_ce"}
#: those of samples that are no measures of the catalogue
OTHERS = {
    "distance_in_metric": {}, "brier_decomposition": {}, "bregman": {}, "interval_ce_bracket": {},
    "decomposition": {}, "isotonic": {}, "explain": {"name": "cdl"}, "payoff": {"task": "umbrella"},
    "smooth_recalibration": {},
}  # fmt: skip
EVERY = {name: dict(record.example) for name, record in MEASURES.items()} | OTHERS


def rows(seed, n=24):
    rng = np.random.default_rng(seed)
    p = rng.choice([0.1, 0.25, 0.5, 0.7, 0.95], n)
    return p, (rng.random(n) < p**2).astype(int), rng.integers(0, 4, n)


def function(name):
    return next(getattr(room, name) for room in (oc.measures, oc, oc.tasks) if hasattr(room, name))


def value(found):
    if isinstance(found, oc.measures.Explanation):
        return [found.value, *(witness.bound(found.gamma) for witness in found.witnesses)]
    if isinstance(found, oc.measures.Bracket):
        return [found.lower, found.upper]
    return found.means if hasattr(found, "means") else found


@pytest.mark.parametrize("name", EVERY)
def test_a_weight_counts_rows(name, seed):
    p, y, w = rows(seed)
    of, options = function(name), EVERY[name]
    copies = value(of(np.repeat(p, w), np.repeat(y, w), **options))
    assert value(of(p=p, y=y, weights=w, **options)) == pytest.approx(copies, abs=1e-12)
    if name not in OF_COUNTS:
        assert value(of(p, y, weights=0.37 * w, **options)) == pytest.approx(copies, abs=1e-7)


def test_weights_of_the_others_count_rows(seed):
    p, y, w = rows(seed)
    many = np.repeat(p, w), np.repeat(y, w)
    assert oc.measures.true_distance(p, y, weights=w) == oc.measures.true_distance(*many)
    assert OF_SHORT_GAMES["true_distance"].function(oc.JointDistribution.from_samples(p, y, weights=w)) == (
        oc.measures.true_distance(*many).upper
    )
    assert oc.evaluate(p, y, weights=w)["cdl"] == oc.evaluate(*many)["cdl"]
    for draw in (oc.plots.reliability_table, oc.plots.decision_table, oc.plots.murphy_table, oc.plots.regret_table,
                 oc.plots.witness_table):  # fmt: skip
        pd.testing.assert_frame_equal(draw(p, y, weights=w), draw(*many))
        pd.testing.assert_frame_equal(draw({"a": p, "b": p[::-1]}, y, weights=w),
                                      draw({"a": (p, y, w), "b": (p[::-1], y, w)}))  # fmt: skip
    whole, part = (
        oc.plots.murphy_table({"a": p, "b": p**2}, y, weights=c * w, difference=True) for c in (1, 0.2)
    )
    pd.testing.assert_frame_equal(whole, part)
    twice = oc.plots.murphy_table({"a": many[0], "b": many[0] ** 2}, many[1], difference=True)
    assert whole["score"].to_numpy() == pytest.approx(twice["score"].to_numpy(), abs=1e-12)


#: what is given, and the words of the refusal
BAD = [
    ({"weights": [1, 1, -1, 1]}, r"weights\[2\] = -1.0; expected a finite number ≥ 0"),
    ({"weights": [1, np.nan, 1, 1]}, r"weights\[1\] = nan"), ({"weights": [1, 1]}, "p has 4 values and weights has 2"),
    ({"weights": [0, 0, 0, 0]}, "expected a positive finite total"),
    ({"y": ["no", "yes", "no", "yes"]}, "expected 0 or 1, or `positive`.*'no' in 2 rows, 'yes' in 2 rows"),
    ({"y": [1, 2, 1, 2]}, r"y\[1\] = 2.0 is not an outcome; expected 0 or 1, or `positive`"),
    ({"y": ["a", "b", "void", "b"], "positive": "b"}, "'void' in 1 row; expected `negative`"),
    ({"y": ["a", "b", "c", "b"], "positive": "b", "negative": "a"}, r"y\[2\] = 'c'; expected `negative`"),
    ({"positive": "b"}, "y never is 'b'; there are: '0' in 2 rows, '1' in 2 rows"),
    ({"negative": 0}, "without positive"), ({"drop": [0, 1]}, "p is empty"),
    ({"y": ["a", "b", "a"], "positive": "b"}, "p has 4 values and y has 3"),
    ({"y": pd.Series(["a", "b"] * 2, [1, 2, 3, 4]), "p": pd.Series([0.5] * 4), "positive": "b"}, "different indices"),
    ({"p": ["a", "b"] * 2, "y": [0.2, 0.3, 0.4, 0.5], "positive": "b"}, "these look swapped"),
    ({"p": np.full((4, 2), 0.5), "y": ["a", "b"] * 2, "positive": "a"}, r"one column, such as p\[:, 1\]"),
    ({"p": np.full((4, 2), 0.4)}, r"p has shape \(4, 2\); expected one dimension"),
    ({"p": np.full((4, 2), 0.49745)}, r"p has shape \(4, 2\); expected one dimension: one column, such as p\[:, 1\]"),
    ({"p": [[0.5, 0.5], [0.5]] * 2}, "p is not an array of numbers"),
    ({"p": pl.DataFrame({"a": [0.5] * 4})}, r"such as p\[:, 0\]"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "said"), BAD, ids=range(len(BAD)))
@pytest.mark.parametrize(
    "of", [oc.measures.ece, oc.evaluate, oc.calibration_line, oc.fit_recalibration, oc.plots.reliability]
)
def test_what_cannot_be_read_is_refused(of, given, said):
    with pytest.raises((InvalidData, InvalidParameter), match=said):
        of(**{"p": [0.2, 0.4, 0.4, 0.9], "y": [0, 1, 0, 1], **given})


P, Y = np.array([0.2, 0.4, 0.4, 0.9]), np.array([0, 1, 0, 1])
TEXTS = ["no", "yes", "no", "yes"]
#: p and y of the same rows, and more
SAME = [
    (P, Y == 1, {}), (P.tolist(), ["False", "true", "0", "1"], {}), (P, TEXTS, {"positive": "YES "}),
    (P, pd.Series(TEXTS, dtype="category"), {"positive": "yes"}), (pl.Series(P), pl.Series(TEXTS), {"positive": "yes"}),
    (P, pl.Series(TEXTS, dtype=pl.Categorical), {"positive": "yes"}), (P, Y + 1, {"positive": 2}),
    (P, 2 * Y - 1, {"positive": 1}), (P, Y == 1, {"positive": 1, "negative": None, "drop": None}),
    (1 - P, Y, {"positive": 0, "flip": True}),
    (P, [3, "yes", "no", "yes"], {"positive": "yes", "negative": ["no", 3]}),
    ([*P, 0.7], [*TEXTS, "void"], {"positive": "yes", "drop": "void"}), ([*P, 0.7], [*Y, -1], {"drop": [-1]}),
    (np.stack((1 - P, P), axis=1), Y, {}), (np.stack((1.0049 - P, P), axis=1), Y, {}),
    (np.stack((1 - P, P), axis=1).tolist(), Y.tolist(), {}),
    (pd.DataFrame({"a": 1 - P, "b": P}, [4, 3, 2, 1]), pd.Series(Y, [4, 3, 2, 1]), {}),
    (pl.DataFrame({"a": 1 - P, "b": P}), pl.Series(Y == 1), {}), ([Fraction(p) for p in P], Y.astype(object), {}),
]  # fmt: skip


@pytest.mark.parametrize(("p", "y", "options"), SAME, ids=range(len(SAME)))
def test_other_forms_mean_the_same(p, y, options):
    flip = options.get("flip")
    words = {name: word for name, word in options.items() if name != "flip"}
    found, there = (oc.JointDistribution.from_samples(*a, **b) for a, b in (((p, y), words), ((P, Y), {})))
    found = found.flip() if flip else found
    assert found.predictions.tolist() == pytest.approx(there.predictions.tolist(), abs=1e-15)
    assert (found.counts == there.counts).all()
    assert (found.positives == there.positives).all()
    if not flip:
        assert oc.measures.cdl(p, y, **words) == oc.evaluate(p, y, **words)["cdl"] == oc.measures.cdl(P, Y)
        mended = oc.fit_recalibration(p, y, "platt", **words), oc.fit_recalibration(P, Y, "platt")
        assert mended[0](P).tolist() == mended[1](P).tolist()
        assert oc.calibration_line(p, y, **words) == oc.calibration_line(P, Y)


def test_rows_that_are_dropped_go_with_what_is_beside_them():
    p, y, keep = [0.3, 0.6, 0.6, 0.8, 0.9], ["a", "b", "?", "b", "a"], [0, 1, 3, 4]
    words = {"positive": "b", "drop": "?"}
    w, c = np.array([1.0, 2.0, 9.0, 1.0, 3.0]), np.array(["k", "k", "l", "m", "n"])
    own = np.array(p)[keep], np.array([0, 1, 1, 0])
    found, there = (
        oc.evaluate(*a, weights=w[b], clusters=c[b], measures=["brier"], **o)
        for a, b, o in (((p, y), slice(None), words), (own, keep, {}))
    )
    pd.testing.assert_frame_equal(found.table(), there.table())
    times, options = np.arange(5.0), {"forecaster": "calibeating", "measures": ["brier"]}
    found = oc.recalibrate(p, y, times=times, **options, **words)
    assert found.forecasts.tolist() == oc.recalibrate(*own, times=times[keep], **options).forecasts.tolist()
    one, other = oc.Monitor(), oc.Monitor()
    one.update(p, y, **words)
    other.update(*own)
    assert (one.events, one.log_e) == (other.events, other.log_e)


def test_names_of_scikit_learn(seed):
    """Against scikit-learn's own functions; its weights of a curve have no counterpart there."""
    rng = np.random.default_rng(seed)
    p = rng.random(300)
    y, w = np.where(rng.random(300) < p, "b", "a"), rng.random(300)
    given = {"y_true": y, "pos_label": "b"}
    assert oc.measures.brier(y_prob=p, sample_weight=w, **given) == pytest.approx(
        brier_score_loss(y, p, sample_weight=w, pos_label="b")
    )
    table = reliability_table(y_score=p, n_bins=7, strategy="uniform", **given)
    means, predictions = calibration_curve(y, p, pos_label="b", n_bins=7)
    points = table[table["mark"] == "point"]
    assert points["mean"].to_numpy() == pytest.approx(means)
    assert points["prediction"].to_numpy() == pytest.approx(predictions)
    figure = oc.plots.from_predictions(y, p, n_bins=7, pos_label="b", name="mine")
    assert figure.axes[0].get_title().startswith("mine\nECE of 7 bins")
    assert oc.measures.binned_ece(y_proba=p, n_bins=7, strategy="uniform", **given) == (
        oc.measures.binned_ece(p, y == "b", bins=7, strategy="width")
    )


def test_a_name_and_its_synonym_are_refused():
    for of in (
        oc.measures.binned_ece,
        oc.evaluate,
        oc.calibration_line,
        oc.plots.reliability,
        oc.fit_recalibration,
    ):
        for given, options in (
            ((P, Y), {"y_true": Y}), ((P,), {"y": Y, "y_true": Y}), ((), {"y": Y, "p": P, "y_prob": P}),
            ((P, Y), {"weights": Y, "sample_weight": Y}),
        ):  # fmt: skip
            with pytest.raises(InvalidParameter, match="mean the same; expected one of them"):
                of(*given, **options)
        with pytest.raises((UnknownParameter, TypeError), match="did you mean 'weights'"):
            of(P, Y, wieghts=Y)
    with pytest.raises(InvalidParameter, match="p is given twice"):
        oc.measures.ece(Y, p=P)
    gamma = oc.JointDistribution.from_samples(P, Y)
    for of in (oc.measures.ece, oc.plots.reliability, oc.evaluate):
        with pytest.raises(InvalidParameter, match="beside a JointDistribution"):
            of(gamma, weights=Y)
