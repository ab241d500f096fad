"""All pictures in one place: each is a function that returns a matplotlib figure, and one that returns its data.

>>> import onlinecal as oc
>>> figure = oc.plots.reliability([0.2, 0.2, 0.8, 0.8], [0, 1, 1, 1])
>>> figure.get_label()[:38]
'Point: mean prediction and mean outcom'
>>> oc.plots.reliability_table([0.2, 0.2, 0.8, 0.8], [0, 1, 1, 1]).shape[0]
4

`reliability`, `decision`, `murphy`, `regret` and `witness` draw forecasts of your own: (p, y), predictions first,
a `JointDistribution` or an `Evaluation`. Several are a mapping of labels to these, to (p, y), or to p
beside a common y. `trajectory` draws samples in their order. `classes` and `triangle` draw forecasts of K classes:
p (n, K) and y, or a `ClassDistribution`.

`tasks`, `exponents`, `pareto`, `sweep`, `delays`, `people` and `groups` draw a `Study`. `curves`, `runs` and `slopes`
draw its curves, `world` the rounds of a world.

Samples may have `weights`, and labels of outcomes with `positive`, `negative` and `drop`, as in
`JointDistribution.from_samples`. `from_predictions` has the arguments of scikit-learn's `CalibrationDisplay`.

Beside their own arguments all take

- ``ax``: matplotlib Axes in which a picture of one panel is drawn. Default: a new figure.
- ``title``: of a new figure;
- ``caption``: False for a new figure without it. It is ``figure.get_label()`` in any case.
- ``dark``: whether a new figure is for a dark page.
- ``width``: of a new figure, ``"column"`` (3.4 inches), ``"page"`` (7) or inches. Where panels would be too narrow they
  stand in several lines.
- ``columns``: the most panels beside each other in a new figure.

Figures show themselves in a notebook.
"""

from onlinecal.report.class_plot import classes_table, triangle_table
from onlinecal.report.class_plot import plot_classes as classes
from onlinecal.report.class_plot import plot_triangle as triangle
from onlinecal.report.curve_plot import plot_curves as curves
from onlinecal.report.curve_plot import plot_runs as runs
from onlinecal.report.curve_plot import plot_slopes as slopes
from onlinecal.report.curve_plot import runs_table, slopes_table
from onlinecal.report.decision_plot import decision_table, murphy_table
from onlinecal.report.decision_plot import plot_decision as decision
from onlinecal.report.decision_plot import plot_murphy as murphy
from onlinecal.report.frames import curves_table
from onlinecal.report.groups_plot import groups_table
from onlinecal.report.groups_plot import plot_groups as groups
from onlinecal.report.late_plot import delays_table
from onlinecal.report.late_plot import plot_delays as delays
from onlinecal.report.people import people_table
from onlinecal.report.people import plot_people as people
from onlinecal.report.regret_plot import plot_regret as regret
from onlinecal.report.regret_plot import plot_witness as witness
from onlinecal.report.regret_plot import regret_table, witness_table
from onlinecal.report.reliability_plot import from_predictions, reliability_table
from onlinecal.report.reliability_plot import plot_reliability as reliability
from onlinecal.report.study_plot import exponents_table, pareto_table, tasks_table
from onlinecal.report.study_plot import plot_exponents as exponents
from onlinecal.report.study_plot import plot_pareto as pareto
from onlinecal.report.study_plot import plot_tasks as tasks
from onlinecal.report.style import save
from onlinecal.report.sweep_plot import plot_sweep as sweep
from onlinecal.report.sweep_plot import sweep_table
from onlinecal.report.trajectory_plot import plot_trajectory as trajectory
from onlinecal.report.trajectory_plot import trajectory_table
from onlinecal.report.world_plot import plot_world as world
from onlinecal.report.world_plot import world_table

__all__ = [
    "classes", "classes_table", "curves", "curves_table", "decision", "decision_table", "delays", "delays_table",
    "exponents", "exponents_table", "from_predictions", "groups", "groups_table", "murphy", "murphy_table",
    "pareto", "pareto_table", "people", "people_table", "regret", "regret_table", "reliability",
    "reliability_table", "runs", "runs_table", "save", "slopes", "slopes_table", "sweep", "sweep_table", "tasks",
    "tasks_table", "trajectory", "trajectory_table", "triangle", "triangle_table", "witness", "witness_table",
    "world", "world_table",
]  # fmt: skip
