"""What is read at a checkpoint: every measure by its name and options, functions of one's own, brackets."""

from __future__ import annotations

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.joint import JointDistribution
from onlinecal.decisions.tasks import umbrella
from onlinecal.measures import MEASURES
from onlinecal.study.panel import Panel
from tests.gammas_metric import many_levels


def test_a_measure_of_ones_own_and_one_that_is_nan():
    def halved(gamma):
        return oc.measures.ece(gamma) / 2

    def broken(gamma):
        return float("nan") if gamma.weight > 6 else 0.0

    study = oc.play(
        oc.forecasters.Constant(), oc.natures.Bernoulli(1.0), horizon=40, runs=1, measures=[halved]
    )
    assert study.curve("halved").totals[-1, 0] == 10.0
    with pytest.raises(oc.OnlinecalError, match="broken is NaN"):
        oc.play(oc.forecasters.Constant(), oc.natures.Bernoulli(1.0), horizon=40, runs=1, measures=[broken])


@pytest.mark.parametrize(
    ("at_once", "value", "said"),
    [
        (True, "0.5", "measure 'broken' returned '0.5'; expected a number"),
        (
            False,
            np.zeros(2),
            r"measure 'broken' returned array\(\[0., 0.\]\); expected a number; after round 10 of",
        ),
        (False, None, "measure 'broken' returned None; .* of 'constant' against 'bernoulli', run 0"),
        (
            False,
            0,
            r"'broken' failed: ZeroDivisionError: .* \(.*test_panel.py:\d+\); after round 10 of 'constant'",
        ),
        (False, float("nan"), "broken is NaN on .*; after round 10 of 'constant'"),
    ],
)
def test_a_broken_measure_is_named_with_the_round(at_once, value, said):
    def broken(gamma):
        if not at_once and gamma.weight < 10:
            return 0.0
        return 1 / value if isinstance(value, int) else value

    with pytest.raises(oc.OnlinecalError, match=said):
        oc.play(oc.forecasters.Constant(), oc.natures.Bernoulli(), horizon=40, runs=2, measures=broken)
    if at_once:
        with pytest.raises(oc.OnlinecalError, match=said):
            oc.evaluate([0.5], [1], measures=broken)


def test_a_measure_with_a_limit_has_two_columns_only_where_it_can_be_reached():
    spec = {"name": "interval_ce", "max_levels": 30}
    plain = Panel.of([spec], rounds=30)
    both = Panel.of([spec], rounds=31)
    assert plain.names == ["interval_ce(max_levels=30)"]
    assert both.names == ["interval_ce(max_levels=30)[lower]", "interval_ce(max_levels=30)[upper]"]
    few, many = many_levels(0, 20), many_levels(0, 3000)
    assert both.read(few) == plain.read(few) * 2
    low, high = both.read(many)
    assert low <= many.weight * MEASURES["interval_ce"].function(many) <= high
    assert Panel.of(["interval_ce"], rounds=10**5).names == ["interval_ce"]
    assert len(Panel.of(["interval_ce"]).names) == 2


def test_a_bracket_can_be_tracked_in_a_game():
    class Fresh:
        """A new value in every round."""

        def __init__(self):
            self.round = 0

        def forecast(self):
            self.round += 1
            return (self.round * 0.6180339887) % 1.0

        def update(self, forecast, outcome):
            pass

    spec = {"name": "interval_ce", "max_levels": 50}
    study = oc.play(Fresh, oc.natures.Bernoulli(0.5), horizon=200, runs=1, measures=[spec, "distance_lower"])
    low, high = (study.curve(f"interval_ce(max_levels=50)[{end}]") for end in ("lower", "upper"))
    early = np.asarray(low.rounds) <= 50
    assert (low.mean[early] == high.mean[early]).all()
    assert low.mean[-1] < high.mean[-1]


def test_a_panel_reads_the_total_of_every_column():
    gamma = JointDistribution.from_counts([0.2, 0.25, 0.6], [4, 1, 3], [3, 0, 1])
    task = umbrella()
    panel = Panel.of(["brier", {"name": "interval_ce", "max_levels": 2}, "ece"], task)
    assert panel.names == [
        "brier", "interval_ce(max_levels=2)[lower]", "interval_ce(max_levels=2)[upper]", "ece",
        "payoff[umbrella]", "external_regret[umbrella]", "action_swap_regret[umbrella]", "swap_regret[umbrella]",
    ]  # fmt: skip
    bracket = MEASURES["interval_ce"].bind(max_levels=2)(gamma)
    values = [
        oc.measures.brier(gamma),
        bracket.lower,
        bracket.upper,
        oc.measures.ece(gamma),
        *task.account(gamma),
    ]
    assert panel.read(gamma) == [8 * value for value in values]


def test_the_contents_are_the_same_in_any_order_and_know_options():
    specs = ["ece", {"name": "binned_ece", "bins": 3}]
    first, second = Panel.of(specs), Panel.of(specs[::-1])
    assert first.contents == second.contents
    assert first.names != second.names
    other = Panel.of(["ece", {"name": "binned_ece", "bins": 4}])
    assert other.contents.keys() != first.contents.keys()
    assert list(other.contents.values())[1] != list(first.contents.values())[1]


@pytest.mark.parametrize(
    ("measures", "tasks", "said"),
    [
        ([], [], "no measures and no tasks"),
        ([3], [], "measure 3; expected a name or a table with a name"),
        (["ec"], [], "unknown measure 'ec'; did you mean 'ece'"),
        ([{"name": "binned_ece", "bin": 3}], [], "binned_ece"),
        ([{"name": "binned_ece", "bins": 0}], [], "bins = 0"),
        ([], ["umbrela"], "unknown task 'umbrela'; did you mean 'umbrella'"),
        ([], [{"name": "v_shaped", "s": 0.3}], "task 'v_shaped'"),
        ([], [{"name": "mine", "payoffs": [[0, 1]], "action": ["a"]}], "task 'mine' has no option 'action'"),
        ([{"name": lambda gamma: 0.0, "x": 1}], [], "measure '<lambda>'"),
        (["smooth_ece_at"], [], "'smooth_ece_at' needs the option 'sigma'"),
        (["ece", oc.measures.ece], [], "asked for twice"),
    ],
)
def test_what_is_no_panel_is_refused(measures, tasks, said):
    with pytest.raises(oc.OnlinecalError, match=said):
        Panel.of(measures, tasks)
