"""Numbers of all strategies, measures, accounts and pictures are those on record."""

from itertools import chain

import pytest

import onlinecal as oc
from onlinecal.decisions.responses import RESPONSES
from onlinecal.forecasters import FORECASTERS, Constant
from onlinecal.measures import MEASURES
from onlinecal.natures import NATURES
from tests import golden
from tests.golden import BEGIN, KINDS, now, of_nested_games, recorded, same
from tests.marks import slow
from tests.report.drawn import looks
from tests.report.test_pictures import samples


@pytest.mark.parametrize("kind", [slow(kind) if kind is of_nested_games else kind for kind in KINDS])
def test_numbers_are_those_on_record(kind):
    record, found = recorded(), now(kind)
    assert sorted(found.keys() - record.keys()) == [], "run `python -m tests.golden`"
    changed = [name for name in found if not same(name, record[name], found[name])]
    assert changed == [], (
        "if it is meant, raise `version`, delete these lines, and run `python -m tests.golden`"
    )
    if kind in BEGIN:
        assert found.keys() == {name for name in record if name.startswith(BEGIN[kind])}


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


def test_no_game_is_on_record_only():
    """Of all else this is seen above."""
    names = {name for nested in (False, True) for name, *_ in golden.games(nested)}
    begin = tuple(chain(*BEGIN.values()))
    assert {name for name in recorded() if not name.startswith(begin)} == names


def test_another_number_is_seen():
    """The control, for a player and for a measure."""
    name, *pair = next(game for game in golden.games() if type(game[1]) is Constant)
    assert same(name, golden.played(*pair), recorded()[name])
    assert not same(name, golden.played(Constant(pair[0].p + 1e-7), *pair[1:]), recorded()[name])
    assert not same("measure ece", golden.measured(MEASURES["brier"]), recorded()["measure ece"])


def test_another_look_is_seen():
    """The control, for pictures: one line of many that is a tenth wider, and one that is drawn above others."""
    fig = oc.plots.witness(*samples(levels=20))
    before = looks(fig)
    assert same("picture witness", before, recorded()["picture witness"])
    for change in ("linewidth", "zorder"):
        line = fig.axes[0].lines[-1]
        was = line.properties()[change]
        line.set(**{change: 1.1 * was})
        assert not same("picture witness", looks(fig), before)
        line.set(**{change: was})
    assert same("picture witness", looks(fig), before)
