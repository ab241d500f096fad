"""The commands, a file for what belongs together; `cli` puts them together."""
