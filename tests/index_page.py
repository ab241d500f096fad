"""README.md as the description of the package: what a package index shows, alone, without the files of the repository.

Where pyproject.toml names the repository, under `[project.urls]` as `Repository`, links and pictures of files lead
there. Else links become their text, and pictures say where they are. Hatchling runs this for every wheel and sdist, by
its path, so nothing of the project is imported.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

#: a block or span of code, which holds no links, or a link: its text may hold brackets and code
_PART = re.compile(
    r"^(?P<fence>```+|~~~+).*?^(?P=fence)|(?P<tick>`+)(?!`).+?(?<!`)(?P=tick)(?!`)"
    r"|(?P<picture>!?)\[(?P<words>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^)\s]+)\)",
    re.DOTALL | re.MULTILINE,
)


def links(text: str) -> list[str]:
    """Where links and pictures of a page lead."""
    return [found["target"] for found in _PART.finditer(text) if found["target"]]


def alone(text: str, repository: str, *, links: str, pictures: str) -> str:
    """A page as it can be read without the files that it links to; addresses and links within the page stay.

    Parameters
    ----------
    text : str
        In Markdown.
    repository : str
        Its address, or "" where it is not known.
    links, pictures : str
        Where the repository has a file as a page and as it is, with ``{repository}`` and ``{file}``.

    Examples
    --------
    >>> page = "![a](docs/a.png) [b](docs/b.md#c) [d](https://d.org) [e](#f)"
    >>> where = {"links": "{repository}/page/{file}", "pictures": "{repository}/raw/{file}"}
    >>> alone(page, "https://host/us", **where)
    '![a](https://host/us/raw/docs/a.png) [b](https://host/us/page/docs/b.md#c) [d](https://d.org) [e](#f)'
    >>> alone(page, "", **where)
    '*Picture, docs/a.png in the repository: a.* b [d](https://d.org) [e](#f)'
    """

    def placed(found: re.Match[str]) -> str:
        words, target = found["words"], found["target"]
        if target is None or target.startswith("#") or re.match(r"[A-Za-z][\w+.-]*:", target):
            return found[0]
        if repository:
            pattern = pictures if found["picture"] else links
            there = pattern.format(repository=repository.rstrip("/"), file=target.removeprefix("./"))
            return f"{found['picture']}[{words}]({there})"
        return f"*Picture, {target} in the repository: {words}.*" if found["picture"] else words

    return _PART.sub(placed, text)


class IndexPage(MetadataHookInterface):
    """Puts the description into the metadata of the package."""

    def update(self, metadata: dict[str, Any]) -> None:
        """README.md as `alone` writes it."""
        text = Path(self.root, "README.md").read_text("utf-8")
        repository = metadata.get("urls", {}).get("Repository", "")
        where = {kind: self.config[kind] for kind in ("links", "pictures")}
        metadata["readme"] = {"content-type": "text/markdown", "text": alone(text, repository, **where)}
