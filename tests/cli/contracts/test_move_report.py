"""Contracts of `move report`: the list of runs, the report of one, its page, and records that cannot be read."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from kquota.measure import ByteRate
from kquota.pace.past_moves import KeptEstimate
from kquota.reassign.course import Course
from kquota.reassign.plan import plan_hash, read
from kquota.stores.state.past_moves import PastMovesFile
from tests.cli.contracts.in_memory import CLUSTER_ID, InMemory
from tests.cli.contracts.sessions import BROKER, plan, reassign
from tests.cli.contracts.transcript import Transcript
from tests.cli.run import kquota_here
from tests.reassign.fake import Ticks
from tests.reassign.records import alone
from tests.stores.record.hosts import RUN
from tests.watch.fake import CopyingCluster
from tests.watch.stage import MB, brokers, name

pytestmark = pytest.mark.unit


@pytest.fixture
def copying(house: InMemory) -> CopyingCluster:
    """Two partitions on brokers 1 and 2, and a cluster that copies while commands wait."""
    cluster = CopyingCluster(alive=set(brokers(1, 2, 3)))
    house.logs.topic("orders", [[1, 2], [1, 2]])
    for number in range(2):
        cluster.partition(name(number), (1, 2), 40 * MB)
        house.logs.write(name(number), 40, MB)
    house.cluster = cluster
    house.clock = Ticks(cluster.pass_seconds)
    return cluster


def drain(folder: Path) -> str:
    return plan(folder, {("orders", 0): [1, 3], ("orders", 1): [1, 3]})


def estimated(house: InMemory, file: str) -> None:
    """An estimate of this plan has promised 22 s."""
    kept = KeptEstimate(
        plan=plan_hash(read(Path(file))), throttle=ByteRate(4 * MB), expected=22.0, at=house.clock.now()
    )
    PastMovesFile(house.folder, CLUSTER_ID).keep_estimate(kept)


def report(run: str = "", more: str = "") -> dict[str, object]:
    ran = kquota_here(*f"move report {run} {BROKER} --output json {more}".split())
    assert ran.code == 0, ran.err
    found: dict[str, object] = json.loads(ran.out)
    return found


def newest() -> str:
    runs = report()["runs"]
    assert isinstance(runs, list)
    return str(runs[0]["run"])


def test_a_run_from_start_to_end(house: InMemory, copying: CopyingCluster, session: Transcript, tmp_path: Path) -> None:
    session.kquota(f"move report {BROKER}")
    file = drain(tmp_path)
    estimated(house, file)
    session.kquota(f"move run {file} {BROKER} --throttle 4MB/s --reason CHG-7")
    for form in ("text", "json", "tsv"):
        session.kquota(f"move report {BROKER} --output {form}")
        session.kquota(f"move report {newest()} {BROKER} --output {form}")
    session.kquota(f"move report nobody {BROKER}")
    session.kquota(f"move report {BROKER} --report {tmp_path}/page.html")
    session.must_be("contract-move-report")


def test_each_change_of_the_throttle_and_its_reason(
    house: InMemory, copying: CopyingCluster, session: Transcript, tmp_path: Path
) -> None:
    file = drain(tmp_path)
    reassign(session, file, "--execute --throttle 2MB/s --force --reason start", ["text"])
    house.clock.sleep(10)
    run = newest()
    session.kquota(f"throttle set {BROKER} --run {run} --throttle 8MB/s --force --reason night")
    house.clock.sleep(5)
    reassign(session, file, "--execute --additional --throttle 4MB/s --force --reason morning", ["text"])
    session.kquota(f"move report {run} {BROKER}")
    session.kquota(f"move abort --run {run} {BROKER} --yes")
    house.clock.sleep(120)
    session.kquota(f"move abort --run {run} {BROKER} --yes")
    session.kquota(f"move report {run} {BROKER}")
    session.must_be("contract-move-report-changes")


def test_the_page_names_the_broker_and_the_role_of_each_changed_rate(
    copying: CopyingCluster, session: Transcript, tmp_path: Path
) -> None:
    reassign(session, drain(tmp_path), "--execute --throttle 2MB/s --force", ["text"])
    session.kquota(f"move adjust 4MB/s {BROKER} --broker 3 --follower --force")
    session.kquota(f"move adjust 5MB/s {BROKER} --force")
    page = tmp_path / "page.html"
    assert session.kquota(f"move report {newest()} {BROKER} --report {page}").code == 0
    rates = page.read_text().partition("<h2>Throttle changes</h2>")[2]
    assert '<td class="name">broker 3 follower.replication.throttled.rate</td>' in rates
    assert "leader.replication.throttled.rate" in rates


def test_execute_and_wait_records_what_it_reads(copying: CopyingCluster, session: Transcript, tmp_path: Path) -> None:
    reassign(session, drain(tmp_path), "--execute --wait --throttle 4MB/s --force", ["text"])
    found = report(newest())
    assert found["outcome"] == "done"
    readings = found["readings"]
    assert isinstance(readings, list)
    assert readings[-1]["bytes_copied"] == 80 * MB
    assert readings[-1]["bytes_left"] == 0


def test_a_run_that_no_command_watched_says_so(
    house: InMemory, copying: CopyingCluster, session: Transcript, tmp_path: Path
) -> None:
    file = drain(tmp_path)
    estimated(house, file)
    reassign(session, file, "--execute --throttle 4MB/s --force", ["text"])
    house.clock.sleep(600)
    reassign(session, file, "--verify", ["text"])
    said = session.kquota(f"move report {newest()} {BROKER} --report {tmp_path}/page.html").out
    assert "The throughput is not recorded" in said
    assert "at most 10 min 00 s, because no command saw the end of the copies" in said
    assert "No command saw the end of the copies." in Path(tmp_path, "page.html").read_text()
    assert report(newest())["error"] is None


def test_an_unseen_end_is_an_upper_bound_also_without_an_expected_time(
    house: InMemory, copying: CopyingCluster, session: Transcript, tmp_path: Path
) -> None:
    file = drain(tmp_path)
    reassign(session, file, "--execute --unthrottled", ["text"])
    house.clock.sleep(600)
    reassign(session, file, "--verify", ["text"])
    said = session.kquota(f"move report {newest()} {BROKER} --report {tmp_path}/page.html").out
    assert "expected:   not recorded\n" in said
    assert "at most 10 min 00 s, because no command saw the end of the copies" in said
    assert "<p>No command saw the end of the copies.</p>" in Path(tmp_path, "page.html").read_text()


def test_an_older_record_says_what_it_lacks(house: InMemory, session: Transcript) -> None:
    older = alone(house.folder, CLUSTER_ID)
    older.begin(RUN)
    older.update(replace(RUN, finished=RUN.begun + timedelta(seconds=90)))
    for form in ("text", "json"):
        session.kquota(f"move report {BROKER} --output {form}")
        session.kquota(f"move report {RUN.id} {BROKER} --output {form}")
    session.must_be("contract-move-report-older")


def test_an_expected_time_of_0_is_not_an_unknown_time(house: InMemory, session: Transcript, tmp_path: Path) -> None:
    record = alone(house.folder, CLUSTER_ID)
    record.begin(RUN)
    record.update(replace(RUN, finished=RUN.begun + timedelta(seconds=8), course=Course(expected=0.0)))
    assert "  +8 s" in session.kquota(f"move report {BROKER}").out
    said = session.kquota(f"move report {RUN.id} {BROKER} --report {tmp_path}/page.html").out
    assert "expected:   0 s\n" in said
    assert "actual:     8 s (+8 s)\n" in said
    page = Path(tmp_path, "page.html").read_text()
    assert "Difference: +8 s.</p>" in page
    assert "No command saw" not in page
    assert report(RUN.id)["error"] is None


def test_one_damaged_journal_hides_no_other_run(
    house: InMemory, copying: CopyingCluster, session: Transcript, tmp_path: Path
) -> None:
    session.kquota(f"move run {drain(tmp_path)} {BROKER} --throttle 4MB/s --force")
    good = newest()
    (house.folder / CLUSTER_ID / "20260101T000000Z-000000000000.journal").write_bytes(b"00000000 {}\nmore\n")
    listed = session.kquota(f"move report {BROKER}")
    assert (good in listed.out, listed.code) == (True, 1)
    assert "20260101T000000Z-000000000000 cannot be read" in listed.err
    assert session.kquota(f"move report {good} {BROKER}").code == 0
    named = session.kquota(f"move report 20260101T000000Z-000000000000 {BROKER}")
    assert named.code == 1
    assert all(f"show the throttles with `kquota throttle show {BROKER}" in ran.err for ran in (listed, named))


def test_the_estimate_gives_the_drift_of_a_watch(
    house: InMemory, copying: CopyingCluster, session: Transcript, tmp_path: Path
) -> None:
    """The bytes take 20 s under this throttle, and an estimate promised 10 s: the move is about 10 s late."""
    file = drain(tmp_path)
    at = house.clock.now() - timedelta(seconds=60)
    kept = KeptEstimate(plan=plan_hash(read(Path(file))), throttle=ByteRate(4 * MB), expected=10.0, at=at)
    PastMovesFile(house.folder, CLUSTER_ID).keep_estimate(kept)
    reassign(session, file, "--execute --throttle 4MB/s --force", ["text"])
    lines = session.kquota(f"move watch {BROKER} --interval 8s --output json").out.splitlines()
    drifts = [move["drift_seconds"] for line in lines for move in json.loads(line)["moves"]]
    known = [drift for drift in drifts if drift is not None]
    assert known
    assert all(5 <= drift <= 15 for drift in known)
