"""Count manners of docstrings and comments that the project avoids, by room: ``python -m tests.words``.

``--write`` lowers the numbers on record to those of now, and raises none.
"""

import ast
import io
import re
import sys
import textwrap
import tokenize
from collections import Counter
from pathlib import Path

import onlinecal

HOME = Path(onlinecal.__file__).parent

MANNERS = {
    "opening What": re.compile(r"\AWhat\b"),
    "so many": re.compile(r"\bso (?:many|much)\b", re.I),
    "who": re.compile(r"\b(?:who|whose|whom|whoever|somebody|nobody|anybody|everybody)\b", re.I),
    "anew": re.compile(r"\banew\b", re.I),
    "is none": re.compile(r"\b(?:is|are) none\b(?! of)", re.I),
}
#: a verb or a sign that stands for one; the endings of verbs
VERB = re.compile(
    r"(?i)\b(?:be|can|do|go|may|must|see|will|would|give|take|keep|\w+(?:s|ed|t|ve))\b|[=≤≥→↦:]"
)
#: examples, types of parameters, and the lines under headings
NO_PROSE = re.compile(r"^ *(?:>>>|\.\.\.).*\n(?: *\S.*\n?)*|^ *[\w, *]+ :.*$|^ *[-=]{3,}$", re.M)
LONGEST = 20

#: room → the most cases; it only falls
RECORD = dict(  # noqa: C408
    checks=39, commands=4, core=85, decision_makers=9, decisions=43, engine=103, exact=35, exploit=8, face=17,
    forecasters=168, forecasts=165, growth=19, measures=428, monitoring=75, natures=69, recalibration=56,
    report=403, rounds=71, scenario=4, schedules=6, search=3, study=237, sweeping=3,
)  # fmt: skip


def texts(source):
    """Docstrings and comments of a file; neighbouring lines of comments are one."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (
            text := ast.get_docstring(node)
        ):
            yield text
    block, last = [], 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not re.match(r"# (?:fmt|type|noqa)|#!|# -", token.string):
            if token.start[0] != last + 1 and block:
                yield " ".join(block)
                block = []
            block.append(token.string.lstrip("#: "))
            last = token.start[0]
    yield " ".join(block)


def sentences(text):
    """The sentences of a text; a name in backticks is one word."""
    for paragraph in re.split(r"\n\s*\n", re.sub(r"`+[^`]*`+", "code", text)):
        yield from filter(None, re.split(r"(?<=[.!?])\s+(?=[A-ZΓ])", " ".join(paragraph.split())))


def manners(source):
    """Manner → the number of its cases in a file."""
    found = Counter()
    for text in (NO_PROSE.sub("", text) for text in texts(source)):
        found.update({name: len(pattern.findall(text)) for name, pattern in MANNERS.items()})
        for i, sentence in enumerate(sentences(text)):
            words = re.findall(r"[^\W\d_][\w'’-]*", sentence)
            found["long"] += len(words) > LONGEST
            found["no verb"] += (
                i > 0 and len(words) > 2 and sentence.endswith(".") and not VERB.search(sentence)
            )
    return found


def rooms():
    """Room → the counts of its manners."""
    found = {}
    for file in sorted(HOME.rglob("*.py")):
        room = file.relative_to(HOME).parts[0].removesuffix(".py")
        found.setdefault(room, Counter()).update(manners(file.read_text("utf-8")))
    return found


def main():
    found = rooms()
    kinds = [*MANNERS, "long", "no verb"]
    print(f"{'':16}" + "".join(f"{kind:>14}" for kind in [*kinds, "all", "on record"]))
    for room, counts in found.items():
        numbers = [*(counts[kind] for kind in kinds), counts.total(), RECORD.get(room, 0)]
        print(f"{room:16}" + "".join(f"{number:14}" for number in numbers))
    if "--write" in sys.argv:
        kept = {room: min(counts.total(), RECORD.get(room, sys.maxsize)) for room, counts in found.items()}
        lines = textwrap.wrap(" ".join(f"{room}={number}," for room, number in kept.items() if number), 112)
        table = "RECORD = dict(  # noqa: C408\n    " + "\n    ".join(lines) + "\n)  # fmt: skip\n"
        text = Path(__file__).read_text("utf-8")
        Path(__file__).write_text(re.sub(r"^RECORD = .*?skip\n", table, text, flags=re.M | re.S), "utf-8")


if __name__ == "__main__":
    main()
