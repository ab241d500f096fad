"""The scenarios that the package brings along, and an example of a log of forecasts."""

from __future__ import annotations

import os.path
from pathlib import Path

import onlinecal
from onlinecal.core.errors import InvalidParameter, ScenarioError, UnknownName

#: what `create` copies where nothing else is said, by the end of a name
EXAMPLES = {".toml": "template", ".csv": "rain"}
_HOME = Path(onlinecal.__file__).parent


def scenarios(end: str = ".toml") -> dict[str, Path]:
    """Name → file, of scenarios or of logs. In an installed package they lie within it, in a checkout beside it."""
    folder = next(
        (place / "scenarios" for place in (_HOME, _HOME.parent) if (place / "scenarios").is_dir()), _HOME
    )
    return {file.stem: file for file in sorted(folder.rglob(f"*{end}"))}


def scenario_file(name: Path) -> Path:
    """The file of a scenario that somebody named: one that is there, else the one of the package of that name.

    Raises
    ------
    ScenarioError
        There is neither; the message has the nearest name.
    """
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


def create(path: Path, like: str | None = None) -> None:
    """Writes a scenario of the package to a new file, or (``.csv``) its example of a log of forecasts.

    Raises
    ------
    InvalidParameter
        The name does not end in ``.toml`` or ``.csv``, or there is such a file.
    UnknownName
        No scenario is called `like`.
    ScenarioError
        It cannot be written.
    """
    check_new(path, *EXAMPLES)
    known, wanted = scenarios(path.suffix), like or EXAMPLES[path.suffix]
    if wanted not in known:
        what = "scenario" if path.suffix == ".toml" else "example of a log"
        raise UnknownName.of(what, wanted, known)
    write_new(path, known[wanted].read_text(encoding="utf-8"))


def check_new(path: Path, *ends: str) -> None:
    """Refuses what is no name of a new file that ends in one of these.

    Raises
    ------
    InvalidParameter
        The name ends otherwise, or there is such a file.
    """
    if path.suffix not in ends:
        raise InvalidParameter(f"{path}: expected a name that ends in {' or '.join(ends)}")
    if os.path.lexists(path):
        raise InvalidParameter(f"{path} exists; expected the name of a new file")


def write_new(path: Path, text: str) -> None:
    """Writes a scenario, or an example of a log, to a new file.

    Raises
    ------
    ScenarioError
        It cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except (OSError, ValueError) as error:
        raise ScenarioError(
            f"{path} cannot be written: {getattr(error, 'strerror', None) or error}"
        ) from None
