"""The walk of a newcomer: calls from `oc.play` to the loop, and files from a command to its work."""

import sys
from pathlib import Path

import pytest
from matplotlib.axes import Axes
from rich.console import Console

import onlinecal as oc
from onlinecal import cli
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


SCENARIO = """
horizons = [20, 40, 80]
runs = 2
measures = ["ece"]
forecasters = ["forecast_hedging"]
natures = ["drift"]
"""
HOME = str(Path(oc.__file__).parent)


def files_from_command():
    """The files of the package with a frame above the caller of this."""
    found, frame = set(), sys._getframe(2)
    while frame is not None:
        found |= {frame.f_code.co_filename} if frame.f_code.co_filename.startswith(HOME) else set()
        frame = frame.f_back
    return found


def test_commands_pass_through_fifteen_files_at_most(tmp_path, monkeypatch):
    """To the loop of the game, to what is drawn, and to what is printed."""
    walks, compiled = {}, loop.play_runs()

    def watched(*given):
        walks["loop"] = files_from_command()
        return compiled(*given)

    def noted(owner, name):
        old = getattr(owner, name)

        def new(*given, **options):
            walks[name] = max(walks.get(name, set()), files_from_command(), key=len)
            return old(*given, **options)

        monkeypatch.setattr(owner, name, new)

    monkeypatch.setattr(loop, "play_runs", lambda: watched)
    noted(Axes, "plot")
    noted(Console, "print")
    (tmp_path / "s.toml").write_text(SCENARIO)
    monkeypatch.chdir(tmp_path)
    for command in ("run s.toml -o s.db", "plot s.db", "compare s.db"):
        cli.app(command.split(), standalone_mode=False)
    assert walks.keys() == {"loop", "plot", "print"}
    assert {work: len(files) for work, files in walks.items() if not 4 <= len(files) <= 15} == {}
