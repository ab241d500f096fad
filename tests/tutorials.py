"""Plays a page as its reader would: writes the files that it shows, types its commands, compares what they print.

A fenced block with a title (```` ```toml title="study.toml" ````) is a file. In a `console` block each line after `$ `
is a command, and the lines below it are what it prints, where they are given: white space counts as one space, and
`...` stands for anything. Blocks of Python with `>>>` are doctests, which pytest collects by itself.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.command_line import onlinecal

_FENCE = re.compile(r"^```(\w+)(?: title=\"([\w.]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LIKE = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@dataclass(frozen=True)
class File:
    """A file that the page shows."""

    name: str
    text: str


@dataclass(frozen=True)
class Command:
    """A command, and what it prints; "" where the page does not say."""

    line: str
    prints: str


def steps(page: str) -> Iterator[File | Command]:
    """The steps of the reader, in order.

    Raises
    ------
    ValueError
        A block that nothing would run.
    """
    for language, title, text in _FENCE.findall(page):
        if title:
            yield File(title, text)
        elif language == "console":
            if not text.startswith("$ "):
                raise ValueError(f"a console block begins with a command: {text!r}")
            for command in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                line, _, prints = command.partition("\n")
                yield Command(line, prints)
        elif not (language == "python" and text.startswith(">>> ")):
            raise ValueError(f"a block that nothing runs: {text!r}")


def play(page: str, folder: Path) -> list[tuple[Command, str]]:
    """Does all of it in a folder; returns the commands that failed or printed something else, and what they printed.

    A command of ours alone is played in this process, which costs no imports. What else a shell does is its own.
    """
    tools = folder / ".tools"
    tools.mkdir()
    for name, to in (("onlinecal", "-m onlinecal"), ("python", "")):
        (tools / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {to} "$@"\n')
        (tools / name).chmod(0o755)
    root = str(Path(__file__).parents[1])
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "FORCE_COLOR")}
    environment |= {"PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": root, "MPLBACKEND": "agg"}
    failed = []
    for step in steps(page):
        if isinstance(step, File):
            (folder / step.name).write_text(step.text, encoding="utf-8")
            continue
        if step.line.startswith("onlinecal ") and "||" not in step.line:
            done = onlinecal(
                step.line.removeprefix("onlinecal "), cwd=folder, rc=tuple(range(256)), columns=80
            )
        else:
            done = subprocess.run(
                step.line, shell=True, cwd=folder, env=environment, capture_output=True, encoding="utf-8"
            )
        alike = not step.prints or doctest.OutputChecker().check_output(step.prints, done.stdout, _LIKE)
        if done.returncode or not alike:
            failed.append((step, done.stdout + done.stderr))
    return failed
