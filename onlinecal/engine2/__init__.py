"""The engine by ordinary means: the game in plain Python (`play`), and the same game compiled (`loop`)."""
