"""A monitor in a file: NumPy's archive of its arrays, and all else as JSON."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections import OrderedDict
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from onlinecal.core.errors import OnlinecalError, StoreError
from onlinecal.core.writing import whole
from onlinecal.monitoring.alarms import Alarm
from onlinecal.monitoring.bets import VERSION
from onlinecal.monitoring.epochs import Epoch, Question, Questions
from onlinecal.monitoring.monitor import Monitor

#: of the file; with the version of the bets, since money of other bets is no e-value of these
FORMAT = 2
#: errors of reading another file, whose own words are of pickles and archives; and the words in their place
_NOT_OURS = (KeyError, TypeError, ValueError, EOFError, OSError, RuntimeError, zipfile.BadZipFile, zlib.error)
_REFUSED = "{} is not a file that a monitor was saved in; expected one of `watch --state` or Monitor.save"


def save(monitor: Monitor, path: Path) -> None:
    """Writes it, and replaces the file when the new one is whole."""
    epoch, questions = monitor._epoch, monitor._questions
    said = {
        "format": FORMAT,
        "bets": VERSION,
        "alpha": monitor.alpha,
        "restart": monitor.restart,
        "open_at_once": monitor.open_at_once,
        "note": monitor.note,
        "epoch": epoch.number,
        "peak": epoch.peak,
        "alarms": [alarm.as_json() for alarm in epoch.alarms],
        "asked": questions.asked,
        "begun": questions.begun,
        "open": [asdict(question) for question in questions.open.values()],
    }
    with whole(path) as new, new.open("wb") as file:
        np.savez(
            file,
            said=np.array(json.dumps(said)),
            edges=monitor.bettors.edges,
            banks=epoch.banks,
            clocks=epoch.clocks,
            sums=epoch.sums,
        )


def load(path: Path) -> Monitor:
    """The one that was saved."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        raise StoreError(f"{path}: no such file; expected one that a monitor was saved in") from None
    try:
        with file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in ("said", "edges", "banks", "clocks", "sums")}
        said = json.loads(str(arrays.pop("said")))
        version = said["format"], said["bets"]
    except _NOT_OURS:
        raise StoreError(_REFUSED.format(path)) from None
    if version != (FORMAT, VERSION):
        raise StoreError(
            f"{path} is of another version of onlinecal ({version[0]}.{version[1]}; this one reads "
            f"{FORMAT}.{VERSION}): a test cannot go on with other bets; expected a new file"
        )
    try:
        return _restored(said, arrays)
    except (*_NOT_OURS, OnlinecalError):
        raise StoreError(_REFUSED.format(path)) from None


def _restored(said: dict[str, Any], arrays: dict[str, Any]) -> Monitor:
    monitor = Monitor(
        said["alpha"], edges=arrays["edges"], restart=said["restart"], open_at_once=said["open_at_once"]
    )
    monitor.note = said["note"]
    fresh = monitor._epoch
    for name in ("banks", "clocks", "sums"):
        wanted = getattr(fresh, name)
        if arrays[name].shape != wanted.shape or arrays[name].dtype != wanted.dtype:
            raise ValueError(f"its array {name!r} has shape {arrays[name].shape}; expected {wanted.shape}")
    alarms = tuple(Alarm.from_json(values) for values in said["alarms"])
    monitor._epoch = Epoch(
        said["epoch"], alarms, arrays["banks"], arrays["clocks"], arrays["sums"], said["peak"]
    )
    questions = OrderedDict((values["ticket"], Question(**values)) for values in said["open"])
    monitor._questions = Questions(monitor.open_at_once, said["asked"], questions, tuple(said["begun"]))
    return monitor
