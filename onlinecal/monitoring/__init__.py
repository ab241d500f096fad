"""Watching forecasts as their outcomes become known: a test of calibration that may be looked at at any time."""
