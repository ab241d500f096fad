"""All pictures in one place: each takes (optional) matplotlib axes, returns them, and has a caption.

>>> import onlinecal as oc
>>> ax = oc.plots.reliability([0.2, 0.2, 0.8, 0.8], [0, 1, 1, 1])
>>> oc.plots.captions["reliability"]([0.2, 0.2, 0.8, 0.8], [0, 1, 1, 1])[:31]
'Each point is a level of Γ: hor'

`reliability`, `decision`, `murphy`, `regret` and `witness` draw forecasts of your own: (p, y), predictions first,
a `JointDistribution` or an `Evaluation`. Several are a mapping of labels to these, to (p, y), or to p
beside a common y. `trajectory` draws samples in their order.

`tasks`, `exponents`, `pareto`, `sweep`, `delays` and `people` draw a `Study`. `curves`, `runs` and `slopes` draw its
curves, `questions` schedules, `world` the rounds of a world.

Beside their own arguments all take

- ``ax``: matplotlib Axes, in the shape that is returned; a flat list if that is a row or a column. Default: a new
  figure with title, legend and caption.
- ``title``: of a new figure;
- ``caption``: False for a new figure without it. It is ``figure.get_label()`` in any case.
- ``dark``: whether a new figure is for a dark page.
- ``width``: of a new figure, ``"column"`` (3.4 inches), ``"page"`` (7) or inches. Where panels would be too narrow they
  stand in several lines.
- ``columns``: the most panels beside each other in a new figure.

Figures that they make show themselves in a notebook.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from onlinecal.report.curve_plot import plot_curves as curves
from onlinecal.report.decision_plot import plot_decision as decision
from onlinecal.report.decision_plot import plot_murphy as murphy
from onlinecal.report.late_plot import plot_delays as delays
from onlinecal.report.late_plot import plot_questions as questions
from onlinecal.report.people import plot_people as people
from onlinecal.report.regret_plot import plot_regret as regret
from onlinecal.report.regret_plot import plot_witness as witness
from onlinecal.report.reliability_plot import plot_reliability as reliability
from onlinecal.report.run_plot import plot_runs as runs
from onlinecal.report.run_plot import plot_slopes as slopes
from onlinecal.report.study_plot import plot_exponents as exponents
from onlinecal.report.study_plot import plot_pareto as pareto
from onlinecal.report.study_plot import plot_tasks as tasks
from onlinecal.report.style import save
from onlinecal.report.sweep_plot import plot_sweep as sweep
from onlinecal.report.trajectory_plot import plot_trajectory as trajectory
from onlinecal.report.world_plot import plot_world as world

__all__ = [
    "captions", "curves", "decision", "delays", "exponents", "murphy", "pareto", "people", "questions", "regret",
    "reliability", "runs", "save", "slopes", "sweep", "tables", "tasks", "trajectory", "witness", "world",
]  # fmt: skip

_PICTURES: Mapping[str, Any] = {
    name: globals()[name] for name in __all__ if hasattr(globals().get(name), "picture")
}
#: picture → its caption, and its data as a table: functions of the arguments of the picture
captions: Mapping[str, Callable[..., str]] = MappingProxyType(
    {n: plot.caption for n, plot in _PICTURES.items()}
)
tables: Mapping[str, Callable[..., Any]] = MappingProxyType({n: plot.table for n, plot in _PICTURES.items()})
