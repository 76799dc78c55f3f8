"""The file in which this host remembers a cluster's shared record: its topic, and how to reach ZooKeeper."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from kquota import bounded, durable
from kquota.stores.state.runs import make_private

_VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """The record's topic (`topic`, `topic_id`), and how to reach ZooKeeper. A value is None if it is unknown."""

    topic: str | None = None
    topic_id: str | None = None
    zookeeper: str | None = None
    zk_tls_config_file: str | None = None
    zk_sasl_config_file: str | None = None


class RecordMemory:
    """`record.json` next to the journals of a cluster.

    A file that is missing, unreadable, damaged or of another version counts as empty.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "record.json"

    def recall(self) -> Remembered:
        """Return the values that `keep` stored last. If there are none, all values are None."""
        with suppress(OSError, ValueError, KeyError):
            document = bounded.json_object(bounded.file_bytes(self._path, bounded.STATE))
            texts = {key: value for key, value in document.items() if isinstance(value, str)}
            if document["version"] == _VERSION:
                return Remembered(**{key: texts[key] for key in texts if key in Remembered.__slots__})
        return Remembered()

    def keep(self, remembered: Remembered) -> None:
        """Replace the stored values if they have changed. Creates the folder if it is missing. Ignores a failed write,
        because `RunFiles` later reports a folder that is not writable.
        """
        if remembered == self.recall():
            return
        with suppress(OSError):
            make_private(self._path.parent)  # it does not exist before the first run of a host
            with durable.replacing(self._path, private=True) as file:
                file.write(json.dumps({"version": _VERSION, **asdict(remembered)}).encode())
