"""Checks of what comes from outside: numbers and words as options, vectors of samples.

Each returns the value in the form that the package goes on with, or raises an error that names it.
"""

import inspect
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np

from onlinecal.core.arrays import Floats
from onlinecal.core.errors import InvalidData, InvalidParameter, OnlinecalError, UnknownParameter, nearest

T = TypeVar("T")


class Named:
    """Base of dataclasses that refuse a parameter that they do not have with those that they have."""

    def __new__(cls, *given: Any, **options: Any) -> Any:
        check_names(cls.__name__, cls.__init__, options)
        return super().__new__(cls)


def check_names(what: str, made: Any, options: Mapping[str, Any], more: Sequence[str] = ()) -> None:
    """Refuse options by names that are not among the parameters of what makes something, nor `more` that it takes."""
    if options and (known := _names(made)) is not None:
        for key in options:
            if key not in (*known, *more):
                raise UnknownParameter.of(what, key, (*known, *more))


@lru_cache(maxsize=1024)
def _names(made: Any) -> tuple[str, ...] | None:
    """The names of what a function may be called with; None for any."""
    found = inspect.signature(made).parameters.values()
    names = [
        p.name for p in found if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name != "self"
    ]
    for rest in (p.annotation for p in found if p.kind is p.VAR_KEYWORD):
        if isinstance(rest, str) and rest.startswith("Unpack["):
            rest = eval(rest, inspect.unwrap(made).__globals__)
        if not hasattr(rest, "__args__"):  # all but `Unpack` of a TypedDict
            return None
        names += rest.__args__[0].__annotations__
    return tuple(names)


def is_number(value: Any) -> bool:
    """Whether this is one real number, of Python or of NumPy; not a truth value."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_whole(value: Any) -> bool:
    """The same for integers: 2 and np.int64(2), not 2.0."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def twice(values: Iterable[T]) -> T | None:
    """The first of these values that is there a second time; None for none."""
    return next((value for value, times in Counter(values).items() if times > 1), None)


def integer(where: str, name: str, value: Any, least: int | None = None, most: int | None = None) -> int:
    """`value` as an int from `least` to `most`; `where` begins the message of the refusal."""
    if not is_whole(value) or (least is not None and value < least) or (most is not None and value > most):
        ends = "" if least is None else f" ≥ {least}" if most is None else f" from {least} to {_power(most)}"
        raise _refused(where, name, value, f"an integer{ends}")
    return int(value)


def count(name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """The same for an option that several measures have in common: a number, a seed."""
    return integer("", name, value, least, most)


def number(where: str, name: str, value: Any, least: float, most: float = math.inf) -> float:
    """`value` as a float in [least, most]."""
    if not is_number(value) or not least <= value <= most:
        raise _refused(where, name, value, f"a number in [{least:g}, {most:g}]")
    return as_float(value)


def probability(name: str, value: Any) -> float:
    """`value` as a float in [0, 1]."""
    return number("", name, value, 0.0, 1.0)


def _refused(where: str, name: str, value: Any, expected: str) -> InvalidParameter:
    return InvalidParameter(f"{where}{where and ': '}{name} = {value!r}; expected {expected}")


def _power(number: int) -> str:
    """10^6 for a million."""
    zeros = len(str(number)) - 1
    return f"10^{zeros}" if zeros > 4 and number == 10**zeros else str(number)


def positive(name: str, value: Any, what: str) -> float:
    """`value` as a finite float > 0; `what` it is, for the message: "a positive width"."""
    if not is_number(value) or not 0.0 < (real := as_float(value)) < math.inf:
        raise _refused("", name, value, what)
    return real


def choice(where: str, name: str, value: Any, known: tuple[str, ...]) -> str:
    """`value` if it is one of the known words."""
    if not isinstance(value, str) or value not in known:
        near = nearest(value, known) if isinstance(value, str) else ""
        raise _refused(where, name, value, f"one of {', '.join(map(repr, known))}{near}")
    return value


def as_float(value: Any) -> float:
    """A real number as a float. Too large numbers become infinite, and the signalling NaN of decimals NaN."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except ValueError:
        return math.nan


def vector(name: str, values: Any, error: type[OnlinecalError] = InvalidData) -> Floats:
    """A vector of float64, not copied where it is one, NaN for missing values; anything else raises `error`."""
    if type(values) is np.ndarray and values.ndim == 1 and values.dtype == np.float64:
        return values
    masked = isinstance(values, np.ma.MaskedArray)
    if masked and np.ma.getmaskarray(values).any():
        at = ", ".join(str(i) for i in np.argwhere(np.ma.getmaskarray(values))[0])
        raise error(f"{name}[{at}] is masked, that is a missing value; expected numbers without gaps")
    try:
        array = np.asarray(values.data if masked else values)
    except Exception as reason:  # whatever the object's own conversion raises
        said = f"{type(reason).__name__}: {str(reason).partition(chr(10))[0]}"
        raise error(f"{name} is not an array of numbers ({said}); expected one") from None
    if array.ndim != 1:
        given = f", of type {type(values).__name__}" if array.ndim == 0 else ""
        column = f": one column, such as {name}[:, {array.shape[1] - 1}]" if array.ndim == 2 else ""
        raise error(f"{name} has shape {array.shape}{given}; expected one dimension{column}")
    if array.dtype.kind in "biu" or array.dtype in (np.float64, np.float32, np.float16):
        return np.asarray(array, dtype=np.float64)
    if array.dtype.kind == "c":
        raise error(f"{name} holds complex numbers; expected real ones")
    return _of_objects(name, values if isinstance(values, Sequence) else array.tolist(), array.dtype, error)


def _of_objects(name: str, values: Sequence[Any], kind: np.dtype[Any], error: type[OnlinecalError]) -> Floats:
    """Element by element, for lists in which not everything is a number."""
    if kind.kind in "mM":
        raise error(
            f"{name} holds dates or times ({kind}), and none is a number; expected numbers, such as days"
        )
    floats = np.empty(len(values))
    for i, value in enumerate(values):
        if isinstance(value, Real | Decimal | np.bool_):
            floats[i] = as_float(value)
        elif value is None or type(value).__name__ == "NAType":  # pandas.NA, not imported for that
            floats[i] = math.nan
        else:
            raise error(f"{name}[{i}] = {value!r} is not a number; expected numbers")
    return floats


def check_lengths(vectors: Mapping[str, Floats]) -> None:
    """Refuse vectors of unequal lengths, and empty ones."""
    first, *others = vectors
    size = len(vectors[first])
    if size == 0:
        raise InvalidData(f"no samples: {first} is empty; expected at least one value")
    for name in others:
        if (other := len(vectors[name])) != size:
            raise InvalidData(f"{first} has {size} values and {name} has {other}; expected as many of each")


def check_same_rows(given: Mapping[str, Any]) -> None:
    """Refuse pandas objects with different indices; what has no index is taken by position."""
    indices: dict[str, Any] = {name: getattr(values, "index", None) for name, values in given.items()}
    indices = {name: index for name, index in indices.items() if hasattr(index, "equals")}
    first = next(iter(indices), "")
    for name, index in indices.items():
        if not index.equals(indices[first]):
            raise InvalidData(
                f"{first} and {name} are pandas objects with different indices; expected the same rows in the same "
                f"order: align them, or pass {first}.to_numpy() and {name}.to_numpy() to go by position"
            )


def check_unit(name: str, values: Floats) -> None:
    """Refuse what is outside [0, 1] or missing."""
    # min and max carry a NaN, so two passes without a temporary settle the good case.
    if values.min() >= 0.0 and values.max() <= 1.0:
        return
    i = int(np.argmin((values >= 0.0) & (values <= 1.0)))
    what = "a missing value" if np.isnan(values[i]) else "outside [0, 1]"
    raise InvalidData(f"{name}[{i}] = {float(values[i])!r} is {what}; expected a probability in [0, 1]")


def check_outcomes(p: Floats, y: Floats) -> None:
    """Refuse outcomes y other than 0 and 1; the predictions p tell whether the two were exchanged."""
    good = (y == 0.0) | (y == 1.0)
    if good.all():
        return
    i = int(np.argmin(good))
    swapped = bool(((p == 0.0) | (p == 1.0)).all())
    missing = bool(np.isnan(y[i]))
    hint = "" if missing else ", or `positive` with the label of the event"
    if swapped:
        hint = " (arguments are (p, y): predictions first; these look swapped)"
    what = "a missing value" if missing else "not an outcome"
    raise InvalidData(f"y[{i}] = {float(y[i])!r} is {what}; expected 0 or 1{hint}")


#: Totals of weights with which sums and products of weights and probabilities neither overflow nor lose digits.
TOTALS = (1e-200, 1e200)


def check_weights(name: str, weights: Floats) -> None:
    """Refuse weights that are negative, infinite or missing, and totals outside `TOTALS`."""
    bad = ~((weights >= 0.0) & (weights < np.inf))
    if bad.any():
        i = int(np.argmax(bad))
        raise InvalidData(f"{name}[{i}] = {float(weights[i])!r}; expected a finite number ≥ 0")
    with np.errstate(over="ignore"):
        check_total(name, float(weights.sum()))


def check_total(name: str, total: float) -> None:
    """Refuse a total weight outside `TOTALS`."""
    least, most = TOTALS
    if not total > 0.0:
        raise InvalidData(f"{name} sum to {total!r}; expected a positive finite total")
    if not least <= total <= most:
        expected = f"a total from {least:g} to {most:g}: multiply all by one number"
        raise InvalidData(f"{name} sum to {total!r}; expected {expected}")
