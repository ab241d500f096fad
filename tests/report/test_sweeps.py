"""Pictures of a parameter with several values: what is drawn to the digit, what is left out, what captions say."""

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.core.errors import OnlinecalError
from onlinecal.report.pictures import draw
from onlinecal.report.sweep_plot import sweep_table

F, N = oc.forecasters, oc.natures
BETAS = (20.0, 0.5, 1.0)


@pytest.fixture(scope="module")
def study():
    """Temperatures out of order, one forecaster without, two natures, two horizons."""
    return oc.play(
        [*(F.Tempered(beta) for beta in BETAS), F.Truthful()], [N.UniformTruth(), N.UniformTruth(low=0.5)],
        horizon=[50, 100], runs=5, measures=["smooth_ce", "ece", "interval_ce_bracket"],
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
        runs=1, measures=["ece"],
    )  # fmt: skip
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
    found = lines(study, ["ece", "interval_ce_bracket[lower]"], "T", "quartiles")
    assert len(found) == 8
    line = found[0]["interval_ce_bracket[lower]"]
    curve = study.curve("interval_ce_bracket[lower]", study.forecasters[0], study.natures[0])
    assert line["at"].tolist() == [50, 100]
    assert line["value"].tolist() == pytest.approx(np.median(curve.totals / curve.rounds[:, None], axis=1))


def test_what_is_drawn_is_what_the_frames_say(study):
    figure, left = draw(study, "sweep", measure=("smooth_ce", "ece"), against="beta")
    axes = figure.axes
    assert (len(axes), left) == (4, "")
    line, drawn = first(study, ["smooth_ce", "ece"], "beta"), axes[0].lines[0]
    assert drawn.get_ydata() == pytest.approx(line["value"].to_numpy())
    assert drawn.get_xdata() == pytest.approx(line["at"].to_numpy(), rel=0.05)  # set apart, and said so
    assert (axes[0].lines[1].get_xdata() > drawn.get_xdata()).all()
    assert axes[0].get_xscale() == "log"
    bars = [bar[:, 1].tolist() for bar in axes[0].collections[0].get_segments()]
    assert bars == [
        pytest.approx([low, high]) for low, high in zip(line["lower"], line["upper"], strict=True)
    ]
    said = " ".join(figure.legends[0].get_title().get_text().split())
    assert said.endswith("mean ± standard deviation · without beta: truthful")
    single, _ = draw(study, "sweep", measure=("ece",), against="beta")
    assert single.axes[0].lines[0].get_xdata() == pytest.approx(sorted(BETAS))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((["ece"], "bta"), "unknown parameter 'bta'; did you mean 'beta'"),
        ((["eec"], "beta"), "unknown measure 'eec'"),
        (([], "beta"), "no measures"),
        ((["ece"], "beta", "all"), "bars = 'all'; expected one of 'deviation', 'quartiles', 'interval'"),
        ((["ece"], "beta"), "4 panels against beta; expected at most 3, chosen by --forecaster"),
    ],
)
def test_what_is_refused(given, said, study, monkeypatch):
    monkeypatch.setattr("onlinecal.report.sweep_plot.MOST", 3)
    with pytest.raises(OnlinecalError, match=said):
        sweep_table(study, *given[:2], **({"bars": given[2]} if len(given) > 2 else {}))


def test_infinite_values_have_no_point_and_it_is_said():
    certain = oc.play(
        [F.Constant(p) for p in (0.0, 0.3)], N.Bernoulli(0.5), horizon=[50], runs=3, measures=["log_loss"]
    )
    for bars in ("deviation", "quartiles", "interval"):
        line = first(certain, ["log_loss"], "p", bars)
        assert shown(line, 0)[1] == np.inf
        assert np.isfinite(shown(line, 1)).all()
    assert oc.plots.sweep(certain, ["log_loss"], "p").axes[0].lines[0].get_xdata() == pytest.approx([0.3])
