"""Who may write to the cluster: one lock with a lease, kept alive by beats, and judged by the observer's own clock."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Protocol

from kquota import durable
from kquota.stores.state.clock import now
from kquota.stores.state.process import Holder, boot, holder_of

FORMAT: Final = 1
LEASE_SECONDS: Final = 30.0
"""A lock that an observer saw unchanged for so long is free."""
BEAT_SECONDS: Final = 5.0
"""A holder that is about to write shows a sign of life when its last one is older."""
WRITE_SECONDS: Final = LEASE_SECONDS / 2
"""A holder writes to the cluster only so long after it sent its last confirmed beat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """The lock as it stands in the record. `term` grows with every holder, `beat` with every sign of life."""

    term: int
    beat: int
    holder: Holder
    released: bool = False

    @property
    def mark(self) -> str:
        """What an observer compares: it changes with every sign of life."""
        return f"{self.term}:{self.beat}:{self.released}"

    def beaten(self) -> Lock:
        """The same with another sign of life."""
        return replace(self, beat=self.beat + 1)

    def written(self, cluster_id: str) -> bytes:
        """As it is stored."""
        document = {"format": FORMAT, "cluster": cluster_id, "term": self.term, "beat": self.beat}
        return json.dumps({**document, "released": self.released, **self.holder.written()}).encode()


def lock_of(data: bytes, cluster_id: str) -> Lock:
    """A stored lock. Raises ValueError, KeyError, TypeError for what is not one of this cluster and format."""
    document: Mapping[str, Any] = json.loads(data)
    if document["format"] != FORMAT or document["cluster"] != cluster_id:
        raise ValueError(f"format {document['format']!s:.20}, cluster {document['cluster']!s:.40}")
    term, beat = document["term"], document["beat"]
    if type(term) is not int or type(beat) is not int or term < 1 or beat < 1:
        raise ValueError("term and beat are not positive numbers")
    return Lock(term=term, beat=beat, holder=holder_of(document), released=document["released"] is True)


class LeaseClock(Protocol):
    """Seconds that also pass while the machine sleeps, and the way to wait."""

    def seconds(self) -> float:
        """Since some moment of this machine's running."""

    def sleep(self, seconds: float) -> None:
        """Wait."""


class MachineClock:
    """This machine's clock. Implements `LeaseClock`."""

    def seconds(self) -> float:
        return now()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class Sighting:
    """Since when this host sees a lock unchanged, remembered from one command to the next in a small file.

    A file that is damaged, or from before the machine's last start, counts as not there.
    """

    def __init__(self, path: Path, clock: LeaseClock) -> None:
        self._path = path
        self._clock = clock
        self._boot = boot()

    def unchanged(self, mark: str) -> float:
        """For how many seconds the lock is known to be at `mark`; 0.0 when it is seen there for the first time."""
        moment = self._clock.seconds()
        with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
            document = json.loads(self._path.read_text(encoding="utf-8"))
            since = float(document["since"])
            if document["mark"] == mark and document["boot"] == self._boot is not None and since <= moment:
                return moment - since
        with suppress(OSError), durable.replacing(self._path, private=True, synced=False) as file:
            file.write(json.dumps({"mark": mark, "boot": self._boot, "since": moment}).encode())
        return 0.0
