"""All pictures in one place: each takes (optional) and returns matplotlib axes."""

from onlinecal.report.curve_plot import caption, plot_curve, plot_curves
from onlinecal.report.style import save

__all__ = ["caption", "plot_curve", "plot_curves", "save"]
