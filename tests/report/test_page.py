"""The page of a study: each of its statements against the study, and names that people give are only text."""

import base64
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from scipy.stats import ttest_1samp

import onlinecal as oc
from onlinecal.core.columns import Column
from onlinecal.core.guarantee import Sight
from onlinecal.core.progress import Progress
from onlinecal.growth.words import NONE, lines
from onlinecal.measures import MEASURES
from onlinecal.report import page as page_rows
from onlinecal.report import page_pictures
from onlinecal.report.page import page_of
from onlinecal.report.page_pictures import MOST, Gallery
from onlinecal.report.totals import by_nature
from onlinecal.report.totals import totals as grown
from onlinecal.study.compare import ranking
from onlinecal.study.curves import summary
from onlinecal.study.entries import Planned
from onlinecal.study.panel import Panel
from onlinecal.study.played import Promise
from tests import results
from tests.report.made import INF, TIMES, cell, study
from tests.results import cells

F, N = oc.forecasters, oc.natures


class Seen(HTMLParser):
    """Tags with their attributes, and all text that is shown."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text.append(data)

    @property
    def words(self):
        return " ".join(" ".join(self.text).split())


def promise(bound, kind="expected", upper=True, measure="ece"):
    return Promise(measure, "", "√T", kind, "", upper, bound)


@pytest.fixture(scope="module")
def rich():
    """With Γ, a task, a decision maker, two measures, three T and two schedules."""
    return oc.play(
        [F.ForecastHedging(), F.EmpiricalMean()], [N.Drift()], horizon=[50, 100, 200], runs=3, seed=1,
        measures=["ece", "smooth_ce"], tasks=["umbrella"], decision_makers=["umbrella"],
        delays=[0, 5],
    )  # fmt: skip


META = {"scenario": "runs = 1", "version": "1"}


# ---------------------------------------------------------------- tables and sentences


def test_the_tables_have_every_total_and_its_exponent(whole):
    rows = grown(whole, page_rows.all_columns(whole))
    tables = by_nature(whole, rows, page_rows.all_columns(whole), remark=True)
    assert [table.title for table in tables] == [f"{nature}, T = 100" for nature in whole.natures]
    assert len(rows) == sum((table.frame != "").to_numpy().sum() for table in tables)
    for table, nature in zip(tables, whole.natures, strict=True):
        assert [*table.frame.index] == whole.forecasters
        assert sorted(table.headings[1:]) == sorted({*rows.loc[rows["nature"] == nature, "measure"]})
        for (who, measure), mean in table.values.stack().dropna().items():
            assert mean == summary(whole.curve(measure, who, nature).totals[-1])[0]
            growth = whole.exponent(measure, who, nature)
            assert ("–" if growth is None else lines(growth)[0]) in table.frame.at[who, measure].splitlines()


def test_the_lowest_is_that_of_the_means():
    mine = study({("a", "n"): [1, 3], ("b", "n"): [3, 3], ("a", "o"): [9, 9], ("b", "o"): [4, 4]})
    table = page_rows.lowest(mine)
    assert table.headings == ["measure", "n", "o", "largest of its totals over the natures"]
    assert table.rows == [["ece", "a\n2", "b\n4", "b\n4\nagainst o"]]
    assert table.values.to_numpy().tolist() == [[2.0, 4.0, 4.0]]


def test_a_mean_that_is_infinite_both_ways_is_never_the_lowest():
    rows = {"a": [INF, -INF], "b": [2, 1], "c": [INF, INF]}
    odd = study(
        {(who, nature): rows[who] for who in rows for nature in ("n", "o") if who != "c" or nature == "n"}
    )
    assert [text.splitlines()[0] for text in page_rows.lowest(odd).rows[0][1:]] == ["b", "b", "b"]
    for most, names in ((1, ["b"]), (2, ["b", "c"])):
        assert page_pictures.few(odd, ["n"], "ece", most)[0].forecasters == names
    assert page_pictures.few(odd, ["n"], "ece", 3)[1] == ""


def test_marks_are_where_the_paired_test_has_no_doubt(seed):
    """Marked cells are those that `ranking` finds among the same cells, at a level that is shared by all measures.

    A difference that one measure alone would mark is not enough among two.
    """
    totals = {"a": np.array([9.0, 9.4, 8.6, 9.1, 8.9, 9.2]), "b": np.full(6, 9.36)}
    assert 0.025 < ttest_1samp(totals["a"] - totals["b"], 0.0).pvalue < 0.05
    for measures in (["ece"], ["ece", "cdl"]):
        mine = study(*(cell(who, dict.fromkeys(measures, row)) for who, row in totals.items()))
        marked = {row[1].splitlines()[0] for row in page_rows.lowest(mine).rows}
        assert marked == {"a" + " †" * (len(measures) == 1)}
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((2, 2, 3, 16))
    # (measures, natures, forecasters)
    means = np.array([[[0, 99, 99], [0, 0, 99]], [[50, 0, 99], [0, 99, 0]]])[..., None] + noise
    means[0, 1, 1] = means[0, 1, 0] + 1e-3 * noise[0, 1, 1]  # far apart from one, not from the other
    mine = study(*(
        cell(f"f{f}", {"ece": means[0, n, f], "cdl": means[1, n, f]}, f"n{n}") for n in range(2) for f in range(3)
    ))  # fmt: skip
    table = page_rows.lowest(mine)
    for measure, *row in table.rows:
        for standing, shown in zip(ranking(mine, measure, 1 - 0.05 / 2), row, strict=False):
            best = int(np.argmin(standing.means))
            sure = int(standing.certain[best].sum() == 2)
            assert shown.splitlines()[0] == standing.forecasters[best] + " †" * sure
        assert "†" not in row[-1]
    assert [row[1].splitlines()[0] for row in table.rows] == ["f0 †", "f1 †"]


def test_what_was_not_played_is_listed_with_its_reason(whole, undrawn):
    def planned(horizon, who="a <b>"):
        return Planned("key", who, "rain", "delay 3", horizon, 3, False, Sight.NOTHING)

    failed = [(planned(t), "outcome 2; expected 0 or 1", "2026-01-01") for t in (2000, 100)]
    meta = {"incompatible": json.dumps([["looker", "blind", "it needs what nature does not say"]])}
    page = page_of(whole, meta, len(whole.cells) + 2, "x.db", failed)
    rows = page_rows.not_played(failed, json.loads(meta["incompatible"])).rows
    assert rows == [
        ["a <b>", "rain, delay 3", "100, 2,000", "failed: outcome 2; expected 0 or 1"],
        ["looker", "blind", "all", "cannot be played: it needs what nature does not say"],
    ]
    seen = Seen(page.html())
    assert "Not played" in seen.words
    for row in rows:
        assert all(text in "".join(seen.text) for text in row)
    assert "Not played" not in page_of(whole, {}, len(whole.cells), "x.db").html()


@pytest.mark.parametrize(
    ("totals", "promises", "said"),
    [
        ([1.0, 1.0], [promise(1.0)], ["1 of 1 proven bound held"]),
        ([1.0, 1.0], [promise(1.0 - 2e-9)], ["The mean of these runs is beyond"]),
        ([1.0, 1.0], [promise(1.0 - 5e-10)], ["1 of 1 proven bound held"]),
        ([1e6, 1e6], [promise(1e6 - 2e-3)], ["The mean of these runs is beyond"]),
        ([1e6, 1e6], [promise(1e6 - 5e-4)], ["1 of 1 proven bound held"]),
        ([1.0, 1.0], [promise(1.0)] * 2, ["2 of 2 proven bounds held, sure ones in every run"]),
        (
            [1.0, 3.0],
            [promise(1.5), promise(9.0)],
            ["1 of 2 proven bounds", "beyond a bound of the expectation"],
        ),
        ([1.0, 3.0], [promise(2.5, "deterministic")], ["Broken in some run"]),
        (
            [1.0, 3.0],
            [promise(2.5, "deterministic"), promise(9.0)],
            ["1 of 2 proven bounds", "Broken in some run"],
        ),
        ([1.0, 3.0], [promise(0.5, "deterministic", upper=False)], ["1 of 1 proven bound held"]),
        ([1.0, 3.0], [promise(1.5, "deterministic", upper=False)], ["Broken in some run"]),
        ([1.0, 3.0], [promise(0.1, "rate")], []),
    ],
)
def test_bounds_that_hold_and_bounds_that_do_not(totals, promises, said):
    found = page_rows.bounds(study(cell("a", totals, promises=tuple(promises))))
    assert len(found) == len(said)
    for sentence, part in zip(found, said, strict=True):
        assert part in sentence


# ---------------------------------------------------------------- the page


def test_a_page_says_what_was_asked_and_how_to_repeat_it(undrawn):
    measures = {"ece": [1, 2], Column("decision_task", "swap_regret", task="x"): [1, 2]}
    games = ((who, rows, times) for who in "ab" for rows, times in ((2, (10, 100)), (1, (1000,))))
    mine = study(*(
        cell(who, {name: [each] * rows for name, each in measures.items()}, times=times, seconds=1.25)
        for who, rows, times in games
    ), name="my rain")  # fmt: skip
    for planned, said in ((4, "All 4 cells are finished."), (5, "4 of 5 cells are finished.")):
        assert [part.content for part in page_of(mine, {}, planned, "my x.db").first] == [said]
    bare, whole = (
        {section.id: [part.content for part in section.parts] for section in page_of(mine, meta, 4, "my x.db").sections}
        for meta in ({}, {"scenario": "runs = 2", "options": "--seed 3", "version": "1.5"})
    )  # fmt: skip
    _, asked, _, terms = whole["asked"]
    assert asked == [
        ("2 forecasters", "a, b"), ("1 nature", "drift"), ("2 measures", "ece, swap_regret[x]"),
        ("rounds T", "100, 1,000, a game each"), ("checkpoints", "up to 2 of each game"),
        ("runs", "2 runs of each pair"),
    ]  # fmt: skip
    assert [name for name, _ in terms] == ["ece", "swap_regret[task]"]
    assert terms[0][1].endswith(f"Source: {MEASURES['ece'].source}.")
    versions = [("time of playing, of all games added", "5 s"), ("results file", "my x.db")]
    assert bare["repeat"] == [
        "onlinecal compare 'my x.db'\nonlinecal plot 'my x.db'", [("onlinecal", "unknown"), *versions],
    ]  # fmt: skip
    run = "onlinecal run 'my rain.toml' --seed 3  # the scenario below, saved under this name"
    assert whole["repeat"] == [
        f"pip install onlinecal\n{run}\nonlinecal report 'results/my rain.db'", [("onlinecal", "1.5"), *versions],
        "Scenario", "runs = 2",
    ]  # fmt: skip


def test_names_are_text_and_nothing_is_fetched():
    bad = '<script>alert("x")</script> $&amp;'
    few = cells(horizons=(20, 40), runs=2, forecasters=[(F.Constant(0.2), bad), (F.Constant(0.7), "b")],
                natures=(N.Drift(),), panel=Panel.of(["ece"], []))  # fmt: skip
    mine = replace(results.study(few), name="study", title=bad)
    text = page_of(mine, {"scenario": f'title = """{bad}"""', "version": "1"}, 4, "x.db").html()
    seen = Seen(text)
    assert sum(tag == "script" for tag, _ in seen.tags) == 1
    assert bad in seen.words
    fetched = [
        attributes[key]
        for tag, attributes in seen.tags
        for key in ("src", "href", "srcset", "data", "action")
        if key in attributes
    ]
    assert fetched
    assert all(address.startswith(("data:", "#")) for address in fetched)
    assert not re.search(r"url\(|@import|fetch\(|XMLHttp", text)


EXPONENTS, PARETO, SLOPES = "Growth exponents", "ece and cdl: Pareto fronts", "Local slopes of ece"
TASKS, DELAYS = "Regrets of tasks", "What late outcomes cost: ece"


@pytest.mark.parametrize(
    ("who", "whom", "times", "more", "titles"),
    [
        ("a", "m", 1, {}, set()), ("a", "m", 2, {}, set()), ("a", "m", 3, {}, {SLOPES}),
        ("ab", "m", 1, {}, {PARETO}), ("ab", "m", 3, {}, {EXPONENTS, PARETO, SLOPES}),
        ("a", "mn", 3, {}, {EXPONENTS, SLOPES}), ("ab", "mnop", 3, {}, {EXPONENTS, PARETO, SLOPES}),
        ("a", "m", 1, {"tasks": 3}, {TASKS}), ("a", "mn", 1, {"late": True}, {DELAYS}),
        ("a", "mno", 1, {"late": True}, {DELAYS}),  # delays of the first two natures
    ],
)  # fmt: skip
def test_pictures_are_offered_where_there_is_something_to_draw(who, whom, times, more, titles, monkeypatch):
    regrets = {
        Column("decision_task", "swap_regret", task=f"t{i}"): [1, 2] for i in range(more.get("tasks", 0))
    }
    measures = {"ece": [1, 2], "cdl": [1, 2]} | regrets
    mine = study(*(
        cell(f, measures, n, (t,), schedule=(n, n * more.get("late", False)))
        for f in who for n in whom for t in (100, 200, 300)[:times]
    ))  # fmt: skip
    grown = ["ece", "cdl"] if times > 2 else []
    offered = {
        kind.title: kind for kind in page_pictures.kinds(mine, ["ece", "cdl"], grown, []) if kind.natures
    }
    assert {*offered} == titles | {"Reliability"}
    for title, kind in offered.items():
        assert {*kind.natures} == {*(whom[:2] if title == DELAYS else whom)}
    most = {
        EXPONENTS: (400, 400),
        PARETO: (6, 12),
        "Reliability": (4, 4),
        TASKS: (2, 12),
        SLOPES: (2, 6),
        DELAYS: (400, 4),
    }
    assert {title: (kind.most, kind.forecasters) for title, kind in offered.items()}.items() <= most.items()
    if regrets:
        monkeypatch.setattr(page_pictures, "POINTS", 7)
        (tasks,) = (kind for kind in page_pictures.kinds(mine, ["ece", "cdl"], [], []) if kind.title == TASKS)
        assert tasks.forecasters == 7 // 3


def test_exponents_are_of_the_first_four_measures_that_have_any(monkeypatch):
    names, taken = [f"m{i}" for i in range(6)], []
    mine = study(*(
        cell("a", {name: [t, t] if name != "m1" else [0, 0] for name in names}, times=(t,)) for t in TIMES
    ))  # fmt: skip
    monkeypatch.setattr(page_rows, "gallery", lambda _, *given: taken.append(given[:2]) or Gallery())
    page_of(mine, {}, len(TIMES), "x.db")
    assert taken == [(names, ["m0", "m2", "m3", "m4"])]


def test_decision_makers_are_drawn_of_two_natures_and_two_forecasters_at_most(rich):
    (kind,) = (each for each in page_pictures.kinds(rich, ["ece"], [], []) if "Decision makers" in each.title)
    assert (kind.most, kind.forecasters, {*kind.natures}) == (2, 2, {*rich.natures})


@pytest.mark.parametrize(("many", "offered"), [(400, True), (401, False)])
def test_all_exponents_are_in_one_picture_of_at_most_four_hundred_pairs(many, offered):
    mine = study({(f"f{i}", "n"): [1] for i in range(many)})
    natures = {kind.title: kind.natures for kind in page_pictures.kinds(mine, ["ece"], ["ece"], [])}
    assert (natures[EXPONENTS] == ["n"]) == offered


@pytest.mark.parametrize(("runs", "weight"), [(64, 192), (65, 3)])
def test_reliability_is_of_all_runs_where_these_are_few_and_without_bands(runs, weight):
    mine = oc.play(F.Constant(0.5), N.Drift(), horizon=3, runs=runs, measures=["ece"])
    (kind,) = (each for each in page_pictures.kinds(mine, ["ece"], [], []) if each.title == "Reliability")
    (levels,), options = kind.given(mine)
    assert ({gamma.weight for gamma in levels.values()}, options) == ({weight}, {"band": None})


def test_every_picture_is_a_drawing_with_its_words(rich, monkeypatch):
    drawn, real = [], page_pictures.drawing

    def kept(figure):
        drawn.append(real(figure))
        return drawn[-1]

    monkeypatch.setattr(page_pictures, "MOST", 13)
    monkeypatch.setattr(page_pictures, "drawing", kept)
    page = page_of(rich, META, len(rich.cells), "x.db")
    images = [attributes for tag, attributes in Seen(page.html()).tags if tag == "img"]
    pictures = [*page.drawn.curves, *page.drawn.others]
    assert len(images) == len(pictures) == len(drawn) > 5
    kinds = ("Growth exponents", "ece and smooth_ce: Pareto", "Reliability", "Regrets of tasks", "Local slopes of ece",
             "What late outcomes cost: ece", "Decision makers")  # fmt: skip
    titles = [picture.title for picture in page.drawn.others]
    assert all(any(title.startswith(kind) for title in titles) for kind in kinds)
    assert len({*titles}) == len(titles)
    wide = [picture.wide for picture in pictures]
    assert page.html().count('<figure class="wide">') == sum(wide) < len(wide)
    for image, picture in zip(images, pictures, strict=True):
        svg = base64.b64decode(image["src"].removeprefix("data:image/svg+xml;base64,")).decode()
        assert svg == picture.svg
        assert svg.strip().startswith("<svg")
        assert svg.strip().endswith("</svg>")
        # Nothing that a browser would fetch: links within the drawing, and what is in it.
        assert all(link.startswith(("#", "data:")) for link in re.findall(r'href="([^"]*)"', svg))
        # Places are to a hundredth of a point.
        assert not re.search(r"<[^<>]*\.\d{3}", svg)
        # The page says the caption, so the drawing does not.
        assert len(picture.caption) < 30 or picture.caption[:30] not in svg
        assert picture.caption in image["alt"]


def test_pictures_that_are_left_out_are_counted(undrawn):
    natures = [N.Bernoulli(q=(i + 1) / 20) for i in range(MOST // 3 + 1)]
    mine = results.study(cells(horizons=(10,), runs=1, natures=natures))
    page = page_of(mine, {}, len(mine.cells), "x.db")
    pairs = len(natures) * len([c for c in page_rows.shown_columns(mine) if not mine.columns[c].end])
    assert len(page.drawn.curves) + len(page.drawn.others) == MOST == 24
    assert (
        f"{pairs - len(page.drawn.curves)} of {pairs} pictures of a measure against a nature are left out."
        in " ".join(page.drawn.left)
    )


@pytest.mark.parametrize(("lines", "drawn"), [(2, 4), (12, 6), (100, 7)])
def test_pictures_of_curves_have_about_so_many_lines_in_all_and_are_four_at_least(
    lines, drawn, undrawn, monkeypatch
):
    monkeypatch.setattr(page_pictures, "LINES", lines)
    mine = study({(who, f"n{i}"): [1, 2] for who in "ab" for i in range(7)})
    found = page_pictures.gallery(mine, ["ece"], [], Progress(1))
    assert [picture.title for picture in found.curves] == [f"ece against n{i}" for i in range(drawn)]
    assert any(f"{7 - drawn} of 7 pictures" in said for said in found.left) == (drawn < 7)


@pytest.mark.parametrize(("many", "left"), [(6, False), (7, True)])
def test_a_picture_of_some_natures_says_of_how_many(many, left, undrawn):
    mine = study(*(cell(who, {"ece": [1], "cdl": [2]}, f"n{i}") for who in "ab" for i in range(many)))
    found = page_pictures.gallery(mine, ["ece", "cdl"], [], Progress(1))
    assert [picture.title for picture in found.others] == [PARETO]
    assert (f"{PARETO}: of the first 6 of {many} natures." in found.left) == left


def test_of_many_forecasters_the_lowest_are_drawn(monkeypatch):
    monkeypatch.setattr(page_pictures, "FORECASTERS", 3)
    forecasters = [(F.Constant(i / 10), f"f{i}") for i in range(6)]
    few = cells(
        horizons=(20, 40), runs=2, forecasters=forecasters, natures=(N.Drift(),), panel=Panel.of(["ece"], [])
    )
    mine = results.study(few)
    page = page_of(mine, {}, len(mine.cells), "x.db")
    drawn = next(p for p in page.drawn.curves if p.title == "ece against drift")
    assert drawn.caption == " Drawn: the 3 of 6 forecasters whose largest mean total of ece is lowest."
    means = {c.forecaster: c.mean[-1] for c in mine.curves(["ece"])}
    there = {who for who in means if re.search(rf">\W*{who}\b", drawn.svg)}
    assert len(there) == 3
    assert max(means[who] for who in there) <= min(mean for who, mean in means.items() if who not in there)


def test_of_many_tasks_fewer_forecasters_are_drawn(rich, undrawn, monkeypatch):
    monkeypatch.setattr(page_pictures, "POINTS", 1)
    drawn = page_of(rich, META, len(rich.cells), "x.db").drawn.others
    assert [" Drawn: the 1 of 2 forecasters" in p.caption for p in drawn if "tasks" in p.title] == [True] * 2


def test_what_is_not_there_has_no_place_and_a_sentence(undrawn):
    odd = study(*(cell(who, {"ece": [0, 0], "log_loss": [INF, INF]}) for who in "ab"))
    page = page_of(odd, {}, 2, "x.db")
    assert page_rows.lowest(odd).frame.at["log_loss", "drift"] == "–\nno total is finite"
    words = Seen(page.html()).words
    assert (NONE in words, "T^α" in words, "inf ±" in words, "0 ± 0" in words) == (True, False, False, True)
    bare = results.study(cells(horizons=(20,), runs=1))
    page = page_of(study(*(replace(cell, gammas=type(cell.gammas)()) for cell in bare.cells)), {}, 4, "x.db")
    assert not [picture for picture in page.drawn.others if picture.title.startswith("Reliability")]
    assert "left out where no level sets of a game are kept" in " ".join(page.drawn.left)
