"""The engine: a forecaster and a nature meet round by round."""
