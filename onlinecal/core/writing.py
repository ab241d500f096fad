"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from onlinecal.core.errors import InvalidParameter

#: the refusal of a file that exists, by every command that does not replace it
EXISTS = "exists; expected the name of a new file, or --overwrite"


def check_new(path: Path, overwrite: bool = False) -> None:
    """Refuse a file that is there, unless it is to be replaced."""
    if not overwrite and os.path.lexists(path):
        raise InvalidParameter(f"{path} {EXISTS}")


@contextlib.contextmanager
def whole(path: Path, overwrite: bool = True) -> Iterator[Path]:
    """A new file to write, which then takes the place of `path`; that stays as it was if anything fails.

    Directories above it are made. The file that is written stands beside `path`, under a hidden name, and is on the
    disk before it takes the place.
    """
    check_new(path, overwrite)
    # Absolute, since pandas takes a first ~ for a home folder.
    partial = path.parent.absolute() / f".{path.name}.partial"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.open("wb").close()
    except (OSError, ValueError) as error:  # the latter of a name that no file can have
        raise InvalidParameter(_refusal(path, error)) from None
    try:
        yield partial
        with partial.open("rb+") as file:
            os.fsync(file.fileno())
        check_new(path, overwrite)
        os.replace(partial, path)
    except OSError as error:
        raise InvalidParameter(_refusal(path, error)) from None
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)


def _refusal(path: Path, error: Exception) -> str:
    return f"{path} cannot be written: {getattr(error, 'strerror', None) or error}"
