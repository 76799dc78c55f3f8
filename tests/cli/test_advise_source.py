"""The keys that `quota advise` limits by a trace."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kquota.cli.quota.advise.source import _listed, trace_keys
from kquota.errors import Invalid
from kquota.quota.usage import BucketUse, QuotaBucket, usage_lines
from kquota.sizes.snapshot import STAMP
from kquota.spark.files import Files
from kquota.spark.trace_files import TraceFiles
from kquota.terms import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
)

pytestmark = pytest.mark.unit
BOTH = [PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE]
CASES: dict[str, tuple[str | None, list[str], list[str] | str]] = {
    # the header, the given keys: the keys, or the refusal.
    "JSON lines": (None, [], [PRODUCER_BYTE_RATE, REQUEST_PERCENTAGE]),
    "only bytes": ("ms,bytes", [], [PRODUCER_BYTE_RATE]),
    "only thread time": ("ms,thread_ms", [], [REQUEST_PERCENTAGE]),
    "the bytes of consumers": ("ms,bytes,thread_ms", [CONSUMER_BYTE_RATE], [CONSUMER_BYTE_RATE]),
    "mutations": ("ms,mutations", [CONTROLLER_MUTATION_RATE], [CONTROLLER_MUTATION_RATE]),
    "only mutations": ("ms,mutations", [], "has no column bytes, which the key producer_byte_rate needs"),
    "a key without a column": ("ms,bytes", [REQUEST_PERCENTAGE], "has no column thread_ms"),
    "both byte rates": ("ms,bytes", BOTH, "Give only one of"),
}


@pytest.mark.parametrize(("header", "given", "expected"), CASES.values(), ids=CASES)
def test_keys_of_a_trace(header: str | None, given: list[str], expected: list[str] | str) -> None:
    files = Files(folder=Path("t"), names={"0.csv": "t.csv"})
    trace = TraceFiles(files=files, names=tuple((header or "").split(",")), header=header)
    if isinstance(expected, list):
        assert trace_keys(trace, given) == expected
    else:
        with pytest.raises(Invalid, match=expected):
            trace_keys(trace, given)


def test_readings_before_the_calendar_are_refused(tmp_path: Path) -> None:
    bucket = QuotaBucket(key=PRODUCER_BYTE_RATE, user=None, client_id="a")
    begin = datetime(1, 1, 1, tzinfo=UTC)
    row = next(usage_lines("c", begin, 60, [(bucket, BucketUse(broker="1", used=5.0))]))
    (day := tmp_path / "date=0001-01-01").mkdir()
    text = row.replace(begin.strftime(STAMP), "0001-01-01T00:00:00Z")
    (day / "c-00010101T000000Z.jsonl.gz").write_bytes(gzip.compress(f"{text}\n".encode()))
    with pytest.raises(Invalid, match=r"the newest reading is from 0001-01-01\. Remove readings with wrong times"):
        _listed([tmp_path], "c", timedelta(days=7))
