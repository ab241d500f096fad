"""All pictures in one place: each takes (optional) matplotlib axes, returns them, and has a caption.

>>> import onlinecal as oc
>>> ax = oc.plots.reliability([0.2, 0.2, 0.8, 0.8], [0, 1, 1, 1])
>>> oc.plots.captions["reliability"]([0.2, 0.2, 0.8, 0.8], [0, 1, 1, 1])[:31]
'Each point is a level of Γ: acr'

`reliability`, `decision`, `murphy`, `regret` and `witness` draw people's own forecasts: samples (p, y), predictions
first, a `JointDistribution`, what `evaluate` returned, or several by label; `trajectory` draws samples in their order.
`tasks`, `exponents`, `pareto`, `delays` and `people` draw a `Study`; `curves`, `runs` and `slopes` its curves;
`questions` schedules.
All take ``axes=``, or make a figure with a caption below, for a dark page (``dark=True``) or of some width
(``width="column"``, ``"page"`` or inches).
"""

from collections.abc import Callable
from types import MappingProxyType

from onlinecal.report import (
    curve_plot,
    decision_plot,
    exponent_plot,
    late_plot,
    murphy_plot,
    pareto_plot,
    people_plot,
    question_plot,
    regret_plot,
    reliability_plot,
    run_plot,
    slope_plot,
    task_plot,
    trajectory_plot,
    witness_plot,
)
from onlinecal.report.curve_plot import caption, plot_curve, plot_curves
from onlinecal.report.style import save

__all__ = [
    "caption",
    "captions",
    "curves",
    "decision",
    "delays",
    "exponents",
    "murphy",
    "pareto",
    "people",
    "plot_curve",
    "plot_curves",
    "questions",
    "regret",
    "reliability",
    "runs",
    "save",
    "slopes",
    "tasks",
    "trajectory",
    "witness",
]

curves = plot_curves
decision = decision_plot.plot_decision
delays = late_plot.plot_delays
exponents = exponent_plot.heat_map
murphy = murphy_plot.plot_murphy
pareto = pareto_plot.plot_pareto
people = people_plot.plot_people
questions = question_plot.plot_questions
regret = regret_plot.plot_regret
reliability = reliability_plot.plot_reliability
runs = run_plot.plot_runs
slopes = slope_plot.plot_slopes
tasks = task_plot.plot_tasks
trajectory = trajectory_plot.plot_trajectory
witness = witness_plot.plot_witness

#: picture → its caption, a function of what is drawn
captions: MappingProxyType[str, Callable[..., str]] = MappingProxyType(
    {
        "curves": curve_plot.caption,
        "decision": decision_plot.caption,
        "delays": late_plot.caption,
        "exponents": exponent_plot.caption,
        "murphy": murphy_plot.caption,
        "pareto": pareto_plot.caption,
        "people": people_plot.caption,
        "questions": question_plot.caption,
        "regret": regret_plot.caption,
        "reliability": reliability_plot.caption,
        "runs": run_plot.caption,
        "slopes": slope_plot.caption,
        "tasks": task_plot.caption,
        "trajectory": trajectory_plot.caption,
        "witness": witness_plot.caption,
    }
)
