"""Recalibration on a stream: no look ahead, late outcomes, what it changed, with intervals, and files."""

import copy
import json
import math
import os
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import onlinecal as oc
from onlinecal.core.errors import InvalidData, InvalidForecast, InvalidParameter, OnlinecalError, UnknownName
from onlinecal.core.joint import JointDistribution
from onlinecal.forecasters import Calibeating, Doubling, ForecastHedging, OnlinePlatt, Scalar, Separate
from onlinecal.logs.intervals import mean_interval
from onlinecal.logs.reading import Asked
from onlinecal.measures import MEASURES
from onlinecal.recalibration import replay
from onlinecal.recalibration.files import recalibrate_file
from onlinecal.recalibration.methods import METHODS, Refitted, method
from onlinecal.recalibration.recalibrator import Recalibrator
from onlinecal.recalibration.replay import SCORES, changes, for_the_worse, recalibrate
from tests.command_line import onlinecal

#: methods, with the bins that they need
WAYS = [
    *((name, None) for name in METHODS),
    ("forecast_hedging", 4), ("cdl_minimiser", 3), ("empirical_mean", 5), ("foster_vohra", 2),
    ({"name": "calibeating", "bins": 7}, None), (OnlinePlatt(rate=0.2), None), ("calibeating", 3),
]  # fmt: skip
every_way = pytest.mark.parametrize(("way", "bins"), WAYS, ids=range(len(WAYS)))


def stream(seed, n=300):
    rng = np.random.default_rng(seed)
    p = np.round(rng.random(n), 2)
    return p, (rng.random(n) < p**2).astype(float)


def replayed(p, y, way="calibeating", **options):
    return recalibrate(p, y, way, measures=["brier"], **options).forecasts


# ---------------------------------------------------------------- what comes out


@every_way
def test_another_future_changes_nothing_before_it(way, bins, seed):
    """Nor what is not known yet: the outcome of row i is known at times[i] + 10."""
    p, y = stream(seed, 60)
    times = np.repeat(np.arange(30), 2)
    for more in ({}, {"times": times}, {"times": times, "known": times + 10}):
        whole, later = replayed(p, y, way, bins=bins, **more), 20 if "known" in more else 0
        assert ((whole >= 0.0) & (whole <= 1.0)).all()
        for cut in (2, 35):
            other_p, other_y = p.copy(), y.copy()
            other_y[cut:] = 1.0 - y[cut:]
            seen = min(cut // 2 * 2 + later, 60)
            other_p[seen:] = 1.0 - p[seen:]
            assert (
                whole[:seen].tobytes() == replayed(other_p, other_y, way, bins=bins, **more)[:seen].tobytes()
            )
        short = {key: values[:35] for key, values in more.items()}
        assert whole[:35].tobytes() == replayed(p[:35], y[:35], way, bins=bins, **short).tobytes()


def test_outcomes_are_learnt_when_they_are_known():
    """Also the control of the test above: outcomes known at once move what comes within the delay."""
    half = np.full(60, 0.5)
    times, y = np.arange(60), np.tile([0.0, 1.0], 30)
    late, soon = (replayed(half, y, times=times, known=times + delay) for delay in (10, 0))
    assert (late[:11] == 0.5).all()
    assert (soon[1], late[11]) == (0.25, 0.25)  # of the first outcome, which is 0
    # Those of one time do not know each other's. What is known at the time of the next forecasts is too late for them.
    y, times = np.array([1.0, 1.0, 0.0, 0.0, 0.0, 1.0]), [0, 0, 0, 1, 1, 2]
    for known, wanted in (
        (None, [0.5, 0.5, 0.5, 2.5 / 4, 2.5 / 4, 2.5 / 6]),
        ([1, 1, 1, 2, 2, 9], [0.5, 0.5, 0.5, 0.5, 0.5, 2.5 / 4]),
    ):
        assert replayed(half[:6], y, times=times, known=known).tolist() == pytest.approx(wanted)
    # Nothing is learnt from what never comes.
    y = np.array([1.0, np.nan, 0.0, np.nan, 1.0])
    made = recalibrate(half[:5], y, "calibeating", measures=["brier"])
    assert made.forecasts.tolist() == [0.5, 0.75, 0.75, 0.5, 0.5]
    assert made.before.gamma.weight == 3
    never = replayed(half[:3], y[[0, 2, 4]], times=[0, 1, 2], known=[np.nan, 1, 2])
    assert never.tolist() == [0.5, 0.5, 0.25]


#: Σ of the forecasts, and of those of outcomes 1
ON_RECORD = {
    "aggregated": (76.7607492472465, 37.75775782063948), "calibeating": (72.67349090909092, 31.499481637806635),
    "platt": (78.35949774885344, 35.29959541609374), "tracking": (74.03148029724676, 34.03963266328791),
    "isotonic_refitted": (60.19628367065228, 26.991393499078253),
    "platt_refitted": (58.20499293678485, 26.135727754327746),
    "smooth_refitted": (58.6962106092797, 25.859643239693455),
    "venn_abers_refitted": (66.93879497891726, 29.907598608922438),
}  # fmt: skip


@pytest.mark.parametrize("way", METHODS)
def test_numbers_are_those_on_record(way):
    """Of forecasts that are too sure, after 20 outcomes 0. When batch methods are fitted again is seen here alone."""
    p = np.round(np.arange(1, 201) * 0.6180339887498949 % 1.0, 3)
    y = np.where(np.arange(200) < 20, 0.0, np.arange(200) * 7 % 11 < 8.0 * p)
    p[:20] *= 0.4
    made = replayed(p, y, way)
    assert (made.sum(), made @ y) == pytest.approx(ON_RECORD[way], rel=1e-7)


def test_it_mends_what_is_wrong(seed):
    """y ~ Ber(p²): recalibration gains (p − p²)² on average, 1/30, less what learning costs. 3000 rounds; the standard
    error of the mean difference is below 0.004. So half of the gain is five of them away: failures < 1e-6."""
    p, y = stream(seed, 3000)
    for way, bins in (*((name, None) for name in METHODS if name != "tracking"), ("cdl_minimiser", 20)):
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
    assert least < found.forecasts.min() <= found.forecasts.max() < 1.0 - least
    assert found.after["log_loss"] < 3.0


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
    brier, log, todo = worse.cautions
    after = float(((worse.forecasts - y) ** 2).mean())
    assert brier == f"The Brier score became worse: 0.25 before, {after:.4g} after."
    assert log.startswith("The log loss became worse: 0.6931 before, 0.7")
    assert todo.startswith("Without intervals")
    assert " ".join(worse.cautions) in " ".join(str(worse).split())
    few = recalibrate(p, y, measures=["brier"], bootstrap=100)
    assert few.cautions[-1].startswith("No interval of these changes is above 0")
    options = {"bins": 1, "measures": ["brier"], "bootstrap": 100}
    late = recalibrate(p, np.tile([0.0, 1.0], 20), Scalar(Overreacting), **options)
    assert few.changes[0].interval[0] <= 0.0 < late.changes[0].interval[0]
    assert late.cautions[-1].startswith("Keep the forecasts as they were, or use the default, 'aggregated'")
    same = recalibrate(p, y, "unchanged", measures=["smooth_ce"])
    assert (same.cautions, "caution" in str(same)) == ((), False)
    coin = JointDistribution.from_samples([0.5, 0.5], [0, 1])
    (infinite,) = for_the_worse(coin, JointDistribution.from_samples([0.0, 0.5], [1, 0]))[1:]
    assert "0.6931 before, infinite after: 0 or 1 was forecast and was wrong." in infinite
    near, *_ = for_the_worse(coin, JointDistribution.from_samples([0.5 + 1e-7, 0.5], [0, 1]))
    assert "0.25 before, 0.2500001 after" in near


# ---------------------------------------------------------------- intervals of the change

OTHERS = ("smooth_ece", "smooth_ce", "cutoff_ce", "scdl")


def learnt(generator, runs, n, slope):
    """Streams that no sample is drawn from: probabilities wander with the outcomes so far, forecasts learn of them.

    Returns p, what was made of it by means of past outcomes in bins, q = P(y = 1 | past), and y, each (runs, n).
    """
    rows = np.arange(runs)
    ones, counts = np.full((runs, 10), 0.5), np.ones((runs, 10))
    last = np.full(runs, 0.5)
    p, made, q, y = np.empty((4, runs, n))
    for t in range(n):
        p[:, t] = generator.integers(1, 20, runs) / 20
        q[:, t] = np.clip(0.5 + slope * (p[:, t] - 0.5) + 0.2 * (last - 0.5), 0.02, 0.98)
        place = (p[:, t] * 9.999).astype(int)
        made[:, t] = (ones[rows, place] / counts[rows, place]).clip(0.05, 0.95)
        y[:, t] = generator.random(runs) < q[:, t]
        ones[rows, place] += y[:, t]
        counts[rows, place] += 1.0
        last += 0.1 * (y[:, t] - last)
    return p, made, q, y


def expected(score, p, q):
    """Of each forecast, given what was known before it."""
    if score == "brier":
        return q * (1.0 - p) ** 2 + (1.0 - q) * p**2
    return -q * np.log(p) - (1.0 - q) * np.log(1.0 - p)


def rare(generator, runs, n, rate):
    """Likewise of rare events: what was made of p is better."""
    p = 1e-4 + 2.0 * rate * 0.999 * generator.random((runs, n))
    q = 0.5 * (p + rate)
    return p, q, q, (generator.random((runs, n)) < q).astype(float)


@pytest.mark.parametrize(
    ("law", "n", "parameter"),
    [(learnt, 300, 0.4), (learnt, 300, 1.0), *((rare, n, rate) for rate in (0.5, 0.02) for n in (10, 100))],
)
def test_intervals_of_scores_hold_the_mean_expected_difference(law, n, parameter, seed):
    """They are made for 95 %; fewer than the 1e-8 quantile of Binomial(400, 0.93), or 0.94 for rare events. A third as
    wide, they hold 63 %. By Student's law they held 70 % to 93 % for rare events.
    """
    runs = 400
    p, made, q, y = law(np.random.default_rng([seed, 61]), runs, n, parameter)
    held, third = dict.fromkeys(SCORES, 0), dict.fromkeys(SCORES, 0)
    for i in range(runs):
        for name, (low, high) in replay._paired(p[i], made[i], y[i], 199, i).items():
            truth = float((expected(name, made[i], q[i]) - expected(name, p[i], q[i])).mean())
            held[name] += low <= truth <= high
            third[name] += abs(truth - 0.5 * (low + high)) <= (high - low) / 6.0
    assert min(held.values()) >= stats.binom.ppf(1e-8, runs, 0.94 if law is rare else 0.93)
    # Of a true 67 % with a probability below 1e-9 (Hoeffding's inequality).
    assert law is rare or max(third.values()) < 0.84 * runs


def test_intervals_of_other_measures_hold_the_change(full, seed):
    """As above; the truth is the measure with probabilities in the place of outcomes."""
    runs = 200 if full else 25
    p, made, q, y = learnt(np.random.default_rng([seed, 62]), runs, 300, 0.4)
    held = dict.fromkeys(OTHERS, 0)

    def true(name, v, q):
        levels, place = np.unique(v, return_inverse=True)
        counts = np.bincount(place).astype(float)
        gamma = JointDistribution.from_levels(levels, counts, np.bincount(place, q) / counts)
        return MEASURES[name].function(gamma)

    for i in range(runs):
        rows = [oc.evaluate(values, y[i], measures=OTHERS).rows for values in (p[i], made[i])]
        for one in changes(p[i], made[i], y[i], list(zip(*rows, strict=True)), OTHERS, 99, i):
            low, high = one.interval
            assert low <= one.ends[0] <= one.ends[1] <= high
            held[one.measure] += (
                low <= true(one.measure, made[i], q[i]) - true(one.measure, p[i], q[i]) <= high
            )
    for name, many in held.items():
        assert many >= stats.binom.ppf(1e-8, runs, 0.93), name


def test_what_has_no_change_has_none():
    sure = recalibrate([0.0] * 40 + [0.5], [1.0] + [0.0] * 40, measures=["log_loss"], bootstrap=50)
    assert math.isinf(sure.before["log_loss"])
    assert sure.changes[0].interval is None
    assert replay._paired(*np.full((3, 40), 1.0), 50, 0)["brier"] == (0.0, 0.0)
    # One forecast, one outcome: the differences are all alike, which does not make the next one sure.
    low, high = replay._paired(np.full(40, 0.3), np.full(40, 0.6), np.ones(40), 50, 0)["brier"]
    assert low == pytest.approx(0.4**2 - 0.7**2)
    assert high > low


def test_the_table_holds_both_evaluations_and_the_change(seed):
    p, y = stream(seed, 400)
    measures = ["brier", "smooth_ce"]
    found = recalibrate(p, y, measures=measures, bootstrap=199)
    for evaluation, values in ((found.before, p), (found.after, found.forecasts)):
        assert str(evaluation) == str(oc.evaluate(values, y, measures=measures, bootstrap=199))
        for row in evaluation.rows:
            assert "[{:.4g}, {:.4g}]".format(*row.interval) in str(found)
    said = " ".join(str(found).split())
    assert said.startswith("measure before interval after interval")
    assert all(one.how in said for one in found.changes)
    rows = found.table().set_index("measure").to_dict("index")
    for name, row in rows.items():
        assert row["change_upper"] == found.after[name] - found.before[name]
        assert row["change_interval"][0] <= row["change_lower"] <= row["change_interval"][1]
    # Of a score that of the mean of differences; of others all that intervals at 97.5 % leave open.
    difference = (found.forecasts - y) ** 2 - (p - y) ** 2
    either = np.concatenate([(found.forecasts - k) ** 2 - (p - k) ** 2 for k in (0, 1)])
    one, within = np.ones(400), (either.min(), either.max())
    assert rows["brier"]["change_interval"] == pytest.approx(
        mean_interval(difference, one, one, within, 199, 0.95, 0)
    )
    old, new = (
        oc.evaluate(values, y, measures=["smooth_ce"], bootstrap=199, level=0.975).rows[0].interval
        for values in (p, found.forecasts)
    )
    assert rows["smooth_ce"]["change_interval"] == (new[0] - old[1], new[1] - old[0])
    # Of the same outcomes, so that it is less than either error alone.
    before, after, change = (np.ptp(rows["brier"][f"{k}_interval"]) for k in ("before", "after", "change"))
    assert change < 0.75 * (before + after)
    plain = recalibrate(p, y, measures=["brier"])
    assert (plain.changes[0].interval, "after − before" in str(plain)) == (None, False)


# ---------------------------------------------------------------- one by one


@every_way
def test_copies_and_pickles_go_on_identically_and_means_change_nothing(way, bins, seed):
    p, y = stream(seed, 40)
    mine, other = Recalibrator(way, bins=bins), Recalibrator(way, bins=bins)
    for a, b in zip(p.tolist(), y, strict=True):
        mean = mine.mean(a)
        mine.mean(1.0 - a)
        first, second = mine.ask(a), other.ask(a)
        assert (first.forecast, first.mean) == (second.forecast, mean)
        mine.tell(first, b)
        other.tell(second, b)
    open_, said = [mine.ask(0.3), mine.ask(0.9)], []
    for who, questions in (
        pickle.loads(pickle.dumps((mine, open_))),
        copy.deepcopy((mine, open_)),
        (mine, open_),
    ):
        who.tell(questions[1], 1)
        who.tell(questions[0], 0)
        said.append([who.ask(float(one)).forecast for one in p])
    assert said[0] == said[1] == said[2]
    again = pickle.loads(pickle.dumps(mine))
    assert again.mean(0.3) == mine.mean(0.3)
    assert len(pickle.dumps(again)) == len(pickle.dumps(mine))


def test_the_player_is_fit_for_every_question(monkeypatch, seed):
    """For its number, those that are open with it, and its bin: what is kept has places for no more."""
    mine, waiting, rng = Recalibrator("forecast_hedging", bins=9), [], np.random.default_rng(seed)
    fit, make_room = [], mine._player.make_room
    monkeypatch.setattr(mine._player, "make_room", lambda to: fit.append(to) or make_room(to))
    for number in range(1, 1400):
        base = rng.random() * number / 1400.0
        waiting.append(mine.ask(base))
        assert number <= fit[-1].asked
        assert len(waiting) <= fit[-1].open
        assert int(9 * base) < fit[-1].streams
        while len(waiting) > rng.integers(60):
            mine.tell(waiting.pop(int(rng.integers(len(waiting)))), int(rng.integers(2)))


def test_bins_have_their_lower_end_and_the_last_one_holds_1():
    mine = Recalibrator("empirical_mean", bins=2)
    mine.tell(mine.ask(1.0), 1)
    mine.tell(mine.ask(0.0), 0)
    assert mine.mean(0.5) == mine.mean(0.75) == mine.mean(1.0) > mine.mean(0.0) == mine.mean(0.499)


def test_a_pickle_of_another_version_is_refused():
    kept = Recalibrator("platt").__getstate__() | {"version": 1}
    with pytest.raises(InvalidData, match="of version 1; expected version 2"):
        Recalibrator.__new__(Recalibrator).__setstate__(kept)


def test_what_is_made_of_a_name():
    assert Recalibrator("forecast_hedging", bins=10**4, horizon=10**9).method == Separate(ForecastHedging())
    for growth in (1.0001, 2.0):
        assert Refitted("platt", growth).growth == growth
    for growth in (1.00005, 2.01):
        with pytest.raises(InvalidParameter, match="growth"):
            Refitted("platt", growth)
    assert method("forecast_hedging", bins=3) == Separate(Doubling(ForecastHedging()))
    assert method("forecast_hedging", bins=3, horizon=100) == Separate(ForecastHedging())


THREE = [0.2, 0.4, 0.6], [0, 1, 1]


@pytest.mark.parametrize(
    ("given", "wrong", "error"),
    [
        *[(THREE, {"forecaster": name}, InvalidParameter) for name in
          ("forecast_hedging", "truthful", 3, {"bins": 3}, {"name": "platt", "rate": 1}, Separate(ForecastHedging()))],
        *[(THREE, one, InvalidParameter) for one in
          ({"bins": 0}, {"bins": 2.5}, {"bins": 10_001}, {"horizon": 0}, {"horizon": 10**9 + 1}, {"seed": -1})],
        (THREE, {"times": [0, 1]}, InvalidData), (THREE, {"times": [0, 1, 2], "known": [0, 1]}, InvalidData),
        (THREE, {"forecaster": "calibeatin"}, UnknownName), (THREE, {"measures": ["nothing"]}, UnknownName),
        (THREE, {"known": [0, 1, 2]}, InvalidData),
        *[(samples, {}, InvalidData) for samples in (
            ([], []), ([0.5], [1]), ([0.5, 0.5], [1]), ([0.5, 45], [1, 0]), ([0.5, np.nan], [1, 0]),
            ([0.5, 0.5], [1, 2]), ([0.5, 0.5], [np.nan, 1]), (["a", "b"], [0, 1]),
        )],
    ],
)  # fmt: skip
def test_what_is_refused(given, wrong, error):
    with pytest.raises(error) as caught:
        recalibrate(*given, **wrong)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"times": [0, 2, 1]}, r"times\[2\] = 1 is before times\[1\] = 2; expected no earlier time"),
        (
            {"times": [0, 1, 2], "known": [0, 0.5, 2]},
            r"known\[1\] = 0\.5 is before times\[1\] = 1; expected no",
        ),
        ({"times": [0, 1, np.inf]}, r"times\[2\] is not finite"),
    ],
)
def test_times_that_are_wrong_are_named(more, said):
    with pytest.raises(InvalidData, match=said):
        recalibrate(*THREE, **more)


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
    assert repr(mine) == "<Recalibrator expert_aggregation, 1 asked, 1 told>"

    class Broken(Overreacting):
        def forecast(self):
            return 2.0

    with pytest.raises(InvalidForecast, match="round 1"):
        Recalibrator(Scalar(Broken), bins=2).ask(0.5)


# ---------------------------------------------------------------- files

NOTES = '"a, b"', "NA"
TEXT = "id,day,forecast,outcome,note\n" + "".join(
    f"{i:03},2026-01-{1 + i // 3:02},0.{i % 9 + 1},{(i * i) % 3 % 2},{NOTES[i % 2]}\n" for i in range(60)
)


def test_from_a_file_to_a_file(tmp_path, monkeypatch):
    file = tmp_path / "mine.csv"
    file.write_text(TEXT)
    said = onlinecal("recalibrate", "mine.csv", "--time", "day", "-o", "out/new.csv", cwd=tmp_path).stdout
    assert said.startswith("measure")
    assert "wrote out/new.csv: 60 rows" in said
    old, new = (
        pd.read_csv(tmp_path / name, dtype=str, keep_default_na=False) for name in ("mine.csv", "out/new.csv")
    )
    assert (new[old.columns] == old).all(axis=None)
    p, y = old["forecast"].astype(float), old["outcome"].astype(float)
    wanted = recalibrate(p, y, times=pd.to_datetime(old["day"]).dt.day)
    assert new["recalibrated"].astype(float).tolist() == wanted.forecasts.tolist()
    assert [f.name for f in (tmp_path / "out").iterdir()] == ["new.csv"]
    options = (
        "--with '{ name = \"calibeating\", bins = 3 }' -o b.parquet --json --measure brier --column mended"
    )
    (row,) = json.loads(onlinecal(f"recalibrate mine.csv {options}", cwd=tmp_path).stdout)
    assert (row["measure"], len(row["before_interval"])) == ("brier", 2)
    mended = pd.read_parquet(tmp_path / "b.parquet")["mended"]
    assert mended.tolist() == recalibrate(p, y, Calibeating(bins=3)).forecasts.tolist()
    # A file is replaced only if that is asked, as a whole, and never the one that is read.
    given = "recalibrate", "mine.csv", "-o", "b.csv", "--measure", "brier"
    (tmp_path / "b.csv").write_text("old")
    assert "b.csv exists" in onlinecal(*given, cwd=tmp_path, rc=2).stderr
    with monkeypatch.context() as full:
        full.setattr(Path, "write_bytes", lambda path, data: os.truncate(path, -path.write_text("half")))
        onlinecal(*given, "--overwrite", cwd=tmp_path, rc=2)
    assert (tmp_path / "b.csv").read_text() == "old"
    onlinecal(*given, "--overwrite", cwd=tmp_path)
    assert (tmp_path / "b.csv").read_text().count("\n") == TEXT.count("\n")
    onlinecal("recalibrate", "mine.csv", "-o", "mine.csv", "--overwrite", cwd=tmp_path, rc=2)
    assert file.read_text() == TEXT


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_times_of_outcomes(tmp_path, name):
    for known, wanted in (([3, None, 3, 4], [0.5] * 4), ([2, 3, 3, 4], [0.5, 0.5, 0.75, 0.625])):
        frame = pd.DataFrame({"p": [0.5] * 4, "y": [1, 1, 0, None], "t": [1, 2, 3, 4], "r": known})
        frame.to_csv(tmp_path / "a.csv", index=False)
        frame.to_parquet(tmp_path / "a.parquet")
        options = {"asked": Asked(time="t", resolved="r"), "overwrite": True}
        found, _ = recalibrate_file(str(tmp_path / name), tmp_path / "out.csv", "calibeating", **options)
        assert found.forecasts.tolist() == wanted
    # Where outcomes are known at once both times may be one column.
    options["asked"] = Asked(time="t", resolved="t")
    found, _ = recalibrate_file(str(tmp_path / name), tmp_path / "out.csv", "calibeating", **options)
    assert found.forecasts.tolist() == [0.5, 0.75, 2.5 / 3, 0.625]


TWO = "p,y\n0.5,1\n0.5,0\n"


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("p,y\n0.5,1\n,0\n", {}, "line 3: column 'p' is missing"),
        ("p,y\n0.5,1\n", {}, "1 row"),
        ("p,y\n0.5,1\n0.5,\n", {}, "1 of 2 outcomes"),
        (TWO, {"column": "p"}, "has a column 'p' already"),
        (TWO, {"forecaster": "{ name = "}, "expected a table such as { name = ... }"),
        (TWO, {"forecaster": "plat"}, "did you mean 'platt'"),
        (TWO, {"output": "mine.csv"}, "is the file that is read"),
        (TWO, {"output": "b.txt"}, "ends in .csv or .parquet"),
        (TWO, {"measures": ["noting"]}, "noting"),
    ],
)
def test_what_is_refused_writes_nothing(tmp_path, text, options, words):
    file = tmp_path / "mine.csv"
    file.write_text(text)
    options = {"forecaster": "calibeating", "output": "b.csv"} | options
    with pytest.raises(OnlinecalError) as caught:
        recalibrate_file(str(file), tmp_path / options.pop("output"), **options)
    assert words in str(caught.value)
    assert [f.name for f in tmp_path.iterdir()] == ["mine.csv"]
    assert file.read_text() == text


@pytest.mark.parametrize(
    "dates", [["2026-01-03", "2026-01-02", "2026-01-02"], ["2026/02/01", "", "2026/01/01"]]
)
def test_dates_that_fall_are_not_replayed_backwards(tmp_path, dates):
    """The same rows in the order of time, with `--time` and by another date that ascends, are taken."""

    def called(name, days, other="", **asked):
        rows = "".join(f"{day},0.{5 + i},{i % 2},{other and other + str(i)}\n" for i, day in enumerate(days))
        (tmp_path / f"{name}.csv").write_text("when,p,y,asked\n" + rows)
        source, output = str(tmp_path / f"{name}.csv"), tmp_path / f"{name}_new.csv"
        return recalibrate_file(source, output, "calibeating", measures=["brier"], asked=Asked(**asked))

    with pytest.raises(InvalidData, match=r"'when' fall from row to row.* expected --time when --sort"):
        called("back", dates)
    assert not (tmp_path / "back_new.csv").exists()
    straight, said = called("on", dates[::-1])
    assert len(straight.forecasts) == 3
    assert not any("goes up and down" in each for each in said)
    called("other", dates, "2025-01-1")
    if "" not in dates:
        said = called("sorted", dates, time="when", sort=True)[1]
        assert any("brought into the order" in each for each in said)
        said = called("mixed", [dates[1], dates[0], dates[2]])[1]
        assert any("'when' goes up and down" in each for each in said)


def test_a_question_that_comes_back_needs_the_time_of_its_outcome(tmp_path):
    """Else its later forecasts are told what its first one was."""
    rows = [f"q{i},{t},{t + 9},{0.3 + 0.05 * i},{i % 2}\n" for t in range(5) for i in range(8)]
    (tmp_path / "p.csv").write_text("question,t,known,p,y\n" + "".join(rows))
    for asked, told in ((Asked(), True), (Asked(time="t"), True), (Asked(time="t", resolved="known"), False)):
        options = {"measures": ["brier"], "asked": asked, "overwrite": True}
        _, said = recalibrate_file(str(tmp_path / "p.csv"), tmp_path / "new.csv", "calibeating", **options)
        assert any("'question' come back" in text for text in said) == told


def test_an_index_of_dates_that_falls_is_refused():
    days = pd.date_range("2026-01-01", periods=4)
    for back, index in ((False, days), (True, days[::-1]), (False, np.arange(4)[::-1])):
        p, y = pd.Series([0.2, 0.4, 0.6, 0.8], index), pd.Series([0, 1, 0, 1], index)
        if back:
            with pytest.raises(InvalidData, match="index of p fall"):
                recalibrate(p, y)
        else:
            recalibrate(p, y, measures=["brier"])


@pytest.mark.parametrize("of", ["isotonic", "platt", "smooth", "venn_abers"])
def test_outcomes_of_one_kind_are_fitted_where_base_forecasts_make_them_unlikely(of):
    """Thirty times 0: forecasts of 0.3 give it 2e-5 and are moved to 1/20 or less, but not to 0; those of 0.01 stay."""
    last = [recalibrate([p] * 30, [0] * 30, f"{of}_refitted").forecasts[-1] for p in (0.3, 0.01)]
    assert 0.0 < last[0] < 0.05
    assert last[1] == 0.01
    # From below 5 % on: of two outcomes 0.0529 is more, and 0.0484 less.
    for p, fitted in ((0.77, False), (0.78, True)):
        for y in (0, 1):
            said = recalibrate([y + (1 - 2 * y) * p] * 3, [y] * 3, f"{of}_refitted").forecasts[2]
            assert bool(abs(said - y) < p - 1e-9) is fitted
