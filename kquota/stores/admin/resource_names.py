"""The names of groups and of subscriptions to client metrics: ListConfigResources (KIP-714, KIP-1142), ListGroups."""

from __future__ import annotations

from typing import Any

from kafka.protocol.admin.configs import ListConfigResourcesRequest
from kafka.protocol.admin.groups import ListGroupsRequest

from kquota.entity_types import CLIENT_METRICS, GROUPS, Kind
from kquota.errors import KquotaError, Refused
from kquota.stores.admin.connection import Wire, kafka_error
from kquota.stores.admin.requests import code_of


def client_metrics(wire: Wire) -> set[str]:
    """Return the names of the subscriptions to client metrics."""
    return _configured(wire, CLIENT_METRICS, oldest=0)


def groups(wire: Wire) -> set[str]:
    """Return the ids of all groups: those that have configs, and those that a coordinator lists."""
    found = _configured(wire, GROUPS, oldest=1)
    for broker, answer in wire.ask_each(dict.fromkeys(wire.brokers(), ListGroupsRequest())).items():
        if isinstance(answer, KquotaError):
            raise answer
        _must_be_listed(f"groups of broker {broker}", answer)
        found.update(group.group_id for group in answer.groups)
    return found


def _configured(wire: Wire, kind: Kind, *, oldest: int) -> set[str]:
    """Return the names of the resources that have configs. `oldest` is the first request version with this kind."""
    asked = ListConfigResourcesRequest(resource_types=[code_of(kind)], min_version=oldest)
    try:
        answer = wire.ask(asked)
    except Refused as error:
        raise Refused(f"{kind}: these brokers cannot list all {kind}. Give a name") from error
    _must_be_listed(kind, answer)
    return {resource.resource_name for resource in answer.config_resources}


def _must_be_listed(what: str, answer: Any) -> None:
    if answer.error_code:
        raise Refused(f"listing {what}: the broker answered {kafka_error(answer.error_code, None)}")
