"""The cost of a large plan before and after the cluster answers, in a separate process that measures its memory.

`python -m bench.scale PLAN` prints the seconds of both parts, and the maximum memory in MB, as one JSON object.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from kquota.reassign import guard, words
from kquota.reassign.moves import PartitionReplicas, list_entries, moves, rollback, throttled_brokers
from kquota.reassign.plan import Plan, read, run_id
from kquota.reassign.port import Snapshot
from kquota.reassign.progress import statuses, verdict
from kquota.terms import BrokerId, TopicPartition

BROKERS: Final = 200


def main() -> None:
    """Read and check the plan, calculate its moves, lists and record, and verify the plan."""
    gc.set_threshold(200_000)  # like kquota's own main
    started = time.perf_counter()
    plan = read(Path(sys.argv[1]))
    done = time.perf_counter() - started
    now = _answer(plan)
    found = Snapshot(racks=dict.fromkeys(map(BrokerId, range(BROKERS))), partitions=now, running={})
    started = time.perf_counter()
    guard.check_names(plan, found)
    moving = moves(plan, now)
    guard.check_brokers(moving, found, None)
    guard.check_running(moving, found, None, additional=False)
    guard.check_leaders(moving, found, None)
    lists = list_entries(moving)
    limits = throttled_brokers(moving)
    done += time.perf_counter() - started
    started = time.perf_counter()
    back = rollback(plan, now)
    name = run_id(plan, datetime.now(UTC))
    text = back.text()
    recorded = time.perf_counter() - started
    megabytes = _megabytes()
    assert len(moving) == len(plan.targets) and lists and limits and name and text
    started = time.perf_counter()
    seen = statuses(plan, now, ())
    verdict(one.progress for one in seen)
    words.status_lines(seen)
    verified = time.perf_counter() - started
    print(json.dumps({"plan": done, "record": recorded, "verify": verified, "megabytes": megabytes}))


def _answer(plan: Plan) -> dict[TopicPartition, PartitionReplicas]:
    """Return the replicas as a cluster reports them. The last replica of each partition is still on another broker."""
    found = {}
    for name, target in plan.targets.items():
        free = next(b for b in range(BROKERS) if b not in target)
        replicas = (*target[:-1], BrokerId(free))
        found[name] = PartitionReplicas(replicas=replicas, leader=replicas[0], isr=(*replicas,))
    return found


def _megabytes() -> float:
    """Return the maximum memory of this process in MB. ru_maxrss would include the memory of its parent."""
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) / 1024


if __name__ == "__main__":
    main()
