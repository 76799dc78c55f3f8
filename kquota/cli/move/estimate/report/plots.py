"""The plots of a report: SVG with the colors and the font of the page. The same numbers give the same SVG."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from kquota.cli.contract import not_installed
from kquota.cli.move.estimate.report.curve import ThrottleCurve
from kquota.measure import human_bytes, human_duration, human_rate
from kquota.pace.share import Share, Side
from kquota.pace.uncertainty import Band
from kquota.sizes.replica import BrokerBytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# matplotlib writes colors as numbers, so these are placeholders. `_plot` replaces them with the colors of the page,
# which depend on its light or dark scheme.
_INK, _FAINT, _GRID = "#000001", "#000002", "#000003"
_FIRST, _SECOND, _THIRD, _STOP = "#000004", "#000005", "#000006", "#000007"
_OF_THE_PAGE: Final = {
    _INK: "var(--ink)",
    _FAINT: "var(--faint)",
    _GRID: "var(--rule)",
    _FIRST: "var(--first)",
    _SECOND: "var(--second)",
    _THIRD: "var(--third)",
    _STOP: "var(--stop)",
}
_STYLE: Final[dict[Any, object]] = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.size": 9,
    "text.color": _INK,
    "axes.edgecolor": _FAINT,
    "axes.labelcolor": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": _GRID,
    "grid.linewidth": 0.6,
    "xtick.color": _FAINT,
    "xtick.labelcolor": _INK,
    "ytick.color": _FAINT,
    "ytick.labelcolor": _INK,
    "hatch.color": _STOP,
    "hatch.linewidth": 0.5,
    "legend.frameon": False,
    "legend.handlelength": 1.6,
}
_INCHES: Final = (7.2, 2.7)
_FEW: Final = 6
_MANY: Final = 20
_SECONDS: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)
_DASHES: Final = ((0, (6, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)), (0, (3, 1, 1, 1, 1, 1)))


def must_be_installed() -> None:
    """Raise Refused if a library that the page needs is not installed."""
    if missing := [name for name in ("jinja2", "matplotlib") if find_spec(name) is None]:
        raise not_installed("--report", " and ".join(missing), "report")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """An SVG plot for a page."""

    title: str
    """The title, also for screen readers."""
    view: str
    """The viewBox of the SVG."""
    drawn: str
    """The elements of the SVG."""


def stored(held: Sequence[BrokerBytes], disks: Mapping[int, int]) -> Plot:
    """Draw a bar chart of the bytes on each broker before and after the move. `disks` has the known disk sizes in
    bytes, by broker id. A line marks each disk size.
    """
    with _axes("stored") as axes:
        sets = {"before": [h.before for h in held], "after": [h.after for h in held]}
        known = [(n, disks[h.broker]) for n, h in enumerate(held) if h.broker in disks]
        scale = _byte_bars(axes, [h.broker for h in held], sets, "bytes stored", [size for _, size in known])
        if known:
            ends = [(n - 0.45, n + 0.45) for n, _ in known]
            axes.hlines([s / scale for _, s in known], *zip(*ends, strict=True), color=_INK, label="disk size")
        return _plot(axes, "Bytes stored on each broker, before and after the move", 3)


def carried(shares: Sequence[Share]) -> Plot:
    """Draw a bar chart of the bytes that each broker sends and receives in the move."""
    brokers = sorted({share.broker for share in shares})
    with _axes("carried") as axes:
        of = {(share.broker, share.side): share.bytes for share in shares}
        sets = {"sends": [of.get((b, Side.LEADER), 0) for b in brokers]}
        sets["receives"] = [of.get((b, Side.DESTINATION), 0) for b in brokers]
        _byte_bars(axes, brokers, sets, "bytes to copy")
        return _plot(axes, "Bytes that each broker sends and receives", 2)


def spent(shares: Sequence[Share]) -> Plot:
    """Draw the use of each throttle: follower traffic, writes to the copies, and the rest of the throttle.

    `shares` must not be empty, and their rates must be known.
    """
    with _axes("spent") as axes:
        throttle = shares[0].throttle
        needed = [share.needed or 0.0 for share in shares]
        unit, scale = _unit(max(throttle, *needed))
        keep_up, places = [(share.keep_up or 0.0) / scale for share in shares], range(len(shares))
        writes = [(share.writes or 0.0) / scale for share in shares]
        left = [max(0.0, throttle - rate) / scale for rate in needed]
        stack = {"follower traffic": (keep_up, _SECOND), "writes to the copies": (writes, _FIRST)}
        below = [0.0] * len(shares)
        for label, (heights, color) in (stack | {"rest of the throttle": (left, _GRID)}).items():
            axes.bar(places, heights, 0.7, below, color=color, label=label, linewidth=0)
            below = [low + high for low, high in zip(below, heights, strict=True)]
        axes.axhline(throttle / scale, color=_INK, linewidth=1.2, label=f"throttle, {human_rate(throttle)}")
        axes.set_ylim(0, max(throttle, *needed) / scale * 1.08)
        axes.set_ylabel(f"rate ({unit}/s)")
        names = [f"{share.broker} {'out' if share.side is Side.LEADER else 'in'}" for share in shares]
        _named(axes, names, "broker and direction")
        return _plot(axes, "Use of each broker's throttle", 2)


def time(curve: ThrottleCurve, band: Band | None) -> Plot:
    """Draw the expected time against the throttle, with the zone where the move never finishes, the 90% band (unless
    it is None) and the operator's limits.
    """
    with _axes("time") as axes:
        unit, scale = _unit(curve.widest)
        if curve.never is not None and curve.never > 0:
            label = f"never finishes: at or below {human_rate(curve.never)}"
            axes.axvspan(0, curve.never / scale, facecolor="none", edgecolor=_STOP, hatch="////", lw=0, label=label)
            axes.axvline(curve.never / scale, color=_STOP, linewidth=1)
        throttles, seconds = zip(*curve.points, strict=True) if curve.points else ((), ())
        label = "expected time" if curve.never is not None else "time if nothing is written"
        axes.plot([t / scale for t in throttles], seconds, color=_FIRST, linewidth=2, label=label)
        chosen = f"throttle, {human_rate(curve.throttle)}"
        axes.axvline(curve.throttle / scale, color=_INK, linewidth=1.2, label=chosen)
        if curve.seconds is not None:
            axes.plot([curve.throttle / scale], [curve.seconds], marker="o", color=_INK, linestyle="none", zorder=5)
            at = (curve.throttle / scale, curve.seconds)
            axes.annotate(human_duration(curve.seconds), at, (7, 6), textcoords="offset points", fontweight="bold")
        if band is not None:
            ends = (band.low, curve.longest if band.high is None else band.high)
            axes.vlines(curve.throttle / scale, *ends, color=_SECOND, linewidth=7, alpha=0.6, label="90% band")
        if curve.deadline is not None:
            deadline = f"deadline, {human_duration(curve.deadline)}"
            axes.axhline(curve.deadline, color=_SECOND, linewidth=1.5, linestyle=_DASHES[0], label=deadline)
        for (label, rate), dashes in zip(curve.bounds, _DASHES[1:], strict=False):
            axes.axvline(rate / scale, color=_SECOND, linewidth=1.5, linestyle=dashes, label=label)
        axes.set(xlim=(0, curve.widest / scale), ylim=(0, curve.longest), xlabel=f"throttle ({unit}/s)")
        axes.set_ylabel("expected time")
        axes.grid(axis="x")
        axes.set_yticks(*_ticks(curve.longest))
        return _plot(axes, "Expected time against the throttle", 2)


def course(readings: Sequence[tuple[float, float]], throttles: Sequence[tuple[float, float]], end: float) -> Plot:
    """Draw the throughput of a run in steps until `end` seconds, and the throttles of the run, if any.

    `readings` has the end and the rate of each interval, and must not be empty. `throttles` has the start and the rate
    of each throttle. Times are in seconds since the start of the run, rates in bytes per second.
    """
    with _axes("course") as axes:
        most = max((rate for _, rate in (*readings, *throttles)), default=0)
        unit, scale = _unit(most)
        times, rates = zip(*readings, strict=True)
        axes.step(times, [rate / scale for rate in rates], where="pre", color=_FIRST, linewidth=1.6, label="throughput")
        axes.fill_between(times, [rate / scale for rate in rates], step="pre", color=_FIRST, alpha=0.15, linewidth=0)
        if throttles:
            since, limits = zip(*throttles, (end, throttles[-1][1]), strict=True)
            heights = [rate / scale for rate in limits]
            axes.step(since, heights, where="post", color=_STOP, linestyle=_DASHES[0], label="throttle of a broker")
        axes.set_ylim(0, (most / scale or 1) * 1.1)
        axes.set_xlim(0, end or 1)
        axes.set_ylabel(f"all copies ({unit}/s)")
        axes.set_xlabel("time since the start")
        axes.set_xticks(*_ticks(end))
        return _plot(axes, "Throughput of the run over time", 2)


def compared(ends: Sequence[tuple[int, float, float]]) -> Plot:
    """Draw a bar chart of the expected and the actual seconds until the last copy to each broker ended. `ends` has the
    broker, the expected and the actual seconds, and must not be empty.
    """
    brokers, expected, actual = zip(*ends, strict=True)
    with _axes("compared") as axes:
        _bars(axes, {"expected": expected, "actual": actual}, human_duration)
        most = max(*expected, *actual) * 1.1
        axes.set_ylim(0, most or 1)
        axes.set_yticks(*_ticks(most))
        axes.set_ylabel("after the start")
        _named(axes, [str(broker) for broker in brokers], "destination")
        return _plot(axes, "Expected and actual end of the copies to each broker", 2)


@contextmanager
def _axes(name: str) -> Iterator[Axes]:
    # On its first run, matplotlib logs that it searches for fonts. The plots need only the bundled font.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE | {"svg.hashsalt": name})
        figure = Figure(figsize=_INCHES, layout="constrained")
        figure.patch.set_visible(False)
        axes = figure.add_subplot(label=name)
        axes.patch.set_visible(False)
        axes.grid(axis="y")
        axes.tick_params(length=0)
        yield axes


def _plot(axes: Axes, title: str, columns: int) -> Plot:
    """Return the finished plot, with ids that are unique on the page, and the page's colors. The legend is above the
    axes, so that it never hides a number.
    """
    figure: Any = axes.figure
    name = axes.get_label()
    figure.legend(loc="outside upper left", ncols=columns, borderaxespad=0.2)
    written = io.StringIO()
    figure.savefig(written, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    svg = written.getvalue()
    view = re.search(r'viewBox="([^"]+)"', svg)
    inside = re.search(r"<svg\b[^>]*>(.*)</svg>", svg, re.DOTALL)
    assert view and inside
    drawn = re.sub(r"<style\b.*?</style>", "", inside[1], flags=re.DOTALL)
    drawn = re.sub(r'\bid="', f'id="{name}-', drawn).replace("url(#", f"url(#{name}-")
    drawn = drawn.replace('xlink:href="#', f'href="#{name}-')
    drawn = re.sub("|".join(_OF_THE_PAGE), lambda found: _OF_THE_PAGE[found[0]], drawn)
    drawn = re.sub(r"<!--.*?-->\n?|\n +(?=\n)", "", drawn, flags=re.DOTALL)
    return Plot(title=title, view=view[1], drawn=drawn)


def _byte_bars(
    axes: Axes, brokers: Sequence[int], sets: Mapping[str, Sequence[int]], what: str, more: Sequence[int] = ()
) -> float:
    """Draw two bars for each broker. Return the number of bytes in one unit of the axis, for example 1e9 for GB. The
    axis also has room for the values in `more`.
    """
    most = max((value for values in (*sets.values(), more) for value in values), default=0)
    unit, scale = _unit(most)
    _bars(axes, sets, human_bytes, scale)
    axes.set_ylim(0, (most / scale or 1) * 1.1)
    axes.set_ylabel(f"{what} ({unit})")
    _named(axes, [str(broker) for broker in brokers], "broker")
    return scale


def _bars(axes: Axes, sets: Mapping[str, Sequence[float]], words: Callable[[float], str], scale: float = 1.0) -> None:
    for (label, values), color, shift in zip(sets.items(), (_FIRST, _SECOND), (-0.2, 0.2), strict=True):
        places = [n + shift for n in range(len(values))]
        bars = axes.bar(places, [value / scale for value in values], 0.38, color=color, label=label)
        if len(values) <= _FEW:
            axes.bar_label(bars, [words(value) for value in values], padding=2, fontsize=7)


def _named(axes: Axes, names: Sequence[str], what: str) -> None:
    many = len(names) > _MANY
    axes.set_xticks(range(len(names)), names, rotation=90 if many else 0, fontsize=7 if many else 9)
    middle, half = (len(names) - 1) / 2, max(len(names), _FEW) / 2
    axes.set_xlim(middle - half - 0.1, middle + half + 0.1)
    axes.set_xlabel(what)


def _unit(most: float) -> tuple[str, float]:
    """Return the unit for an axis up to `most` bytes (or bytes per second), and the bytes in one unit."""
    units = {"TB": 1e12, "GB": 1e9, "MB": 1e6, "kB": 1e3}
    return next(((unit, size) for unit, size in units.items() if most >= size), ("B", 1.0))


def _ticks(longest: float) -> tuple[list[float], list[str]]:
    """Return ticks at round times up to `longest` seconds, for example every 15 minutes, and their labels."""
    days = -(-longest // (6 * 86400)) * 86400
    step = next((float(step) for step in _SECONDS if longest / step <= 6), days)
    ticks = [step * n for n in range(int(longest / step) + 1)]
    words = [re.sub(r" 00 (s|min|h)$", "", human_duration(tick)) if tick else "0" for tick in ticks]
    return ticks, words
