"""The picture of moves beside clients: throughput and throttle above, the latency of the clients' writes below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bench.plot import STYLE
from bench.protect import PROTECTED, UNTHROTTLED

_COPIED: Final = {"color": "#1f6feb", "linewidth": 1.2, "label": "throughput of the copies"}
_THROTTLE: Final = {"color": "#b35900", "linewidth": 1.2, "linestyle": "--", "label": "throttle"}
_LATENCY: Final = {"color": "#24292f", "marker": ".", "markersize": 3, "linestyle": "", "label": "p99 of a second"}
_LIMIT: Final = {"color": "#cf222e", "linewidth": 1.0, "label": "1.5 x the baseline of this load"}
_MEGA: Final = 1e6


def draw(rows: Sequence[Mapping[str, Any]], file: Path) -> None:
    """Draw the moves without a throttle, with the best fixed throttle, and with each kind of `--protect`, as SVG into
    `file`."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    words = (UNTHROTTLED, *PROTECTED)
    shown = [row for row in rows if row["name"] in words or row["best"]]
    with matplotlib.rc_context(STYLE):
        figure, axes = pyplot.subplots(
            2,
            len(shown),
            figsize=(3.4 * len(shown), 4.6),
            sharex=True,
            sharey="row",
            squeeze=False,
            layout="constrained",
        )
        for number, row in enumerate(shown):
            name = row["name"] if row["name"] in words else f"throttle {row['name']}"
            axes[0][number].set_title(f"{name}: {row['seconds']:.0f} s, {row['share']:.0%} fast", fontsize=9)
            _rates(axes[0][number], row)
            _latencies(axes[1][number], row)
            axes[1][number].set(xlabel="seconds", yscale="log")
        axes[0][0].set_ylabel("MB/s")
        axes[1][0].set_ylabel("ms")
        handles = {h.get_label(): h for panel in axes.flat for h in panel.get_legend_handles_labels()[0]}
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=len(handles))
        figure.savefig(file, metadata={"Date": None})
        pyplot.close(figure)


def _rates(panel: Any, row: Mapping[str, Any]) -> None:
    readings = [one for one in row["readings"] if one["throughput"] is not None]
    panel.plot([one["seconds"] for one in readings], [one["throughput"] / _MEGA for one in readings], **_COPIED)
    if row["throttle"] is None:
        return
    changes = row["changes"]
    rates = [changes[0]["from"] if changes else row["throttle"], *(one["to"] for one in changes)]
    times = [0.0, *(one["seconds"] for one in changes), row["seconds"]]
    panel.step(times, [rate / _MEGA for rate in (*rates, rates[-1])], where="post", **_THROTTLE)


def _latencies(panel: Any, row: Mapping[str, Any]) -> None:
    times = [one["second"] - row["began"] for one in row["clients"]]
    panel.plot(times, [one["p99"] * 1_000 for one in row["clients"]], **_LATENCY)
    limits = [row["limits_seconds"][str(int(one["written"]))] * 1_000 for one in row["clients"]]
    panel.step(times, limits, where="mid", **_LIMIT)
