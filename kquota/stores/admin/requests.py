"""Topics and brokers in DescribeConfigs and IncrementalAlterConfigs: type codes, sources, and the two requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from kafka.protocol.admin.configs import DescribeConfigsRequest, IncrementalAlterConfigsRequest

from kquota.settings.resource import TOPICS, Resource
from kquota.terms import DEFAULT, DYNAMIC_BROKER, DYNAMIC_DEFAULT_BROKER, DYNAMIC_TOPIC, Default

TOPIC: Final = 2
BROKER: Final = 4
SET, DELETE, APPEND, SUBTRACT = range(4)

SOURCES: Final[Mapping[int, str]] = {
    1: DYNAMIC_TOPIC,
    2: DYNAMIC_BROKER,
    3: DYNAMIC_DEFAULT_BROKER,
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
}
"""Kafka's names for the sources of a value (KIP-226)."""

UNKNOWN_TOPIC: Final = 3
FORBIDDEN: Final = (29, 31)
MAYBE_WRITTEN: Final = (-1, 7)
"""Answers after which the write may have been made: an internal error of the server, and its time-out."""

WireResource: TypeAlias = tuple[int, str]
"""A resource in a request: TOPIC or BROKER, and its name. The default of all brokers has the empty name."""
Operation: TypeAlias = tuple[int, str | None]
"""An operation on a value: SET, DELETE, APPEND or SUBTRACT, with the value."""


def on_the_wire(resource: Resource) -> WireResource:
    """Return the type and the name of a resource in requests and answers."""
    name = "" if isinstance(resource.name, Default) else resource.name
    return (TOPIC if resource.kind == TOPICS else BROKER), name


def own_source(resource: Resource) -> int:
    """Return the source of values that are set on this resource itself. It has precedence over all other sources."""
    if resource.kind == TOPICS:
        return 1
    return 3 if resource.name is DEFAULT else 2


def describe_request(resources: Mapping[Resource, Sequence[str] | None], *, synonyms: bool) -> Any:
    """Return a request for the configs of the resources, for the given keys or for all (None)."""
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


def alter_request(changes: Mapping[Resource, Mapping[str, Operation]]) -> Any:
    """Return a request that changes single keys. The other keys of the resource do not change."""
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
    """Return the results of an answer to either request, by resource."""
    return {(result.resource_type, result.resource_name): result for result in results}
