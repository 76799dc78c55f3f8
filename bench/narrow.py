"""A private network for one process and its children: loopback with a limited rate (Linux).

`python -m bench.narrow RATE COMMAND…` limits loopback to RATE bytes per second, and then runs the command.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

_BURST: Final = 131_072
"""The burst of the token bucket filter in bytes. It must be at least the largest packet of loopback, 64 KiB."""
_QUEUE: Final = 4_000_000


def narrowed(rate: int, command: Sequence[str]) -> list[str]:
    """Return the command line that runs `command` in a network with this rate, in bytes per second. It needs `unshare`,
    `ip` and `tc`."""
    here = [sys.executable, "-m", "bench.narrow", str(rate), *command]
    # A user namespace makes root unnecessary.
    return ["unshare", "--map-root-user", "--net", *here]


def main(rate: int, command: Sequence[str]) -> None:
    """Limit loopback, and replace this process with the command."""
    loopback = ["dev", "lo"]
    subprocess.run(["ip", "link", "set", *loopback, "up"], check=True)
    queue = ["tbf", "rate", f"{rate}bps", "burst", str(_BURST), "limit", str(_QUEUE)]
    subprocess.run(["tc", "qdisc", "add", *loopback, "root", *queue], check=True)
    os.execv(command[0], list(command))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
