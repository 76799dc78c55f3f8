"""Every command that sets a pace refuses one that copies can never follow, in the same words, with the same --force."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest

from kquota.cli import keeping_up
from kquota.settings.resource import Setting
from kquota.sizes.replica import LogDir
from kquota.terms import LEADER_RATE, BrokerId, TopicPartition
from tests.cli.contracts.in_memory import InMemory
from tests.cli.contracts.sessions import BROKER, ELSEWHERE, ONE, plan
from tests.cli.run import Ran, kquota_here
from tests.sizes.fake import FakeLogDirs

pytestmark = pytest.mark.unit
ORDERS = TopicPartition("orders", 0)


class BusyLogs(FakeLogDirs):
    """Producers write a gigabyte to each partition between two readings."""

    def describe(self, brokers: Collection[BrokerId], topics: Collection[str] | None) -> list[LogDir]:
        for name in self.logs:
            self.write(name, 1000, 1_000_000)
        return super().describe(brokers, topics)


@pytest.fixture
def busy(house: InMemory, monkeypatch: pytest.MonkeyPatch) -> InMemory:
    house.logs = BusyLogs(logs=house.logs.logs)
    house.stand_in(monkeypatch)
    monkeypatch.setattr(keeping_up, "_SHORT_SAMPLE", 0.01)
    monkeypatch.setattr(keeping_up, "_LONG_SAMPLE", 0.01)
    return house


@pytest.fixture
def file(tmp_path: Path) -> str:
    return plan(tmp_path, ELSEWHERE)


def run(words: str) -> Ran:
    return kquota_here(*words.split())


def execute(file: str, more: str) -> Ran:
    return run(f"reassign-partitions {BROKER} --reassignment-json-file {file} --execute {more}")


def run_of(house: InMemory) -> str:
    (found,) = (path.stem for path in house.folder.rglob("*.journal"))
    return found


SET = "throttle set {broker} --throttle 300kB/s --sample 0 "
GATED = {
    # The command, and the words of its refusal.
    "execute": ("reassign {file} --execute --additional --throttle 300kB/s", "the move never ends", "start the move"),
    "the plan of a run": (SET + "--reassignment-json-file {file}", "the move never ends", "set the given throttle"),
    "a run": (SET + "--run {run}", "the move never ends", "set the given throttle"),
    "its topic": (SET + "--topic orders", "a running move never ends", "set the given throttle"),
    "its brokers": (SET + "--all-brokers", "a running move never ends", "set the given throttle"),
    "the side of one broker": (SET + "--leader --broker 1", "a running move never ends", "set the given throttle"),
}


@pytest.mark.parametrize("dry", [" --dry-run", ""], ids=["dry run", "write"])
@pytest.mark.parametrize(("command", "never", "anyway"), GATED.values(), ids=GATED)
def test_a_running_move_keeps_a_rate_that_it_can_follow(
    busy: InMemory, file: str, command: str, never: str, anyway: str, dry: str
) -> None:
    assert execute(file, "--throttle 5MB/s --force").code == 0
    before = dict(busy.cluster.configs)
    words = command.format(broker=BROKER, file=file, run=run_of(busy)) + dry
    words = words.replace("reassign ", f"reassign-partitions {BROKER} --reassignment-json-file ")
    refused = run(words)
    assert (refused.code, refused.out, busy.cluster.configs) == (1, "", before)
    assert f"kquota: error: under this throttle {never}: broker " in refused.err
    assert ". Nothing was written. With a throttle above " in refused.err
    assert refused.err.endswith(f". To {anyway} anyway, give --force\n")
    forced = run(f"{words} --force")
    assert forced.code == 0, forced.err
    assert (busy.cluster.configs == before) is bool(dry)


def test_a_returning_broker_gets_a_rate_that_it_can_follow(busy: InMemory) -> None:
    busy.cluster.partitions[ORDERS] = replace(busy.cluster.partitions[ORDERS], isr=(ONE,))
    asked = f"throttle set {BROKER} --recovering 2 --throttle 300kB/s --once"
    for words in (asked, f"{asked} --dry-run"):
        refused = run(words)
        assert (refused.code, refused.out, busy.cluster.configs) == (1, "", {})
        assert "under this throttle broker 2 never catches up: broker " in refused.err
        assert ", broker 2 can catch up. To set the given throttle anyway, give --force" in refused.err
    assert run(f"{asked} --force").code == 8
    assert busy.cluster.configs[Setting.of_broker(ONE, LEADER_RATE)] == "300000"
    # The replica is in sync again, so the next check, for example from cron, restores the throttle.
    busy.cluster.partitions[ORDERS] = replace(busy.cluster.partitions[ORDERS], isr=(ONE, BrokerId(2)))
    assert run(asked).code == 0
    assert busy.cluster.configs == {}


def test_each_check_of_a_returning_broker_continues_at_its_rate(busy: InMemory) -> None:
    busy.cluster.partitions[ORDERS] = replace(busy.cluster.partitions[ORDERS], isr=(ONE,))
    asked = f"throttle set {BROKER} --recovering 2 --once --throttle"
    assert run(f"{asked} 300kB/s --force").code == 8
    assert run(f"{asked} 300kB/s").code == 8
    assert run(f"{asked} 200kB/s").code == 1


OTHERS = {
    "no move is running": "--topic orders",
    "another topic than that of the move": "--topic payments --broker 3",
    "a side that no copy uses": "--topic orders --follower --broker 1,2",
}


@pytest.mark.parametrize(("case", "more"), OTHERS.items(), ids=OTHERS)
def test_a_throttle_that_slows_down_no_copy_is_set(busy: InMemory, tmp_path: Path, case: str, more: str) -> None:
    if case != "no move is running":
        assert execute(plan(tmp_path, {("orders", 0): [1, 3]}), "--unthrottled").code == 0
    ran = run(f"throttle set {BROKER} {more} --throttle 300kB/s --sample 0")
    assert ran.code == 0, ran.err


def test_executing_a_throttled_plan_again_checks_only_a_rate_that_it_writes(busy: InMemory, file: str) -> None:
    assert execute(file, "--throttle 5MB/s --force").code == 0
    again = execute(file, "")
    assert (again.code, "never ends" in again.err) == (0, False)
    busy.cluster.configs.pop(Setting.of_broker(ONE, LEADER_RATE))
    assert "never ends" in execute(file, "").err


NOTE = "note: no throttle is given, so the copies use all the network and disk bandwidth that brokers have"


def test_a_move_without_a_throttle_starts_with_a_note_unless_it_is_confirmed(busy: InMemory, file: str) -> None:
    ran = execute(file, "")
    assert (ran.code, NOTE in ran.err, busy.cluster.configs) == (0, True, {})
    assert "throttle limit was set" not in ran.out
    verify = run(f"reassign-partitions {BROKER} --reassignment-json-file {file} --verify")
    assert "throttle" not in verify.err.replace(file, "FILE")
    for name in (ORDERS, TopicPartition("orders", 1)):
        busy.cluster.finish(name)
    status = run(f"move status {BROKER}")
    assert "the move has ended, but the run is still open\n" in status.out
    assert "no throttle\n" in status.out


@pytest.mark.parametrize("how", ["--unthrottled", "--throttle -1"])
def test_an_intended_move_without_a_throttle_prints_no_note(busy: InMemory, file: str, how: str) -> None:
    ran = execute(file, how)
    assert (ran.code, NOTE in ran.err, busy.cluster.configs) == (0, False, {})


def test_unthrottled_and_a_throttle_contradict_each_other(busy: InMemory, file: str) -> None:
    both = execute(file, "--unthrottled --throttle 5MB/s")
    assert (both.code, both.err) == (
        2,
        "kquota: error: --unthrottled and --throttle cannot be combined. Give one of them\n",
    )
    assert execute(file, "--throttle 5MB/s --force").code == 0
    before = dict(busy.cluster.configs)
    again = execute(file, "--unthrottled")
    assert (again.code, busy.cluster.configs) == (1, before)
    assert "of this plan is throttled (5 MB/s), and --unthrottled does not remove a throttle" in again.err
