"""Recalibration of forecasts on a stream: each is mended by what was known before it, and by nothing else."""
