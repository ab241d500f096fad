"""Where only the package and what it always needs are installed, as by `pip install .`."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

#: the modules of libraries that an extra installs, and no other does
EXTRAS = {"sklearn": {"sklearn"}, "river": {"river"}, "cluster": {"dask", "distributed"}, "search": {"cma"}}
LIBRARIES = set().union(*EXTRAS.values())
WAYS = "isotonic", "platt", "smooth", "venn_abers"
#: what is done without them → the extra that it needs, or ""
DONE = {
    **{f"oc.fit_recalibration([.1, .2, .8, .9], [0, 0, 1, 1], {way!r})([.5])": "" for way in WAYS},
    **{f"oc.recalibrate([.1, .2, .8] * 9, [0, 1, 1] * 9, '{way}_refitted')": "" for way in WAYS},
    "from onlinecal import *": "",
    "inspect.getmembers(oc)": "",
    "oc.play(['forecast_hedging'], ['drift'], horizon=20, runs=2, measures=['ece']).save('s.db')": "",
    "main('export', 's.db', '-o', 's.parquet')": "",
    "main('recalibrate', 'log.csv', '-o', 'r.parquet', '--draws', '0')": "",
    "main('measure', 'r.parquet', '--forecast', 'p')": "",
    "oc.RecalibratedClassifier": "sklearn",
    "from onlinecal import RecalibratedClassifier": "sklearn",
    "oc.RiverRecalibrator": "river",
    "oc.search.search('forecast_hedging', 'ece', horizon=20, runs=2, evaluations=40, fresh=2)": "search",
    "oc.play(['forecast_hedging'], ['drift'], horizon=20, runs=2, scheduler='tcp://localhost:1')": "cluster",
}
CODE = """
import contextlib, inspect, io, sys
from importlib.machinery import PathFinder
class Without:
    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in LIBRARIES else PathFinder.find_spec(name, path, target)
sys.meta_path[sys.meta_path.index(PathFinder)] = Without()
import onlinecal as oc
from onlinecal.cli import app
def main(*given):
    try:
        app(given)
    except SystemExit as end:
        if end.code:
            raise oc.OnlinecalError(said.getvalue())
for use in USES:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
        try:
            exec(use)
        except oc.OnlinecalError as error:
            told = " ".join(str(error).split())
        else:
            told = ""
    print(told)
"""


def test_what_needs_an_extra_says_which(tmp_path):
    (tmp_path / "log.csv").write_text("p,y\n" + "0.2,0\n0.7,1\n0.4,1\n" * 9)
    given = f"LIBRARIES, USES = {LIBRARIES | {'pyarrow'}!r}, {list(DONE)!r}"
    done = subprocess.run(
        [sys.executable, "-c", given + CODE], capture_output=True, text=True, cwd=tmp_path, timeout=300
    )
    assert done.returncode == 0, done.stderr
    for (use, extra), said in zip(DONE.items(), done.stdout.splitlines(), strict=True):
        if extra:
            assert said.endswith(f"install it: pip install 'onlinecal[{extra}]'"), (use, said)
        else:
            assert said == "", use


def test_no_other_library_is_imported_than_those_that_are_installed():
    """All imports of the package, also those in functions: of libraries that the package names, or of an extra."""
    always = {line.split(">")[0] for line in PROJECT["dependencies"]}
    known = sys.stdlib_module_names | always | {"onlinecal"}
    known |= {"markupsafe", "IPython"}  # a part of jinja2, and what notebooks run in
    assert set(EXTRAS) | {"docs", "test"} == set(PROJECT["optional-dependencies"])
    for path in (ROOT / "onlinecal").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            others = {name.partition(".")[0] for name in names} - known
            assert not others or (others <= LIBRARIES and "lacking(" in path.read_text("utf-8")), path
