"""The game in plain Python (`play`), and the same game compiled (`loop`)."""
