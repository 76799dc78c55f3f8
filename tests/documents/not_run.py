"""The exceptions: shown commands that no test runs, and examples of the help that do not end with 0. Each has a reason.

One that no document shows any more fails a test.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_CI: Final = ".ci/run is this very command"

NOT_RUN: Final[Mapping[str, str]] = {
    "make demo": _CI,
    "make test": _CI,
    "kquota sandbox demo": "a minute and a half; .ci/run does it as `make demo`",
    "kquota sandbox demo 2> progress.txt": "as above",
}
"""Command, without the comment that tells its exit, to reason."""

ENDS: Final[Mapping[str, tuple[str, str]]] = {
    "kquota quota diff --bootstrap-server localhost:9092 quotas.yaml": ("exit 8", "nobody has applied it yet"),
    "kquota quota diff --zookeeper localhost:2181 quotas.yaml --prune --output tsv": ("exit 8", "nor now"),
    "kquota reassign-partitions --bootstrap-server localhost:9092 --verify --reassignment-json-file plan.json": (
        "exit 8 until",
        "the move that the example before it has started is done",
    ),
    "kquota move status --bootstrap-server localhost:9092": ("exit 8", "a run is open"),
    "kquota move status --cluster prod --output json": ("exit 8", "the same run"),
    "kquota move resume --cluster prod --reassignment-json-file plan.json": ("exit 8 until", "the move is done"),
    "kquota move abort --cluster prod --reassignment-json-file plan.json": ("exit 8 until", "all is copied back"),
}
"""Example of a help to how it ends, in the words of a document's comments, and why."""

_MOVE: Final = (
    "kquota reassign-partitions --bootstrap-server localhost:9092 --execute --reassignment-json-file plan.json "
    "--throttle 50MB/s"
)
BEFORE: Final[Mapping[str, tuple[str, ...]]] = {
    "move status": (_MOVE,),
    "move abort": (
        "kquota move plan --bootstrap-server localhost:9092 --drain 3 --topics orders > plan.json",
        _MOVE,
    ),
}
"""Command to what has happened before its examples; `move resume` finds what `move status` has."""
