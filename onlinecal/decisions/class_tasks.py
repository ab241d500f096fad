"""Decision tasks whose payoff depends on one of K classes, and what trusting a forecast in one comes to regret."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from onlinecal.core.arrays import Floats, Ints
from onlinecal.core.classes import ClassDistribution
from onlinecal.core.errors import InvalidParameter
from onlinecal.decisions._payoffs import PayoffTable
from onlinecal.decisions.regret import TIE


class ClassAccount(NamedTuple):
    """Payoff and regrets of a decision maker that trusts the forecast, per row.

    Attributes
    ----------
    payoff : float
        E[u(BR(v), y)].
    external, action_swap, swap : float
        Gain of the best fixed action, of the best swap of actions, and of the best action at each level.
        external ≤ action_swap ≤ swap.
    levels : (k,) floats
        The parts of `swap` of each level.
    actions : dict
        The parts of `action_swap` by the name of the action that is taken.
    """

    payoff: float
    external: float
    action_swap: float
    swap: float
    levels: Floats
    actions: dict[str, float]


@dataclass(frozen=True)
class ClassTask(PayoffTable):
    """A decision between finitely many actions with payoffs in [0, 1] for each of K classes.

    The best response to v maximises Σ_y v_y u(a, y). Of equal ones (within 2⁻⁵⁰) it is the first action.

    Parameters
    ----------
    name : str
        Not empty.
    payoffs : (A, K) array_like
        `payoffs[a][y]` = u(a, y) in [0, 1], A ≥ 1, K ≥ 2.
    actions : (A,) sequence of str, optional
        Distinct names. Default: "action 0", "action 1", ….

    Examples
    --------
    >>> task = ClassTask("exit", [[1, 0, 0], [0.4, 0.4, 0.4]], ["stay", "leave"])
    >>> task.respond([0.5, 0.3, 0.2]), task.respond([0.4, 0.3, 0.3]), task.respond([0.3, 0.4, 0.3])
    ('stay', 'stay', 'leave')
    """

    def respond(self, v: ArrayLike) -> str:
        """The first action that is a best response to v, a vector of K probabilities."""
        row = np.asarray(v)[None]
        one = ClassDistribution.from_levels(row, [1.0], row)
        return self.actions[int(self._responses(one)[0])]

    def _responses(self, gamma: ClassDistribution) -> Ints:
        """The number of the action taken at each level."""
        if gamma.classes != self.table.shape[1]:
            raise InvalidParameter(
                f"task {self.name!r} has payoffs for {self.table.shape[1]} classes; expected {gamma.classes}, those of "
                "the forecast"
            )
        expected = gamma.predictions @ self.table.T
        return np.argmax(expected >= expected.max(axis=1, keepdims=True) - TIE, axis=1)

    def account(self, gamma: ClassDistribution) -> ClassAccount:
        """Payoff and regrets of best-responding to the predictions of Γ, in O(k A K)."""
        taken = self._responses(gamma)
        got = gamma.means @ self.table.T  # (k, A): what each action pays at each level
        here = np.take_along_axis(got, taken[:, None], axis=1)[:, 0]
        # A calibrated level has nothing to gain, whatever the rounding of its ties.
        regrets = np.where((gamma.means == gamma.predictions).all(axis=1), 0.0, got.max(axis=1) - here)
        levels = gamma.mass * regrets
        # (A, A): what those who take one action would gain by another.
        gains = np.zeros((len(self.table),) * 2)
        np.add.at(gains, taken, gamma.mass[:, None] * (got - here[:, None]))
        parts, swap = gains.max(axis=1), float(levels.sum())
        # The order between the three is a theorem; rounding must not undo it.
        action_swap = min(float(parts.sum()), swap)
        external = min(float(gains.sum(axis=0).max()), action_swap)
        names = {self.actions[a]: float(parts[a]) for a in np.unique(taken)}
        return ClassAccount(float(gamma.mass @ here), external, action_swap, swap, levels, names)

    def __str__(self) -> str:
        rows = zip(self.actions, self.payoffs, strict=True)
        pays = (f"{action} pays {', '.join(f'{u:.6g}' for u in row)}" for action, row in rows)
        return f"{self.name}: {'; '.join(pays)} for the classes in their order"
