"""Recalibration on a stream: the rules of the forecasters, no look ahead, late outcomes, and what is refused."""

import copy
import math
import pickle

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidData, InvalidForecast, InvalidParameter, UnknownName
from onlinecal.core.joint import JointDistribution
from onlinecal.forecasters import Calibeating, Doubling, ForecastHedging, OnlinePlatt, Scalar, Separate
from onlinecal.recalibration.change import for_the_worse
from onlinecal.recalibration.methods import METHODS, method
from onlinecal.recalibration.recalibrator import Recalibrator
from onlinecal.recalibration.replay import recalibrate

#: who recalibrates, with what it needs
WAYS = [
    *((name, None) for name in METHODS),
    ("forecast_hedging", 4), ("cdl_minimiser", 3), ("empirical_mean", 5), ("foster_vohra", 2),
    ({"name": "calibeating", "bins": 7}, None), (OnlinePlatt(rate=0.2), None), ("calibeating", 3),
]  # fmt: skip
IDS = [f"{i}-{name if isinstance(name, str) else 'given'}-{bins}" for i, (name, bins) in enumerate(WAYS)]


def stream(seed, n=300):
    rng = np.random.default_rng(seed)
    p = np.round(rng.random(n), 2)
    return p, (rng.random(n) < p**2).astype(float)


# ---------------------------------------------------------------- what comes out


def test_calibeating_by_its_definition(seed):
    p, y = stream(seed)
    found = recalibrate(p, y, "calibeating", measures=["brier"])
    seen = {}
    for one, outcome, made in zip(p, y, found.forecasts, strict=True):
        bucket = seen.setdefault(math.floor(round(one * 100)) // 5 if one < 1 else 19, [])
        assert made == pytest.approx(np.mean([*bucket, one]), abs=1e-15)
        bucket.append(outcome)
    assert found.before["brier"] == pytest.approx(((p - y) ** 2).mean())
    assert found.after["brier"] == pytest.approx(((found.forecasts - y) ** 2).mean())


def test_the_games_of_the_engine_come_out_the_same(seed, tmp_path):
    # A forecaster that does not draw says here what it says in a game against the same stream.
    p, y = stream(seed, 60)
    file = tmp_path / "stream.csv"
    file.write_text("p,outcome\n" + "".join(f"{a},{b:g}\n" for a, b in zip(p, y, strict=True)))
    nature = oc.natures.Replay(file=str(file), base="p")
    for forecaster in (Calibeating(bins=6), OnlinePlatt()):
        game = oc.play(forecaster, nature, horizon=60, runs=1, measures=["brier"])
        made = recalibrate(p, y, forecaster, measures=["brier"])
        assert game.curve("brier").mean[-1] == pytest.approx(60 * made.after["brier"], rel=1e-12)


@pytest.mark.parametrize(("way", "bins"), WAYS, ids=IDS)
def test_another_future_changes_nothing_before_it(way, bins, seed):
    p, y = stream(seed, 70)
    times = np.repeat(np.arange(35), 2)
    known = times + np.random.default_rng(seed).integers(0, 9, 70)
    for cut in (1, 40):
        other_p, other_y = p.copy(), y.copy()
        other_p[cut:] = 1.0 - other_p[cut:]
        other_y[cut:] = 1.0 - other_y[cut:]
        for more in ({}, {"times": times}, {"times": times, "known": known}):
            whole, changed = (
                recalibrate(a, b, way, bins=bins, measures=["brier"], **more).forecasts
                for a, b in ((p, y), (other_p, other_y))
            )
            assert whole[:cut].tobytes() == changed[:cut].tobytes()
            short = {key: values[: max(cut, 2)] for key, values in more.items()}
            first = recalibrate(
                p[: max(cut, 2)], y[: max(cut, 2)], way, bins=bins, measures=["brier"], **short
            )
            assert whole[: max(cut, 2)].tobytes() == first.forecasts.tobytes()


@pytest.mark.parametrize(("way", "bins"), WAYS, ids=IDS)
def test_outcomes_that_are_not_known_yet_change_nothing(way, bins, seed):
    # The outcome of row i is known at time i + 10: rows up to i + 10 are the same whatever it is.
    p, y = stream(seed, 80)
    times = np.arange(80)
    base = recalibrate(p, y, way, bins=bins, times=times, known=times + 10, measures=["brier"]).forecasts
    assert ((base >= 0.0) & (base <= 1.0)).all()
    for i in (0, 33):
        other = y.copy()
        other[i] = 1.0 - other[i]
        made = recalibrate(
            p, other, way, bins=bins, times=times, known=times + 10, measures=["brier"]
        ).forecasts
        assert made[: i + 11].tobytes() == base[: i + 11].tobytes()


def test_a_look_ahead_would_be_found():
    # The control: outcomes known at once move what comes within the delay.
    p, y = np.full(60, 0.5), np.tile([0.0, 1.0], 30)
    times = np.arange(60)
    late = recalibrate(p, y, "calibeating", times=times, known=times + 10, measures=["brier"]).forecasts
    soon = recalibrate(p, y, "calibeating", times=times, measures=["brier"]).forecasts
    assert (late[:11] == 0.5).all()
    assert soon[1] == 0.25
    assert late[11] == 0.25  # of the first outcome, which is 0


def test_forecasts_of_one_time_do_not_know_each_others_outcomes():
    p, y = np.full(6, 0.5), np.array([1.0, 1.0, 0.0, 0.0, 0.0, 1.0])
    times = [0, 0, 0, 1, 1, 2]
    made = recalibrate(p, y, "calibeating", times=times, measures=["brier"]).forecasts
    assert made.tolist() == pytest.approx([0.5, 0.5, 0.5, 2.5 / 4, 2.5 / 4, 2.5 / 6])
    # Known at the time of the next forecasts is too late for them.
    known = [1, 1, 1, 2, 2, 9]
    made = recalibrate(p, y, "calibeating", times=times, known=known, measures=["brier"]).forecasts
    assert made.tolist() == pytest.approx([0.5, 0.5, 0.5, 0.5, 0.5, 2.5 / 4])


def test_outcomes_that_never_come_are_learnt_from_by_nobody():
    p, y = np.full(5, 0.5), np.array([1.0, np.nan, 0.0, np.nan, 1.0])
    made = recalibrate(p, y, "calibeating", measures=["brier"])
    assert made.forecasts.tolist() == [0.5, 0.75, 0.75, 0.5, 0.5]
    assert made.before.gamma.weight == 3
    some, known = [0, 2, 4], [np.nan, 1, 2]
    never = recalibrate(p[some], y[some], "calibeating", times=[0, 1, 2], known=known, measures=["brier"])
    assert never.forecasts.tolist() == [0.5, 0.5, 0.25]


def test_it_mends_what_is_wrong(seed):
    # y ~ Ber(p²): recalibration gains (p − p²)² on average, 1/30, less what learning costs. 3000 rounds; the standard
    # error of the mean difference is below 0.004, so half of the gain is five of them away: failures < 1e-6.
    p, y = stream(seed, 3000)
    for way, bins in (("aggregated", None), ("calibeating", None), ("platt", None), ("isotonic_refitted", None),
                      ("platt_refitted", None), ("smooth_refitted", None), ("cdl_minimiser", 20)):  # fmt: skip
        found = recalibrate(p, y, way, bins=bins, measures=["brier", "smooth_ce"])
        assert found.after["brier"] < found.before["brier"] - 1 / 60 + (way == "cdl_minimiser") / 120
        assert found.after["smooth_ce"] < 0.5 * found.before["smooth_ce"]


@pytest.mark.parametrize("way", METHODS)
def test_none_says_what_an_outcome_makes_infinitely_wrong(way, seed):
    """Few outcomes, forecasts that tell them apart at first and not later: a mean of them alone is 0 or 1."""
    rng = np.random.default_rng(seed)
    p = np.append(np.tile([0.02, 0.98], 30), rng.uniform(0.01, 0.99, 60))
    y = np.append(np.tile([0.0, 1.0], 30), rng.integers(0, 2, 60))
    found = recalibrate(p, y, way, measures=["log_loss"])
    # Half an imagined outcome, and Platt's targets, leave batch methods at least 0.5/120.5 off 0 and 1.
    least = 0.004 if way.endswith("refitted") else 0.0
    assert found.forecasts.min() > least
    assert found.forecasts.max() < 1.0 - least
    assert found.after["log_loss"] < 3.0


@pytest.mark.parametrize("p", [0.5, 0.001, None], ids=["one level", "rare", "all levels"])
def test_the_default_leaves_calibrated_forecasts_nearly_as_good(p, seed):
    """The bounds of `Recalibrator`'s docstring: never broken."""
    rng = np.random.default_rng(seed)
    p = rng.random(2000) if p is None else np.full(2000, p)
    y = (rng.random(2000) < p) * 1.0
    found = recalibrate(p, y, measures=["brier", "log_loss"])
    assert 2000 * (found.after["brier"] - found.before["brier"]) <= 1.05
    assert 2000 * (found.after["log_loss"] - found.before["log_loss"]) <= 2.09


class Overreacting:
    """Expects the last outcome to come again."""

    def __init__(self):
        self.last = 0.9

    def forecast(self):
        return self.last

    def update(self, forecast, outcome):
        self.last = 0.1 + 0.8 * outcome


def test_a_change_for_the_worse_is_told():
    """With both numbers, to as many digits as tell them apart, and what to do about it."""
    p, y = np.full(40, 0.5), np.tile([0.0, 0.0, 1.0, 1.0], 10)
    worse = recalibrate(p, y, "calibeating", measures=["smooth_ce"])
    before, after = 0.25, float(((worse.forecasts - y) ** 2).mean())
    brier, log, todo = worse.cautions
    assert brier == f"The Brier score became worse: {before:.4g} before, {after:.4g} after."
    assert log.startswith("The log loss became worse: 0.6931 before, 0.7")
    assert todo == "Without intervals of the changes it is not known whether this is more than chance."
    assert " ".join(worse.cautions) in " ".join(str(worse).split())
    few = recalibrate(p, y, measures=["brier"], bootstrap=100)
    assert few.changes[0].interval[0] <= 0.0 < few.changes[0].ends[0]
    assert few.cautions[-1] == "No interval of these changes is above 0: they may be chance."
    late = recalibrate(
        p, np.tile([0.0, 1.0], 20), Scalar(Overreacting), bins=1, measures=["brier"], bootstrap=100
    )
    assert late.changes[0].interval[0] > 0.0
    keep = "Keep the forecasts as they were, or use the default, 'aggregated', which can fall back on them."
    assert late.cautions[-1] == keep
    for way, base in (("unchanged", p), ("aggregated", np.where(y == 1.0, 0.2, 0.8))):
        same = recalibrate(base, y, way, measures=["smooth_ce"])
        assert same.cautions == ()
        assert "caution" not in str(same)
    said = for_the_worse(*(JointDistribution.from_samples(q, [1, 0]) for q in ([0.5, 0.5], [0.5, 1.0])))
    assert (
        said[1]
        == "The log loss became worse: 0.6931 before, infinite after: 0 or 1 was forecast and was wrong."
    )
    close = JointDistribution.from_samples([0.5 + 1e-7, 0.5], [0, 1])
    assert (
        "0.25 before, 0.2500001 after"
        in for_the_worse(JointDistribution.from_samples([0.5] * 2, [0, 1]), close)[0]
    )


def test_before_and_after_have_intervals():
    p, y = stream(0, 200)
    found = recalibrate(p, y, measures=["brier", "smooth_ce"], bootstrap=50)
    assert str(found.before) == str(oc.evaluate(p, y, measures=["brier", "smooth_ce"], bootstrap=50))
    assert str(found.after) == str(
        oc.evaluate(found.forecasts, y, measures=["brier", "smooth_ce"], bootstrap=50)
    )
    text = str(found)
    assert text.splitlines()[0].split() == ["measure", "before", "interval", "after", "interval"]
    for evaluation in (found.before, found.after):
        for row in evaluation.rows:
            assert "[{:.4g}, {:.4g}]".format(*row.interval) in text
    assert [row["measure"] for row in found.as_json()] == ["brier", "smooth_ce"]


# ---------------------------------------------------------------- one by one


@pytest.mark.parametrize(("way", "bins"), WAYS, ids=IDS)
def test_copies_and_pickles_go_on_identically(way, bins, seed):
    p, y = stream(seed, 60)
    mine = Recalibrator(way, bins=bins)
    for a, b in zip(p, y, strict=True):
        mine.tell(mine.ask(float(a)), b)
    open_ = [mine.ask(0.3), mine.ask(0.9)]
    others = [pickle.loads(pickle.dumps((mine, open_))), copy.deepcopy((mine, open_)), (mine, open_)]
    said = []
    for who, questions in others:
        who.tell(questions[1], 1)
        who.tell(questions[0], 0)
        said.append([who.ask(float(one)).forecast for one in p])
    assert said[0] == said[1] == said[2]


@pytest.mark.parametrize(("way", "bins"), WAYS, ids=IDS)
def test_asking_for_the_mean_changes_nothing(way, bins, seed):
    p, y = stream(seed, 40)
    one, two = Recalibrator(way, bins=bins), Recalibrator(way, bins=bins)
    for a, b in zip(p.tolist(), y, strict=True):
        mean = one.mean(a)
        one.mean(1.0 - a)
        first, second = one.ask(a), two.ask(a)
        assert first.forecast == second.forecast
        assert first.mean == mean
        one.tell(first, b)
        two.tell(second, b)


def test_what_is_made_of_a_name():
    assert method("calibeating") == Calibeating()
    assert method("forecast_hedging", bins=3) == Separate(Doubling(ForecastHedging()))
    assert method("forecast_hedging", bins=3, horizon=100) == Separate(ForecastHedging())
    assert method(OnlinePlatt(rate=0.3)) == OnlinePlatt(rate=0.3)


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        *[({"forecaster": name}, InvalidParameter) for name in ("forecast_hedging", "truthful", 3, {"bins": 3})],
        *[(one, InvalidParameter) for one in ({"bins": 0}, {"bins": 2.5}, {"horizon": 0}, {"seed": -1})],
        *[({"times": times}, InvalidData) for times in ([0, 2, 1], [0, 1], [0, 1, np.nan])],
        ({"forecaster": {"name": "platt", "rate": 1}}, InvalidParameter),
        ({"forecaster": "calibeatin"}, UnknownName), ({"measures": ["nothing"]}, UnknownName),
        ({"known": [0, 1, 2]}, InvalidData), ({"times": [0, 1, 2], "known": [0, 0, 2]}, InvalidData),
        ({"times": [0, 1, 2], "known": [0, 1]}, InvalidData),
    ],
)  # fmt: skip
def test_bad_parameters_are_refused(wrong, error):
    with pytest.raises(error) as caught:
        recalibrate([0.2, 0.4, 0.6], [0, 1, 1], **wrong)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("p", "y"),
    [
        ([], []), ([0.5], [1]), ([0.5, 0.5], [1]), ([0.5, 45], [1, 0]), ([0.5, np.nan], [1, 0]), ([0.5, 0.5], [1, 2]),
        ([0.5, 0.5], [np.nan, 1]), (["a", "b"], [0, 1]),
    ],
)  # fmt: skip
def test_bad_samples_are_refused(p, y):
    with pytest.raises(InvalidData):
        recalibrate(p, y)


def test_questions_are_told_once_and_to_whom_they_were_asked():
    mine, other = Recalibrator(), Recalibrator(horizon=1)
    asked = mine.ask(0.5)
    for wrong in (2, 0.5, None, "1", np.nan):
        with pytest.raises(InvalidData):
            mine.tell(asked, wrong)
    for wrong in (45, -0.1, np.nan, "x", None):
        with pytest.raises(InvalidData):
            mine.ask(wrong)
    with pytest.raises(InvalidParameter):
        other.tell(asked, 1)
    mine.tell(asked, True)
    with pytest.raises(InvalidParameter, match="each once"):
        mine.tell(asked, 1)
    other.ask(0.5)
    with pytest.raises(InvalidParameter, match="horizon"):
        other.ask(0.5)
    assert (mine.asked, mine.told, other.asked) == (1, 1, 1)


def test_a_forecaster_that_fails_is_named():
    class Broken:
        def forecast(self):
            return 2.0

        def update(self, forecast, outcome):
            pass

    from onlinecal.forecasters import as_forecaster

    with pytest.raises(InvalidForecast, match="round 1"):
        Recalibrator(as_forecaster(Broken), bins=2).ask(0.5)
