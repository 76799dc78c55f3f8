"""The past moves of a cluster, and the latest estimates for it: two small JSON files next to the runs.

kquota uses these files only to improve an estimate. A file that is missing, damaged or from a newer kquota therefore
counts as empty.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, TypeVar

from kquota import bounded, durable
from kquota.errors import Refused
from kquota.measure import ByteRate
from kquota.pace.past_moves import ExpectedMove, KeptEstimate, PastMove, PastMoves
from kquota.stores.state.checked_values import moment
from kquota.stores.state.runs import FOLDER_NAME

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
        """Return the stored moves."""
        document = _document(self._folder / "past_moves.json")
        return PastMoves(under_way=_all(document, "under_way", _under_way), ended=_all(document, "ended", _ended))

    def keep(self, moves: PastMoves) -> None:
        """Replace the stored moves. Raises Refused if `past_moves.json` cannot be written."""
        under_way = [{**_common(move), "seen_moving": move.seen_moving.isoformat()} for move in moves.under_way]
        ended = [
            {**_common(move), "at_least_seconds": move.at_least, "at_most_seconds": move.at_most}
            for move in moves.ended
        ]
        self._write("past_moves.json", {"version": _VERSION, "under_way": under_way, "ended": ended})

    def estimates(self) -> tuple[KeptEstimate, ...]:
        """Return the latest estimates, oldest first."""
        return _all(_document(self._folder / "estimates.json"), "estimates", _estimate)

    def keep_estimate(self, estimate: KeptEstimate) -> None:
        """Add an estimate, or replace the one for the same plan and throttle. Keeps the latest `_MOST_ESTIMATES`.

        Raises Refused if `estimates.json` cannot be written.
        """
        others = [e for e in self.estimates() if (e.plan, e.throttle) != (estimate.plan, estimate.throttle)]
        kept = [
            {"plan": e.plan, "throttle": e.throttle, "expected_seconds": e.expected, "at": e.at.isoformat()}
            for e in [*others, estimate][-_MOST_ESTIMATES:]
        ]
        self._write("estimates.json", {"version": _VERSION, "estimates": kept})

    def _write(self, name: str, document: object) -> None:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with durable.replacing(self._folder / name, private=True) as file:
                file.write(json.dumps(document, indent=1).encode())
        except OSError as error:
            raise Refused(f"{self._folder / name}: cannot be written: {error.strerror}") from error


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


def _all(document: dict[str, Any], key: str, one: Callable[[dict[str, Any]], _T]) -> tuple[_T, ...]:
    items: Iterable[Any] = document.get(key, ())
    try:
        return tuple(one(item) for item in items)
    except (ValueError, KeyError, TypeError, OverflowError):
        return ()


def _common(move: ExpectedMove | PastMove) -> dict[str, object]:
    return {
        "run": move.run,
        "started": move.started.isoformat(),
        "throttle": move.throttle,
        "expected_seconds": move.expected,
    }


def _under_way(item: dict[str, Any]) -> ExpectedMove:
    return ExpectedMove(
        run=str(item["run"]),
        started=moment(item["started"]),
        throttle=ByteRate(int(item["throttle"])),
        expected=_positive(item["expected_seconds"]),
        seen_moving=moment(item["seen_moving"]),
    )


def _ended(item: dict[str, Any]) -> PastMove:
    return PastMove(
        run=str(item["run"]),
        started=moment(item["started"]),
        throttle=ByteRate(int(item["throttle"])),
        expected=_positive(item["expected_seconds"]),
        at_least=_seconds(item["at_least_seconds"]),
        at_most=_positive(item["at_most_seconds"]),
    )


def _estimate(item: dict[str, Any]) -> KeptEstimate:
    return KeptEstimate(
        plan=str(item["plan"]),
        throttle=ByteRate(int(item["throttle"])),
        expected=_positive(item["expected_seconds"]),
        at=moment(item["at"]),
    )


def _seconds(number: float) -> float:
    if isinstance(number, bool) or not math.isfinite(number) or number < 0:
        raise ValueError(f"{number} is not a time")
    return float(number)


def _positive(number: float) -> float:
    if not _seconds(number):
        raise ValueError(f"{number} is not a positive time")
    return float(number)
