"""Each word has a place of its own, and there are as many as there should be."""

import functools

import numpy as np
import pytest

from onlinecal.exact.words import Biases, Counts, how_many, place, words, words_between


def alphabets():
    for m, horizon in ((1, 4), (2, 7), (3, 6), (4, 5), (6, 4)):
        yield Biases(m, horizon, separate=True)
        yield Biases(m, horizon, separate=False)
    yield Counts(2, 5)
    yield Counts(1, 6)


@pytest.mark.parametrize(
    "alphabet", list(alphabets()), ids=lambda a: f"{type(a).__name__}-{a.m}-{a.separate}"
)
def test_every_word_has_its_place(alphabet):
    for left in range(alphabet.horizon + 1):
        played = alphabet.horizon - left
        its = words(alphabet, left, played)
        rows = words_between(0, its.number, its)
        assert [place(row, its) for row in rows] == list(range(its.number))
        middle = its.number // 2
        assert (words_between(middle, its.number, its) == rows[middle:]).all()
        costs = [alphabet.costs(point, left) for point in alphabet.points]
        sums = functools.reduce(lambda before, here: np.add.outer(before, here).ravel(), costs)
        expected = np.count_nonzero(sums == played if alphabet.counted else sums <= played)
        assert its.number == expected == round(how_many(alphabet, left, played))


@pytest.mark.parametrize("m", [1, 2, 3, 4, 6])
def test_letters_are_what_sequences_come_to(m):
    horizon = 6
    plain, merged = Biases(m, horizon, separate=False), Biases(m, horizon, separate=True)
    for point in range(m + 1):
        for left in range(horizon + 1):
            least = {}
            for n in range(horizon - left + 1):
                for s in range(n + 1):
                    least.setdefault(m * s - point * n, n)
            found = dict(
                zip(plain.values(point, left).tolist(), plain.costs(point, left).tolist(), strict=True)
            )
            assert found == least
            for value in least:
                letter = merged.letter(point, left, value)
                stands_for = int(merged.values(point, left)[letter])
                settled = value >= left * point or value <= -left * (m - point)
                assert settled or stands_for == value
                if settled and (value or left):
                    assert np.sign(stands_for) * np.sign(value) >= 0
                assert merged.costs(point, left)[letter] <= least[value]
