"""Decision makers: responses to forecasts, tenures and accounts."""
