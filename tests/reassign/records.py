"""Records of runs for tests: the real journals in a separate folder, which is not shared."""

from __future__ import annotations

from pathlib import Path

from kquota.stores.record.runs import RecordedRuns
from kquota.stores.record.shared import Unshared
from kquota.stores.state.runs import RunFiles


def alone(folder: Path, cluster_id: str = "cluster") -> RecordedRuns:
    """Return the runs of one host on a cluster without a shared record."""
    return RecordedRuns(RunFiles(folder, cluster_id), Unshared("it is a test"))
