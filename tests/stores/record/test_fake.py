"""The fake's faults: their effect on the log, and the answer to the caller."""

from __future__ import annotations

import pytest

from kquota.errors import KquotaError, Refused, Unknown, Unreachable
from kquota.stores.state.log import Stale
from tests.stores.record.contract import entries, newest
from tests.stores.record.fake import Fault, MemoryTopic

FAULTS: dict[Fault, tuple[type[KquotaError] | None, bool]] = {
    Fault.NOT_SENT: (Unreachable, False),
    Fault.ANSWER_LOST: (Unknown, True),
    Fault.NOT_WRITTEN: (Unknown, False),
    Fault.RESOLVED: (None, True),
}


@pytest.mark.parametrize(("fault", "error", "written"), [(one, *rest) for one, rest in FAULTS.items()], ids=str)
def test_a_fault_happens_once(fault: Fault, error: type[KquotaError] | None, written: bool) -> None:
    topic = MemoryTopic(fault=fault)
    log = topic.handle()
    if error is None:
        log.append([("a", b"1")])
    else:
        with pytest.raises(error):
            log.append([("a", b"1")])
    assert entries(topic.handle().read()) == ([("a", b"1")] if written else [])
    if fault is Fault.ANSWER_LOST:
        with pytest.raises(Stale):
            log.append([("a", b"2")])
    log.read()
    log.append([("a", b"2")])


def test_compaction_keeps_the_newest_of_each_key_and_the_order_of_appends() -> None:
    topic = MemoryTopic()
    log, live = topic.handle(), topic.handle()
    for value in (b"1", b"2", None):
        log.append([("a", value), ("b", b"x")])
    seen = newest(live.read())
    topic.compact()
    fresh = topic.handle()
    items = fresh.read()
    assert newest(items) == seen == {"a": None, "b": b"x"}
    assert [item.offset for item in items] == [4, 5]
    fresh.append([("a", b"3")])
    with pytest.raises(Stale):
        live.append([("a", b"4")])


def test_a_recreated_or_unreachable_topic() -> None:
    topic = MemoryTopic()
    log = topic.handle()
    topic.recreate()
    for call in (log.read, lambda: log.append([("a", b"1")])):
        with pytest.raises(Refused, match="created again"):
            call()
    topic.unreachable = True
    with pytest.raises(Unreachable):
        topic.handle().read()
