"""`kquota complete` (hidden): print the names that completions offer, and cache them for the next TAB."""

from __future__ import annotations

import contextlib
import io
import os
import signal
from typing import Final

from kquota.cli import world
from kquota.cli.complete.command import CompleteOptions
from kquota.cli.connection import REACHING, Connection, names_a_cluster, variable
from kquota.cli.contract import DONE, FAILED
from kquota.cli.output import Lines
from kquota.errors import KquotaError
from kquota.settings.resource import BROKERS, TOPICS
from kquota.terms import BrokerId

SECONDS: Final = 2.0
"""The maximum number of seconds that a TAB waits for the cluster. A number in `KQUOTA_COMPLETE_SECONDS` overrides this
value if it is above 0 and below 60.
"""


def run(options: CompleteOptions) -> Lines:
    """Return the names of topics and the ids of brokers, and cache them.

    If kquota cannot read the cluster, return the cached lines with exit code 1. Without a named cluster, return no
    lines, also with exit code 1. A signal ends the process if the cluster takes longer than `SECONDS`.
    """
    connection = options.connection
    if not names_a_cluster(connection):
        return Lines(lines=(), code=FAILED)
    given = {name: getattr(connection, name) or os.environ.get(variable(name)) for name in REACHING}
    named = [str(value or "") for value in given.values()]
    kept = world.completion_file(named)
    before = kept.recall()
    # Record a failure first, so that the next TAB does not wait again even if this process is killed.
    kept.keep_failed(before)
    _end_in_time()
    with contextlib.redirect_stderr(io.StringIO()):
        found = _found(connection)
    lines = before if found is None else kept.keep_names(*found)
    return Lines(lines=tuple(lines), code=FAILED if found is None else DONE)


def _end_in_time() -> None:
    """Let SIGALRM end this process, because a name server that does not answer blocks the whole interpreter."""
    given = os.environ.get("KQUOTA_COMPLETE_SECONDS", "")
    try:
        seconds = float(given)
    except ValueError:
        seconds = SECONDS
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds if 0 < seconds < 60 else SECONDS)


def _found(connection: Connection) -> tuple[list[str], list[BrokerId]] | None:
    try:
        with world.configs(world.where(connection)) as configs:
            topics = [str(topic.name) for topic in configs.resources(TOPICS)]
            brokers = [resource.broker for resource in configs.resources(BROKERS)]
    except KquotaError:
        return None
    return topics, brokers
