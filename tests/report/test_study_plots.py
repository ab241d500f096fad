"""Pictures of whole studies: exponents, regrets of tasks, and a parameter with several values, to the digit."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.stats import t as student

import onlinecal as oc
from onlinecal.core.columns import Column
from onlinecal.core.errors import InvalidParameter, OnlinecalError
from onlinecal.report.facets import stacked
from onlinecal.report.pictures import draw
from onlinecal.report.study_plot import (
    KINDS,
    draw_exponents,
    draw_tasks,
    exponents_table,
    plot_exponents,
    plot_tasks,
    tasks_table,
)
from onlinecal.report.style import page
from onlinecal.report.sweep_plot import APART, sweep_table
from onlinecal.study.curves import Study
from tests.report import made
from tests.report.drawn import overlapping, texts
from tests.report.made import contrast

F, N = oc.forecasters, oc.natures


# ---------------------------------------------------------------- exponents


def test_the_heat_map_shows_the_exponents():
    """Of a pair that was not played, and of totals of 0, there is none. Numbers can be read at the width of a page."""
    rng = np.random.default_rng(0)
    totals = {("a", "m"): 0.5, ("a", "n"): 0.9, ("b", "n"): None}
    study = made.study(*(
        made.cell(who, {"ece": [0.0] * 4 if power is None else t**power * np.exp(0.01 * rng.standard_normal(4)),
                        "cdl": [t] * 4}, nature, times=(t,))
        for (who, nature), power in totals.items() for t in (100, 300, 900)
    ))  # fmt: skip
    heat = exponents_table(study, ["ece"])
    assert [*zip(heat["forecaster"], heat["nature"], strict=True)] == [*totals]
    for row, power in zip(heat.itertuples(), totals.values(), strict=True):
        if power is None:
            assert (np.isnan(row.exponent), row.text) == (True, "–")
            continue
        fit = study.exponent("ece", row.forecaster, row.nature)
        assert (row.exponent, row.half) == (fit.value, (fit.upper - fit.lower) / 2)
        assert row.text.startswith(f"{fit.value:.2f} ± {row.half:.2f}")
    figure = plot_exponents(study, "ece", title="A title")
    (axis, _), shown = figure.axes, dict(zip(totals, heat["text"], strict=True))
    at = {(who, nature): (j, i) for i, who in enumerate("ab") for j, nature in enumerate("mn")}
    assert {text.get_position(): text.get_text() for text in axis.texts} == {
        at[pair]: shown.get(pair, "") for pair in at
    }  # fmt: skip
    assert np.array_equal(axis.images[0].get_array().filled(np.nan)[0], heat["exponent"][:2])
    labels = [[text.get_text() for text in each.get_ticklabels()] for each in (axis.yaxis, axis.xaxis)]
    assert labels == [["a", "b"], ["m", "n"]]
    figure.draw_without_rendering()
    cell = axis.get_window_extent().width / 2
    assert all(text.get_window_extent().width < cell and text.get_fontsize() >= 6 for text in axis.texts)
    with pytest.raises(InvalidParameter, match="no measures"):
        plot_exponents(study, [])


@pytest.mark.parametrize("dark", [False, True])
def test_what_stands_in_a_cell_can_be_read(dark):
    """With a contrast of at least 4.5, in every colour that a cell can have."""
    values = np.linspace(-0.2, 1.2, 60).reshape(2, 30)
    values[0, 3] = np.nan
    names = [str(j) for j in range(30)]
    with page(dark):
        axis = Figure().subplots()
        rows = stacked([
            {"forecaster": who, "nature": np.array(names, dtype=object), "exponent": mine, "text": "x"}
            for who, mine in zip("ab", values, strict=True)
        ])  # fmt: skip
        draw_exponents(axis, rows, ["a", "b"], names)
    (image,) = axis.images
    for text, value in zip(axis.texts, values.ravel(), strict=True):
        shown = axis.get_facecolor() if np.isnan(value) else image.cmap(image.norm(value))
        assert contrast(text.get_color(), shown[:3]) >= 4.5


def test_long_names_lose_their_middle():
    """Up to 30 letters across and 60 down they stay whole."""
    across, down = (["a" * (n // 2) + "b" * (n // 2), "a" * n + "b" * n] for n in (30, 60))
    axis = Figure().subplots()
    rows = stacked([{"forecaster": down[0], "nature": across[0], "exponent": 0.5, "text": "x"}])
    draw_exponents(axis, rows, down, across)
    for n, names, each in ((30, across, axis.xaxis), (60, down, axis.yaxis)):
        whole, short = ("".join(label.get_text().split()) for label in each.get_ticklabels())
        assert whole == names[0]
        assert short == "a" * (n // 2) + "…" + "b" * (n // 2 - 1)


@pytest.mark.parametrize(
    ("power", "remark", "mark"), [(1.0, "above O", "▲"), (0.6, "", ""), (0.2, "below Ω", "▽")]
)
def test_cells_beyond_the_known_rates_are_marked_where_no_outcome_is_late(power, remark, mark):
    """Those of the ECE are T^0.54389 and T^(2/3)."""
    times = 100 * 3 ** np.arange(6)
    for open, said, marks in (((), remark, set(mark)), ((3,), "", set())):
        totals = {t: t**power * np.linspace(1, 1.01, 8) for t in times}
        one = made.study(*(made.cell("a", row, times=(t,), open=open) for t, row in totals.items()))
        assert one.curve("ece").against_rates() == said
        (text,) = exponents_table(one, ["ece"])["text"]
        assert {sign for sign in "▲▽" if sign in text} == marks


# ---------------------------------------------------------------- regrets of tasks


def test_regrets_of_tasks_are_means_with_intervals_of_student(seed):
    """At the largest T, against SciPy's interval for a mean; a swap regret and its interval are never negative."""
    rng = np.random.default_rng(seed)
    columns = {
        (task, kind): Column("decision_task", kind, task=task) for task in ("one", "two") for kind in KINDS
    }
    totals = {
        (who, nature): {column: rng.normal(2, 3, 5) for column in columns.values()} | {"cdl": rng.normal(20, 1, 5)}
        for who in "abc" for nature in "mn"
    }  # fmt: skip
    games = (
        made.cell(who, {name: f * row for name, row in rows.items()}, nature, (t,))
        for (who, nature), rows in totals.items() for t, f in ((100, 1), (300, 2))
    )  # fmt: skip
    study = made.study(*games)
    table = tasks_table(study)
    for row in table.itertuples():
        own = (
            2
            * totals[row.forecaster, row.nature][
                "cdl" if row.mark == "bound" else columns[row.task, row.kind]
            ]
        )
        line = ["one", "two"].index(row.task) + 0.7 * (("abc".index(row.forecaster) + 0.5) / 3 - 0.5)
        assert (row.total, row.line, row.horizon) == (pytest.approx(own.mean()), pytest.approx(line), 300)
        if row.mark == "bound":
            assert (row.kind, row.upper - row.lower) == ("swap_regret", pytest.approx(0.2))
            assert row.lower + row.upper == pytest.approx(2 * line)
            continue
        low, high = student.interval(0.95, 4, loc=own.mean(), scale=own.std(ddof=1) / 5**0.5)
        least = -np.inf if row.kind == "external_regret" else min(0.0, own.mean())
        assert (row.left, row.right) == pytest.approx((max(low, least), high))
    counts = table.groupby(["nature", "kind", "mark"]).size()
    assert {*counts} == {6}
    assert len(counts) == 2 * (len(KINDS) + 1)
    # Where all is exactly 0 the axis is no scatter of roundings. A single run has no interval.
    zero, single = (
        made.study(made.cell("a", dict.fromkeys(columns.values(), row))) for row in ([0.0, 0.0], [3.0])
    )
    assert [axis.get_xlim() for axis in plot_tasks(zero).axes] == [(-1.0, 1.0)] * 3
    assert {*tasks_table(single)["left"], *tasks_table(single)["right"]} == {3.0}
    for column in (Column("measure", "ece"), Column("decision_task", "payoff", task="one")):
        with pytest.raises(InvalidParameter, match="no task was played"):
            plot_tasks(made.study(made.cell("a", {column: [1.0]})))


@pytest.mark.parametrize("least", [0.7, -8000.0])
def test_points_of_far_apart_regrets_are_within_their_axes_and_labels_apart(least):
    mean = np.array([least, 1.0, 180.0, 16384.0])
    rows = stacked([{"mark": "regret", "forecaster": ["one", "other"] * 2, "place": [0, 1] * 2, "total": mean,
                     "left": mean, "right": mean, "line": [-0.2, 0.2, 0.8, 1.2]}])  # fmt: skip
    axis = Figure(figsize=(2.4, 2.0), layout="constrained").subplots()
    draw_tasks(axis, rows, ["a", "b"])
    inside = axis.transData.inverted()
    low, high = (inside.transform(axis.transAxes.transform((x, 0)))[0] for x in (0.02, 0.98))
    assert low < mean.min() < mean.max() < high
    if least > 0:
        assert axis.get_xlim()[0] > -1.0
    assert overlapping(texts(axis.figure)) == []


@pytest.mark.parametrize(("total", "line"), [(-1.0, True), (0.0, False)])
def test_a_line_at_0_stands_where_a_regret_is_negative(total, line):
    columns = {Column("decision_task", kind, task="x"): [total, total] for kind in KINDS}
    for axis in plot_tasks(made.study(made.cell("a", columns))).axes:
        upright = [each for each in axis.lines if list(each.get_xdata()) == [0.0, 0.0]]
        assert len(upright) == line


@pytest.mark.parametrize(("most", "scale"), [(50.0, "linear"), (50.1, "symlog")])
def test_regrets_that_differ_by_more_than_a_factor_have_a_logarithmic_axis(most, scale):
    columns = [Column("decision_task", kind, task="x") for kind in KINDS]
    games = (
        made.cell(who, {column: [total] for column in columns}) for who, total in (("a", 1.0), ("b", most))
    )
    axes = plot_tasks(made.study(*games)).axes
    assert [axis.get_xscale() for axis in axes] == [scale] * 3


# ---------------------------------------------------------------- a parameter with several values

BETAS = (20.0, 0.5, 1.0)


@pytest.fixture(scope="module")
def study():
    """Temperatures out of order, one forecaster without, two natures, two horizons."""
    return oc.play(
        [*(F.Tempered(beta) for beta in BETAS), F.Truthful()], [N.UniformTruth(), N.UniformTruth(low=0.5)],
        horizon=[50, 100], runs=5, measures=["smooth_ce", "ece"],
    )  # fmt: skip


def values(study, beta, nature, horizon):
    (cell,) = (
        c for c in study.cells
        if c.horizon == horizon and c.nature == nature and c.origin.game["forecaster"]["parameters"].get("beta") == beta
    )  # fmt: skip
    return cell.totals["smooth_ce"][-1] / horizon


def lines(*given):
    """Panel → measure → the rows of its line."""
    study, measures, against, *bars = given
    table = sweep_table(study, measures, against, **({"bars": bars[0]} if bars else {}))
    return [dict([*rows.groupby("measure", sort=False)]) for _, rows in table.groupby("panel")]


def first(*given):
    """The first line of the first panel."""
    return next(iter(lines(*given)[0].values()))


def shown(line, i):
    """The ends and the middle of a bar."""
    return line[["lower", "value", "upper"]].iloc[i].tolist()


def test_one_panel_for_all_that_is_the_same_but_for_the_parameter(study):
    table = sweep_table(study, ["smooth_ce", "ece"], "beta")
    left = table.attrs["without"]
    panels = [(n, t) for n in study.natures for t in (50, 100)]
    assert list(dict.fromkeys(table["heading"])) == [f"tempered against {n}, T = {t}" for n, t in panels]
    assert left == ["truthful"]
    for found, (nature, t) in zip(lines(study, ["smooth_ce", "ece"], "beta"), panels, strict=True):
        assert list(found) == ["smooth_ce", "ece"]
        line = found["smooth_ce"]
        assert (line["at"].tolist(), line["runs"].tolist()) == (sorted(BETAS), [5, 5, 5])
        for i, beta in enumerate(sorted(BETAS)):
            runs = values(study, beta, nature, t)
            mean, spread = runs.mean(), runs.std(ddof=1)
            assert shown(line, i) == pytest.approx((mean - spread, mean, mean + spread), rel=1e-9)


def test_bars_are_what_they_are_said_to_be(study):
    runs = values(study, 1.0, study.natures[0], 50)
    line = first(study, ["smooth_ce"], "beta", "quartiles")
    assert shown(line, 1) == pytest.approx(np.percentile(runs, [25, 50, 75]))
    line = first(study, ["smooth_ce"], "beta", "interval")
    half = 2.7764451051977987 * runs.std(ddof=1) / np.sqrt(5)  # Student's t, 4 degrees of freedom, 97.5 %
    assert shown(line, 1)[2] - shown(line, 1)[1] == pytest.approx(half, rel=1e-9)


def test_a_parameter_of_natures_and_of_players_under_others():
    played = oc.play(
        [F.Delayed(F.Constant(p=p), slots=4) for p in (0.3, 0.6)], [N.Bernoulli(q) for q in (0.2, 0.7)], horizon=40,
        runs=1, measures=["ece", "brier"],
    )  # fmt: skip
    two = lines(played, ["ece", "brier"], "q")[0]  # side by side, about their place
    left, right = (two[name]["x"].to_numpy() for name in ("ece", "brier"))
    assert right - left == pytest.approx(APART * (0.7 - 0.2))
    assert (left + right) / 2 == pytest.approx([0.2, 0.7])
    for name, at in (("q", [0.2, 0.7]), ("of.p", [0.3, 0.6])):
        found = lines(played, ["ece"], name)
        assert [each["ece"]["at"].tolist() for each in found] == [at] * 2
        # One run has no spread: a point without a bar.
        assert np.isnan(found[0]["ece"]["upper"]).all()
    assert all("bernoulli, T = 40" in heading for heading in sweep_table(played, ["ece"], "q")["heading"])
    both = oc.play([F.Constant(0.2), F.Shifted(by=0.1), F.Shifted(by=0.2)], N.UniformTruth(), horizon=20, runs=2,
                   measures=["ece"])  # fmt: skip
    assert sweep_table(both, ["ece"], "by").attrs["without"] == [both.forecasters[0]]


def test_against_the_number_of_rounds(study):
    found = lines(study, ["ece"], "T", "quartiles")
    assert len(found) == 8
    line = found[0]["ece"]
    curve = study.curve("ece", study.forecasters[0], study.natures[0])
    assert line["at"].tolist() == [50, 100]
    assert line["value"].tolist() == pytest.approx(np.median(curve.totals / curve.rounds[:, None], axis=1))


def test_lines_of_a_wide_parameter_are_set_apart_by_a_factor(study):
    figure, left = draw(study, "sweep", measure=("smooth_ce", "ece"), against="beta")
    assert (len(figure.axes), left) == (4, "")
    axis, beta = figure.axes[0], np.sort(BETAS)
    for line, side in zip(axis.lines, (-0.5, 0.5), strict=True):
        assert line.get_xdata() == pytest.approx(beta * (max(BETAS) / min(BETAS)) ** (side * APART))
    assert axis.get_xscale() == "log"
    said = " ".join(figure.legends[0].get_title().get_text().split())
    assert said.endswith("mean ± standard deviation · without beta: truthful")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((["ece"], "bta"), "unknown parameter 'bta'; did you mean 'beta'"),
        ((["eec"], "beta"), "unknown measure 'eec'"),
        (([], "beta"), "no measures"),
        ((["ece"], "beta", "all"), "bars = 'all'; expected one of 'deviation', 'quartiles', 'interval'"),
    ],
)
def test_what_is_refused(given, said, study):
    with pytest.raises(OnlinecalError, match=said):
        sweep_table(study, *given[:2], **({"bars": given[2]} if len(given) > 2 else {}))


@pytest.mark.parametrize(("values", "low"), [((0.0, 0.5), True), ((-0.1, 0.5), False)])
def test_the_axis_of_values_begins_at_0_where_none_is_negative(values, low):
    games = (made.cell("one", [t * value], times=(t,)) for t, value in zip((100, 200), values, strict=True))
    (axis,) = oc.plots.sweep(made.study(*games), ["ece"], "T").axes
    assert (axis.get_ylim()[0] == 0.0) == low


@pytest.mark.parametrize(("most", "scale"), [(1000, "linear"), (1001, "log")])
def test_the_axis_of_a_parameter_is_logarithmic_beyond_a_factor_of_ten(most, scale):
    mine = made.study(*(made.cell("one", {"ece": [1.0], "cdl": [1.0]}, times=(t,)) for t in (100, most)))
    (axis,) = oc.plots.sweep(mine, ["ece", "cdl"], "T").axes
    assert axis.get_xscale() == scale
    # So lines are set apart by a distance or by a factor.
    first, second = (line["x"].to_numpy() for line in lines(mine, ["ece", "cdl"], "T")[0].values())
    apart = second - first if scale == "linear" else second / first
    assert apart[0] == pytest.approx(apart[1])


def test_a_parameter_is_that_of_the_role_in_which_it_differs():
    forecasters = [F.Doubling(F.Constant(0.3), first=n) for n in (2, 4)]
    natures = [N.Drift(first=p) for p in (0.1, 0.2)]
    for who, whom, at in ((forecasters, natures[:1], [2, 4]), (forecasters[:1], natures, [0.1, 0.2])):
        one = oc.play(who, whom, horizon=20, runs=1, measures=["ece"])
        assert first(one, ["ece"], "first")["at"].tolist() == at
    both = oc.play(forecasters, natures, horizon=20, runs=1, measures=["ece"])
    with pytest.raises(
        InvalidParameter, match="against = 'first': forecasters and natures have several values of it"
    ):
        sweep_table(both, ["ece"], "first")


def test_at_most_thirty_six_panels_are_drawn():
    games = {(f"f{i}", "n"): [1] for i in range(36)}
    assert sweep_table(made.study(games), ["ece"], "T")["panel"].nunique() == 36
    with pytest.raises(
        InvalidParameter, match="37 panels against T; expected at most 36, chosen by --forecaster"
    ):
        sweep_table(made.study(games | {("f36", "n"): [1]}), ["ece"], "T")


def test_a_measure_that_no_game_with_the_parameter_has_is_refused():
    played = oc.play([F.Constant(p) for p in (0.2, 0.3)], N.Drift(), horizon=20, runs=1, measures=["ece"])
    both = Study((*played.cells, made.cell("other", {"cdl": [1.0]})))
    with pytest.raises(InvalidParameter, match="no measure was taken in games with p; expected one that was"):
        sweep_table(both, ["cdl"], "p")


def test_infinite_values_have_no_point_and_it_is_said():
    certain = oc.play(
        [F.Constant(p) for p in (0.0, 0.3)], N.Bernoulli(0.5), horizon=[50], runs=3, measures=["log_loss"]
    )
    for bars in ("deviation", "quartiles", "interval"):
        line = first(certain, ["log_loss"], "p", bars)
        assert shown(line, 0)[1] == np.inf
        assert np.isfinite(shown(line, 1)).all()
    assert oc.plots.sweep(certain, ["log_loss"], "p").axes[0].lines[0].get_xdata() == pytest.approx([0.3])
