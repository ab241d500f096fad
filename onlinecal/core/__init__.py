"""The base of all rooms: Γ, randomness, errors, checks of what is given, expressions in T, guarantees as data."""
