"""The worst nature among those with parameters, found by an optimiser, for games that are too long to be solved."""

from typing import TYPE_CHECKING, Any

__all__ = ["SPACES", "Found", "search"]

if TYPE_CHECKING:
    from onlinecal.search.spaces import SPACES
    from onlinecal.search.worst import Found, search


def __getattr__(name: str) -> Any:
    if name in __all__:
        from onlinecal.search import spaces, worst

        return getattr(spaces if name == "SPACES" else worst, name)
    raise AttributeError(f"module 'onlinecal.search' has no attribute {name!r}")
