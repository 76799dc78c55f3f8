"""`kquota throttle set --recovering`: throttle a returning broker until it is in sync, or check once."""

from __future__ import annotations

import sys
from collections.abc import Generator
from dataclasses import replace
from typing import Final

from kquota.cli import clock, move_stores, world
from kquota.cli.contract import say, without_retry
from kquota.cli.keeping_up import PacedCopies, must_keep_up
from kquota.cli.suggestion import suggested
from kquota.cli.throttle.changes import remaining
from kquota.cli.throttle.checks import must_be_known, must_show_all
from kquota.cli.throttle.set.answer import Recovering, ThrottleSet, recovering, throttle_set
from kquota.cli.throttle.set.command import SetOptions
from kquota.errors import Busy, Unreachable
from kquota.list_text import named_brokers
from kquota.measure import ByteRate, human_rate
from kquota.reassign.moves import Move
from kquota.reassign.port import Snapshot
from kquota.reassign.run import Run
from kquota.reassign.throttle_writes import Restoration
from kquota.terms import BrokerId
from kquota.throttle import actions, set_and_clear
from kquota.throttle import wanted as throttle_wanted
from kquota.throttle.port import Ports
from kquota.throttle.set_and_clear import BrokerRecovery, HeldThrottle

_EVERY_SECONDS: Final = 2.0


def recover(at: world.Where, options: SetOptions, broker: BrokerId, rate: ByteRate) -> Generator[Recovering]:
    """Throttle the replicas that are out of sync, and stop throttling each replica that is in sync again. Yield an
    answer for each check. The checks end when no replica is out of sync, or with `--once` after the first check.

    If a later check fails with Busy or Unreachable, kquota prints the error and checks again. After an interrupt,
    kquota prints how to continue and how to restore the previous values.

    Raises Refused for an unknown broker and, without `--force`, if the broker can never catch up at this rate. Also
    raises the errors of `set_and_clear.recover`, and in the first check Busy and Unreachable.
    """
    seen = _look(at, options, broker, rate)
    try:
        while not options.once and seen.behind:
            yield recovering(seen, broker, last=False)
            clock.SystemClock().sleep(_EVERY_SECONDS)
            try:
                seen = _look(at, replace(options, force=True), broker, rate, seen.run)
            except (Busy, Unreachable) as error:
                why = without_retry(error)
                say(f"broker {broker}: the check failed ({why}). The throttle stays set. kquota checks again")
                seen = replace(seen, changes=(), restoration=Restoration())
    except (KeyboardInterrupt, GeneratorExit):
        run = seen.run
        clear = suggested("throttle clear") if run is None else suggested(f"throttle clear --run {run.id}")
        say(
            f"broker {broker}: the throttle stays set. To continue, run the same command. To restore the previous "
            f"values, run {clear}"
        )
        raise
    yield recovering(seen, broker, last=True)


def would_recover(at: world.Where, options: SetOptions, broker: BrokerId, rate: ByteRate) -> ThrottleSet:
    """Return the changes of the first check: the values that it would restore, then the values that it would set.

    Raises Refused as `recover` does, and the errors of `set_and_clear.would_recover`.
    """
    with move_stores.throttling(at, options.state_dir) as ports:
        _check(ports, options, broker, rate, first=True)
        seen = set_and_clear.would_recover(ports, broker, rate)
    held = HeldThrottle(run=seen.run, changes=(*seen.restoration.restored, *seen.changes), dead=seen.unlimited)
    notes = list(remaining(seen.restoration, again="Run the command without --dry-run"))
    if seen.run is not None and not seen.behind:
        notes.append(f"broker {broker} is in sync for all its partitions, so run {seen.run.id} would end")
    return throttle_set(held, None, dry_run=True, notes=tuple(notes))


def _look(
    at: world.Where, options: SetOptions, broker: BrokerId, rate: ByteRate, going: Run | None = None
) -> BrokerRecovery:
    """Check once: throttle the out-of-sync replicas, and restore the values that are no longer needed. `going` is the
    run of the previous check, or None.

    Each check has a new connection, because any broker may stop between two checks. It takes the lock again, because
    other commands may write in between.
    """
    hold = move_stores.LockRequest(doing=f"throttle set --recovering {broker}")
    with move_stores.throttling(at, options.state_dir, hold) as ports:
        _check(ports, options, broker, rate, first=going is None)
        seen = set_and_clear.recover(ports, broker, rate, going, reason=options.reason)
    if going is not None and seen.run is not None and seen.run.rate != going.rate:
        say(f"broker {broker}: kquota keeps the rate of {human_rate(seen.run.rate or 0)} that another kquota set")
    if seen.behind and (seen.changes or seen.restoration.restored or sys.stderr.isatty()):
        others = named_brokers(seen.unlimited)
        unlimited = f". No rate is set on {others} (dead or unreachable)" if seen.unlimited else ""
        count = f"{len(seen.behind):,} replica{'s are' if len(seen.behind) > 1 else ' is'}"
        say(f"broker {broker}: {count} out of sync{unlimited}")
    return seen


def _check(ports: Ports, options: SetOptions, broker: BrokerId, rate: ByteRate, *, first: bool) -> None:
    """Check before the writes of one check of the broker. Only the `first` one reads the logs of all brokers."""
    snapshot = ports.cluster.snapshot(None)
    known = snapshot.alive | {b for now in snapshot.partitions.values() for b in now.replicas}
    must_be_known([broker], known, "--recovering")
    if first:
        must_show_all(actions.hidden_from_user(ports.cluster, ports.log_dirs, snapshot))
    if not options.force:
        _must_catch_up(ports, snapshot, broker, rate)


def _must_catch_up(ports: Ports, snapshot: Snapshot, broker: BrokerId, rate: ByteRate) -> None:
    """Raise Refused if replicas of the broker that are out of sync can never catch up at this rate.

    A rate that the broker's open run already has is not checked again. A cron job that repeats the command can then
    still remove in-sync replicas from the throttled replica lists.
    """
    known = throttle_wanted.known(throttle_wanted.recovery(broker), ports.runs.unfinished())
    if known is not None and known.rate == rate:
        return
    late = {name: snapshot.partitions[name] for name in throttle_wanted.behind(snapshot, broker)}
    moving = [
        Move(
            partition=name,
            sources=tuple(other for other in now.replicas if other != broker),
            destinations=(broker,),
            target=now.replicas,
            submitted=True,
        )
        for name, now in late.items()
    ]
    must_keep_up(
        ports.log_dirs,
        PacedCopies(moves=moving, partitions=late),
        rate,
        never=f"broker {broker} never catches up",
        enough=f"broker {broker} can catch up",
        anyway="set the given throttle",
    )
