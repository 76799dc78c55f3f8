"""`move plan` on real brokers with several log dirs: a balance that is executed, and cordoned log dirs (KIP-1066)."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kquota.sandbox import cluster
from kquota.sandbox.cluster import Sandbox
from kquota.settings.resource import Setting
from kquota.sizes.replica import LogDir
from kquota.stores.admin.connection import Wire
from kquota.stores.admin.log_dirs import WireLogDirs
from kquota.terms import LOG_DIR_RATE, BrokerId
from tests.cli.run import Ran, kquota
from tests.stores.moves_stage import OtherHand
from tests.waiting import until

pytestmark = pytest.mark.kafka

ONE, THREE = BrokerId(1), BrokerId(3)
RATE = 5_000_000
CORDONED = "cordoned.log.dirs"


@pytest.fixture(scope="module")
def jbod(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """One broker with three log dirs."""
    folder = tmp_path_factory.mktemp("jbod")
    dirs = {"log.dirs": ",".join(str(folder / name) for name in "abc")}
    name = f"jbod-{os.getpid()}"
    yield cluster.up(name=name, brokers=1, properties=dirs, owner_pid=os.getpid())
    cluster.down(name)


def described(servers: Sandbox, broker: BrokerId, topic: str) -> list[LogDir]:
    with Wire(servers.bootstrap, {}) as wire:
        return WireLogDirs(wire).describe([broker], [topic])


def held(servers: Sandbox, topic: str) -> dict[str, int]:
    """The bytes of the topic in each log dir of broker 1."""
    return {d.path: sum(replica.size for replica in d.replicas) for d in described(servers, ONE, topic)}


def planned(servers: Sandbox, *words: str) -> tuple[Ran, Mapping[str, Any]]:
    ran = kquota("move", "plan", "--bootstrap-server", servers.bootstrap, *words, "--output", "json")
    assert ran.code == 0, ran.err
    return ran, json.loads(ran.out)


def test_a_full_log_dir_is_relieved_in_the_expected_time(jbod: Sandbox, tmp_path: Path) -> None:
    """One log dir has 12 replicas of 6 MB. The plan brings all three into the band, and restores the broker's rate."""
    hand = OtherHand(jbod)
    topic = hand.topic(dict.fromkeys(range(36), (1,)), size=10_000)
    full = described(jbod, ONE, topic)[0]
    hand.fill(topic, [replica.partition.partition for replica in full.replicas], 6_000_000)
    assert sum(held(jbod, topic).values()) > 70_000_000
    words = ("--balance-log-dirs", "1", "--topics", topic, "--replica-alter-log-dirs-throttle", f"{RATE}B/s")
    ran, found = planned(jbod, *words)
    assert {move["source"] for move in found["moves"]} == {full.path}
    assert found["bytes"] >= found["least"]["bytes"] > 40_000_000
    expected = found["time"]["expected_seconds_without_writes"]
    assert found["time"]["least_seconds"] < expected
    assert "expected time: broker 1:" in ran.err

    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps(found["plan"]))
    at = ("--bootstrap-server", jbod.bootstrap, "--state-dir", str(tmp_path / "state"))
    move = ("reassign-partitions", *at, "--reassignment-json-file", str(plan))
    begin = time.monotonic()
    started = kquota(*move, "--execute", "--replica-alter-log-dirs-throttle", str(RATE))
    assert started.code == 0, started.err
    wanted = {log_dir["log_dir"]: log_dir["after"]["bytes"] for log_dir in found["log_dirs"]}
    until(lambda: held(jbod, topic) == wanted and not _future(jbod, topic), "every log dir has its bytes")
    took = time.monotonic() - begin
    # The throttle decides the lower bound. A busy machine adds to the time.
    assert 0.7 * expected < took < 5 * expected, f"expected {expected:.1f} s, took {took:.1f} s"
    print(f"expected {expected:.1f} s, took {took:.1f} s")

    until(lambda: kquota(*move, "--verify").code == 0, "the move is done")
    until(lambda: hand.value(Setting.of_broker(ONE, LOG_DIR_RATE)) is None, "the rate is removed")
    band = found["band"]
    assert all(band["low"] <= size <= band["high"] for size in held(jbod, topic).values())
    again, nothing = planned(jbod, *words)
    assert nothing["plan"] is None
    assert "nothing to do" in again.err
    hand.close()


def _future(servers: Sandbox, topic: str) -> bool:
    return any(replica.future for log_dir in described(servers, ONE, topic) for replica in log_dir.replicas)


def test_a_cordoned_log_dir_takes_no_part_in_a_balance(jbod: Sandbox) -> None:
    hand = OtherHand(jbod)
    topic = hand.topic(dict.fromkeys(range(12), (1,)), size=10_000)
    first, _, last = described(jbod, ONE, topic)
    hand.fill(topic, [replica.partition.partition for replica in first.replicas], 1_000_000)
    hand.write(Setting.of_broker(ONE, CORDONED), last.path)
    until(lambda: [d.cordoned for d in described(jbod, ONE, topic)] == [False, False, True], "the log dir is cordoned")
    ran, found = planned(jbod, "--balance-log-dirs", "1", "--topics", topic)
    assert found["cordoned"] == [{"broker": 1, "log_dirs": [last.path], "whole": False}]
    assert found["moves"]
    assert last.path not in {path for move in found["moves"] for path in (move["source"], move["destination"])}
    assert f"1 log dir is cordoned ({last.path})" in ran.err
    assert "these copies have no throttle or their throttle is unknown" in ran.err
    hand.write(Setting.of_broker(ONE, CORDONED), None)
    hand.close()


def test_a_broker_with_all_log_dirs_cordoned_gets_no_replica(kafka_431: Sandbox, tmp_path: Path) -> None:
    """Also with sizes from a stored snapshot, which does not contain cordons."""
    hand = OtherHand(kafka_431)
    topic = hand.topic({0: (2,), 1: (2,), 2: (2,)}, size=20_000)
    cordon = Setting.of_broker(THREE, CORDONED)
    dirs = sorted(str(path) for path in kafka_431.broker(THREE).log_dirs)
    hand.write(cordon, ",".join(dirs))
    try:
        until(lambda: all(d.cordoned for d in described(kafka_431, THREE, topic)), "broker 3 is cordoned")
        ran, found = planned(kafka_431, "--drain", "2", "--topics", topic)
        assert {tuple(move["after"]) for move in found["moves"]} == {(1,)}
        assert found["cordoned"] == [{"broker": 3, "log_dirs": dirs, "whole": True}]
        assert "so `move plan` places no replica there" in ran.err

        history = str(tmp_path / "history")
        assert kquota("log-dirs", "--bootstrap-server", kafka_431.bootstrap, "--snapshot", history).code == 0
        _, stored = planned(kafka_431, "--drain", "2", "--topics", topic, "--history", history)
        assert stored["plan"] == found["plan"]

        refused = kquota("move", "plan", "--bootstrap-server", kafka_431.bootstrap, "--add", "3")
        assert (refused.code, refused.out) == (1, "")
        assert "--add 3: each log dir is cordoned or offline" in refused.err
    finally:
        hand.write(cordon, None)
        hand.close()
