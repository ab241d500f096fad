"""The README says what the code says, and every source of a measure can be looked up."""

import re

import pytest

from onlinecal.measures import MEASURES
from onlinecal.report.catalogue import REFERENCES
from tests.readme import GENERATED, README, block


@pytest.mark.parametrize("name", GENERATED)
def test_generated_parts_are_up_to_date(name):
    text = README.read_text(encoding="utf-8")
    assert block(text, name) == GENERATED[name](), "run python -m tests.readme"


@pytest.mark.parametrize("measure", MEASURES.values(), ids=lambda m: m.name)
def test_every_record_is_complete_and_its_source_is_listed(measure):
    for part in measure.source.split("; "):
        key = re.fullmatch(r"(\w+)( .*)?", part).group(1)
        assert key in REFERENCES
    for said in (measure.symbol, measure.complexity, measure.continuous, measure.complete, measure.sound):
        assert said
    for said in (measure.continuous, measure.complete, measure.sound):
        assert said.startswith(("yes", "no", "as ω", "1/2-Hölder"))


def test_no_reference_is_idle():
    cited = {re.match(r"\w+", part).group() for m in MEASURES.values() for part in m.source.split("; ")}
    assert cited == set(REFERENCES)


#: what of the tests the texts and docstrings name
NAMED = sorted(
    {
        (str(file.relative_to(README.parent)), named)
        for file in (
            *README.parent.glob("*.md"),
            *README.parent.glob("docs/*.md"),
            *README.parent.glob("scenarios/*.md"),
            *README.parent.glob("onlinecal/**/*.py"),
            *README.parent.glob("tests/**/*.py"),
        )
        for named in re.findall(
            r"\btests(?:/\w+)+(?:\.\w+|/)|python -m tests(?:\.\w+)+", file.read_text("utf-8")
        )
    }
)


@pytest.mark.parametrize(("file", "named"), NAMED)
def test_what_is_named_of_the_tests_is_there(file, named):
    if named.startswith("python -m "):
        named = named.removeprefix("python -m ").replace(".", "/") + ".py"
    assert (README.parent / named).exists(), f"{file} names {named}"
