"""What this host remembers of a cluster's shared record: which topic it is, and how it reached ZooKeeper."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from kquota import durable

_VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """Texts only. `topic` and `topic_id` name the record's topic, the others say how to reach ZooKeeper."""

    topic: str | None = None
    topic_id: str | None = None
    zookeeper: str | None = None
    zk_tls_config_file: str | None = None
    zk_sasl_config_file: str | None = None


class RecordMemory:
    """`record.json` beside the journals of a cluster. Damaged, or written by a newer kquota, it counts as empty."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "record.json"

    def recall(self) -> Remembered:
        """What was last kept."""
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            document: dict[str, Any] = json.loads(self._path.read_text(encoding="utf-8"))
            texts = {key: value for key, value in document.items() if isinstance(value, str)}
            if document["version"] == _VERSION:
                return Remembered(**{key: texts[key] for key in texts if key in Remembered.__slots__})
        return Remembered()

    def keep(self, remembered: Remembered) -> None:
        """Put this in the place of what was kept. A folder that cannot be written fails later, at the journal."""
        if remembered == self.recall():
            return
        folder = self._path.parent
        with suppress(OSError):
            for each in (folder.parent, folder):  # the first command of a host comes here before it has a journal
                each.mkdir(mode=0o700, parents=True, exist_ok=True)
            with durable.replacing(self._path, private=True) as file:
                file.write(json.dumps({"version": _VERSION, **asdict(remembered)}).encode())
