"""Columns of a file that say which of its rows are in which groups."""

import re
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.columns import ALL, MOST_GROUPS
from onlinecal.core.errors import InvalidData
from onlinecal.core.rows import Rows, as_number

#: words of members and of others, in lower case
MEMBER, OTHER = {"1", "true"}, {"0", "false"}
#: whole numbers in digits, of which 2 and 2.0 are one
WHOLE = re.compile(r"[+-]?(0|[1-9]\d*)(\.0*)?", re.ASCII)


class Members(NamedTuple):
    """The groups of some columns, and how many rows have no value in each of these that lacks some."""

    groups: dict[str, NDArray[np.bool_]]
    missing: dict[str, NDArray[np.bool_]]


def members_of(table: Rows, columns: Iterable[str]) -> Members:
    """Whether each row is in each group.

    A column of 0 and 1, or of true and false, is a group. One of other texts or whole numbers is a group for each of
    them, ``season: winter``. A row without a value is in none of its column.
    """
    groups, missing = dict[str, NDArray[np.bool_]](), dict[str, NDArray[np.bool_]]()
    for column in columns:
        place, words = table.groups(column)
        words = [str(int(word.partition(".")[0])) if WHOLE.fullmatch(word) else word for word in words]
        known = list(dict.fromkeys(word for word in words if word))
        if {word.lower() for word in known} <= MEMBER | OTHER:
            found = {column: [word.lower() in MEMBER for word in words]}
        else:
            if len(known) > MOST_GROUPS:
                said = f"column {column!r} has {len(known)} different values"
                raise InvalidData(f"{table.name}: {said}; expected at most {MOST_GROUPS}, a group for each")
            if parts := [word for word in known if not _whole(word)]:
                said = f"column {column!r} of groups holds {parts[0]}"
                raise InvalidData(f"{table.name}: {said}; expected 0 and 1, texts or whole numbers")
            found = {f"{column}: {word}": [word == other for other in words] for word in known}
        for name, inside in found.items():
            if name in groups or name == ALL:
                said = f"two groups are called {name!r}"
                raise InvalidData(f"{table.name}: {said}; expected different ones, and none called {ALL!r}")
            groups[name] = np.array(inside, dtype=bool)[place]
        if "" in words:
            missing[column] = place == words.index("")
    if len(groups) > MOST_GROUPS:
        said = f"{len(groups)} groups ({', '.join([*groups][:3])}, …)"
        raise InvalidData(f"{table.name}: {said}; expected at most {MOST_GROUPS} of all columns together")
    return Members(groups, missing)


def _whole(word: str) -> bool:
    """Whether it is no number, or a whole one."""
    value, _ = as_number(word)
    return value is None or value.is_integer()
