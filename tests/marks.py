"""Marks of cases that cost too much for the fast tests."""

import pytest


def some_fast(k, cases):
    """The cases of a dear table: the first of every k is fast, and the others are slow."""
    return [case if i % k == 0 else slow(case) for i, case in enumerate(cases)]


def slow(case):
    """A slow case: of several arguments, a tuple of them."""
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow)
