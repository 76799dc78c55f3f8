"""The record of runs: one JSON file a run, in a folder a cluster, safe from the moment a method returns."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal, cast

from kquota.errors import Busy, Invalid, KquotaError, Refused
from kquota.measure import ByteRate
from kquota.reassign.plan import Plan, parse
from kquota.reassign.run import Run
from kquota.reassign.throttle import Setting, Taken
from kquota.stores import durable

_VERSION: Final = 1
_SAFE: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")


def state_folder(environment: Mapping[str, str]) -> Path:
    """Where this person's state is kept: $XDG_STATE_HOME/kquota, else ~/.local/state/kquota (XDG base directories)."""
    home = environment.get("XDG_STATE_HOME", "")
    # The standard says that a relative path here must be ignored.
    root = Path(home) if Path(home).is_absolute() else Path.home() / ".local" / "state"
    return root / "kquota"


class RunFiles:
    """Runs on one cluster, in `root`/<cluster id>/<run id>.json; readable by their owner only. Implements `Runs`."""

    def __init__(self, root: Path, cluster_id: str) -> None:
        if not _SAFE.fullmatch(cluster_id):
            raise Invalid(f"cluster id {cluster_id!r} cannot name a folder of {root}")
        self._folder = root / cluster_id

    def unfinished(self) -> tuple[Run, ...]:
        """Oldest first. Raises Refused for a record that cannot be read or that a newer kquota wrote."""
        return tuple(run for run in self.every() if run.finished is None)

    def every(self) -> tuple[Run, ...]:
        """Finished runs, too: a run's record is never deleted by kquota."""
        try:
            paths = sorted(self._folder.glob("*.json"))
        except OSError as error:
            raise _unusable(self._folder, "read", error) from error
        return tuple(sorted((_read(path) for path in paths), key=lambda run: (run.begun, run.id)))

    def begin(self, run: Run) -> None:
        """Raises Busy when there is a record of this id, Refused when the folder cannot be written."""
        path = self._path(run)
        try:
            for folder in (self._folder.parent, self._folder):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            partial = self._written(path, run)
            try:
                # Unlike a rename, a link never takes the place of a record that is there.
                path.hardlink_to(partial)
            except FileExistsError as error:
                raise Busy(f"{path}: this plan was begun in this very second; try again") from error
            finally:
                partial.unlink()
            durable.sync(self._folder)
            durable.sync(self._folder.parent)
        except OSError as error:
            raise _unusable(path, "written", error) from error

    def update(self, run: Run) -> None:
        """Raises Refused when the folder cannot be written."""
        try:
            path = self._path(run)
            self._written(path, run).replace(path)
            durable.sync(self._folder)
        except OSError as error:
            raise _unusable(self._path(run), "written", error) from error

    def place(self, run: Run) -> str:
        return str(self._path(run))

    def _path(self, run: Run) -> Path:
        return self._folder / f"{run.id}.json"

    def _written(self, path: Path, run: Run) -> Path:
        """The record, safe on disk, under a name that no reader takes for one."""
        partial = path.with_suffix(f".{os.getpid()}.part")
        descriptor = os.open(partial, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(encode(run))
            file.flush()
            os.fsync(file.fileno())
        return partial


def encode(run: Run) -> str:
    """The run as one JSON document; `decode` gives back the same run."""
    document = {
        "version": _VERSION,
        "id": run.id,
        "begun": run.begun.isoformat(),
        "finished": run.finished.isoformat() if run.finished else None,
        "rate": run.rate,
        "plan": json.loads(run.plan.text()),
        "rollback": json.loads(run.rollback.text()),
        "taken": [
            {"kind": s.kind, "name": s.name, "key": s.key, "prior": taken.prior, "ours": list(taken.ours)}
            for s, taken in sorted(run.taken.items())
        ],
    }
    return json.dumps(document, indent=1) + "\n"


def decode(text: str, where: str) -> Run:
    """The run in a record. Raises Refused, naming `where`, when it is damaged or a newer kquota's."""
    try:
        document = json.loads(text)
        if document["version"] != _VERSION:
            raise Refused(
                f"{where}: is version {document['version']} of the record, this kquota reads {_VERSION}; "
                "use the kquota that wrote it"
            )
        return _run(document, where)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, Invalid) as error:
        raise Refused(
            f"{where}: is not a record that kquota wrote ({type(error).__name__}: {error}); "
            "see what throttle stands on the cluster, then move this file away"
        ) from error


def _run(document: Mapping[str, Any], where: str) -> Run:
    finished = document["finished"]
    run = Run(
        id=str(document["id"]),
        begun=datetime.fromisoformat(document["begun"]),
        plan=_plan(document["plan"], where),
        rollback=_plan(document["rollback"], where),
        rate=None if document["rate"] is None else ByteRate(int(document["rate"])),
        taken={},
        finished=None if finished is None else datetime.fromisoformat(finished),
    )
    taken = (_taken(item) for item in document["taken"])
    return replace(run, taken={one.setting: one for one in taken})


def _plan(document: object, where: str) -> Plan:
    return parse(json.dumps(document), where)


def _taken(item: Mapping[str, Any]) -> Taken:
    kind = item["kind"]
    if kind not in ("broker", "topic"):
        raise ValueError(f"unknown kind {kind!r}")
    setting = Setting(cast(Literal["broker", "topic"], kind), str(item["name"]), str(item["key"]))
    prior = item["prior"]
    return Taken(
        setting=setting,
        prior=None if prior is None else str(prior),
        ours=tuple(str(value) for value in item["ours"]),
    )


def _read(path: Path) -> Run:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _unusable(path, "read", error) from error
    return decode(text, str(path))


def _unusable(path: Path, verb: str, error: Exception) -> KquotaError:
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return Refused(f"{path}: cannot be {verb}: {why}; the record of a run must be safe before a move starts")
