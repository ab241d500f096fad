"""Streams: a function of what they are for, in whatever order and batch, or by index, their numbers are drawn."""

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinecal.core.streams import Stream
from onlinecal.engine.uniforms import BLOCK, KEY, generators, uniform


def test_a_stream_is_numpys_with_the_key_that_is_said():
    """The key of a run, written out once more; results that are on record depend on it."""
    text = "\x1f".join(("3", "nature", "drift()", "100", "5"))
    key = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest(), "little")
    expected = np.random.Generator(np.random.Philox(key=key)).random(9)
    stream = Stream(3, ("nature", "drift()", "100"), range(5, 6))
    assert (stream.block(9)[:, 0] == expected).all()


@given(st.lists(st.integers(0, 30), min_size=1, max_size=8))
def test_blocks_of_any_size_give_the_same_numbers(sizes):
    stream, whole = (Stream(1, ("a",), range(3)) for _ in range(2))
    blocks = [stream.block(size) for size in sizes]
    last = whole.block_from(sum(sizes[:-1]), sizes[-1])  # which moves nothing
    assert (last == blocks[-1]).all()
    assert (np.concatenate(blocks) == whole.block(sum(sizes))).all()


OTHERS = [
    (2, ("a", "b"), range(2)), (1, ("a",), range(2)), (1, ("a", "c"), range(2)), (1, ("b", "a"), range(2)),
    (1, ("ab",), range(2)), (1, ("a", "b"), range(2, 4)), (1, ("a", "b", ""), range(2)),
]  # fmt: skip


@pytest.mark.parametrize("other", OTHERS, ids=str)
def test_seed_path_and_run_all_count(other):
    assert not (Stream(1, ("a", "b"), range(2)).block(50) == Stream(*other).block(50)).any()


def test_a_child_is_the_stream_of_the_longer_path_whatever_was_drawn():
    parent = Stream(1, ("a",), range(2))
    parent.block(17)
    assert (parent.child("b", "c").block(5) == Stream(1, ("a", "b", "c"), range(2)).block(5)).all()


def test_one_number_is_the_same_in_whatever_order_it_is_asked_for():
    expected = Stream(3, ("a",), range(1)).block(300)[:, 0]
    stream = Stream(3, ("a",), range(1))
    for i in (5, 6, 68, 69, 4, 299, 132, 0, 63, 64):
        assert stream.uniform(i) == expected[i]
    with pytest.raises(IndexError, match="number -1 of a stream; expected 0 or more"):
        stream.uniform(-1)


# ---------------------------------------------------------------- by index, in compiled code


def generator_of(keys):
    """The numbers that compiled code keeps of a stream with this key."""
    own = generators(None, 1)[0]
    own.view(np.uint64)[KEY:BLOCK] = keys
    return own


@given(st.lists(st.integers(0, 2**64 - 1), min_size=2, max_size=2))
def test_they_are_those_of_numpy(words):
    keys = np.array(words, np.uint64)
    expected, own = np.random.Generator(np.random.Philox(key=keys)).random(23), generator_of(keys)
    assert [uniform(own, i) for i in range(23)] == expected.tolist()


@given(st.integers(0, 40), st.integers(0, 20))
def test_a_block_begins_and_ends_anywhere(first, count):
    stream = Stream(7, ("a",), range(2))
    block = stream.block_from(first, count)
    for run, keys in enumerate(stream.keys):
        assert (
            block[:, run] == np.random.Generator(np.random.Philox(key=keys)).random(first + count)[first:]
        ).all()


@pytest.mark.parametrize("index", [2**31 - 1, 2**31, 2**33 + 3, 2**40])
def test_numbers_far_away_need_none_before_them(index):
    keys = np.array([3, 5], np.uint64)
    generator = np.random.Philox(key=keys)
    generator.advance(index // 4)  # blocks of four
    assert uniform(generator_of(keys), index) == np.random.Generator(generator).random(index % 4 + 1)[-1]
