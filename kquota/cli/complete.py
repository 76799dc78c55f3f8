"""`kquota complete`, hidden: the topics and brokers that completions offer, kept for the next TAB."""

from __future__ import annotations

import contextlib
import io
import os
import signal
from typing import Final

from kquota.cli.connection import OPTIONS, Connection, connected, names_a_cluster
from kquota.cli.contract import DONE, FAILED

SECONDS: Final = 2.0
"""The longest that a TAB may take, whatever the cluster does; KQUOTA_COMPLETE_SECONDS is another."""


@connected()
def complete(connection: Connection) -> int:
    """Print a cluster's topics and brokers for a shell's completions, or nothing: never a question or an error."""
    from kquota.stores import completion

    if not names_a_cluster(connection):
        return FAILED
    options = {name: getattr(connection, name) or os.environ.get(f"KQUOTA_{name.upper()}") for name in OPTIONS}
    named = [str(value or "") for value in options.values()]
    kept = completion.CompletionFile(completion.cache_folder(os.environ), named)
    before = kept.recall()
    # First of all that it failed: whatever ends this process, the next TAB does not wait for it again.
    kept.keep(before, completion.FAILED_SECONDS)
    _end_in_time()
    with contextlib.redirect_stderr(io.StringIO()):
        found = _found(connection)
    if found is not None:
        kept.keep(found, completion.FRESH_SECONDS)
    for line in before if found is None else found:
        print(line)
    return FAILED if found is None else DONE


def _end_in_time() -> None:
    """The system ends this process, for a name server that does not answer holds up all of Python."""
    given = os.environ.get("KQUOTA_COMPLETE_SECONDS", "")
    try:
        seconds = float(given)
    except ValueError:
        seconds = SECONDS
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds if 0 < seconds < 60 else SECONDS)


def _found(connection: Connection) -> list[str] | None:
    from kquota.cli import world
    from kquota.config.resource import BROKERS, TOPICS
    from kquota.errors import KquotaError
    from kquota.stores import completion
    from kquota.terms import BrokerId

    try:
        with world.configs(world.where(connection)) as configs:
            topics = [str(topic.name) for topic in configs.resources(TOPICS)]
            brokers = [BrokerId(int(str(broker.name))) for broker in configs.resources(BROKERS)]
    except KquotaError:
        return None
    return completion.lines(topics, brokers)
