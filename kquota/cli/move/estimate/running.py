"""Running moves in the answer of `move estimate`: the progress of the plan, and remarks on other moves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kquota.cli.amounts import size_with
from kquota.cli.output import JsonObject
from kquota.list_text import few
from kquota.measure import counted
from kquota.reassign.running_copies import MoveUnderWay

_NAMED: Final = 5


def running_document(found: MoveUnderWay | None) -> JsonObject | None:
    """Return the JSON of `running`. null means that it is unknown which moves are running."""
    if found is None:
        return None
    return {
        "partitions": len(found.partitions),
        "copies": len(found.copies),
        "copies_unknown": found.unknown_copies,
        "bytes_copied": found.copied,
        "bytes_left": found.left,
        "elsewhere": list(found.elsewhere),
        "others": found.others,
    }


def running_lines(found: MoveUnderWay | None) -> Iterator[str]:
    """Yield a line with the progress of the plan, if any of its partitions is already moving."""
    if found is not None and found.partitions:
        yield f"Running      {running_words(found)}"


def running_words(found: MoveUnderWay) -> str:
    """Return as text the number of the plan's moving partitions, and the bytes that their copies have and still
    need.
    """
    partitions = f"{counted(len(found.partitions), 'partition')} of the plan"
    if not found.copies:
        return f"{partitions}: the move only removes replicas"
    copies = counted(len(found.copies), "copy")
    return f"{partitions}: {copies}, {size_with(found.copied, 'copied')}, {size_with(found.left, 'left')}"


def running_remarks(found: MoveUnderWay | None) -> Iterator[str]:
    """Yield remarks on copies with unknown bytes left, on moves to other replicas, and on moves outside the plan."""
    if found is None:
        return
    if found.unknown_copies:
        yield (
            f"warning: the remaining bytes of {counted(found.unknown_copies, 'running copy')} are unknown. "
            "Assumed: the size of the whole replica"
        )
    if found.elsewhere:
        are, moves = ("is", "that move") if len(found.elsewhere) == 1 else ("are", "those moves")
        yield (
            f"warning: {few(found.elsewhere, _NAMED)} {are} moving, but not to the replicas of the plan. The "
            f"estimate assumes that this plan replaces {moves}. --execute refuses this plan without --force"
        )
    if found.others:
        are = "is" if found.others == 1 else "are"
        yield (
            f"note: {counted(found.others, 'partition')} that the plan does not contain {are} also moving. If those "
            "copies are throttled, they share the throttle of their brokers, and the estimate does not include their "
            "bytes"
        )
