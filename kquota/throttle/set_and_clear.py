"""The order of reads and writes of `throttle set` and `clear`: a throttle without a move, on record like any."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kquota.errors import Busy, Incomplete, KquotaError, NextStep, Refused, StepFor, Unknown
from kquota.measure import ByteRate, counted
from kquota.reassign.port import Clock, MoveCluster, Runs
from kquota.reassign.run import Run, others_than, restore_changes, taking
from kquota.reassign.throttle_writes import (
    Unwitnessed,
    Wanted,
    World,
    enforce,
    on_record,
    read,
    record,
    release,
    release_ended,
)
from kquota.settings.change import Change, needed
from kquota.settings.resource import Setting
from kquota.settings.throttled_lists import replica
from kquota.terms import LEADER_RATE, REPLICATION_RATES, BrokerId, TopicPartition
from kquota.throttle import wanted as wishes


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldThrottle:
    """What `throttle set` would write or wrote, and the run that holds it; None when all of it stood already."""

    run: Run | None
    changes: tuple[Change, ...]


def prepare(
    cluster: MoveCluster,
    runs: Runs,
    clock: Clock,
    title: str,
    wanted: Wanted,
    rate: ByteRate | None,
    reason: str | None = None,
) -> HeldThrottle:
    """What bringing `wanted` into force would write. Raises Unreachable, and Refused for a list that gets too long."""
    open_runs = runs.unfinished()
    known = wishes.known(title, open_runs)
    now = read(cluster, wanted)
    begun = replace(known or wishes.new(title, rate, clock.now(), runs.me, reason), rate=rate)
    run = taking(begun, wanted, now, others_than(known, open_runs))
    changes = needed(wanted, now)
    idle = known is None and not changes and not any(taken.ours for taken in run.taken.values())
    return HeldThrottle(run=None if idle else run, changes=changes)


def bring(
    cluster: MoveCluster,
    runs: Runs,
    clock: Clock,
    title: str,
    wanted: Wanted,
    rate: ByteRate | None,
    reason: str | None = None,
) -> HeldThrottle:
    """The same, done: on record before the first write, lists before rates, each seen. Twice changes nothing.

    Raises Refused, or what the cluster answered, when all that was written was taken back; Incomplete when something
    still stands; Unknown when a write was not seen.
    """
    held = prepare(cluster, runs, clock, title, wanted, rate, reason)
    if held.run is None:
        return held
    open_runs = runs.unfinished()
    known = wishes.known(title, open_runs)
    world = World(cluster=cluster, runs=runs, clock=clock, others=others_than(held.run, open_runs))
    if known is None:
        runs.begin(held.run)
    else:
        runs.update(held.run)
    try:
        run = _enforced(world, held.run, wanted)
    except Unknown as error:
        raise Unknown(error, *_stays(held.run)) from error
    except Busy:  # another kquota has the run now, and what is to be taken back
        raise
    except KquotaError as error:
        if known is not None:
            raise Incomplete((error, *_stays(held.run)), done=[], undone=[]) from error
        raise _undone(world, held.run, error) from error
    return HeldThrottle(run=run, changes=held.changes)


def adjust(cluster: MoveCluster, runs: Runs, clock: Clock, run: Run, rate: ByteRate) -> HeldThrottle:
    """Give every rate that an open run holds another value, on record; its list entries stay. Twice changes nothing.

    Raises Refused for a run that holds no rate, Unknown when a write was not seen.
    """
    wanted = rates_of(run, rate)
    now = read(cluster, wanted)
    world = World(cluster=cluster, runs=runs, clock=clock, others=others_than(run, runs.unfinished()))
    adjusted = record(world, run, taking(replace(run, rate=rate), wanted, now, world.others))
    changes = needed(wanted, now)
    return HeldThrottle(run=enforce(world, adjusted, wanted, now), changes=changes)


def prepare_adjusted(cluster: MoveCluster, run: Run, rate: ByteRate) -> HeldThrottle:
    """What `adjust` would write. Raises Refused for a run that holds no rate."""
    wanted = rates_of(run, rate)
    return HeldThrottle(run=run, changes=needed(wanted, read(cluster, wanted)))


def rates_of(run: Run, rate: ByteRate) -> Wanted:
    """The replication rates that a run holds, at another value. Raises Refused when it holds none."""
    held = [s for s, taken in run.taken.items() if s.key in REPLICATION_RATES and taken.ours]
    if not held:
        raise Refused(f"run {run.id} has set no rate: there is nothing to adjust. Nothing was written")
    return {setting: (str(rate),) for setting in held}


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenBack:
    """What came back, what could not yet and why, and what a person should know."""

    changes: tuple[Change, ...] = ()
    pending: Mapping[Setting, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def restore(cluster: MoveCluster, runs: Runs, clock: Clock, ending: Sequence[Run]) -> GivenBack:
    """End the throttle of each run, value by value; a record stays open while something of it is pending."""
    done: list[Change] = []
    pending: dict[Setting, str] = {}
    notes: list[str] = []
    for run in ending:
        open_runs = runs.unfinished()
        mine = next((one for one in open_runs if one.id == run.id), None)
        if mine is None:
            continue
        world = World(cluster=cluster, runs=runs, clock=clock, others=others_than(run, open_runs))
        released = release(world, mine)
        done += released.restored
        pending |= released.pending
        notes += released.notes
    return GivenBack(changes=tuple(done), pending=pending, notes=tuple(notes))


def would_restore(cluster: MoveCluster, runs: Runs, ending: Sequence[Run]) -> GivenBack:
    """What `restore` would write, were these runs ended one by one."""
    done: list[Change] = []
    for run in ending:
        done += restore_changes(run, cluster.values(list(run.taken)), others_than(run, runs.unfinished()))
    return GivenBack(changes=tuple(done))


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRecovery:
    """One look at a returning broker: what it is behind with, and what was listed and restored now.

    `done`: nothing is behind, and nothing is pending. `unlimited` are brokers that take part and could not be given
    their rate, because they are not alive.
    """

    run: Run | None
    behind: tuple[TopicPartition, ...]
    changes: tuple[Change, ...] = ()
    restored: GivenBack = field(default_factory=GivenBack)
    unlimited: tuple[BrokerId, ...] = ()

    @property
    def done(self) -> bool:
        """Whether the broker has caught up and every throttle is restored: nothing is left for another look."""
        return not self.behind and not self.restored.pending


def recover(
    cluster: MoveCluster, runs: Runs, clock: Clock, broker: BrokerId, rate: ByteRate, going: Run | None = None
) -> BrokerRecovery:
    """Release what has rejoined, list what is out of sync, end the run when nothing is: again and again, to the end.

    `going` is the run of the look before, of one who stays at it: a rate that another kquota gave it meanwhile is kept.
    Raises what `bring` does, and Refused where another one has ended it: it is not begun anew.
    """
    snapshot = cluster.snapshot(None)
    late = wishes.behind(snapshot, broker)
    title = wishes.recovery(broker)
    known = wishes.known(title, runs.unfinished())
    if going is not None and known is None and late:
        behind = counted(len(late), "replica")
        raise Refused(f"another kquota has given this throttle back; broker {broker} is still behind with {behind}")
    if going is not None and known is not None:
        rate = known.rate or rate
    back = GivenBack()
    if known is not None and not late:
        return BrokerRecovery(run=known, behind=(), restored=restore(cluster, runs, clock, [known]))
    if known is not None:
        world = World(cluster=cluster, runs=runs, clock=clock, others=others_than(known, runs.unfinished()))
        released, known = release_ended(world, known, _listed(known) - set(late))
        back = GivenBack(changes=released.restored, pending=released.pending, notes=released.notes)
    if not late:
        return BrokerRecovery(run=None, behind=())
    readable = _readable(cluster, snapshot.alive)
    wanted = wishes.recovering(snapshot, broker, rate, readable)
    held = bring(cluster, runs, clock, title, wanted, rate)
    concerned = {b for name in late for b in snapshot.partitions[name].replicas}
    return BrokerRecovery(
        run=held.run,
        behind=late,
        changes=held.changes,
        restored=back,
        unlimited=tuple(sorted(concerned - readable)),
    )


def _readable(cluster: MoveCluster, alive: Collection[BrokerId]) -> set[BrokerId]:
    settings = [Setting.of_broker(broker, LEADER_RATE) for broker in alive]
    return {BrokerId(int(setting.name)) for setting in cluster.values(settings)}


def _listed(run: Run) -> set[TopicPartition]:
    found = (replica(s, entry) for s, taken in run.taken.items() if s.is_list for entry in taken.ours)
    return {named[0] for named in found if named is not None}


def _enforced(world: World, run: Run, wanted: Wanted) -> Run:
    for part in (
        {s: values for s, values in wanted.items() if s.is_list},
        {s: values for s, values in wanted.items() if not s.is_list},
    ):
        now = read(world.cluster, part)
        # Somebody may have written since the run was prepared: what stands now is what it must restore.
        run = record(world, run, taking(run, part, now, world.others))
        run = enforce(world, run, part, now)
    return run


def _stays(run: Run) -> tuple[str, StepFor, str]:
    """The end of an error's message."""
    ending = StepFor(NextStep.END_THROTTLE, run.id)
    return f"; run {run.id} stays open: the same command goes on, ", ending, " takes it back"


def _undone(world: World, run: Run, error: KquotaError) -> KquotaError:
    """Take back what was written of a run that could not be brought into force; the error to raise then."""
    released = release(world, on_record(world, run), certain=not isinstance(error, Unwitnessed))
    if not released.pending:
        return Refused(error, "; what was written was taken back")
    left = [str(setting) for setting in released.pending]
    return Incomplete((error, f"; still standing: {', '.join(left)}", *_stays(run)), done=[], undone=left)
