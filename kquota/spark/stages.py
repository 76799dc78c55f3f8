"""How far Spark's stages are, for a bar."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Told: TypeAlias = Callable[[int, int, int], None]
"""Is told of the newest stage: its number, how many of its tasks are done, and how many it has."""
_LOOK_SECONDS: Final = 0.2


@contextlib.contextmanager
def watched(spark: SparkSession, told: Told, *, remote: bool) -> Iterator[None]:
    """Tells `told`, from another thread, as long as the block runs."""
    if remote:

        def handler(stages: Any, inflight_tasks: int, operation_id: str | None, done: bool) -> None:  # noqa: ARG001 - by name
            if stages:
                newest = max(stages, key=lambda stage: stage.stage_id)
                told(newest.stage_id, newest.num_completed_tasks, newest.num_tasks)

        spark.registerProgressHandler(cast("Any", handler))
        yield
        return
    over = threading.Event()
    look = threading.Thread(target=_look, args=(spark, told, over), name="spark-stages", daemon=True)
    look.start()
    try:
        yield
    finally:
        over.set()
        look.join()


def _look(spark: SparkSession, told: Told, over: threading.Event) -> None:
    tracker = spark.sparkContext.statusTracker()
    # The JVM may go away meanwhile, and then whoever waits for the job hears why.
    with contextlib.suppress(Exception):
        while not over.wait(_LOOK_SECONDS):
            if active := tracker.getActiveStageIds():
                newest = tracker.getStageInfo(max(active))
                if newest is not None:
                    told(newest.stageId, newest.numCompletedTasks, newest.numTasks)
