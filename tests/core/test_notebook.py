"""The output in notebooks: tables, figures, progress, and errors without the lines of others."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

import onlinecal as oc
from onlinecal.core import progress
from onlinecal.core.progress import Progress, in_notebook


@pytest.fixture
def told(monkeypatch):
    """The displayed data; this looks like a notebook meanwhile."""
    told = []

    def display(thing, display_id=False):
        told.append(thing)
        return SimpleNamespace(update=told.append) if display_id else None

    ipython, displays = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython, ipython.version_info = lambda: SimpleNamespace(kernel=1), (9, 0)
    displays.display, displays.HTML, displays.Image = display, str, lambda data, width: data
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", displays)
    return told


def test_a_notebook_is_told_from_a_terminal(told, monkeypatch):
    assert in_notebook()
    for shell in (object(), None):  # IPython on a terminal has no kernel
        monkeypatch.setattr("IPython.get_ipython", lambda shell=shell: shell)
        assert not in_notebook()
    monkeypatch.delitem(sys.modules, "IPython")
    assert not in_notebook()


def test_figures_and_tables_show_themselves():
    """As the last value of a cell: IPython asks for a picture or for HTML."""
    who, whom = [oc.forecasters.Constant(0.5), "empirical_mean"], ["drift", "contrarian"]
    study = oc.play(who, whom, horizon=[50, 100, 200], runs=4, tasks=["umbrella"])
    assert oc.plots.reliability([0.2, 0.8], [0, 1])._repr_png_()[:4] == b"\x89PNG"
    html = study._repr_html_()
    assert html.count("<tr>") == 2 * (1 + 2)  # of each nature a table
    assert "T^1.00\n[1.00, 1.00]" in html
    total = study.curve("ece", "constant", "contrarian")
    assert f">{total.mean[-1]:.0f} ± 0<small>" in html
    assert total._repr_html_().count("<tr>") == 1 + 3
    assert len(repr(study)) < 300


def test_progress_below_a_cell_goes_when_it_is_done(told, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    with Progress(10) as bar:
        bar.describe("<drift>")
        for work in (5, 6):
            bar._at = 0.0
            bar.advance(work)
    assert told[1].startswith('<progress value="0.0000" max="1"></progress> 0 %')
    assert told[2].startswith('<progress value="0.5000" max="1"></progress> 50 %')
    assert told[-2].startswith('<progress value="1.0000" max="1"></progress> 110 %')
    assert "&lt;drift&gt;" in told[1]
    assert told[0] == told[-1] == ""


class _Broken:
    def forecast(self):
        return 1 / 0

    def update(self, forecast, outcome): ...


def test_errors_show_the_lines_of_the_user_only():
    with pytest.raises(oc.OnlinecalError) as raised:
        oc.play(_Broken, "drift", horizon=10, runs=1)
    lines = raised.value._render_traceback_()
    said = "InvalidForecast: forecaster '_Broken' failed in round 1, run 0: ZeroDivisionError"
    assert lines[-1].startswith(said)
    assert 'oc.play(_Broken, "drift"' in lines[0]
    assert any("return 1 / 0" in line for line in lines)
    assert not any("onlinecal/face.py" in line or "onlinecal/engine" in line for line in lines)
