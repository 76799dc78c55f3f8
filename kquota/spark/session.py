"""One Spark session for one command. It prints nothing, and its JVM ends with the command.

The session starts in parallel with the first work of the command, because both the start of a JVM and a measurement of
write rates on a live cluster take seconds.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast

from kquota.spark import archive, connect, master
from kquota.spark.engine import EMBEDDED, EMBEDDED_MASTER, MEMORY, Engine
from kquota.spark.failure import in_one_line
from kquota.spark.files import Files
from kquota.spark.jvm import LOOPBACK, QUICK, STEADY, Jvm, heap, home, jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OPTIONS: Final = {
    "spark.app.name": "kquota",
    "spark.master": EMBEDDED_MASTER,
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
}
# Spark's defaults (200 partitions and an adaptive plan) cost seconds on small inputs.
_SMALL_OPTIONS: Final = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    # Code generation is off, because compiling a query takes longer than running it.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
_LARGE_OPTIONS: Final = {
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.adaptive.enabled": "false",
    # Sorting a million partitions with their lists takes 13 s. Hashing them as objects takes 16 s.
    "spark.sql.execution.useObjectHashAggregateExec": "false",
    # Rows between two jobs are read only once or twice, so compressing them takes more time than it saves.
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
    # These checks detect tasks that give another result when they run again. The checks cost time for each row, and
    # kquota has no such tasks.
    "spark.sql.shuffle.orderIndependentChecksum.enabled": "false",
    "spark.shuffle.checksum.enabled": "false",
}
# A job is small if its inputs, as they are stored, have fewer bytes than this. If they are gzipped, the text is about
# ten times as large.
_SMALL: Final = 16_000_000
_END_SECONDS: Final = 2.0
OnStage: TypeAlias = Callable[[int, int, int], None]
"""A callback that receives the newest stage: its id, its number of finished tasks, and its number of tasks."""
_LOOK_SECONDS: Final = 0.2
_T = TypeVar("_T")


def beside(work: Callable[[], _T], name: str) -> Future[_T]:
    """Start `work` in a new thread, and return a future for its result or error. The thread does not keep the process
    alive.
    """
    done: Future[_T] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:  # noqa: BLE001 - the caller that waits for the result gets it
            done.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return done


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A session that starts in a separate thread."""

    session: Future[SparkSession]
    jvm: Jvm | None
    """The JVM of the session, or None with Spark Connect."""


@contextlib.contextmanager
def starting(scratch: Path, size: int, engine: Engine = EMBEDDED, *, scanned: int = 0) -> Iterator[Start]:
    """Start Spark for an input of `size` bytes, and return at once. Give the yielded value to `session`.

    `scanned` is the size in bytes of the part of a history that Spark only sums up. The C1 compiler is enough for this
    part, so only `size` decides which compilers the JVM uses.

    Nothing may import PySpark before `Start.session` is done, because the circular imports of PySpark fail if two
    threads run them at once. The end of the block ends everything, including a session that is not ready. All files are
    in the folder `scratch`. After a block that ends without an error, a local engine without an archive calls
    `archive.build_later`.

    Raises Refused if Spark, Java or the client of Spark Connect is missing, or if a JVM that creates an archive does
    not end normally. Raises Invalid for an invalid address of a master, and Unreachable if no master answers.
    """
    tuned = _SMALL_OPTIONS if size + scanned < _SMALL else _LARGE_OPTIONS if engine.local else {}
    if engine.remote is not None:
        with connect.starting(engine, tuned) as opened, _begun(opened, None) as start:
            yield start
        return
    # Check Spark before Java, so that the error names Spark first if both are missing.
    home()
    address = LOOPBACK if engine.local else master.own_address(engine)
    options = _OPTIONS | tuned
    options |= {"spark.local.dir": str(scratch), "spark.sql.warehouse.dir": str(scratch / "warehouse")}
    if address is not None:
        options |= {"spark.driver.host": address, "spark.driver.bindAddress": address}
    if engine.master is not None:
        options["spark.master"] = engine.master
    options |= engine.conf
    flags = [f"-Xmx{options.pop(MEMORY, heap())}", "-XX:+ExitOnOutOfMemoryError", *(QUICK if size < _SMALL else STEADY)]
    archived = archive.flags() if engine.local else ()
    with _python_side(), jvm(options, [*flags, *archived], scratch, address) as process:
        connecting = functools.partial(_connected, process, engine)
        with _begun(connecting, process) as start:
            yield start
            if archive.making() is not None:
                process.must_exit(archive.EXIT_SECONDS)
    if engine.local and not archived:
        archive.build_later(engine.rehearsal)


@contextlib.contextmanager
def _begun(connect: Callable[[], SparkSession], process: Jvm | None) -> Iterator[Start]:
    start = Start(session=beside(connect, "spark-start"), jvm=process)
    try:
        yield start
    finally:
        if process is not None:
            process.kill()
        # The thread may be waiting for a server.
        wait([start.session], _END_SECONDS)


@contextlib.contextmanager
def session(
    scratch: Path,
    inputs: Files,
    say: Callable[[str], None],
    *,
    engine: Engine = EMBEDDED,
    on_stage: OnStage | None = None,
    start: Start | None = None,
) -> Iterator[SparkSession]:
    """Yield a Spark session with all its files in the folder `scratch`.

    `start` is a session that is already starting. Without it, a session starts now, tuned for the size of `inputs`.
    `say` receives one line before the wait for Spark, which takes seconds. `on_stage` receives the progress of stages.

    Raises Refused if Spark, Java or the client of Spark Connect is missing, or if Spark does not start. Also raises
    Refused if a job fails, for example because of a damaged gzip file, a full disk or a killed JVM. Raises Invalid for
    an invalid address and for a setting that the server rejects. Raises Unreachable if no master or server answers.
    """
    with contextlib.ExitStack() as stack:
        if start is None:
            start = stack.enter_context(starting(scratch, inputs.size(), engine))
        say("starting Spark ..." if engine.local else f"connecting to Spark ({engine.name}) ...")
        with in_one_line(start.jvm, engine):
            spark = start.session.result()
            if on_stage is not None:
                stack.enter_context(_watched(spark, on_stage, remote=engine.remote is not None))
            yield spark
            if not engine.local:
                spark.stop()


@contextlib.contextmanager
def _watched(spark: SparkSession, on_stage: OnStage, *, remote: bool) -> Iterator[None]:
    """Report the newest stage to `on_stage` while the block runs, in another thread unless `remote` is set."""
    if remote:

        def handler(stages: Any, inflight_tasks: int, operation_id: str | None, done: bool) -> None:  # noqa: ARG001 - by name
            if stages:
                newest = max(stages, key=lambda stage: stage.stage_id)
                on_stage(newest.stage_id, newest.num_completed_tasks, newest.num_tasks)

        spark.registerProgressHandler(cast("Any", handler))
        yield
        return
    over = threading.Event()
    look = threading.Thread(target=_look, args=(spark, on_stage, over), name="spark-stages", daemon=True)
    look.start()
    try:
        yield
    finally:
        over.set()
        look.join()


def _look(spark: SparkSession, on_stage: OnStage, over: threading.Event) -> None:
    tracker = spark.sparkContext.statusTracker()
    # Ignore errors, because the thread that waits for the job also gets the error if the JVM ends.
    with contextlib.suppress(Exception):
        while not over.wait(_LOOK_SECONDS):
            if active := tracker.getActiveStageIds():
                newest = tracker.getStageInfo(max(active))
                if newest is not None:
                    on_stage(newest.stageId, newest.numCompletedTasks, newest.numTasks)


def _connected(process: Jvm, engine: Engine) -> SparkSession:
    # Imported here, because the imports then run in parallel with the start of the JVM.
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    # If a JVM is killed, kquota reports the error. The messages of py4j, one of them from the root logger, are hidden.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_not_of_py4j)
    gateway = process.gateway()
    os.environ |= gateway
    try:
        link = launch_gateway()  # type: ignore[no-untyped-call]  # PySpark has no type for it
    finally:
        for name in gateway:
            del os.environ[name]
    context = SparkContext(gateway=link)
    spark = SparkSession(context)
    # PySpark's accumulator server would print a traceback when the JVM ends.
    context._accumulatorServer.handle_error = lambda *_: None  # type: ignore[method-assign]  # no option does this
    if engine.local:
        # By default, Spark would use the first `python3` in `PATH`.
        context.pythonExec = sys.executable
    else:
        master.await_executors(spark)
    return spark


def _not_of_py4j(record: logging.LogRecord) -> bool:
    return record.module != "java_gateway"


@contextlib.contextmanager
def _python_side() -> Iterator[None]:
    """End PySpark's gateway with the block, because PySpark would use it again for the next session."""
    try:
        yield
    finally:
        with contextlib.suppress(ImportError):
            from pyspark import SparkContext
            from pyspark.sql import SparkSession

            link, SparkContext._gateway = SparkContext._gateway, None
            SparkContext._jvm = SparkContext._active_spark_context = None
            SparkSession._instantiatedSession = None
            if link is not None:
                link.shutdown()
