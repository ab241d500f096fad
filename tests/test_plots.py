"""Plots: the data layer exactly, the drawing in that it draws and is the same twice."""

import xml.etree.ElementTree as ET
from itertools import pairwise

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.errors import InvalidParameter
from onlinecal.plots import figure, frames, save
from onlinecal.study import Curve


@pytest.fixture(scope="module")
def study():
    return oc.play(
        [
            oc.forecasters.ForecastHedging(),
            oc.forecasters.AlmostOneStepAhead(),
            oc.forecasters.CDLMinimiser(),
        ],
        [oc.natures.Contrarian(), oc.natures.Drift()],
        horizon=[100, 300, 900, 2700],
        runs=6,
        measures=["ece", "smooth_ce", "cdl"],
    )


def test_what_is_drawn_is_what_was_measured(study):
    drawn = frames(study.curves(["ece", "cdl"]))
    assert [(f.nature, f.measure) for f in drawn] == [
        ("contrarian", "ece"), ("contrarian", "cdl"), ("drift", "ece"), ("drift", "cdl")
    ]  # fmt: skip
    line = drawn[2].lines[0]
    curve = study.curve("ece", "forecast hedging", "drift")
    assert (line.rounds == curve.rounds).all()
    assert (line.mean == curve.totals.mean(axis=1)).all()
    assert (line.low == np.percentile(curve.totals, 5, axis=1)).all()
    assert (line.high == np.percentile(curve.totals, 95, axis=1)).all()
    assert line.exponent == curve.exponent()
    assert f"{line.exponent.value:.2f}" in line.label
    assert len({line.style for line in drawn[0].lines}) == 3


def test_bounds_are_the_guarantees(study):
    drawn = {(f.nature, f.measure): {b.label: b for b in f.bounds} for f in frames(study.curves())}
    ece = drawn["contrarian", "ece"]
    hedging = oc.forecasters.ForecastHedging().guarantees[0]
    assert ece["≤ 2√(mT) + T/(2m)"].values.tolist() == [hedging.bound(t) for t in (100, 300, 900, 2700)]
    assert ece["≥ T/2"].values.tolist() == [50, 150, 450, 1350]
    assert ece["≥ T/2"].style is None
    smooth = drawn["drift", "smooth_ce"]["≤ 2(2√T + 1)"]
    assert smooth.values == pytest.approx([2 * (2 * t**0.5 + 1) for t in (100, 300, 900, 2700)])
    (bound,) = drawn["drift", "cdl"].values()
    (minimiser,) = oc.forecasters.CDLMinimiser().guarantees
    assert bound.exact
    assert bound.values.tolist() == [minimiser.bound(t) for t in (100, 300, 900, 2700)]


def test_a_rate_is_drawn_through_the_first_point():
    study = oc.play(
        oc.forecasters.PerturbedLeader(),
        oc.natures.Drift(),
        horizon=[100, 300, 900],
        runs=4,
        measures=["u_calibration"],
    )
    curve = study.curve("u_calibration")
    ((rate,),) = [frame.bounds for frame in frames([curve])]
    assert rate.label == "∝ √T"
    assert not rate.exact
    assert rate.values[0] == pytest.approx(curve.mean[0])
    assert rate.values[-1] / rate.values[0] == pytest.approx(3.0)


def test_the_best_known_rates_are_slopes_below_the_curves(study):
    t = np.array([100, 300, 900, 2700])
    drawn = {(f.nature, f.measure): f for f in frames(study.curves())}
    for measure, shapes in {
        "ece": {"Ω(T^0.54389)": t**0.54389, "O(T^(2/3))": t ** (2 / 3)},
        "smooth_ce": {"Ω(T^(1/3))": t ** (1 / 3), "O(√T)": t**0.5},
        "cdl": {"Ω(√T)": t**0.5, "O(√T log T)": t**0.5 * np.log(t)},
    }.items():
        frame = drawn["drift", measure]
        start = min(line.mean[0] for line in frame.lines) / 2
        assert [reference.label for reference in frame.references] == list(shapes)
        for reference, shape in zip(frame.references, shapes.values(), strict=True):
            assert (reference.rounds == t).all()
            assert reference.values == pytest.approx(start * shape / shape[0])


def grown(measure, *, first=100, fresh=True, level=8.0):
    rounds = np.array([first, 1000, 10_000])
    return Curve(measure, f"from {first}", "somebody", rounds, level * rounds[:, None] ** 0.5, fresh)


def test_one_rate_where_both_are_the_same_and_none_where_none_is_known():
    for measure, labels in {
        "kernel_ce": ["Θ(√T)"],
        "u_calibration": ["Θ(√T)"],
        "swap_regret[quadratic]": ["O(T^(1/3) log T)"],
        "brier": [],
    }.items():
        (frame,) = frames([grown(measure)])
        assert [reference.label for reference in frame.references] == labels


def test_rates_start_at_the_first_time_and_are_not_drawn_into_one_game():
    (frame,) = frames(
        [grown("kernel_ce"), grown("kernel_ce", first=10, level=20.0), grown("kernel_ce", level=2.0)]
    )
    (rate,) = frame.references
    assert rate.rounds.tolist() == [10, 100, 1000, 10_000]
    assert rate.values == pytest.approx(
        10 * rate.rounds**0.5
    )  # half of the one curve that is there at T = 10
    (frame,) = frames([grown("kernel_ce", fresh=False)])
    assert frame.references == []


def test_powers_are_raised():
    fig = figure([grown("ece"), grown("ece", first=50)])
    assert [text.get_text() for text in fig.axes[0].texts] == [
        r"Ω($\mathregular{T^{0.54389}}$)", r"O($\mathregular{T^{2/3}}$)"
    ]  # fmt: skip
    assert "half the lowest curve" in " ".join(fig._supxlabel.get_text().split())
    assert "Grey" not in figure([grown("brier")])._supxlabel.get_text()


def test_a_bound_of_one_game_is_level():
    study = oc.play(
        oc.forecasters.AlmostOneStepAhead(), oc.natures.Drift(), horizon=900, runs=2, measures=["smooth_ce"]
    )
    (frame,) = frames(study.curves(["smooth_ce"]))
    assert frame.bounds[0].values.tolist() == [122.0, 122.0]
    assert frame.bounds[0].rounds[-1] == 900


def test_what_is_always_zero_is_said_and_not_drawn():
    study = oc.play(
        oc.forecasters.Constant(1.0), oc.natures.Bernoulli(1.0), horizon=50, runs=2, measures=["ece"]
    )
    (frame,) = frames(study.curves())
    assert frame.lines == []
    assert frame.silent == ["constant (p=1)"]
    fig = study.plot()
    assert "Always 0, not drawn: constant (p=1) (ece)" in " ".join(fig._supxlabel.get_text().split())


def test_the_picture_says_what_it_shows(study):
    fig = figure(study.curves(["ece"]), title="A title")
    caption = " ".join(fig._supxlabel.get_text().split())
    assert "mean of 6 runs" in caption
    assert "5th to 95th percentile of the runs" in caption
    assert "Dashed: proven bound." in caption
    assert fig._suptitle.get_text() == "A title"
    axes = fig.axes
    assert [a.get_title() for a in axes] == ["ece against contrarian", "ece against drift"]
    texts = [t.get_text() for t in axes[0].get_legend().get_texts()]
    assert any(t.startswith("forecast hedging  $T^{") for t in texts)
    assert axes[0].get_xscale() == axes[0].get_yscale() == "log"


def test_what_a_nature_forces_has_another_colour_than_what_is_known(study):
    axis = figure(study.curves(["ece"])).axes[0]
    colours = {line.get_label(): line.get_color() for line in axis.lines}
    assert colours["≥ T/2"] == "#000000"
    assert list(colours.values()).count("#000000") == 1
    caption = figure(study.curves(["ece"]))._supxlabel.get_text()
    assert "Black: what the nature forces." in " ".join(caption.split())
    alone = figure([study.curve("ece", "forecast hedging", "drift")])
    assert "Black" not in alone._supxlabel.get_text()


def test_long_titles_stay_over_their_axes():
    nature = oc.natures.Mixture(
        (oc.natures.Switch(oc.natures.Drift(0.1, 0.9), oc.natures.Greedy("square")), oc.natures.Contrarian())
    )
    study = oc.play(
        oc.forecasters.Constant(),
        nature,
        horizon=[20, 40, 80],
        runs=2,
        measures=["ece", "cdl", "u_calibration"],
    )
    fig = figure(study.curves(["ece", "cdl", "u_calibration"]))
    fig.draw_without_rendering()
    boxes = [axis.title.get_window_extent() for axis in fig.axes]
    assert all("\n" in axis.get_title() for axis in fig.axes)
    assert boxes[0].x0 > 0
    assert boxes[-1].x1 < fig.bbox.width
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))
    assert all(box.y1 < fig.bbox.height for box in boxes)


def test_saving(study, tmp_path):
    for kind, magic in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")):
        first, second = tmp_path / f"a.{kind}", tmp_path / "new" / f"b.{kind}"
        save(study.plot(["ece"]), first)
        save(study.plot(["ece"]), second)
        assert first.read_bytes().startswith(magic)
        assert first.read_bytes() == second.read_bytes()
    ET.parse(tmp_path / "a.svg")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.pdf", "a.png", "a.svg", "new"]


def test_saving_where_one_cannot(study, tmp_path):
    with pytest.raises(InvalidParameter, match=r"expected .png, .svg or .pdf"):
        save(study.plot(["ece"]), tmp_path / "a.jpg")
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidParameter, match="cannot be written"):
        save(study.plot(["ece"]), tmp_path / "file" / "a.png")
    with pytest.raises(InvalidParameter, match="no curves"):
        figure([])


def test_a_curve_plots_itself(study):
    assert len(study.curve("ece", "forecast hedging", "drift").plot().axes) == 1
