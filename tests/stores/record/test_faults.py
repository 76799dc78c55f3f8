"""Appends with lost, replaced or late answers: kquota reads the log to find out the result."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pytest

from kquota.errors import Refused, Unknown, Unreachable
from kquota.sandbox.cluster import Sandbox
from kquota.stores.admin import topic_setup
from kquota.stores.admin.connection import Wire
from kquota.stores.admin.partition import Deadline, Fetched
from kquota.stores.admin.topic_log import WireLog, find
from kquota.stores.state.log import Forbidden, Stale
from tests.stores.record.contract import entries
from tests.stores.record.lossy import (
    Fault,
    LossyWire,
    after,
    answer_lost,
    between,
    instead,
    never_answered,
    not_sent,
)

SHORT = 1.0
"""Seconds after which a log gives up."""


@dataclass
class Stage:
    lossy: LossyWire
    wire: Wire
    name: str = field(default_factory=lambda: f"faults-{uuid.uuid4().hex[:8]}")

    def log(self, seconds: float = 15.0) -> WireLog:
        """The log over the connection with faults, read to its end."""
        log = find(self.lossy, self.name, seconds)
        assert log is not None
        log.read()
        return log

    def other(self) -> WireLog:
        """Another host, with a connection without faults."""
        log = find(self.wire, self.name)
        assert log is not None
        log.read()
        return log

    def appended(self) -> list[tuple[str, bytes | None]]:
        log = find(self.wire, self.name)
        assert log is not None
        return entries(log.read())

    def win(self) -> None:
        self.other().append([("theirs", b"1")])


@pytest.fixture
def stage(kafka_431: Sandbox) -> Iterator[Stage]:
    with LossyWire(kafka_431.bootstrap, {}) as lossy, Wire(kafka_431.bootstrap, {}) as wire:
        lossy.faults = []
        found = Stage(lossy, wire)
        topic_setup.create(wire, found.name)
        yield found
        topic_setup.delete(wire, found.name)


SURVIVED: dict[str, list[Fault]] = {
    "not sent": [not_sent],
    "answer lost": [answer_lost],
    "answer lost twice": [answer_lost, answer_lost],
    "request lost": [never_answered],
    "not sent, then answer lost": [not_sent, answer_lost],
    "time-out of the broker (7)": [after(7)],
    "too few replicas after the append (20)": [after(20)],
    "an error of the broker's own (-1), appended": [after(-1)],
    "network exception (13), appended": [after(13)],
    "too few replicas (19)": [instead(19)],
    "not the leader (6)": [instead(6)],
    "no such topic yet (3)": [instead(3)],
    "no leader yet (5)": [instead(5)],
    "no such topic id yet (100)": [instead(100)],
    "out of order (45), although it is ours": [answer_lost, instead(45)],
    "out of order (45) at once, although it is ours": [after(45)],
    "a duplicate (46) of ours": [after(46)],
    "the id of another topic, once (103)": [instead(103)],
}


@pytest.mark.parametrize("faults", SURVIVED.values(), ids=SURVIVED)
def test_the_append_is_in_the_log_once(stage: Stage, faults: list[Fault]) -> None:
    log = stage.log()
    stage.lossy.faults = list(faults)
    log.append([("a", b"1"), ("b", b"2")])
    log.append([("a", b"3")])
    assert stage.lossy.faults == []
    assert stage.appended() == entries(log.read()) == [("a", b"1"), ("b", b"2"), ("a", b"3")]


OVERTAKEN: dict[str, Fault] = {
    "acknowledged": lambda ask: ask(),
    "answer lost": answer_lost,
    "request lost": never_answered,
    "not sent": not_sent,
    "out of order (45)": instead(45),
    "duplicate (46)": instead(46),
    "time-out of the broker (7)": instead(7),
}


@pytest.mark.parametrize("fault", OVERTAKEN.values(), ids=OVERTAKEN)
def test_an_earlier_append_of_another_host_is_never_overwritten(stage: Stage, fault: Fault) -> None:
    log = stage.log()
    stage.lossy.faults = [between(stage.win, fault)]
    with pytest.raises(Stale, match="another kquota appended first"):
        log.append([("a", b"1")])
    assert stage.appended() == entries(log.read()) == [("theirs", b"1")]
    log.append([("a", b"1")])
    assert stage.appended() == [("theirs", b"1"), ("a", b"1")]


def test_a_reading_that_fails_halfway_loses_no_item(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the process would append without knowing what it has passed, for example a later holder's lock."""
    log = stage.log()
    stage.win()
    fetch = log._partition.fetch
    asked: list[int] = []

    def fetched(position: int, deadline: Deadline) -> Fetched:
        asked.append(position)
        if len(asked) > 1:
            raise Unreachable("the leader is gone")
        found = fetch(position, deadline)
        return replace(found, end=found.end + 1)

    with monkeypatch.context() as patch:
        patch.setattr(log._partition, "fetch", fetched)
        with pytest.raises(Unreachable, match="the leader is gone"):
            log.read()
    with pytest.raises(Stale):
        log.append([("a", b"1")])
    assert entries(log.read()) == [("theirs", b"1")]


def test_a_later_append_of_another_host_makes_only_the_next_append_stale(stage: Stage) -> None:
    log = stage.log()

    def acknowledged_then_followed(ask: object) -> object:
        answer = ask()  # type: ignore[operator]
        stage.win()
        return answer

    stage.lossy.faults = [acknowledged_then_followed]
    log.append([("a", b"1")])
    with pytest.raises(Stale):
        log.append([("a", b"2")])
    assert entries(log.read()) == stage.appended() == [("a", b"1"), ("theirs", b"1")]


def test_a_batch_that_was_never_sent_is_unreachable(stage: Stage) -> None:
    log = stage.log(SHORT)
    stage.lossy.always = not_sent
    with pytest.raises(Unreachable, match="Nothing was appended"):
        log.append([("a", b"1")])
    stage.lossy.always = None
    assert stage.appended() == []


@pytest.mark.parametrize("fault", [never_answered, instead(7), instead(20)], ids=["lost", "7", "20"])
def test_a_batch_that_may_have_arrived_is_unknown(stage: Stage, fault: Fault) -> None:
    log = stage.log(SHORT)
    stage.lossy.always = fault
    with pytest.raises(Unknown, match="It is unknown whether"):
        log.append([("a", b"1")])


@pytest.mark.parametrize("code", [19, 5, 6])
def test_a_batch_that_was_refused_until_the_deadline_is_unreachable(stage: Stage, code: int) -> None:
    log = stage.log(SHORT)
    stage.lossy.always = instead(code)
    with pytest.raises(Unreachable, match=rf"\({code}\).*Nothing was appended"):
        log.append([("a", b"1")])


def test_a_log_that_lost_its_last_records_is_refused(stage: Stage) -> None:
    """The broker remembers a sequence that no batch in the log has."""
    log = stage.log(SHORT)
    stage.lossy.always = instead(45)
    with pytest.raises(Refused, match="last records of the topic were deleted"):
        log.append([("a", b"1")])


REFUSED: dict[int, tuple[type[Refused], str]] = {
    10: (Refused, r"larger than the topic's max\.message\.bytes"),
    18: (Refused, r"larger than the topic's max\.message\.bytes"),
    29: (Forbidden, "needs Read on the topic, and Write"),
    47: (Refused, r"\(47\)"),
    87: (Refused, r"\(87\)"),
}


@pytest.mark.parametrize(("code", "kind", "words"), [(code, *rest) for code, rest in REFUSED.items()], ids=REFUSED)
def test_a_refusal_is_reported_at_once(stage: Stage, code: int, kind: type[Refused], words: str) -> None:
    log = stage.log()
    stage.lossy.faults = [instead(code)]
    with pytest.raises(kind, match=words):
        log.append([("a", b"1")])
    log.append([("a", b"2")])
    assert stage.appended() == [("a", b"2")]


def test_a_refusal_after_a_lost_answer_is_not_taken_for_an_answer(stage: Stage) -> None:
    log = stage.log()
    stage.lossy.faults = [never_answered, instead(87)]
    with pytest.raises(Unknown):
        log.append([("a", b"1")])
