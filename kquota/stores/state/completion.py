"""The names of a cluster that a shell completes: one short-lived file a cluster, which completions read without Python.

The program that reads it is `completions/source/complete.awk`; both make its name and its first line by one rule.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from kquota import durable, folders
from kquota.terms import BrokerId, wrong_topic_name

FRESH_SECONDS: Final = 60
"""How long names are offered without a look at the cluster."""
FAILED_SECONDS: Final = 30
"""How long nobody is asked again after a look that failed."""

_LONGEST: Final = 200


def completion_file(environment: Mapping[str, str], named: Sequence[str]) -> CompletionFile:
    """The file of a cluster where the shells look for it: in `$XDG_CACHE_HOME/kquota/completion`."""
    return CompletionFile(folders.cache(environment) / "completion", named)


def lines(topics: Iterable[str], brokers: Iterable[BrokerId]) -> list[str]:
    """`topics NAME` and `brokers ID`, one a line, in order; what is no topic's name is left out."""
    return [
        *(f"topics {name}" for name in sorted(topics) if not wrong_topic_name(name)),
        *(f"brokers {broker}" for broker in sorted(brokers)),
    ]


class CompletionFile:
    """What is kept of the cluster that `named` names, in a file that only its owner reads.

    `named` is all that says which cluster and as whom, in the order of `cli.connection.OPTIONS`, empty where nothing
    does. No method raises: completions do without.
    """

    def __init__(self, folder: Path, named: Sequence[str]) -> None:
        self._key = "\t".join(named)
        name = re.sub(rb"[^A-Za-z0-9.-]", b"_", os.fsencode(self._key))
        self._path = folder / os.fsdecode(name[:_LONGEST])

    def recall(self) -> list[str]:
        """The lines last kept, however old; none where there are none of this cluster."""
        # ValueError: it is not UTF-8, or what a power cut left has no two lines.
        with contextlib.suppress(OSError, ValueError):
            key, _, *found = self._path.read_text(encoding="utf-8").splitlines()
            if key == self._key:
                return found
        return []

    def keep_names(self, topics: Iterable[str], brokers: Iterable[BrokerId]) -> list[str]:
        """Keep the names of a cluster that answered. Returns the lines."""
        found = lines(topics, brokers)
        self.keep(found, FRESH_SECONDS)
        return found

    def keep_failed(self, before: Collection[str]) -> None:
        """Keep the lines of an earlier look, because this look failed."""
        self.keep(before, FAILED_SECONDS)

    def keep(self, found: Collection[str], seconds: int) -> None:
        """Put the lines in place of those before, good for so many seconds from now."""
        with contextlib.suppress(OSError, ValueError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            text = "".join(f"{line}\n" for line in (self._key, int(time.time()) + seconds, *found))
            with durable.replacing(self._path, private=True, synced=False) as file:
                file.write(text.encode())
