"""Recalibration in the protocols of scikit-learn and river."""

import datetime as dt
import pickle

import numpy as np
import pytest
from river import checks, evaluate, linear_model, metrics
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import check_estimator

import onlinecal as oc
from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.recalibration.river_model import BaseForecast
from tests.marks import slow


def stream(seed, n=400):
    rng = np.random.default_rng(seed)
    p = np.round(rng.random(n), 2)
    return p, (rng.random(n) < p**2).astype(int)


def taught(mine, p, y):
    for a, b in zip(np.asarray(p).tolist(), np.asarray(y).tolist(), strict=True):
        mine.tell(mine.ask(a), b)
    return mine


# ---------------------------------------------------------------- scikit-learn


@pytest.mark.parametrize(("estimator", "way"), [(None, "aggregated"), slow((LogisticRegression(), "platt"))])
def test_scikit_learns_own_checks(estimator, way):
    found = check_estimator(oc.RecalibratedClassifier(estimator, forecaster=way), on_skip=None, on_fail=None)
    assert len(found) > 30
    # Only what needs another array library cannot be seen here. Copies of a row are told one by one, in a random order.
    wrong = {row["check_name"]: row["exception"] for row in found if row["status"] != "passed"}
    assert set(wrong) <= {"check_array_api_input", "check_sample_weight_equivalence_on_dense_data"}


def test_passthrough_is_the_recalibrator(seed):
    p, y = stream(seed)
    model = oc.RecalibratedClassifier("passthrough", forecaster="tracking", shuffle=False).fit(p[:, None], y)
    mine = taught(oc.Recalibrator("tracking"), p, y)
    said = model.predict_proba(p[:, None])
    assert said[:, 1].tolist() == [mine.mean(a) for a in p.tolist()]
    assert said.sum(axis=1) == pytest.approx(1.0)
    assert (model.predict(p[:, None]) == model.classes_[(said[:, 1] > 0.5) * 1]).all()
    parts = oc.RecalibratedClassifier("passthrough", forecaster="tracking")
    for at in range(0, len(p), 37):
        parts.partial_fit(p[at : at + 37, None], y[at : at + 37], classes=[0, 1])
    assert (parts.predict_proba(p[:, None]) == said).all()


@pytest.mark.parametrize(
    ("rare", "options", "folds"),
    [(100, {}, 5), (100, {"cv": 2}, 2), (3, {"cv": 5}, 3), (2, {}, 2), (1, {}, None)],
)
def test_fit_forecasts_rows_that_were_not_seen_in_a_random_order(rare, options, folds, seed):
    """In as many folds as the smaller class has rows, at most; a class of one row by what has seen all."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(200, 2)), (np.arange(200) < rare).astype(int)
    model = oc.RecalibratedClassifier(GaussianNB(), seed=seed, **options).fit(X, y)
    base = GaussianNB().fit(X, y)
    forecasts = base.predict_proba(X)[:, 1]
    if folds is not None:
        forecasts = cross_val_predict(GaussianNB(), X, y, cv=folds, method="predict_proba")[:, 1]
    order = np.arange(200)
    np.random.default_rng(seed).shuffle(order)
    mine = taught(oc.Recalibrator(), forecasts[order], y[order])
    for row in X[:20]:
        assert model.predict_proba([row])[0, 1] == mine.mean(float(base.predict_proba([row])[0, 1]))


def test_partial_fit_forecasts_256_rows_before_it_learns(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(3 * 256, 2))
    y = (X[:, 0] + rng.normal(size=len(X)) > 0).astype(int)
    model = oc.RecalibratedClassifier(GaussianNB()).partial_fit(X, y, classes=[0, 1])
    base, mine = GaussianNB(), oc.Recalibrator()
    for at in range(0, len(X), 256):
        part = slice(at, at + 256)
        taught(mine, base.predict_proba(X[part])[:, 1] if at else np.full(256, 0.5), y[part])
        base.partial_fit(X[part], y[part], classes=[0, 1])
    for row in X[:20]:
        assert model.predict_proba([row])[0, 1] == mine.mean(float(base.predict_proba([row])[0, 1]))


def test_what_scikit_learn_users_get_wrong():
    X, y, model = np.linspace(0, 1, 10)[:, None], np.tile([0, 1], 5), oc.RecalibratedClassifier
    assert not hasattr(model(LogisticRegression()), "partial_fit")
    for wrong, error, words in (
        (lambda: model("passthrough").fit(45 * X, y), ValueError, "passthrough"),
        (lambda: model("passthrough").fit(-X, y), ValueError, r"1 column\(s\) from -1 to -?0; 'passthrough'"),
        (lambda: model("passthrough").fit(np.hstack([X, X]), y), ValueError, r"X has 2 column\(s\)"),
        (lambda: model().fit(X, np.arange(10) % 3), ValueError, "binary"),
        (lambda: model("other").fit(X, y), InvalidParameter, "estimator"),
        # With one fold forecasts would be of rows that were seen.
        *(
            (lambda cv=cv: model(cv=cv).fit(X, y), InvalidParameter, "cv = .*; expected an integer ≥ 2")
            for cv in (1, "5")
        ),
        (lambda: model().partial_fit(X, y).partial_fit(X, y + 1), ValueError, "classes"),
    ):
        with pytest.raises(error, match=words):
            wrong()


# ---------------------------------------------------------------- river


@pytest.mark.parametrize(
    "options", [{}, {"forecaster": "platt", "open_at_most": 3}], ids=["default", "platt"]
)
def test_rivers_own_checks(options):
    model = oc.RiverRecalibrator(linear_model.LogisticRegression(), **options)
    assert len([check(model.clone()) for check in checks.yield_checks(model)]) > 20


def test_labels_may_come_late(seed):
    """Questions a day apart, labels three and a half days later. The recalibrator hears of each with the forecast that
    the classifier had when it was asked."""
    p, y = stream(seed, 60)
    model, start, days = oc.RiverRecalibrator(BaseForecast()), dt.datetime(2026, 1, 1), np.arange(60)
    data = [
        ({"day": start + dt.timedelta(days=i), "forecast": float(a), "number": i}, bool(b))
        for i, (a, b) in enumerate(zip(p, y, strict=True))
    ]
    steps = evaluate.iter_progressive_val_score(
        data, model, metrics.LogLoss(), moment="day", delay=dt.timedelta(days=3, hours=12), yield_predictions=True
    )  # fmt: skip
    said = [step["Prediction"] for step in steps]
    wanted = oc.recalibrate(p, y, times=days, known=days + 3.5, measures=["brier"]).forecasts
    assert said == [{False: 1.0 - a, True: a} for a in wanted.tolist()]
    assert not model._open


def test_equal_questions_and_forgotten_ones():
    model = oc.RiverRecalibrator(BaseForecast("p"), "calibeating", open_at_most=2)
    for p in (0.1, 0.3, 0.3, 0.5, 0.7):
        model.predict_proba_one({"p": p})
    assert len(model._open) == 2
    assert 500 < model._raw_memory_usage < 50_000  # without compiled code, of which parts may be gone
    for p in (0.1, 0.3, 0.3, 0.7):
        model.learn_one({"p": p}, True)
    assert model._recalibrator.told == 4
    other = pickle.loads(pickle.dumps(model))
    assert other.predict_proba_one({"p": 0.3}) == model.predict_proba_one({"p": 0.3})
    assert model.predict_proba_one({"p": 0.3})[True] == pytest.approx(2.3 / 3)
    model.learn_one({"p": 0.5, "list": [1]}, False)
    with pytest.raises(InvalidData):
        model.learn_one({"p": 0.5}, "yes")
    named = oc.RiverRecalibrator(BaseForecast("p"), positive="yes", negative="no")
    assert named.predict_proba_one({"p": 0.7}) == {"no": pytest.approx(0.3), "yes": pytest.approx(0.7)}
    named.learn_one({"p": 0.5}, "yes")
    assert named.predict_one({"p": 0.5}) == "yes"
