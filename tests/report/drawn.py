"""What a picture shows: the points that its artists are drawn through, its panels, and the places of its texts."""

from collections import Counter
from itertools import combinations

import numpy as np
from matplotlib.collections import PathCollection
from matplotlib.colors import is_color_like, to_rgba
from matplotlib.spines import Spine
from matplotlib.text import Text

#: what an artist looks like, by the names that matplotlib gives
LOOKS = (
    "alpha", "array", "color", "edgecolor", "facecolor", "figheight", "figwidth", "fontsize", "horizontalalignment",
    "linestyle", "linewidth", "marker", "markeredgewidth", "markerfacecolor", "markersize", "markevery", "offsets",
    "path", "paths", "position", "rotation", "sizes", "text", "verticalalignment", "xlim", "ylim", "zorder",
)  # fmt: skip


def points(axis):
    """Each point through which something is drawn, in the units of the axes."""
    found = [line.get_xydata() for line in axis.lines if line.get_transform() is axis.transData]
    for each in axis.collections:
        several = isinstance(each, PathCollection)
        found += [each.get_offsets()] if several else [path.vertices for path in each.get_paths()]
    return rounded(*found)


def rounded(*found):
    """The finite points of some arrays, as a set."""
    every = np.concatenate([np.empty((0, 2)), *(np.asarray(each, float).reshape(-1, 2) for each in found)])
    return {*map(tuple, (np.round(every[np.isfinite(every).all(axis=1)], 9) + 0.0).tolist())}


def of_table(part, shown):
    """The points of a table: mark ("" for all rows) → pairs of its columns, or of numbers."""
    found = []
    for mark, pairs in shown.items():
        rows = part[part["mark"] == mark] if mark else part
        column = {name: rows[name].to_numpy() for name in rows}
        found += [
            np.stack([column[each] if isinstance(each, str) else np.full(len(rows), each) for each in pair], axis=1)
            for pair in pairs
        ]  # fmt: skip
    return rounded(*found)


def panels(fig, lines=1):
    """The panels in the order of reading, each a list of this number of axes, one below the other."""
    found = {}
    for row, column, axis in sorted(
        ((at.rowspan.start, at.colspan.start, axis) for axis in fig.axes if (at := axis.get_subplotspec())),
        key=lambda each: each[:2],
    ):
        found.setdefault((row // lines, column), []).append(axis)
    return [*found.values()]


def said(axis):
    """The heading of a panel, in one line, without the signs that keep it from being mathematics."""
    return in_one_line(axis.get_title().replace(r"\$", "$"))


def title(fig):
    """The line of the title, in a legend where there is one."""
    return in_one_line(fig.legends[0].get_title().get_text() if fig.legends else fig.get_suptitle())


def in_one_line(text):
    return " ".join(str(text).split())


def texts(fig):
    """Each text of a picture, laid out, that is seen; labels of ticks beyond the ends of their axis are not."""
    fig.draw_without_rendering()
    fig.set_layout_engine("none")
    beyond = set()
    for axis in (each for axes in fig.axes for each in (axes.xaxis, axes.yaxis)):
        low, high = sorted(axis.get_view_interval())
        ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
        beyond |= {tick.label1 for tick in ticks if not low <= tick.get_loc() <= high}
    return [
        text for text in fig.findobj(Text)
        if text.get_visible() and text.get_text().strip() and text not in beyond
    ]  # fmt: skip


def outside(fig, seen):
    """Those of some texts that are not whole in the figure, but for a point of its border."""
    page = fig.bbox.padded(1)
    boxes = [(text.get_text(), text.get_window_extent()) for text in seen]
    return [text for text, box in boxes if not (page.contains(*box.min) and page.contains(*box.max))]


def overlapping(seen):
    """Pairs of texts that are drawn over each other by more than a point."""
    boxes = [(text.get_text(), text.get_window_extent()) for text in seen]
    return [
        (one, other) for (one, a), (other, b) in combinations(boxes, 2)
        if min(a.x1, b.x1) - max(a.x0, b.x0) > 1 and min(a.y1, b.y1) - max(a.y0, b.y0) > 1
    ]  # fmt: skip


def looks(fig):
    """What all but spines and ticks look like: of each property a sum, by the order of artists of a kind.

    Of a text the number of its lines counts. Later numbers of a property count more than earlier ones, up to twice, so
    that what changes on both sides is seen.
    """
    ticks = {part for axes in fig.axes for axis in (axes.xaxis, axes.yaxis) for part in axis.findobj()}
    of_kind, found = Counter(), Counter()
    artists = fig.findobj(lambda each: each not in ticks and not isinstance(each, Spine))
    boxes = [each.get_bbox_patch() for each in artists if isinstance(each, Text)]
    for artist in [*artists, *filter(None, boxes)]:
        of_kind[type(artist)] += 1
        for name in LOOKS:
            value = getattr(artist, f"get_{name}", lambda: None)()
            numbers = [value.count("\n")] if name == "text" and value else [*_numbers(value)]
            found[name] += (10 + of_kind[type(artist)]) * (np.linspace(1.0, 2.0, len(numbers)) @ numbers)
    return [float(found[name]) for name in LOOKS]


def _numbers(value):
    """The finite numbers of a property; those of a colour, and of the letters of another word."""
    value = getattr(value, "vertices", getattr(value, "bounds", value))  # of a path, or of a box
    if isinstance(value, str):
        value = to_rgba(value) if is_color_like(value) else [*map(ord, value)]
    if np.iterable(value):
        for each in np.ma.filled(value, 0.0) if isinstance(value, np.ndarray) else value:
            yield from _numbers(each)
    elif value is not None and np.isfinite(value):
        yield float(value)
