"""The accounts of decision makers as they lie in a results file: a text that says who they are, and packed numbers."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from onlinecal.study.played import Joined


def plain(people: Joined) -> tuple[str, bytes]:
    """Who they are, as JSON, and all numbers, little-endian."""
    said = {
        "labels": people.labels,
        "tasks": people.tasks,
        "responses": people.responses,
        "join": people.join.tolist(),
        "leave": [None if math.isinf(time) else time for time in people.leave.tolist()],
        "entries": list(people.entries),
    }
    numbers = np.concatenate([*(entry.ravel() for entry in people.entries.values()), people.cdl.ravel()])
    return json.dumps(said), (numbers + 0.0).astype("<f8").tobytes()


def packed(people: Joined) -> tuple[str, bytes]:
    """The same for the file, the numbers behind their shape and compressed. Not every zlib makes the same bytes."""
    said, numbers = plain(people)
    return said, np.array(next(iter(people.entries.values())).shape, "<i8").tobytes() + zlib.compress(numbers)


def unpacked(said: str, held: bytes) -> Joined:
    """What was packed.

    Raises
    ------
    ValueError, TypeError, KeyError, RecursionError, zlib.error
        Something else has changed it.
    """
    who = json.loads(said)
    n, k, runs = np.frombuffer(held[:24], "<i8").tolist()
    numbers = np.frombuffer(zlib.decompress(held[24:]), "<f8").astype(np.float64)
    entries, cdl = numbers[: len(numbers) - k * runs], numbers[len(numbers) - k * runs :]
    table = entries.reshape(len(who["entries"]), n, k, runs)
    return Joined(
        tuple(who["labels"]),
        tuple(who["tasks"]),
        tuple(who["responses"]),
        np.array(who["join"], np.float64),
        np.array([math.inf if time is None else time for time in who["leave"]], np.float64),
        dict(zip(who["entries"], table, strict=True)),
        cdl.reshape(k, runs),
    )


def joined(old: Joined | None, new: Joined | None, first: int) -> Joined | None:
    """The same decision makers in more runs, called as before: what they are called now stands in the plan.

    The new ones are from `first` on; of runs that were played again, for other measures, the old ones stay.
    """
    if old is None or new is None:
        return None
    again = old.cdl.shape[1] - first
    entries = {
        name: np.concatenate([old.entries[name], new.entries[name][:, :, again:]], axis=2)
        for name in new.entries
    }
    return replace(old, entries=entries, cdl=np.concatenate([old.cdl, new.cdl[:, again:]], axis=1))


def shown(people: Joined, runs: int, labels: Sequence[str]) -> Joined:
    """In so many runs only, under these labels."""
    return replace(
        people,
        labels=tuple(labels),
        entries={name: entry[:, :, :runs] for name, entry in people.entries.items()},
        cdl=people.cdl[:, :runs],
    )
