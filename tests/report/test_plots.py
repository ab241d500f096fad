"""Plots: the data layer exactly, the drawing in that it draws and is the same twice."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.columns import Column
from onlinecal.core.errors import InvalidParameter
from onlinecal.growth import simultaneous
from onlinecal.report.curves import Curve
from onlinecal.report.frames import frames, games
from onlinecal.report.plots import plot_curves, save
from onlinecal.study.played import Promise


def figure(curves, title=""):
    """The figure that is made where no axes are given."""
    return plot_curves(curves, title=title)[0, 0].figure


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
    assert (line.lower == np.percentile(curve.totals, 5, axis=1)).all()
    assert (line.upper == np.percentile(curve.totals, 95, axis=1)).all()
    assert line.exponent == curve.exponent(simultaneous(12))  # as in a table of all that is drawn
    assert f"T^{{{line.exponent.value:.2f}}}" in line.label
    assert len({line.style for line in drawn[0].lines}) == 3


def test_bounds_are_the_guarantees(study):
    drawn = {(f.nature, f.measure): {b.label: b for b in f.bounds} for f in frames(study.curves())}
    ece = drawn["contrarian", "ece"]
    hedging = oc.forecasters.ForecastHedging().guarantees[0]
    assert ece["mean ≤ T/(2m) + m + 1 + √((m + 1)(m + 1 + T/2 + T/m))"].values.tolist() == [
        hedging.bound(t) for t in (100, 300, 900, 2700)
    ]
    forced = ece["≥ T/2 (every deterministic forecaster)"]
    assert forced.values.tolist() == [50, 150, 450, 1350]
    assert forced.style is None
    smooth = drawn["drift", "smooth_ce"]["≤ 2(2√T + 1)"]
    assert smooth.values == pytest.approx([2 * (2 * t**0.5 + 1) for t in (100, 300, 900, 2700)])
    assert "mean ≤ 2(T/(2m) + m + 1 + √((m + 1)(m + 1 + T/2 + T/m)))" in drawn["drift", "cdl"]
    (minimiser,) = oc.forecasters.CDLMinimiser().guarantees
    own = drawn["drift", "cdl"][f"mean ≤ {minimiser.formula}"]
    assert own.exact
    assert own.values.tolist() == [minimiser.bound(t) for t in (100, 300, 900, 2700)]


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
    return Curve(
        Column("measure", measure), f"from {first}", "somebody", rounds, level * rounds[:, None] ** 0.5, fresh
    )


def test_one_rate_where_both_are_the_same_and_none_where_none_is_known():
    for measure, labels in {
        "kernel_ce": ["Ω(T^(1/3))", "O(√T)"],
        "u_calibration": ["Θ(√T)"],
        "swap_regret[quadratic]": ["O(T^(1/3) log T)"],
        "brier": [],
    }.items():
        (frame,) = frames([grown(measure)])
        assert [reference.label for reference in frame.references] == labels


def test_rates_start_at_the_first_time_and_are_not_drawn_into_one_game():
    (frame,) = frames(
        [
            grown("u_calibration"),
            grown("u_calibration", first=10, level=20.0),
            grown("u_calibration", level=2.0),
        ]
    )
    (rate,) = frame.references
    assert rate.rounds.tolist() == [10, 100, 1000, 10_000]
    assert rate.values == pytest.approx(
        10 * rate.rounds**0.5
    )  # half of the one curve that is there at T = 10
    (frame,) = frames([grown("u_calibration", fresh=False)])
    assert frame.references == []


# -------------------------------------------------------------------- what has no place on the axes


def curve(totals, *, rounds=(100, 200, 400, 800), forecaster="somebody", measure="brier", nature="drift"):
    """Totals (n, runs) at these T, as fresh games."""
    table = np.array(totals, dtype=float)
    return Curve(
        Column("measure", measure), forecaster, nature, np.array(rounds), table.reshape(len(rounds), -1), True
    )


def words(fig):
    """All that a legend or the caption says."""
    legends = [t.get_text() for axis in fig.axes if axis.get_legend() for t in axis.get_legend().get_texts()]
    legends = [" ".join(text.split()) for text in legends]
    return legends, " ".join(fig._supxlabel.get_text().split())


INF = np.inf


@pytest.mark.parametrize(
    ("totals", "said"),
    [
        ([[0, 0]] * 4, "0 in every run"),
        ([[-1, 1]] * 4, "0 at every T"),
        ([[INF, INF]] * 4, "infinite at every T"),
        ([[INF, 1]] * 4, "infinite at every T, in 1 of 2 runs"),
        ([[-INF, 1]] * 4, "minus infinite at every T, in 1 of 2 runs"),
        ([[-INF, INF]] * 4, "infinite both ways, without a mean, at every T"),
        (
            [[-INF, -INF], [0, 0], [0, INF], [INF, -INF]],
            "0 at T = 200; infinite at T = 400, in 1 of 2 runs; minus infinite at T = 100; "
            "infinite both ways, without a mean, at T = 800",
        ),
        (
            [[0, 0], [0, 0], [INF, INF], [INF, 3]],
            "0 up to T = 200; infinite from T = 400 on, in 1–2 of 2 runs",
        ),
    ],
)
@pytest.mark.filterwarnings("error")
def test_a_curve_that_cannot_be_drawn_is_named_with_the_reason(totals, said):
    drawn = curve(totals)
    (frame,) = frames([drawn])
    assert frame.lines == []
    assert frame.absent == [(0, f"somebody: {said}")]
    legends, caption = words(figure([drawn]))
    assert legends == [f"somebody: {said}"]
    assert "Always 0" not in caption


@pytest.mark.parametrize(
    ("totals", "said", "marks"),
    [
        ([3, 0, 5, 9], "0 at T = 200", [([200], False)]),
        ([0, 0, 5, 9], "0 up to T = 200", [([100, 200], False)]),
        ([3, 4, 0, 0], "0 from T = 400 on", [([400, 800], False)]),
        ([3, 0, 0, 9], "0 from T = 200 to 400", [([200, 400], False)]),
        ([3, 0, 9, 0], "0 at 2 T from 200 to 800", [([200, 800], False)]),
        ([3, 4, INF, INF], "infinite from T = 400 on", [([400, 800], True)]),
        ([0, 4, 5, INF], "0 at T = 100; infinite at T = 800", [([800], True), ([100], False)]),
    ],
)
def test_single_points_do_not_vanish(totals, said, marks):
    drawn = curve(totals)
    (frame,) = frames([drawn])
    (line,) = frame.lines
    assert line.label == f"somebody; {said}"
    assert [(mark.rounds.tolist(), mark.up) for mark in frame.marks] == marks
    # The line is broken there, not led past the gap.
    assert np.isnan(line.mean).tolist() == [not 0 < total < INF for total in totals]
    fig = figure([drawn])
    legends, caption = words(fig)
    assert legends == [f"somebody; {said}"]
    assert ("upper edge: infinite" in caption) == any(up for _, up in marks)
    assert ("lower edge: 0" in caption) == any(not up for _, up in marks)
    arrows = [artist for artist in fig.axes[0].lines if artist.get_linestyle() == "None"]
    assert [artist.get_xdata().tolist() for artist in arrows] == [rounds for rounds, _ in marks]


def test_a_rate_goes_through_the_first_point_that_is_drawn():
    promises = tuple((t, Promise("cdl", "", "√T", "rate", "all", True, t**0.5)) for t in (100, 400, 1600))
    totals = np.array([[0.0], [6.0], [9.0]])
    drawn = Curve(Column("measure", "cdl"), "a", "b", np.array([100, 400, 1600]), totals, True, promises)
    (bound,) = frames([drawn])[0].bounds
    assert bound.values.tolist() == [3.0, 6.0, 12.0]


def test_negative_totals_are_drawn_as_they_are():
    below, zero = curve([-4, -30, -100, -900]), curve([0, 10, 0, 500], forecaster="other")
    (frame,) = frames([below, zero])
    assert frame.negative
    assert [line.mean.tolist() for line in frame.lines] == [[-4, -30, -100, -900], [0, 10, 0, 500]]
    assert frame.absent == frame.marks == frame.references == []
    fig = figure([below, zero])
    axis = fig.axes[0]
    assert axis.get_yscale() == "symlog"
    assert axis.get_ylim()[0] < -900 < 500 < axis.get_ylim()[1]
    assert "linear around 0" in words(fig)[1]
    assert "linear around 0" not in words(figure([zero]))[1]


# -------------------------------------------------------------------- where bounds bind


def test_what_binds_deterministic_forecasters_is_not_drawn_beside_others(study):
    alone = frames([study.curve("ece", "forecast hedging", "contrarian")])[0]
    assert [bound.label for bound in alone.bounds] == [
        "mean ≤ T/(2m) + m + 1 + √((m + 1)(m + 1 + T/2 + T/m))"
    ]
    both = frames(study.curves(["ece"]))[0]
    assert [bound.label for bound in both.bounds if bound.style is None] == [
        "≥ T/2 (every deterministic forecaster)"
    ]
    # Every bound that is drawn lies on the right side of the curves that it is about.
    for frame in frames(study.curves()):
        for bound in frame.bounds:
            for line in frame.lines:
                if bound.exact and bound.style == line.style:
                    assert (line.mean <= bound.values).all()


def test_a_bound_from_below_is_drawn_where_it_holds():
    """Of one game: at its end, and not as a level line above all of the curve before."""
    study = oc.play(
        oc.forecasters.LastOutcome(), oc.natures.Contrarian(), horizon=900, runs=1, measures=["ece"]
    )
    (frame,) = frames(study.curves(["ece"]))
    (forced,) = frame.bounds
    assert (forced.rounds.tolist(), forced.values.tolist()) == ([900.0], [450.0])


# -------------------------------------------------------------------- what the T are


def replayed(tmp_path, monkeypatch, horizon):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rain.csv").write_text("outcome\n" + "\n".join("01101"[t % 5] for t in range(400)) + "\n")
    natures = [oc.natures.Replay("rain.csv"), oc.natures.Drift()]
    return oc.play(oc.forecasters.ForecastHedging(), natures, horizon=horizon, runs=2, measures=["ece"])


def test_prefixes_and_recorded_rounds_are_not_called_fresh(tmp_path, monkeypatch):
    one = replayed(tmp_path, monkeypatch, 300)
    assert words(one.plot()[0, 0].figure)[1].startswith("T: rounds of one game. Line")
    several = replayed(tmp_path, monkeypatch, [100, 200, 400])
    replay, drift = several.natures
    assert words(several.plot()[0, 0].figure)[1].startswith(
        f"T: a game each, on the same recorded rounds ({replay}); a fresh game each (drift). Line"
    )
    assert games(several.only(natures=[drift]).curves()) == "T: a fresh game each."
    assert games(several.only(natures=[replay]).curves()) == "T: a game each, on the same recorded rounds."
    mixed = [several.curve("ece", nature=drift), one.curve("ece", nature=drift)]
    assert games(mixed).count("forecast hedging against drift") == 2
    fresh, again = several.curve("ece", nature=drift), several.curve("ece", nature=replay)
    assert (fresh.fresh, fresh.recorded) == (True, False)
    assert (again.fresh, again.recorded) == (True, True)
    alone = one.curve("ece", nature=replay)
    assert (alone.fresh, alone.recorded) == (False, True)
    # Each is tuned to its T, so bounds are drawn at every T.
    assert [b.rounds.tolist() for f in frames([again]) for b in f.bounds] == [[100, 200, 400]]


def test_the_picture_says_what_it_shows(study):
    fig = figure(study.curves(["ece"]), title="A title")
    caption = " ".join(fig._supxlabel.get_text().split())
    assert "mean of 6 runs" in caption
    assert "5th to 95th percentile of the runs" in caption
    assert "Dashed: proven bound." in caption
    assert fig._suptitle.get_text() == "A title"
    axes = fig.axes
    assert [a.get_title() for a in axes] == ["ece against contrarian", "ece against drift"]
    # One legend says what the forecasters look like, those of the axes how they grow.
    (legend,) = fig.legends
    assert [t.get_text() for t in legend.get_texts()] == study.forecasters
    texts = [t.get_text() for t in axes[0].get_legend().get_texts()]
    assert texts.count("$T^{0.98}$") == 1
    alone = figure([study.curve("ece", "almost one step ahead", "contrarian")])
    assert not alone.legends
    texts = [" ".join(t.get_text().split()) for t in alone.axes[0].get_legend().get_texts()]
    assert texts[0] == "almost one step ahead $T^{0.98}$"
    # Against the contrarian it matters whether 1/2 is on its grid: four horizons do not tell an exponent.
    assert not study.exponent("ece", "forecast hedging", "contrarian").clear
    assert "Exponent: mean growth over these T, where that is clear." in caption
    assert "no power law" not in caption
    assert (
        "Proved against every nature that sees the law: mean ≤ T/(2m) + m + 1 + √((m + 1)(m + 1 + T/2 + T/m))."
        in caption
    )
    assert [a.get_xlabel() for a in axes] == ["T", "T"]
    assert axes[0].get_xscale() == axes[0].get_yscale() == "log"


UNRULY = (r"$\frac{1$", "$5 or $6", "_under_ $x$", r"a\$b$c", "two\nlines", "100 % & #1 {^_}~", "$$", "a | b")


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_any_text_may_be_a_label_and_stands_there_letter_by_letter(kind, tmp_path):
    from onlinecal.report.exponent_plot import plot_exponents
    from onlinecal.study import Played

    totals = np.array([[4.99, 5.01]])
    cells = [
        Played(
            who,
            nature,
            t,
            np.array([t]),
            {"ece": totals * (t / 100 if who else 0.0), "x[$_y$]": totals - 9},
            (Column("measure", "ece"), Column("function", "x[$_y$]")),
        )
        for who in UNRULY
        for nature in UNRULY[:2]
        for t in (100, 200, 400)
    ]
    drawn = oc.Study(tuple(cells), title=r"From $5 to $\nothing")
    fig = figure(drawn.curves(), title=drawn.title)
    legends = [text.get_text() for text in fig.legends[0].get_texts()]
    assert len(legends) == len(UNRULY)
    for who, said in zip(UNRULY, legends, strict=True):
        assert said.replace("\\$", "$").replace("\n", " ").strip("\u200a") == " ".join(who.split())
    assert {text.get_text() for text in fig.axes[0].get_legend().get_texts()} == {"$T^{1.00}$"}
    alone = figure(drawn.only(natures=UNRULY[:1]).curves(["ece"]))
    legends = [text.get_text() for text in alone.axes[0].get_legend().get_texts()]
    for who, said in zip(UNRULY, legends, strict=True):
        assert said.replace("\\$", "$").replace("\n", " ").strip("\u200a").startswith(" ".join(who.split()))
        assert said.endswith("$T^{1.00}$")
    save(fig, tmp_path / f"x.{kind}")
    save(plot_exponents(drawn, ["ece", "x[$_y$]"], title=drawn.title)[0].figure, tmp_path / f"y.{kind}")
    save(figure([curve([0, 0, 0, 0], forecaster=UNRULY[0])]), tmp_path / f"z.{kind}")
    if kind == "svg":
        written = (tmp_path / "y.svg").read_text()
        for text in (*UNRULY[1:3], drawn.title):
            assert f">{text}</text>" in written  # as text, not as outlines


def test_a_measure_that_is_named_twice_is_drawn_once(study):
    assert len(study.curves(["ece", "cdl", "ece"])) == 2 * 2 * 3
    (frame, _) = frames(study.curves(["ece", "ece"]))
    assert len(frame.lines) == 3


def test_saving(study, tmp_path):
    part = study.only(natures=["drift"])
    for kind, magic in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")):
        first, second = tmp_path / f"a.{kind}", tmp_path / "new" / f"b.{kind}"
        save(part.plot(["ece"])[0, 0].figure, first)
        save(part.plot(["ece"])[0, 0].figure, second)
        assert first.read_bytes().startswith(magic)
        assert first.read_bytes() == second.read_bytes()
    ET.parse(tmp_path / "a.svg")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.pdf", "a.png", "a.svg", "new"]


def test_saving_where_one_cannot(study, tmp_path):
    with pytest.raises(InvalidParameter, match=r"expected .png, .svg or .pdf"):
        save(study.plot(["ece"])[0, 0].figure, tmp_path / "a.jpg")
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidParameter, match="cannot be written"):
        save(study.plot(["ece"])[0, 0].figure, tmp_path / "file" / "a.png")
    with pytest.raises(InvalidParameter, match="no curves"):
        figure([])


def test_totals_divided_by_a_power_of_t(study):
    """What grows like that is level; exponents are those of the totals."""
    curves = study.curves(["ece", "cdl"])
    plain, divided = frames(curves), plot_curves(curves, power=2 / 3)
    for frame, axis in zip(plain, divided.flat, strict=True):
        for line in frame.lines:
            scaled = line.mean / line.rounds ** (2 / 3)
            assert any(np.allclose(drawn.get_ydata(), scaled) for drawn in axis.lines)
        for bound in frame.bounds:
            assert any(
                len(drawn.get_ydata()) == len(bound.values)
                and np.allclose(drawn.get_ydata(), bound.values / bound.rounds ** (2 / 3))
                for drawn in axis.lines
            )
    _, high = frames(curves)[0].references
    rate = [line for line in divided[0, 0].lines if np.allclose(line.get_ydata(), line.get_ydata()[0])]
    assert high.label == "O(T^(2/3))"
    assert len(rate) == 1  # the best known upper rate of the ECE
    assert divided[0, 0].get_ylabel() == r"total $T\cdot\mu$ / $T^{0.667}$"
    said = " ".join(divided[0, 0].figure._supxlabel.get_text().split())
    assert "Totals, bounds and rates are divided by T^0.667; exponents are those of the totals." in said
    assert "divided" not in plot_curves(curves)[0, 0].figure._supxlabel.get_text()
    with pytest.raises(InvalidParameter, match="power"):
        plot_curves(curves, power=np.nan)


# -------------------------------------------------------------------- the parity of a grid


def said_of_parity(curves):
    """What the caption says of it."""
    _, caption = words(figure(curves))
    return [said for said in caption.split(". ") if "Jagged" in said]


def hedged(roots, nature, forecaster="forecast_hedging", runs=8, **options):
    """Games of T = m³ rounds."""
    horizons = [m**3 for m in roots]
    return oc.play(forecaster, nature, horizon=horizons, runs=runs, measures=["ece", "smooth_ce"], **options)


def test_a_curve_that_is_jagged_as_its_grid_is_even_or_odd_says_so(seed):
    """The factors are 0.28 and 5.1, and their standard deviations, measured over 60 seeds, 0.02 and 0.2."""
    study = hedged(range(10, 18), "contrarian", seed=seed)
    ece, smooth = study.curve("ece"), study.curve("smooth_ce")
    assert ece.steps.tolist() == list(range(10, 18))
    assert 0.1 < ece.parity() < 0.5 < 2 < smooth.parity() < 10
    assert said_of_parity(study.curves()) == [
        "Jagged as the m steps of the grid are even, with a point at ½, or odd, without one: forecast hedging against "
        "contrarian (at even m lower in ece and higher in smooth_ce)"
    ]
    assert said_of_parity([smooth])[0].endswith("contrarian (at even m higher in smooth_ce)")


def test_a_curve_whose_grid_changes_parity_in_vain_does_not():
    """Neither a smooth one, nor one that is jagged in another order, of one run, of no grid, or of one game."""
    rounds, steps = np.arange(10, 18) ** 3, np.arange(10, 18)
    even = steps % 2 == 0

    def one(heights, *, runs=3, fresh=True, steps=steps):
        totals = np.repeat((rounds**0.5 * heights)[:, None], runs, axis=1)
        return Curve(Column("measure", "ece"), "a", "b", rounds, totals, fresh, steps=steps)

    jagged = np.where(even, 0.3, 1.0)
    assert one(jagged).parity() == pytest.approx(0.3)
    pairs = np.where(steps % 4 < 2, 0.3, 1.0)
    for curve in (
        one(np.ones(8)),
        one(1.0 + 50.0 / rounds**0.5),
        one(pairs),
        one(jagged, runs=1),
        one(jagged, steps=None),
        one(jagged, fresh=False),
    ):
        assert curve.parity() is None
        assert said_of_parity([curve]) == []
    assert one(pairs).exponent().shape == "jagged"
