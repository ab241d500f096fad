"""What the page of the measures says of the truth and of lies, in expectations without a random number."""

import numpy as np
import pytest

from tests.truthfulness import expected_of_truth, lie, rounded_ece, value

REWARD = ("ece", "smooth_ce", "step_ce", "v_cdl", "cdl")
SUBSAMPLED = ("subsampled_smooth_ce", "subsampled_step_ce")


@pytest.mark.parametrize("name", [*REWARD, "atb"])
def test_the_lie_is_calibrated(name):
    for rounds in (64, 256):
        assert value(name, lie(rounds)) == 0.0
        assert expected_of_truth(name, rounds) > 0.1


@pytest.mark.parametrize("name", REWARD)
def test_the_truth_pays_the_root(name):
    small, large = (expected_of_truth(name, rounds) for rounds in (64, 1024))
    assert large / small == pytest.approx(4.0, rel=0.02)
    # E|N − n/2| of n = T/2 coins is √(n/2π) for large n; the worst task pays twice that.
    times = 2.0 if name.endswith("cdl") else 1.0
    assert large == pytest.approx(times * np.sqrt(512 / (2 * np.pi)), rel=0.01)


def test_what_the_truth_pays_in_squares_does_not_grow():
    # E (N − n/2)² = n/4, twice where the edge is below or above ½, over T = 2n.
    for rounds in (64, 256):
        assert expected_of_truth("atb", rounds) == pytest.approx(1 / 8, rel=1e-9)


@pytest.mark.parametrize("name", SUBSAMPLED)
def test_the_lie_gains_nothing_in_a_random_half(name):
    for rounds in (64, 256):
        truth, same = expected_of_truth(name, rounds), value(name, lie(rounds))
        # Both are E|X| of a sum of variance T/16; they differ by what its law is not normal.
        assert truth == pytest.approx(same, rel=2 / rounds)
        assert same == pytest.approx(np.sqrt(rounds / (8 * np.pi)), rel=1 / rounds)


def test_ece_rewards_rounding_of_independent_events():
    for rounds in (64, 512):
        p = (np.arange(rounds) + 0.5) / rounds
        truth = float((2 * p * (1 - p)).sum())
        assert rounded_ece(rounds, rounds) == pytest.approx(truth)
        assert truth == pytest.approx(rounds / 3, rel=0.01)
    # T^{1/3} cells of T^{2/3} rounds, each with a bias of some T^{1/3}: eight times the rounds, four times the total.
    totals = [rounded_ece(rounds, round(rounds ** (1 / 3))) for rounds in (64, 512, 4096)]
    assert totals[0] < 64 / 6
    assert totals[1] / totals[0] == pytest.approx(4.0, rel=0.05)
    assert totals[2] / totals[1] == pytest.approx(4.0, rel=0.05)
