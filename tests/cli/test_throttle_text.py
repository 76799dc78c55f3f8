"""The exact output of `throttle show` and `throttle doctor`: see the golden files."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kquota.cli.formats import WRITE
from kquota.cli.options import Output
from kquota.cli.throttle.changes import compact, difference, spans
from kquota.cli.throttle.doctor.answer import examination
from kquota.cli.throttle.show.run import Selection
from kquota.errors import KquotaError
from kquota.reassign.run import Purpose
from kquota.settings.resource import Setting
from kquota.terms import DEFAULT, FOLLOWER_RATE, LEADER_RATE, LOG_DIR_RATE, BrokerId, TopicPartition
from kquota.throttle.doctor import changes, removable, seen
from kquota.throttle.throughput import MeasuredFlow
from tests.cli.run import Ran
from tests.cli.test_explain import golden
from tests.throttle.stage import BEGUN, FOLLOWER, LEADER, on, partition, rate, run, throttles

ONE, TWO, THREE = map(BrokerId, (1, 2, 3))
LEADERS = Setting.of_topic("orders", LEADER)
OURS = run(
    {LEADERS: ["0:1", "0:2"], **{Setting.of_broker(b, LEADER_RATE): ["5000000"] for b in (ONE, TWO)}},
    purpose=Purpose.THROTTLE,
)
MESS = throttles(
    {
        "orders": [partition(1, 2), partition(2, 3), partition(3, 1, 2, isr=[3, 2]), partition(1, 3, 2, adding=[2])],
        "payments": [partition(1, 2, 4, isr=[1, 2])],
    },
    {
        ("orders", LEADER): "0:1,0:2,1:2,1:3,9:1",
        ("orders", FOLLOWER): "1:3,2:1,3:2,3:3",
        ("payments", LEADER): "*",
        ("payments", FOLLOWER): ",0:4",
    },
    {
        ONE: {LEADER_RATE: rate("5000000"), FOLLOWER_RATE: rate("10485760"), LOG_DIR_RATE: rate("1048576")},
        TWO: {LEADER_RATE: rate("5000000"), FOLLOWER_RATE: rate("7", "STATIC_BROKER_CONFIG", in_force=False)},
        **on(3, "20000000"),
        DEFAULT: {LEADER_RATE: rate("1", "DYNAMIC_DEFAULT_BROKER_CONFIG", in_force=False)},
    },
    runs=[OURS],
    misplaced={TWO: (LEADER,)},
    release=(3, 6),
)
FLOW = MeasuredFlow(
    seconds=3.02,
    leader={ONE: 4_900_000.0, TWO: 0.0, THREE: None},
    follower={ONE: 0.0, TWO: 1234.5, THREE: None},
    lag={ONE: 0, TWO: 1_234_567, THREE: None},
    bytes_in={TopicPartition("orders", n): float(n) * 1e6 for n in range(3)},
    lags={TopicPartition("orders", 0): 1_234_567, TopicPartition("orders", 1): 0},
    keep_up={},
    behind={},
)
SHOWN = {
    "all": Selection(throttles=MESS, flow=FLOW),
    "topic": Selection(throttles=MESS, flow=FLOW, topics=("payments",)),
    "broker": Selection(throttles=MESS, flow=None, brokers=(TWO,)),
    "nothing": Selection(throttles=throttles({"t": [partition(1)]}), flow=None),
}


@pytest.mark.parametrize(("name", "shown"), SHOWN.items(), ids=SHOWN)
def test_the_text_of_show(name: str, shown: Selection) -> None:
    golden(f"throttle-show-{name}", Ran(0, WRITE[Output.text](shown.answer()), ""), "")


def test_the_formats_of_show_for_scripts() -> None:
    golden("throttle-show-json", Ran(0, WRITE[Output.json](SHOWN["all"].answer()), ""), "")
    golden("throttle-show-table", Ran(0, WRITE[Output.tsv](SHOWN["all"].answer()), ""), "")


def test_the_output_of_doctor() -> None:
    planned = changes(MESS, removable(MESS))
    examined = examination(
        MESS,
        seen(seen(None, removable(MESS), BEGUN), removable(MESS), BEGUN + timedelta(hours=1)),
        planned=planned,
        undone={Setting.of_broker(THREE, LEADER_RATE): KquotaError("broker 3 did not answer")},
    )
    golden("throttle-doctor", Ran(8, WRITE[Output.text](examined), ""), "")
    golden("throttle-doctor-json", Ran(8, WRITE[Output.json](examined), ""), "")
    golden("throttle-doctor-table", Ran(8, WRITE[Output.tsv](examined), ""), "")
    golden("throttle-doctor-fix", Ran(8, "", "".join(f"{line}\n" for line in difference(planned))), "")


COMPACT = {
    "one": (["0:1"], "0:1"),
    "a row of partitions on the same brokers": (["0:1", "0:2", "1:2", "1:1", "2:1", "2:2"], "0-2:1,2"),
    "a gap": (["0:1", "2:1"], "0:1 2:1"),
    "everything": (["*"], "*"),
    "malformed ones first": (["0:1", "x"], "x 0:1"),
    "none": ([], "(empty)"),
    "many": ([f"{n}:{n}" for n in range(9)], "0:0 1:1 2:2 3:3 4:4 5:5 and more, 9 entries in total"),
}


@pytest.mark.parametrize(("entries", "text"), COMPACT.values(), ids=COMPACT)
def test_entries_are_abbreviated(entries: list[str], text: str) -> None:
    assert compact(LEADERS, entries) == text


def test_ids_are_abbreviated() -> None:
    assert spans([]) == ""
    assert spans([3, 1, 2, 7, 8, 10]) == "1-3,7,8,10"
