"""All pictures in one place: each takes (optional) matplotlib axes, returns them, and has a caption.

>>> import onlinecal as oc
>>> ax = oc.plots.reliability([0.2, 0.2, 0.8, 0.8], [0, 1, 1, 1])
>>> oc.plots.captions["reliability"]([0.2, 0.2, 0.8, 0.8], [0, 1, 1, 1])[:31]
'Each point is a level of Γ: acr'

`reliability`, `decision`, `murphy`, `regret` and `witness` draw people's own forecasts: samples (p, y), predictions
first, a `JointDistribution`, what `evaluate` returned, or several by label; `trajectory` draws samples in their order.
`tasks`, `exponents`, `pareto`, `sweep`, `delays` and `people` draw a `Study`; `curves`, `runs` and `slopes` its curves;
`questions` schedules.
All take ``axes=``, or make a figure with a caption below, for a dark page (``dark=True``) or of some width
(``width="column"``, ``"page"`` or inches). Figures that they make show themselves in a notebook.
"""

from collections.abc import Callable
from types import MappingProxyType

from onlinecal.core.notebook import showing
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
    sweep_plot,
    task_plot,
    trajectory_plot,
    witness_plot,
)
from onlinecal.report.curve_plot import caption
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
    "sweep",
    "tasks",
    "trajectory",
    "witness",
]

plot_curve = showing(curve_plot.plot_curve)
curves = plot_curves = showing(curve_plot.plot_curves)
decision = showing(decision_plot.plot_decision)
delays = showing(late_plot.plot_delays)
exponents = showing(exponent_plot.heat_map)
murphy = showing(murphy_plot.plot_murphy)
pareto = showing(pareto_plot.plot_pareto)
people = showing(people_plot.plot_people)
questions = showing(question_plot.plot_questions)
regret = showing(regret_plot.plot_regret)
reliability = showing(reliability_plot.plot_reliability)
runs = showing(run_plot.plot_runs)
slopes = showing(slope_plot.plot_slopes)
sweep = showing(sweep_plot.plot_sweep)
tasks = showing(task_plot.plot_tasks)
trajectory = showing(trajectory_plot.plot_trajectory)
witness = showing(witness_plot.plot_witness)

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
        "sweep": sweep_plot.caption,
        "tasks": task_plot.caption,
        "trajectory": trajectory_plot.caption,
        "witness": witness_plot.caption,
    }
)
