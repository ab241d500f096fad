"""Fixtures that tests of the engine share."""

import weakref

import pytest

from onlinecal.study import run


@pytest.fixture
def batches(monkeypatch):
    """The runs of each game of a study, and how many forecasters of earlier games are there when it begins."""
    found, earlier = [], []

    class Watched(run.Game):
        def __init__(self, *args, **options):
            found.append((len(options["runs"]), sum(each() is not None for each in earlier)))
            super().__init__(*args, **options)
            earlier.append(weakref.ref(self.forecaster))

    monkeypatch.setattr(run, "Game", Watched)
    return found
