"""What `kquota log-dirs --compact DIR` does: snapshots become a batch of the history's Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kquota.cli.contract import DONE, say
from kquota.cli.progress import stages
from kquota.errors import Invalid, Refused

if TYPE_CHECKING:
    from kquota.sizes.history import Listing
    from kquota.spark.engine import Engine


def compact(directory: Path, engine: Engine) -> int:
    """Roll what waits in `directory`, and print which of its snapshots can be deleted, this run's and earlier ones'.

    Raises Invalid for a folder that is not there, or without a snapshot.
    """
    from kquota.stores import history

    if not directory.is_dir():
        raise Invalid(f"--compact {directory}: there is no such folder")
    found = history.found([directory])
    if not found.clusters() and not found.late:
        raise Invalid(
            f"--compact {directory}: the folder holds no snapshot; take one with: kquota log-dirs --snapshot DIR"
        )
    if found.waiting:
        with history.rolling(directory) as unfinished:
            # Another one may have rolled since.
            found = history.found([directory])
            _roll(directory, found, unfinished, engine)
            found = history.found([directory])
    else:
        say("nothing to roll: all snapshots are rolled already")
    for path in found.late:
        say(
            f"warning: {path} is older than what is rolled of its cluster, and is left out; delete it, or delete "
            f"{directory / 'rolled'} and roll all snapshots again, if they are all there"
        )
    if free := history.spent(directory, found.held):
        say(f"snapshots that are rolled and can be deleted: {len(free)}, all but the newest")
        print("\n".join(map(str, free)))
    return DONE


def _roll(directory: Path, found: Listing, unfinished: Path, engine: Engine) -> None:
    from kquota.spark import files
    from kquota.spark.session import session
    from kquota.stores import history
    from kquota.stores.workspace import workspace

    if not found.waiting:
        return
    with workspace() as scratch:
        laid = files.laid_out(found.waiting, scratch / "history", ".jsonl")
        try:
            with stages() as told, session(scratch, laid, say, engine=engine, told=told) as spark:
                from kquota.spark.compact import tables
                from kquota.spark.reader import Reader

                made = tables(Reader(spark=spark, scratch=scratch), laid, found, unfinished)
        except Refused:
            # Spark does not tell which file was damaged.
            history.check(found.waiting)
            raise
    taken = set(found.waiting.values())
    batch = history.commit(directory, unfinished, {"replicas": made.replicas, "brokers": made.brokers}, taken)
    clusters = ", ".join(sorted({each.cluster for each in taken}))
    say(f"snapshots rolled: {len(taken)} of {clusters}, {made.rows} rows, into {batch}")
