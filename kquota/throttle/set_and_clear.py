"""The order of reads and writes of `throttle set`, `throttle clear` and `move adjust`.

`throttle set` records a throttle without a move as a run.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kquota.errors import Busy, Incomplete, KquotaError, NextStep, Refused, StepFor, Unknown
from kquota.measure import ByteRate, counted
from kquota.reassign.port import MoveCluster, MovePorts, Runs, Snapshot
from kquota.reassign.restoring import part_of, passing_on, restore_changes, taking
from kquota.reassign.run import Run, others_than, with_id, with_rate_changes
from kquota.reassign.throttle_writes import (
    Restoration,
    Unread,
    WantedValues,
    enforce,
    read,
    record,
    restore_after,
    restore_ended,
    restore_run,
)
from kquota.settings.change import Change, needed
from kquota.settings.resource import Setting
from kquota.settings.throttled_lists import replica
from kquota.terms import LEADER_RATE, BrokerId, TopicPartition
from kquota.throttle import wanted as throttle_wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldThrottle:
    """The changes of `throttle set` or `move adjust`, and the run that holds them."""

    run: Run | None
    """The run, or None if no run is needed because other clients had already set everything."""
    changes: tuple[Change, ...]
    dead: tuple[BrokerId, ...] = ()
    """The brokers that keep their rates because they do not answer."""


def prepare(
    ports: MovePorts,
    title: str,
    wanted: WantedValues,
    rate: ByteRate | None,
    reason: str | None = None,
    *,
    restored: Collection[Change] = (),
) -> HeldThrottle:
    """Return the changes that would set `wanted` after the changes in `restored`, and the run that would hold them.

    This run is the open run with this `title`, or else a new run with this `reason`. Writes nothing. Raises Unreachable
    if a value cannot be read. Raises Refused for a list that would become too long, for a missing permission, and if a
    journal cannot be read.
    """
    open_runs = ports.runs.unfinished()
    known = throttle_wanted.known(title, open_runs)
    now = read(ports.cluster, wanted)
    now |= {change.setting: change.after for change in restored if change.setting in wanted}
    begun = replace(known or throttle_wanted.new(title, rate, ports.clock.now(), ports.runs.me, reason), rate=rate)
    run = taking(begun, wanted, now, others_than(known, open_runs))
    changes = needed(wanted, now)
    ports.cluster.must_permit([change.setting for change in changes], moves=False)
    idle = known is None and not changes and not run.held
    return HeldThrottle(run=None if idle else run, changes=changes)


def bring(
    ports: MovePorts, title: str, wanted: WantedValues, rate: ByteRate | None, reason: str | None = None
) -> HeldThrottle:
    """Set `wanted`: record the run, write lists before rates, and wait until they are visible. A second call with the
    same arguments changes nothing.

    Before the first write, raises the errors of `prepare`. Later, raises Refused if a write failed and kquota restored
    everything, and Incomplete if a write failed and the run stays open. Raises Unknown if a write is uncertain or does
    not become visible in time, and Busy if another kquota now owns the run.
    """
    held = prepare(ports, title, wanted, rate, reason)
    if held.run is None:
        return held
    open_runs = ports.runs.unfinished()
    known = throttle_wanted.known(title, open_runs)
    if known is None:
        ports.runs.begin(held.run)
    else:
        ports.runs.update(held.run)
    try:
        run = _enforced(ports, held.run, wanted, others_than(held.run, open_runs))
    except Unknown as error:
        raise Unknown(error, *_stays_open(held.run)) from error
    except Busy:  # nothing is restored here, because another kquota now owns the run and restores it
        raise
    except KquotaError as error:
        if known is not None:
            raise Incomplete((error, *_stays_open(held.run)), done=[], undone=[]) from error
        raise _after_restoring(ports, held.run, error) from error
    return HeldThrottle(run=run, changes=held.changes)


def adjust(ports: MovePorts, run: Run, after: Run, reason: str | None = None) -> HeldThrottle:
    """Set new rates of an open run. `after` is the run with these rates, and is recorded before the first write. List
    entries do not change. A second call is safe.

    Dead brokers keep their rates, and do not delay the change, because the other brokers need their new rates now.

    A pause changes only the follower rates, because these limit only copies. A leader rate also limits a replica of a
    listed partition that falls out of sync (KIP-542), and such a replica must catch up even while the run is paused.
    The run also records the change, with `reason`, for its report.

    Raises Unreachable if no rate can be read, and the errors of `rates_of`, `enforce` and the ports.
    """
    runs = ports.runs
    wanted, now, dead = _settable(ports.cluster, after)
    others = others_than(run, runs.unfinished())
    adjusted = taking(with_rate_changes(after, run, ports.clock.now(), runs.me.person, reason), wanted, now, others)
    # Record even an unchanged run, because a process that lost the lock may have recorded that the run has ended.
    runs.update(adjusted)
    changes = needed(wanted, now)
    return HeldThrottle(run=enforce(ports, adjusted, wanted, now), changes=changes, dead=dead)


def prepare_adjusted(cluster: MoveCluster, after: Run) -> HeldThrottle:
    """Return the changes that `adjust` would make. Raises Unreachable if no rate can be read, and the errors of
    `rates_of` and of the cluster.
    """
    wanted, now, dead = _settable(cluster, after)
    return HeldThrottle(run=after, changes=needed(wanted, now), dead=dead)


def _settable(
    cluster: MoveCluster, after: Run
) -> tuple[WantedValues, Mapping[Setting, str | None], tuple[BrokerId, ...]]:
    """Return the rates that can be set, their current values, and the brokers whose rates cannot be read. Raises
    Refused if this user may not write a rate that changes.
    """
    wanted = rates_of(after)
    known = cluster.values(list(wanted))
    there = {setting: values for setting, values in wanted.items() if setting in known}
    dead = sorted({setting.broker for setting in wanted if setting not in known})
    now = known if there else read(cluster, wanted)
    cluster.must_permit([change.setting for change in needed(there, now)], moves=False)
    return there, now, tuple(dead)


def rates_of(run: Run) -> WantedValues:
    """Return the value that a run sets for each replication rate setting that the run holds. Raises Refused if the run
    has no rate or holds no such setting.
    """
    if run.rate is None or not run.rates_held:
        raise Refused(f"run {run.id} holds no rate, so there is nothing to adjust. Nothing was written")
    return {setting: (str(run.rate_on(setting)),) for setting in run.rates_held}


def restore(ports: MovePorts, ending: Sequence[Run]) -> Restoration:
    """Restore the throttle of each run that is still open, and end the run. A run stays open while one of its settings
    is pending.

    Waits until reads show the restored values. Raises Busy if another kquota has taken over the lock, Unreachable if
    the cluster does not answer, and Refused if the cluster refuses a request or a record cannot be read or written.
    """
    done: list[Change] = []
    pending: dict[Setting, KquotaError] = {}
    notes: list[str] = []
    for run in ending:
        latest = with_id(ports.runs.unfinished(), run.id)
        if latest is None:
            continue
        restoration = restore_run(ports, latest)
        done += restoration.restored
        pending |= restoration.pending
        notes += restoration.notes
    return Restoration(restored=tuple(done), pending=pending, notes=tuple(notes))


def would_restore(ports: MovePorts, ending: Sequence[Run]) -> Restoration:
    """Return the changes that `restore` would make if these runs ended one by one.

    Settings that cannot be read, for example those of dead brokers, count as pending. Only `restore` asks the KRaft
    controllers to write the settings of dead brokers.
    """
    done: list[Change] = []
    pending: dict[Setting, KquotaError] = {}
    # The runs in `ending` may differ from the record, for example after `--gone`, which records them before `restore`.
    latest = {run.id: run for run in ending}
    open_runs = {run.id: latest.get(run.id, run) for run in ports.runs.unfinished()}
    now = dict(ports.cluster.values(sorted({setting for run in ending for setting in run.taken})))
    for run_id in latest:
        run = open_runs.pop(run_id, None)
        if run is None:
            continue
        changes = restore_changes(run, now, tuple(open_runs.values()))
        others = tuple(open_runs.values())
        open_runs = {other.id: passing_on(run, now, other, others) for other in others}
        now |= {change.setting: change.after for change in changes}
        done += changes
        unread = [setting for setting in run.held if setting not in now]
        pending |= dict.fromkeys(unread, Unread(", and a dry run does not ask the KRaft controllers"))
    return Restoration(restored=tuple(done), pending=pending)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRecovery:
    """One check of a returning broker: its out-of-sync replicas, and the values that the check sets and restores. A dry
    run has the same values, but writes nothing.
    """

    run: Run | None
    """The run of this throttle, or None if there is none."""
    behind: tuple[TopicPartition, ...]
    """The partitions of the out-of-sync replicas."""
    changes: tuple[Change, ...] = ()
    """The values that the check sets."""
    restoration: Restoration = field(default_factory=Restoration)
    """The values that the check restores, and those that are pending."""
    unlimited: tuple[BrokerId, ...] = ()
    """The brokers on which kquota sets no rate because it cannot read their rates, for example because they are
    dead.
    """

    @property
    def done(self) -> bool:
        """True if the broker has caught up and every throttle is restored, so that no other check is needed."""
        return not self.behind and not self.restoration.pending


def recover(
    ports: MovePorts, broker: BrokerId, rate: ByteRate, going: Run | None = None, *, reason: str | None = None
) -> BrokerRecovery:
    """Throttle the out-of-sync replicas of a returning broker. Remove in-sync replicas from the lists, add out-of-sync
    replicas, and end the run when all are in sync.

    Call this function repeatedly. `going` is the run that the previous check returned, or None for the first check. If
    another kquota changed the rate of this run in the meantime, the new rate is kept. `reason` is recorded with a new
    run. Raises the errors of `bring`. Raises Refused if replicas are out of sync, but another kquota has ended this
    run. Also raises Refused if no run of this throttle is known, but a recorded run that cannot be read may hold it.
    """
    snapshot = ports.cluster.snapshot(None)
    late = throttle_wanted.behind(snapshot, broker)
    known = _recovery_run(ports.runs, broker)
    restoration = Restoration()
    if not late:
        if known is not None:
            restoration = restore(ports, [known])
        return BrokerRecovery(run=known, behind=(), restoration=restoration)
    if known is not None:
        rate = rate if going is None else known.rate or rate
    elif going is not None:
        behind = counted(len(late), "replica")
        raise Refused(
            f"broker {broker}: another kquota restored this throttle (still out of sync: {behind}). Run the same "
            "command to set it again"
        )
    wanted, unlimited = _recovering(ports.cluster, snapshot, broker, rate, late)
    if known is not None and (ended := _listed(known) - set(late)):
        # Check before the first write, because the error says that nothing was written. `bring` checks only its own.
        now = ports.cluster.values(list(wanted))
        readable = {setting: values for setting, values in wanted.items() if setting in now}
        ports.cluster.must_permit([change.setting for change in needed(readable, now)], moves=False)
        restoration, _ = restore_ended(ports, known, ended)
    held = bring(ports, throttle_wanted.recovery(broker), wanted, rate, reason)
    return BrokerRecovery(run=held.run, behind=late, changes=held.changes, restoration=restoration, unlimited=unlimited)


def would_recover(ports: MovePorts, broker: BrokerId, rate: ByteRate) -> BrokerRecovery:
    """Return the result that `recover` would have, without writes. Raises the errors of `prepare`.

    Like `recover`, raises Refused if no run of this throttle is known, but an unreadable run may hold it.
    """
    snapshot = ports.cluster.snapshot(None)
    late = throttle_wanted.behind(snapshot, broker)
    known = _recovery_run(ports.runs, broker)
    restoration = Restoration()
    if known is not None:
        ending = part_of(known, _listed(known) - set(late)) if late else known
        restoration = would_restore(ports, [ending])
    if not late:
        return BrokerRecovery(run=known, behind=(), restoration=restoration)
    wanted, unlimited = _recovering(ports.cluster, snapshot, broker, rate, late)
    title = throttle_wanted.recovery(broker)
    held = prepare(ports, title, wanted, rate, restored=restoration.restored)
    return BrokerRecovery(run=held.run, behind=late, changes=held.changes, restoration=restoration, unlimited=unlimited)


def _recovery_run(runs: Runs, broker: BrokerId) -> Run | None:
    known = throttle_wanted.known(throttle_wanted.recovery(broker), runs.unfinished())
    if known is None and runs.unreadable:
        raise Refused(
            f"broker {broker}: recorded run {runs.unreadable[0]} cannot be read, and may hold this throttle. Use the "
            "version of kquota that wrote it"
        )
    return known


def _recovering(
    cluster: MoveCluster, snapshot: Snapshot, broker: BrokerId, rate: ByteRate, late: Collection[TopicPartition]
) -> tuple[WantedValues, tuple[BrokerId, ...]]:
    """Return the settings to set, and `BrokerRecovery.unlimited`."""
    settings = [Setting.of_broker(alive, LEADER_RATE) for alive in snapshot.alive]
    readable = {setting.broker for setting in cluster.values(settings)}
    concerned = {replica for name in late for replica in snapshot.partitions[name].replicas}
    return throttle_wanted.recovering(snapshot, broker, rate, readable), tuple(sorted(concerned - readable))


def _listed(run: Run) -> set[TopicPartition]:
    found = (replica(s, entry) for s, taken in run.taken.items() if s.is_list for entry in taken.ours)
    return {named[0] for named in found if named is not None}


def _enforced(ports: MovePorts, run: Run, wanted: WantedValues, others: Sequence[Run]) -> Run:
    for part in (
        {s: values for s, values in wanted.items() if s.is_list},
        {s: values for s, values in wanted.items() if not s.is_list},
    ):
        now = read(ports.cluster, part)
        # Record the values again, because another client may have changed them, and the run must restore the new ones.
        run = record(ports, run, taking(run, part, now, others))
        run = enforce(ports, run, part, now)
    return run


def _stays_open(run: Run) -> tuple[str, StepFor, str]:
    ending = StepFor(NextStep.END_THROTTLE, run.id)
    return f". Run {run.id} stays open. The same command continues it, and ", ending, " ends it"


def _after_restoring(ports: MovePorts, run: Run, error: KquotaError) -> KquotaError:
    restoration = restore_after(ports, run, error)
    if not restoration.pending:
        return Refused(error, ". kquota restored everything that it had written")
    pending = [str(setting) for setting in restoration.pending]
    return Incomplete(
        (error, f". These settings may still be set: {', '.join(pending)}", *_stays_open(run)), done=[], undone=pending
    )
