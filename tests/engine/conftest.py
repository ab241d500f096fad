"""Fixtures that tests of the engine share."""

import weakref

import pytest

from onlinecal.engine.game import Game


@pytest.fixture
def batches(monkeypatch):
    """The runs of each game of a study, and how many forecasters of earlier games are there when it begins."""
    found, earlier = [], []

    class Watched(Game):
        def __init__(self, *args, **options):
            found.append((len(options["runs"]), sum(each() is not None for each in earlier)))
            super().__init__(*args, **options)
            earlier.append(weakref.ref(self.forecaster))

    monkeypatch.setattr("onlinecal.study.run.Game", Watched)
    return found
