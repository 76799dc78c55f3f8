"""The file in which this host remembers a cluster's shared record: its topic, and how to reach ZooKeeper."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from kquota import bounded, durable
from kquota.stores.state.runs import make_private

_NAME: Final = "record.json"
_VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """The record's topic (`topic`, `topic_id`), and how to reach ZooKeeper. A value is None if it is unknown."""

    topic: str | None = None
    topic_id: str | None = None
    zookeeper: str | None = None
    zk_tls_config_file: str | None = None
    zk_sasl_config_file: str | None = None


def recall(folder: Path) -> Remembered:
    """Return the values in `record.json` next to the journals of a cluster.

    All values are None if the file is missing, unreadable, damaged or of another version.
    """
    with suppress(OSError, ValueError, KeyError):
        document = bounded.json_object(bounded.file_bytes(folder / _NAME, bounded.STATE))
        texts = {key: value for key, value in document.items() if isinstance(value, str)}
        if document["version"] == _VERSION:
            return Remembered(**{key: texts[key] for key in texts if key in Remembered.__slots__})
    return Remembered()


def remember(folder: Path, **values: str | None) -> None:
    """Replace these values of `Remembered` if they have changed. Creates the folder if it is missing. Ignores a failed
    write, because `RunFiles` later reports a folder that is not writable.
    """
    before = recall(folder)
    after = replace(before, **values)
    if after == before:
        return
    with suppress(OSError):
        make_private(folder)  # it does not exist before the first run of a host
        with durable.replacing(folder / _NAME, private=True) as file:
            file.write(json.dumps({"version": _VERSION, **asdict(after)}).encode())
