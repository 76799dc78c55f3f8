"""The findings that `throttle doctor` keeps for its next execution: one small JSON file for each cluster."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Final

from kquota import bounded, durable
from kquota.errors import Parameter, Refused
from kquota.settings.resource import Setting
from kquota.stores.state.checked_values import moment, setting_fields, setting_of
from kquota.throttle.fixes import Sightings

_VERSION: Final = 1


class SightingsFile:
    """`root`/<cluster id>/leftovers.json, next to the runs. Only its owner can read it. Implements `Memory`."""

    def __init__(self, root: Path, cluster_id: str) -> None:
        self._path = root / cluster_id / "leftovers.json"

    def recall(self) -> Sightings | None:
        """Return the stored findings, or None if the file is missing, damaged or from a newer kquota.

        With None, all findings count as new. Raises Refused if the file exists but cannot be read.
        """
        try:
            document = bounded.json_object(bounded.file_bytes(self._path, bounded.STATE))
            if document["version"] != _VERSION:
                return None
            first: dict[Setting, dict[str, datetime]] = {}
            for item in document["leftovers"]:
                setting = setting_of(item)
                first.setdefault(setting, {})[str(item["value"])] = moment(item["first_seen"])
            return Sightings(at=moment(document["at"]), first=first)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Refused(f"{self._path}: cannot be read: {error.strerror}") from error
        except (ValueError, KeyError, TypeError):
            return None

    def keep(self, sightings: Sightings) -> None:
        leftovers = [
            {**setting_fields(s), "value": value, "first_seen": at.isoformat()}
            for s, values in sorted(sightings.first.items())
            for value, at in values.items()
        ]
        document = {"version": _VERSION, "at": sightings.at.isoformat(), "leftovers": leftovers}
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with durable.replacing(self._path, private=True) as file:
                file.write(json.dumps(document, indent=1).encode())
        except OSError as error:
            why = f"{self._path}: cannot be written: {error.strerror}. Choose another folder with "
            raise Refused(why, Parameter("state_dir")) from error
