"""`kquota throttle set`: throttle topics and brokers without a move, a returning broker, or a running move anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kquota.cli import rates, world
from kquota.cli.connection import Connection, connected
from kquota.cli.contract import DONE, say
from kquota.cli.listed import broker_ids, names
from kquota.cli.options import DryRun, Output, OutputFormat, StateDir
from kquota.cli.throttle import options
from kquota.errors import Invalid, Refused
from kquota.measure import ByteRate, human_rate
from kquota.several import joined
from kquota.terms import BrokerId

if TYPE_CHECKING:
    from kquota.reassign.run import Run
    from kquota.throttle.port import Ports
    from kquota.throttle.standing import Standing

EPILOG: Final = """What is set is on record: `kquota throttle clear` gives back what stood before, value by value.

Examples:
  kquota throttle set --bootstrap-server localhost:9092 --topic orders --throttle 50MB/s
  kquota throttle set --bootstrap-server localhost:9092 --recovering 3 --throttle 50MB/s"""


HEADINGS: Final = {
    "--throttle": "How fast",
    "--topic": "Of topics and brokers",
    "--recovering": "Or of a broker that comes back",
    "--run": "Or of a move under way",
    "--sample": "Trial, record and output",
}
"""The first option of each part of the help, and its heading."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """The options of a throttle without a move; of no `sides` both are meant."""

    topics: tuple[str, ...]
    all_topics: bool
    brokers: tuple[BrokerId, ...]
    all_brokers: bool
    rate: ByteRate | None
    sides: tuple[str, ...]

    @property
    def selects(self) -> bool:
        """Whether it names topics or brokers."""
        return bool(self.topics or self.brokers or self.all_topics or self.all_brokers)


@connected()
def set_(
    connection: Connection,
    throttle: Annotated[
        str | None,
        typer.Option("--throttle", metavar="RATE", help="The rate of each broker: 50MB/s; bare: bytes per second."),
    ] = None,
    topic: Annotated[
        list[str] | None, typer.Option("--topic", metavar="T,…", help="Throttle every replica of these topics.")
    ] = None,
    all_topics: Annotated[bool, typer.Option("--all-topics", help="Throttle every replica of every topic.")] = False,
    broker: Annotated[
        list[str] | None,
        typer.Option(
            "--broker", metavar="ID,…", help="Set the rate on these brokers.  [default: all that hold replicas]"
        ),
    ] = None,
    all_brokers: Annotated[bool, typer.Option("--all-brokers", help="Set the rate on every broker.")] = False,
    leader: Annotated[bool, typer.Option("--leader", help="Only what leaders send.")] = False,
    follower: Annotated[bool, typer.Option("--follower", help="Only what followers receive.")] = False,
    recovering: Annotated[
        int | None,
        typer.Option("--recovering", metavar="BROKER", min=0, help="Throttle just what this broker is behind with."),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="With --recovering: one look; exits 8 while the broker is behind.")
    ] = False,
    run: Annotated[str | None, typer.Option("--run", metavar="RUN", help="Give this open run another rate.")] = None,
    reassignment_json_file: Annotated[
        Path | None,
        typer.Option("--reassignment-json-file", metavar="FILE", help="The same for the open run of this plan."),
    ] = None,
    sample: Annotated[
        str,
        typer.Option("--sample", metavar="TIME", help="How long to measure what in-sync followers take of it; 0: not."),
    ] = "3s",
    dry_run: DryRun = False,
    state_dir: StateDir = None,
    output: OutputFormat = Output.text,
) -> int:
    """Throttle topics and brokers, a broker that comes back, or a move under way; on record, to be given back."""
    seconds = options.seconds_of(sample)
    asked = _Asked(
        topics=names(topic, "--topic"),
        all_topics=all_topics,
        brokers=broker_ids(broker, "--broker"),
        all_brokers=all_brokers,
        rate=None if throttle is None else rates.throttle(throttle, "--throttle"),
        sides=tuple(side for side, given in (("leader", leader), ("follower", follower)) if given),
    )
    _check(asked, [recovering, run, reassignment_json_file], once=once, recovers=recovering is not None)
    rate = asked.rate
    if rate is not None:
        say(f"throttle: {rate} bytes per second ({human_rate(rate)}) on each broker")
    at = world.where(connection)
    if recovering is not None and rate is not None:
        from kquota.cli.throttle import recovery

        return recovery.recover(at, state_dir, BrokerId(recovering), rate, output, once=once, dry_run=dry_run)
    if not asked.selects and rate is not None:
        return _adjust(at, state_dir, run, reassignment_json_file, rate, output, dry_run=dry_run)
    return _set(at, state_dir, asked, output, seconds, dry_run=dry_run)


def _check(asked: _Asked, others: Sequence[object], *, once: bool, recovers: bool) -> None:
    """Raises Invalid for what does not stand together; `others` are what may be throttled in place of a selection."""
    if [asked.selects, *(other is not None for other in others)].count(True) != 1:
        raise Invalid(
            "throttle what? Give --topic, --all-topics, --broker or --all-brokers; or --recovering BROKER; or --run "
            "RUN or --reassignment-json-file FILE of a move under way"
        )
    if not asked.selects and asked.sides:
        raise Invalid("--leader and --follower go with --topic, --all-topics, --broker and --all-brokers")
    if (asked.topics and asked.all_topics) or (asked.brokers and asked.all_brokers):
        raise Invalid("name topics or brokers, or take them all, not both")
    if once and not recovers:
        raise Invalid("--once goes with --recovering")
    if asked.rate is None and (not asked.selects or asked.brokers or asked.all_brokers):
        raise Invalid("how fast? Give --throttle RATE")


def _set(
    at: world.Where, state_dir: Path | None, asked: _Asked, output: Output, seconds: float, *, dry_run: bool
) -> int:
    from kquota.cli.throttle import set_printed
    from kquota.throttle import actions, holding
    from kquota.throttle import wanted as wishes

    clock = world.SystemClock()
    with world.throttling(at, state_dir, holding=None if dry_run else "throttle set") as ports:
        standing = actions.read(ports)
        topics = tuple(standing.topics) if asked.all_topics else asked.topics
        wanted = wishes.whole_topics(topics, _brokers(standing, asked, topics), asked.rate, asked.sides or wishes.BOTH)
        title = wishes.title(wanted)
        held = holding.prepare(ports.cluster, ports.runs, clock, title, wanted, asked.rate)
        _warn(ports, standing.after(held.changes), seconds)
        if not dry_run:
            held = holding.bring(ports.cluster, ports.runs, clock, title, wanted, asked.rate)
        record = None if held.run is None or dry_run else ports.runs.place(held.run)
    if topics:
        say(
            "note: replicas in sync are counted and never delayed (KAFKA-4313); what falls out of sync comes back at "
            "this rate"
        )
    if topics and asked.rate is None:
        say("note: lists without rates limit nothing: give --throttle RATE, too")
    if asked.rate is not None and not topics:
        say("note: rates without lists limit nothing: give --topic, too")
    set_printed.say_held(held, record, dry_run=dry_run)
    print(set_printed.held(held, record, output, dry_run=dry_run), end="")
    return DONE


def _brokers(standing: Standing, asked: _Asked, topics: Sequence[str]) -> tuple[BrokerId, ...]:
    """Where the rate goes. Raises Refused for what does not exist, and for a broker that cannot be told."""
    options.must_exist(standing, topics, asked.brokers)
    if asked.rate is None:
        return ()
    if dead := [broker for broker in asked.brokers if broker in standing.unread]:
        raise Refused(f"broker {dead[0]} is not alive, and only itself takes its rate. Nothing was written")
    if asked.brokers:
        return asked.brokers
    if asked.all_brokers:
        every = {*standing.brokers, *standing.unread}
    else:
        partitions = standing.snapshot.partitions
        every = {b for topic in topics for name in standing.topics[topic] for b in partitions[name].replicas}
    if dead := sorted(every & set(standing.unread)):
        say(f"warning: broker {joined(dead)} is not alive: it gets no rate; set it again when it is back")
    return tuple(sorted(every - set(standing.unread)))


def _warn(ports: Ports, standing: Standing, seconds: float) -> None:
    """Whether the throttle leaves anything for what has to catch up, as far as brokers tell."""
    from kquota.cli.throttle.show import flowing, starving

    for line in starving(standing, flowing(ports, standing, seconds)):
        say(f"warning: {line}")


def _adjust(
    at: world.Where,
    state_dir: Path | None,
    run_id: str | None,
    plan_file: Path | None,
    rate: ByteRate,
    output: Output,
    *,
    dry_run: bool,
) -> int:
    from kquota.cli.throttle import set_printed
    from kquota.reassign import plan as plans
    from kquota.throttle import holding

    plan = None if plan_file is None else plans.read(plan_file)
    with world.throttling(at, state_dir, holding=None if dry_run else "throttle set") as ports:
        open_runs = ports.runs.unfinished()
        if plan is None:
            found = next((one for one in open_runs if one.id == run_id), None)
        else:
            from kquota.reassign.run import covers

            found = covers(plan, open_runs)
        run = _must_be_open(found, open_runs, run_id)
        if dry_run:
            held = holding.prepare_adjusted(ports.cluster, run, rate)
        else:
            held = holding.adjust(ports.cluster, ports.runs, world.SystemClock(), run, rate)
        record = None if dry_run else ports.runs.place(run)
    set_printed.say_held(held, record, dry_run=dry_run)
    print(set_printed.held(held, record, output, dry_run=dry_run), end="")
    return DONE


def _must_be_open(found: Run | None, open_runs: Sequence[Run], run_id: str | None) -> Run:
    if found is not None:
        return found
    there = ", ".join(run.id for run in open_runs) or "none"
    which = "no open run of this plan" if run_id is None else f"no open run {run_id}"
    raise Refused(
        f"there is {which} on record here, open are: {there}; a plan that runs without a record: kquota "
        "reassign-partitions --execute it again with --throttle. Nothing was written"
    )
