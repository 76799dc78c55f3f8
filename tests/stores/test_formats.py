"""The files and the shared record of kquota, byte by byte, and that it reads current files (docs/formats.md).

`golden/` holds the files. REWRITE_GOLDEN=1 writes them again. A change there needs a new version of the format.
"""

from __future__ import annotations

import gzip
import itertools
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

from kquota.measure import ByteRate
from kquota.pace.past_moves import ExpectedMove, KeptEstimate, PastMove, PastMoves
from kquota.quota.usage import BucketUse, QuotaBucket
from kquota.reassign.plan import Plan
from kquota.reassign.run import Owner, Purpose, Run, Stamp, Taken
from kquota.settings.resource import Setting
from kquota.sizes import snapshot
from kquota.stores.record import sheet
from kquota.stores.record.lease import Lock, lock_of
from kquota.stores.record.memory import Remembered, recall, remember
from kquota.stores.state import journal, usage_files
from kquota.stores.state.doctor_memory import SightingsFile
from kquota.stores.state.past_moves import PastMovesFile
from kquota.stores.state.process import Holder, holder_of
from kquota.stores.state.runs import RunFiles
from kquota.terms import (
    CONTROLLER_MUTATION_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    PRODUCER_BYTE_RATE,
    BrokerId,
    TopicPartition,
)
from kquota.throttle.doctor import Sightings
from tests.sizes.fake import FakeLogDirs

GOLDEN = Path(__file__).parent / "golden"
BEGUN = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
LATER = datetime(2026, 3, 1, 12, 45, 6, 789, tzinfo=UTC)
ONE, TWO, THREE = map(BrokerId, (1, 2, 3))
LEADERS, FOLLOWERS = (Setting.of_topic("t", key) for key in (LEADER_REPLICAS, FOLLOWER_REPLICAS))
RATE = Setting.of_broker(ONE, LEADER_RATE)
ALICE = Owner(user="alice", host="bastion", pid=7, since=BEGUN)
BOB = Owner(user="bob", host="jump", pid=11, since=BEGUN)
TOPIC = "topic 0e7c2f2a-5d7e-4b5c-9d64-0f4f3a4f7b11"


def _states() -> list[tuple[Run, Stamp]]:
    """A run from its first line to its last, written by two hosts."""
    names = (TopicPartition("orders", 0), TopicPartition("t", 7))
    begun = Run(
        id="20260301T123000Z-0123456789ab",
        begun=BEGUN,
        plan=Plan(targets={names[0]: (ONE, THREE), names[1]: (TWO,)}, log_dirs={(names[0], THREE): "/data/b"}),
        rollback=Plan(targets={names[0]: (ONE, TWO), names[1]: (ONE,)}),
        rate=ByteRate(5_000_000),
        log_dir_rate=ByteRate(1_000),
        taken={
            LEADERS: Taken(setting=LEADERS, prior="9:9,0:1", ours=("0:1", "0:2")),
            RATE: Taken(setting=RATE, prior=None, ours=("5000000",)),
        },
        topic_ids={"orders": "RXWn764lRD27K2w3HJofHQ"},
        owner=ALICE,
        reason='CHG-7: "größer"\n',
        crowded=True,
    )
    handed = replace(begun, handed_over=frozenset(names), rate=ByteRate(6_000_000))
    more = {**handed.taken, FOLLOWERS: Taken(setting=FOLLOWERS, prior="", ours=("*",))}
    del more[LEADERS]
    back = replace(handed, taken=dict(sorted(more.items())), aborting=True)
    return [
        (begun, Stamp(version=1, by=ALICE, at=BEGUN, record=TOPIC)),
        (handed, Stamp(version=2, by=ALICE, at=LATER)),
        (back, Stamp(version=3, by=BOB, at=LATER, record="zookeeper")),
        (replace(back, taken={}, finished=LATER), Stamp(version=4, by=BOB, at=LATER, record="zookeeper")),
    ]


def must_be(name: str, seen: bytes) -> None:
    """The text is equal to the file, to the byte."""
    path = GOLDEN / name
    if os.environ.get("REWRITE_GOLDEN") == "1":
        path.write_bytes(seen)
    assert seen == path.read_bytes()


def _lines() -> Iterator[bytes]:
    states = _states()
    yield journal.line(journal.first(*states[0]))
    for (before, _), (after, stamp) in itertools.pairwise(states):
        yield journal.line(journal.change(before, after, stamp))


def test_the_journal() -> None:
    must_be("move.journal", b"".join(_lines()))


def test_a_journal_on_file_is_read(tmp_path: Path) -> None:
    expected, stamp = _states()[-1]
    folder = tmp_path / "cluster"
    folder.mkdir()
    (folder / f"{expected.id}.journal").write_bytes((GOLDEN / "move.journal").read_bytes())
    (kept,) = RunFiles(tmp_path, "cluster").every().values()
    assert (kept.run, kept.run.stamp) == (expected, stamp)
    assert kept.shared == {TOPIC: {1: ALICE}, "zookeeper": {3: BOB, 4: BOB}}


def test_a_throttle_without_a_move() -> None:
    """Only its plan is empty."""
    run, stamp = _states()[0]
    empty = Plan(targets={})
    throttle = replace(run, purpose=Purpose.THROTTLE, plan=empty, rollback=empty, rate=None, log_dir_rate=None)
    must_be("throttle.journal", journal.line(journal.first(throttle, stamp)))


def test_a_sheet_of_the_shared_record() -> None:
    run, stamp = _states()[2]
    encoded = sheet.encode(replace(run, stamp=stamp), "cluster-1")
    assert encoded.parts == {}
    must_be("sheet.json", encoded.sheet)
    read = sheet.decode((GOLDEN / "sheet.json").read_bytes(), run.id, "cluster-1", lambda _: None)
    assert (read.run, read.run.stamp, read.parts) == (run, stamp, ())


def test_a_sheet_with_its_plan_in_a_separate_part() -> None:
    run, stamp = _states()[0]
    plan = Plan(targets={TopicPartition("orders", n): (ONE, THREE) for n in range(500)})
    large = replace(run, plan=plan, stamp=stamp)
    encoded = sheet.encode(large, "cluster-1")
    must_be("sheet-with-part.json", encoded.sheet)
    ((digest, data),) = encoded.parts.items()
    # The compression by gzip is not a contract; the hash is over the text.
    must_be("sheet-part.txt", f"{digest}\n{gzip.decompress(data).decode()}\n".encode())
    read = sheet.decode((GOLDEN / "sheet-with-part.json").read_bytes(), run.id, "cluster-1", {digest: data}.get)
    assert (read.run, read.parts) == (large, (digest,))


HOLDER = Holder(owner=ALICE, doing="move resume", machine="boot pid:[4026531836]", started="12345")


def test_the_locks() -> None:
    """The lock of a host, and of the shared record."""
    must_be("lock-of-host.json", json.dumps(HOLDER.written()).encode())
    assert holder_of(json.loads((GOLDEN / "lock-of-host.json").read_bytes())) == HOLDER
    for released in (False, True):
        name = f"lock-{'released' if released else 'held'}.json"
        lock = Lock(term=3, heartbeat=17, holder=HOLDER, released=released)
        must_be(name, lock.written("cluster-1"))
        assert lock_of((GOLDEN / name).read_bytes(), "cluster-1") == lock


def test_the_memory_of_doctor(tmp_path: Path) -> None:
    sightings = Sightings(at=LATER, first={LEADERS: {"0:1": BEGUN, "9:9": LATER}, RATE: {"5000000": BEGUN}})
    memory = SightingsFile(tmp_path, "cluster")
    memory.keep(sightings)
    must_be("leftovers.json", (tmp_path / "cluster" / "leftovers.json").read_bytes())
    (tmp_path / "cluster" / "leftovers.json").write_bytes((GOLDEN / "leftovers.json").read_bytes())
    assert memory.recall() == sightings


def test_the_past_moves_of_a_cluster(tmp_path: Path) -> None:
    run, throttle = "20260301T123000Z-0123456789ab", ByteRate(5_000_000)
    moves = PastMoves(
        under_way=(ExpectedMove(run=run, started=BEGUN, throttle=throttle, expected=61.5, seen_moving=LATER),),
        ended=(PastMove(run=run, started=BEGUN, throttle=throttle, expected=61.5, at_least=58.25, at_most=60.0),),
    )
    estimate = KeptEstimate(plan="0123456789ab", throttle=throttle, expected=61.5, at=BEGUN)
    file = PastMovesFile(tmp_path, "cluster")
    file.keep(moves)
    file.keep_estimate(estimate)
    for name in ("past_moves.json", "estimates.json"):
        must_be(name, (tmp_path / "cluster" / name).read_bytes())
        (tmp_path / "cluster" / name).write_bytes((GOLDEN / name).read_bytes())
    assert (file.recall(), file.estimates()) == (moves, (estimate,))


def test_the_memory_of_a_host_about_the_shared_record(tmp_path: Path) -> None:
    known = Remembered(topic="__kquota_runs", topic_id="0e7c2f2a", zookeeper="zk1:2182", zk_tls_config_file="/etc/tls")
    remember(tmp_path / "cluster", **asdict(known))
    must_be("record.json", (tmp_path / "cluster" / "record.json").read_bytes())
    (tmp_path / "cluster" / "record.json").write_bytes((GOLDEN / "record.json").read_bytes())
    assert recall(tmp_path / "cluster") == known


def test_usage_snapshots(tmp_path: Path) -> None:
    """Two readings of one cluster: the second line of each bucket covers the time since the first."""
    readings = [
        (
            QuotaBucket(key=PRODUCER_BYTE_RATE, user=None, client_id="billing"),
            BucketUse(broker="3", used=98_700.5, throttle_ms=4_582.0),
        ),
        (
            QuotaBucket(key=CONTROLLER_MUTATION_RATE, user='größer "u"', client_id="a\tb"),
            BucketUse(broker="b1:7071", used=None, tokens=-2.25),
        ),
        (QuotaBucket(key=PRODUCER_BYTE_RATE, user="idle", client_id=None), BucketUse(broker="3", used=None)),
    ]
    lines = []
    for time in (BEGUN, LATER):
        path, rows = usage_files.add(tmp_path, "cluster-1", time, readings)
        assert path is not None
        assert (path.parent.name, rows) == ("date=2026-03-01", 2)
        # The compression by gzip is not a contract.
        lines.append(f"{path.name}\n".encode() + gzip.decompress(path.read_bytes()))
    must_be("usage.jsonl", b"".join(lines))


def test_a_snapshot() -> None:
    logs = FakeLogDirs()
    logs.topic("orders", [[1, 2], [2, 3]])
    logs.write(TopicPartition("orders", 0), 10, 1000)
    described = logs.detailed(logs.describe(logs.brokers(), None))
    must_be("snapshot.jsonl", "".join(f"{line}\n" for line in snapshot.lines("cluster-1", BEGUN, described)).encode())
    found = snapshot.log_dirs((GOLDEN / "snapshot.jsonl").read_text().splitlines(), "the golden")
    assert [one for one in found if one.replicas] == [one for one in described if one.replicas]
