"""Pictures below a cell of a notebook, and HTML there that changes."""

from __future__ import annotations

import functools
import io
import sys
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")


def in_notebook() -> bool:
    """Whether the code runs in a cell of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


def showing(plot: Callable[_P, _T]) -> Callable[_P, _T]:
    """A function that returns axes, and in a notebook shows the figure that it has made for them."""

    @functools.wraps(plot)
    def shown(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        axes = plot(*args, **kwargs)
        if in_notebook() and kwargs.get("axes") is None and kwargs.get("ax") is None:
            made: Any = axes
            show((made.flat[0] if hasattr(made, "flat") else made).figure)
        return axes

    return shown


def show(figure: Any) -> None:
    """Shows a figure of matplotlib below the cell, whatever backend there is."""
    from IPython.display import Image, display

    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=figure.dpi)
    display(Image(data=file.getvalue(), width=round(figure.get_figwidth() * 100)))


class Spot:
    """A place below the cell with HTML that changes."""

    def __init__(self) -> None:
        from IPython.display import HTML, display

        self._html = HTML
        self._handle = display(HTML(""), display_id=True)

    def put(self, html: str) -> None:
        """Replaces the HTML."""
        self._handle.update(self._html(html))
