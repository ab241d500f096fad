"""What everything stands on: Γ, randomness, errors, checks of what is given, expressions in T, guarantees as data."""
