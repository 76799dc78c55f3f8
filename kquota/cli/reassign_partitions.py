"""`kquota reassign-partitions`: kafka-reassign-partitions' --execute and --verify, which gives back what was there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kquota.cli import rates, world
from kquota.cli.connection import Connection, connected
from kquota.cli.contract import DONE, FAILED, NOT_YET, say
from kquota.cli.options import Output, OutputFormat
from kquota.errors import Invalid, Refused
from kquota.measure import ByteRate, human_rate

if TYPE_CHECKING:
    from kquota.reassign.plan import Plan
    from kquota.terms import BrokerId, TopicPartition

EPILOG: Final = """Examples:

kquota reassign-partitions --bootstrap-server localhost:9092 --reassignment-json-file p.json --execute --throttle 50MB/s

kquota reassign-partitions --bootstrap-server localhost:9092 --reassignment-json-file p.json --verify

--verify exits 0 when the move is done, 8 while it runs, 1 when replicas ended elsewhere."""


@connected()
def reassign_partitions(
    connection: Connection,
    execute: Annotated[bool, typer.Option("--execute", help="Start the moves of the plan.")] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Say whether they are done; then give the throttle back.")
    ] = False,
    reassignment_json_file: Annotated[
        Path | None, typer.Option("--reassignment-json-file", metavar="FILE", help="The plan: partitions and replicas.")
    ] = None,
    throttle: Annotated[
        str | None,
        typer.Option("--throttle", metavar="RATE", help="The most that moves at: 50MB/s; bare: bytes per second."),
    ] = None,
    replication_quota: Annotated[
        str | None, typer.Option("--replication-quota", metavar="RATE", help="KIP-73's name of --throttle.")
    ] = None,
    additional: Annotated[
        bool, typer.Option("--additional", help="Start even if other moves run in the cluster.")
    ] = False,
    preserve_throttles: Annotated[
        bool, typer.Option("--preserve-throttles", help="With --verify: give nothing back.")
    ] = False,
    state_dir: Annotated[
        Path | None,
        typer.Option("--state-dir", metavar="DIR", help="Where runs are on record; by default in XDG_STATE_HOME."),
    ] = None,
    output: OutputFormat = Output.text,
) -> int:
    """Move partitions under a throttle, and put every throttle back exactly as it was."""
    if execute == verify:
        raise Invalid("Command must include exactly one action: --execute, --verify")
    action = "execute" if execute else "verify"
    misplaced = {
        "throttle": verify and throttle is not None,
        "replication-quota": verify and replication_quota is not None,
        "additional": verify and additional,
        "preserve-throttles": execute and preserve_throttles,
    }
    for option in (option for option, wrong in misplaced.items() if wrong):
        raise Invalid(f'Option "[{option}]" can\'t be used with action "[{action}]"')
    if reassignment_json_file is None:
        raise Invalid('Missing required argument "[reassignment-json-file]"')
    at = world.where(connection)
    rate = _rate(throttle, replication_quota)
    plan = _read(reassignment_json_file)
    if execute:
        return _execute(at, plan, rate, state_dir, output, additional=additional)
    return _verify(at, plan, state_dir, output, preserve=preserve_throttles)


def _rate(throttle: str | None, replication_quota: str | None) -> ByteRate | None:
    if replication_quota is not None:
        if throttle is not None:
            raise Invalid("--replication-quota is KIP-73's name of --throttle: give one of them")
        say("note: --replication-quota is KIP-73's name; Kafka shipped it as --throttle")
    text = throttle if throttle is not None else replication_quota
    if text is None:
        return None
    rate = rates.throttle(text, "--throttle" if throttle is not None else "--replication-quota")
    say(f"throttle: {rate} bytes per second ({human_rate(rate)}) into and out of every broker that takes part")
    return rate


def _read(path: Path) -> Plan:
    from kquota.reassign import plan

    return plan.read(path)


def _execute(
    at: world.Where, plan: Plan, rate: ByteRate | None, state_dir: Path | None, output: Output, *, additional: bool
) -> int:
    from kquota.cli import reassignment
    from kquota.reassign import actions

    _check_log_dirs(at, plan)
    with world.moves(at, state_dir) as (cluster, runs):
        done = actions.execute(cluster, runs, world.SystemClock(), plan, throttle=rate, additional=additional)
        record = None if done.run is None else runs.place(done.run)
    for note in done.notes:
        say(f"warning: {note}")
    if done.run is None:
        say("every partition is where the plan wants it: nothing was written")
    else:
        say(f"run {done.run.id} is on record, with every prior value and the plan back, in {record}")
    if done.running:
        say(f"under way already: {', '.join(map(str, done.running))}")
    document = reassignment.executed_document if output is Output.json else reassignment.executed_text
    print(document(done, rate, record))
    return DONE


def _verify(at: world.Where, plan: Plan, state_dir: Path | None, output: Output, *, preserve: bool) -> int:
    from kquota.cli import reassignment
    from kquota.reassign import actions
    from kquota.reassign.progress import Progress

    if plan.log_dirs:
        say("note: log_dirs of the plan are not verified, only which brokers hold the replicas")
    with world.moves(at, state_dir) as (cluster, runs):
        found = actions.verify(cluster, runs, world.SystemClock(), plan, preserve=preserve)
    for line in reassignment.remarks(found):
        say(line)
    print(reassignment.verified_document(found) if output is Output.json else reassignment.verified_text(found))
    if found.verdict is Progress.ELSEWHERE:
        return FAILED
    return NOT_YET if found.pending or found.verdict is Progress.IN_PROGRESS else DONE


def _check_log_dirs(at: world.Where, plan: Plan) -> None:
    """Raises Refused when a replica that stays would have to change its log dir, which is a move of its own (KIP-113).

    Plans as Kafka's tool prints them for a rollback name the log dir of every replica.
    """
    if not plan.log_dirs:
        return
    found: dict[tuple[TopicPartition, BrokerId], str] = {}
    if at.zookeeper is None:
        with world.log_dirs(at) as cluster:
            brokers = {broker for _, broker in plan.log_dirs} & set(cluster.brokers())
            for log_dir in cluster.describe(sorted(brokers), plan.topics):
                replicas = (replica for replica in log_dir.replicas if not replica.future)
                found |= {(replica.partition, log_dir.broker): log_dir.path for replica in replicas}
    for (partition, broker), wanted in plan.log_dirs.items():
        now = found.get((partition, broker), wanted)
        if now.rstrip("/") != wanted.rstrip("/"):
            raise Refused(
                f"{partition} on broker {broker} is in {now} and the plan wants it in {wanted}: moves between log dirs "
                'come later; write "any", or use Kafka\'s own tool for this plan. Nothing was written'
            )
    if plan.log_dirs.keys() - found.keys():
        say("note: log_dirs of the plan are not used: each broker chooses where its new replicas go")
