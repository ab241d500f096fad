"""Questions that are forecast many times, as in a panel: the column that tells them apart."""

import math
from collections.abc import Collection, Iterable, Sequence

import numpy as np

from onlinecal.core.arrays import Floats, Ints
from onlinecal.core.errors import InvalidData
from onlinecal.core.rows import Rows, as_number
from onlinecal.logs.opposites import plain

#: usual names of columns of questions, in lower case, letters and digits alone
QUESTIONS = {
    "id", "question", "questionid", "qid", "market", "marketid", "event", "eventid", "contract", "contractid",
    "ticker", "slug", "race", "raceid", "match", "matchid", "game", "gameid", "title", "url", "item", "itemid",
}  # fmt: skip
#: labels of a column of another name, at least; the share of the forecasts' variance that they explain, at least
FEWEST, ALIKE = 10, 0.1
#: the largest probability that independent outcomes are constant within all labels
CHANCE = 1e-3


def question_column(
    table: Rows, taken: Collection[str | None], rows: Ints, forecasts: Iterable[Floats], outcomes: Floats
) -> str | None:
    """The column of labels that repeat while the outcome is constant within each; None where no column is so.

    `rows` are those of the table with these forecasts and outcomes. Columns that are `taken` are not looked at.
    """
    # The rule is in docs/evaluate.md. Of several columns the one with the fewest labels is taken, as it never counts
    # too much evidence.
    forecasts, found = list(forecasts), list[tuple[int, bool, str]]()
    for name in table.columns:
        if not name or name in taken or table.columns.count(name) > 1 or not table.repeats(name):
            continue
        place, texts = table.groups(name)
        if any(not texts[i] for i in np.unique(place[rows])):
            continue
        there, labels = np.unique(place[rows], return_inverse=True)
        known = plain(name) in QUESTIONS
        if not (2 <= len(there) < len(rows)) or not _constant(labels, outcomes):
            continue
        if known or (
            len(there) >= FEWEST
            and not _amount([texts[i] for i in there], labels, outcomes)
            and any(_explained(p, labels, outcomes) >= ALIKE for p in forecasts)
        ):
            found.append((len(there), not known, name))
    return min(found, key=lambda one: one[:2])[2] if found else None


def check_one_outcome(
    table: Rows, name: str, rows: Ints, labels: Ints, outcomes: Floats | Ints, classes: Sequence[str] = ()
) -> None:
    """Refuses a question with several outcomes, of which each is the place of one of the classes, if there are any."""
    _, first, of = np.unique(labels, return_index=True, return_inverse=True)
    other = outcomes != outcomes[first][of]
    if other.any():
        i = int(np.argmax(other))
        row, before = int(rows[i]), int(first[of[i]])
        where, line = table.where(row), table.line(int(rows[before]))
        now, then = (repr(classes[int(y)]) if classes else f"{y:g}" for y in (outcomes[i], outcomes[before]))
        raise InvalidData(several_outcomes(where, table.text(name, row), now, then, line))


def several_outcomes(where: str, label: str, outcome: str, before: str, line: str) -> str:
    """The message about a question with another outcome than before."""
    return (
        f"{where}: question {label!r} has the outcome {outcome}, and {before} in {line}; expected one outcome a "
        "question, or --id with another column, or none"
    )


def _constant(labels: Ints, outcomes: Floats) -> bool:
    """Whether outcomes are constant within labels, and would hardly be so if they were independent."""
    _, kind, counts = np.unique(outcomes, return_inverse=True, return_counts=True)
    sizes = np.bincount(labels)
    if len(np.unique(labels * len(counts) + kind)) > len(sizes):
        return False
    shares = np.log(counts / counts.sum())
    return bool(np.logaddexp.reduce(np.multiply.outer(shares, sizes), axis=0).sum() <= math.log(CHANCE))


def _amount(texts: list[str], labels: Ints, outcomes: Floats) -> bool:
    """Whether the outcome is an amount, seen later, above a threshold."""
    numbers = [as_number(text)[0] for text in texts]
    if any(number is None for number in numbers):
        return False
    of_label = np.empty(len(texts))
    of_label[labels] = outcomes
    changes = np.diff(of_label[np.argsort(np.array(numbers))])
    return int(np.count_nonzero(changes)) < len(np.unique(outcomes))


def _explained(p: Floats, labels: Ints, outcomes: Floats) -> float:
    """The share of the variance of forecasts, given the outcomes, that labels explain (adjusted R²)."""

    def mean_square(of: Ints) -> float:
        sizes = np.bincount(of)
        rest = p - (np.bincount(of, p) / sizes)[of]
        return float(rest @ rest) / max(len(p) - len(sizes), 1)

    total = mean_square(np.unique(outcomes, return_inverse=True)[1])
    return 1.0 if total <= 1e-24 else 1.0 - mean_square(labels) / total
