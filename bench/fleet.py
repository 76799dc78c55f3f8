"""A fleet's plan: 1,000,000 partitions against 3,000,000 replica sizes, for every file format of plans.

`python -m bench.fleet FOLDER N…` creates inputs with N partitions with Spark: a history of one snapshot, and plans.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench.measured import Measured, measured
from bench.race import kquota, say
from bench.section import Section

PARTITIONS: Final = 1_000_000
BROKERS: Final = 200
PROMISED: Final = 15.0
MEGABYTES: Final = 3_000.0
PARQUET: Final = "plan.parquet"
ROUNDS: Final = 3
_HISTORY: Final = "history"
_WHOLE: Final = "plan.json"
_FILES: Final = {"JSON lines": "plan.jsonl", "Parquet": PARQUET, "Kafka's JSON": _WHOLE}
_LOOK_SECONDS: Final = 0.05
_STAMP: Final = "2026-11-21T01:02:03Z"


def sections() -> list[Section]:
    """Measure the seconds beyond those for a plan of one partition, and the maximum memory of all processes."""
    with inputs(1, PARTITIONS) as folder:
        return [measured("fleet", [_measured(folder, name) for name in _FILES])]


def _measured(folder: Path, name: str) -> Measured:
    say(f"move estimate, a plan of {PARTITIONS} partitions as {name}")
    # Kafka's JSON is read and checked in Python, because its errors name the line. It has no promise.
    promised = _FILES[name] != _WHOLE
    starts, whole = [], []
    for _ in range(ROUNDS if promised else 1):
        starts.append(estimated(folder / "1", _WHOLE)[0])
        whole.append(estimated(folder / str(PARTITIONS), _FILES[name]))
    start = min(starts)
    return Measured(
        name=f"move estimate, {PARTITIONS} partitions as {name}, beyond {start:.1f} s of start",
        ours=tuple(seconds - start for seconds, _ in whole),
        promised=PROMISED if promised else None,
        megabytes=max(megabytes for _, megabytes in whole),
        promised_megabytes=MEGABYTES if promised else None,
    )


@contextlib.contextmanager
def inputs(*counts: int) -> Iterator[Path]:
    """Yield a folder with inputs for each number of partitions, in a subfolder with this number as its name."""
    with tempfile.TemporaryDirectory(prefix="kquota-bench-") as folder:
        say(f"making plans and histories of {', '.join(f'{count:,}' for count in counts)} partitions ...")
        subprocess.run([sys.executable, "-m", "bench.fleet", folder, *map(str, counts)], check=True)
        yield Path(folder)


def estimated(folder: Path, plan: str) -> tuple[float, float]:
    """Return the seconds of a whole `move estimate`, and the maximum memory of its processes in MB."""
    words = ["--history", str(folder / _HISTORY), "--reassignment-json-file", str(folder / plan)]
    words += ["--throttle", "50MB/s"]
    words += [word for broker in range(BROKERS) for word in ("--bytes-in", f"{broker}=1MB/s")]
    started, most = time.perf_counter(), 0.0
    with tempfile.TemporaryFile() as said:
        command = kquota("move", "estimate", *words, "--output", "json")
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)
        while process.poll() is None:
            most = max(most, _megabytes(process.pid))
            time.sleep(_LOOK_SECONDS)
        took = time.perf_counter() - started
        # Exit code 1 is also an answer: the move does not fit, or never ends.
        if process.returncode not in (0, 1):
            said.seek(0)
            raise RuntimeError(said.read().decode())
    return took, most


def _megabytes(pid: int) -> float:
    """Return the current memory of a process and its children in MB. It is 0 for a process that has just ended."""
    with contextlib.suppress(OSError, StopIteration):
        status = Path(f"/proc/{pid}/status").read_text()
        own = int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))) / 1024
        started = [task.read_text().split() for task in Path(f"/proc/{pid}/task").glob("*/children")]
        return own + sum(_megabytes(int(child)) for children in started for child in children)
    return 0.0


def make(folder: Path, counts: list[int]) -> None:
    """Create the inputs. Each partition has three replicas, and the plan moves the last one."""
    from kquota.spark.files import MUCH, NOTHING
    from kquota.spark.session import session, starting

    with (
        tempfile.TemporaryDirectory(prefix="kquota-bench-") as scratch,
        starting(Path(scratch), MUCH) as start,
        session(Path(scratch), NOTHING, lambda _: None, start=start) as spark,
    ):
        from pyspark.sql import functions as F

        for count in counts:
            place = folder / str(count)
            every = spark.range(count).select(
                F.format_string("topic-%05d", (F.col("id") / 100).cast("int")).alias("topic"),
                (F.col("id") % 100).cast("int").alias("partition"),
                F.transform(
                    F.array(*(F.lit(n) for n in range(4))),
                    lambda n: ((F.col("id") * 7 + n * (1 + F.floor(F.col("id") / BROKERS) % 60)) % BROKERS).cast("int"),
                ).alias("on"),
                (F.hash("id").cast("bigint") + 2**31).alias("size"),
            )
            held = every.select("*", F.posexplode(F.slice("on", 1, 3)).alias("place", "broker"))
            told = {"rack": F.lit(None).cast("string"), "log_dir": F.lit("/d"), "leader": F.col("place") == 0}
            told |= {"version": F.lit(1), "cluster": F.lit("c"), "time": F.lit(_STAMP), "future": F.lit(False)}
            told |= {"in_sync": F.lit(True)} | {f"volume_{of}": F.lit(10**13) for of in ("total", "usable")}
            rows = held.select("broker", "topic", "partition", "size", *(c.alias(n) for n, c in told.items()))
            rows.coalesce(1).write.option("compression", "gzip").json(str(place / "rows"))
            (row,) = (place / "rows").glob("*.json.gz")
            (place / _HISTORY).mkdir()
            row.rename(place / _HISTORY / "snapshot.jsonl.gz")
            wanted = F.array(*(F.get("on", F.lit(n)) for n in (0, 1, 3)))
            plan = every.select("topic", "partition", wanted.alias("replicas")).coalesce(1)
            plan.write.parquet(str(place / PARQUET))
            plan.write.json(str(place / "lines"))
    for count in counts:
        _finish(folder / str(count))


def _finish(place: Path) -> None:
    (lines,) = (place / "lines").glob("*.json")
    lines.rename(place / "plan.jsonl")
    with (place / "plan.jsonl").open() as entries, (place / _WHOLE).open("w") as whole:
        whole.write('{"version":1,"partitions":[')
        whole.writelines(f"{',' if n else ''}{line.rstrip()}" for n, line in enumerate(entries))
        whole.write("]}")
    subprocess.run(kquota("log-dirs", "--compact", str(place / _HISTORY)), check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    make(Path(sys.argv[1]), list(map(int, sys.argv[2:])))
