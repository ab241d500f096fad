"""Compiled uniforms: any number of any stream by its index, the same as NumPy's generator draws in order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinecal.core.uniforms import fill_uniforms, next_uniform, uniform

WORD = st.integers(0, 2**64 - 1)


def drawn(keys, count):
    """What NumPy's own generator draws with this key."""
    return np.random.Generator(np.random.Philox(key=keys)).random(count)


@given(WORD, WORD)
def test_they_are_those_of_numpy(first, second):
    keys = np.array([first, second], np.uint64)
    expected, cache = drawn(keys, 23), np.full(5, -1.0)
    assert [uniform(keys, i) for i in range(23)] == expected.tolist()
    assert [next_uniform(keys, i, cache) for i in range(23)] == expected.tolist()


@given(WORD, st.integers(0, 40), st.integers(0, 20))
def test_a_vector_begins_and_ends_anywhere(key, first, count):
    keys = np.array([key, 7], np.uint64)
    out = np.full(count + 1, -1.0)
    fill_uniforms(keys, first, out[:count])
    assert (out[:count] == drawn(keys, first + count)[first:]).all()
    assert out[count] == -1.0  # nothing is written beyond


@pytest.mark.parametrize("index", [2**31 - 1, 2**31, 2**33 + 3, 2**40])
def test_numbers_far_away_need_none_before_them(index):
    keys = np.array([3, 5], np.uint64)
    generator = np.random.Philox(key=keys)
    generator.advance(index // 4)  # blocks of four
    assert uniform(keys, index) == np.random.Generator(generator).random(index % 4 + 1)[-1]
