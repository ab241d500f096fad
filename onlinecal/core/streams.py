"""Randomness without state: a stream is a function of what it is for, never of what was drawn before it."""

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Stream:
    """Uniforms on [0, 1) for a range of runs; run r's are the same in whatever batch it is played.

    The key of a run's Philox generator is a hash of (seed, path, run): `path` is what the numbers are for. NumPy's
    `numpy.random.Generator(numpy.random.Philox(key=…)).random()` gives the same numbers.

    >>> both = Stream(1, ("outcome",), range(4)).block(5)
    >>> bool((both[:, 2:] == Stream(1, ("outcome",), range(2, 4)).block(5)).all())
    True
    """

    def __init__(self, seed: int, path: tuple[str, ...], runs: range) -> None:
        self._origin = seed, path, runs
        self._together = False
        self._next = 0
        #: where the numbers begin that `uniform` has at hand, and these
        self._near: tuple[int, list[float]] = 0, []
        keys = [_key(seed, path, run) for run in runs]
        #: (runs, 2): the two words of each run's key, for NumPy's Philox and for `onlinecal.engine.uniforms`
        self.keys = np.array([(key & _WORD, key >> 64) for key in keys], np.uint64).reshape(-1, 2)

    def child(self, *path: str) -> "Stream":
        """A stream for a part of the owner of this one; earlier draws from this one do not matter."""
        seed, above, runs = self._origin
        return Stream(seed, (*above, *path), runs)

    def over(self, runs: range) -> "Stream":
        """The stream of the same seed and path for other runs; a common one stays as it is."""
        return self if self._together else Stream(*self._origin[:2], runs)

    def common(self, *path: str) -> "Stream":
        """A stream of one column for all runs together, the same in whatever batch they are played."""
        seed, above, _ = self._origin
        stream = Stream(seed, (*above, *path, "all runs"), range(1))
        stream._together = True
        return stream

    def block(self, rounds: int) -> NDArray[np.float64]:
        """The next `rounds` uniforms of every run, shape (rounds, runs); blocks of any size give the same numbers."""
        self._next += rounds
        return self.block_from(self._next - rounds, rounds)

    def block_from(self, first: int, rounds: int) -> NDArray[np.float64]:
        """Numbers first, first + 1, … of every run, (rounds, runs); `block` goes on where it was."""
        # Transposed without a copy. A round reads one number of each run, and the next rounds find theirs in the
        # cache.
        block = np.empty((len(self.keys), rounds)).T
        bits = np.random.Philox(0)
        generator, state, skipped = np.random.Generator(bits), bits.state, first % 4
        for row, key in zip(block.T, self.keys, strict=True):
            # Each counter gives four numbers. A generator begins with the counter after this one.
            state["state"] = {"counter": np.array([first // 4, 0, 0, 0], np.uint64), "key": key}
            bits.state = state
            generator.random(skipped)
            generator.random(out=row)
        return block

    def numbers_from(self, first: int, rounds: int) -> list[float]:
        """The same of the first run, as a list."""
        numbers: list[float] = self.block_from(first, rounds)[:, 0].tolist()
        return numbers

    def uniform(self, index: int) -> float:
        """Number `index`, from 0, of the first run: the same whenever it is asked for."""
        if index < 0:
            raise IndexError(f"number {index} of a stream; expected 0 or more")
        first, numbers = self._near
        if not first <= index < first + len(numbers):
            # Several, as most ask for one number after the other.
            first, numbers = self._near = index, self.numbers_from(index, 256)
        return numbers[index - first]

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_near": (0, [])}


_WORD = 2**64 - 1


def _key(seed: int, path: tuple[str, ...], run: int) -> int:
    text = "\x1f".join((str(seed), *path, str(run)))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest(), "little")
