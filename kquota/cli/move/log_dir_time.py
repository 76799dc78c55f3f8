"""The time of moves between log dirs of the same broker, for `move plan` and `move estimate`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kquota.cli import world
from kquota.cli.connection import Connection
from kquota.cli.output import JsonObject
from kquota.list_text import named_brokers
from kquota.measure import counted, human_bytes, human_duration, human_rate, human_rates
from kquota.pace.log_dir_copy import LogDirPace, LogDirWork, log_dir_enforcement, log_dir_throttle
from kquota.terms import BrokerId

OPTION: Final = "--replica-alter-log-dirs-throttle"


def time_shown(pace: LogDirPace) -> JsonObject:
    """Return the JSON of one broker's copies between its log dirs, in bytes, bytes per second and seconds.

    null means unknown. `throttle` is also null if no throttle is set. `expected_seconds` is also null if the copies
    never end. With a throttle of 0, `feasible` and the times are null.
    """
    return {
        "broker": pace.work.broker,
        "copies": pace.work.copies,
        "bytes": pace.work.bytes,
        "writes": pace.work.writes,
        "throttle": pace.throttle,
        "feasible": pace.feasible,
        "expected_seconds": pace.seconds,
        "expected_seconds_without_writes": pace.seconds_without_writes,
        "least_seconds": pace.least_seconds,
    }


def log_dir_settings(connection: Connection, works: Iterable[LogDirWork]) -> world.BrokerSettings:
    """Return the configs of the brokers in `works`. If kquota cannot read them, warn and return an empty mapping."""
    brokers = sorted({work.broker for work in works})
    what = f"the throttles for log dirs of {named_brokers(brokers)}"
    return world.broker_settings(world.where(connection), brokers, what)


def paced(work: LogDirWork, throttle: int | None, settings: world.BrokerSettings) -> LogDirPace:
    """Return the pace under `throttle`, in bytes per second. If `throttle` is None, use the throttle that is set on the
    broker. A broker that is missing in `settings` has no known throttle.
    """
    own = settings.get(BrokerId(work.broker), {})
    return LogDirPace(
        work=work,
        throttle=log_dir_throttle(own) if throttle is None else throttle,
        enforcement=log_dir_enforcement(own),
    )


def never(paces: Iterable[LogDirPace]) -> str | None:
    """Return an error message for the first broker whose copies can never finish, or None if there is none."""
    for pace in paces:
        if pace.feasible is False:
            copies = f"broker {pace.work.broker}: the copies between its log dirs"
            return f"{copies} can never finish {_never_because(pace)}. Give a higher {OPTION}"
    return None


def _never_because(pace: LogDirPace) -> str:
    throttle, flows, writes = human_rates(pace.throttle or 0, pace.flows or 0.0, pace.work.writes or 0.0)
    return f"at {throttle}: with its pauses, the broker copies {flows}, but producers write {writes} meanwhile"


def time_line(pace: LogDirPace) -> str:
    """Return as text the expected time of one broker's copies, or the reason why there is none."""
    work, throttle = pace.work, pace.throttle
    size, count = human_bytes(work.bytes), counted(work.copies, "copy")
    copies = f"broker {work.broker}: {size} in {count} between its log dirs"
    if throttle is None:
        why = "because these copies have no throttle or their throttle is unknown"
        return f"{copies}: the time is unknown, {why}. Give {OPTION} RATE"
    if throttle == 0:
        window = f"the quota window ({pace.enforcement.window:g} s)"
        one = f"one fetch (`replica.fetch.max.bytes`) whenever {window} is empty"
        why = f"because the throttle is 0, and a broker then still copies {one}"
        return f"{copies}: the time is unknown, {why}. Give {OPTION} RATE"
    if pace.feasible is False:
        return f"{copies}: never {_never_because(pace)}"
    if pace.seconds is not None:
        return f"{copies}: about {human_duration(pace.seconds)} at {human_rate(throttle)}"
    seconds = pace.seconds_without_writes or 0.0
    return f"{copies}: about {human_duration(seconds)} at {human_rate(throttle)} if nothing is written meanwhile"
