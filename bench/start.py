"""`move estimate` of a live cluster as a whole process, against the same job in PySpark's own session."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from bench.race import Race, kquota, raced, run, say
from bench.section import Section
from bench.servers import brokers
from kquota.cli.engine_options import rehearsal
from kquota.sandbox import traffic
from kquota.sandbox.cluster import Sandbox
from kquota.spark import archive

RATIO: Final = 0.4
ROUNDS: Final = 5


def sections() -> list[Section]:
    """Run the race on a separate cluster."""
    with brokers("start") as found, _races(found) as races:
        return [raced("start", [run(race) for race in races], "PySpark's own session")]


@contextmanager
def _races(found: Sandbox) -> Iterator[list[Race]]:
    """Yield the race. The archive of Spark's classes is built first, so the race shows every command except the first
    one on a machine. Both programs sample the cluster for 3 s.
    """
    say("the archive of Spark's classes ...")
    archive.build(rehearsal())
    traffic.create(found.bootstrap, "bench-start", [[1, 2]])
    with TemporaryDirectory(prefix="kquota-bench-") as folder:
        plan = Path(folder) / "plan.json"
        moved = [{"topic": "bench-start", "partition": 0, "replicas": [1, 3]}]
        plan.write_text(json.dumps({"version": 1, "partitions": moved}))
        words = ["move", "estimate", "--bootstrap-server", found.bootstrap, "--sample", "3", "--throttle", "50MB/s"]
        words += ["--reassignment-json-file", str(plan)]
        yield [
            Race(
                name="move estimate, live",
                ours=kquota(*words),
                theirs=[sys.executable, "-m", "bench.naive", *words],
                promised=RATIO,
                rounds=ROUNDS,
            )
        ]
