"""Checks that must hold for every strategy, and every guarantee where it applies."""
