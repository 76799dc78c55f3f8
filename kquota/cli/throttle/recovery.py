"""`kquota throttle set --recovering`: a returning broker's catching up, followed to its end, or one look of it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kquota.cli import world
from kquota.cli.contract import DONE, NOT_YET, say
from kquota.cli.options import Output
from kquota.cli.throttle import set_printed
from kquota.cli.throttle.options import must_be_known
from kquota.errors import Busy, Unreachable
from kquota.measure import ByteRate, human_rate
from kquota.several import joined
from kquota.terms import BrokerId
from kquota.throttle.holding import GivenBack

if TYPE_CHECKING:
    from kquota.reassign.run import Run
    from kquota.throttle.holding import Recovery
    from kquota.throttle.port import Ports

_EVERY_SECONDS: Final = 2.0


def recover(
    at: world.Where,
    state_dir: Path | None,
    broker: BrokerId,
    rate: ByteRate,
    output: Output,
    *,
    once: bool,
    dry_run: bool,
) -> int:
    """List what the broker is behind with, release each as it rejoins; 0 when nothing is left, 8 while something is."""
    if dry_run:
        return _dry_run(at, state_dir, broker, rate, output)
    seen = _look(at, state_dir, broker, rate)
    try:
        while not once and seen.behind:
            if output is Output.text:
                print(set_printed.recovery(seen, output), end="", flush=True)
            world.SystemClock().sleep(_EVERY_SECONDS)
            try:
                seen = _look(at, state_dir, broker, rate, seen.run)
            except (Busy, Unreachable) as error:
                say(f"{error}; the throttle stands, trying again")
                seen = replace(seen, changes=(), given_back=GivenBack())
    except KeyboardInterrupt:
        say("the throttle stands: the same command goes on, kquota throttle clear takes it back")
        raise
    print(set_printed.recovery(seen, output), end="")
    set_printed.say_back(seen.given_back)
    if seen.done:
        say(f"broker {broker} is in sync everywhere: nothing of this throttle is left")
        return DONE
    return NOT_YET


def _look(
    at: world.Where, state_dir: Path | None, broker: BrokerId, rate: ByteRate, going: Run | None = None
) -> Recovery:
    """One look, on a connection of its own: between two others may write, and a broker may go."""
    from kquota.throttle import holding

    with world.throttling(at, state_dir, holding=f"throttle set --recovering {broker}") as ports:
        _must_exist(ports, broker)
        seen = holding.recover(ports.cluster, ports.runs, world.SystemClock(), broker, rate, going)
    if going is not None and seen.run is not None and seen.run.rate != going.rate:
        say(f"broker {broker}: another kquota has set {human_rate(seen.run.rate or 0)}, which is kept")
    if seen.behind and (seen.changes or seen.given_back.given_back or sys.stderr.isatty()):
        unlimited = f"; no rate on broker {joined(seen.unlimited)}, not alive" if seen.unlimited else ""
        count = f"{len(seen.behind):,} replica{'s are' if len(seen.behind) > 1 else ' is'}"
        say(f"broker {broker}: {count} out of sync{unlimited}")
    return seen


def _dry_run(at: world.Where, state_dir: Path | None, broker: BrokerId, rate: ByteRate, output: Output) -> int:
    from kquota.throttle import holding
    from kquota.throttle import wanted as wishes

    with world.throttling(at, state_dir) as ports:
        _must_exist(ports, broker)
        snapshot = ports.cluster.snapshot(None)
        wanted = wishes.recovering(snapshot, broker, rate, snapshot.alive)
        title = wishes.recovery(broker)
        held = holding.prepare(ports.cluster, ports.runs, world.SystemClock(), title, wanted, rate)
    set_printed.say_held(held, None, dry_run=True)
    print(set_printed.held(held, None, output, dry_run=True), end="")
    return DONE


def _must_exist(ports: Ports, broker: BrokerId) -> None:
    """Raises Refused for a broker that is neither alive nor named by any partition."""
    snapshot = ports.cluster.snapshot(None)
    known = snapshot.alive | {b for now in snapshot.partitions.values() for b in now.replicas}
    must_be_known([broker], known, "--recovering")
