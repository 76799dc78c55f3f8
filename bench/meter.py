"""Runs one command and prints its seconds, its maximum kB of memory, its exit code and its CPU seconds.

It is a small separate process, because Linux counts the memory of a process's parent for the process itself.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

started = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
seconds = time.perf_counter() - started
print(seconds, usage.ru_maxrss, os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime)
