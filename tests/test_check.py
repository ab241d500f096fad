"""The guarantee report and the conformance checks, with strategies that must fail them."""

import itertools
import math
import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from onlinecal.check import check, report
from onlinecal.conformance import conformance
from onlinecal.errors import UnknownName
from onlinecal.forecasters import Constant, Forecaster, ForecastHedging, Law
from onlinecal.guarantee import Guarantee
from onlinecal.natures import Bernoulli, Contrarian, Drift, Nature, Sight


@dataclass(frozen=True)
class Liar(Constant):
    """Promises what it cannot keep: an ECE of √T, of each kind."""

    kind: str = "deterministic"

    @property
    def guarantees(self):
        return (Guarantee("ece", "√T", math.sqrt, self.kind, Sight.LAW, "nowhere"),)


def test_a_promise_that_is_kept_and_one_that_is_not(seed):
    (kept,) = list(check([ForecastHedging()], [Drift()], horizon=2000, runs=8, seed=seed))
    assert kept.holds
    assert kept.ratio < 1
    verdicts = list(check([Liar()], [Drift(0.0, 0.2), Contrarian()], horizon=2000, runs=8, seed=seed))
    broken = [v for v in verdicts if v.strategy.startswith("liar")]
    assert [v.holds for v in broken] == [False, False]
    assert broken[1].ratio == pytest.approx(1000 / math.sqrt(2000))
    contrary = next(v for v in verdicts if v.strategy == "contrarian")
    assert contrary.holds
    assert contrary.ratio == 1.0


def test_an_expected_bound_without_slack_is_not_called_broken_and_a_rate_has_a_trend(seed):
    (unknown,) = list(check([Liar(kind="expected")], [Drift(0.0, 0.2)], horizon=2000, runs=8, seed=seed))
    assert unknown.ratio > 1
    assert unknown.holds is None
    (rate,) = list(check([Liar(kind="rate")], [Drift(0.0, 0.2)], horizon=4096, runs=8, seed=seed))
    assert rate.holds is None
    assert rate.trend == pytest.approx(0.5, abs=0.02)  # its total grows like T


def test_guarantees_apply_only_to_what_they_cover(seed):
    # Hedging promises nothing to natures that see the draw; what such a contrarian promises still applies.
    verdicts = list(check([ForecastHedging()], [Contrarian(sees="draw")], horizon=100, runs=2, seed=seed))
    assert {v.strategy for v in verdicts} == {'contrarian (sees="draw")'}
    assert [str(v.guarantee) for v in verdicts] == [str(g) for g in Contrarian(sees="draw").guarantees]
    assert not list(check([Constant()], [Bernoulli()], horizon=100, runs=2, seed=seed))


def test_a_report_of_named_strategies():
    found = report(["almost_one_step_ahead"], horizon=300, runs=2, seed=1, progress=False)
    assert found.good
    assert {v.guarantee.measure for v in found.verdicts if v.strategy == "almost one step ahead"} == {
        "distance_certificate",
        "smooth_ce",
    }
    assert len(found.findings) == 6
    rows = found.rows()
    assert all(row["holds"] for row in rows["guarantees"])
    assert all(row["fault"] == "" for row in rows["conformance"])
    assert found.remarks == ()
    with pytest.raises(UnknownName, match="did you mean 'drift'"):
        report(["drfit"], horizon=10, runs=1, seed=0)


def test_whose_guarantees_are_not_among_the_verdicts_is_said():
    found = report(["constant", "bernoulli", "contrarian"], horizon=64, runs=2, seed=1, progress=False)
    assert found.remarks == (
        "constant states no guarantee, so there is none to measure.",
        "bernoulli states u_calibration = Ω(√T); cdl = Ω(√T): not of a kind, or not against opponents, that are "
        "measured here.",
    )
    assert any(v.strategy == "contrarian" for v in found.verdicts)


# ---------------------------------------------------------------- plug-ins that break a rule each


@dataclass(frozen=True)
class Rule(Forecaster):
    breaks: str = ""

    def start(self, horizon, runs, stream):
        return RulePlayer(self.breaks, runs)


class RulePlayer:
    clock = itertools.count()

    def __init__(self, breaks, runs):
        self.breaks, self.law, self.asked = breaks, Law(runs, 1), 0
        self.told = 0
        if breaks == "pickle":
            self.hook = lambda: None

    def forecast(self, round):
        p = 0.5
        if self.breaks == "purity":
            self.asked += 1
            p = 1 / (1 + self.asked)
        if self.breaks == "repeat":
            p = next(self.clock) % 997 / 997
        if self.breaks == "split":
            p = len(self.law.atoms) / 10
        if self.breaks == "law":
            p = 1.01 if round.number == 100 else 0.5
        self.law.atoms[:] = p
        return self.law

    def update(self, round): ...


@pytest.mark.parametrize(
    ("breaks", "check_", "said"),
    [
        ("purity", "pure", "two different laws"),
        ("law", "pure", "stated the forecasts [1.01]"),
        ("repeat", "same seed", "differ"),
        ("split", "split", "played beside it"),
        ("pickle", "pickled", "cannot be pickled"),
    ],
)
def test_who_breaks_a_rule_is_told_which(breaks, check_, said):
    faults = {finding.check: finding.fault for finding in conformance(Rule(breaks))}
    (fault,) = [fault for label, fault in faults.items() if check_ in label]
    assert said in fault
    assert "rule(breaks=" in fault


def test_who_breaks_none_is_told_so():
    assert [finding.fault for finding in conformance(Rule())] == [""] * 4


def test_a_nature_that_looks_too_far_is_told_so():
    @dataclass(frozen=True)
    class Peeping(Nature):
        sight: ClassVar[Sight] = Sight.NOTHING

        def start(self, horizon, runs, stream):
            return self

        def probability(self, round):
            return np.round(round.law.mean)

    faults = [finding.fault for finding in conformance(Peeping())]
    assert all("declares sight NOTHING" in fault for fault in faults)


@pytest.mark.parametrize("first", [1, 2000])
def test_a_plug_in_that_says_nan_fails_instead_of_ending_the_report(tmp_path, monkeypatch, first):
    (tmp_path / "nans.py").write_text(
        "from onlinecal.natures import Nature\n"
        f"first = {first}\n"
        "class Nan:\n"
        "    def __init__(self): self.round = 0\n"
        "    def forecast(self): return 0.5 if self.round + 1 < first else float('nan')\n"
        "    def update(self, forecast, outcome): self.round += 1\n"
        "class Nature(Nature):\n"
        "    def start(self, horizon, runs, stream): return self\n"
        "    def probability(self, round): return 0.5 if round.number < first else float('nan')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "nans", raising=False)
    found = report(["nans:Nan", "nans:Nature"], horizon=4 * first, runs=1, seed=0, progress=False)
    assert not found.good
    for name in ("nans:Nan", "nans:Nature"):
        (fault, *_) = [f.fault for n, f in found.findings if n == name and f.fault]
        assert f"in round {first}, run 0; expected" in fault
        assert "nan" in fault
