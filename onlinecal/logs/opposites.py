"""Columns of probabilities that sum to 1: of an event and its opposite, or of several outcomes."""

import math
from itertools import combinations

import numpy as np

from onlinecal.core.arrays import Floats
from onlinecal.core.errors import InvalidData
from onlinecal.core.rows import Rows, as_number

#: how names of columns end for an event's opposite and for the event
SIDES = (("0", "1"), ("no", "yes"), ("n", "y"), ("false", "true"), ("neg", "pos"), ("negative", "positive"))


def without_opposites(
    table: Rows, names: list[str], percent: bool, positive: str | None, said: list[str]
) -> list[str]:
    """The columns without those of the opposite event; an error where names do not tell which these are."""
    whole = 100.0 if percent else 1.0
    cells = [[as_number(cell)[0] for cell in table.sample(name)] for name in names]
    values = np.array([[math.nan if x is None else x / whole for x in column] for column in cells])
    expected = "expected --forecast COLUMN, that of outcome 1"
    if len(names) > 2 and _sum_to_one(*values):
        raise InvalidData(
            f"{table.name}: columns {', '.join(map(repr, names))} sum to {whole:g}, as probabilities of different "
            f"outcomes; {expected}, or --classes"
        )
    left_out = set[str]()
    for i, j in combinations(range(len(names)), 2):
        if not _sum_to_one(values[i], values[j]) or _sum_to_one(values[i], values[i]):
            continue
        either = [names[i], names[j]]
        of_no = [no for no, yes in (either, either[::-1]) if _are_sides(no, yes, positive)]
        if len(of_no) != 1:
            raise InvalidData(
                f"{table.name}: columns {names[i]!r} and {names[j]!r} sum to {whole:g}, as probabilities of an event "
                f"and of its opposite; {expected}"
            )
        left_out.update(of_no)
        said.append(f"column {of_no[0]!r} is the opposite of another one and is left out")
    return [name for name in names if name not in left_out]


def _sum_to_one(*columns: Floats) -> bool:
    """Whether they do in each row that has all of them, but for rounding to two decimals."""
    off = np.abs(np.sum(columns, axis=0) - 1.0)
    there = off[~np.isnan(off)]
    return bool(len(there) and there.max() <= 0.005 * len(columns) + 1e-9)


def _are_sides(no: str, yes: str, positive: str | None) -> bool:
    """Whether two names are those of an event's opposite and of the event, as prob_0 and prob_1."""
    no, yes, word = map(plain, (no, yes, positive or ""))
    if word and no.endswith(word) != yes.endswith(word):
        return yes.endswith(word)
    return any(
        no.endswith(one) and yes.endswith(other) and no.removesuffix(one) == yes.removesuffix(other)
        for one, other in SIDES
    )


def plain(name: str) -> str:
    """Its letters and digits, in lower case."""
    return "".join(c for c in name.lower() if c.isalnum())
