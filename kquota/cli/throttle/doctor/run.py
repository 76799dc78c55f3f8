"""`kquota throttle doctor`: find problems, and with `--fix` remove leftovers and check again."""

from __future__ import annotations

from collections.abc import Sequence

from kquota.cli import confirmation, move_stores, world
from kquota.cli.contract import say, worded
from kquota.cli.throttle.changes import cleared_of, difference
from kquota.cli.throttle.doctor.answer import Examination, examination
from kquota.cli.throttle.doctor.command import DoctorOptions
from kquota.cli.throttle.throughput import unread
from kquota.errors import Invalid, Refused
from kquota.measure import duration, human_duration
from kquota.reassign.throttle_writes import clear_dead
from kquota.settings.change import Change
from kquota.terms import REPLICATION_RATES, BrokerId
from kquota.throttle import actions, doctor_rates
from kquota.throttle.actions import Leftovers
from kquota.throttle.cluster_throttles import ClusterThrottles
from kquota.throttle.port import Ports


def run(options: DoctorOptions) -> Examination:
    """Find problems with throttles, and record when doctor first saw each leftover. With `--fix`, also remove
    leftovers, or in a dry run only return them.

    Raises Invalid for an option that needs `--fix` if `--fix` is not given, for an invalid time, and if a confirmation
    is necessary but there is no terminal. Raises Refused if a journal cannot be read, if the cluster refuses a request,
    or if doctor cannot record or read when it first saw each leftover although `--fix` or `--older-than` needs this.
    Raises Unreachable if the cluster does not answer. Before it removes leftovers, also raises Refused if kquota cannot
    read all runs or the operator does not confirm, Conflict if a throttle changed before the confirmation, and Busy if
    another kquota holds the lock. The exit code is as for `examination`.
    """
    for option, given in (
        ("--older-than", options.older_than is not None),
        ("--yes", options.yes),
        ("--dry-run", options.dry_run),
    ):
        if given and not options.fix:
            raise Invalid(f"{option} needs --fix. Give both, or leave out {option}")
    asks = options.fix and not (options.yes or options.dry_run)
    if asks:
        confirmation.must_have_terminal()
    seconds = 0.0 if options.older_than is None else duration(options.older_than, "--older-than")
    at = world.where(options.connection)
    if not options.fix or options.dry_run:
        return _look(at, options, seconds if options.fix else None)
    return _fix(at, options, seconds, asks=asks)


def _look(at: world.Where, options: DoctorOptions, older_than: float | None) -> Examination:
    """Find problems, and record when doctor first saw each leftover. Unless `older_than` (in seconds) is None, also
    show what `--fix` would do.
    """
    with move_stores.throttling(at, options.state_dir) as ports:
        throttles = actions.read_all(ports)
        try:
            left: Leftovers | None = actions.leftovers(ports, throttles, older_than or 0.0)
        except Refused as error:
            if older_than:
                raise
            left = None
            say(f"warning: kquota cannot record when it first saw each leftover: {worded(error)}")
    notes = list(unread(throttles))
    planned: Sequence[Change] = ()
    if older_than is not None and left is not None:
        planned = left.changes
        notes += _proposal(planned, _dead(throttles, planned, older_than))
    sightings = None if left is None else left.sightings
    return examination(throttles, sightings, planned=planned, notes=notes)


def _fix(at: world.Where, options: DoctorOptions, older_than: float, *, asks: bool) -> Examination:
    hold = move_stores.LockRequest(doing="throttle doctor --fix", cautious=True)
    with move_stores.throttling(at, options.state_dir, holding=hold) as ports:
        _must_know_all_runs(ports)
        throttles = actions.read_all(ports)
        left = actions.leftovers(ports, throttles, older_than)
        candidates = _dead(throttles, left.changes, older_than)
        if asks and (left.changes or candidates):
            _ask(left.changes, candidates, ports, older_than)
        removal = actions.remove(ports, left.changes)
        throttles = actions.read_all(ports)
        dead = clear_dead(ports.cluster, candidates, REPLICATION_RATES)
        sightings = actions.leftovers(ports, throttles, older_than).sightings
    cleared = cleared_of(candidates, dead)
    undone = {**removal.pending, **dead.pending}
    notes = [
        *unread(throttles, cleared),
        *dead.notes,
        *(f"removed: {line}" for line in difference(removal.restored)),
    ]
    notes += [
        f"warning: {setting} may still be set ({worded(why)}). Run the same command again"
        for setting, why in undone.items()
    ]
    if left.young:
        notes.append(f"some leftovers stay, because doctor first saw them less than {human_duration(older_than)} ago")
    return examination(throttles, sightings, fixed=removal.restored, undone=undone, cleared=cleared, notes=notes)


def _dead(throttles: ClusterThrottles, changes: Sequence[Change], older_than: float) -> tuple[BrokerId, ...]:
    """Return the dead brokers whose rates `--fix` removes. If `older_than` is not 0, there are none, because the age of
    an unknown rate is unknown.
    """
    return () if older_than else doctor_rates.removable_unread(throttles.after(changes))


def _must_know_all_runs(ports: Ports) -> None:
    if ports.runs.hidden:
        raise Refused(
            ports.runs.unseen,
            ". Nothing was removed, because a run of another host may need throttles that look like leftovers",
        )
    if unreadable := ports.runs.unreadable:
        raise Refused(
            f"recorded run {unreadable[0]} cannot be read, so its values are unknown. Nothing was removed. Use the "
            "version of kquota that wrote the record"
        )


def _ask(changes: Sequence[Change], dead: Sequence[BrokerId], ports: Ports, older_than: float) -> None:
    for line in _proposal(changes, dead):
        say(line)
    confirmation.must_agree("remove these throttles?")
    now = actions.leftovers(ports, actions.read_all(ports), older_than).changes
    confirmation.must_still_be(tuple(changes), now, "the throttles")


def _proposal(changes: Sequence[Change], dead: Sequence[BrokerId]) -> list[str]:
    unknown = [f"broker {broker}: leader and follower rates: unknown -> unset" for broker in dead]
    return confirmation.first([*difference(changes), *unknown]) or ["there is nothing that --fix would remove"]
