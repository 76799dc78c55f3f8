"""Contracts of `move adjust`: one rate, a deadline, and rates by the time of day. Copies proceed while it waits."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import NoReturn, Self

import pytest

from kquota.cli.pacing import protection
from kquota.errors import Refused, Unreachable
from kquota.mutation.port import Failure
from kquota.mutation.topic import Deletion
from kquota.pace.lag import GroupOffsets
from kquota.probe import latency
from kquota.probe import run as probe
from kquota.settings.resource import Setting
from kquota.terms import FOLLOWER_RATE, BrokerId
from tests.cli.contracts.in_memory import InMemory
from tests.cli.contracts.sessions import BROKER, plan, reassign
from tests.cli.contracts.transcript import Transcript
from tests.probe.fake import CreatedConfigs
from tests.reassign.fake import Ticks
from tests.watch.fake import CopyingCluster
from tests.watch.stage import MB, brokers, name

pytestmark = pytest.mark.unit
SIZE = 300 * MB


@pytest.fixture
def copying(house: InMemory, monkeypatch: pytest.MonkeyPatch) -> CopyingCluster:
    """Two partitions on brokers 1 and 2, and a cluster that copies while commands wait."""
    monkeypatch.setattr(probe, "_ON_ITS_WAY", 0.0)
    monkeypatch.setattr(latency, "PERIOD_SECONDS", 0.5)
    cluster = CopyingCluster(alive=set(brokers(1, 2, 3)))
    for number in range(2):
        cluster.partition(name(number), (1, 2), SIZE)
    house.cluster = cluster
    house.clock = Ticks(cluster.pass_seconds)
    return cluster


def started(session: Transcript, folder: Path, rate: str) -> str:
    file = plan(folder, {("orders", 0): [1, 3], ("orders", 1): [1, 3]})
    reassign(session, file, f"--execute --throttle {rate} --force", ["text"])
    return file


def test_a_rate(copying: CopyingCluster, session: Transcript, tmp_path: Path) -> None:
    session.kquota(f"move adjust 5MB/s {BROKER}")
    file = started(session, tmp_path, "4MB/s")
    session.kquota(f"move adjust 6MB/s {BROKER} --reason night")
    session.kquota(f"move adjust 7MB/s {BROKER} --reassignment-json-file {file} --output json")
    for words in (
        "",
        "5MB/s --deadline 2h",
        "--between 22:00-06:00=1MB/s,else=1MB/s --max-rate 5MB/s",
        "5MB/s --run nobody",
        f"5MB/s --run nobody --reassignment-json-file {file}",
        "--deadline 2020-01-01T00:00:00Z",
        "--deadline 2-hours",
        "--deadline 1h --min-rate 9MB/s --max-rate 5MB/s",
        "--deadline 1h --interval 0.5s",
        "--between night=1MB/s",
        "--protect 5MB/s",
        "--protect --min-rate 7MB/s",
        "--protect --max-rate 1B/s",
        "--protect --min-rate 9MB/s --max-rate 5MB/s",
        "--protect --zookeeper z1:2181",
        "5MB/s --broker 9",
        "5MB/s --broker 3 --leader --follower --even-finish",
        "--pause --broker 3",
    ):
        session.kquota(f"move adjust {words} {'' if '--zookeeper' in words else BROKER}")
    session.must_be("contract-adjust")


@pytest.mark.parametrize("rate", ["1MB/s", "40MB/s"], ids=["too slow", "too fast"])
def test_a_deadline(house: InMemory, copying: CopyingCluster, session: Transcript, tmp_path: Path, rate: str) -> None:
    file = started(session, tmp_path, rate)
    began = house.clock.monotonic()
    ran = session.kquota(f"move adjust {BROKER} --deadline 4m --max-rate 20MB/s --output json")
    assert ran.code == 8, "the throttle is still set"
    assert house.clock.monotonic() - began == pytest.approx(240, rel=0.1)
    reassign(session, file, "--verify", ["text"])
    assert copying.configs == {}


def test_a_pause(house: InMemory, copying: CopyingCluster, session: Transcript, tmp_path: Path) -> None:
    file = started(session, tmp_path, "4MB/s")
    session.kquota(f"move adjust --continue {BROKER}")
    session.kquota(f"move adjust --pause 5MB/s {BROKER}")
    session.kquota(f"move adjust --pause {BROKER} --reason peak")
    house.clock.sleep(3600)
    session.kquota(f"move watch {BROKER} --once")
    shown = session.kquota(f"move status {BROKER}").out
    assert "  paused. Continue the run: `kquota move adjust " in shown
    assert "at least" not in shown, "the time left does not follow from the rate of a pause"
    (run,) = json.loads(session.kquota(f"move status {BROKER} --output json").out)["runs"]
    assert (run["paused"], run["least_seconds_left"], run["throttle"]) == (True, None, 4 * MB)
    session.kquota(f"move adjust --deadline 1h {BROKER}")
    reassign(session, file, "--verify", ["text"])
    session.kquota(f"move resume {BROKER}")
    assert copying.sizes[name(0), BrokerId(3)] < MB, "also after it is resumed"
    session.kquota(f"move adjust --continue {BROKER} --output json")
    house.clock.sleep(3600)
    reassign(session, file, "--verify", ["text"])
    assert copying.configs == {}
    session.must_be("contract-pause")


def test_rates_of_brokers(house: InMemory, copying: CopyingCluster, session: Transcript, tmp_path: Path) -> None:
    """Each rate is kept until a rate for all brokers, also by a pause and by `move resume`, and the end restores it."""
    copying.configs[Setting.of_broker(BrokerId(3), FOLLOWER_RATE)] = "9"
    file = started(session, tmp_path, "4MB/s")
    session.kquota(f"move adjust 5MB/s {BROKER} --broker 3 --reason night")
    session.kquota(f"move adjust 6MB/s {BROKER} --broker 1,2 --leader --output json")
    session.kquota(f"move status {BROKER}")
    session.kquota(f"move status {BROKER} --output json")
    session.kquota(f"move adjust --pause {BROKER}")
    session.kquota(f"move adjust 7MB/s {BROKER} --follower")
    session.kquota(f"move adjust --continue {BROKER}")
    session.kquota(f"move resume {BROKER}")
    assert copying.configs[Setting.of_broker(BrokerId(3), FOLLOWER_RATE)] == "5000000"
    (run,) = json.loads(session.kquota(f"move report {BROKER} --output json").out)["runs"]
    session.kquota(f"move report {run['run']} {BROKER}")
    session.kquota(f"move adjust 8MB/s {BROKER}")
    assert {value for setting, value in copying.configs.items() if not setting.is_list} == {"8000000"}
    house.clock.sleep(3600)
    reassign(session, file, "--verify", ["text"])
    assert copying.configs == {Setting.of_broker(BrokerId(3), FOLLOWER_RATE): "9"}
    session.must_be("contract-broker-rates")


def test_destinations_finish_together(
    house: InMemory, copying: CopyingCluster, session: Transcript, tmp_path: Path
) -> None:
    copying.alive.add(BrokerId(4))
    copying.partition(name(2), (1, 2), SIZE)
    reassign(
        session,
        plan(tmp_path, {("orders", 0): [1, 3], ("orders", 1): [1, 3], ("orders", 2): [1, 4]}),
        "--execute --throttle 4MB/s --force",
        ["text"],
    )
    ran = session.kquota(f"move adjust 20MB/s {BROKER} --even-finish")
    assert ran.code == 0
    rates = {broker: copying.configs[Setting.of_broker(BrokerId(broker), FOLLOWER_RATE)] for broker in (3, 4)}
    assert rates[3] == "20000000"
    assert int(rates[4]) == pytest.approx(10 * MB, rel=0.05)
    session.must_be("contract-even-finish")


def test_a_paused_move_can_be_undone(copying: CopyingCluster, session: Transcript, tmp_path: Path) -> None:
    """The way back may need copies, so it has the throttle from before the pause."""
    started(session, tmp_path, "4MB/s")
    session.kquota(f"move adjust --pause {BROKER}")
    assert session.kquota(f"move abort {BROKER}").code in (0, 8)
    assert "1" not in copying.configs.values()


def test_the_time_of_day(house: InMemory, copying: CopyingCluster, session: Transcript, tmp_path: Path) -> None:
    started(session, tmp_path, "1MB/s")
    ran = session.kquota(f"move adjust {BROKER} --between 00:00-12:00=5MB/s,12:00-24:00=5MB/s,else=1MB/s")
    assert "the throttle is now 5 MB/s, was 1 MB/s" in ran.err


@pytest.mark.parametrize(("back", "attempt"), [(40, 90), (100, 210)])
def test_a_broker_that_missed_a_change_of_the_throttle_gets_it_when_it_is_back(
    house: InMemory, copying: CopyingCluster, session: Transcript, tmp_path: Path, back: float, attempt: float
) -> None:
    """A dead broker keeps its rate. It must not use this rate until the next change, which may be hours away.

    kquota tries again after 30 s, 60 s and 120 s, because each attempt is recorded.
    """
    started(session, tmp_path, "1MB/s")
    missed, reached = BrokerId(2), list[float]()

    def wait(seconds: float) -> None:
        if copying.configs[Setting.of_broker(missed, FOLLOWER_RATE)] == "2000000":
            reached.append(house.clock.monotonic())
        copying.pass_seconds(seconds)
        if house.clock.monotonic() > back:
            copying.alive.add(missed)

    copying.alive.discard(missed)
    house.clock = Ticks(wait)
    ran = session.kquota(f"move adjust {BROKER} --between 00:00-12:00=2MB/s,12:00-24:00=2MB/s,else=1MB/s")
    rates = {setting.name: value for setting, value in copying.configs.items() if not setting.is_list}
    assert rates == dict.fromkeys("123", "2000000")
    assert "broker 2 did not answer and may still use another throttle. kquota tries again after 30 s, and" in ran.err
    assert ran.err.count("every broker of the run now has its throttle") == 1
    assert attempt <= reached[0] < attempt + 30


ROOM = 12 * MB
"""Above this throttle, brokers acknowledge writes late."""


def test_protection(house: InMemory, copying: CopyingCluster, session: Transcript, tmp_path: Path) -> None:
    """The throttle doubles until writes become slow, is halved then, and rises by half of the way each time. The record
    has each reason.
    """
    house.configs = CreatedConfigs(house.topics)
    rate = Setting.of_broker(BrokerId(3), FOLLOWER_RATE)
    house.latency = lambda broker: 0.04 if broker == 3 and int(copying.configs.get(rate, "0")) > ROOM else 0.004
    copying.sizes = dict.fromkeys(copying.sizes, 1_000 * MB)
    started(session, tmp_path, "30MB/s")
    ran = session.kquota(f"move adjust {BROKER} --protect --min-rate 2MB/s --max-rate 22MB/s --output json")
    assert ran.code == 8, "the throttle is still set"
    assert house.topics.topics(None) == (), "the scratch topic is removed"
    assert "under the lowest throttle, writes take up to 4.0 ms" in ran.err
    (shown,) = json.loads(session.kquota(f"move report {BROKER} --output json").out)["runs"]
    changes = json.loads(session.kquota(f"move report {shown['run']} {BROKER} --output json").out)["changes"]
    assert [change["to"] // MB for change in changes[:11]] == [2, 4, 8, 16, 8, 11, 12, 8, 10, 11, 11]
    assert [change["reason"] for change in (changes[0], changes[1], changes[7])] == [
        "--protect: kquota is measuring the usual latency under the lowest throttle",
        "--protect: writes to broker 3 take 4.0 ms (limit 9.0 ms)",
        "--protect: writes to broker 3 take 40.0 ms (limit 9.0 ms)",
    ]
    assert max(change["to"] for change in changes[8:]) <= ROOM


def test_protection_of_partitions_that_lose_in_sync_replicas(
    house: InMemory, copying: CopyingCluster, session: Transcript, tmp_path: Path
) -> None:
    """The throttle is halved once for each loss."""
    house.configs = CreatedConfigs(house.topics)
    copying.sizes = dict.fromkeys(copying.sizes, 500 * MB)
    started(session, tmp_path, "20MB/s")
    lost, taken = name(0), Setting.of_broker(BrokerId(3), FOLLOWER_RATE)

    def answers(_: BrokerId) -> float:
        if copying.configs.get(taken) == "8000000" and 2 in (now := copying.partitions[lost]).isr:
            copying.partitions[lost] = replace(now, isr=tuple(b for b in now.isr if b != 2))
        return 0.004

    house.latency = answers
    ran = session.kquota(f"move adjust {BROKER} --protect --min-rate 2MB/s --max-rate 22MB/s")
    assert "the throttle is now 4 MB/s, was 8 MB/s: 1 partition lost an in-sync replica" in ran.err


class AtOnce:
    """A pool that runs each function at once, so that the time of the test passes only between readings."""

    def __init__(self, _: int) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def submit(self, work: Callable[[], object]) -> Future[object]:
        done: Future[object] = Future()
        done.set_result(work())
        return done


def test_protection_of_consumer_groups(
    house: InMemory,
    copying: CopyingCluster,
    session: Transcript,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The group reads half of its records, whatever the throttle, so its lag is a reason only at first."""
    monkeypatch.setattr(protection, "ThreadPoolExecutor", AtOnce)
    house.configs = CreatedConfigs(house.topics)
    copying.sizes = dict.fromkeys(copying.sizes, 15_000 * MB)
    started(session, tmp_path, "20MB/s")
    house.offsets = lambda at: {"billing": {name(0): GroupOffsets(int(500 * at), int(1_000 * at))}}
    ran = session.kquota(f"move adjust {BROKER} --protect --min-rate 5MB/s --max-rate 20MB/s")
    lag = "the lag of consumer group 'billing' grew by at least "
    assert re.search(rf"the throttle is now [\d.]+ MB/s, was [\d.]+ MB/s: {lag}[\d,]+ records in \d+ s", ran.err), (
        ran.err
    )
    assert re.search(rf"{lag}[\d,]+ records in \d+ s even under the lowest throttle", ran.err), ran.err


def test_each_reason_why_consumer_groups_are_unknown_is_printed_once(
    house: InMemory,
    copying: CopyingCluster,
    session: Transcript,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(protection, "ThreadPoolExecutor", AtOnce)
    house.configs = CreatedConfigs(house.topics)
    copying.sizes = dict.fromkeys(copying.sizes, 2_000 * MB)
    started(session, tmp_path, "20MB/s")
    errors = [Unreachable("broker 1 does not answer"), Refused("this user may not see consumer groups")]
    readings: list[float] = []

    def unread(at: float) -> NoReturn:
        readings.append(at)
        raise errors[len(readings) > 2]

    house.offsets = unread
    ran = session.kquota(f"move adjust {BROKER} --protect --min-rate 5MB/s --max-rate 20MB/s")
    assert len(readings) > 4
    assert [ran.err.count(f"the lag of consumer groups is unknown: {why}") for why in errors] == [1, 1]


def test_protection_that_is_interrupted(
    house: InMemory, copying: CopyingCluster, session: Transcript, tmp_path: Path
) -> None:
    """The last throttle stays, and the scratch topic is removed."""
    house.configs = CreatedConfigs(house.topics)
    started(session, tmp_path, "20MB/s")
    began = house.clock.monotonic()

    def answers(_: BrokerId) -> float:
        if house.clock.monotonic() - began > 45:
            raise KeyboardInterrupt
        return 0.004

    house.latency = answers
    session.kquota(f"move adjust {BROKER} --protect")
    assert house.topics.topics(None) == ()
    assert copying.configs[Setting.of_broker(BrokerId(3), FOLLOWER_RATE)] == str(4 * MB)


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("command", ["move run", "move adjust"])
def test_a_scratch_topic_that_stays_does_not_hide_the_result_of_the_move(
    house: InMemory,
    copying: CopyingCluster,
    session: Transcript,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    form: str,
) -> None:
    house.configs = CreatedConfigs(house.topics)
    wrong = house.topics._wrong
    denied = Failure(code=29, reason="TopicAuthorizationFailed (29)")
    monkeypatch.setattr(house.topics, "_wrong", lambda one: denied if isinstance(one, Deletion) else wrong(one))
    if command == "move run":
        file = plan(tmp_path, {("orders", 0): [1, 3], ("orders", 1): [1, 3]})
        ran = session.kquota(f"move run {file} {BROKER} --protect --throttle 20MB/s --output {form}")
        result = '"verdict": "done"' if form == "json" else "The throttle settings from before the run are restored"
        assert result in ran.out
    else:
        started(session, tmp_path, "20MB/s")
        ran = session.kquota(f"move adjust {BROKER} --protect --output {form}")
        assert ran.out
    (topic,) = house.topics.topics(None)
    assert ran.code == 1
    assert (
        f"error: scratch topics of --protect may remain: 1 topic not removed: {topic.name} ({denied.reason}). The "
        "name of each topic contains an end time. After that time, run "
        "`kquota quota probe --bootstrap-server b1:9092 --clean-up`"
    ) in ran.err
    assert ran.err.count("error: ") == 1


def test_without_the_right_to_create_topics_nothing_changes(
    house: InMemory, copying: CopyingCluster, session: Transcript, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started(session, tmp_path, "20MB/s")
    before = dict(copying.configs)
    monkeypatch.setattr(house.topics, "_wrong", lambda _: Failure(code=29, reason="TopicAuthorizationFailed (29)"))
    ran = session.kquota(f"move adjust {BROKER} --protect")
    assert (ran.code, copying.configs) == (1, before)
    assert "TopicAuthorizationFailed" in ran.err
