"""The leftovers that `throttle doctor` has seen, kept for its next check: one small JSON file for each cluster."""

from __future__ import annotations

import errno
import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from kquota import bounded, durable
from kquota.errors import Parameter, Refused
from kquota.settings import throttled_lists
from kquota.settings.resource import Setting
from kquota.stores.state.checked_values import moment, setting_of
from kquota.stores.state.runs import make_private
from kquota.throttle.doctor import Sightings

_VERSION: Final = 2


class SightingsFile:
    """`root/<cluster id>/leftovers.json`, next to the runs. Only its owner can read it. Implements `Memory`."""

    def __init__(self, root: Path, cluster_id: str) -> None:
        self._path = root / cluster_id / "leftovers.json"

    def recall(self) -> Sightings | None:
        """Return the stored sightings, or None if the file is missing, damaged, too large or of another version.

        Raises Refused if the file cannot be read for another reason.
        """
        try:
            document = bounded.json_object(bounded.file_bytes(self._path, bounded.STATE))
            if document["version"] != _VERSION:
                return None
            first: dict[Setting, dict[str, datetime]] = {}
            for group in document["leftovers"]:
                at = moment(group["first_seen"])
                for text in group["values"]:
                    name, _, value = text.partition(" ")
                    setting = setting_of({**group, "name": name})
                    values = (setting.is_list and throttled_lists.entries(value)) or (value,)
                    first.setdefault(setting, {}).update(dict.fromkeys(values, at))
            return Sightings(at=moment(document["at"]), first=first)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno == errno.EFBIG:
                return None
            raise Refused(f"{self._path}: cannot be read: {error.strerror}. Check its owner and permissions") from error
        except (ValueError, KeyError, TypeError, AttributeError):
            return None

    def keep(self, sightings: Sightings) -> None:
        """Replace the stored sightings. If there are more than `recall` can read, store only some of the oldest.

        Raises Refused if the file cannot be written.
        """
        found = sorted(
            ((at, setting, value) for setting, values in sightings.first.items() for value, at in values.items()),
            key=lambda one: (one[0], one[1]),
        )
        data = _document(sightings.at, found)
        while found and not _can_be_read(data):
            found = found[: len(found) // 2]
            data = _document(sightings.at, found)
        try:
            make_private(self._path.parent)
            with durable.replacing(self._path, private=True) as file:
                file.write(data)
        except OSError as error:
            why = f"{self._path}: cannot be written: {error.strerror}. Choose another folder with "
            raise Refused(why, Parameter("state_dir")) from error


def _document(at: datetime, found: Sequence[tuple[datetime, Setting, str]]) -> bytes:
    """Return the JSON of the file. Leftovers with the same time and key form one group, and the entries of one list
    form one string. Otherwise, each of 100,000 leftovers would repeat the time, the key and the name.
    """
    groups: dict[tuple[datetime, str, str], dict[Setting, list[str]]] = {}
    for first_seen, setting, value in found:
        groups.setdefault((first_seen, setting.kind, setting.key), {}).setdefault(setting, []).append(value)
    leftovers = [
        {
            "kind": kind,
            "key": key,
            "first_seen": first_seen.isoformat(),
            "values": [
                f"{setting.name} {value}"
                for setting, values in settings.items()
                for value in ([",".join(values)] if setting.is_list else values)
            ],
        }
        for (first_seen, kind, key), settings in groups.items()
    ]
    return json.dumps({"version": _VERSION, "at": at.isoformat(), "leftovers": leftovers}, indent=1).encode()


def _can_be_read(data: bytes) -> bool:
    try:
        bounded.json_object(data)
    except ValueError:
        return False
    return len(data) <= bounded.STATE
