"""The scenarios of the package, and an example of a log of forecasts."""

from __future__ import annotations

from pathlib import Path

import onlinecal
from onlinecal.core.errors import InvalidParameter, ScenarioError, UnknownName
from onlinecal.core.writing import whole

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
