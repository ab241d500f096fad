"""The conformance checks: a player that breaks a rule is told which, and no player that keeps them is blamed."""

import itertools
import re
import sys
from dataclasses import dataclass

import pytest

from onlinecal import forecasters as f
from onlinecal.checks import conformance as conformance_module
from onlinecal.checks.conformance import conformance
from onlinecal.checks.guarantees import check
from onlinecal.core.errors import InvalidParameter
from onlinecal.core.strategy import strategy_key
from onlinecal.engine.game import Game
from onlinecal.engine.steps import Forecaster, law, shared
from onlinecal.naming import strategy_of
from onlinecal.natures import Bernoulli, Nature, as_nature
from tests.by_hand import Half


class ImpureLate(Half):
    """Counts how often it is asked, from round 501 on."""

    asked = 0

    def forecast(self, round):
        self.asked += round.number > 500
        return self.asked % 7 / 7


class Forgetful(Half):
    """Keeps on itself which round was asked last."""

    seen = 0

    def forecast(self, round):
        self.asked = round.number
        return self.seen % 7 / 7

    def update(self, forecast, outcome):
        self.seen += self.asked


@pytest.mark.parametrize("cls", [ImpureLate, Forgetful])
def test_conformance_finds_who_remembers_an_open_round_elsewhere(cls, seed, monkeypatch):
    check = "a question asked while a round is open changes nothing"
    monkeypatch.setattr(conformance_module, "CHECKS", conformance_module.CHECKS[3:4])
    found = next(conformance(f.as_forecaster(cls), seed))
    assert (found.check, bool(found.fault)) == (check, True)


# ---------------------------------------------------------------- declarations


@dataclass(frozen=True)
class Declares(Nature):
    """A coin that declares what it is told to."""

    def start(self, horizon, stream):
        raise AssertionError("it is not started")


def declaring(**what):
    return type("Declares", (Declares,), what)()


@pytest.mark.parametrize(
    ("strategy", "match"),
    [
        (declaring(sight="LAW"), "declares sight = 'LAW'; expected a Sight"),
        (declaring(reveals="truth"), "declares reveals = 'truth'; expected a frozenset of names"),
        (declaring(reveals={"stream"}), r"declares streams = \(\); expected their labels"),
        (declaring(length="5"), "declares length = '5'; expected None or an integer"),
        *[(type("Wants", (f.Constant,), says)(), complaint) for says, complaint in [
            ({"needs": "truth"}, "declares needs = 'truth'"), ({"certifies": ["ece"]}, "declares certifies"),
            ({"memory": "O(n)"}, "has no attribute 'n'"),
            ({"memory": "linear"}, r"memory = 'linear'; expected 'O\(…\)' of t, T and parameters"),
            ({"needs_horizon": "no"}, "needs_horizon = 'no'; expected True, False, or None"),
            ({"deterministic": "yes"}, "deterministic = 'yes'; expected True, False, or None"),
        ]],
    ],
)  # fmt: skip
def test_what_is_no_declaration_is_refused(strategy, match):
    pair = (strategy, Bernoulli()) if isinstance(strategy, f.Forecaster) else (f.Constant(), strategy)
    with pytest.raises(InvalidParameter, match=match):
        Game(*pair, horizon=5, runs=range(1))
    with pytest.raises(InvalidParameter, match=match):
        list(check([pair[0]], [pair[1]], horizon=16, runs=1, seed=0))
    (found,) = conformance(strategy)
    assert found.check == "what it declares"
    assert re.search(match, found.fault)


# ---------------------------------------------------------------- plug-ins that break a rule each


@dataclass(frozen=True)
class Rule(f.Forecaster):
    breaks: str = ""

    def start(self, horizon, stream):
        return RulePlayer(self.breaks)


CLOCK = itertools.count()


class RulePlayer(Half):
    def __init__(self, breaks):
        self.breaks, self.asked = breaks, 0
        if breaks == "pickle":
            self.hook = lambda: None

    def forecast(self, round):
        self.asked += 1
        return {
            "purity": 1 / (1 + self.asked),
            "repeat": next(CLOCK) % 997 / 997,
            "law": 1.01 if round.number == 100 else 0.5,
        }.get(self.breaks, 0.5)


def rounds_of_all(run, number):
    """States how many rounds all runs were told, which is none of theirs to know."""
    values, weights = law(run)
    values[0], weights[0] = shared(run)[0] % 997.0 / 997.0, 1.0
    return 1


def count_for_all(run, place, forecast, outcome, number):
    shared(run)[0] += 1.0
    return 0


@dataclass(frozen=True)
class Split(Rule):
    def start(self, horizon, stream):
        return Forecaster(rounds_of_all, count_for_all, shared=[0.0])


@pytest.mark.parametrize(
    ("spec", "check_", "said"),
    [
        (Rule("purity"), "laws sum", "two different laws"),
        (Rule("law"), "laws sum", "stated the forecasts [1.01]"),
        (Rule("repeat"), "same seed", "differ"),
        (Split(), "split", "played beside it"),
        (Rule("pickle"), "pickled", "cannot be pickled"),
    ],
)
def test_who_breaks_a_rule_is_told_which(spec, check_, said):
    faults = {finding.check: finding.fault for finding in conformance(spec)}
    (fault,) = [fault for label, fault in faults.items() if check_ in label]
    assert said in fault
    assert strategy_key(spec) in fault


def test_who_breaks_none_is_told_so():
    assert [finding.fault for finding in conformance(Rule())] == [""] * 5


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("import os; os.write(1, b'\\xff told')", ""),
        ("import random; self.p = random.random()", "two games of the same seed differ"),
    ],
)
def test_what_a_class_prints_is_no_part_of_its_play(tmp_path, monkeypatch, line, said):
    (tmp_path / "chatty.py").write_text(
        "print('imported')\nclass Chatty:\n    p = 0.5\n    def forecast(self): return self.p\n"
        f"    def update(self, forecast, outcome): {line}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "chatty", raising=False)
    monkeypatch.setattr(conformance_module, "CHECKS", conformance_module.CHECKS[1:2])
    found = conformance(strategy_of("forecaster", "chatty:Chatty"), name="chatty:Chatty")
    faults = {finding.check: finding.fault for finding in found}
    assert "a spawned process with another hash seed plays the same" in faults
    assert any(said in fault for fault in faults.values()) if said else not any(faults.values())


def test_a_nature_that_looks_too_far_is_told_so():
    class Peeping:
        def probability(self, round):
            return max(round.law)

    faults = [finding.fault for finding in conformance(as_nature(Peeping))]
    assert faults
    assert all("declares sight NOTHING" in fault for fault in faults)
