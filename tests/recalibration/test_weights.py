"""Weights of rows that are recalibrated count rows."""

import numpy as np
import pytest
from river import linear_model, naive_bayes
from sklearn.linear_model import LogisticRegression

import onlinecal as oc
from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.logs.regression import isotonic
from onlinecal.recalibration import estimator
from onlinecal.recalibration.maps import FITS
from onlinecal.recalibration.river_model import BaseForecast

AT = np.linspace(0.0, 1.0, 23)


def rows(seed, n=60):
    rng = np.random.default_rng(seed)
    p = np.round(rng.random(n), 2)
    return p, (rng.random(n) < p**2).astype(int), rng.integers(0, 4, n)


@pytest.mark.parametrize("method", FITS)
def test_a_weight_counts_rows(method, seed):
    p, y, w = rows(seed)
    found = oc.fit_recalibration(p, y, method, weights=w)(AT)
    assert found == pytest.approx(
        oc.fit_recalibration(np.repeat(p, w), np.repeat(y, w), method)(AT), abs=1e-9
    )
    assert found == pytest.approx(
        oc.fit_recalibration(p, y, method, sample_weight=w * (1.0 + 1e-12))(AT), abs=1e-6
    )
    with pytest.raises(InvalidData, match=r"all .* outcomes are 1"):
        oc.fit_recalibration(p, y, method, weights=y)


def test_venn_abers_of_weights_is_two_regressions(seed):
    p, y, _ = rows(seed, 25)
    w = np.random.default_rng(seed).exponential(size=25)
    lower, upper = oc.fit_recalibration(p, y, "venn_abers", weights=w).interval(AT)
    for i, v in enumerate(AT):
        for end, outcome in ((lower, 0), (upper, 1)):
            gamma = oc.JointDistribution.from_samples(
                np.append(p, v), np.append(y, outcome), weights=np.append(w, 1.0)
            )
            assert end[i] == pytest.approx(isotonic(gamma)[np.searchsorted(gamma.predictions, v)], abs=1e-12)


@pytest.mark.parametrize("shuffle", [True, False])
def test_scikit_learn_takes_rows_as_often_as_they_count(shuffle, seed):
    p, y, w = rows(seed)
    X, model = p[:, None], oc.RecalibratedClassifier("passthrough", forecaster="platt", shuffle=shuffle)
    many = model.fit(np.repeat(X, w, axis=0), np.repeat(y, w)).predict_proba(AT[:, None])
    assert (model.fit(X, y, sample_weight=w).predict_proba(AT[:, None]) == many).all()
    parts, halves = (oc.RecalibratedClassifier("passthrough", forecaster="platt") for _ in range(2))
    for at in range(0, len(p), 7):
        part = slice(at, at + 7)
        parts.partial_fit(X[part], y[part], classes=[0, 1], sample_weight=w[part] + (w[part] == 0).all())
        halves.partial_fit(
            np.repeat(X[part], 2, axis=0), np.repeat(y[part], 2), [0, 1], np.full(2 * len(p[part]), 0.5)
        )
    plain = oc.RecalibratedClassifier("passthrough", forecaster="platt").partial_fit(X, y, classes=[0, 1])
    assert (halves.predict_proba(AT[:, None]) == plain.predict_proba(AT[:, None])).all()
    assert parts.recalibrator_.told >= w.sum()


def test_the_classifier_is_given_the_weights(seed):
    p, y, w = rows(seed)
    model = oc.RecalibratedClassifier(LogisticRegression()).fit(p[:, None], y, sample_weight=w)
    own = LogisticRegression().fit(p[:, None], y, sample_weight=w)
    assert model.estimator_.coef_ == pytest.approx(own.coef_)
    for bad, said in (
        ([-1] * 60, "sample_weight"), ([1.0], "60 values"), ([np.nan] * 60, "nan"), ([1e9] * 60, "at most 10,000,000"),
        ([1 / 60] * 60, "sums to 1 of 60 rows; expected at least 6"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=said):
            model.fit(p[:, None], y, sample_weight=bad)


@pytest.mark.parametrize(("last", "taken"), [(0.4375, True), (0.4374, False)])
def test_weights_have_a_mean_of_a_tenth_at_least(last, taken):
    X, y = np.linspace(0.0, 1.0, 10)[:, None], np.arange(10) % 2
    model = oc.RecalibratedClassifier("passthrough")
    if taken:
        assert model.fit(X, y, sample_weight=[0.0625] * 9 + [last]).recalibrator_.told == 1
    else:
        with pytest.raises(ValueError, match="of 10 rows; expected at least 1"):
            model.fit(X, y, sample_weight=[0.0625] * 9 + [last])


@pytest.mark.parametrize(("last", "taken"), [(4.0, True), (4.25, False)])
def test_weights_sum_to_ten_million_at_most(monkeypatch, last, taken):
    """Here to ten."""
    monkeypatch.setattr(estimator, "MOST", 10)
    X, y, model = np.array([[0.2], [0.6], [0.4]]), [0, 1, 0], oc.RecalibratedClassifier("passthrough")
    if taken:
        assert model.fit(X, y, sample_weight=[2.0, 4.0, last]).recalibrator_.told == 10
    else:
        with pytest.raises(ValueError, match=r"sums to 10\.25; expected at most 10: it counts rows"):
            model.fit(X, y, sample_weight=[2.0, 4.0, last])


def test_river_takes_labels_as_often_as_they_count(seed):
    p, y, w = rows(seed)
    many, one = (oc.RiverRecalibrator(BaseForecast("p"), "platt") for _ in range(2))
    for a, b, k in zip(p.tolist(), y.tolist(), w.tolist(), strict=True):
        one.predict_proba_one({"p": a})
        one.learn_one({"p": a}, bool(b), w=k)
        for _ in range(k):
            many.learn_one({"p": a}, bool(b))
    assert [one.predict_proba_one({"p": a}) for a in AT] == [many.predict_proba_one({"p": a}) for a in AT]
    heavy = oc.RiverRecalibrator(BaseForecast("p"), "unchanged")
    heavy.learn_one({"p": 0.5}, True, w=10_000)
    assert heavy._recalibrator.told == 10_000
    for w in (-1, 10_001):
        with pytest.raises(InvalidParameter, match=f"w = {w}"):
            one.learn_one({"p": 0.5}, True, w=w)
    # The classifier is given the weight, if its method takes one.
    own, mine = linear_model.LogisticRegression(), linear_model.LogisticRegression()
    own.learn_one({"x": 1.0}, True, w=0.5)
    for classifier in (mine, naive_bayes.GaussianNB()):
        oc.RiverRecalibrator(classifier).learn_one({"x": 1.0}, True, w=0.5)
    assert dict(mine.weights) == dict(own.weights)
    # What does not count is not learnt, by one that takes no weights either.
    none = naive_bayes.GaussianNB()
    oc.RiverRecalibrator(none).learn_one({"x": 1.0}, False, w=0.0)
    assert not none.class_counts


def test_river_tells_the_rest_of_a_weight_with_later_labels():
    """Rounded: a half is told at once, and the other half later."""
    model, told = oc.RiverRecalibrator(BaseForecast("p"), "platt"), []
    for w in (0.5, 0.5, 0.25, 0.25, 2.75, 0.0):
        model.learn_one({"p": 0.5}, True, w=w)
        told.append(model._recalibrator.told)
    assert told == [1, 1, 1, 2, 4, 4]
