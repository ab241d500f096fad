"""What tests of logs are made of: files, their reports, and words without line breaks."""

import numpy as np

from onlinecal.logs.columns import Asked
from onlinecal.logs.measuring import Settings
from onlinecal.logs.reading import Log
from onlinecal.logs.source import report_of

#: the settings of a report without draws
BRIER = Settings(draws=0, measures=("brier",))


def written(folder, text, name="f.csv"):
    """A file with this text."""
    (folder / name).write_text(text)
    return folder / name


def report(path, *outcomes, parts=None, settings=BRIER, **asked):
    """The report of a file."""
    return report_of(str(path), Asked(**asked), settings, parts, outcomes)


def briers(path, *outcomes, **asked):
    """The Brier score of each column, and the report."""
    found = report(path, *outcomes, **asked)
    return {one.name: one.brier.score for one in found.columns}, found


def log_of(p, y, days=False, **more):
    """Rows in memory; with days each has a time of its own."""
    if days:
        more |= {"times": np.arange(len(y) * 1.0), "time": "day", "time_words": str}
    return Log("log", p if isinstance(p, dict) else {"p": p}, np.asarray(y, dtype=float), "y", **more)


def flat(text):
    """Words with one space between."""
    return " ".join(text.split())
