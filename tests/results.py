"""A small study, its results file, and ways to look at both."""

import sqlite3

import pytest

import onlinecal as oc
from onlinecal.core.errors import OnlinecalError
from onlinecal.study import Entry, plan, play_cell
from onlinecal.study.panel import Panel
from onlinecal.study.session import Session
from onlinecal.study.store import Store

F, N = oc.forecasters, oc.natures
PANEL = Panel.of(["ece", {"name": "binned_ece", "bins": 4}], ["umbrella"])


def cells(
    horizons=(50, 100), runs=3, seed=1, panel=PANEL, forecasters=None, natures=(N.Drift(), N.Contrarian()), **options
):  # fmt: skip
    """Forecasters may be pairs with a label."""
    whom = (F.ForecastHedging(), F.AlmostOneStepAhead()) if forecasters is None else forecasters
    entries = [Entry.of(*f) if isinstance(f, tuple) else Entry.of(f) for f in whom]
    return plan(
        entries, [Entry.of(n) for n in natures], horizons=horizons, runs=runs, seed=seed, panel=panel, **options
    )  # fmt: skip


def added(
    measures=("ece",), tasks=(), runs=3, horizons=(40, 80), forecasters=None, natures=(N.Drift(),), **options
):
    """A plan to which measures and tasks are added later."""
    panel = Panel.of(measures, tasks, rounds=max(horizons))
    who = forecasters or (F.ForecastHedging(), F.EmpiricalMean())
    return cells(horizons, runs, panel=panel, forecasters=who, natures=natures, **options)


def study(planned):
    return oc.Study(tuple(play_cell(cell) for cell in planned))


def equal(first, second):
    """Whether results are the same, to the last bit."""
    return tuple(first.cells) == tuple(second.cells)


def session(path, planned, **options):
    return Session.open(planned, {"name": "test", "title": "A test"}, path, **options)


def played(path, planned, **options):
    """Plays to the end: the study, the remarks, and which cells were played for it."""
    with session(path, planned, **options) as opened:
        before = opened.store.runs()
        opened.play()
        new = {key: runs - before.get(key, 0) for key, runs in opened.store.runs().items()}
        return oc.Study.of(opened.store), opened.remarks, {key for key, runs in new.items() if runs > 0}


def resumed(path, planned):
    """Plays what is missing, to the study of a fresh game; the remarks, and which cells were played for it."""
    kept, remarks, new = played(path, planned, resume=True)
    assert equal(kept, study(planned))
    return remarks, new


def read(path):
    with Store.open(path) as store:
        return oc.Study.of(store)


def change(path, *statements):
    with sqlite3.connect(path) as db:
        for statement in statements:
            db.execute(statement)
    db.close()


def refused(path, said, planned=None, **options):
    """One clear line, and the file as it was."""
    before = path.read_bytes()
    with pytest.raises(OnlinecalError, match=said) as raised:
        session(path, planned or cells(), **options).__enter__()
    assert "\n" not in str(raised.value)
    assert path.read_bytes() == before
    assert not path.with_name(f".{path.name}.partial").exists()
