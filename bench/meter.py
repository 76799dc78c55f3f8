"""Runs one command and prints its seconds, its maximum kB of memory and its exit code, as a new small process.

Linux counts the memory of the parent of a process as that process's own, so the parent must be small.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

started = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
print(time.perf_counter() - started, usage.ru_maxrss, os.waitstatus_to_exitcode(status))
