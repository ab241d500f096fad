"""All pictures in one place: each takes (optional) matplotlib axes, returns them, and has a caption.

>>> import onlinecal as oc
>>> ax = oc.plots.reliability([0.2, 0.2, 0.8, 0.8], [0, 1, 1, 1])
>>> oc.plots.captions["reliability"]([0.2, 0.2, 0.8, 0.8], [0, 1, 1, 1])[:31]
'Each point is a level of Γ: acr'

`reliability`, `decision`, `murphy`, `regret` and `witness` draw people's own forecasts: samples (p, y), predictions
first, a `JointDistribution`, what `evaluate` returned, or several by label; `trajectory` draws samples in their order.
`tasks`, `exponents`, `pareto`, `sweep`, `delays` and `people` draw a `Study`; `curves`, `runs` and `slopes` its curves;
`questions` schedules, `world` the rounds of a world.

Beside their own arguments all take

- ``ax``: matplotlib Axes, in the shape that is returned; a flat list if that is a row or a column. Default: those of a
  new figure, which also gets the title, a legend and, below, the caption;
- ``title``: of a new figure;
- ``caption``: False for a new figure without the caption, which is ``figure.get_label()`` in any case;
- ``dark``: whether a new figure is for a dark page;
- ``width``: of a new figure, ``"column"`` (3.4 inches), ``"page"`` (7) or inches; where panels would be too narrow they
  stand in several lines;
- ``columns``: the most panels beside each other in a new figure.

Figures that they make show themselves in a notebook.
"""

from collections.abc import Callable, Sequence
from types import MappingProxyType

from onlinecal.core.progress import showing
from onlinecal.report import curve_plot
from onlinecal.report.curves import Curve
from onlinecal.report.decision_plot import plot_decision, plot_murphy
from onlinecal.report.late_plot import plot_delays, plot_questions
from onlinecal.report.people import plot_people
from onlinecal.report.regret_plot import plot_regret, plot_witness
from onlinecal.report.reliability_plot import plot_reliability
from onlinecal.report.run_plot import plot_runs, plot_slopes
from onlinecal.report.study_plot import plot_exponents, plot_pareto, plot_tasks
from onlinecal.report.style import save
from onlinecal.report.sweep_plot import plot_sweep
from onlinecal.report.trajectory_plot import plot_trajectory
from onlinecal.report.world_plot import plot_world

__all__ = [
    "caption", "captions", "curves", "decision", "delays", "exponents", "murphy", "pareto", "people", "plot_curve",
    "plot_curves", "questions", "regret", "reliability", "runs", "save", "slopes", "sweep", "tasks", "trajectory",
    "witness", "world",
]  # fmt: skip

plot_curve = showing(curve_plot.plot_curve)
curves = plot_curves = showing(curve_plot.plot_curves)
decision = showing(plot_decision)
delays = showing(plot_delays)
exponents = showing(plot_exponents)
murphy = showing(plot_murphy)
pareto = showing(plot_pareto)
people = showing(plot_people)
questions = showing(plot_questions)
regret = showing(plot_regret)
reliability = showing(plot_reliability)
runs = showing(plot_runs)
slopes = showing(plot_slopes)
sweep = showing(plot_sweep)
tasks = showing(plot_tasks)
trajectory = showing(plot_trajectory)
witness = showing(plot_witness)
world = showing(plot_world)

#: picture → its caption, a function of the arguments of the picture
captions: MappingProxyType[str, Callable[..., str]] = MappingProxyType(
    {
        name: globals()[name].caption
        for name in (
            "curves", "decision", "delays", "exponents", "murphy", "pareto", "people", "questions", "regret",
            "reliability", "runs", "slopes", "sweep", "tasks", "trajectory", "witness", "world",
        )
    }
)  # fmt: skip


def caption(drawn: Sequence[Curve], *, power: float = 0.0) -> str:
    """The meaning of the lines in `curves` of these curves, for a figure of one's own."""
    return captions["curves"](drawn, power=power)
