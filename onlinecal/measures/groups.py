"""Measures of a family: of the Γ of several groups of the same rounds, which may overlap.

The group ``all`` has every round. B(v, g) is the sum of y − v over the rounds of group g with forecast v. The group has
n_g rounds. Values are divided by the number n of all rounds, as those of Γ are.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, wraps
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from onlinecal.core.arrays import Floats, Ints
from onlinecal.core.columns import ALL
from onlinecal.core.errors import InvalidData, InvalidParameter, in_one_line, meant
from onlinecal.core.joint import JointDistribution, samples
from onlinecal.core.samples import ours, plain
from onlinecal.core.validation import check_names, check_same_rows, choice, vector
from onlinecal.decisions.tasks import Task, as_task
from onlinecal.measures.base import Measure, row
from onlinecal.measures.decision import cdl

F = TypeVar("F", bound=Callable[..., Any])


def of_groups(function: F) -> F:
    """Marks a function as a measure of a dict name → Γ of each group that has a round, ``all`` first; an average.

    Examples
    --------
    >>> @of_groups
    ... def widest_gap(groups):
    ...     rates = [gamma.base_rate for gamma in groups.values()]
    ...     return max(rates) - min(rates)
    """
    function.of_groups = True  # type: ignore[attr-defined]
    return function


def is_of_groups(function: Any) -> bool:
    """Whether a measure is of a family."""
    return getattr(function, "of_groups", False) is True


class Family(dict[str, JointDistribution]):
    """Γ of each group that has a round, ``all`` first, on the levels that have been forecast."""

    @cached_property
    def n(self) -> float:
        """The weight of all rounds."""
        return self[ALL].weight

    @cached_property
    def shares(self) -> Floats:
        """n_g/n, (groups,)."""
        return np.array([gamma.weight / self.n for gamma in self.values()])

    @cached_property
    def biases(self) -> Floats:
        """B(v, g)/n, (groups, levels)."""
        return self._on_levels(
            share * gamma.residuals for share, gamma in zip(self.shares, self.values(), strict=True)
        )

    @cached_property
    def mass(self) -> Floats:
        """The share of all rounds that are of the group with this forecast, (groups, levels)."""
        return self._on_levels(
            share * gamma.mass for share, gamma in zip(self.shares, self.values(), strict=True)
        )

    def _on_levels(self, each: Iterable[Floats]) -> Floats:
        levels = self[ALL].predictions
        found = np.zeros((len(self), len(levels)))
        for values, gamma, own in zip(found, self.values(), each, strict=True):
            at = np.searchsorted(levels, gamma.predictions)
            if (levels[np.minimum(at, len(levels) - 1)] != gamma.predictions).any():
                raise InvalidData(
                    f"a group has forecasts that {ALL!r} lacks; expected groups of the same rounds"
                )
            values[at] = own
        return found


class Worst(NamedTuple):
    """The value of a measure of a family; the group that has it, and at which forecast (None: all together)."""

    value: float
    group: str | None
    level: float | None = None

    def __str__(self) -> str:
        group = "the worst group of each forecast" if self.group is None else f"group {self.group!r}"
        return f"{self.value:g}: {group}" + ("" if self.level is None else f" at the forecast {self.level:g}")


def family_of(
    name: str, groups: Any, p: Any = None, y: Any = None, weights: Any = None, **words: Any
) -> Family:
    """Γ of each group, of a mapping of them, or of samples and a mapping of memberships."""
    if p is None:
        if beside := [
            key for key, value in {"y": y, "weights": weights, **words}.items() if value is not None
        ]:
            raise InvalidParameter(
                f"{name}: {', '.join(beside)} without p; expected p, or a mapping name → Γ alone"
            )
        if not isinstance(groups, Mapping):
            expected = "a mapping name → Γ, or beside p and y name → 0, 1, …"
            raise InvalidParameter(f"{name}: groups = {in_one_line(groups)}; expected {expected}")
        wrong = not all(isinstance(gamma, JointDistribution) for gamma in groups.values())
        if wrong or ALL not in groups:
            expected = f"a JointDistribution of each, and of {ALL!r}, which has every round"
            raise InvalidParameter(f"{name}: groups {', '.join(map(repr, groups))}; expected {expected}")
        return Family({ALL: groups[ALL], **groups})
    given = plain({"p": p, "y": y, "weights": weights, **columns_of(name, groups)}, **words)
    p, y, *w = samples(given["p"], given["y"], given["weights"])
    check_same_rows(given)
    every = {ALL: np.arange(len(p)), **members_in(name, given, groups)}
    family = Family()
    for group, rows in every.items():
        own = w[0][rows] if w else None
        if len(rows) and (own is None or group == ALL or own.any()):
            family[group] = JointDistribution.from_samples(p[rows], y[rows], weights=own)
    return family


def columns_of(name: str, groups: Any) -> dict[str, Any]:
    """The memberships of samples, by names for errors."""
    if not isinstance(groups, Mapping) or ALL in groups:
        expected = f"a mapping name → 0 or 1 of each sample, without {ALL!r}, which has every one"
        raise InvalidParameter(f"{name}: groups = {in_one_line(groups)}; expected {expected}")
    return {f"groups[{group!r}]": values for group, values in groups.items()}


def members_in(name: str, given: Mapping[str, Any], groups: Iterable[str]) -> dict[str, Ints]:
    """The numbers of the samples in each group."""
    n, found = len(given["p"]), dict[str, Ints]()
    for group in groups:
        values = given[column := f"groups[{group!r}]"]
        inside = vector(column, values)
        if inside.shape != (n,) or not np.isin(inside, (0, 1)).all():
            raise InvalidData(f"{name}: {column} is {in_one_line(values)}; expected {n} values of 0 or 1")
        found[group] = np.flatnonzero(inside == 1)
    return found


def of_family(function: Callable[..., Worst]) -> Callable[..., float]:
    """A measure of a mapping name → Γ, or of (p, y) and ``groups=``; its attribute `worst` tells which group has it."""
    known = [p.name for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY]

    def worst(*given: Any, **options: Any) -> Worst:
        own = {key: options.pop(key) for key in known if key in options}
        if len(given) == 1 and isinstance(given[0], Mapping):
            options, given = {"groups": given[0], **options}, ()
        named = dict(zip(("p", "y"), given, strict=False))
        rows = {**named, **ours(function.__name__, options, tuple(named))}
        family = rows.get("groups")
        if len(rows) > 1 or not isinstance(family, Family):
            check_names(function.__name__, samples, rows, ("groups", *known))
            family = family_of(function.__name__, rows.pop("groups", None), **rows)
        return function(family, **own)

    @wraps(function)
    def value(*given: Any, **options: Any) -> float:
        return worst(*given, **options).value

    value.worst = worst  # type: ignore[attr-defined]
    return of_groups(value)


def _largest(family: Family, values: Any) -> Worst:
    """The largest value of a group, the first of several."""
    at = int(np.argmax(values))
    return Worst(float(values[at]), [*family][at])


@of_family
def multi_ece(family: Family, *, per: Literal["", "root", "round"] = "") -> Worst:
    """Multicalibration error: the largest max_g Σ_v |B(v, g)| of a group, as a share of all rounds.

    Takes a mapping name → Γ with ``all``, or p, y and ``groups=``, name → 0, 1, …. With one group it is `ece`.

    Source: Noarov, Ramalingam, Roth and Xie 2025, §2.2; weighed by the root after Haghtalab, Jordan and Zhao 2023.

    Parameters
    ----------
    per : {"", "root", "round"}
        Divided by √n_g, or by n_g. The last is what a member of the worst group meets, and is no share of all rounds.
        Small groups have a large one by chance.

    Examples
    --------
    >>> p, y = [0.25, 0.25, 0.75, 0.75], [0, 1, 0, 1]
    >>> multi_ece(p, y, groups={"early": [1, 1, 0, 0]}), multi_ece(p, y, groups={"early": [1, 1, 0, 0]}, per="round")
    (0.25, 0.25)
    """
    choice("multi_ece: ", "per", per, ("", "root", "round"))
    errors = np.array([np.abs(gamma.residuals).sum() for gamma in family.values()])
    if per == "root":
        return _largest(family, errors * np.sqrt(family.shares / family.n))
    return _largest(family, errors if per == "round" else errors * family.shares)


@of_family
def swap_multi_ece(family: Family) -> Worst:
    """Swap multicalibration error: Σ_v max_g |B(v, g)|, each forecast by its own worst group. At least `multi_ece`.

    Source: Gopalan, Kim and Reingold 2023, with the absolute error.

    Examples
    --------
    >>> swap_multi_ece([0.25, 0.25, 0.75, 0.75], [0, 1, 0, 1], groups={"early": [1, 1, 0, 0]})
    0.25
    """
    return Worst(float(np.abs(family.biases).max(axis=0).sum()), None)


@of_family
def multi_linf(family: Family) -> Worst:
    """The largest |B(v, g)| of a forecast in a group, as a share of all rounds. At most `multi_ece`.

    Source: Gupta, Jung, Noarov, Pai and Roth 2022.

    Examples
    --------
    >>> multi_linf([0.25, 0.25, 0.75, 0.75], [0, 1, 0, 1], groups={"early": [1, 1, 0, 0]})
    0.125
    """
    errors = np.abs(family.biases)
    group, level = np.unravel_index(int(np.argmax(errors)), errors.shape)
    return Worst(float(errors[group, level]), [*family][group], float(family[ALL].predictions[level]))


@of_family
def multi_l2(family: Family) -> Worst:
    """The largest Σ_v B(v, g)²/n(v, g) of a group, as a share of all rounds; n(v, g) are its rounds with forecast v.

    Source: the squared form of `multi_ece`.

    Examples
    --------
    >>> multi_l2([0.25, 0.25, 0.75, 0.75], [0, 1, 0, 1], groups={"early": [1, 1, 0, 0]})
    0.0625
    """
    squares = np.square(family.biases) / np.where(family.mass > 0.0, family.mass, 1.0)
    return _largest(family, squares.sum(axis=1))


@of_family
def multiaccuracy(family: Family) -> Worst:
    """Multiaccuracy error: the largest |Σ_v B(v, g)| of a group, as a share of all rounds. At most `multi_ece`.

    Source: Kim, Ghorbani and Zou 2019.

    Examples
    --------
    >>> multiaccuracy([0.25, 0.25, 0.75, 0.75], [0, 1, 0, 1], groups={"early": [1, 1, 0, 0]})
    0.125
    """
    return _largest(family, np.abs(family.biases.sum(axis=1)))


@of_family
def group_cdl(family: Family) -> Worst:
    """The largest n_g·CDL of a group, as a share of all rounds: it bounds `group_swap_regret` for payoffs in [0, 1].

    Source: Hu and Wu 2024, for the rounds of each group.

    Examples
    --------
    >>> group_cdl([0.25, 0.25, 0.75, 0.75], [0, 1, 0, 1], groups={"early": [1, 1, 0, 0]})
    0.25
    """
    return _largest(family, family.shares * [cdl(gamma) for gamma in family.values()])


@of_family
def group_swap_regret(family: Family, *, task: Task | str = "quadratic") -> Worst:
    """The largest swap regret of a task over the rounds of a group, as a share of all rounds.

    Source: Noarov, Ramalingam, Roth and Xie 2025, Definitions 3.5 and 3.6.

    Parameters
    ----------
    task : Task or str, default "quadratic"
        A task, or the name of one.

    Examples
    --------
    >>> group_swap_regret([0.25, 0.25, 0.75, 0.75], [0, 1, 0, 1], groups={"early": [1, 1, 0, 0]})
    0.0625
    """
    known = as_task("group_swap_regret", task)
    return _largest(family, family.shares * [known.account(gamma).swap for gamma in family.values()])


#: name → measure of a family
OF_GROUPS: dict[str, Measure] = {
    measure.name: measure
    for measure in (
        row(multi_ece, "max_g Σ|B(v,g)| | NRRX25 | O(nk) | no | yes | yes"),
        row(swap_multi_ece, "Σ max_g |B(v,g)| | GKR23 | O(nk) | no | yes | yes"),
        row(multi_linf, "max |B(v,g)| | GJNPR22 | O(nk) | no | yes | yes"),
        row(multi_l2, "max_g Σ B(v,g)²/n(v,g) | NRRX25 | O(nk) | no | yes | yes"),
        row(multiaccuracy, "max_g |Σ B(v,g)| | KGZ19 | O(nk) | no | yes | no"),
        row(group_swap_regret, "max_g SwapReg_g | NRRX25 | O(nk) | no | yes | no"),
        row(
            group_cdl,
            "max_g CDL_g | HW24 | O(nk log k) | no | yes | yes",
            decisions="swap regret of every task in each group",
        ),
    )
}


def worst_group(name: str, *given: Any, **options: Any) -> Worst:
    """The value of a measure of groups, with the group that has it, and where it is one forecast's, the forecast.

    Parameters
    ----------
    name : str
        Of a measure of groups.
    *given, **options
        Its own: a mapping name → Γ with ``all``, or p, y and ``groups=``.

    Examples
    --------
    >>> print(worst_group("multi_linf", [0.25, 0.25, 0.75, 0.75], [0, 1, 0, 1], groups={"late": [0, 0, 1, 1]}))
    0.125: group 'all' at the forecast 0.25
    """
    function: Any = OF_GROUPS[meant("measure", name, OF_GROUPS)].function
    worst: Worst = function.worst(*given, **options)
    return worst
