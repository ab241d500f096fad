"""The accounts of decision makers as they lie in a results file: a text that says who they are, and packed numbers."""

from __future__ import annotations

import json
import math
import zlib
from dataclasses import replace

import numpy as np

from onlinecal.study.played import Joined


def packed(people: Joined) -> tuple[str, bytes]:
    """Who they are, as JSON, and all numbers, little-endian and compressed."""
    shape = next(iter(people.entries.values())).shape
    said = {
        "labels": people.labels,
        "tasks": people.tasks,
        "responses": people.responses,
        "join": people.join.tolist(),
        "leave": [None if math.isinf(time) else time for time in people.leave.tolist()],
        "entries": list(people.entries),
    }
    numbers = np.concatenate([*(entry.ravel() for entry in people.entries.values()), people.cdl.ravel()])
    head = np.array(shape, "<i8").tobytes()
    return json.dumps(said), head + zlib.compress((numbers + 0.0).astype("<f8").tobytes())


def unpacked(said: str, held: bytes) -> Joined:
    """What was packed.

    Raises
    ------
    ValueError, TypeError, KeyError, zlib.error
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


def joined(old: Joined | None, new: Joined | None) -> Joined | None:
    """The same decision makers in more runs."""
    if old is None or new is None:
        return None
    entries = {name: np.concatenate([old.entries[name], new.entries[name]], axis=2) for name in new.entries}
    return replace(new, entries=entries, cdl=np.concatenate([old.cdl, new.cdl], axis=1))


def first_runs(people: Joined, runs: int) -> Joined:
    """In so many runs only."""
    return replace(
        people,
        entries={name: entry[:, :, :runs] for name, entry in people.entries.items()},
        cdl=people.cdl[:, :runs],
    )
