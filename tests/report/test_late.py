"""Games with delays and decision makers: data layers, captions and tables say what is so."""

from dataclasses import replace

import numpy as np
import pytest

import onlinecal as oc
from onlinecal.report import people as people_room
from onlinecal.report import pictures
from onlinecal.report.comparing import of_all, of_people
from onlinecal.report.frames import curves_table
from onlinecal.report.late_plot import delays_table
from onlinecal.report.people import PeopleRow, makers_of, panels_of, people_rows, plot_people
from onlinecal.report.totals import totals
from onlinecal.study.curves import Study
from tests.command_line import onlinecal
from tests.report.made import TIMES, cell
from tests.report.made import study as made

F, N = oc.forecasters, oc.natures
STAY = {"arrivals": {"name": "poisson", "rate": 0.1}, "stay": 40}
PEOPLE = [
    {"task": "umbrella", "label": "always"},
    {"task": "random", "count": 6, "label": "reader", **STAY},
    {"task": "umbrella", "response": {"name": "rounded_down", "m": 2}, "label": "careless"},
    {"task": "umbrella", "label": "too late", "join": 1e6},
]


DELAYS = (0, 3, 20)


def delayed(who, nature, delay, t, totals):
    """A game in which every outcome is late by that much."""
    label = f"delay {delay}" if delay else ""
    return cell(who, totals, ", ".join(filter(None, (nature, label))), (t,), open=(delay,) * (delay > 0),
                schedule=(nature, label))  # fmt: skip


@pytest.fixture(scope="module")
def late():
    """Games of two forecasters with delays, at three T against two natures, in three measures."""
    rng = np.random.default_rng(0)
    return made(*(
        delayed(who, nature, delay, t, {name: 5 + np.sqrt(t * (1 + delay)) * rng.random(3) for name in MEASURES})
        for who in ("a", "b") for nature in ("drift", "rain") for delay in DELAYS for t in (100, 200, 400)
    ))  # fmt: skip


MEASURES = ("smooth_ce", "ece", "brier")


@pytest.fixture(scope="module")
def people():
    return oc.play(
        [F.ForecastHedging(), F.Constant(0.2)], N.Streams((N.Drift(), N.Bernoulli(0.2)), labels=("a", "b")),
        horizon=300, runs=3, measures=["ece", "cdl"], arrivals={"name": "poisson", "rate": 2},
        delays={"name": "pareto", "cap": 60}, decision_makers=PEOPLE,
    )  # fmt: skip


def lines(table, *kinds):
    """The lines of these kinds."""
    return [line for _, line in table[table["mark"].isin(kinds)].groupby("part")]


def printed(capsys, show, *given):
    show(*given)
    return " ".join(capsys.readouterr().out.split())


# ---------------------------------------------------------------- delays


@pytest.mark.parametrize(("kind", "drawn"), [("delays", 2), ("curves", 1)])
def test_a_nature_that_is_named_has_all_its_schedules_in_the_picture_of_delays(
    tmp_path, monkeypatch, kind, drawn
):
    oc.play("constant", "drift", horizon=[20, 40], delays=[0, 3], measures=["ece"]).save(tmp_path / "d.db")
    found, draw = [], pictures.draw
    monkeypatch.setattr(
        pictures, "draw", lambda study, *more, **how: found.append(study) or draw(study, *more, **how)
    )
    onlinecal(f"plot d.db --kind {kind} --nature drift --measure ece", cwd=tmp_path)
    assert len(found[0].natures) == drawn


def test_a_frame_for_each_nature_measure_and_forecaster_with_a_line_for_each_delay(late):
    found = delays_table(late, ["smooth_ce", "ece"])
    symbols = {"smooth_ce": "smCE", "ece": "ECE"}
    frames = [(nature, measure, who) for nature in ("drift", "rain") for measure in symbols for who in "ab"]
    assert [*found["heading"].unique()] == [f"{symbols[m]} of {who}, {nature}" for nature, m, who in frames]
    for nature, measure, who in frames:
        frame = found[found["heading"] == f"{symbols[measure]} of {who}, {nature}"]
        assert (*frame[["row", "column"]].iloc[0],) == (f"{measure}, {nature}", who)
        drawn = lines(frame, "mean")
        assert [line["forecaster"].iloc[0] for line in drawn] == ["no delay", "delay 3", "delay 20"]
        for line, delay in zip(drawn, DELAYS, strict=True):
            schedule = f", delay {delay}" * (delay > 0)
            assert np.array_equal(line["total"], late.curve(measure, who, nature + schedule).mean)
    fig = oc.plots.delays(late, ["ece"])
    assert len({str(line.get_color()) for line in fig.axes[0].lines}) == 3
    said = fig.legends[0].get_title().get_text()
    assert said == "3 runs · T = 100 … 400 · up to 20 questions open at the end"


def test_dotted_is_what_so_many_copies_would_have(late):
    found = dict([*delays_table(late, MEASURES).groupby("heading")])
    t, b = np.array([100.0, 200.0, 400.0]), np.array([[1.0], [4.0], [21.0]])
    for measure, label, shape in (
        ("smCE", "∝ √(bT)", np.sqrt(b * t)),
        ("ECE", "∝ b·R(T/b), R = T^(2/3)", b * (t / b) ** (2 / 3)),
    ):
        frame = found[f"{measure} of b, drift"]
        rates = lines(frame, "rate")
        drawn = np.array([rate["total"] for rate in rates])
        assert [rate["label"].iloc[0] for rate in rates] == [label, "", ""]
        # One constant for all, by the line without delay.
        assert drawn[0, 0] == lines(frame, "mean")[0]["total"].iloc[0]
        assert drawn == pytest.approx(drawn[0, 0] * shape / shape[0, 0])
        assert lines(frame, "known") == []
    assert lines(found["Brier of b, drift"], "rate") == []  # no rate is known


def test_only_constant_delays_have_a_reference(people):
    """Bursts have no open question at the end of each, and ten within: how many copies it takes shows nowhere."""
    for several in ([60, 120], 120):
        bursts = oc.play(F.ForecastHedging(), N.Drift(), horizon=several, runs=2, delays=[0, 15], measures=["ece"],
                         arrivals={"name": "bursts", "size": 10})  # fmt: skip
        assert all(curve.open is not None and curve.against_rates() == "" for curve in bursts.curves())
        assert "rate" not in {*delays_table(bursts, ["ece"])["mark"]}
    options = {"horizon": [60, 120], "runs": 2, "measures": ["ece"]}
    half = oc.play(F.ForecastHedging(), N.Drift(), delays=[0, 2.5, 3], **options)
    assert [rate["place"].iloc[0] for rate in lines(delays_table(half, ["ece"]), "rate")] == [0, 2]
    # A delay as long as a game leaves nothing to copy.
    long = made(*(delayed("a", "drift", delay, t, [2, 3]) for delay in (0, 100) for t in (100, 200)))
    assert [rate["place"].iloc[0] for rate in lines(delays_table(long, ["ece"]), "rate")] == [0]
    table = delays_table(people, ["ece"])
    assert {name[:39] for name in table["forecaster"]} == {"poisson (rate=2), pareto (cap=60) delay"}
    assert {*table["mark"]} == {"mean"}
    assert {*table["column"]} == {*people.forecasters}


@pytest.mark.parametrize(("without", "first"), [((100,), 200), (TIMES, None)])
def test_dotted_lines_of_late_games_begin_at_a_point_that_is_drawn(without, first):
    """Not at a T at which the total is 0, and of no line that has no point."""
    late = made(*(
        delayed("a", "drift", delay, t, np.multiply(row, delay > 0 or t not in without))
        for delay in (0, 3) for t, row in zip(TIMES[:3], ([2, 1], [3, 2], [4, 4]), strict=True)
    ))  # fmt: skip
    table = delays_table(late, ["ece"])
    (bound, *_), (line, *_) = lines(table, "rate"), lines(table, "mean")
    assert bound["place"].iloc[0] == line["place"].iloc[0] == (first is None)
    at = 0 if first is None else line["T"].tolist().index(first)
    assert bound["total"].iloc[at] == pytest.approx(line["total"].iloc[at])


def test_at_one_horizon_it_is_drawn_against_the_open_questions(late):
    one = Study(tuple(cell for cell in late.cells if cell.horizon == 400))
    found = delays_table(one, ["smooth_ce"])
    panels = found[["row", "column"]].drop_duplicates().to_numpy().tolist()
    assert panels == [["drift", "smooth_ce"], ["rain", "smooth_ce"]]
    frame = found[found["row"] == "drift"]
    means, (rate,) = lines(frame, "mean"), lines(frame, "rate")
    assert [line["T"].tolist() for line in means] == [[1, 4, 21]] * 2
    finals = [[c.totals["smooth_ce"][-1].mean() for c in one.cells if c.forecaster == who and c.schedule[0] == "drift"]
              for who in one.forecasters]  # fmt: skip
    assert np.array_equal([line["total"] for line in means], finals)
    least = min(row[0] for row in finals)
    assert rate["total"].tolist() == pytest.approx(least * np.sqrt([1, 4, 21]))


def test_best_known_rates_stand_beside_games_alone_in_which_no_outcome_is_late(late):
    table = curves_table(late.curves(["ece"]))
    assert {*table["nature"][table["mark"] == "known"]} == {"drift", "rain"}


# ---------------------------------------------------------------- decision makers


def test_numbers_of_decision_makers_are_those_of_the_games(people, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    found = people_rows(people)
    assert [c.forecaster for c in found] == people.forecasters
    said = printed(capsys, of_people(found).print)
    for mine, game in zip(found, people.cells, strict=True):
        own, makers, there = game.people, mine.makers.set_index("label"), mine.seen["swap"]
        late, one, k = makers.loc["too late"], makers.loc["reader 2"], own.labels.index("reader 2")
        assert tuple(makers.index) == own.labels
        assert makers["best"].tolist() == [label != "careless" for label in makers.index]
        assert (len(makers) - len(mine.seen), late["seen"], np.isnan(late["swap_each"])) == (1, 0, True)
        assert one["swap"] == own.entries["swap_regret"][-1, k].mean()
        assert one["swap_each"] == pytest.approx(one["swap"] / own.entries["rounds"][-1, k, 0])
        assert one["cdl"] == own.cdl[k].mean()
        # No total before a question of one's own is known.
        assert (np.isnan(mine.regret) == (own.entries["rounds"][:, :, 0] == 0)).all()
        assert mine.worst() == there.idxmax()
        # The bound of the picture: a best response is never above the diagonal.
        assert (makers["swap"] <= makers["cdl"] + 1e-9)[makers["best"]].all()
        assert mine.open == game.open[-1] > 0
        rows, row, label = panels_of([mine]), mine.as_json(), makers.index[mine.worst()]
        assert row["median_swap_regret"] == rows["y"][rows["mark"] == "median"].iloc[-1] == there.median()
        assert (row["decision_makers"], row["without_known_outcome"]) == (9, 1)
        each = makers.index[mine.worst("swap_each")]
        assert row["median_swap_regret_per_question"] == mine.seen["swap_each"].median()
        assert (row["worst_per_question"]["label"], row["worst_per_question"]["cdl"]) == (
            each,
            makers["cdl"][each],
        )
        growth, shares = (rows[rows["panel"] == panel] for panel in ("growth", "shares"))
        for kind, share in (("tenth", 0.1), ("median", 0.5), ("ninetieth", 0.9)):
            assert growth["y"][growth["mark"] == kind].iloc[-1] == pytest.approx(there.quantile(share))
        for kind, name in (("CDL", "cdl_each"), ("swap regret", "swap_each")):
            steps = shares[shares["mark"] == kind][["x", "y"]].to_numpy()[1:-1]
            assert np.array_equal(steps[:, 0], np.sort(mine.seen[name]))
            assert steps[:, 1] == pytest.approx(np.arange(1, 9) / 8)
        assert (row["worst"]["label"], row["worst"]["swap_regret"]) == (label, there.max())
        assert label + " *" * (not row["worst"]["best_response"]) in said


def test_several_horizons_are_a_game_each():
    options = {"horizon": [50, 100], "runs": 2, "delays": 4, "decision_makers": ["umbrella"]}
    study = oc.play(F.ForecastHedging(), N.Drift(), **options)
    (one,) = people_rows(study)
    assert (one.rounds.tolist(), one.horizon, one.makers["seen"].tolist()) == ([50, 100], 100, [96])
    assert one.regret[:, 0].tolist() == [
        cell.people.entries["swap_regret"][-1, 0].mean() for cell in study.cells
    ]


def test_decision_makers_of_a_world_have_questions_of_each_run(seed):
    """Means of numbers that differ from run to run: those of a question are not of whole ones."""
    people = [{"task": "umbrella", "join": t, "leave": t + 1, "label": f"at {t}"} for t in range(1, 30)]
    world = oc.worlds.Queue(reacts="leave")
    study = oc.play("forecast_hedging", world, horizon=200, runs=3, seed=seed, decision_makers=people)
    (row,), entries = people_rows(study), study.cells[0].people.entries
    seen, swap = (entries[name][-1].mean(axis=1) for name in ("rounds", "swap_regret"))
    assert len(row.seen) == (seen > 0).sum()
    assert np.allclose(row.seen["swap_each"], swap[seen > 0] / seen[seen > 0])
    assert row.as_json()["worst"]["questions"] == seen[np.argmax(swap)]
    plot_people(study)


def row_of(last, cdl):
    """Best responses with these totals of 900 questions each, after one game of 1,000."""
    last, k = np.array(last, float), len(last)
    makers = makers_of(list("abcdef"[:k]), [True] * k, [900] * k, last, np.array(cdl, float))
    return PeopleRow("constant", "drift", 1000, 0, 1, np.array([1000]), last[None], makers)


@pytest.mark.parametrize(
    ("last", "cdl"), [([0, 0], [500, 400]), ([0, 0], [0, 0]), ([0, 1e-9], [0, 300]), ([20], [80])]
)
def test_marks_are_within_their_axes_those_of_less_on_the_edge(last, cdl, monkeypatch):
    monkeypatch.setattr(people_room, "people_rows", lambda study: [row_of(last, cdl)])
    axis = plot_people(oc.Study(())).axes[1]
    assert not any(one.get_text() for one in axis.xaxis.get_ticklabels(minor=True))
    (marks,) = (line for line in axis.lines if line.get_label().startswith("best response"))
    for values, (low, high), own in (
        (marks.get_xdata(), axis.get_xlim(), cdl),
        (marks.get_ydata(), axis.get_ylim(), last),
    ):
        assert 0.0 < low <= values.min() <= values.max() <= high
        assert np.allclose(values, np.maximum(own, low))


@pytest.mark.parametrize(
    ("last", "cdl", "across", "up"),
    [
        ([20, 50], [80, 500], (50, 800), (12.5, 800)), ([0.001, 50], [80, 500], (50, 800), (0.08, 800)),
        ([90, 0], [0, 0], (90, 144), (56.25, 144)), ([0, 0], [80, 500], (50, 800), (500, 800)),
        ([0, 0], [0, 0], (0.1, 10), (0.1, 10)),
    ],
)  # fmt: skip
def test_axes_of_swap_regret_and_cdl_end_beyond_the_marks_within_four_decades(
    last, cdl, across, up, monkeypatch
):
    monkeypatch.setattr(people_room, "people_rows", lambda study: [row_of(last, cdl)])
    axis = plot_people(oc.Study(())).axes[1]
    assert (axis.get_xlim(), axis.get_ylim()) == (pytest.approx(across), pytest.approx(up))


def test_the_largest_regret_is_named_in_the_table_and_in_each_panel(monkeypatch):
    row = replace(row_of([90, 0, 450], [100, 50, 500]), open=2000)
    (table,) = of_people([row]).tables
    title = "drift, T = 1,000: swap regret of 3 decision makers; up to 2,000 questions open at the end"
    assert (table.title, len(table.headings)) == (title, 9)
    assert table.rows == [["constant", "90", "450", "c", "500", "0.1", "0.5", "c", "0.556"]]
    monkeypatch.setattr(people_room, "people_rows", lambda study: [row])
    fig = plot_people(oc.Study(()))
    said = [(text.get_text(), *text.xy, text.get_ha()) for axis in fig.axes for text in axis.texts]
    assert said == [
        ("c", 1000, 450, "right"), ("c", 500, 450, "right"), ("c: 0.5\nin 900 questions", 0.5, 1, "right"),
    ]  # fmt: skip
    assert fig.legends == []
    assert fig._suptitle.get_text() == "1 run · up to 2,000 questions open at the end"
    assert [axis.get_xlim()[1] for axis in fig.axes] == pytest.approx([1010, 1.6 * 500, 1.04 * 5 / 9])


def test_decision_makers_without_a_known_outcome_are_counted(monkeypatch):
    row = row_of([90, 0, 450], [100, 50, 500])
    row = replace(row, makers=row.makers.assign(seen=[0, 900, 900]))
    monkeypatch.setattr(people_room, "people_rows", lambda study: [row])
    said = plot_people(oc.Study(()))._suptitle.get_text()
    assert said == "1 run · up to 1 without a known outcome are not drawn"


def test_a_decision_maker_without_a_known_outcome_has_no_regret():
    study = oc.play(F.ForecastHedging(), N.Drift(), horizon=20, runs=2, decision_makers=PEOPLE[3:])
    (one,) = people_rows(study)
    assert one.worst() is one.worst("swap_each") is one.as_json()["worst"] is None
    assert of_people([one]).tables[0].rows == [["forecast hedging", *["–"] * 8]]
    plot_people(study).savefig("/dev/null", format="png")


# ---------------------------------------------------------------- tables


def test_tables_say_how_many_questions_are_open_and_of_which_stream(late, people, capsys):
    found = {(r.nature, r.open) for r in totals(late, ["ece"]).itertuples() if "drift" in r.nature}
    assert found == {("drift", 0), ("drift, delay 3", 3), ("drift, delay 20", 20)}
    titles = [table.title for table in of_all(late).tables]
    ends = {0: "", 3: ", delay 3, T = 400, 3 open at the end", 20: ", delay 20, T = 400, 20 open at the end"}
    assert titles == [nature + (ends[d] or ", T = 400") for nature in ("drift", "rain") for d in DELAYS]
    whole, a, b = printed(capsys, of_all(people).print).split("the questions of")
    assert [("ece @ a" in part, "ece @ b" in part) for part in (whole, a, b)] == [
        (False, False), (True, False), (False, True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("horizons", "delays", "across"), [([50], [3], False), ([50, 90], [0, 3], False), ([50], [0, 3], True)]
)
def test_forecasters_are_across_with_several_horizons_or_a_single_schedule(horizons, delays, across):
    late = made(*(delayed(who, "drift", d, t, [1, 2]) for who in "ab" for t in horizons for d in delays))
    table = delays_table(late, ["ece"])
    assert set(table["column"]) == ({"ece"} if across else {"a", "b"})
    assert set(table["row"]) == ({"drift"} if across else {"ece, drift"})
    assert ("rate" in {*table["mark"]}) == (len(horizons) * len(delays) > 1)
