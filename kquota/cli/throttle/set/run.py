"""`kquota throttle set`: throttle topics and brokers, throttle a returning broker, or change the rate of a run."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kquota.cli import move_stores, rates, world
from kquota.cli.contract import say
from kquota.cli.keeping_up import PacedCopies, must_keep_up
from kquota.cli.list_options import broker_ids, names
from kquota.cli.output import Answer
from kquota.cli.suggestion import plan_argument, suggested
from kquota.cli.throttle import checks
from kquota.cli.throttle.set import recovery
from kquota.cli.throttle.set.answer import ThrottleSet, throttle_set
from kquota.cli.throttle.set.command import SetOptions
from kquota.cli.throttle.throughput import flowing, starving
from kquota.errors import Invalid, Refused
from kquota.list_text import named_brokers
from kquota.measure import ByteRate, rate_in_full
from kquota.pace.share import Side
from kquota.reassign import plan as plans
from kquota.reassign.moves import moves
from kquota.reassign.plan import Plan
from kquota.reassign.run import Purpose, Run, at_rate, covers
from kquota.reassign.throttle_writes import WantedValues
from kquota.settings.resource import Setting
from kquota.terms import FOLLOWER_RATE, LEADER_RATE, BrokerId
from kquota.throttle import actions, set_and_clear
from kquota.throttle import wanted as throttle_wanted
from kquota.throttle.cluster_throttles import ClusterThrottles
from kquota.throttle.port import Ports
from kquota.throttle.wanted import LISTS, RATES

_ANYWAY: Final = "set the given throttle"
_SIDES: Final = {LEADER_RATE: Side.LEADER, FOLLOWER_RATE: Side.DESTINATION}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Selected:
    """The options that select topics, brokers, sides and the rate. Empty `sides` means both sides."""

    topics: tuple[str, ...]
    all_topics: bool
    brokers: tuple[BrokerId, ...]
    all_brokers: bool
    rate: ByteRate | None
    sides: tuple[str, ...]

    @property
    def selects(self) -> bool:
        return bool(self.topics or self.brokers or self.all_topics or self.all_brokers)


def run(options: SetOptions) -> Answer | Generator[Answer]:
    """Throttle topics and brokers, throttle a returning broker, or change the rate of an open run. A dry run only
    returns the changes.

    For topics and brokers, the command may first measure throughput for the time of `--sample`. For a returning broker,
    except in a dry run, returns a generator with an answer for each check.

    Raises Invalid for a missing or invalid option, and for options that cannot be combined. Raises Refused for an
    unknown topic, broker or run, and if a check fails. Raises Busy if another kquota holds the lock, and Unreachable if
    the cluster does not answer. Also raises the errors of `set_and_clear.bring`, `set_and_clear.adjust` and
    `set_and_clear.recover`.
    """
    seconds = checks.seconds_of(options.sample)
    asked = _Selected(
        topics=names(options.topic, "--topic"),
        all_topics=options.all_topics,
        brokers=broker_ids(options.broker, "--broker"),
        all_brokers=options.all_brokers,
        rate=None if options.throttle is None else rates.throttle(options.throttle, "--throttle"),
        sides=tuple(s for s, given in (("leader", options.leader), ("follower", options.follower)) if given),
    )
    _check(asked, options)
    rate = asked.rate
    if rate is not None:
        where = named_brokers(asked.brokers) if asked.brokers else "each broker"
        say(f"throttle: {rate_in_full(rate)} on {where}")
    at = world.where(options.connection)
    if options.recovering is not None and rate is not None:
        broker = BrokerId(options.recovering)
        if options.dry_run:
            return recovery.would_recover(at, options, broker, rate)
        return recovery.recover(at, options, broker, rate)
    if options.run is not None or options.reassignment_json_file is not None:
        assert rate is not None
        return adjusted(options, lambda found: at_rate(found, rate, _selected_rates(found, asked)))
    return _set(at, options, asked, seconds)


def _check(asked: _Selected, options: SetOptions) -> None:
    of_run = options.run is not None or options.reassignment_json_file is not None
    others = (options.recovering, options.run, options.reassignment_json_file)
    selects = asked.selects and not (of_run and not (asked.topics or asked.all_topics or asked.all_brokers))
    if [selects, *(other is not None for other in others)].count(True) != 1:
        raise Invalid(
            "give exactly one target: topics and brokers (--topic, --all-topics, --broker, --all-brokers), a returning "
            "broker (--recovering BROKER), or an open run (--run RUN or --reassignment-json-file FILE). With an "
            "open run of a move, you can also give --broker"
        )
    if not (asked.selects or of_run) and asked.sides:
        raise Invalid("--leader and --follower do not apply to --recovering. Leave them out")
    if (asked.topics and asked.all_topics) or (asked.brokers and asked.all_brokers):
        raise Invalid(
            "--topic cannot be combined with --all-topics, and --broker cannot be combined with --all-brokers. Leave "
            "out one of each pair"
        )
    if options.once and options.recovering is None:
        raise Invalid("--once needs --recovering. Give both, or leave out --once")
    if asked.rate is None and (not asked.selects or of_run or asked.brokers or asked.all_brokers):
        raise Invalid("the rate is missing. Give --throttle RATE")


def _set(at: world.Where, options: SetOptions, asked: _Selected, seconds: float) -> ThrottleSet:
    hold = None if options.dry_run else move_stores.LockRequest(doing="throttle set")
    with move_stores.throttling(at, options.state_dir, holding=hold) as ports:
        throttles = actions.read_all(ports) if asked.all_topics else actions.read(ports)
        if asked.all_topics:
            checks.must_show_all(throttles.hidden_topics)
        topics = tuple(throttles.topics) if asked.all_topics else asked.topics
        wanted = throttle_wanted.whole_topics(
            topics, _brokers(ports, throttles, asked, topics), asked.rate, asked.sides or throttle_wanted.BOTH
        )
        what = ports, throttle_wanted.title(wanted), wanted, asked.rate, options.reason
        held = set_and_clear.prepare(*what)
        after = throttles.after(held.changes)
        if not options.force:
            _must_keep_up(ports, after, wanted, asked.rate)
        for line in starving(after, flowing(ports, after, seconds)):
            say(line)
        if not options.dry_run:
            held = set_and_clear.bring(*what)
        record = None if held.run is None or options.dry_run else ports.runs.place(held.run)
        alone = None if record is None else ports.runs.alone
    notes = tuple(_remarks(asked, topics))
    return throttle_set(held, record, dry_run=options.dry_run, notes=notes, alone=alone)


def _must_keep_up(ports: Ports, after: ClusterThrottles, wanted: WantedValues, rate: ByteRate | None) -> None:
    sides = {(setting.broker, _SIDES[setting.key]) for setting in wanted if not setting.is_list}
    throttled = {name for key in LISTS.values() for name, _ in after.listed(key)}
    running = after.snapshot.running.keys() & throttled
    now = {name: after.snapshot.partitions[name] for name in sorted(running)}
    if rate is not None and sides and now:
        plan = Plan(targets={name: held.target for name, held in now.items()})
        copies = PacedCopies(moves=moves(plan, now), partitions=now, sides=sides)
        must_keep_up(ports.log_dirs, copies, rate, never="a running move never ends", anyway=_ANYWAY)


def _remarks(asked: _Selected, topics: Sequence[str]) -> Iterator[str]:
    if topics:
        yield (
            "note: the throttle counts fetches of in-sync replicas, but never delays them (KAFKA-4313). Replicas that "
            "fall out of sync catch up at the throttle rate"
        )
    if topics and asked.rate is None:
        yield (
            "note: throttled replica lists limit nothing on a broker without a throttle rate. To set a rate, give "
            "--throttle RATE"
        )
    if asked.rate is not None and not topics:
        yield (
            "note: without --topic, the throttle rate limits only replicas that are already in throttled replica lists"
        )


def _brokers(
    ports: Ports, throttles: ClusterThrottles, asked: _Selected, topics: Sequence[str]
) -> tuple[BrokerId, ...]:
    """Return the brokers that get the rate. Without `--broker`, brokers that did not answer are left out with a
    warning.
    """
    checks.must_exist(ports.cluster, throttles, topics, asked.brokers)
    if asked.rate is None:
        return ()
    if silent := [broker for broker in asked.brokers if broker in throttles.unread]:
        raise Refused(
            f"broker {silent[0]} did not answer, so kquota cannot set its rate. Check that it is running. Nothing was "
            "written"
        )
    if asked.brokers:
        return asked.brokers
    if asked.all_brokers:
        if throttles.why_unlisted is not None:
            raise throttles.why_unlisted
        every = {*throttles.brokers, *throttles.unread}
    else:
        partitions = throttles.snapshot.partitions
        every = {b for topic in topics for name in throttles.topics[topic] for b in partitions[name].replicas}
    if silent := sorted(every & set(throttles.unread)):
        say(
            f"warning: no rate is set on {named_brokers(silent)} (dead or unreachable). Run the same command again "
            "when all brokers are back"
        )
    return tuple(sorted(every - set(throttles.unread)))


def adjusted(options: SetOptions, become: Callable[[Run], Run]) -> ThrottleSet:
    """Set new rates of the selected open run. `become` receives the run, and returns the run with its new rates. A dry
    run only returns the changes.

    Raises Refused if the selected run is not open or has no rate, and, without `--force`, if a copy could never catch
    up. Raises Invalid for an invalid plan file. Also raises the errors of `become` and of `set_and_clear.adjust`.
    """
    plan = None if options.reassignment_json_file is None else plans.read(options.reassignment_json_file)
    hold = None if options.dry_run else move_stores.LockRequest(doing="throttle set")
    with move_stores.throttling(world.where(options.connection), options.state_dir, holding=hold) as ports:
        open_runs = ports.runs.unfinished()
        if plan is None:
            found = next((one for one in open_runs if one.id == options.run), None)
        else:
            found = covers(plan, open_runs)
        run = _must_be_open(found, open_runs, options, over_zookeeper=ports.log_dirs is None)
        set_and_clear.rates_of(run)  # called first: it raises Refused for a run without a rate
        after = become(run)
        if not options.force:
            now = ports.cluster.snapshot(run.goal.topics).partitions
            copies = PacedCopies(moves=moves(run.goal, now), partitions=now)
            for rate, sides in _changed_rates(run, after).items():
                must_keep_up(ports.log_dirs, replace(copies, sides=sides), rate, anyway=_ANYWAY)
        if options.dry_run:
            held = set_and_clear.prepare_adjusted(ports.cluster, after)
        else:
            held = set_and_clear.adjust(ports, run, after, options.reason)
        record = None if options.dry_run else ports.runs.place(run)
    return throttle_set(held, record, dry_run=options.dry_run)


def _changed_rates(run: Run, after: Run) -> Mapping[ByteRate, set[tuple[BrokerId, Side]] | None]:
    """Return each new rate and the sides that it limits. None means every side of the move."""
    if not after.broker_rates:
        return {} if after.rate is None else {after.rate: None}
    found: dict[ByteRate, set[tuple[BrokerId, Side]]] = {}
    for setting in after.rates_held:
        rate = after.rate_on(setting)
        if rate is not None and rate != run.rate_on(setting):
            found.setdefault(rate, set()).add((setting.broker, _SIDES[setting.key]))
    return found


def _selected_rates(run: Run, asked: _Selected) -> tuple[Setting, ...]:
    """Return the settings of the rates to change, or an empty tuple for all rates of the run."""
    if not asked.brokers and not asked.sides:
        return ()
    if run.purpose is not Purpose.MOVE:
        raise Refused(
            f"run {run.id}: a throttle without a move has one rate for all its brokers. Leave out --broker, --leader "
            "and --follower"
        )
    if run.paused:
        raise Refused(
            f"run {run.id} is paused. First continue it: {suggested(f'move adjust --continue --run {run.id}')}"
        )
    keys = [RATES[side] for side in asked.sides or throttle_wanted.BOTH]
    found = [setting for setting in run.rates_held if setting.key in keys]
    missing = [broker for broker in asked.brokers if str(broker) not in {setting.name for setting in found}]
    if missing:
        sides = " or ".join(asked.sides or throttle_wanted.BOTH)
        here = {setting.broker for setting in found}
        where = f" It sets one on {named_brokers(here)}." if here else ""
        raise Refused(f"run {run.id} sets no {sides} rate on broker {missing[0]}.{where} Correct --broker")
    if not found:
        given = " and ".join(f"--{side}" for side in asked.sides)
        raise Refused(f"run {run.id} sets no {' or '.join(asked.sides)} rate. Leave out {given}")
    return tuple(s for s in found if not asked.brokers or s.broker in asked.brokers)


def _must_be_open(found: Run | None, open_runs: Sequence[Run], options: SetOptions, *, over_zookeeper: bool) -> Run:
    """Return `found`, or raise Refused if it is None. Over ZooKeeper, the message does not suggest `--execute`, because
    `--execute` then cannot take over a move without a record.
    """
    if found is not None:
        return found
    there = ", ".join(run.id for run in open_runs) or "none"
    which = "no open run of this plan" if options.run is None else f"run {options.run}: no open run with this id"
    plan = plan_argument(options.reassignment_json_file)
    rate = shlex.quote(options.throttle or "RATE")
    execute = suggested(f"reassign-partitions --execute --additional --reassignment-json-file {plan} --throttle {rate}")
    instead = "" if over_zookeeper else f" If the move runs without a record, set its rate with {execute}."
    raise Refused(f"{which} is recorded here (open runs: {there}).{instead} Nothing was written")
