"""The past moves of a cluster, and the latest estimates for it: two small JSON files next to the runs.

kquota uses these files only to improve an estimate. A file that is missing, unreadable, damaged or of another version
therefore counts as empty.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, Final, TypeVar

from kquota import bounded, durable
from kquota.errors import Refused
from kquota.pace.past_moves import ExpectedMove, KeptEstimate, PastMove, PastMoves
from kquota.stores.state.checked_values import MOMENT, Codec, Fields, same
from kquota.stores.state.runs import FOLDER_NAME, make_private

_VERSION: Final = 1
_MOST_ESTIMATES: Final = 50
_T = TypeVar("_T")


class PastMovesFile:
    """`root/<cluster id>/past_moves.json` and `estimates.json`. Only their owner can read them.

    The lock of the cluster protects `past_moves.json`. No lock protects `estimates.json`, so the last write wins.
    """

    def __init__(self, root: Path, cluster_id: str) -> None:
        self._folder = root / cluster_id

    def recall(self) -> PastMoves:
        """Return the stored moves, oldest first. If the moves under way or the ended moves are missing or invalid, that
        part of the result is empty.
        """
        document = _document(self._folder / "past_moves.json")
        return PastMoves(under_way=_all(document, "under_way", _UNDER_WAY), ended=_all(document, "ended", _ENDED))

    def keep(self, moves: PastMoves) -> None:
        """Replace the stored moves. Creates the folder if it is missing. Raises Refused if `past_moves.json` cannot be
        written.
        """
        kept = {"under_way": _UNDER_WAY.written_all(moves.under_way), "ended": _ENDED.written_all(moves.ended)}
        self._write("past_moves.json", kept)

    def estimates(self) -> tuple[KeptEstimate, ...]:
        """Return the latest estimates, oldest first."""
        return _all(_document(self._folder / "estimates.json"), "estimates", _ESTIMATES)

    def keep_estimate(self, estimate: KeptEstimate) -> None:
        """Add an estimate, or replace the one for the same plan and throttle. Keeps the latest `_MOST_ESTIMATES`.

        Creates the folder if it is missing. Raises Refused if `estimates.json` cannot be written.
        """
        others = [e for e in self.estimates() if (e.plan, e.throttle) != (estimate.plan, estimate.throttle)]
        kept = _ESTIMATES.written_all([*others, estimate][-_MOST_ESTIMATES:])
        self._write("estimates.json", {"estimates": kept})

    def _write(self, name: str, document: dict[str, Any]) -> None:
        try:
            make_private(self._folder)
            with durable.replacing(self._folder / name, private=True) as file:
                file.write(json.dumps({"version": _VERSION, **document}, indent=1).encode())
        except OSError as error:
            step = durable.storage_step(error, "Check its permissions and the disk")
            raise Refused(f"{self._folder / name}: cannot be written: {error.strerror}. {step}") from error


def past_moves(root: Path, cluster_id: str | None) -> PastMovesFile | None:
    """Return the files of a cluster, or None if its id is unknown or is not a valid name for a folder."""
    if cluster_id is None or not FOLDER_NAME.fullmatch(cluster_id):
        return None
    return PastMovesFile(root, cluster_id)


def _document(path: Path) -> dict[str, Any]:
    try:
        found = bounded.json_object(bounded.file_bytes(path, bounded.STATE))
    except (OSError, ValueError):
        return {}
    return found if found.get("version") == _VERSION else {}


def _all(document: dict[str, Any], key: str, fields: Fields[_T]) -> tuple[_T, ...]:
    try:
        return fields.all_of(document.get(key, ()))
    except (ValueError, KeyError, TypeError, OverflowError):
        return ()


def _seconds(number: float) -> float:
    if isinstance(number, bool) or not math.isfinite(number) or number < 0:
        raise ValueError(f"{number} is not a time")
    return float(number)


def _positive(number: float) -> float:
    if not _seconds(number):
        raise ValueError(f"{number} is not a positive time")
    return float(number)


_COMMON: Final = {
    "run": Codec(same, str),
    "started": MOMENT,
    "throttle": Codec(same, int),
    "expected": Codec(same, _positive, "expected_seconds"),
}
_UNDER_WAY: Final = Fields(ExpectedMove, **_COMMON, seen_moving=MOMENT)
_ENDED: Final = Fields(
    PastMove,
    **_COMMON,
    at_least=Codec(same, _seconds, "at_least_seconds"),
    at_most=Codec(same, _positive, "at_most_seconds"),
)
_ESTIMATES: Final = Fields(
    KeptEstimate, plan=Codec(same, str), throttle=_COMMON["throttle"], expected=_COMMON["expected"], at=MOMENT
)
