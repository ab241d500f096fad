"""Errors of players: they are of the new engine, which takes this folder's place."""

from onlinecal.engine2.law import Unplayable, brief, failed, is_scalar, law_of, summed

__all__ = ["Unplayable", "brief", "failed", "is_scalar", "law_of", "summed"]
