"""The lock for writing to a cluster: a lease that its holder renews with heartbeats. Each observer uses its own
clock.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kquota import bounded, durable
from kquota.stores.state.log import now
from kquota.stores.state.process import Holder, boot, holder_of

FORMAT: Final = 1
LEASE_SECONDS: Final = 30.0
"""The seconds after which an observer treats an unchanged lock as free."""
HEARTBEAT_SECONDS: Final = 5.0
"""A holder sends another heartbeat when its last one is older than this many seconds."""
WRITE_SECONDS: Final = LEASE_SECONDS / 2
"""A holder may write to the cluster until this many seconds after it sent its last confirmed heartbeat."""
_MOST: Final = 2**53
"""A valid term or heartbeat is below this number. kquota never reaches it, because both grow by one at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """The lock as it is stored in the record. `term` grows with every new holder, and `heartbeat` is the number of the
    last heartbeat.
    """

    term: int
    heartbeat: int
    holder: Holder
    released: bool = False

    @property
    def mark(self) -> str:
        """The text that an observer compares. It changes with every heartbeat."""
        return f"{self.term}:{self.heartbeat}:{self.released}"

    def written(self, cluster_id: str) -> bytes:
        """Return the lock as JSON, for the record of this cluster."""
        document = {"format": FORMAT, "cluster": cluster_id, "term": self.term, "beat": self.heartbeat}
        return json.dumps({**document, "released": self.released, **self.holder.written()}).encode()


def lock_of(data: bytes, cluster_id: str) -> Lock:
    """Decode a stored lock.

    Raises ValueError, KeyError or TypeError if it is not a lock of this cluster in this format.
    """
    document: Mapping[str, Any] = bounded.json_object(data)
    if document["format"] != FORMAT or document["cluster"] != cluster_id:
        raise ValueError(f"it has format {document['format']!s:.20} and cluster {document['cluster']!s:.40}")
    term, heartbeat = document["term"], document["beat"]
    if any(type(number) is not int or not 0 < number < _MOST for number in (term, heartbeat)):
        raise ValueError("its term and its heartbeat must be whole numbers from 1 to 2^53 - 1")
    return Lock(term=term, heartbeat=heartbeat, holder=holder_of(document), released=document["released"] is True)


class LeaseClock:
    """This machine's clock, which also counts while the machine is suspended, and a way to wait."""

    def seconds(self) -> float:
        """Return the seconds since a moment that is fixed until this machine restarts."""
        return now()

    def sleep(self, seconds: float) -> None:
        """Wait for this many seconds."""
        time.sleep(seconds)


class Sighting:
    """The time at which this host first saw the current state of a lock. A small file keeps it between commands.

    A file that is damaged, or older than the last start of the machine, is ignored. If the system has no boot id, as on
    macOS, or the file cannot be written, only this process knows the time.
    """

    def __init__(self, path: Path, clock: LeaseClock) -> None:
        self.clock = clock
        self._path = path
        self._boot = boot()
        self._mark = ""
        self._since = 0.0

    def unchanged(self, mark: str) -> float:
        """Return the seconds since this host first saw the lock with this `mark`. If the mark is new to this host,
        stores it and returns 0.0. The mark must name the record, because the locks of a new record count from 1 again.
        """
        moment = self.clock.seconds()
        if mark != self._mark:
            self._mark, self._since = mark, self._first(mark, moment)
        return moment - self._since

    def _first(self, mark: str, moment: float) -> float:
        with suppress(OSError, ValueError, KeyError, TypeError, OverflowError):
            document = bounded.json_object(bounded.file_bytes(self._path, bounded.STATE))
            since = float(document["since"])
            if document["mark"] == mark and document["boot"] == self._boot is not None and since <= moment:
                return since
        with suppress(OSError), durable.replacing(self._path, private=True, synced=False) as file:
            file.write(json.dumps({"mark": mark, "boot": self._boot, "since": moment}).encode())
        return moment
