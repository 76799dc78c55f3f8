"""A broker that closes new connections: one that limits them (KIP-612) is waited for, one that means it is not."""

from __future__ import annotations

import ssl

import pytest
from kafka import errors as kafka_errors
from kafka.protocol.metadata import MetadataRequest

from kquota.errors import KquotaError, Unreachable
from kquota.quota import actions
from kquota.quota.change import Change
from kquota.quota.entity import Entity
from kquota.sandbox.cluster import Cluster
from kquota.stores.wire.connection import Wire
from kquota.stores.wire.hang_up import HangUps
from kquota.stores.wire.quotas import WireQuotas
from kquota.terms import CONNECTION_CREATION_RATE
from tests.quota.contract import attempts
from tests.stores.moves_stage import until
from tests.stores.recorder import Recorder

RESET = kafka_errors.KafkaConnectionError(ConnectionResetError(104, "Connection reset by peer"))
BROKEN = kafka_errors.KafkaConnectionError(BrokenPipeError(32, "Broken pipe"))
ENDED = kafka_errors.KafkaConnectionError("socket disconnected")
REFUSED = kafka_errors.KafkaConnectionError(ConnectionRefusedError(111, "Connection refused"))
STRANGER = kafka_errors.KafkaConnectionError(ssl.SSLCertVerificationError(1, "certificate verify failed"))
LATE, SOON = 0.7, 0.002
HISTORIES: dict[str, tuple[list[tuple[Exception, float]], bool, bool]] = {
    "nothing yet": ([], False, False),
    "reset when a throttle time is over, however often": ([(RESET, LATE)] * 9, True, False),
    "reset before we have sent anything": ([(BROKEN, LATE)] * 9, True, False),
    "reset at once": ([(RESET, SOON)], False, False),
    "reset at once, three times": ([(RESET, SOON)] * 3, False, True),
    "ended in order, however late": ([(ENDED, LATE)] * 3, False, True),
    "nobody listens": ([(REFUSED, SOON)] * 3, False, True),
    "another certificate": ([(STRANGER, LATE)], False, True),
    "no answer in time": ([(kafka_errors.KafkaTimeoutError(), 10.0)], False, True),
}


@pytest.mark.parametrize(("history", "limits", "in_vain"), HISTORIES.values(), ids=HISTORIES)
def test_who_is_tried_again(history: list[tuple[Exception, float]], limits: bool, in_vain: bool) -> None:
    found = HangUps()
    for error, seconds in history:
        found.failed(1, error, seconds)
    assert (found.limits(1), found.limits(None), found.in_vain(1)) == (limits, limits, in_vain)
    assert (found.limits(2), found.in_vain(2)) == (False, False)
    found.made(1)
    assert (found.limits(1), found.in_vain(1)) == (False, False)


@pytest.mark.kafka
def test_a_broker_that_limits_connections_is_waited_for_and_nothing_is_lost(kafka_431: Cluster) -> None:
    """Both where a session begins and where it goes on to another broker."""
    waits: list[float] = []
    with (
        Recorder(hang_ups=[0.2, 0.15, 0.12, 0.11]) as recorder,
        Wire(kafka_431.bootstrap, recorder.settings, throttled=waits.append) as wire,
    ):
        assert waits
        for broker in wire.brokers():
            recorder.hang_ups += [0.2, 0.11, 0.15, 0.12]
            assert wire.ask(MetadataRequest(topics=[]), broker).brokers
        recorder.hang_ups += [0.11]
        recorder.cut()
        answers = wire.ask_each(dict.fromkeys(wire.brokers(), MetadataRequest(topics=[])))
        assert not [answer for answer in answers.values() if isinstance(answer, KquotaError)]
    assert recorder.hang_ups == []
    assert min(waits) > 0.1


@pytest.mark.kafka
def test_one_that_hangs_up_on_purpose_is_not(kafka_431: Cluster) -> None:
    with Recorder(hang_ups=[0.0] * 100) as recorder, pytest.raises(Unreachable, match="it hung up on a client with"):
        Wire(kafka_431.bootstrap, recorder.settings)


@pytest.mark.kafka
def test_time_is_up_before_it_takes_one(kafka_431: Cluster) -> None:
    settings = {"default_api_timeout_ms": 3_000}
    with Recorder(hang_ups=[0.2] * 100) as recorder, pytest.raises(Unreachable, match="does connection_creation_rate"):
        Wire(kafka_431.brokers[0].address, recorder.settings | settings)


@pytest.mark.kafka
def test_a_real_limit_only_delays(kafka_431: Cluster) -> None:
    waits: list[float] = []
    entity = Entity(ip="127.0.0.1")
    with Wire(kafka_431.bootstrap, {}) as held:
        quotas = WireQuotas(held)

        def delayed() -> bool:
            with Wire(kafka_431.bootstrap, {"default_api_timeout_ms": 60_000}, throttled=waits.append) as wire:
                assert wire.metadata([]).brokers
            return bool(waits)

        def free() -> bool:
            """More connections at once than the limit lets a broker take in its 11 s."""
            waits.clear()
            for broker in kafka_431.brokers * 12:
                with Wire(broker.address, {"default_api_timeout_ms": 60_000}, throttled=waits.append):
                    pass
            return not waits

        actions.alter(quotas, Change(entity=entity, add={CONNECTION_CREATION_RATE: 1.0}), attempts())
        try:
            until(delayed, "the limit is in force")
        finally:
            actions.alter(quotas, Change(entity=entity, delete=(CONNECTION_CREATION_RATE,)), attempts())
            until(free, "it is in force no more: other tests do not expect to wait")
