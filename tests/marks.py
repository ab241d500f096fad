"""Marks of cases that cost too much for the fast tests."""

import pytest


def some_fast(k, cases, *, whole=False):
    """The cases of a dear table: the first of every k is fast, and the others are slow. See `slow`."""
    return [slow(case, whole=whole) if i % k else case for i, case in enumerate(cases)]


def slow(case, *, whole=False):
    """A slow case: a tuple has several arguments, or is one as a whole."""
    return pytest.param(*([case] if whole or not isinstance(case, tuple) else case), marks=pytest.mark.slow)
