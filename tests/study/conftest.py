"""A study that processes play on the command line, in a folder of its own and where nothing is killed."""

import sys

import pytest

from onlinecal.scenario import load
from onlinecal.study.session import Session
from tests.executors import filled, tables


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield filled(tmp_path)
    sys.modules.pop("own", None)  # others have an own.py of their own


@pytest.fixture(scope="session")
def alone(tmp_path_factory):
    """The tables of the study where this process plays all of it."""
    folder, path = filled(tmp_path_factory.mktemp("alone")), list(sys.path)
    (folder / "quick").touch()
    planned = load(folder / "s.toml")
    with Session.open(planned.cells, planned.meta, folder / "alone.db") as opened:
        assert opened.play() == []
    sys.path[:] = path
    sys.modules.pop("own")
    return tables(folder / "alone.db")
