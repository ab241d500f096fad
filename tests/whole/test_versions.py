"""A change of numbers raises the version under which results are kept."""

import json

import pytest

from onlinecal.core import streams
from onlinecal.decisions.responses import RESPONSES
from onlinecal.forecasters import FORECASTERS, Constant
from onlinecal.measures import MEASURES
from onlinecal.natures import NATURES
from tests import versions
from tests.versions import complaint, entry, recorded


@pytest.fixture(scope="module")
def now():
    return dict(versions.entries())


def test_numbers_are_those_on_record_or_the_version_was_raised(now):
    old = recorded()
    complaints = [said for name, new in now.items() if (said := complaint(name, old.get(name), new))]
    complaints += [
        f"{name} is on record only: run `python -m tests.versions`" for name in old.keys() - now.keys()
    ]
    assert not complaints, "\n".join(complaints)


def test_everything_that_results_are_kept_under_has_a_version_on_record(now):
    kinds = {"forecaster": FORECASTERS, "nature": NATURES, "measure": MEASURES, "response": RESPONSES}
    for kind, known in kinds.items():
        for name, thing in known.items():
            assert f"{kind} {name}" in now
            assert type(thing.version) is int
    tasks = {name for name in now if name.startswith("task ")}
    assert tasks == {"task DecisionTask", "task QuadraticTask", "task DecisionMaker"}


def test_a_change_is_seen_and_the_message_says_what_to_do(now, monkeypatch):
    """The control: another engine, player, measure or account must be complained of, by name."""
    monkeypatch.setattr(Constant, "start", lambda self, *a: versions.Waver().start(*a))
    measures = {"brier": MEASURES["log_loss"], "ece": MEASURES["ece"]}
    for kind, known in (("FORECASTERS", {"constant": Constant}), ("NATURES", {}), ("MEASURES", measures)):
        monkeypatch.setattr(versions, kind, known)
    key = streams._key
    monkeypatch.setattr(streams, "_key", lambda seed, path, run: key(seed, path, run + 1))
    changed = dict(versions.entries())
    said = {name: complaint(name, now[name], new) for name, new in changed.items()}
    assert said["forecaster constant"].startswith(
        "the numbers of forecaster constant have changed under version 1."
    )
    for text in ("raise `version` of forecaster constant to 2", "run `python -m tests.versions`", "undo it"):
        assert text in said["forecaster constant"]
    assert "raise VERSION in onlinecal/engine/game.py to 2" in said["engine"]
    assert said["measure brier"]
    assert not said["measure ece"]
    assert not said["task DecisionTask"]


def test_the_command_writes_nothing_that_it_refuses(tmp_path, monkeypatch, capsys, now):
    monkeypatch.setattr(versions, "RECORD", tmp_path / "versions.json")
    monkeypatch.setattr(versions, "entries", lambda: now.items())
    assert versions.main() == 0
    text = versions.RECORD.read_text()
    assert json.loads(text, parse_constant=pytest.fail) == now
    assert versions.main() == 0
    assert versions.RECORD.read_text() == text
    other = dict(now) | {"measure ece": entry(1, [0.5])}
    monkeypatch.setattr(versions, "entries", lambda: other.items())
    assert versions.main() == 1
    assert versions.RECORD.read_text() == text
    assert "raise `version` of measure ece to 2" in capsys.readouterr().err
