"""What MkDocs does beside what it does by itself: the page of commands is made from the command line."""

from __future__ import annotations

from typing import Any

PLACE = "<!-- the help of every command stands here in the site -->"


def helps() -> str:
    """A section for each command, with its help as a terminal of 100 columns shows it."""
    import typer
    from typer.testing import CliRunner

    from onlinecal.cli import app

    runner, parts = CliRunner(), []
    for name in typer.main.get_command(app).commands:  # type: ignore[attr-defined]
        said = runner.invoke(
            app, [name, "--help"], prog_name="onlinecal", env={"COLUMNS": "100"}, terminal_width=100
        )
        assert said.exit_code == 0, said.output
        parts.append(f"## {name}\n\n```text\n{said.output.strip()}\n```")
    return "\n\n".join(parts)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by MkDocs for each page."""
    return markdown.replace(PLACE, helps()) if PLACE in markdown else markdown
