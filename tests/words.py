"""Counts manners of docstrings and comments that the project avoids, by room: ``python -m tests.words``."""

import ast
import re
from collections import Counter
from pathlib import Path

import onlinecal

HOME, TESTS = Path(onlinecal.__file__).parent, Path(__file__).parent
#: a word, which no symbol of a formula is; and the end of a sentence
WORD = re.compile(r"(?<![\w'’-])(?:[^\W\d_][^\W\d_'’-]*[^\W\d_]|a)(?![\w'’])")
STOP = re.compile(r"[.!?]\s|\n\s*\n")
MANNERS = {
    "opening What": re.compile(r"\AWhat\b"),
    "so many": re.compile(r"\bso (?:many|much)\b", re.I),
    "who": re.compile(r"\b(?:who|whose|whom|whoever|somebody|nobody|anybody|everybody)\b", re.I),
    "anew": re.compile(r"\banew\b", re.I),
    "is none": re.compile(r"\b(?:is|are) none\b(?! of)", re.I),
}
#: what is no prose: examples, types of parameters, lines under headings, code in backticks
NO_PROSE = re.compile(r"^ *(?:>>>|\.\.\.).*\n(?: *\S.*\n?)*|^ *[\w, *]+ :.*$|^ *[-=]{3,}$|`+[^`]*`+", re.M)


def manners(source):
    """Manner → the number of its cases in the docstrings and comments of a file."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef
    texts = [ast.get_docstring(node) or "" for node in ast.walk(ast.parse(source)) if isinstance(node, kinds)]
    texts += [
        re.sub(r"\n *#:? ?", "\n", found)
        for found in re.findall(r"(?:^ *#:? (?!fmt|noqa|-).*\n)+", source, re.M)
    ]
    found = Counter()
    for text in (NO_PROSE.sub("code", text).lstrip(" #:") for text in texts):
        found.update({name: len(pattern.findall(text)) for name, pattern in MANNERS.items()})
        found["long"] += sum(len(WORD.findall(sentence)) > 20 for sentence in STOP.split(text))
    return found


def rooms():
    """Room, or tests of one → the counts of its manners."""
    found = {}
    for home in (HOME, TESTS):
        for file in sorted(home.rglob("*.py")):
            room = f"{home.name}/{file.relative_to(home).parts[0].removesuffix('.py')}"
            found.setdefault(room, Counter()).update(manners(file.read_text("utf-8")))
    return found


if __name__ == "__main__":
    for room, counts in rooms().items():
        print(f"{room:32} {counts.total():5}", dict(+counts))
