"""The worst nature among those with parameters, found by an optimiser, for games that are too long to be solved."""

from onlinecal.search.spaces import SPACES
from onlinecal.search.worst import Found, search

__all__ = ["SPACES", "Found", "search"]
