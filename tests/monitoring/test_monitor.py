"""The monitor: alarms, restarts, late outcomes, what is kept in a file, and what is refused."""

import copy
import json
import math
import pickle
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest
from scipy.stats import binom

import onlinecal as oc
from onlinecal.core.errors import InvalidData, InvalidParameter, StoreError
from onlinecal.monitoring.alarms import Alarm, Witness
from onlinecal.monitoring.bets import SLOPES, VERSION, Epoch
from onlinecal.monitoring.monitor import EDGES, Monitor
from onlinecal.monitoring.sequences import half_width
from tests.marks import slow
from tests.monitoring.streams import biased, calibrated


def state(monitor):
    """All that may differ between two monitors, as bytes and plain data."""
    epoch = monitor._epoch
    arrays = [a.tobytes() for a in (epoch.banks, epoch.clocks, epoch.sums)]
    return arrays, epoch.number, epoch.alarms, monitor._asked, str(monitor._questions)


def generators(seed, many):
    return (np.random.default_rng([seed, i]) for i in range(many))


@pytest.mark.parametrize("restart", ["spend", "same", "never"])
def test_one_by_one_in_parts_and_at_once_is_the_same(seed, restart):
    p, y = biased(np.random.default_rng(seed), 900, -0.25)
    whole, parts, single, late = (Monitor(0.2, restart=restart) for _ in range(4))
    alarms = whole.update(p, y)
    assert alarms
    assert parts.update(p[:333], y[:333]) + parts.update(p[333:], y[333:]) == alarms
    assert [a for pair in zip(p.tolist(), y.tolist(), strict=True) for a in single.update(*pair)] == alarms
    tickets = [late.ask(float(one)) for one in p]
    assert tickets == list(range(1, 901))
    assert late.events == 0
    order = np.random.default_rng(seed).permutation(900)
    assert [a for i in order for a in late.tell(tickets[i], y[i])] == alarms == list(late.alarms)
    assert state(whole) == state(parts) == state(single)
    assert state(late)[:3] == state(whole)[:3]
    assert late.open == 0


# ---------------------------------------------------------------- alarms


@pytest.mark.parametrize(
    ("open_at_once", "numbers"),
    [(None, (11.312152867813356, 1.0588733838498875e-05, 7.870807711799216)),
     (2, (10.619017910646456, 2.1177243436803566e-05, 20.718295555787805))],
)  # fmt: skip
def test_numbers_are_those_on_record(open_at_once, numbers):
    """With other bets a test cannot go on: then `onlinecal.monitoring.bets.VERSION` is raised."""
    p = np.round(np.arange(1, 201) * 0.6180339887498949 % 1.0, 3)
    y = np.where(np.arange(200) < 20, 0.0, np.arange(200) * 7 % 11 < 8.0 * p)
    p[:20] *= 0.4
    monitor = Monitor(restart="never", open_at_once=open_at_once)
    monitor.update(p, y)
    assert (monitor.log_e, monitor.p_value, monitor.bias().upper) == pytest.approx(numbers, rel=1e-9)
    assert VERSION == 2


def test_an_alarm_says_where_and_since_when(seed):
    """Calibrated for 3000 events, then [0.6, 0.8) is too high by 0.35. In all of 10^4 simulations it was found within
    4000 more. Bits of evidence an event there are 0.4, so 4000 events give 300 where 15 are needed."""
    rng = np.random.default_rng(seed)
    p = rng.random(7000)
    q = np.where((p >= 0.6) & (p < 0.8) & (np.arange(7000) >= 3000), p - 0.35, p)
    alarm = Monitor(1e-4).update(p, (rng.random(7000) < q).astype(float))[0]
    w = alarm.witness
    assert 3000 < alarm.event < 7000
    assert (w.low <= 0.6 < 0.8 <= w.high) or (0.6 <= w.low < w.high <= 0.8)
    assert w.bias < -0.1
    assert 2500 < w.since <= alarm.event
    assert f"predictions in {w.interval} are too high by" in str(alarm)
    assert alarm.log_e >= math.log(1 / alarm.alpha)
    assert alarm.epoch_events == alarm.event


@pytest.mark.parametrize(
    ("events", "number", "slope"), [(408, 2, None), (9_876_543, 345, None), (408, 1, 0.59)]
)
def test_an_alarm_begins_with_its_verdict_in_short_lines(events, number, slope):
    w = Witness(0.0625, 0.125, 0.5, events - 7, events, -0.041, 9, 0.1, 0.1, 0.0625, 0.0041, False, slope)
    said = str(Alarm(number, events, events, 250.0, 0.05, w)).splitlines()
    verdict = "predictions in [0.0625, 0.125) are too high by 0.041"
    if slope is not None:
        verdict = "predictions are too bold, log odds times 0.59 would be better"
    assert said[0] == f"alarm {number} at event {events:,}: {verdict}"
    assert " ".join(" ".join(said[1:]).split()) == (
        f"since about event {events - 7:,} ({events:,} of them), e = 10^108.6; not acting at p < 0.0625 lost 0.0041 "
        "per decision"
    )
    assert max(map(len, said)) <= 100
    assert len(said) <= 3


HIGH = Witness(0.5, 0.75, 0.5, 3.0, 20.0, -0.041, 9, 0.6, 0.5, 0.5, 0.25, True)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "predictions in [0.5, 0.75) are too high by 0.041"),
        ({"high": 1.0, "bias": 0.041}, "predictions in [0.5, 1] are too low by 0.041"),
        ({"slope": 0.5}, "predictions are too bold, log odds times 0.5 would be better"),
        ({"slope": 2.0}, "predictions are too timid, log odds times 2 would be better"),
        ({}, "; acting at p ≥ 0.5 lost 0.25 per decision"),
        ({"acts": False}, "; not acting at p < 0.5 lost 0.25 per decision"),
        ({"regret": 0.0}, "\n  since about event 3 (20 of them)\nend"),
    ],
)
def test_a_witness_in_words(fields, words):
    assert words in f"{replace(HIGH, **fields)}\nend"


def test_lines_of_a_witness_have_a_hundred_characters_at_most():
    short = len(HIGH.lines()[1])
    for more in range(100 - short, 105 - short):
        assert (len(HIGH.lines("e" * more)) == 2) is (short + more <= 100)


def test_a_witness_may_be_where_nothing_was_forecast():
    """Bets on calibrated forecasts lose, and what has not been bet is more than what is left of them."""
    monitor = Monitor(edges=[0.0, 0.5, 1.0])
    monitor.update([0.3] * 100, [1, 0, 0, 1, 0, 0, 1, 0, 0, 0] * 10)
    w = monitor.witness()
    assert (w.interval, w.events, w.count, w.bias, w.regret) == ("[0.5, 1]", 0, 0.0, 0.0, 0.0)
    assert (w.mean_forecast, w.mean_outcome, w.threshold, w.acts) == (0.0, 0.0, 1.0, False)


@pytest.mark.parametrize("fault", ["too low", "too high", "too bold", "too timid"])
def test_the_witness_counts_what_there_is(fault, seed):
    """Of 300 seeds the money on the fault that is named was never below e^95 times that on the others."""
    rng = np.random.default_rng(seed)
    p, y = biased(rng, 4000, {"too low": 0.3, "too high": -0.3}.get(fault, 0.0))
    if fault in ("too bold", "too timid"):
        scale = 0.5 if fault == "too bold" else 2.0
        y = (rng.random(4000) < np.clip(0.5 + scale * (p - 0.5), 0.0, 1.0)) * 1.0
    monitor = Monitor(restart="never")
    monitor.update(p, y)
    w = monitor.witness()
    assert w.fault == fault
    assert w.slope is None or (w.slope < 1.0) == (w.bias > 0.0)
    inside = (p >= w.low) & ((p < w.high) | (w.high == 1.0))
    assert (w.mean_forecast, w.mean_outcome) == pytest.approx((p[inside].mean(), y[inside].mean()))
    assert w.events == inside.sum()
    # Means by the money of its bettors.
    b, bank = monitor.bettors, monitor._epoch.bank
    of_all = (b.edges[b.ends] == (w.low, w.high)).all(axis=1).nonzero()[0]
    best = of_all[0] if w.slope is None else len(b.ends) - 1
    money, start, events, bias = bank.sum(axis=2)
    wanted = (
        money[best] / money.sum(),
        start[best] / money[best],
        events[best] / money[best],
        bias[best] / events[best],
    )
    assert (w.share, w.since, w.count, w.bias) == pytest.approx(wanted)
    assert 1.0 <= w.since <= 4000.0
    assert w.slope is None or w.slope == pytest.approx(
        np.exp(np.average(np.log(SLOPES), weights=bank[0, best]))
    )
    # The task's cost: of those that act, or do not, by their predictions, had they all done the other thing. Of an
    # interval it is of those on the wrong side of an edge in it, of a slope of any interval.
    costs = []
    edges = [edge for edge in EDGES if w.low <= edge <= w.high]
    for a, b in combinations(edges, 2):
        side = (p >= a) & ((p < b) | (b == 1.0))
        for acts in (True, False):
            cost = (a - y[side]).sum() if acts else (y[side] - b).sum()
            if w.slope is not None or (acts == (w.bias < 0.0) and (b == w.high if acts else a == w.low)):
                costs.append((cost, a if acts else b, cost / max(side.sum(), 1), acts))
    most, threshold, regret, acts = max(costs)
    assert most > 0
    assert (w.threshold, w.regret, w.acts) == (threshold, pytest.approx(regret), acts)
    assert w.task.payoffs == oc.tasks.v_shaped(w.threshold).payoffs


def test_an_outcome_that_was_excluded_is_an_alarm_at_once():
    for p, y in ((0.0, 1), (1.0, 0)):
        monitor = Monitor()
        [alarm] = monitor.update(p, y)
        assert alarm.log_e == math.inf
        assert "excluded" in str(alarm)
        assert monitor.log_e == 0.0  # a new epoch
    quiet = Monitor(restart="never")
    assert len(quiet.update([0.0, 0.0, 0.3], [1, 1, 1])) == 1
    assert (quiet.e_value, quiet.p_value) == (math.inf, 0.0)
    assert Monitor().update([0.0, 1.0], [0, 1]) == []
    # However little was left to it, it was not excluded: 1 − 1e-300 is 1 in a float.
    for p, y in ((1e-300, 1), (1.0 - 2.0**-53, 0)):
        assert Monitor().update(p, y) == []


def test_levels_are_spent_or_kept():
    spend, same, never = (Monitor(0.1, restart=how) for how in ("spend", "same", "never"))
    assert (spend.witness(), repr(spend)) == (None, "<Monitor, alpha = 0.1, 0 events, 0 alarms>")
    for monitor in (spend, same, never):
        monitor.update([0.99] * 400, [0] * 400)
        assert [alarm.number for alarm in monitor.alarms] == list(range(1, len(monitor.alarms) + 1))
    assert [alarm.alpha for alarm in spend.alarms] == [
        0.1 / (k * (k + 1)) for k in range(1, len(spend.alarms) + 1)
    ]
    assert {alarm.alpha for alarm in same.alarms} == {0.1}
    assert len(same.alarms) > len(spend.alarms) > 3
    assert (len(never.alarms), never.level) == (1, 0.0)
    assert never.log_e > 100
    # Between what a float holds and ten times as much, whether there is one total or several.
    for monitor in (Monitor(restart="never"), Monitor(restart="never", open_at_once=1)):
        while monitor.log_e < 711.0:
            monitor.update(0.99, 0)
        assert (monitor.e_value, monitor.log_e < 720.0) == (math.inf, True)
        assert 0.0 <= monitor.p_value < 1e-300
    assert "0.1^k" in same.promise
    assert "(given the past), the probability that there is ever an alarm is at most 0.1" in spend.promise
    assert "(given what is known when it is forecast)" in Monitor(open_at_once=1).promise
    # What is counted in an epoch, and since when most was won in it.
    for before, alarm in pairwise(spend.alarms):
        assert alarm.epoch_events == alarm.event - before.event
        assert before.event < alarm.witness.since <= alarm.event


@pytest.mark.parametrize("kind", ["uniform", "rare"])
@pytest.mark.parametrize(("alpha", "streams", "rounds"), [(0.2, 300, 400), slow((0.05, 10_000, 2000))])
def test_false_alarms_are_rare_at_all_times(kind, alpha, streams, rounds, seed, full):
    """Of calibrated streams, with each kind of restart: in at most α of them, in expectation. False failures: 1e-7 for
    each of three.

    The control doubts the odds: outcomes are a little less likely than forecast, and alarms far more frequent.
    """
    if streams > 300 and not full:
        streams, rounds = 600, 500
    first = twice = spent = 0
    for rng in generators(seed, streams):
        p, y = calibrated(rng, rounds, kind)
        alarms = len(Monitor(alpha, restart="same").update(p, y))
        first, twice = first + (alarms > 0), twice + (alarms > 1)
        if alarms:  # α_k ≤ α: without an alarm at α there is none
            spent += bool(Monitor(alpha).update(p, y))
    assert max(first, spent) <= binom.isf(1e-7, streams, alpha)
    assert twice <= binom.isf(1e-7, streams, alpha**2)
    alarms = [bool(Monitor(0.2).update(*biased(rng, 400, -0.1))) for rng in generators(seed, 60)]
    assert sum(alarms) > binom.isf(1e-7, 60, 0.2)


# ---------------------------------------------------------------- late outcomes


def told_late(monitor, rng):
    """Whether there is an alarm of 25 groups of 8 questions that are open together and have one outcome: calibrated."""
    for outcome in (rng.random(25) < 0.5).astype(float):
        for ticket in [monitor.ask(0.5) for _ in range(8)]:
            monitor.tell(ticket, outcome)
    return bool(monitor.alarms)


def test_dependent_open_questions_need_the_cautious_monitor(seed):
    """In the order of the questions, as if they were independent, false alarms are many (the control). With
    `open_at_once` they are as rare as promised. False failures: 1e-7 each."""
    few, many, alpha = 20, 40, 0.2
    assert sum(told_late(Monitor(alpha), rng) for rng in generators(seed, few)) > binom.isf(1e-7, few, alpha)
    wary = sum(told_late(Monitor(alpha, open_at_once=8), rng) for rng in generators(seed, many))
    assert wary <= binom.isf(1e-7, many, alpha)


def test_the_cautious_monitor_counts_open_questions_at_their_worst(seed):
    p, y = biased(np.random.default_rng(seed), 60, -0.2)
    monitor = Monitor(open_at_once=2)
    monitor.update(p, y)
    settled = monitor.log_e
    ticket = monitor.ask(0.7)
    least, ends = monitor.log_e, []
    for outcome in (0, 1):
        other = copy.deepcopy(monitor)
        other.tell(ticket, outcome)
        ends.append(other.log_e)
    assert min(ends) == pytest.approx(least, abs=1e-12)
    assert least <= settled < max(ends)
    # The same of the bias, of three.
    tickets, two = [ticket, monitor.ask(0.3)], monitor.log_e
    tickets.append(monitor.ask(0.9))
    before, totals = monitor.bias(), []
    assert monitor.log_e == two
    assert before.count == 62  # the third is bet on by nobody
    for low, high, more in ((0.2, 0.3, 0), (0.3, 0.4, 1), (0.9, 0.95, 0)):
        assert monitor.bias(low, high).count == ((p >= low) & (p < high)).sum() + more
    for outcome in (0, 1):
        other = copy.deepcopy(monitor)
        for each in tickets:
            other.tell(each, outcome)
        assert before.lower <= other.bias().lower + 1e-12
        assert other.bias().upper <= before.upper + 1e-12
        totals.append(other.bias().total)
    assert before.total == pytest.approx(sum(totals) / 2.0, abs=1e-12)
    # (y − p)² of the open ones is at most 0.49, and their outcomes are 0 at the lower end and 1 at the upper one.
    width = half_width(((y - p) ** 2).sum() + 2.0 * 0.49, 0.05, 2)
    ends = max(y.sum() - width, 0.0), min(y.sum() + 2.0 + width, 62.0)
    assert (before.lower, before.upper) == pytest.approx(tuple(end - p.sum() - 1.0 for end in ends), rel=1e-9)


def test_of_several_totals_each_bets_on_its_own_questions(seed):
    """Two questions open at any time: the e-value is the mean of those of the odd and of the even questions."""
    p, y = biased(np.random.default_rng(seed), 80, 0.2)
    both, odd, even = (Monitor(open_at_once=k, restart="never") for k in (2, None, None))
    for i in range(0, 80, 2):
        tickets = both.ask(p[i]), both.ask(p[i + 1])
        for ticket, outcome in zip(tickets, y[i : i + 2], strict=True):
            both.tell(ticket, outcome)
    odd.update(p[::2], y[::2])
    even.update(p[1::2], y[1::2])
    assert both.e_value == pytest.approx(0.5 * (odd.e_value + even.e_value), rel=1e-12)
    assert both.events == 80


def test_what_was_open_at_an_alarm_is_not_bet_on_after_it():
    """It is counted as if there had been none."""
    monitor, calm = Monitor(open_at_once=2), Monitor(1e-300, open_at_once=2)
    late, same = monitor.ask(0.9), calm.ask(0.9)
    while not monitor.alarms:
        monitor.update(0.99, 0)
        calm.update(0.99, 0)
    before = monitor.log_e
    monitor.tell(late, 1)
    calm.tell(same, 1)
    assert monitor.log_e == before == 0.0
    assert (monitor.events, monitor.bias(0.9, 0.95).count) == (calm.events, 1)
    np.testing.assert_allclose(monitor._epoch.sums[1], calm._epoch.sums[1], rtol=1e-12)


def test_questions_are_told_once_and_may_be_dropped():
    monitor = Monitor()
    first, second = monitor.ask(0.4), monitor.ask(0.6)
    monitor.tell(second, 1)
    assert (monitor.events, monitor.open) == (0, 2)
    for wrong in (second, 3, 0, "1", None, 1.0):
        why = "has its outcome, or was dropped" if wrong == second else "was not given by this monitor"
        with pytest.raises(InvalidData, match=f"ticket {wrong!r} {why}"):
            monitor.tell(wrong, 1)
    with pytest.raises(InvalidData, match="outcome"):
        monitor.tell(first, 2)
    monitor.drop(first)
    assert (monitor.events, monitor.open) == (1, 0)
    with pytest.raises(InvalidData, match=f"ticket {first} has its outcome, or was dropped"):
        monitor.drop(first)


def test_bias_is_the_total(seed):
    p, y = biased(np.random.default_rng(seed), 3000, -0.1)
    monitor = Monitor()
    monitor.update(p, y)
    for low, high in ((0.0, 1.0), (0.5, 0.9), (0.99, 1.0)):
        inside = (p >= low) & ((p < high) | (high == 1.0))
        found, wide = monitor.bias(low, high), monitor.bias(low, high, simultaneous=True)
        assert found.count == inside.sum()
        assert found.total == pytest.approx((y - p)[inside].sum(), abs=1e-9)
        ends = -p[inside].sum() - 1e-9, wide.lower, found.lower, found.total, found.upper, wide.upper
        assert list(ends) == sorted(ends)
        assert wide.upper <= (1 - p[inside]).sum() + 1e-9
        # Intervals of one size share an equal part of alpha.
        cells = monitor.bettors.edges.tolist()
        size, all_ = cells.index(high) - cells.index(low), len(cells) - 1
        alone = monitor.bias(low, high, level=1.0 - 0.05 / (all_ * (all_ - size + 1)))
        assert (wide.lower, wide.upper) == pytest.approx((alone.lower, alone.upper), rel=1e-9)
    assert monitor.bias(level=0.5).lower > monitor.bias(level=0.99).lower


# ---------------------------------------------------------------- files, copies, interrupts


@pytest.mark.parametrize("open_at_once", [None, 3])
def test_it_goes_on_from_a_file_to_the_last_bit(tmp_path, seed, open_at_once):
    p, y = biased(np.random.default_rng(seed), 600, -0.3)
    monitor, path = Monitor(0.1, open_at_once=open_at_once, edges=[0, 0.2, 0.7, 1]), tmp_path / "m.npz"
    monitor.update(p[:300], y[:300])
    tickets = [monitor.ask(0.3), monitor.ask(0.8)]
    monitor.tell(tickets[1], 1)
    monitor.note["where"] = 12
    monitor.save(path)
    others = Monitor.load(path), pickle.loads(pickle.dumps(monitor))
    for each in (monitor, *others):
        each.tell(tickets[0], 0)
        each.update(p[300:], y[300:])
    assert state(monitor) == state(others[0]) == state(others[1])
    assert others[0].note == {"where": 12}
    assert (others[0].p_value, others[0].bias()) == (monitor.p_value, monitor.bias())
    assert [file.name for file in tmp_path.iterdir()] == ["m.npz"]


def test_files_of_other_arrays_are_refused_and_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    """Any bytes that are no file of a monitor: tests/monitoring/test_watching.py."""
    good, monitor = tmp_path / "m.npz", Monitor()
    monitor.save(good)
    before, arrays = good.read_bytes(), dict(np.load(good))
    # With other contents `onlinecal.monitoring.monitor.FORMAT` is raised.
    said, names = (
        json.loads(str(arrays["said"])),
        "alarms alpha asked begun bets epoch format note open open_at_once",
    )
    assert (said["format"], sorted(said)) == (2, [*names.split(), "peak", "restart"])
    for name, change in (
        ("said", np.array(str(arrays["said"]).replace('"format": ', '"format": 9'))),
        ("banks", arrays["banks"][:, :2]), ("banks", arrays["banks"].astype(np.float32)),
        ("edges", np.array([0.0, 0.4, 0.4, 1.0])),
    ):  # fmt: skip
        np.savez(tmp_path / "other.npz", **(arrays | {name: change}))
        with pytest.raises(StoreError):
            Monitor.load(tmp_path / "other.npz")
    with pytest.raises(StoreError, match="no such file"):
        Monitor.load(tmp_path / "none")
    monkeypatch.setattr(np, "savez", lambda file, **arrays: file.write(b"part") / 0)
    with pytest.raises(ZeroDivisionError):
        monitor.save(good)
    assert good.read_bytes() == before


@pytest.mark.parametrize("open_at_once", [None, 2])
def test_an_interrupted_event_is_taken_once(monkeypatch, open_at_once, seed):
    p, y = biased(np.random.default_rng(seed), 300, -0.4)
    calm, hasty = Monitor(open_at_once=open_at_once), Monitor(open_at_once=open_at_once)
    take, begin = Epoch.bet, Monitor._begin

    def interrupted(self, *arguments):
        take(self, *arguments)
        monkeypatch.setattr(Epoch, "bet", take)
        raise KeyboardInterrupt

    def interrupted_alarm(self, *arguments):
        monkeypatch.setattr(Monitor, "_begin", begin)
        raise KeyboardInterrupt

    for i in range(300):
        calm.tell(calm.ask(p[i]), y[i])
        ticket = hasty.ask(p[i])
        if i % 7 == 0:
            monkeypatch.setattr(Epoch, "bet", interrupted)
        if i % 5 == 0:
            monkeypatch.setattr(Monitor, "_begin", interrupted_alarm)
        try:
            hasty.tell(ticket, y[i])
        except KeyboardInterrupt:
            assert i % 5 == 0 or i % 7 == 0
        monkeypatch.setattr(Monitor, "_begin", begin)
        monkeypatch.setattr(Epoch, "bet", take)
        if hasty.alarms == calm.alarms:  # else the alarm is due at the next call
            assert hasty.log_e == calm.log_e
    calm.update(0.5, 1)
    hasty.update(0.5, 1)
    assert calm.alarms == hasty.alarms != ()
    assert state(calm)[0] == state(hasty)[0]


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("p", "y"),
    [
        (45, 1), (-0.1, 0), (math.nan, 1), (0.5, 2), (0.5, math.nan), ("0.5", 1), (None, 1), (0.5, None),
        ([0.5, 0.5], [1]), ([0.5, math.inf], [1, 0]), ([[0.5]], [[1]]), ([0.5, "x"], [1, 0]), (0.5, 0.5),
    ],
)  # fmt: skip
def test_bad_samples_change_nothing(p, y):
    monitor = Monitor()
    monitor.update([0.2, 0.8], [0, 1])
    before = state(monitor)
    with pytest.raises(InvalidData) as caught:
        monitor.update(p, y)
    assert "\n" not in str(caught.value)
    assert state(monitor) == before


@pytest.mark.parametrize(
    ("function", "wrong"),
    [
        *[(Monitor, wrong) for wrong in (
            {"alpha": 0}, {"alpha": 1}, {"alpha": math.nan}, {"alpha": "0.1"}, {"restart": "no"}, {"open_at_once": 0},
            {"open_at_once": 1001}, {"edges": [0, 0.5]}, {"edges": [0, 0.5, 0.5, 1]}, {"edges": []},
            {"edges": [0, math.nan, 1]}, {"edges": np.linspace(0, 1, 66)}, {"edges": ["a"]}, {"edges": [0.5, 1]},
            {"edges": [0, 0.6, 0.4, 1]}, {"edges": [0]},
        )],
        *[(Monitor().bias, wrong) for wrong in (
            {"low": 0.51}, {"low": 0.5, "high": 0.5}, {"low": 0.9, "high": 0.1}, {"level": 1.0}, {"level": 0.0},
            {"level": "x"},
        )],
    ],
)  # fmt: skip
def test_bad_parameters_are_refused(function, wrong):
    with pytest.raises(InvalidParameter):
        function(**wrong)
    with pytest.raises(InvalidParameter, match="expected 2 to 65 increasing numbers from 0 to 1"):
        Monitor(edges=[0])
    for edges in ([0, 1], np.linspace(0, 1, 65)):  # the fewest and the most
        assert Monitor(edges=edges, open_at_once=1000).open_at_once == 1000
