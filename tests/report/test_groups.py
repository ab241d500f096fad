"""Groups in tables and pictures: their errors by size, thin lines beside the worst, and groups that nobody is in."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import onlinecal as oc
from onlinecal.core.columns import Column
from onlinecal.core.errors import OnlinecalError
from onlinecal.report.comparing import of_all
from onlinecal.report.gammas import study_gammas
from onlinecal.report.groups_plot import draw_groups, groups_table
from onlinecal.report.pictures import draw
from onlinecal.report.totals import by_nature, exponents_markdown, main_columns, totals
from tests.command_line import onlinecal
from tests.report import made
from tests.report.drawn import overlapping

GROUPS = {"odd": 0.5, "rare": 0.02, "none": 0.0}
WHO = ["group hedging", "forecast hedging"]


@pytest.fixture(scope="module")
def study():
    nature = {"name": "group_contrarian", "label": "contrarian", "groups": GROUPS,
              "thresholds": {"odd": 0.8, "all": 0.4}}  # fmt: skip
    return oc.play(
        [oc.forecasters.GroupHedging(), oc.forecasters.ForecastHedging()], nature,
        horizon=[50, 100, 400], runs=3, measures=["ece", "multi_ece", "cdl", {"name": "ece", "order": 2}],
        tasks=["umbrella"],
    )  # fmt: skip


def test_the_error_per_round_of_each_group_by_its_size(study):
    table = groups_table(study, ["ece", "cdl"]).set_index(["measure", "forecaster", "group"])
    for measure in ("ece", "cdl"):
        for who in WHO:
            for group in ("odd", "rare"):
                sizes, errors = [], []
                for run in range(3):
                    gamma = study.gamma(who, horizon=400, run=run, group=group)
                    if gamma is not None:
                        sizes.append(gamma.weight)
                        errors.append(getattr(oc.measures, measure)(gamma))
                row = table.loc[measure, who, group]
                assert (row["rounds"], row["error"]) == pytest.approx((np.mean(sizes), np.mean(errors)))
            whole = table.loc[measure, who, "all"]
            mean = study.curve(measure, who).mean[-1] / 400
            assert (whole["rounds"], whole["error"]) == (400, pytest.approx(mean))
            assert table.loc[measure, who, "none"]["rounds"] == 0
            assert np.isnan(table.loc[measure, who, "none"]["error"])
    figure, left = draw(study, "groups")
    names = [text.get_text() for text in figure.axes[0].texts]
    assert (sorted(names), left) == (sorted(["all", "odd", "rare"] * 2), "")
    assert len(draw(study, "groups", measure=["ece", "cdl"])[0].axes) == 2


def test_names_of_groups_with_errors_that_are_alike_do_not_meet():
    columns = {"ece": [1.0], **{Column("measure", "ece", stream=g): [0.5] for g in "abc"},
               **{Column("measure", "rounds", stream=g): [50.0] for g in "abc"}}  # fmt: skip
    table = groups_table(made.study(made.cell("one", columns), made.cell("two", columns)))
    axis = Figure((4, 3), dpi=100).subplots()
    draw_groups(axis, table)
    axis.figure.draw_without_rendering()
    assert len(axis.texts) == 8
    assert overlapping(axis.texts) == []


def of_groups(sizes, error=0.5):
    """A study of one forecaster with this error per round in groups of these sizes, and in all."""
    columns = {"ece": [100 * error]}
    for group, size in sizes.items():
        columns[Column("measure", "ece", stream=group)] = [error * size]
        columns[Column("measure", "rounds", stream=group)] = [size]
    return made.study(made.cell("one", columns))


def test_names_that_do_not_meet_stand_beside_their_points():
    (axis,) = oc.plots.groups(of_groups({"a": 2.0, "b": 16.0})).axes
    beside = {text.get_text(): text.xy for text in axis.texts}
    assert beside == {"a": (2.0, 0.5), "b": (16.0, 0.5), "all": (100.0, 0.5)}


@pytest.mark.parametrize(("many", "named"), [(39, 40), (40, 0)])
def test_names_of_at_most_forty_points_are_written(many, named):
    (axis,) = oc.plots.groups(of_groups({f"g{i}": 1.0 + i for i in range(many)})).axes
    assert len(axis.texts) == named


def test_errors_of_0_are_not_drawn():
    columns = {"ece": [0.0, 0.0], Column("measure", "ece", stream="odd"): [0.0, 0.0],
               Column("measure", "rounds", stream="odd"): [20.0, 20.0]}  # fmt: skip
    (axis,) = oc.plots.groups(made.study(made.cell("one", columns))).axes
    assert len(axis.lines) == 1
    assert not axis.texts
    assert axis.get_xlim()[0] < 20 < axis.get_xlim()[1]


def test_thin_lines_are_the_groups_beside_the_worst(study):
    figure, _ = draw(study, measure=["ece", "multi_ece"])
    plain, worst = figure.axes
    thin = [line for line in worst.lines if line.get_linewidth() == 0.6]
    assert not [line for line in plain.lines if line.get_linewidth() == 0.6]
    wanted = [study.curve(f"ece @ {group}", who).mean for who in WHO for group in ("odd", "rare", "none")]
    drawn = [line.get_ydata().tolist()[-1] for line in thin]
    assert sorted(y for y in drawn if y > 0) == pytest.approx(sorted(y[-1] for y in wanted if y[-1] > 0))
    assert "each group" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_diagrams_of_a_group_are_of_its_rounds(study):
    for group in ("odd", "rare"):
        found = study_gammas(study, group=group)
        for (who, _), gamma in found.items():
            parts = [study.gamma(who, horizon=400, run=run, stream=group) for run in range(3)]
            there = [part for part in parts if part is not None]
            merged = there[0].merge(*there[1:])
            for name in ("predictions", "counts", "positives"):
                assert np.array_equal(getattr(gamma, name), getattr(merged, name))
    assert draw(study, "reliability", group="odd")[0].get_suptitle() == "odd · 3 runs together"
    every, all_rounds = (study_gammas(study, group=group) for group in ("all", ""))
    assert [gamma.counts.tolist() for gamma in every.values()] == [
        gamma.counts.tolist() for gamma in all_rounds.values()
    ]
    assert study.gamma(WHO[0], horizon=400, group="all").weight == 400
    # A run in which the group has no rounds is left out.
    (sizes,) = study.curve("rounds @ rare", WHO[0], horizon=100).totals
    assert 0 in sizes
    assert study_gammas(study, round=100, group="rare")[WHO[0], "contrarian, T = 100"].weight == sizes.sum()


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda s: s.gamma(WHO[0], horizon=400, group="od"), "unknown group 'od'"),
        (lambda s: s.gamma(WHO[0], horizon=400, group="odd", stream="odd"), "expected one of them"),
        (lambda s: draw(s, "reliability", group="none"), "kept of no pair in all runs"),
        (lambda s: draw(s, "witness", group="od"), "'od'"),
        (lambda s: draw(s, "groups", measure=["multi_ece"]), r"have no column of each; expected .*cdl, ece"),
        (lambda _: draw(made.study({("a", "n"): [1]}), "groups"), "no nature of this study has groups; expected one,"),
    ],
)  # fmt: skip
def test_what_is_refused(study, ask, said):
    with pytest.raises(OnlinecalError, match=said):
        ask(study)


def test_an_empty_group_is_named_once_in_tables_and_never_fails_one(study, tmp_path):
    rows = totals(study)
    tables = by_nature(study, rows, study.measures)
    rounds = np.mean([study.curve("rounds @ odd", who).mean[-1] for who in WHO])
    assert [table.title for table in tables][:2] == [
        "contrarian, T = 400", f"contrarian, the group odd of {rounds:,.0f} rounds, T = 400",
    ]  # fmt: skip
    assert len(tables) == 3
    assert [list(table.notes) for table in tables] == [["empty groups, without a round: none"], [], []]
    assert not [name for name in main_columns(study, streams=True) if "rounds" in name]
    for text in (of_all(study).markdown(), exponents_markdown(study)):
        assert text.count("empty groups, without a round: none") == 1
        assert "@ none" not in text
    study.save(tmp_path / "s.db")
    for line, said in (
        ("compare s.db -m 'ece @ none'", "0 ± 0"), ("compare s.db --ranking -m 'ece @ none'", "1.5"),
        ("export s.db -o s.csv", "wrote s.csv"), ("plot s.db --kind exponents -m 'ece @ none'", "wrote"),
    ):  # fmt: skip
        assert said in onlinecal(line, cwd=tmp_path).stdout
    assert "ece @ none" in (tmp_path / "s.csv").read_text()
