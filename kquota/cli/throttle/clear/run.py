"""`kquota throttle clear`: end runs of `throttle set`, or remove every throttle of the cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kquota.cli import confirmation, lost_brokers, move_stores, world
from kquota.cli.contract import DONE, NOT_YET, say, without_retry
from kquota.cli.output import Answer, key
from kquota.cli.suggestion import suggested
from kquota.cli.throttle.changes import cleared_of, difference, lists_first, pending, remaining
from kquota.cli.throttle.clear.command import ClearOptions
from kquota.cli.throttle.throughput import hidden_lists, unread
from kquota.errors import Invalid, KquotaError, Refused, Unreachable
from kquota.measure import agreeing
from kquota.reassign.run import Owner, Purpose, Run
from kquota.reassign.throttle_writes import Restoration, clear_dead
from kquota.settings import change
from kquota.settings.change import Change
from kquota.settings.resource import Setting
from kquota.terms import DEFAULT, THROTTLE_RATES, BrokerId
from kquota.throttle import actions, set_and_clear
from kquota.throttle.cluster_throttles import ClusterThrottles, order
from kquota.throttle.port import Ports


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleared(Answer):
    """The result of `throttle clear`. In a dry run, the fields describe what kquota would restore and remove."""

    dry_run: bool
    restored: tuple[Change, ...] = key("given_back")
    """The settings that were restored, or removed with `--all`."""
    pending: Mapping[Setting, KquotaError] = key(form=pending)
    """The settings that could not be restored or removed yet, with the reasons."""
    cleared_brokers: tuple[BrokerId, ...]
    """The brokers whose rates were unknown until `--all` removed the rates."""

    def text(self) -> Iterator[str]:
        yield from lists_first(self.restored)
        yield from _unknown_rates(self.cleared_brokers)


def run(options: ClearOptions) -> Cleared:
    """Restore the throttle of the selected runs, or with `--all` remove every throttle. A dry run only returns the
    changes.

    The exit code is 8 if a setting is pending or unknown. Without `--run` and `--all`, it is also 8 if a recorded run
    cannot be read, or if kquota found no run to end but one may be hidden. Otherwise, it is 0.

    Raises Invalid for options that cannot be combined, and if a confirmation is necessary but there is no terminal.
    Raises Refused if the run of `--run` is not an open throttle run, if a broker of `--gone` is alive, if a journal
    cannot be read, if the cluster refuses a request, or if the operator does not confirm. Raises Conflict if a throttle
    changed before the confirmation. Raises Busy if another kquota holds the lock, and Unreachable if the cluster does
    not answer.
    """
    if options.everything and options.run is not None:
        raise Invalid("--run and --all cannot be combined. Give one of them")
    if options.everything and options.gone:
        raise Invalid(
            "--gone cannot be combined with --all, because --gone concerns only recorded runs. Leave out --gone"
        )
    asks = options.everything and not (options.yes or options.dry_run)
    if asks:
        confirmation.must_have_terminal()
    at = world.where(options.connection)
    if options.everything:
        return _clear_all(at, options, asks=asks)
    return _restore(at, options, lost_brokers.asked(options.gone, at))


def _restore(at: world.Where, options: ClearOptions, lost: Sequence[BrokerId]) -> Cleared:
    hold = None if options.dry_run else move_stores.LockRequest(doing="throttle clear")
    with move_stores.throttling(at, options.state_dir, holding=hold) as ports:
        mine, others = _ending(ports.runs.unfinished(), options.run, ports.runs.me)
        ending = lost_brokers.without(mine, lost, ports.cluster)
        lost_brokers.warn(mine, lost)
        if options.dry_run:
            restoration = set_and_clear.would_restore(ports, ending)
        else:
            for each in ending if lost else ():
                ports.runs.update(each)
            restoration = set_and_clear.restore(ports, ending)
        unseen, unreadable = ports.runs.unseen, options.run is None and bool(ports.runs.unreadable)
        unknown = unreadable or (not ending and ports.runs.hidden)
    notes = []
    if not ending:
        none = (
            "no open run of `throttle set` belongs to you"
            if others
            else "no open run of `throttle set` is recorded here"
        )
        notes = [none if unknown else f"{none}, so there is nothing to restore", *world.unseen(unseen)]
    elif not (restoration.restored or restoration.pending or lost):
        ids = ", ".join(run.id for run in ending)
        nothing = "nothing would be restored" if options.dry_run else "nothing was restored"
        notes = [f"{ids}: {nothing}, because other clients changed the values, or other open runs hold them"]
    notes += [
        f"note: run {other.id} of {other.owner} stays open. End it with {suggested(f'throttle clear --run {other.id}')}"
        for other in others
    ]
    return _cleared(restoration, notes, options, code=NOT_YET if restoration.pending or unknown else DONE)


def _cleared(
    restoration: Restoration, notes: Sequence[str], options: ClearOptions, dead: Sequence[BrokerId] = (), *, code: int
) -> Cleared:
    done = "removed" if options.everything else "restored"
    again = "Run the command without --dry-run" if options.dry_run else "Run the same command again"
    return Cleared(
        dry_run=options.dry_run,
        restored=restoration.restored,
        pending=restoration.pending,
        cleared_brokers=tuple(dead),
        notes=(*notes, *remaining(restoration, done, again)),
        code=code,
    )


def _ending(open_runs: Sequence[Run], run: str | None, me: Owner) -> tuple[list[Run], list[Run]]:
    """Return the throttle runs to end, and the other open throttle runs (none if `run` is given)."""
    throttles = [one for one in open_runs if one.purpose is Purpose.THROTTLE]
    if run is None:
        mine = [one for one in throttles if one.owner is None or one.owner.same_person(me)]
        return mine, [one for one in throttles if one not in mine]
    if found := [one for one in throttles if one.id == run]:
        return found, []
    if any(one.id == run for one in open_runs):
        resume = suggested(f"move resume --run {run}")
        raise Refused(f"run {run} moves partitions, so `throttle clear` does not restore its throttle. Use {resume}")
    there = ", ".join(one.id for one in throttles) or "none"
    raise Refused(
        f"run {run}: no open run of `throttle set` with this id is recorded here (open runs: {there}). Nothing was "
        f"written. See the throttles and their runs with {suggested('throttle show')}"
    )


def _clear_all(at: world.Where, options: ClearOptions, *, asks: bool) -> Cleared:
    """Remove every throttled replica list and every rate except those in the broker defaults. Then end the recorded
    throttle runs, unless a setting of a live broker or of a topic is pending.
    """
    hold = None if options.dry_run else move_stores.LockRequest(doing="throttle clear --all")
    with move_stores.throttling(at, options.state_dir, holding=hold) as ports:
        throttles = actions.read(ports)
        wanted = _every(throttles)
        _disclose(throttles)
        if asks and (wanted or throttles.unread):
            _ask(ports, wanted, throttles.unread)
        dead = Restoration()
        if options.dry_run:
            restoration = Restoration(restored=wanted)
        else:
            dead = clear_dead(ports.cluster, throttles.unread, THROTTLE_RATES)
            removal = actions.remove(ports, wanted)
            ours = [run for run in ports.runs.unfinished() if run.purpose is Purpose.THROTTLE]
            closed = Restoration()
            if not removal.pending:
                closed = set_and_clear.restore(ports, ours)
            restoration = replace(removal, pending={**removal.pending, **closed.pending})
        hidden = _hidden(ports, throttles)
    cleared = () if options.dry_run else cleared_of(throttles.unread, dead)
    shown = throttles.unread if options.dry_run else cleared
    unlisted = throttles.why_unlisted is not None
    hidden_topics = tuple(sorted({*throttles.hidden_topics, *(hidden or ())}))
    unread_lists = throttles.unread_topics or hidden is None or hidden_topics
    unknown = unlisted or unread_lists or len(cleared) < len(throttles.unread)
    nothing = () if wanted or throttles.unread or unknown else ("there is nothing to remove",)
    notes = [*unread(throttles, cleared), *hidden_lists(hidden_topics), *dead.notes, *nothing]
    restoration = replace(restoration, pending={**restoration.pending, **dead.pending})
    return _cleared(restoration, notes, options, shown, code=NOT_YET if restoration.pending or unknown else DONE)


def _hidden(ports: Ports, throttles: ClusterThrottles) -> tuple[str, ...] | None:
    """Return the topics that Kafka hides from this user, or None with a warning if a broker does not answer.

    If this user may not read log dirs (this needs Describe on the cluster), return no topics. This is not an error,
    because `clear` needs only the permission AlterConfigs.
    """
    try:
        return actions.hidden_topics(ports.cluster, ports.log_dirs, throttles)
    except Refused:
        return ()
    except Unreachable as error:
        why = without_retry(error)
        world.warn(f"it is unknown whether Kafka hides topics from this user: {why}. Run the same command again")
        return None


def _unknown_rates(brokers: Iterable[BrokerId]) -> Iterator[str]:
    return (f"broker {broker}: every rate: unknown -> unset" for broker in brokers)


def _every(throttles: ClusterThrottles) -> tuple[Change, ...]:
    now = throttles.values
    every = (Change(setting=setting, before=now[setting], after=None) for setting in sorted(now, key=order))
    lists, rates = change.lists_first(every)
    return (*lists, *rates)


def _disclose(throttles: ClusterThrottles) -> None:
    if running := len(throttles.snapshot.running):
        moving = agreeing(running, "partition", "is", "are")
        say(f"warning: {moving} moving. Without a throttle, a move uses all available bandwidth")
    if default := throttles.limits.get(DEFAULT):
        keys = ",".join(default)
        remove = suggested(f"configs --alter --delete-config {keys} --broker-defaults")
        say(f"warning: rates in the broker defaults stay set. Remove them: {remove}")


def _ask(ports: Ports, changes: Sequence[Change], dead: Sequence[BrokerId]) -> None:
    for line in confirmation.first([*difference(changes), *_unknown_rates(dead)]):
        say(line)
    confirmation.must_agree("remove all of these throttles, including those of other tools and users?")
    confirmation.must_still_be(tuple(changes), _every(actions.read(ports)), "the throttles")
