"""`move plan --balance-log-dirs`: the answer, and the explanation of the plan on stderr."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Iterator
from typing import Final

from kquota.cli.contract import say, to_stderr
from kquota.cli.move.cordons import cordon_notes, cordons_shown
from kquota.cli.move.log_dir_time import time_line, time_shown
from kquota.cli.move.plan.answer import disk_shown, left_shown, plan_values
from kquota.cli.move.plan.explanation import FIRST, UNSAVED, percent, saving, share_of_least, show, then
from kquota.cli.output import JsonObject, plain
from kquota.cli.suggestion import suggested
from kquota.cli.table import fitted, terminal_width
from kquota.list_text import few
from kquota.measure import counted, exact_rate, human_bytes
from kquota.pace.log_dir_copy import LogDirPace
from kquota.placement.log_dir_balance import LogDirChange, LogDirGoal, LogDirMove, LogDirsPlanned
from kquota.sizes.replica import Cordon

_NAMED: Final = 5


def _log_dir(change: LogDirChange) -> JsonObject:
    shares = [change.share(grown) for grown in (0, change.incoming, change.after - change.before)]
    return {
        "log_dir": change.path,
        "closed": change.closed,
        "before": {"replicas": change.replicas_before, "bytes": change.before},
        "after": {"replicas": change.replicas_after, "bytes": change.after},
        "incoming": change.incoming,
        "disk": disk_shown(change.disk, *shares),
    }


def log_dirs_document(
    goal: LogDirGoal, found: LogDirsPlanned, pace: LogDirPace, cordons: tuple[Cordon, ...]
) -> JsonObject:
    """Return the JSON of a plan for one broker. `pace` is the pace of the plan's copies."""
    return {
        "sizes": "the live cluster",
        "broker": found.broker,
        **plan_values(found, goal.disk_limit),
        "moves": [
            {**plain(move.partition), "size": move.size, "source": move.source, "destination": move.destination}
            for move in found.moves
        ],
        "log_dirs": list(map(_log_dir, found.dirs)),
        "left": list(map(left_shown, found.left)),
        "cordoned": cordons_shown(cordons),
        "time": time_shown(pace) if found.moves else None,
    }


def explain_log_dirs(
    found: LogDirsPlanned, pace: LogDirPace, cordons: tuple[Cordon, ...], *, file: str | None, everything: bool
) -> None:
    """Print the explanation on stderr: the answer first, then the tables.

    Unless `everything` is true, only the first `FIRST` moves are shown. `file` is as for `explain`.
    """
    most = sys.maxsize if everything else FIRST
    for line in (*_answer(found), *_remarks(found), *cordon_notes(cordons)):
        say(line)
    if not found.moves:
        return
    say(f"expected time: {time_line(pace)}")
    show(_moves_table(found.moves[:most]), len(found.moves) - most, "move")
    show(_log_dirs_table(found))
    to_stderr("")
    rate = exact_rate(pace.throttle) if pace.throttle else "RATE"
    plan = shlex.quote(file or UNSAVED)
    execute = suggested(
        f"reassign-partitions --execute --reassignment-json-file {plan} --replica-alter-log-dirs-throttle {rate}"
    )
    say(f"next: {saving(file)}start the move: {execute}")


def _answer(found: LogDirsPlanned) -> Iterator[str]:
    if not found.moves:
        if found.left or _outside(found):
            yield f"no plan: kquota found no replica of broker {found.broker} to move"
        else:
            yield f"nothing to do: no replica of broker {found.broker} has to move, so there is no plan"
        return
    yield (
        f"plan: {counted(len(found.moves), 'replica')} of broker {found.broker} to copy to another log dir, "
        f"{human_bytes(found.bytes)} ({found.bytes} bytes)"
    )
    ratio = found.least.ratio(found.bytes)
    if ratio is not None:
        term = "lack to reach" if found.least.bytes == found.least.lack else "hold above"
        yield (
            f"a plan that reaches the goal must copy at least {human_bytes(found.least.bytes)} (bytes that log dirs "
            f"{term} the band). {share_of_least(ratio)}"
        )


def _remarks(found: LogDirsPlanned) -> Iterator[str]:
    band = found.band
    wanted = f"{human_bytes(band.low)} to {human_bytes(band.high)}, around a mean of {human_bytes(band.mean)}"
    if outside := _outside(found):
        yield (
            f"warning: {few(outside, _NAMED)} {'stays' if len(outside) == 1 else 'stay'} outside the band ({wanted}): "
            "no single move helps, because of the sizes of replicas, the disks or --topics"
        )
    else:
        used = "log dir that the plan uses" if any(change.closed for change in found.dirs) else "log dir"
        yield f"band: every {used} will hold {wanted}"
    for left in found.left:
        yield f"warning: {left.partition} {left.why}"
    for change in found.dirs:
        if change.closed is not None and change.closed != "cordoned":
            yield f"warning: {change.path} is not used ({change.closed})"
    unknown = [change.path for change in found.dirs if change.closed is None and change.disk is None]
    if unknown and found.moves:
        yield (
            f"warning: {few(unknown, _NAMED)}: disk space is not checked, because the broker does not report the size "
            "of its volumes (before Kafka 3.3)"
        )


def _outside(found: LogDirsPlanned) -> list[str]:
    return [change.path for change in found.dirs if change.closed is None and found.band.off(change.after)]


def _moves_table(moves: Iterable[LogDirMove]) -> list[str]:
    rows = [(str(move.partition), human_bytes(move.size), move.source, move.destination) for move in moves]
    heads = ("partition", "copied", "from", "to")
    return fitted(rows, heads, left=[0, 2, 3], width=terminal_width(sys.stderr))


def _log_dirs_table(found: LogDirsPlanned) -> list[str]:
    rows = [
        (
            change.path,
            then(change.replicas_before, change.replicas_after),
            then(human_bytes(change.before), human_bytes(change.after)),
            human_bytes(change.incoming) if change.incoming else "",
            then(percent(change.share(0)), percent(change.share(change.after - change.before))),
            percent(change.share(change.incoming)),
            change.closed or "",
        )
        for change in found.dirs
    ]
    heads = ("log dir", "replicas", "bytes", "to copy in", "disk", "disk at worst", "")
    return fitted(rows, heads, left=[0, 6], width=terminal_width(sys.stderr), optional=["replicas"])
