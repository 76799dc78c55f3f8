"""The operations that brokers report: only a missing operation in a meaningful report counts as denied."""

from __future__ import annotations

from collections.abc import Collection
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.protocol.broker_version_data import BrokerVersionData

from kquota.cli.contract import worded
from kquota.errors import Refused
from kquota.stores.admin.permissions import must_permit, must_show
from kquota.stores.admin.settings import WireSettings

pytestmark = pytest.mark.unit

ALTER, DESCRIBE, ALTER_CONFIGS = 7, 8, 11
NOT_FOUND, DENIED = 3, 29


class Broker:
    """Answers Metadata with one topic and the same operations on the topic and the cluster."""

    def __init__(self, operations: Collection[int] | None, error: int = 0) -> None:
        self.operations, self.error = operations, error
        self.requests: list[Any] = []

    def read(self, request: Any) -> Any:
        self.requests.append(request)
        topic = SimpleNamespace(name="t", error_code=self.error, authorized_operations=self.operations)
        return SimpleNamespace(topics=[topic], authorized_operations=self.operations)


def check(broker: Any) -> None:
    must_permit(broker, {"Alter", "AlterConfigs"}, {"t": "AlterConfigs"})


@pytest.mark.parametrize("operations", [None, set(), {3, 4}, {ALTER, DESCRIBE, ALTER_CONFIGS}])
def test_a_report_without_describe_is_unknown(operations: Collection[int] | None) -> None:
    """Kafka reports no operations on the cluster to a user without Describe, who may still have AlterConfigs."""
    check(Broker(operations))


def test_a_missing_operation_is_named() -> None:
    with pytest.raises(Refused) as raised:
        check(Broker({DESCRIBE}))
    assert str(raised.value) == (
        "this user needs AlterConfigs on topic t; Alter and AlterConfigs on the cluster. Nothing was written"
    )


def test_a_hidden_topic_needs_describe_but_a_missing_one_nothing() -> None:
    with pytest.raises(Refused, match="AlterConfigs on topic t; Describe on topic t"):
        check(Broker(None, DENIED))
    check(Broker(None, NOT_FOUND))


def test_a_broker_without_reports_is_asked_in_an_older_version() -> None:
    """Kafka 2.2 has version 7 of Metadata. Only versions 8 to 10 report operations on the cluster."""
    broker = Broker(None)
    check(broker)
    (request,) = broker.requests
    assert [BrokerVersionData(api_versions={3: (0, newest)}).api_version(request) for newest in (7, 13)] == [7, 10]


def test_nothing_to_write_sends_no_request() -> None:
    broker: Any = Broker(None)
    must_permit(broker, (), {})
    assert not broker.requests


def test_an_unreadable_minimum_names_the_option_that_skips_the_check() -> None:
    """Otherwise an operator who must cancel a move at once could not do so."""
    denied = SimpleNamespace(error_code=DENIED, error_message=None, resource_name="t", configs=[])
    wire: Any = SimpleNamespace(read=lambda request: SimpleNamespace(results=[denied]))
    with pytest.raises(Refused) as raised:
        WireSettings(wire).minimum_in_sync(["t"])
    assert worded(raised.value) == (
        "topic t min.insync.replicas: the broker answered TopicAuthorizationFailed (29). "
        "This user needs DescribeConfigs on the topic, or give --force. Nothing was written"
    )


def test_a_hidden_topic_is_refused_and_a_missing_one_is_not() -> None:
    """`read` asks another broker if the first one hangs."""
    missing: Any = Broker(None, NOT_FOUND)
    must_show(missing, ["t"])
    hiding: Any = Broker(None, DENIED)
    with pytest.raises(Refused, match=r"^topic t: .*This user needs Describe on the topic$"):
        must_show(hiding, ["t"])
