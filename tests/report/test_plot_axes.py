"""Pictures in axes that somebody gives: drawn there and nowhere else, and returned."""

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import onlinecal as oc
from onlinecal.core.errors import InvalidParameter
from onlinecal.report.exponent_plot import plot_exponents
from onlinecal.report.plots import caption, captions, plot_curves


@pytest.fixture(scope="module")
def study():
    return oc.play(
        [oc.forecasters.ForecastHedging(), oc.forecasters.LastOutcome()],
        [oc.natures.Contrarian(), oc.natures.Drift()],
        horizon=[100, 300, 900, 2700],
        runs=2,
        measures=["ece", "cdl", "log_loss"],
        tasks=["umbrella"],
    )


def lines(axis):
    """All that is drawn in an axis, as numbers."""
    return [(line.get_xdata().tolist(), line.get_ydata().tolist()) for line in axis.lines]


def extras(fig):
    return fig._suptitle, fig._supxlabel, fig._supylabel


def test_one_curve(study):
    curve = study.curve("ece", "forecast hedging", "drift")
    own = curve.plot()
    assert isinstance(own, Axes)
    assert own.figure.axes == [own]
    fig = Figure()
    left, right = fig.subplots(1, 2)
    assert curve.plot(right) is right
    assert curve.plot(ax=left) is left
    assert lines(left) == lines(right) == lines(own) != []
    assert left.get_title() == own.get_title() == "ece against drift"
    assert left.get_ylim() == own.get_ylim()
    assert fig.axes == [left, right]
    assert extras(fig) == (None, None, None)
    assert own.figure._supxlabel is not None


def test_many_curves(study):
    names = ["ece", "cdl"]
    own = study.plot(names)
    assert own.shape == (2, 2)
    fig = Figure()
    grid = fig.subplots(3, 2)
    drawn = study.plot(names, axes=grid[1:])
    assert (drawn == grid[1:]).all()
    for mine, theirs in zip(own.flat, drawn.flat, strict=True):
        assert lines(mine) == lines(theirs) != []
        assert mine.get_ylim() == theirs.get_ylim()
        assert mine.get_title() == theirs.get_title()
    assert [axis.lines[:] for axis in grid[0]] == [[], []]
    assert extras(fig) == (None, None, None)
    assert " ".join(own[0, 0].figure._supxlabel.get_text().split()) == caption(study.curves(names))
    fig.savefig("/dev/null", format="png")


def test_exponents(study):
    names = ["ece", "cdl", "log_loss"]
    own = plot_exponents(study, names)
    assert own.shape == (3,)
    fig = Figure()
    grid = fig.subplots(1, 3)
    assert (plot_exponents(study, names, axes=grid) == grid).all()
    for mine, theirs in zip(own, grid, strict=True):
        assert [t.get_text() for t in mine.texts] == [t.get_text() for t in theirs.texts] != []
        assert np.array_equal(mine.images[0].get_array(), theirs.images[0].get_array(), equal_nan=True)
        assert mine.get_title() == theirs.get_title()
    assert fig.axes == list(grid)  # a bar of colours would be another
    assert extras(fig) == (None, None, None)
    said = own[0].figure._supxlabel.get_text()
    assert " ".join(said.split()) == captions["exponents"](study, names)
    (axis,) = plot_exponents(study, ["ece"], axes=Figure().subplots())
    assert len(axis.images) == 1


@pytest.mark.parametrize(
    ("axes", "said"),
    [
        (
            lambda: Figure().subplots(2, 3),
            r"axes of shape \(2, 3\); expected 2 × 2 matplotlib Axes, natures × measures",
        ),
        (lambda: Figure().subplots(1, 4), r"axes of shape \(4,\); expected 2 × 2"),
        (lambda: Figure().subplots(), r"axes <Axes: >; expected 2 × 2"),
        (lambda: [["a", "b"], ["c", "d"]], r"axes of shape \(2, 2\); expected 2 × 2 matplotlib Axes"),
        (lambda: Figure(), "expected 2 × 2 matplotlib Axes"),
    ],
)
def test_other_axes_are_refused(study, axes, said):
    with pytest.raises(InvalidParameter, match=said):
        study.plot(["ece", "cdl"], axes=axes())


def test_a_title_belongs_to_a_figure(study):
    with pytest.raises(
        InvalidParameter, match="title = 'x' with axes; expected it to be set on their figure"
    ):
        plot_curves(study.curves(["ece"]), axes=Figure().subplots(2), title="x")
    with pytest.raises(InvalidParameter, match="title = 'x' with axes"):
        plot_exponents(study, ["ece"], axes=Figure().subplots(), title="x")
