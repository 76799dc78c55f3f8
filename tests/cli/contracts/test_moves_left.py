"""Contracts of `reassign-partitions` when work is left over: the cluster, a broker or a log dir refuses."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from kquota.errors import Refused
from kquota.reassign.log_dirs import ReplicaLogDirs
from kquota.settings.resource import Setting
from kquota.stores.record import runs
from kquota.stores.state.runs import RunFiles
from kquota.terms import FOLLOWER_REPLICAS, BrokerId, ReplicaId, TopicPartition
from tests.cli.contracts.in_memory import CLUSTER_ID, InMemory
from tests.cli.contracts.sessions import BROKER, ELSEWHERE, ONE, START, THREE, TWO, plan, reassign
from tests.cli.contracts.transcript import Transcript
from tests.reassign.dirs_fake import MemoryDirs

pytestmark = pytest.mark.unit


def test_the_work_that_a_move_leaves_pending(
    house: InMemory, session: Transcript, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = plan(tmp_path, ELSEWHERE)
    with monkeypatch.context() as patch:
        patch.setattr(house.cluster, "submit", interrupted)
        session.note("Ctrl-C comes before the moves are submitted")
        reassign(session, file, "--execute --throttle 5MB/s --force", ["text"])
    for form in ("text", "json"):
        session.kquota(f"move status {BROKER} --output {form}")
    reassign(session, file, "--verify")
    session.kquota(f"move resume {BROKER} --output json")
    for name in ELSEWHERE:
        house.cluster.finish(TopicPartition(*name))
    house.cluster.alive.discard(THREE)
    session.note("the move has ended, and broker 3 is dead")
    reassign(session, file, "--verify")
    house.cluster.alive.add(THREE)
    house.folder = tmp_path / "another host"
    session.note("another host, with broker 3 alive")
    reassign(session, file, "--verify")
    session.must_be("contract-move-left")


EXECUTE = f"reassign-partitions {BROKER} --execute --additional --reassignment-json-file {{}} --throttle 5MB/s"


@pytest.mark.parametrize(
    ("command", "way"),
    [
        ("reassign-partitions --execute --reassignment-json-file {}", ", or give --throttle-whole-topics to throttle "),
        ("move run {}", f", or start the move with `kquota {EXECUTE} --throttle-whole-topics`"),
        (
            "move run {1}",
            f", or start the move with `kquota {EXECUTE.format('PLAN')} --throttle-whole-topics` "
            "(replace PLAN with the file of the plan)\n",
        ),
        ("move resume", "\n"),
    ],
    ids=["--execute", "move run", "move run with a plan from a pipe", "move resume"],
)
def test_a_full_list_suggests_only_options_that_the_command_has(
    house: InMemory,
    session: Transcript,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    way: str,
) -> None:
    file = plan(tmp_path, ELSEWHERE)
    throttle = " --throttle 5MB/s --force"
    reader, writer = os.pipe()
    os.write(writer, Path(file).read_bytes())
    os.close(writer)
    if command == "move resume":
        with monkeypatch.context() as patch:
            patch.setattr(house.cluster, "submit", interrupted)
            reassign(session, file, f"--execute{throttle}", ["text"])
        throttle = ""
    full = Setting.of_topic("orders", FOLLOWER_REPLICAS)
    house.cluster.configs[full] = ",".join(f"{n}:900" for n in range(1_000, 4_650))
    refused = session.kquota(f"{command.format(file, f'/dev/fd/{reader}')}{throttle} {BROKER}")
    os.close(reader)
    assert refused.code == 1
    assert refused.err.rpartition("kquota: ")[2].startswith(
        f"error: {full} has no room for another entry, so nothing was written. Remove entries that are no longer "
        f"needed (`kquota throttle doctor {BROKER}` finds them){way.format(file)}"
    )


def test_a_command_of_this_host_that_is_writing_is_named(
    house: InMemory, session: Transcript, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a shared record. Its run may be complete in a moment, so --quiet suggests nothing."""
    with monkeypatch.context() as patch:
        patch.setattr(house.cluster, "submit", interrupted)
        reassign(session, plan(tmp_path, ELSEWHERE), "--execute --throttle 5MB/s --force", ["text"])
    monkeypatch.setattr(runs, "runs_here", lambda _: False)  # the command that began the run has ended
    with RunFiles(house.folder, CLUSTER_ID).hold("move resume"):
        shown = session.kquota(f"move status {BROKER} --output json")
        quiet = session.kquota(f"move status {BROKER} --quiet")
    writer = json.loads(shown.out)["writer"]
    assert writer.startswith(f"another kquota (move resume, pid {os.getpid()} on ")
    assert f"kquota: {writer} is writing to this cluster\n" in shown.err
    assert "warning: run " not in quiet.err
    later = session.kquota(f"move status {BROKER} --output json")
    assert (json.loads(later.out)["writer"], "is writing" in later.err) == (None, False)
    assert "warning: run " in session.kquota(f"move status {BROKER} --quiet").err


def test_an_undo_that_is_interrupted_or_ended_has_a_next_command(
    house: InMemory, session: Transcript, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While its moves are running, it needs none."""
    reassign(session, plan(tmp_path, ELSEWHERE), "--execute --throttle 5MB/s --force", ["text"])
    for name in ELSEWHERE:
        house.cluster.finish(TopicPartition(*name))
    with monkeypatch.context() as patch:
        patch.setattr(house.cluster, "submit", interrupted)
        session.kquota(f"move abort {BROKER} --force")
    monkeypatch.setattr(runs, "runs_here", lambda _: False)  # the command that began the run has ended
    [run] = house._runs().unfinished()
    abort = f"move abort {BROKER} --run {run.id}"
    needs = session.kquota(f"move status {BROKER} --quiet").err
    assert needs.startswith(f"kquota: warning: run {run.id}: being undone. If its command (")
    assert needs.endswith(f") is no longer running, `kquota {abort}` continues to undo it\n")
    assert session.kquota(f"{abort} --force").code == 8
    assert session.kquota(f"move status {BROKER} --quiet").err == ""
    for name in ELSEWHERE:
        house.cluster.finish(TopicPartition(*name))
    verify = f"reassign-partitions {BROKER} --verify --all-runs"
    assert session.kquota(f"move status {BROKER} --quiet").err == (
        f"kquota: warning: run {run.id}: the move is undone, but its throttle is still set. `kquota {verify}` "
        "restores it\n"
    )
    assert (session.kquota(verify).code, house.cluster.configs) == (0, {})


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


class OfflineDirs(MemoryDirs):
    """Brokers that each refuse every move."""

    def alter(self, moves: Mapping[ReplicaId, str]) -> Mapping[ReplicaId, Refused]:
        return dict.fromkeys(moves, Refused("the disk is offline"))


def test_log_dir_moves_that_are_refused(house: InMemory, session: Transcript, tmp_path: Path) -> None:
    paths: dict[BrokerId, dict[str, str | None]] = {broker: {"/a": None, "/b": None} for broker in (ONE, TWO, THREE)}
    dirs = MemoryDirs(log_dirs=paths)
    for name, now in house.cluster.partitions.items():
        for broker in now.replicas:
            dirs.create((name, broker))
    house.dirs = dirs
    wanted = {name: ["/b", "/b"] for name in START}
    file = plan(tmp_path, START, wanted)
    dirs.deaf = {TWO}
    session.note("broker 2 does not answer")
    reassign(session, file, "--execute --force --timeout 2000", ["json", "text"])
    dirs.deaf = set()
    dirs.places[TopicPartition("orders", 1), TWO] = ReplicaLogDirs(current="/b", future="/a", lag=5)
    del dirs.places[TopicPartition("orders", 1), ONE]
    dirs.dead = {THREE}
    session.note("a replica goes to another log dir, one is in none, and broker 3 does not answer")
    reassign(session, file, "--verify")
    house.dirs = OfflineDirs(log_dirs=paths, places=dirs.places)
    house.folder = tmp_path / "another host"
    session.note("every log dir is offline")
    reassign(session, file, "--execute --force", ["json", "text"])
    reassign(session, file, "--cancel", ["json", "text"])
    session.must_be("contract-move-log-dirs-left")
