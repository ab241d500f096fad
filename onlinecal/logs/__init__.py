"""People's own forecasts."""
