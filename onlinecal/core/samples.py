"""Samples as people have them: under scikit-learn's names, with labels for outcomes, or forecasts in two columns."""

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypedDict, TypeVar

import numpy as np
from numpy.typing import NDArray

from onlinecal.core.errors import InvalidData, InvalidParameter
from onlinecal.core.rows import UNDECIDED, as_outcome, is_word
from onlinecal.core.validation import check_lengths, check_names, check_same_rows, number, vector
from onlinecal.core.words import number_of

P = ParamSpec("P")
R = TypeVar("R")

#: scikit-learn's names of arguments, and ours
OURS = {
    "y_true": "y", "y_prob": "p", "y_proba": "p", "y_score": "p", "sample_weight": "weights", "pos_label": "positive",
    "n_bins": "bins",
}  # fmt: skip
#: by how much the probabilities of two classes may miss 1
UNIT = 5e-3
EXPECTED = "expected `negative` with each label that is 0, and `drop` with each whose rows are left out"


class Words(TypedDict, total=False):
    """Labels of outcomes.

    `positive` is the label of the event, which counts as 1. `negative` is the label that counts as 0, or a list of
    such; by default the only other one. Rows with a label in `drop` are left out. Without `positive`, outcomes are 0
    and 1, truth values, or texts of these. With `above`, they are amounts: larger ones than this count as 1.
    """

    positive: Any
    negative: Any
    drop: Any
    above: float


def ours(where: str, options: Mapping[str, Any], given: Iterable[str] = ()) -> dict[str, Any]:
    """The options with our names for scikit-learn's; those in `given` have their values already."""
    found: dict[str, Any] = {}
    for name, value in options.items():
        own = OURS.get(name, name)
        if own in found or (own != name and own in given):
            names = [own] * (own in given) + [other for other in options if OURS.get(other, other) == own]
            raise InvalidParameter(f"{where}: {' and '.join(names)} mean the same; expected one of them")
        found[own] = value
    if isinstance(by := found.get("strategy"), str) and by == "uniform":
        found["strategy"] = "width"
    return found


def with_ours(function: Callable[P, R]) -> Callable[P, R]:
    """A function that also takes scikit-learn's names of its arguments."""
    places = [
        p.name for p in inspect.signature(function).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD
    ]

    @wraps(function)
    def translated(*given: Any, **options: Any) -> R:
        if options:
            options = ours(function.__name__, options, places[: len(given)])
            check_names(function.__name__, function, options)
        return function(*given, **options)

    return translated


def plain(
    rows: Mapping[str, Any],
    positive: Any = None,
    negative: Any = (),
    drop: Any = (),
    above: float | None = None,
) -> dict[str, Any]:
    """The same rows with outcomes 0 and 1 for labels, and p as one column, without those that are dropped."""
    found, y = dict(rows), _array(rows["y"])
    zeros, out = _listed(negative), _listed(drop)
    if zeros and positive is None:
        raise InvalidParameter(f"negative = {negative!r} without positive; expected both")
    if above is not None:
        if positive is not None or zeros or out:
            raise InvalidParameter(f"above = {above!r} beside labels; expected one or the other")
        check_same_rows(rows)
        amounts = vector("y", rows["y"])
        found["y"] = y = np.where(
            np.isnan(amounts), np.nan, amounts > number("samples", "above", above, -1e308, 1e308)
        )
    if y.ndim != 1 or not (positive is not None or out or _has_words(y)):
        found["p"] = _of_event(rows["p"])
        if found["p"] is not rows["p"]:
            check_same_rows(rows)
        return found
    if _has_words(_array(rows["p"])):
        raise InvalidData("p holds labels; expected probabilities (arguments are (p, y): these look swapped)")
    if _of_event(rows["p"]) is not rows["p"]:
        raise InvalidData(
            "p has two columns beside labels; expected that of the event: one column, such as p[:, 1]"
        )
    check_same_rows(rows)
    check_lengths({name: values for name, values in rows.items() if values is not None})
    texts = [_text(value) for value in y.tolist()]
    known = _outcomes(texts, positive, zeros, out)
    keep = np.array([text in known for text in texts])
    found["y"] = np.array([known.get(text, np.nan) for text in texts])
    return {
        name: values if values is None or keep.all() else np.asanyarray(values)[keep]
        for name, values in found.items()
    }


def _outcomes(texts: list[str], positive: Any, negative: list[str], drop: list[str]) -> dict[str, float]:
    """The outcome of each label that is not dropped; NaN for a missing one."""
    many = Counter(texts)
    there = ", ".join(f"{text!r} in {number_of(n, 'row')}" for text, n in many.most_common(8))
    event = None if positive is None else _text(positive)
    known = {text: as_outcome(text, event, negative) for text in many if not is_word(text, drop)}
    others = [text for text, value in known.items() if value == 0.0]
    if event is not None and not negative:
        if 1.0 not in known.values():
            raise InvalidData(f"y never is {positive!r}; there are: {there}")
        if any(o.strip().lower() in UNDECIDED or not is_word(o, others[:1]) for o in others):
            raise InvalidData(f"y has several labels beside {positive!r}: {there}; {EXPECTED}")
    found: dict[str, float] = {}
    for text, value in known.items():
        if value is None:
            expected = (
                "expected 0 or 1, or `positive` with the label of the event" if event is None else EXPECTED
            )
            raise InvalidData(f"y[{texts.index(text)}] = {text!r}; {expected} (there are: {there})")
        found[text] = value
    return found


def _text(label: Any) -> str:
    return str(int(label)) if isinstance(label, bool | np.bool_) else str(label)


def _listed(labels: Any) -> list[str]:
    """One label, several, or none as texts."""
    if labels is None:
        return []
    several = not isinstance(labels, str | bytes) and isinstance(labels, Iterable)
    return [_text(label) for label in (labels if several else [labels])]


def _array(values: Any) -> NDArray[Any]:
    """An array of whatever kind; of None where there is no such array, which is refused where numbers are taken."""
    try:
        return np.asanyarray(values)
    except Exception:  # whatever the object's own conversion raises
        return np.array(None)


def _has_words(array: NDArray[Any]) -> bool:
    return array.dtype.kind not in "biufcmM" and any(
        isinstance(v, str | bytes) for v in array.ravel().tolist()
    )


def _of_event(p: Any) -> Any:
    """The second column of probabilities of two classes, in which `predict_proba` has the event; all else as it is."""
    first = p[0] if isinstance(p, list | tuple) and p else None
    if getattr(p, "shape", (0, *_array(first).shape))[1:] != (2,):
        return p
    table = _array(p)
    return table[:, 1] if table.dtype.kind == "f" and (np.abs(table.sum(axis=1) - 1.0) <= UNIT).all() else p
