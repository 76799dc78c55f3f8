"""A fleet's plan: 1,000,000 partitions against 3,000,000 replica sizes, by every kind of file that a plan may be.

`python -m bench.fleet FOLDER` makes the inputs with Spark: a history of one snapshot, and the plan.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from bench.document import Measured
from bench.race import kquota, say

PARTITIONS: Final = 1_000_000
BROKERS: Final = 200
PROMISED: Final = 15.0
MEGABYTES: Final = 3_000.0
_LOOK_SECONDS: Final = 0.05
_STAMP: Final = "2026-11-21T01:02:03Z"


def fleet() -> list[Measured]:
    """Seconds beyond what a plan of one partition takes in the same way, and the most memory of all processes."""
    with tempfile.TemporaryDirectory(prefix="kquota-bench-") as folder:
        say(f"making a plan of {PARTITIONS} partitions and {3 * PARTITIONS} replica sizes ...")
        inputs = Path(folder)
        subprocess.run([sys.executable, "-m", "bench.fleet", folder], check=True)
        results = []
        for name, plan in (("JSON lines", "plan.jsonl"), ("Parquet", "plan.parquet"), ("Kafka's JSON", "plan.json")):
            say(f"move estimate, a plan of {PARTITIONS} partitions as {name}")
            start, _ = _run(inputs / "few", inputs / "one.json")
            seconds, megabytes = _run(inputs / "many", inputs / plan)
            results.append(
                Measured(
                    name=f"move estimate, {PARTITIONS} partitions as {name}, beyond {start:.1f} s of start",
                    ours=(seconds - start,),
                    # Kafka's JSON is read and judged in Python, for its errors name the line: nothing is promised.
                    promised=None if plan == "plan.json" else PROMISED,
                    megabytes=megabytes,
                    promised_megabytes=None if plan == "plan.json" else MEGABYTES,
                )
            )
        return results


def _run(history: Path, plan: Path) -> tuple[float, float]:
    words = ["--history", str(history), "--reassignment-json-file", str(plan), "--throttle", "50MB/s"]
    words += [word for broker in range(BROKERS) for word in ("--bytes-in", f"{broker}=1MB/s")]
    started, most = time.perf_counter(), 0.0
    with tempfile.TemporaryFile() as said:
        command = kquota("move", "estimate", *words, "--output", "json")
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)
        while process.poll() is None:
            most = max(most, _megabytes(process.pid))
            time.sleep(_LOOK_SECONDS)
        took = time.perf_counter() - started
        if process.returncode not in (0, 1):
            said.seek(0)
            raise RuntimeError(said.read().decode())
    return took, most


def _megabytes(pid: int) -> float:
    """What a process and all that it started hold now. One that has just ended holds nothing."""
    with contextlib.suppress(OSError, StopIteration):
        status = Path(f"/proc/{pid}/status").read_text()
        own = int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))) / 1024
        started = [task.read_text().split() for task in Path(f"/proc/{pid}/task").glob("*/children")]
        return own + sum(_megabytes(int(child)) for children in started for child in children)
    return 0.0


def make(folder: Path) -> None:
    """The inputs; each partition stands on three brokers, of which the plan moves the last."""
    from kquota.spark.files import MUCH, NOTHING
    from kquota.spark.session import session, starting

    with (
        tempfile.TemporaryDirectory(prefix="kquota-bench-") as scratch,
        starting(Path(scratch), MUCH) as start,
        session(Path(scratch), NOTHING, lambda _: None, start=start) as spark,
    ):
        from pyspark.sql import functions as F

        for name, partitions in (("few", 1), ("many", PARTITIONS)):
            every = spark.range(partitions).select(
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
            rows.coalesce(1).write.option("compression", "gzip").json(str(folder / name / "rows"))
            (row,) = (folder / name / "rows").glob("*.json.gz")
            row.rename(folder / name / "snapshot.jsonl.gz")
        wanted = F.array(*(F.get("on", F.lit(n)) for n in (0, 1, 3)))
        plan = every.select("topic", "partition", wanted.alias("replicas"))
        plan.coalesce(1).write.parquet(str(folder / "plan.parquet"))
        plan.coalesce(1).write.json(str(folder / "lines"))
    (lines,) = (folder / "lines").glob("*.json")
    lines.rename(folder / "plan.jsonl")
    with (folder / "plan.jsonl").open() as entries, (folder / "plan.json").open("w") as whole:
        whole.write('{"version":1,"partitions":[')
        whole.writelines(f"{',' if n else ''}{line.rstrip()}" for n, line in enumerate(entries))
        whole.write("]}")
    one = {"topic": "topic-00000", "partition": 0, "replicas": [0, 1, 3]}
    (folder / "one.json").write_text(json.dumps({"version": 1, "partitions": [one]}))
    for name in ("few", "many"):
        subprocess.run(kquota("log-dirs", "--compact", str(folder / name)), check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
