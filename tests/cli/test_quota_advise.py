"""`kquota quota advise` on a real broker: the document can be applied, and its predictions follow the use."""

from __future__ import annotations

import gzip
import json
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kquota.quota.usage import BucketUse, QuotaBucket
from kquota.sandbox.cluster import Sandbox
from kquota.stores.admin.connection import Wire
from kquota.stores.state import usage_files
from kquota.terms import CONSUMER_BYTE_RATE, PRODUCER_BYTE_RATE, REQUEST_PERCENTAGE
from tests.cli.run import Ran, kquota

pytestmark = [pytest.mark.kafka, pytest.mark.spark]
BEGIN = datetime(2026, 11, 20, tzinfo=UTC)
HOURS = 48


def week(folder: Path, cluster: str, prefix: str) -> None:
    """Two days of hourly readings. `steady` uses 1 MB/s, `bursts` 10 MB/s in one hour, and `both` has a user."""
    for hour in range(HOURS):
        uses = [
            (QuotaBucket(key=PRODUCER_BYTE_RATE, user=None, client_id=f"{prefix}-steady"), 1e6),
            (QuotaBucket(key=PRODUCER_BYTE_RATE, user=None, client_id=f"{prefix}-bursts"), 1e7 if hour == 20 else 1e6),
            (QuotaBucket(key=CONSUMER_BYTE_RATE, user=f"{prefix}-u", client_id="both"), 5e6),
            (QuotaBucket(key=REQUEST_PERCENTAGE, user=f"{prefix}-u", client_id="both"), 12.3),
        ]
        found = [(bucket, BucketUse(broker="1", used=used)) for bucket, used in uses]
        usage_files.add(folder, cluster, BEGIN + timedelta(hours=hour + 1), found)


@pytest.fixture
def prefix(kafka_431: Sandbox) -> Iterator[str]:
    """The names of this test, whose quotas are removed at the end."""
    found = uuid.uuid4().hex[:8]
    yield found
    document = f"version: 1\nowns: ['{found}*']\n"
    assert piped("quota", "apply", "--prune", "--yes", at=kafka_431, document=document).code == 0


def piped(*command: str, at: Sandbox, document: str) -> Ran:
    path = Path(f"/dev/shm/{uuid.uuid4().hex}.yaml")
    path.write_text(document)
    try:
        return kquota(*command, "--bootstrap-server", at.bootstrap, str(path))
    finally:
        path.unlink()


@pytest.fixture
def advise(kafka_431: Sandbox, tmp_path: Path, prefix: str) -> Callable[..., Ran]:
    with Wire(kafka_431.bootstrap, {}) as wire:
        week(tmp_path / "usage", wire.cluster_id, prefix)

    def run(*more: str) -> Ran:
        return kquota(
            "quota", "advise", "--bootstrap-server", kafka_431.bootstrap, "--usage", str(tmp_path / "usage"), *more
        )

    return run


def test_the_document_is_applied_and_then_nothing_differs(
    kafka_431: Sandbox, advise: Callable[..., Ran], prefix: str
) -> None:
    kept = ("--alter", "--entity-type", "clients", "--entity-name", f"{prefix}-steady")
    assert (
        kquota(
            "configs", "--bootstrap-server", kafka_431.bootstrap, *kept, "--add-config", "consumer_byte_rate=7000000"
        ).code
        == 0
    )
    first = advise("--percentile", "90")
    assert first.code == 0, first.err
    assert f"client-id '{prefix}-bursts'  producer_byte_rate" in first.err
    assert piped("quota", "diff", at=kafka_431, document=first.out).code == 8
    assert piped("quota", "apply", "--yes", at=kafka_431, document=first.out).code == 0
    assert piped("quota", "diff", at=kafka_431, document=first.out).code == 0
    again = json.loads(advise("--percentile", "90", "--output", "json").out)
    limits = {(one["client_id"], one["key"]): (one["limit"], one["proposed"]) for one in again["clients"]}
    # Levels are up to 2% above the use, and limits have two digits.
    assert limits == {
        (f"{prefix}-steady", PRODUCER_BYTE_RATE): (1.5e6, 1.5e6),
        (f"{prefix}-bursts", PRODUCER_BYTE_RATE): (1.6e6, 1.6e6),
        ("both", CONSUMER_BYTE_RATE): (7.5e6, 7.5e6),
        ("both", REQUEST_PERCENTAGE): (19.0, 19.0),
    }
    described = kquota("quota", "export", "--bootstrap-server", kafka_431.bootstrap, "--output", "json")
    assert json.loads(described.out)["clients"][f"{prefix}-steady"] == {
        "consumer_byte_rate": 7_000_000,
        "producer_byte_rate": 1_500_000,
    }


def test_predictions_and_sums_are_in_json(advise: Callable[..., Ran], prefix: str) -> None:
    found = json.loads(advise("--percentile", "90", "--network", "5MB/s", "--output", "json").out)
    bursts = next(one for one in found["clients"] if one["client_id"] == f"{prefix}-bursts")
    # An hour at 10 MB/s under 1.6 MB/s, and then 600 kB/s less than the limit until everything is sent.
    assert bursts["throttle_seconds"] == pytest.approx(3_600 * (1 + 8.4 / 0.6), rel=0.01)
    assert not bursts["unfinished"]
    totals = {one["key"]: one for one in found["totals"]}
    assert (totals[PRODUCER_BYTE_RATE]["limits"], totals[PRODUCER_BYTE_RATE]["capacity"]) == (3.1e6, 5e6)
    assert totals[REQUEST_PERCENTAGE]["capacity"] == 1_100
    steady = next(one for one in found["clients"] if one["client_id"] == f"{prefix}-steady")
    assert (steady["throttle_seconds"], steady["measured_seconds"]) == (None, 3_600 * (HOURS - 1) + 10)


def test_more_brokers_shrink_limits_that_are_per_broker(
    kafka_431: Sandbox, advise: Callable[..., Ran], prefix: str
) -> None:
    document = (
        f"version: 1\nusers:\n  {prefix}-quiet:\n    producer_byte_rate: 6MB/s\n    controller_mutation_rate: 4\n"
    )
    assert piped("quota", "apply", "--yes", at=kafka_431, document=document).code == 0
    now = json.loads(advise("--output", "json").out)
    later = json.loads(advise("--brokers", str(2 * now["brokers"]), "--output", "json").out)
    assert (now["resized"], now["brokers_later"], later["brokers_later"]) == ([], None, 2 * now["brokers"])
    quiet = [one for one in later["resized"] if one.get("user") == f"{prefix}-quiet"]
    assert quiet == [{"user": f"{prefix}-quiet", "key": "producer_byte_rate", "old": 6e6, "new": 3e6}]
    steady = [
        next(one["proposed"] for one in found["clients"] if one["client_id"] == f"{prefix}-steady")
        for found in (now, later)
    ]
    assert steady == [1.5e6, 750_000]


def test_compacted_days_give_the_same_advice(advise: Callable[..., Ran], tmp_path: Path) -> None:
    before = advise("--output", "tsv")
    compacted = advise("--compact", "--output", "tsv")
    assert compacted.out == before.out
    assert f"compacted {HOURS} snapshots into " in compacted.err
    for path in (tmp_path / "usage").glob("date=*/*.gz"):
        path.unlink()
    assert advise("--output", "tsv").out == before.out


def test_a_trace_is_a_source_of_use(kafka_431: Sandbox, tmp_path: Path, prefix: str) -> None:
    trace = tmp_path / "trace.csv"
    seconds = range(3_600)
    rows = [f"{at * 1_000},{500_000 if at < 3_540 else 5_000_000},{prefix}-traced" for at in seconds]
    trace.write_text("\n".join(["ms,bytes,client_id", *rows]))
    command = ("quota", "advise", "--bootstrap-server", kafka_431.bootstrap, "--trace", str(trace))
    found = kquota(*command, "--percentile", "90", "--output", "json")
    assert found.code == 0, found.err
    [one] = json.loads(found.out)["clients"]
    assert (one["key"], one["client_id"]) == (PRODUCER_BYTE_RATE, f"{prefix}-traced")
    assert (one["proposed"], one["measured_seconds"]) == (770_000, 3_600)
    # The last minute at 5 MB/s exceeds 770 kB/s over the quota window after 0.6 s.
    assert (one["throttle_seconds"], one["unfinished"]) == (59.4, True)


TRACES: dict[str, tuple[str, str]] = {
    "no header": ("1,2\n", "the first line must name the column ms"),
    "no valid row": ("ms,bytes\nx,1\n", "contains no valid row"),
    "a time after the year 9999": ('{"ms": 999999999999999, "bytes": 5}\n', "before the year 10000"),
}


@pytest.mark.parametrize(("text", "why"), TRACES.values(), ids=TRACES)
def test_traces_that_are_refused(kafka_431: Sandbox, tmp_path: Path, text: str, why: str) -> None:
    trace = tmp_path / "trace"
    trace.write_text(text)
    found = kquota("quota", "advise", "--bootstrap-server", kafka_431.bootstrap, "--trace", str(trace))
    assert (found.code, found.out) == (2, ""), found.err
    assert why in found.err.splitlines()[-1]


WRONG: dict[str, tuple[list[str], str]] = {
    "no use": ([], "no source of measured use is given. Give --prometheus URL"),
    "two sources": (["--usage", "u", "--prometheus", "http://p"], "are 2 sources of measured use"),
    "three sources": (
        ["--usage", "u", "--trace", "t", "--prometheus", "p"],
        "--usage and --trace and --prometheus are 3",
    ),
    "compacting a trace": (["--trace", "t", "--compact"], "--compact needs --usage DIR"),
    "a trace that does not exist": (["--trace", "absent"], "absent"),
    "a folder that does not exist": (["--usage", "absent"], "--usage: absent: the file or folder does not exist"),
    "a key that is not measured": (
        ["--usage", "u", "--key", "connection_creation_rate"],
        "does not measure the use of this key",
    ),
    "no percentile": (["--usage", "u", "--percentile", "nan"], "'--percentile': nan is not a finite number"),
    "a short step": (["--prometheus", "http://p", "--step", "100ms"], "--step 100ms: must be at least 1s"),
    "compacting Prometheus": (["--prometheus", "http://p", "--compact"], "--compact needs --usage DIR"),
}


@pytest.mark.parametrize(("given", "why"), WRONG.values(), ids=WRONG)
def test_what_is_refused(kafka_431: Sandbox, given: list[str], why: str) -> None:
    found = kquota("quota", "advise", "--bootstrap-server", kafka_431.bootstrap, *given)
    assert (found.code, found.out, len(found.err.splitlines())) == (2, "", 1), found.err
    assert why in found.err


def test_the_use_of_another_cluster_is_refused(kafka_431: Sandbox, tmp_path: Path) -> None:
    week(tmp_path, "another", "x")
    found = kquota("quota", "advise", "--bootstrap-server", kafka_431.bootstrap, "--usage", str(tmp_path))
    assert (found.code, found.out) == (2, "")
    assert ": contains no usage snapshot of cluster" in found.err


def test_a_damaged_snapshot_is_named(advise: Callable[..., Ran], tmp_path: Path) -> None:
    damaged = sorted((tmp_path / "usage").glob("date=*/*.gz"))[3]
    damaged.write_bytes(gzip.compress(b"x\n"))
    found = advise()
    assert (found.code, found.out) == (2, "")
    assert str(damaged) in found.err
