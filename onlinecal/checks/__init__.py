"""What must hold for every strategy, and every guarantee where it applies."""
