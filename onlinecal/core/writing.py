"""Files that are there whole or not at all; the scenarios of the package, and new ones like them."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import onlinecal
from onlinecal.core.errors import InvalidParameter, ScenarioError, UnknownName

#: the refusal of a file that exists, by every command that does not replace it
EXISTS = "exists; expected the name of a new file, or --overwrite"


def check_new(path: Path, overwrite: bool = False) -> None:
    """Refuse a file that is there and not to be replaced, or that cannot be made."""
    if not overwrite and os.path.lexists(path):
        raise InvalidParameter(f"{path} {EXISTS}")
    if os.path.exists(path) and not os.path.isfile(path):
        raise InvalidParameter(f"{path} is a folder or a device; expected the name of a file")
    folder = next((each for each in path.absolute().parents if os.path.exists(each)), path)
    if not (os.path.isdir(folder) and os.access(folder, os.W_OK)):
        raise InvalidParameter(f"{path} cannot be written: {folder} is not a folder that may be written to")


@contextlib.contextmanager
def whole(path: Path, overwrite: bool = True) -> Iterator[Path]:
    """A new file to write; it takes the place of `path` once it is whole and on the disk. Folders are made."""
    check_new(path, overwrite)
    # Absolute, since pandas takes a first ~ for a home folder.
    partial = path.parent.absolute() / f".{path.name}.partial"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.touch()
        yield partial
        with partial.open("rb+") as file:
            os.fsync(file.fileno())
        check_new(path, overwrite)
        os.replace(partial, path)
    except OSError as error:
        raise InvalidParameter(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)


#: the default of `create`, by the end of a name
EXAMPLES = {".toml": "template", ".csv": "rain"}
_HOME = Path(onlinecal.__file__).parent


def scenarios(end: str = ".toml") -> dict[str, Path]:
    """Name → file, of scenarios or of logs. In an installed package they lie within it, in a checkout beside it."""
    folder = next(
        (place / "scenarios" for place in (_HOME, _HOME.parent) if (place / "scenarios").is_dir()), _HOME
    )
    return {file.stem: file for file in sorted(folder.rglob(f"*{end}"))}


def scenario_file(name: Path) -> Path:
    """The file of a scenario by its name: one that is there, else the one of the package."""
    known = {} if name.exists() else scenarios()
    if name.exists() or (name.suffix and name.suffix != ".toml") or len(name.parts) != 1:
        return name
    if name.name in known:
        return known[name.name]
    beside = name.with_suffix(".toml")
    if beside.exists():
        raise ScenarioError(f"{name} cannot be read: no such file; did you mean {str(beside)!r}?")
    error = UnknownName.of("scenario", name.name, [*known, *map(str, Path().glob("*.toml"))])
    raise ScenarioError(f"{name} cannot be read: no such file, and {error}")


def create(path: Path, like: str | None = None, overwrite: bool = False) -> None:
    """Writes a scenario of the package to a file, or (``.csv``) its example of a log of forecasts."""
    check_ending(path, *EXAMPLES)
    known, wanted = scenarios(path.suffix), like or EXAMPLES[path.suffix]
    if wanted not in known:
        what = "scenario" if path.suffix == ".toml" else "example of a log"
        raise UnknownName.of(what, wanted, known)
    with whole(path, overwrite) as new:
        new.write_bytes(known[wanted].read_bytes())


def check_ending(path: Path, *ends: str) -> None:
    """Refuses a name that does not end in one of these."""
    if path.suffix not in ends:
        raise InvalidParameter(f"{path}: expected a name that ends in {' or '.join(ends)}")
