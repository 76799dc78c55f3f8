"""`kquota log-dirs --compact DIR`: compact snapshots into a Parquet batch of the history."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kquota.cli import local_files, world
from kquota.cli.contract import say
from kquota.cli.output import Lines
from kquota.cli.progress import stages
from kquota.errors import Invalid, NextStep, Refused
from kquota.measure import counted
from kquota.sizes.history import Listing
from kquota.spark import files
from kquota.spark.engine import Engine
from kquota.spark.session import session

if TYPE_CHECKING:
    from kquota.cli.local_files import HistoryBatch


def compacted(directory: Path, engine: Engine) -> Lines:
    """Compact the new snapshots in `directory`, and return all snapshots that can be deleted.

    Raises Invalid for a folder that does not exist or contains no snapshot, and Busy if another kquota is compacting
    the folder.
    """
    if not directory.is_dir():
        raise Invalid(f"--compact {directory}: the folder does not exist")
    found = local_files.listing([directory])
    if not found.clusters() and not found.late:
        raise Invalid(f"--compact {directory}: the folder contains no snapshot. ", NextStep.TAKE_SNAPSHOT)
    if found.waiting:
        with local_files.rolling(directory) as batch:
            # List the snapshots again, because another process may have compacted some before this one got the lock.
            found = local_files.listing([directory])
            _roll(found, batch, engine)
            found = local_files.listing([directory])
    else:
        say("nothing to compact: no snapshot is newer than the compacted ones")
    for path in found.late:
        world.warn(
            f"{path} is older than the compacted snapshots of its cluster, so kquota leaves it out. Delete it. If you "
            f"still have all snapshots, you can instead delete {directory / 'rolled'} and run the same command again"
        )
    free = local_files.spent_snapshots(directory, found.held)
    note = f"compacted snapshots that can be deleted: {len(free)} (all except the newest of each cluster)"
    return Lines(lines=tuple(map(str, free)), notes=(note,) if free else ())


def _roll(found: Listing, batch: HistoryBatch, engine: Engine) -> None:
    if not found.waiting:
        return
    with local_files.workspace() as scratch:
        laid = files.laid_out(found.waiting, scratch / "history", ".jsonl")
        try:
            with stages() as on_stage, session(scratch, laid, say, engine=engine, on_stage=on_stage) as spark:
                from kquota.spark.compact import tables
                from kquota.spark.reader import Reader

                made = tables(Reader(spark=spark, scratch=scratch), laid, found, batch.unfinished)
        except Refused:
            # Look for the damaged file here, because Spark does not report which file is damaged.
            local_files.check_snapshots(found.waiting)
            raise
    taken = set(found.waiting.values())
    place = batch.commit({"replicas": made.replicas, "brokers": made.brokers}, taken)
    clusters = ", ".join(sorted({each.cluster for each in taken}))
    say(f"wrote {counted(made.rows, 'row')} from {counted(len(taken), 'snapshot')} of {clusters} to {place}")
