"""The plot of cost against size: one panel for each command, logarithmic axes, medians and spread of the rounds."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

_OURS: Final = {"color": "#1f6feb", "marker": "o", "label": "kquota"}
_THEIRS: Final = {"color": "#b35900", "marker": "s", "linestyle": "--", "label": "Kafka's tool"}
_ESTIMATED: Final = {**_THEIRS, "marker": "x", "linestyle": ":", "label": "Kafka's tool, one call x size"}
STYLE: Final[dict[Any, object]] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "kquota",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}


def draw(rows: Sequence[Mapping[str, Any]], file: Path) -> None:
    """Draw the rows of the part `curve` as SVG into `file`."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot
    from matplotlib.ticker import FuncFormatter

    commands = list(dict.fromkeys(row["command"] for row in rows))
    with matplotlib.rc_context(STYLE):
        figure, axes = pyplot.subplots(
            1, len(commands), figsize=(2.3 * len(commands), 2.9), sharey=True, layout="constrained"
        )
        for panel, command in zip(axes, commands, strict=True):
            points = [row for row in rows if row["command"] == command]
            _line(panel, points, "ours", _OURS)
            theirs = [row for row in points if row["theirs"]]
            if theirs:
                _line(panel, theirs, "theirs", _ESTIMATED if theirs[0]["estimated"] else _THEIRS)
            panel.set(xscale="log", yscale="log", xlabel=points[0]["of"])
            panel.set_title(command, fontsize=9)
            panel.grid(alpha=0.3, which="major")
            panel.xaxis.set_major_formatter(FuncFormatter(lambda size, _: _short(size)))
            panel.yaxis.set_major_formatter(FuncFormatter(lambda seconds, _: f"{seconds:g}"))
            panel.minorticks_off()
        axes[0].set_ylabel("seconds")
        # Several panels have the same labels, and the legend shows each label once.
        handles = {h.get_label(): h for panel in axes for h in panel.get_legend_handles_labels()[0]}
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=len(handles))
        figure.savefig(file, metadata={"Date": None})
        pyplot.close(figure)


def _line(panel: Any, rows: Sequence[Mapping[str, Any]], whose: str, style: Mapping[str, Any]) -> None:
    middle = [statistics.median(row[whose]) for row in rows]
    below = [m - min(row[whose]) for m, row in zip(middle, rows, strict=True)]
    above = [max(row[whose]) - m for m, row in zip(middle, rows, strict=True)]
    panel.errorbar([row["size"] for row in rows], middle, yerr=(below, above), markersize=4, linewidth=1.4, **style)


def _short(size: float) -> str:
    if size >= 1e6:
        return f"{size / 1e6:g}M"
    return f"{size / 1e3:g}k" if size >= 1e3 else f"{size:g}"
