"""The walk of a newcomer: how many calls lie between `oc.play` and the loop of the game."""

import sys

import pytest

import onlinecal as oc
from onlinecal.engine import loop


def calls_from_play():
    """The functions that were called from `oc.play` on to the caller of this, the last first."""
    found, frame = [], sys._getframe(2)
    while frame is not None and frame.f_code is not oc.play.__code__:
        found.append(frame.f_code.co_name)
        frame = frame.f_back
    assert frame is not None
    return found


class Looks:
    """A plain forecaster that notes its callers."""

    walk: tuple = ()

    def forecast(self):
        Looks.walk = calls_from_play()
        return 0.5

    def update(self, forecast, outcome): ...


@pytest.mark.parametrize("forecaster", [Looks, "forecast_hedging"])
def test_the_loop_is_five_calls_from_play(forecaster, monkeypatch):
    walk, compiled = [], loop.play_runs()

    def watched(*given):
        walk[:] = [watched.__name__, *calls_from_play()]
        return compiled(*given)

    monkeypatch.setattr(loop, "play_runs", lambda: watched)
    oc.play(forecaster, "drift", horizon=[20], runs=1, measures="ece")
    assert 3 <= len(walk or Looks.walk) <= 5, (walk, Looks.walk)
