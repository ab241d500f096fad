"""The scenarios that the package brings along, and new ones like them."""

import tomllib
from pathlib import Path

import pytest

from onlinecal.core.errors import InvalidParameter, ScenarioError, UnknownName
from onlinecal.core.writing import create, scenario_file, scenarios
from onlinecal.scenario import load
from tests.readme import README

FOLDER = README.parent / "scenarios"


def test_all_of_them_are_in_the_wheel():
    config = tomllib.loads((README.parent / "pyproject.toml").read_text())
    included = config["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    files = [*FOLDER.rglob("*.toml")]
    names = [file.relative_to(FOLDER).as_posix() for file in [*files, *FOLDER.rglob("*.csv")]]
    assert included == {f"scenarios/{name}": f"onlinecal/scenarios/{name}" for name in names}
    assert scenarios().keys() == {file.stem for file in files}  # each name once
    assert len(scenarios()) == len(files)


def test_a_file_of_the_user_comes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert scenario_file(Path("quickstart")).samefile(FOLDER / "quickstart.toml")
    (tmp_path / "quickstart").write_text("")
    assert scenario_file(Path("quickstart")) == Path("quickstart")
    for there in ("x/quickstart", "/quickstart", "quickstart.db"):  # no file, and named as one
        assert scenario_file(Path(there)) == Path(there)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("mine", "mine cannot be read: no such file; did you mean 'mine.toml'?"),
        ("quikstart", "no such file, and unknown scenario 'quikstart'; did you mean 'quickstart'?"),
        ("min", "unknown scenario 'min'; known: "),
        ("", "is a directory"),
    ],
)
def test_names_of_nothing(tmp_path, monkeypatch, name, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text("")
    with pytest.raises(ScenarioError, match="cannot be read") as raised:
        load(Path(name))
    assert said.lower() in str(raised.value).lower()


def test_a_new_scenario_has_comments_and_replaces_nothing(tmp_path):
    file, log = tmp_path / "sub" / "my.toml", tmp_path / "mine.csv"
    for path, like, options, shipped in (
        (file, (), {}, "template.toml"), (tmp_path / "quick.toml", ("quickstart",), {}, "quickstart.toml"),
        (file, ("quickstart",), {"overwrite": True}, "quickstart.toml"), (log, (), {}, "forecasts/rain.csv"),
    ):  # fmt: skip
        create(path, *like, **options)
        assert path.read_bytes() == (FOLDER / shipped).read_bytes()
    assert (FOLDER / "template.toml").read_text().count("#") > 20
    for path, like, error, said in (
        (file, "template", InvalidParameter, "exists; expected the name of a new file"),
        (tmp_path / "my", "template", InvalidParameter, "expected a name that ends in .toml"),
        (tmp_path / "new.toml", "quikstart", UnknownName, "did you mean 'quickstart'"),
        (file / "new.toml", "template", InvalidParameter, "cannot be written"),
        (tmp_path / "b.csv", "quickstart", UnknownName, "unknown example of a log 'quickstart'; known: rain"),
    ):
        with pytest.raises(error, match=said):
            create(path, like)
