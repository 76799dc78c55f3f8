"""The run of a probe, and what a person hears of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kquota.cli.contract import DONE, NOT_YET, complain, say
from kquota.cli.options import Output
from kquota.cli.progress import lasting
from kquota.cli.quota.probe import printed
from kquota.errors import KquotaError
from kquota.probe import run

if TYPE_CHECKING:
    from kquota.probe.actions import Found
    from kquota.probe.load import Load
    from kquota.probe.meter import Reading
    from kquota.probe.port import Connected, Logins


@dataclass(slots=True)
class Made:
    """The topics that were asked for, named before they are; `left` when they could not be removed in the end."""

    names: list[str] = field(default_factory=list)
    left: bool = False

    def complain(self, error: KquotaError) -> None:
        """Say why something of it stays."""
        self.left = True
        complain(str(error))


def readings(who: Logins, client_id: str, load: Load, made: Made) -> tuple[Reading, ...]:
    """What the client got: of each broker, or of the controller."""
    say(f"loading for {load.lasting:g} s at most; a Ctrl-C ends it and removes its topics")
    with removed(who, made), lasting(f"probing: {load.kind.value}", load.lasting) as told:
        return run.readings(who, client_id, load, made.names, told)


@contextmanager
def removed(who: Logins, made: Made) -> Iterator[None]:
    """Whatever comes, all that was made is removed in the end, and what a person should know of that is said."""
    try:
        with run.removed(who, made.names, removing=lambda: say("removing its topics"), left=made.complain):
            yield
    except KeyboardInterrupt:
        if made.names and not made.left:
            say("interrupted again: what is left of its topics the next probe removes, or --clean-up")
        raise


def clean_up(who: Logins, output: Output, *, dry_run: bool) -> int:
    """Remove what killed probes left; NOT_YET where some may still run, or are called like a probe's and are none."""
    from kquota.probe import scratch

    with who.stage() as stage:
        if dry_run:
            found = run.older(stage)
            print(printed.removal([topic.name for topic in found.over], output))
            _tell_foreign(found)
        else:
            found = remove_older(stage)
    for topic in found.running:
        say(f"topic {topic.name}: its probe may run until {scratch.ends(topic.name):%H:%M:%S} UTC; left alone")
    return NOT_YET if found.foreign or found.running else DONE


def remove_older(stage: Connected) -> Found:
    """Remove what older probes left whose time is over."""
    found, gone = run.remove_older(stage)
    if gone:
        say(f"removed what an older probe left: {', '.join(gone[:5])}{' …' * (len(gone) > 5)}")
    _tell_foreign(found)
    return found


def _tell_foreign(found: Found) -> None:
    from kquota.probe import scratch

    for name in found.foreign:
        say(f"warning: topic {name} has a probe's name and not its seal ({scratch.SEAL}): left alone")
