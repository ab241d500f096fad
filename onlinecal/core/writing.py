"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from onlinecal.core.errors import InvalidParameter


@contextlib.contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Where to write a file that then takes the place of `path`, which stays as it was if anything fails.

    Directories above it are made. The file that is written stands beside `path`, under a hidden name.

    Raises
    ------
    InvalidParameter
        A place that cannot be written.
    """
    partial = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        os.replace(partial, path)
    except OSError as error:
        raise InvalidParameter(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
