"""`python -m kquota.sandbox.owner NAME PID MARK`: stops and removes sandbox `NAME` when process `PID` has ended for any
reason.

kquota recognizes this process by `MARK` (`Process.mark`).
"""

from __future__ import annotations

import os
import select
import sys
import time

from kquota.sandbox import cluster


def wait_for_end(pid: int) -> None:
    """Wait until process `pid` has ended. Return immediately if there is no such process."""
    try:
        if hasattr(os, "pidfd_open"):
            select.select([os.pidfd_open(pid)], [], [])
            return
        while True:
            os.kill(pid, 0)
            time.sleep(0.2)
    except ProcessLookupError:
        return


if __name__ == "__main__":
    wait_for_end(int(sys.argv[2]))
    cluster.down(sys.argv[1])
