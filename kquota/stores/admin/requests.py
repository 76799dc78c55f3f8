"""Resources in DescribeConfigs and IncrementalAlterConfigs: type codes, sources, and the two requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from kafka.protocol.admin.configs import DescribeConfigsRequest, IncrementalAlterConfigsRequest

from kquota.entity_types import ENTITIES, ResourceKind, WireType
from kquota.settings.resource import Resource
from kquota.terms import Default

_WIRE: Final[Mapping[str, WireType]] = {kind: row.wire for kind, row in ENTITIES.items() if row.wire is not None}
SET, DELETE, APPEND, SUBTRACT = range(4)

SOURCES: Final[Mapping[int, str]] = {
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
    **dict(wire.source for wire in _WIRE.values()),
    **dict(wire.default_source for wire in _WIRE.values() if wire.default_source is not None),
}
"""Kafka's names for the sources of a value, by code (KIP-226 and later)."""

UNKNOWN_TOPIC: Final = 3
TOPIC_DENIED: Final = 29
CLUSTER_DENIED: Final = 31
FORBIDDEN: Final = (TOPIC_DENIED, CLUSTER_DENIED)

WireResource: TypeAlias = tuple[int, str]
"""A resource in a request: the code of its type, and its name. The broker default has the empty name."""
ConfigOperation: TypeAlias = tuple[int, str | None]
"""`SET`, `DELETE`, `APPEND` or `SUBTRACT`, and the value (None for `DELETE`)."""


def on_the_wire(resource: Resource) -> WireResource:
    """Return the type code and the name of a resource in requests and answers."""
    name = "" if isinstance(resource.name, Default) else resource.name
    return code_of(resource.kind), name


def code_of(kind: ResourceKind) -> int:
    """Return the code of a resource type in requests."""
    return _WIRE[kind].code


def own_source(resource: Resource) -> int:
    """Return the code of the source that brokers report for a value that is set on this resource itself."""
    wire = _WIRE[resource.kind]
    default = wire.default_source if isinstance(resource.name, Default) else None
    return (default or wire.source).code


def describe_request(resources: Mapping[Resource, Sequence[str] | None], *, synonyms: bool) -> Any:
    """Return a request for the configs of the resources. Each resource has the keys to read, or None for all keys.

    With `synonyms`, the answer includes the synonyms of each config (KIP-226).
    """
    wire = DescribeConfigsRequest.DescribeConfigsResource
    named = [(*on_the_wire(resource), keys) for resource, keys in resources.items()]
    return DescribeConfigsRequest(
        resources=[
            wire(resource_type=kind, resource_name=name, configuration_keys=None if keys is None else list(keys))
            for kind, name, keys in named
        ],
        include_synonyms=synonyms,
        include_documentation=False,
        min_version=1,
    )


def alter_request(changes: Mapping[Resource, Mapping[str, ConfigOperation]]) -> Any:
    """Return a request that changes the given keys. The other keys of each resource do not change."""
    wire = IncrementalAlterConfigsRequest.AlterConfigsResource
    named = [(*on_the_wire(resource), operations) for resource, operations in changes.items()]
    return IncrementalAlterConfigsRequest(
        resources=[
            wire(
                resource_type=kind,
                resource_name=name,
                configs=[
                    wire.AlterableConfig(name=key, config_operation=operation, value=value)
                    for key, (operation, value) in operations.items()
                ],
            )
            for kind, name, operations in named
        ],
        validate_only=False,
    )


def by_resource(results: Sequence[Any]) -> dict[WireResource, Any]:
    """Return the results of an answer to DescribeConfigs or IncrementalAlterConfigs, by resource."""
    return {(result.resource_type, result.resource_name): result for result in results}
