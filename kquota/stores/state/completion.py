"""The names that a shell completes: one file for each cluster, which the shell reads without Python.

The reader is `completions/source/complete.awk`. Writer and reader derive the file's name and its first line by the same
rule.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Final

from kquota import bounded, durable
from kquota.terms import BrokerId, wrong_topic_name

FRESH_SECONDS: Final = 60
"""The seconds for which the shells use stored names before they ask the cluster again."""
FAILED_SECONDS: Final = 30
"""The seconds for which the shells do not ask a cluster again after it did not answer."""

_LONGEST: Final = 200


class CompletionFile:
    """The names of one cluster, in a file that only its owner can read. The shells look for this file in
    `$XDG_CACHE_HOME/kquota/completion`, by default `~/.cache/kquota/completion`.

    `named` are the values of the options in `cli.connection.REACHING`, in the same order. An option that is not set is
    an empty string. No method raises an error if the file cannot be read or written, because completions also work
    without the file.
    """

    def __init__(self, folder: Path, named: Sequence[str]) -> None:
        self._key = "\t".join(named)
        name = re.sub(rb"[^A-Za-z0-9.-]", b"_", os.fsencode(self._key))
        self._path = folder / os.fsdecode(name[:_LONGEST])

    def recall(self) -> list[str]:
        """Return the stored lines, even if they have expired, or an empty list if the cluster has no valid file."""
        # ValueError: the file is not UTF-8, or a power failure left fewer than two lines.
        with contextlib.suppress(OSError, ValueError):
            key, _, *found = bounded.file_text(self._path, bounded.STATE).splitlines()
            if key == self._key:
                return found
        return []

    def keep_names(self, topics: Iterable[str], brokers: Iterable[BrokerId]) -> list[str]:
        """Store the names of a cluster that answered, for `FRESH_SECONDS`. Returns the lines `topics NAME`, sorted, and
        then the lines `brokers ID`, sorted by id, even if they could not be stored. Invalid topic names are left out.
        """
        found = [
            *(f"topics {name}" for name in sorted(topics) if not wrong_topic_name(name)),
            *(f"brokers {broker}" for broker in sorted(brokers)),
        ]
        self.keep(found, FRESH_SECONDS)
        return found

    def keep_failed(self, before: Collection[str]) -> None:
        """Store the lines of an earlier answer again, for `FAILED_SECONDS`, because the cluster did not answer now."""
        self.keep(before, FAILED_SECONDS)

    def keep(self, found: Collection[str], seconds: int) -> None:
        """Replace the stored lines with `found`, which is valid for `seconds` from now. If `found` cannot be stored,
        the stored lines do not change, and no error is raised.
        """
        with contextlib.suppress(OSError, ValueError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            text = "".join(f"{line}\n" for line in (self._key, int(time.time()) + seconds, *found))
            with durable.replacing(self._path, private=True, synced=False) as file:
                file.write(text.encode())
