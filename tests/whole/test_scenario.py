"""Scenario files: what is good is played as written, what is not is one clear line."""

from pathlib import Path

import pytest

from onlinecal.core.errors import ScenarioError
from onlinecal.core.strategy import strategy_key
from onlinecal.forecasters import FORECASTERS
from onlinecal.naming import family
from onlinecal.natures import NATURES, Drift, DriftClasses
from onlinecal.scenario import load
from tests.examples import of_classes, of_two

SCENARIOS = Path(__file__).parents[2] / "scenarios"

GOOD = """
name = "test"
seed = 3
runs = 2
horizons = [10, 20]
measures = ["ece", {name = "binned_ece", bins = 5}]
tasks = ["umbrella", {name = "mine", payoffs = [[1, 0], [0, 0.5]], actions = ["stay", "go"]}]
[[forecasters]]
name = "forecast_hedging"
m = "T^(1/2)"
label = "mine"
[[natures]]
name = "bernoulli"
q = 0.25
"""


def loaded(tmp_path, text):
    file = tmp_path / "some.toml"
    file.write_text(text)
    return load(file)


def test_a_good_one(tmp_path):
    plan = loaded(tmp_path, GOOD)
    assert [c.horizon for c in plan.cells] == [10, 20]
    cell = plan.cells[0]
    assert (cell.runs, cell.seed) == (2, 3)
    assert cell.forecaster.label == "mine"
    assert strategy_key(cell.forecaster.strategy) == 'forecast_hedging(m="T^(1/2)")'
    assert strategy_key(cell.nature.strategy) == "bernoulli(q=0.25)"
    assert cell.panel.names[:2] == ["ece", "binned_ece(bins=5)"]
    assert cell.panel.names[-1] == "swap_regret[mine]"
    assert plan.meta["scenario"] == GOOD


BARE = 'horizon = 10\nmeasures = ["ece"]\nforecasters = ["constant"]\nnatures = ["drift"]'


def test_other_ways_to_write_it(tmp_path):
    assert loaded(tmp_path, GOOD.replace('name = "test"\n', "", 1)).scenario.name == "some"
    for n in (1, 100):
        longest = GOOD.replace('"test"', f'"{"x" * n}"').replace("runs = 2", f"checkpoints_per_decade = {n}")
        scenario = loaded(tmp_path, longest).scenario
        assert (scenario.name, scenario.checkpoints_per_decade) == ("x" * n, n)
    (cell,) = loaded(tmp_path, BARE).cells
    assert (cell.forecaster.label, cell.nature.label) == ("constant", "drift")
    for old, new, times in (
        ("[10, 20]", "{from = 10, to = 1000, count = 3}", [(10,), (100,), (1000,)]),
        ("[10, 20]", "[100]", [(100,)]),  # a list of one: read at its end too
        ("horizons = [10, 20]", "horizon = 100\ncheckpoints_per_decade = 2", [(10, 32, 100)]),
        ('["ece", {name = "binned_ece", bins = 5}]', '"all"', [(10,), (20,)]),
        ('label = "mine"', "longest = 10", [(10,)]),  # a slow strategy is played less long
        ("q = 0.25", "q = 0.25\nlongest = 19", [(10,)]),
    ):
        assert [c.times for c in loaded(tmp_path, GOOD.replace(old, new)).cells] == times


def test_from_and_to_of_a_nature_are_its_ends(tmp_path):
    """A table with a name is a strategy, and no range."""
    moves = '{ name = "drift_classes", from = [1, 0, 0], to = [0, 0, 1] }'
    text = BARE.replace('["drift"]', f"[{moves}]").replace("constant", "class_mean")
    assert loaded(tmp_path, text).cells[0].nature.strategy == DriftClasses((1, 0, 0), (0, 0, 1))
    for ends in ("from = 0.2, to = 0.4", "first = 0.2, to = 0.4"):
        (cell,) = loaded(tmp_path, BARE.replace('"drift"', f'{{ name = "drift", {ends} }}')).cells
        assert cell.nature.strategy == Drift(0.2, 0.4)
    with pytest.raises(ScenarioError, match="'from' and 'first'; expected one"):
        loaded(tmp_path, BARE.replace('"drift"', '{ name = "drift", from = 0.2, first = 0.4 }'))


def test_a_file_is_sought_beside_the_scenario(tmp_path, monkeypatch):
    (tmp_path / "rain.csv").write_text("outcome\n" + "1\n" * 30)
    monkeypatch.chdir("/")
    text = GOOD.replace('name = "bernoulli"\nq = 0.25', 'name = "replay"\nfile = "rain.csv"')
    assert loaded(tmp_path, text).cells[0].nature.strategy.length == 30


def test_all_of_a_family(tmp_path):
    internal = ["foster vohra", "blum mansour", "blum mansour log"]
    hedging = ["forecast hedging", "almost one step ahead", "cdl minimiser", "soft hedging"]
    for said, labels in (
        ('"all hedging"', hedging),
        ('["constant", "all internal regret"]', ["constant", *internal]),
    ):
        plan = loaded(tmp_path, BARE.replace('["constant"]', said))
        assert sorted(cell.forecaster.label.lower() for cell in plan.cells) == sorted(labels)


def test_all_are_those_that_need_no_parameter(tmp_path):
    needy = {"expert_mixture", "expert_aggregation", "doubling", "rounded", "delayed", "separate"}
    assert {*family("forecaster", "all classes")} == of_classes(FORECASTERS).keys() - {"class_by_class"}
    assert {*family("forecaster", "all")} == of_two(FORECASTERS).keys() - needy
    assert {*family("nature", "all classes")} == of_classes(NATURES).keys()
    assert {*family("nature", "all")} == of_two(NATURES).keys() - {
        "replay", "switch", "streams", "mixture", "grouped", "group_contrarian",
    }  # fmt: skip
    with pytest.raises(
        ScenarioError, match="unknown family of natures 'stochastc'; did you mean 'stochastic'"
    ):
        loaded(tmp_path, BARE.replace('natures = ["drift"]', 'natures = "all stochastc"'))


@pytest.mark.parametrize("file", sorted(SCENARIOS.glob("*.toml")), ids=lambda f: f.name)
def test_ours_are_good(file):
    plan = load(file)
    assert plan.cells
    assert plan.scenario.title


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("seed = 3", "sed = 3", "unknown key 'sed'; did you mean 'seed'"),
        ("seed = 3", "history = 10", "the key 'history' is gone; .* use `rounded`, or a forecaster with a grid"),
        ("runs = 2", "runs = 0", "runs = 0; expected an integer from 1 to 10"),
        ("runs = 2", "checkpoints_per_decade = [3]", r"checkpoints_per_decade = \[3\]; expected an integer"),
        *(("runs = 2", f"checkpoints_per_decade = {n}", f"checkpoints_per_decade = {n}; expected") for n in (0, 101)),
        ("runs = 2", "laws = 1", "laws = 1; expected true or false"),
        ("horizons = [10, 20]", "horizon = 1e3", "horizon = 1000.0; expected an integer from 1"),
        ("[10, 20]", "{from = 100, to = 10, count = 3}", "horizons = .*: expected from < to$"),
        ("horizons = [10, 20]", "horizon = 1000000000000", "horizon = 1000000000000; expected an integer from 1"),
        ("horizons = [10, 20]", "horizon = 10\nhorizons = [10]", "or horizons"),
        ("[10, 20]", "{from = 1, to = 9, count = 3, step = 1}", "horizons = .*: a range has no 'step'"),
        *((GOOD, BARE.replace('"constant"', given), said) for given, said in (
            ("3", "3 is not a forecaster; expected a Forecaster"),
            ("", "no forecasters; expected at least one$"))),
        ('name = "bernoulli"\nq = 0.25', 'name = "replay"\nfile = "/dev/zero"', "/dev/zero is not a file; expected a"),
        ('label = "mine"', 'label = "a\\nb"', "expected text in one line"),
        ("runs = 2", 'runs = 2\ntitle = "A\\u001b[31m"', r"title = 'A\\x1b\[31m'; expected text in one line"),
        ('label = "mine"', "longest = 5", "up to T = 5, but the shortest horizon is 10"),
        ('name = "test"', 'name = "../test"', "name = '../test'; expected letters, digits"),
        ('name = "test"', f'name = "{"x" * 101}"', "name = 'x*'; expected letters, digits, .*, at most 100$"),
        ("runs = 2", "runs = = 2", "not valid TOML"),
    ],
    ids=lambda text: text[:30],
)  # fmt: skip
def test_bad_ones_are_one_clear_line(tmp_path, old, new, said):
    assert old in GOOD
    with pytest.raises(ScenarioError, match=said) as raised:
        loaded(tmp_path, GOOD.replace(old, new, 1))
    assert "\n" not in str(raised.value)
    assert "some.toml" in str(raised.value)
    assert len(str(raised.value)) < 600


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(ScenarioError, match="No such file"):
        load(tmp_path / "none.toml")
    with pytest.raises(ScenarioError, match="cannot be read"):
        load(tmp_path)
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ScenarioError, match="UTF-8"):
        load(tmp_path / "binary.toml")


def test_a_value_of_an_option_is_no_mistake_of_the_file(tmp_path):
    (tmp_path / "good.toml").write_text(GOOD)
    assert load(tmp_path / "good.toml", {"horizon": 30}).cells[0].times[-1] == 30
    with pytest.raises(ScenarioError, match=r"^runs = 0; expected an integer from 1"):
        load(tmp_path / "good.toml", {"runs": 0})
