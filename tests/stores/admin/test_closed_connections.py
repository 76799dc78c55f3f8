"""A broker that closes new connections, like one that limits them (KIP-612): kquota reconnects for some time."""

from __future__ import annotations

import pytest
from kafka.protocol.metadata import MetadataRequest

from kquota.errors import KquotaError, Unreachable
from kquota.quota import actions
from kquota.quota.entity import Entity
from kquota.quota.limits import QuotaChange
from kquota.sandbox.cluster import Sandbox
from kquota.stores.admin.connection import Wire
from kquota.stores.admin.quotas import WireQuotas
from kquota.terms import CONNECTION_CREATION_RATE
from tests.stores.admin.recorder import Recorder
from tests.waiting import attempts, until

CONNECTIONS = 12
"""More connections at once than a broker with a limit of 1 accepts in its 11 s."""


@pytest.mark.kafka
def test_kquota_reconnects_to_a_broker_that_closes_connections(kafka_431: Sandbox) -> None:
    """Both where a session begins and where it continues with another broker."""
    with Recorder(hang_ups=[0.2, 0.0, 0.12, 0.0]) as recorder, Wire(kafka_431.bootstrap, recorder.settings) as wire:
        for broker in wire.brokers():
            recorder.hang_ups += [0.0, 0.11, 0.0, 0.12]
            assert wire.ask(MetadataRequest(topics=[]), broker).brokers
        recorder.hang_ups += [0.11]
        recorder.cut()
        answers = wire.ask_each(dict.fromkeys(wire.brokers(), MetadataRequest(topics=[])))
        assert not [answer for answer in answers.values() if isinstance(answer, KquotaError)]
    assert recorder.hang_ups == []


@pytest.mark.kafka
def test_the_error_of_a_broker_that_closes_every_connection_names_both_causes(kafka_431: Sandbox) -> None:
    settings = {"default_api_timeout_ms": 5_000}
    with (
        Recorder(hang_ups=[0.0] * 1_000) as recorder,
        pytest.raises(
            Unreachable, match=r"to another listener, or the server may limit .*Check the port, and security"
        ),
    ):
        Wire(kafka_431.brokers[0].address, recorder.settings | settings)


@pytest.mark.kafka
def test_kquota_reaches_a_broker_with_a_real_limit(kafka_431: Sandbox) -> None:
    change = QuotaChange(entity=Entity(ip="127.0.0.1"), add={CONNECTION_CREATION_RATE: 1.0})
    with Wire(kafka_431.bootstrap, {}) as held, Recorder() as recorder:
        quotas = WireQuotas(held)

        def closed() -> bool:
            """True if a broker closed one of many connections before it answered. Each session started nevertheless."""
            recorder.passed.clear()
            for broker in kafka_431.brokers * CONNECTIONS:
                with Wire(broker.address, recorder.settings | {"default_api_timeout_ms": 60_000}):
                    pass
            requested = {message.connection for message in recorder.passed if message.throttle is None}
            return bool(requested - {message.connection for message in recorder.passed if message.throttle is not None})

        actions.alter(quotas, change, attempts())
        try:
            until(closed, "the limit is in force")
        finally:
            actions.alter(quotas, QuotaChange(entity=change.entity, delete=(CONNECTION_CREATION_RATE,)), attempts())
            until(lambda: not closed(), "the limit is removed, because other tests do not expect to wait")
