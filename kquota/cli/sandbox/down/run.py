"""`kquota sandbox down`: stop one sandbox, or all."""

from __future__ import annotations

from collections.abc import Generator

from kquota.cli.output import Lines
from kquota.cli.sandbox.down.command import DownOptions
from kquota.sandbox import cluster, places


def run(options: DownOptions) -> Generator[Lines]:
    """One answer for each sandbox, after it is stopped."""
    for name in places.names() if options.all_of_them else [options.name]:
        done = f"sandbox {name} is down" if cluster.down(name) else f"there is no sandbox {name}"
        yield Lines(lines=(), notes=(done,))
