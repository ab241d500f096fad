"""Recalibration in the protocols of scikit-learn and river."""

import datetime as dt
import pickle
import subprocess
import sys

import numpy as np
import pytest
from river import checks, evaluate, linear_model, metrics
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import check_estimator

import onlinecal as oc
from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.recalibration.estimator import CHUNK
from onlinecal.recalibration.river_model import BaseForecast


def stream(seed, n=400):
    rng = np.random.default_rng(seed)
    p = np.round(rng.random(n), 2)
    return p, (rng.random(n) < p**2).astype(int)


# ---------------------------------------------------------------- scikit-learn


@pytest.mark.parametrize(
    "estimator",
    [
        oc.RecalibratedClassifier(),
        oc.RecalibratedClassifier(LogisticRegression(), forecaster="platt"),
    ],
    ids=["default", "platt"],
)
def test_scikit_learns_own_checks(estimator):
    found = check_estimator(estimator, on_skip=None, on_fail=None)
    assert len(found) > 30
    # What cannot be seen here is what needs another array library.
    wrong = {row["check_name"]: row["exception"] for row in found if row["status"] != "passed"}
    assert set(wrong) <= {"check_array_api_input"}


def test_passthrough_is_the_recalibrator(seed):
    p, y = stream(seed)
    model = oc.RecalibratedClassifier("passthrough", forecaster="tracking").fit(p[:, None], y)
    mine = oc.Recalibrator("tracking")
    for a, b in zip(p.tolist(), y.tolist(), strict=True):
        mine.tell(mine.ask(a), b)
    said = model.predict_proba(np.array([[0.2], [0.9], [0.2]]))
    assert said[:, 1].tolist() == [mine.mean(0.2), mine.mean(0.9), mine.mean(0.2)]
    assert said.sum(axis=1) == pytest.approx(1.0)
    assert (
        model.predict(p[:, None]) == model.classes_[(model.predict_proba(p[:, None])[:, 1] > 0.5) * 1]
    ).all()
    parts = oc.RecalibratedClassifier("passthrough", forecaster="tracking")
    for at in range(0, len(p), 37):
        parts.partial_fit(p[at : at + 37, None], y[at : at + 37], classes=[0, 1])
    assert (parts.predict_proba(p[:, None]) == model.predict_proba(p[:, None])).all()


def test_partial_fit_forecasts_before_it_learns(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(3 * CHUNK, 2))
    y = (X[:, 0] + rng.normal(size=len(X)) > 0).astype(int)
    model = oc.RecalibratedClassifier(GaussianNB()).partial_fit(X, y, classes=[0, 1])
    base, mine = GaussianNB(), oc.Recalibrator()
    for at in range(0, len(X), CHUNK):
        part = slice(at, at + CHUNK)
        forecasts = base.predict_proba(X[part])[:, 1] if at else np.full(CHUNK, 0.5)
        for a, b in zip(forecasts.tolist(), y[part].tolist(), strict=True):
            mine.tell(mine.ask(a), b)
        base.partial_fit(X[part], y[part], classes=[0, 1])
    for row in X[:20]:
        assert model.predict_proba([row])[0, 1] == mine.mean(float(base.predict_proba([row])[0, 1]))


def test_it_mends_naive_bayes(seed):
    # Five copies of one feature: naive Bayes counts it five times. Test rows 4000; the Brier score falls from 0.2 by
    # 0.03, and its standard error is below 0.004.
    rng = np.random.default_rng(seed)
    x = rng.normal(size=8000)
    X, y = np.repeat(x[:, None], 5, axis=1), (rng.random(8000) < 1 / (1 + np.exp(-x))).astype(int)
    plain = GaussianNB().fit(X[:4000], y[:4000]).predict_proba(X[4000:])[:, 1]
    mended = oc.RecalibratedClassifier(GaussianNB()).fit(X[:4000], y[:4000]).predict_proba(X[4000:])[:, 1]
    assert oc.measures.brier(mended, y[4000:]) < oc.measures.brier(plain, y[4000:]) - 0.01
    assert oc.measures.smooth_ce(mended, y[4000:]) < 0.5 * oc.measures.smooth_ce(plain, y[4000:])


def test_what_scikit_learn_users_get_wrong():
    X, y = np.linspace(0, 1, 10)[:, None], np.tile([0, 1], 5)
    with pytest.raises(ValueError, match="passthrough"):
        oc.RecalibratedClassifier("passthrough").fit(45 * X, y)
    with pytest.raises(ValueError, match="binary"):
        oc.RecalibratedClassifier().fit(X, np.arange(10) % 3)
    assert not hasattr(oc.RecalibratedClassifier(LogisticRegression()), "partial_fit")
    with pytest.raises(InvalidParameter, match="estimator"):
        oc.RecalibratedClassifier("other").fit(X, y)
    with pytest.raises(ValueError, match="classes"):
        oc.RecalibratedClassifier().partial_fit(X, y).partial_fit(X, y + 1)


# ---------------------------------------------------------------- river


@pytest.mark.parametrize(
    "model",
    [
        oc.RiverRecalibrator(linear_model.LogisticRegression()),
        oc.RiverRecalibrator(linear_model.LogisticRegression(), "platt", open_at_most=3),
    ],
    ids=["default", "platt"],
)
def test_rivers_own_checks(model):
    found = [check(model.clone()) for check in checks.yield_checks(model)]
    assert len(found) > 20


def test_river_is_the_recalibrator(seed):
    p, y = stream(seed)
    model, mine = oc.RiverRecalibrator(BaseForecast("p"), "platt"), oc.Recalibrator("platt")
    for a, b in zip(p.tolist(), y.tolist(), strict=True):
        asked = mine.ask(a)
        assert model.predict_proba_one({"p": a}) == {False: 1.0 - asked.mean, True: asked.mean}
        model.learn_one({"p": a}, bool(b))
        mine.tell(asked, b)


def test_labels_may_come_late(seed):
    # Questions a day apart, labels three and a half days later: the recalibrator hears of each with the forecast that
    # the classifier had when it was asked.
    p, y = stream(seed, 60)
    start = dt.datetime(2026, 1, 1)
    data = [
        ({"day": start + dt.timedelta(days=i), "forecast": float(a), "number": i}, bool(b))
        for i, (a, b) in enumerate(zip(p, y, strict=True))
    ]
    model = oc.RiverRecalibrator(BaseForecast())
    metric = metrics.LogLoss()
    steps = evaluate.iter_progressive_val_score(
        data, model, metric, moment="day", delay=dt.timedelta(days=3, hours=12), yield_predictions=True
    )
    said = [step["Prediction"][True] for step in steps]
    days = np.arange(60)
    wanted = oc.recalibrate(p, y, times=days, known=days + 3.5, measures=["brier"]).forecasts
    assert said == wanted.tolist()
    assert not model._open


def test_equal_questions_and_forgotten_ones():
    model = oc.RiverRecalibrator(BaseForecast("p"), "calibeating", open_at_most=2)
    for p in (0.1, 0.3, 0.3, 0.5, 0.7):
        model.predict_proba_one({"p": p})
    assert len(model._open) == 2
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


# ---------------------------------------------------------------- where they are not installed


@pytest.mark.parametrize(
    ("library", "uses"),
    [
        (
            "sklearn",
            {
                "oc.RecalibratedClassifier": "needs scikit-learn",
                "oc.Recalibrator('isotonic_refitted')": "is fitted by scikit-learn",
                "oc.Recalibrator('platt')": "",
            },
        ),
        ("river", {"oc.RiverRecalibrator": "needs river"}),
    ],
)
def test_without_the_libraries(library, uses):
    code = (
        "import sys, importlib.util, onlinecal as oc\n"
        f"sys.modules[{library!r}] = None\n"
        "found = importlib.util.find_spec\n"
        f"importlib.util.find_spec = lambda name, *a: None if name == {library!r} else found(name, *a)\n"
        "from onlinecal import *\n"
    )
    for use in uses:
        code += (
            f"try:\n    {use}\n    print()\nexcept oc.errors.InvalidParameter as error:\n    print(error)\n"
        )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    for words, said in zip(uses.values(), done.stdout.splitlines(), strict=True):
        assert (words in said) if words else not said
