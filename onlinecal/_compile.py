"""How the inner steps are compiled: one decorator, so that all kernels follow one arithmetic.

The machine code is cached on disk. No `fastmath`: the order of floating-point operations is part of the
result, and a measure gives the same digits with compilation switched off (`NUMBA_DISABLE_JIT=1`).
"""

import contextlib
import hashlib
from pathlib import Path

from numba import njit

PACKAGE = Path(__file__).parent


def _forget_stale(package: Path) -> bool:
    """Deletes the cached machine code of a package whose sources have changed since it was made.

    Numba renews a kernel when its own file changes, but not when that of a kernel which it calls does, and would then
    play with yesterday's arithmetic. Returns whether anything had changed.
    """
    digest = hashlib.blake2b(digest_size=16)
    for source in sorted(package.rglob("*.py")):
        stat = source.stat()
        digest.update(f"{source.relative_to(package)} {stat.st_mtime_ns} {stat.st_size}\n".encode())
    stamp = package / "__pycache__" / "kernels.stamp"
    with contextlib.suppress(FileNotFoundError):
        if stamp.read_text() == digest.hexdigest():
            return False
    # Where this folder cannot be written to, numba keeps its cache elsewhere and only an installation changes sources.
    with contextlib.suppress(OSError):
        for index in package.rglob("__pycache__/*.nbi"):
            index.unlink(missing_ok=True)
        stamp.parent.mkdir(exist_ok=True)
        stamp.write_text(digest.hexdigest())
    return True


_forget_stale(PACKAGE)

kernel = njit(cache=True, error_model="numpy", nogil=True)
