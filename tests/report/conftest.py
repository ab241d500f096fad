"""Fixtures of the tests of reports."""

import pytest

from onlinecal.report import page_pictures


@pytest.fixture
def undrawn(monkeypatch):
    """Pictures have their captions but are not drawn, for what looks at all else."""
    monkeypatch.setattr(page_pictures, "drawing", lambda *_: "<svg></svg>")
