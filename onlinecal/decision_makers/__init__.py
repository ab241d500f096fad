"""Those who act on forecasts."""
