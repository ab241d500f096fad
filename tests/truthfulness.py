"""The gain of forecasts that one does not believe: the table of docs/measures.md, without a random number.

The game has T/2 pairs of rounds: a fair coin, and then its opposite, which is therefore certain. The truth is ½ and
then 0 or 1. The lie is ½ in every round, and just half of the outcomes are 1, whatever the coins show. Γ depends on the
number of heads alone, so that expectations are sums over a binomial number.
"""

import numpy as np
from scipy.stats import binom

from onlinecal.core.joint import JointDistribution
from onlinecal.measures import MEASURES, Bracket
from tests.pages import markdown

SIZES = (64, 256, 1024)
SHOWN = ("ece", "smooth_ce", "step_ce", "v_cdl", "cdl", "atb", "subsampled_smooth_ce", "subsampled_step_ce")


def value(name: str, gamma: JointDistribution) -> float:
    """The total T·μ; the example is one in which no bracket has a width."""
    record = MEASURES[name]
    # In that many rounds at ½ more numbers come up than are enumerated unasked.
    options = {"subsets": 100_000} if "subsampled" in name else {}
    found = record.function(gamma, **options)
    if isinstance(found, Bracket):
        assert found.width == 0.0
        found = found.lower
    return gamma.weight * float(found)


def truth(rounds: int, heads: int) -> JointDistribution:
    """Γ of a forecaster that says what is so, where `heads` coins show 1."""
    coins = rounds // 2
    return JointDistribution.from_counts(
        [0.0, 0.5, 1.0], [heads, coins, coins - heads], [0, heads, coins - heads]
    )


def lie(rounds: int) -> JointDistribution:
    """Γ of a forecaster that says ½ for ever."""
    return JointDistribution.from_counts([0.5], [rounds], [rounds // 2])


def expected_of_truth(name: str, rounds: int) -> float:
    """E of the total over the coins."""
    coins = rounds // 2
    chance = binom.pmf(np.arange(coins + 1), coins, 0.5)
    # The rest is less likely than 1e-15 in all, of a total of at most T.
    heads = np.flatnonzero(chance > 1e-20)
    return float(sum(chance[h] * value(name, truth(rounds, int(h))) for h in heads))


def table() -> str:
    """The expected totals of both, in Markdown."""
    head = ["measure", *(f"truth, T = {T}" for T in SIZES), f"½ for ever, T = {SIZES[-1]}"]
    rows = []
    for name in SHOWN:
        totals = [*(expected_of_truth(name, T) for T in SIZES), value(name, lie(SIZES[-1]))]
        rows.append([f"`{name}`", *(f"{total:.2f}" for total in totals)])
    return markdown(head, rows)


if __name__ == "__main__":
    print(table())
