"""Numbers of all strategies, measures and accounts are those on record."""

import pytest

from onlinecal.decisions.responses import RESPONSES
from onlinecal.forecasters import FORECASTERS, Constant
from onlinecal.measures import MEASURES
from onlinecal.natures import NATURES
from tests import golden
from tests.golden import now, of_games, of_measures, of_nested_games, recorded, same
from tests.marks import slow


@pytest.mark.parametrize("kind", [of_games, slow(of_nested_games), of_measures])
def test_numbers_are_those_on_record(kind):
    record, found = recorded(), now(kind)
    assert sorted(found.keys() - record.keys()) == [], "run `python -m tests.golden`"
    changed = [name for name in found if not same(name, record[name], found[name])]
    assert changed == [], (
        "if it is meant, raise `version`, delete these lines, and run `python -m tests.golden`"
    )
    assert kind is not of_measures or found.keys() == of_no_game(record)


def test_everything_that_has_a_version_is_on_record():
    pairs = [type(strategy) for pair in golden.pairs() for strategy in pair]
    for known in (FORECASTERS, NATURES):
        assert set(known.values()) <= set(pairs)
    of_kinds = {
        "measure": MEASURES,
        "response": RESPONSES,
        "task": ("DecisionTask", "QuadraticTask", "DecisionMaker"),
    }
    for kind, known in of_kinds.items():
        assert {f"{kind} {name}" for name in known} <= recorded().keys()
    for thing in (*FORECASTERS.values(), *NATURES.values(), *MEASURES.values(), *RESPONSES.values()):
        assert type(thing.version) is int


def of_no_game(record):
    """The names of numbers of measures and accounts."""
    return {name for name in record if name.startswith(("measure ", "task ", "response "))}


def test_no_game_is_on_record_only():
    """Of measures and accounts this is seen above."""
    names = {name for nested in (False, True) for name, *_ in golden.games(nested)}
    assert recorded().keys() - names == of_no_game(recorded())


def test_another_number_is_seen():
    """The control, for a player and for a measure."""
    name, *pair = next(game for game in golden.games() if type(game[1]) is Constant)
    assert same(name, golden.played(*pair), recorded()[name])
    assert not same(name, golden.played(Constant(pair[0].p + 1e-7), *pair[1:]), recorded()[name])
    assert not same("measure ece", golden.measured(MEASURES["brier"]), recorded()["measure ece"])
