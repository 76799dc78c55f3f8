"""The actions of `reassign-partitions` that change a cluster: carried out, told on stderr, printed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kquota.cli import world
from kquota.cli.contract import DONE, FAILED, NOT_YET, say
from kquota.cli.options import Output
from kquota.errors import Refused
from kquota.measure import ByteRate

if TYPE_CHECKING:
    from kquota.reassign.plan import Plan
    from kquota.terms import BrokerId, TopicPartition


def execute(
    at: world.Where,
    plan: Plan,
    state_dir: Path | None,
    output: Output,
    *,
    throttle: ByteRate | None,
    log_dir_throttle: ByteRate | None,
    additional: bool,
    disallow_replication_factor_change: bool,
    force: bool,
    throttle_whole_topics: bool,
    timeout: float,
    dry_run: bool,
) -> int:
    """Start the moves of the plan."""
    del timeout
    if log_dir_throttle is not None or disallow_replication_factor_change or force or throttle_whole_topics or dry_run:
        raise Refused("this option is not carried out yet")
    from kquota.cli import reassignment
    from kquota.reassign import actions

    _check_log_dirs(at, plan)
    with world.moves(at, state_dir) as (cluster, runs):
        done = actions.execute(cluster, runs, world.SystemClock(), plan, throttle=throttle, additional=additional)
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
    print(document(done, throttle, record))
    return DONE


def verify(
    at: world.Where, plan: Plan, state_dir: Path | None, output: Output, *, preserve: bool, clear_all: bool
) -> int:
    """Say whether they are done; then give the throttle back."""
    if clear_all:
        raise Refused("--clear-all is not carried out yet")
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


def cancel(
    at: world.Where, plan: Plan, state_dir: Path | None, output: Output, *, preserve: bool, force: bool, dry_run: bool
) -> int:
    """Stop the moves of the plan."""
    del at, plan, state_dir, output, preserve, force, dry_run
    raise Refused("--cancel is not carried out yet")


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
