"""Several hosts at one cluster: every host sees, continues, takes over and restores the runs of all others."""

from __future__ import annotations

import json
import os
import signal
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_END, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import NewPartitions, OffsetSpec

from kquota.reassign.run import Owner, Stamp, Taken
from kquota.settings.resource import Setting
from kquota.stores.admin.connection import Wire
from kquota.stores.record.lease import Lock
from kquota.stores.state import run_fields
from kquota.stores.state.process import holder
from kquota.terms import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS, BrokerId, TopicPartition
from tests.cli.dying import Death, Doom
from tests.cli.hosts import BROKERS, MARKER, ZOOKEEPER, Host, Team, forget, znodes
from tests.cli.run import Ran, kquota
from tests.cli.test_reassign_partitions import FAST, LASTING, SLOW, rates
from tests.stores.moves_stage import OtherHand
from tests.stores.record.hosts import RUN
from tests.stores.record.stage import handle, produce
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.kafka

TOPIC, ZNODES, NOTHING = "a topic", "znodes", "nothing"
SHARED = [("4.3.1 Admin API", TOPIC), ("3.9.1 ZooKeeper", ZNODES), ("3.9.1 ZooKeeper", TOPIC)]
"""The record that the hosts share. With a topic on 3.9.1 they alternate between both connections."""
EVERY = [*SHARED, ("4.3.1 Admin API", NOTHING)]
OPERATORS = {Setting.of_broker(BrokerId(1), LEADER_RATE): "123456789"}
"""Values that an operator set by hand and must find again."""
SUBMITTING = Doom(n=1, death=Death.BEFORE, submitting=True)
PAUSED = Doom(n=1, death=Death.BEFORE, signal=signal.SIGSTOP, submitting=True)


@pytest.fixture
def team(hand: OtherHand, way: str, shared: str, tmp_path: Path) -> Iterator[Team]:
    record = f"runs-{uuid.uuid4().hex[:8]}" if shared == TOPIC else None
    option = ZOOKEEPER if way.endswith("ZooKeeper") else BROKERS
    made = Team(hand=hand, folder=tmp_path, option=option, record=record, mixed=bool(record and option == ZOOKEEPER))
    if record is not None:
        ran = made.host(0).shared("share")
        assert ran.code == 0, ran.err
    yield made
    forget(hand, record)


def planned(team: Team) -> tuple[TopicPartition, str]:
    """A partition, and the plan of a long move."""
    name = TopicPartition(team.hand.topic({0: (1, 2)}, size=LASTING), 0)
    return name, team.plan({name: (1, 3)})


def moving(team: Team, host: Host, *more: str, rate: str = SLOW) -> tuple[TopicPartition, str]:
    """A move in progress that this host started."""
    name, plan = planned(team)
    must_be(0, host.act("--execute", plan, "--throttle", rate, "--force", *more))
    until(lambda: set(team.hand.replicas(name)) == {1, 2, 3}, "the partition moves")
    return name, plan


def lists(name: TopicPartition) -> dict[Setting, str]:
    leaders, followers = (Setting.of_topic(name.topic, key) for key in (LEADER_REPLICAS, FOLLOWER_REPLICAS))
    return {leaders: f"{name.partition}:1,{name.partition}:2", followers: f"{name.partition}:3"}


def must_be(code: int, ran: Ran) -> Ran:
    assert ran.code == code, ran
    return ran


def ended(team: Team, host: Host, name: TopicPartition, plan: str, *more: str) -> Ran:
    """This host lets the move finish quickly and verifies it."""
    must_be(0, host.act("--execute", plan, "--throttle", FAST, *more))
    team.hand.arrived({name: (1, 3)})
    return host.act("--verify", plan)


def operators(team: Team) -> None:
    for setting, value in OPERATORS.items():
        team.hand.write(setting, value)


@pytest.mark.parametrize(("way", "shared"), [("3.9.1 ZooKeeper", ZNODES)])
@pytest.mark.parametrize("first", [ZOOKEEPER, BROKERS])
def test_a_run_continues_over_the_other_connection(team: Team, first: str) -> None:
    """B1, without a topic: one host alternates between the two connections."""
    host, other = team.host(0).over(first), team.host(0).over(BROKERS if first == ZOOKEEPER else ZOOKEEPER)
    name, plan = moving(team, host)
    assert [run["state"] for run in other.runs()] == ["moving"]
    assert "created again after" not in must_be(8, other.act("--verify", plan)).err
    assert team.standing(name.topic) == lists(name) | rates(SLOW), "a running move keeps its throttle"
    if other.option == BROKERS:
        aborted = other.move("abort")
        assert aborted.code in (0, 8), aborted
        team.hand.arrived({name: (1, 2)})
        must_be(0, other.move("abort"))
    else:
        assert "or use --bootstrap-server" in must_be(1, other.move("abort")).err
        must_be(0, host.act("--execute", plan, "--throttle", FAST))
        team.hand.arrived({name: (1, 3)})
        must_be(0, other.act("--verify", plan))
    team.become({}, name.topic)
    for each in (host, other):
        must_be(0, each.act("--verify", plan, "--preserve-throttles") if first == BROKERS else each.move("status"))
        assert each.runs() == []


@pytest.mark.parametrize(("way", "shared"), SHARED)
def test_every_host_sees_a_run_and_any_host_can_end_it(team: Team) -> None:
    one, two, three = team.hosts()
    operators(team)
    name, plan = moving(team, one, "--reason", "drain broker 2")
    (seen,) = three.runs()
    owner = {key: seen["owner"][key] for key in ("user", "host")}
    (told,) = one.runs()
    assert owner == {key: told["owner"][key] for key in ("user", "host")} == {"user": owner["user"], "host": _here()}
    assert (seen["run"], seen["reason"], seen["state"]) == (told["run"], "drain broker 2", "moving")
    text = must_be(8, two.move("status")).out
    assert f"started by {owner['user']}@{_here()}, pid {seen['owner']['pid']} at " in text
    assert ": drain broker 2\n" in text
    assert three.holds(Setting.of_broker(BrokerId(1), LEADER_RATE)) == [seen["run"]]
    assert seen["run"] in three.throttle("show").out
    must_be(8, two.act("--verify", plan))
    three.throttle("doctor", "--fix", "--yes")
    assert team.standing(name.topic) == lists(name) | rates(SLOW), "doctor keeps the values of the run"

    must_be(0, three.act("--execute", plan, "--throttle", FAST))
    assert [run["run"] for run in one.runs()] == [seen["run"]], "it is the same run"
    team.hand.arrived({name: (1, 3)})
    must_be(0, two.act("--verify", plan))
    team.become(OPERATORS, name.topic)
    team.closed()
    for host in (one, three):
        must_be(0, host.act("--verify", plan))
        assert "no run of a move is open" in must_be(0, host.move("resume")).err
    team.become(OPERATORS, name.topic)


@pytest.mark.parametrize(("way", "shared"), SHARED)
def test_either_host_clears_a_throttle_that_two_hosts_set(team: Team) -> None:
    """B2: the second host changes the rate of the first host's run, and the first host clears all of it."""
    one, two, three = team.hosts()
    topic = team.hand.topic({0: (1, 2)}, size=10_000)
    operators(team)
    asked = ("set", "--topic", topic, "--all-brokers", "--throttle")
    for host, rate in ((one, "5MB/s"), (two, "9MB/s"), (one, "6MB/s"), (two, "8MB/s")):
        must_be(0, host.throttle(*asked, rate))
    until(lambda: team.hand.rates() == rates("8000000"), "the last rate is set")
    assert len(three.holds(Setting.of_broker(BrokerId(2), LEADER_RATE))) == 1
    must_be(0, one.throttle("clear"))
    team.become(OPERATORS, topic)
    for host in (two, three):
        assert "no open run of `throttle set` is recorded" in must_be(0, host.throttle("clear")).err
    team.closed()


@pytest.mark.parametrize(
    ("way", "shared", "way_out"), [*((*each, "abort") for each in SHARED), ("4.3.1 Admin API", TOPIC, "resume")]
)
def test_a_run_that_another_host_ended_is_not_reopened(team: Team, way_out: str) -> None:
    """B3: a host was killed before it submitted its move. When it returns, it starts nothing of the aborted run."""
    one, two, three = team.hosts()
    name, plan = planned(team)
    topic = name.topic
    must_be(-9, one.doomed(SUBMITTING, "--execute", plan, "--throttle", SLOW, "--force").end())
    assert [run["state"] for run in three.runs()] == ["not_submitted"]
    if way_out == "abort":
        must_be(0, two.move("abort"))
        target = [1, 2]
    else:
        must_be(8, two.move("resume"))
        target = [1, 3]
        must_be(0, ended(team, two, name, plan))
    team.become({}, topic)
    for verb in ("resume", "abort"):
        assert "no run of a move is open" in must_be(0, one.move(verb)).err
    must_be(0 if target == [1, 3] else 1, one.act("--verify", plan))
    assert (team.hand.replicas(name), team.standing(topic)) == (target, {})
    team.closed()


@pytest.mark.parametrize(("way", "shared"), EVERY)
def test_a_rate_that_another_host_set_during_a_move_is_reported(team: Team, shared: str) -> None:
    """B4: cron on the first host verifies the move while the second host's rate is set on all brokers."""
    one, two, _ = team.hosts()
    name, plan = moving(team, one)
    must_be(0, two.throttle("set", "--topic", name.topic, "--all-brokers", "--throttle", "30MB/s"))
    team.hand.arrived({name: (1, 3)})
    ran = one.act("--verify", plan)
    until(lambda: team.hand.rates() == rates("30000000"), "the second host's rate is set")
    if shared == NOTHING:
        must_be(8, ran)
        assert all(f"{key} on brokers 1,2,3" in ran.err for key in (LEADER_RATE, FOLLOWER_RATE)), ran.err
    else:
        (held,) = one.holds(Setting.of_broker(BrokerId(1), LEADER_RATE))
        must_be(0, ran)
        assert f"run {held}" in ran.err
    must_be(0, two.throttle("clear"))
    if shared == NOTHING:
        must_be(8, one.act("--verify", plan))
        assert team.hand.rates() == rates(SLOW)
        return
    team.become({}, name.topic)
    must_be(0, one.act("--verify", plan))
    team.closed()


@pytest.mark.parametrize(
    ("way", "shared", "order"),
    [
        *(("4.3.1 Admin API", TOPIC, order) for order in ((0, 1, 2), (2, 1, 0))),
        ("3.9.1 ZooKeeper", ZNODES, (0, 2, 1)),
        ("3.9.1 ZooKeeper", TOPIC, (1, 2, 0)),
    ],
)
def test_the_last_of_three_runs_to_end_restores_the_original_values(team: Team, order: tuple[int, ...]) -> None:
    """B5: a move of the first host, and throttles of two other hosts on the same brokers."""
    operators(team)
    name, plan = moving(team, team.host(0))
    topics = [team.hand.topic({0: (1, 2)}, size=10_000) for _ in range(2)]
    ids = []
    for number, topic in enumerate(topics, 1):
        asked = ("set", "--topic", topic, "--all-brokers", "--throttle", f"{number}MB/s")
        must_be(0, team.host(number).throttle(*asked))
        ids.append(team.host(number).holds(Setting.of_broker(BrokerId(3), LEADER_RATE))[-1])
    for number in order:
        if number == 0:
            must_be(0, ended(team, team.host(0), name, plan))
        else:
            must_be(0, team.host((number + 1) % 3).throttle("clear", "--run", ids[number - 1]))
        if number != order[-1]:
            assert len(team.hand.rates()) == 6, "the runs that are still open need a rate"
    team.become(OPERATORS, name.topic, *topics)
    team.closed()


@pytest.mark.parametrize("way", ["4.3.1 Admin API"])
@pytest.mark.parametrize(("shared", "order"), [(TOPIC, (0, 1)), (NOTHING, (0, 1)), (NOTHING, (1, 0))])
def test_two_moves_on_the_same_brokers(team: Team, shared: str, order: tuple[int, int]) -> None:
    """B5: without a record no host has the previous values, so no host reports that everything is restored."""
    hosts = team.hosts()
    moves = [moving(team, hosts[0]), moving(team, hosts[1], "--additional", rate="30000")]
    codes = [ended(team, hosts[n], *moves[n], "--additional").code for n in order]
    topics = [name.topic for name, _ in moves]
    if shared == TOPIC:
        assert codes == [0, 0]
        team.become({}, *topics)
        team.closed()
        return
    left = team.standing(*topics)
    assert codes == ([0, 8] if left else [8, 0])
    for number in order:
        again = must_be(8 if left else 0, hosts[number].act("--verify", moves[number][1]))
        assert not left or f"{LEADER_RATE} on brokers 1,2,3" in again.err


@pytest.mark.parametrize(("way", "shared"), [("4.3.1 Admin API", TOPIC)])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_hosts_that_share_their_open_runs_restore_the_original_values(team: Team, order: tuple[int, int]) -> None:
    """The second host recorded the rate of the first as the previous rate. Then both hosts shared their runs."""
    hosts = team.hosts()
    operators(team)
    topics = [team.hand.topic({0: (1, 2)}, size=10_000) for _ in order]
    for host, topic, rate in zip(hosts, topics, ("5MB/s", "8MB/s"), strict=False):
        must_be(0, host.alone().throttle("set", "--topic", topic, "--all-brokers", "--throttle", rate))
    for host in hosts:
        must_be(0, host.shared("share"))
    for number in order:
        (mine,) = [run for run in hosts[number].journals if hosts[1 - number].folder not in run.parents]
        must_be(0, hosts[number].throttle("clear", "--run", mine.stem))
    team.become(OPERATORS, *topics)
    team.closed()


@pytest.mark.parametrize(("way", "shared"), SHARED)
def test_doctor_leaves_throttles_of_other_hosts_unchanged(team: Team) -> None:
    """B6: a throttle without a move, and the rates of a finished move that was not verified."""
    one, two, three = team.hosts()
    operators(team)
    topic = team.hand.topic({0: (1, 2)}, size=10_000)
    must_be(0, two.throttle("set", "--topic", topic, "--all-brokers", "--throttle", "5MB/s"))
    name, plan = planned(team)
    must_be(0, two.act("--execute", plan, "--throttle", FAST))
    team.hand.arrived({name: (1, 3)})
    before = team.standing(topic, name.topic)
    assert len(before) == 6 + 4
    for host in (one, three):
        assert "removed: " not in must_be(8, host.throttle("doctor", "--fix", "--yes")).err
    assert team.standing(topic, name.topic) == before
    must_be(0, two.act("--verify", plan))
    must_be(0, two.throttle("clear"))
    team.become(OPERATORS, topic, name.topic)
    team.closed()


@pytest.mark.parametrize(("way", "shared"), [("4.3.1 Admin API", TOPIC), ("3.9.1 ZooKeeper", ZNODES)])
def test_a_previous_owner_writes_nothing_after_a_takeover(team: Team) -> None:
    """The owner is paused during --execute.

    Another host takes over and starts the move, and then the owner continues.
    """
    one, two, three = team.hosts()
    name, plan = planned(team)
    paused = one.doomed(PAUSED, "--execute", plan, "--throttle", SLOW, "--force")
    until(lambda: paused.stopped, "the process is stopped")
    locked_for_long(team)
    who = f"another kquota (reassign-partitions --execute, pid {paused.pid} on {_here()} as "
    assert who in must_be(75, two.act("--verify", plan)).err
    assert who in two.move("status").err
    must_be(1, two.act("--verify", plan, "--preserve-throttles"))
    assert "Give --yes" in must_be(2, two.move("resume", "--take-over")).err
    must_be(8, two.move("resume", "--take-over", "--yes"))
    until(lambda: set(team.hand.replicas(name)) == {1, 2, 3}, "the partition moves")
    team.become(lists(name) | rates(SLOW), name.topic)
    paused.wake()
    woken = paused.end()
    must_be(75, woken)
    assert "(move resume, pid " in woken.err or "(move, pid " in woken.err, woken.err
    assert f" on {_here()} as " in woken.err
    assert (team.standing(name.topic), set(team.hand.replicas(name))) == (lists(name) | rates(SLOW), {1, 2, 3})
    must_be(0, ended(team, three, name, plan))
    team.become({}, name.topic)
    must_be(0, one.act("--verify", plan))
    team.closed()


@pytest.mark.parametrize(("way", "shared"), [("3.9.1 ZooKeeper", ZNODES)])
def test_over_brokers_throttles_recorded_in_zookeeper_are_not_removed(team: Team) -> None:
    """B6 and B11: without a topic a command over brokers does not see the znodes of other hosts, and reports that."""
    one, two, _ = team.hosts()
    name, plan = moving(team, one)
    topic = team.hand.topic({0: (1, 2)}, size=10_000)
    must_be(0, one.throttle("set", "--topic", topic, "--all-brokers", "--throttle", "5MB/s"))
    blind = two.over(BROKERS)
    assert blind.runs() == []
    assert "kquota cannot see runs of other hosts" in blind.move("status").err
    team.hand.arrived({name: (1, 3)})
    before = team.standing(topic)
    ran = must_be(8, blind.act("--verify", plan))
    assert f"{LEADER_RATE} on brokers 1,2,3" in ran.err
    assert "--zookeeper" in must_be(1, blind.throttle("doctor", "--fix", "--yes")).err
    assert team.standing(topic) == before
    must_be(0, two.act("--verify", plan))
    must_be(0, two.throttle("clear"))
    must_be(0, blind.throttle("doctor", "--fix", "--yes"))
    team.become({}, topic, name.topic)


@pytest.mark.parametrize(("way", "shared"), SHARED)
def test_a_forged_record_is_reported_and_left_unchanged(team: Team, shared: str) -> None:
    """B7: no forged run changes a config or writes a file, and the other runs continue."""
    one, two, _ = team.hosts()
    topic = team.hand.topic({0: (1, 2)}, size=10_000)
    retention = Setting.of_topic(topic, "retention.ms")
    team.hand.write(retention, "123456789")
    name, plan = moving(team, one)
    (mine,) = one.runs()
    forged = forge(team, retention)
    place = "ZooKeeper (/kquota/runs)" if team.record is None else f"topic {team.record}"
    files = sorted(team.folder.rglob("*"))
    for code, ran in (
        (8, two.move("status")),
        (8, two.move("resume", "--run", mine["run"])),
        (1, two.move("abort", "--run", RUN.id)),
        (1, two.move("abort", "--run", "../../x")),
    ):
        must_be(code, ran)
        assert all(f"recorded run {run} in {place} cannot be read" in ran.err for run in forged), ran.err
    assert [run["run"] for run in two.runs()] == [mine["run"]]
    assert "cannot be read" in must_be(1, two.throttle("doctor", "--fix", "--yes")).err
    if shared == TOPIC:
        told = must_be(8, two.shared("status")).out
        assert all(f"run {name} cannot be read: " in told for name in forged)
        assert ", 1 record that kquota did not write\n" in told
    must_be(0, ended(team, two, name, plan))
    team.become({}, name.topic, topic)
    assert team.hand.value(retention) == "123456789"
    made = [path for path in team.folder.rglob("*") if path not in files]
    assert [path for path in made if path.name.partition(".")[0] in ("", "x")] == []


def forge(team: Team, setting: Setting) -> list[str]:
    """Writes records that kquota never writes, and returns the names under which kquota must report them."""
    fields = run_fields.written(replace(RUN, taken={setting: Taken(setting=setting, prior="1", ours=())}))
    good = run_fields.written(RUN)
    stamp = run_fields.STAMP.written(Stamp(version=1, by=None, at=RUN.begun))
    with Wire(team.hand.servers.bootstrap, {}) as wire:
        sheets = {
            RUN.id: {"format": 2, "cluster": wire.cluster_id, **stamp, "run": fields},
            "newer": {"format": 99, "cluster": wire.cluster_id, **stamp, "run": {**good, "id": "newer"}},
            "foreign": {"format": 2, "cluster": "another", **stamp, "run": {**good, "id": "foreign"}},
            "nonsense": "[" * 5000,
            "..%2F..%2Fx": {"format": 2, "cluster": wire.cluster_id, **stamp, "run": {**good, "id": "..%2F..%2Fx"}},
        }
        written = {n: (one if isinstance(one, str) else json.dumps(one)).encode() for n, one in sheets.items()}
        if team.record is None:
            with znodes(team.hand) as client:
                for name, data in written.items():
                    client.create(f"/kquota/runs/{name}", data)
        else:
            written["../../x"] = written.pop("..%2F..%2Fx")
            log = handle(wire, team.record)
            log.read()
            log.append([(f"run/{name}", data) for name, data in written.items()])
            produce(team.hand.servers, team.record, b"run/produced", written[RUN.id])
    return ["'../../x'" if name == "../../x" else name for name in written]


@pytest.mark.parametrize(("way", "shared"), [("4.3.1 Admin API", TOPIC), ("3.9.1 ZooKeeper", ZNODES)])
def test_a_lock_of_another_machine_is_held_until_a_takeover(team: Team) -> None:
    """No host can check whether that process is alive."""
    one, two, _ = team.hosts()
    topic = team.hand.topic({0: (1, 2)}, size=10_000)
    must_be(0, one.throttle("set", "--topic", topic, "--all-brokers", "--throttle", "5MB/s"))
    away = replace(
        holder("move resume"), owner=Owner(user="alice", host="bastion", pid=7, since=RUN.begun), machine="its own"
    )
    with Wire(team.hand.servers.bootstrap, {}) as wire:
        lock = Lock(term=1000, heartbeat=1, holder=away)
        if team.record is None:
            with znodes(team.hand) as client:
                client.create("/kquota/lock", json.dumps(away.written()).encode())
        else:
            log = handle(wire, team.record)
            log.read()
            log.append([("lock", lock.written(wire.cluster_id))])
        who = "another kquota (move resume, pid 7 on bastion as alice, since 2026-03-01T12:30:00+00:00)"
        for ran in (two.throttle("clear"), two.throttle("doctor", "--fix", "--yes")):
            assert who in must_be(75, ran).err
        assert who in two.move("status").err
        assert team.hand.rates() == rates("5000000")
        if team.record is None:
            assert who in must_be(75, two.move("abort")).err
            must_be(0, two.move("abort", "--take-over", "--yes"))
        else:
            log.read()
            log.append([("lock", replace(lock, heartbeat=2, released=True).written(wire.cluster_id))])
    must_be(0, two.throttle("clear"))
    team.become({}, topic)
    team.closed()


@pytest.mark.parametrize(("way", "shared"), [("4.3.1 Admin API", TOPIC)])
def test_a_large_plan_is_shared_through_the_record(team: Team) -> None:
    """The plan is larger than one sheet: the first host starts it, the third sees it, and the second aborts it."""
    one, two, three = team.hosts()
    topic = team.hand.topic({n: (n % 3 + 1,) for n in range(1000)}, size=0)
    plan = team.plan({TopicPartition(topic, n): ((n + 1) % 3 + 1,) for n in range(1000)})
    must_be(-9, one.doomed(SUBMITTING, "--execute", plan, "--throttle", SLOW, "--force").end())
    (seen,) = three.runs()
    assert (seen["partitions"], seen["state"]) == (1000, "not_submitted")
    must_be(0, two.move("abort"))
    team.become({}, topic)
    assert "no run of a move is open" in must_be(0, one.move("resume")).err
    team.closed()


@pytest.mark.parametrize(("way", "shared"), [("4.3.1 Admin API", TOPIC)])
def test_a_record_that_is_deleted_and_created_again(team: Team) -> None:
    one, two, _ = team.hosts()
    assert team.record is not None
    topic = team.hand.topic({0: (1, 2)}, size=10_000)
    must_be(0, one.throttle("set", "--topic", topic, "--all-brokers", "--throttle", "5MB/s"))
    team.hand.delete(team.record)
    assert (
        "the shared record of this cluster no longer exists. Nothing was written"
        in must_be(1, one.throttle("clear")).err
    )
    assert "the shared record no longer exists" in one.move("status").err
    must_be(0, two.shared("share"))
    assert two.holds(Setting.of_broker(BrokerId(1), LEADER_RATE)) == []
    ran = must_be(0, one.throttle("set", "--topic", topic, "--all-brokers", "--throttle", "6MB/s"))
    assert "was deleted and created again. Runs of other hosts may be missing from it" in ran.err
    assert len(two.holds(Setting.of_broker(BrokerId(1), LEADER_RATE))) == 1, (
        "the record contains the open run of this host again"
    )
    must_be(0, two.throttle("clear"))
    team.become({}, topic)
    assert "no open run of `throttle set` is recorded" in must_be(0, one.throttle("clear")).err
    team.closed()


def delete_records(team: Team, *, all_of_them: bool) -> None:
    """Delete the records of the shared record, as retention does after someone sets another `cleanup.policy`."""
    assert team.record is not None
    policy = Setting.of_topic(team.record, "cleanup.policy")
    end = KafkaPartition(team.record, 0, OFFSET_END)
    if not all_of_them:
        found = team.hand.admin.list_offsets({end: OffsetSpec.latest()})[end].result(PATIENCE)
        end = KafkaPartition(team.record, 0, found.offset - 1)
    team.hand.write(policy, "delete")

    def deleted() -> bool:
        try:
            team.hand.admin.delete_records([end])[end].result(PATIENCE)
        except KafkaException as error:  # the leader does not apply the policy yet
            assert error.args[0].code() == KafkaError.POLICY_VIOLATION
            return False
        return True

    until(deleted, "the records are deleted")
    team.hand.write(policy, "compact")


@pytest.mark.parametrize(("way", "shared"), [("4.3.1 Admin API", TOPIC), ("3.9.1 ZooKeeper", TOPIC)])
def test_a_record_that_lost_runs_does_not_hide_their_throttles(team: Team) -> None:
    """Another host does not see the run any more, so it removes nothing and reports no success."""
    one, two, _ = team.hosts()
    name = TopicPartition(team.hand.topic({0: (1, 2)}, size=10_000), 0)
    must_be(0, one.throttle("set", "--topic", name.topic, "--all-brokers", "--throttle", "5MB/s"))
    delete_records(team, all_of_them=False)
    before = team.standing(name.topic)
    lost = f"records were deleted from topic {team.record}, so runs of other hosts may be missing from it"
    assert lost in must_be(8, two.move("status")).err
    assert lost in must_be(8, two.throttle("clear")).err
    assert lost in must_be(8, two.act("--verify", team.plan({name: (1, 2)}))).err
    assert lost in must_be(1, two.throttle("doctor", "--fix", "--yes")).err
    assert team.standing(name.topic) == before
    must_be(0, one.throttle("clear"))
    team.become({}, name.topic)
    must_be(0, two.shared("unshare", "--yes"))
    must_be(0, two.shared("share"))
    must_be(0, one.shared("share"))
    must_be(0, two.throttle("doctor", "--fix", "--yes"))
    team.closed()


@pytest.mark.parametrize(("way", "shared"), [("4.3.1 Admin API", TOPIC)])
def test_a_record_without_any_record_names_the_way_out(team: Team) -> None:
    """No host can append to it, because the broker expects a sequence that no host can read any more."""
    one, two, _ = team.hosts()
    assert team.record is not None
    topic = team.hand.topic({0: (1, 2)}, size=10_000)
    must_be(0, one.throttle("set", "--topic", topic, "--all-brokers", "--throttle", "5MB/s"))
    delete_records(team, all_of_them=True)
    must_be(8, two.move("status"))
    for host in (one, two):
        assert "Delete the topic, and then run `kquota record share" in must_be(1, host.throttle("clear")).err
    assert team.hand.rates() == rates("5000000")
    team.hand.delete(team.record)
    must_be(0, two.shared("share"))
    must_be(0, one.shared("share"))
    must_be(0, two.throttle("clear"))
    team.become({}, topic)
    team.closed()


@pytest.mark.parametrize(("way", "shared"), [("3.9.1 ZooKeeper", TOPIC)])
def test_a_record_with_more_partitions_names_the_way_out(team: Team) -> None:
    one, two, _ = team.hosts()
    assert team.record is not None
    topic = team.hand.topic({0: (1, 2)}, size=10_000)
    must_be(0, one.throttle("set", "--topic", topic, "--all-brokers", "--throttle", "5MB/s"))
    team.hand.admin.create_partitions([NewPartitions(team.record, 2)])[team.record].result(PATIENCE)
    team.hand.shown({team.record: 2})
    for host in (one, two):
        assert "delete the topic, and then run `kquota record share" in must_be(1, host.throttle("clear")).err
    assert "needs exactly one" in must_be(1, two.shared("unshare", "--yes")).err
    assert team.hand.rates() == rates("5000000")
    team.hand.delete(team.record)
    for host in (two, one):
        must_be(0, host.shared("share"))
    must_be(0, two.throttle("clear"))
    team.become({}, topic)
    team.closed()


@pytest.mark.parametrize(("way", "shared"), [("3.9.1 ZooKeeper", TOPIC)])
def test_an_open_run_prevents_disabling_or_deleting_the_record(team: Team) -> None:
    one, two, three = team.hosts()
    topic = team.hand.topic({0: (1, 2)}, size=10_000)
    asked = ("set", "--topic", topic, "--all-brokers", "--throttle")
    must_be(0, one.throttle("clear"))
    ran = must_be(0, one.alone().throttle(*asked, "5MB/s"))
    assert f"--record none: kquota does not use the shared record in topic {team.record}" in ran.err
    assert "other hosts do not see this run" in ran.err
    rate = Setting.of_broker(BrokerId(1), LEADER_RATE)
    assert (len(one.holds(rate)), two.holds(rate)) == (1, [])
    must_be(0, one.throttle(*asked, "6MB/s"))
    assert two.holds(rate) == one.holds(rate), "the next command writes it to the record"
    refused = must_be(1, three.shared("unshare", "--yes"))
    assert f"1 run is open or unreadable ({one.holds(rate)[0]})" in refused.err
    must_be(0, two.throttle("clear"))
    team.become({}, topic)
    assert "no open run of `throttle set` is recorded" in must_be(0, one.throttle("clear")).err
    must_be(0, replace(three, record="another-topic").shared("unshare", "--yes"))
    with znodes(team.hand) as client:
        assert client.exists(MARKER) is not None, "it names another topic"
        must_be(0, three.shared("unshare", "--yes"))
        assert client.exists(MARKER) is None
    assert "removes the old one from the state of this host" in must_be(1, one.over(BROKERS).throttle("clear")).err
    must_be(0, one.shared("unshare", "--yes"))
    assert "no open run of `throttle set` is recorded" in must_be(0, replace(one, record=None).throttle("clear")).err


@pytest.mark.parametrize(("way", "shared"), [("3.9.1 ZooKeeper", ZNODES)])
def test_a_topic_is_not_shared_over_open_runs_in_zookeeper(team: Team) -> None:
    one, two, _ = team.hosts()
    topic = team.hand.topic({0: (1, 2)}, size=10_000)
    must_be(0, one.throttle("set", "--topic", topic, "--all-brokers", "--throttle", "5MB/s"))
    named = replace(two, record=f"runs-{uuid.uuid4().hex[:8]}")
    assert "1 run is open or unreadable in ZooKeeper (" in must_be(1, named.shared("share")).err
    only_brokers = kquota("record", "share", *named.over(BROKERS).where)
    assert "Also give --zookeeper" in must_be(1, only_brokers).err
    assert named.record not in team.hand.admin.list_topics(timeout=30).topics
    must_be(0, two.throttle("clear"))
    team.become({}, topic)


def locked_for_long(team: Team) -> None:
    """In ZooKeeper, another client keeps the lock of a paused owner, whose session ends after some seconds."""
    if team.record is None:
        with znodes(team.hand) as client:
            lock, _ = client.get("/kquota/lock")
            client.delete("/kquota/lock")
            client.create("/kquota/lock", lock)


def _here() -> str:
    return os.uname().nodename
