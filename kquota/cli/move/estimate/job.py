"""The Spark job of `move estimate`: it calculates a move's sums from the gathered inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kquota.cli.connection import Connection
from kquota.cli.contract import say
from kquota.cli.engine_options import spark_reader
from kquota.cli.move.estimate.inputs import CLUSTER, HISTORY, GivenInputs, Inputs, is_live, must_be_alive
from kquota.measure import agreeing
from kquota.pace.waves import Split
from kquota.reassign.plan import Plan
from kquota.reassign.running_copies import MoveUnderWay, under_way
from kquota.sizes.bytes_in import BytesIn
from kquota.spark.engine import Engine
from kquota.spark.files import MUCH, is_elsewhere
from kquota.spark.plan_files import PlanFiles
from kquota.spark.session import Start, starting
from kquota.terms import BrokerId

if TYPE_CHECKING:
    from kquota.spark.estimate import Measured, Writes
    from kquota.spark.history import History
    from kquota.spark.plans import PlanFrame
    from kquota.spark.reader import Reader

_ENTRY: Final = 64
"""The approximate size of one partition in a plan, in bytes."""
_PACKED: Final = 10
"""The approximate size of compressed text, divided by the size of Parquet with the same content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calculated:
    """The sums of a move, and the known write rates."""

    measured: Measured
    bytes_in: Mapping[BrokerId, BytesIn]
    """The write rates of brokers from the history and from `--bytes-in`, in bytes per second. Measured rates are not
    included.
    """
    running: MoveUnderWay | None = None
    """The running moves, or None if kquota does not know which moves are running."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The engine that runs the job, and its scratch folder. `start` is None if Spark is not starting yet."""

    engine: Engine
    scratch: Path
    start: Start | None = None


@contextmanager
def begun(
    asked: GivenInputs, connection: Connection, plan: Plan | PlanFiles, scratch: Path, engine: Engine
) -> Iterator[Job]:
    """Yield the job. For a live cluster without a history, Spark starts here, while kquota reads the cluster, and ends
    when the block ends. Otherwise, `calculated` starts Spark. Raises the errors of `session.starting`.
    """
    early = not asked.history and is_live(asked, connection)
    with starting(scratch, _planned_size(plan), engine) if early else nullcontext() as start:
        yield Job(engine=engine, scratch=scratch, start=start)


def calculated(
    inputs: Inputs, asked: GivenInputs, plan: Plan | PlanFiles, split: Split | None, job: Job, *, detailed: bool
) -> Calculated:
    """Calculate the sums of a move. `split` divides the move into waves, and None means no waves. With `detailed`, also
    calculate the values that only a report shows.

    Starts Spark unless `job` has already started it. Prints notes and, on a terminal, the progress.

    Raises Invalid for errors in the input that only Spark can find. Raises Refused if Spark is missing or cannot
    finish, or if the plan names dead brokers of a live cluster. Also raises Refused if a partition of the plan has
    neither a known nor an assumed size. Raises Unreachable if no Spark master or server answers.
    """
    with ExitStack() as stack:
        start = job.start or stack.enter_context(_starting(inputs, plan, job))
        reader = stack.enter_context(spark_reader(job.scratch, inputs.files, job.engine, start))
        from kquota.spark.estimate import bytes_left, measure
        from kquota.spark.plans import planned, stored
        from kquota.spark.sizes import READERS, from_snapshots

        history = _history(reader, inputs, asked)
        if inputs.source == HISTORY and history:
            replicas = history.newest
        else:
            replicas = READERS.get(inputs.source, from_snapshots)(reader, inputs.files)
        frame = planned(reader, plan) if isinstance(plan, Plan) else stored(reader, plan)
        measured = measure(
            replicas,
            inputs.files,
            frame,
            _writes(reader, inputs, asked, history),
            reader,
            assumed_size=asked.assumed_size,
            split=split,
            detailed=detailed,
            left=bytes_left(reader, inputs.copies),
        )
        moves = _running(reader, inputs, frame)
        rates = history.by_broker(asked.window) if history else {}
    if inputs.source == CLUSTER:
        must_be_alive(measured.unseen, inputs.brokers)
    return Calculated(measured=measured, bytes_in=rates | asked.bytes_in(), running=moves)


def _starting(inputs: Inputs, plan: Plan | PlanFiles, job: Job) -> AbstractContextManager[Start]:
    """Start Spark for the size of these inputs. Spark joins one snapshot of a compacted history with the plan, and only
    scans the other snapshots.
    """
    listing = inputs.listing
    rolled = sum(map(_stored, listing.rolled)) if listing else 0
    one = rolled // max(1, len(listing.held)) if listing else 0
    waiting = inputs.waiting.size() if inputs.waiting else 0
    sizes = inputs.files.size() if inputs.source != HISTORY else 0
    return starting(job.scratch, sizes + waiting + _planned_size(plan) + one, job.engine, scanned=rolled - one)


def _planned_size(plan: Plan | PlanFiles) -> int:
    if isinstance(plan, Plan):
        return len(plan.targets) * _ENTRY
    return plan.files.size() * (_PACKED if plan.parquet else 1)


def _stored(path: str) -> int:
    return MUCH if is_elsewhere(path) else _PACKED * sum(file.stat().st_size for file in Path(path).rglob("*.parquet"))


def _history(reader: Reader, inputs: Inputs, asked: GivenInputs) -> History | None:
    from kquota.spark.history import opened

    if inputs.listing is None or inputs.waiting is None:
        return None
    found = opened(reader, inputs.listing, inputs.waiting, asked.cluster)
    found.check(asked.window)
    if found.bad:
        say(
            f"{agreeing(found.bad, 'row', 'is', 'are')} left out of the history: broker, topic, partition or a valid "
            "size is missing"
        )
    return found


def _running(reader: Reader, inputs: Inputs, plan: PlanFrame) -> MoveUnderWay | None:
    from kquota.spark.plans import targets_of

    if inputs.running is None:
        return None
    targets = targets_of(reader, plan, inputs.running) if inputs.running else {}
    return under_way(inputs.running, inputs.copies, targets)


def _writes(reader: Reader, inputs: Inputs, asked: GivenInputs, history: History | None) -> Writes:
    from kquota.spark.estimate import Writes

    by_broker = {broker: rate.mean for broker, rate in asked.bytes_in().items()}
    if history is not None:
        return Writes(by_broker=by_broker, by_partition=history.by_partition(asked.window))
    if not inputs.sampled:
        return Writes(by_broker=by_broker)
    rates = ({"topic": p.topic, "partition": p.partition, "w": w} for p, w in inputs.sampled.items())
    table = reader.table("rates", rates, "topic string, `partition` int, w double")
    return Writes(by_broker=by_broker, by_partition=table)
