"""What `onlinecal show` says of what users wrote is what they said of it, and nothing else."""

import sys

import pytest

from onlinecal.report.catalogue import entry
from onlinecal.report.console import print_entry

OWN = """
from functools import partial
from onlinecal.forecasters import Constant
class Silent:
    def __init__(self, weight=1.0): self.weight = weight
    def forecast(self): return 0.5
    def update(self, forecast, outcome): pass
class Said(Silent):
    "Says 1/2."
class Derived(Constant): pass
silent, said = partial(Silent, 2.0), partial(partial(Said), weight=2.0)
made = Said(3.0)
def make(weight=1.0):
    "Makes one."
    return Said(weight)
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """The name of a module that has `OWN`."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "catalogue_own.py").write_text(OWN)
    sys.path.insert(0, str(folder))
    yield "catalogue_own"
    sys.path.remove(str(folder))


@pytest.mark.parametrize(
    ("name", "documentation"),
    [
        ("Silent", ""), ("silent", ""), ("Derived", ""),
        ("Said", "Says 1/2."), ("said", "Says 1/2."), ("made", "Says 1/2."), ("make", "Makes one."),
    ],
)  # fmt: skip
def test_a_docstring_is_its_own(own, capsys, name, documentation):
    """Not that of the class it derives from, which may do something else, nor that of `partial`."""
    found = entry(f"{own}:{name}")
    assert found["documentation"] == documentation
    print_entry(found, as_json=False)
    assert (documentation or "It has no docstring.") in capsys.readouterr().out
