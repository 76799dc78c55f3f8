"""The output of --cancel for log dirs whose broker refused or did not answer: stderr, JSON and exit code."""

from __future__ import annotations

import json

import pytest

from kquota.cli.formats import document
from kquota.cli.reassign_partitions.cancellation import cancelled
from kquota.cli.reassign_partitions.remarks import of_cancellation
from kquota.errors import KquotaError, Refused
from kquota.reassign.cancellation import Cancellation
from kquota.reassign.log_dir_actions import Started
from kquota.reassign.progress import Progress
from kquota.reassign.verification import Verification
from kquota.terms import BrokerId, ReplicaId, TopicPartition

REPLICA: ReplicaId = (TopicPartition("t", 0), BrokerId(2))
REFUSED: dict[ReplicaId, KquotaError] = {REPLICA: Refused("the disk is offline")}
NONE = "None of the specified partition moves are active."
TOLD = {
    "turned back": (
        Started(begun={REPLICA: "/a"}),
        0,
        "Successfully started moving log directory to /a for replica t-0 with broker 2 ",
        "",
    ),
    "none": (Started(), 0, NONE, ""),
    "refused": (
        Started(refused=REFUSED),
        1,
        "",
        "error: Failed to alter dir for t-0-2: the disk is offline",
    ),
    "not answered": (
        Started(waiting={REPLICA: "it is dead"}),
        8,
        "",
        "error: Timed out before log directory move could be cancelled for: t-0-2. Run `kquota reassign-partitions "
        "--bootstrap-server HOST:PORT --cancel --reassignment-json-file PLAN` (replace PLAN with the file of the plan)",
    ),
}


@pytest.mark.parametrize(("moved", "code", "out", "err"), TOLD.values(), ids=TOLD)
def test_cancel_reports_log_dirs(moved: Started, code: int, out: str, err: str) -> None:
    done = Cancellation(cancelled=(), log_dirs=moved, verification=Verification(statuses=(), verdict=Progress.DONE))
    first = "None of the specified partition reassignments are active."
    answer = cancelled(done, tuple(of_cancellation(done)))
    assert [*answer.text()] == [first, *filter(None, [out])]
    assert answer.notes == tuple(filter(None, [err]))
    assert answer.code == code
    told = json.loads(document(answer))
    found = {key: len(told[f"log_dirs_{key}"]) for key in ("cancelled", "failed", "waiting")}
    assert found == {"cancelled": len(moved.begun), "failed": len(moved.refused), "waiting": len(moved.waiting)}
