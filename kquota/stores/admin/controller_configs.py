"""The configs of resources, including dead brokers, through the active controller of a KRaft cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kquota.entity_types import BROKER_LOGGERS
from kquota.errors import KquotaError, Refused, Unreachable
from kquota.reassign.moves import PartitionReplicas
from kquota.settings.resource import Kind, Resource
from kquota.stores.admin.configs import WireConfigs
from kquota.stores.admin.connection import was_sent
from kquota.stores.admin.controllers import ControllerWire
from kquota.stores.admin.requests import Operation, alter_request, by_resource, on_the_wire
from kquota.stores.admin.running import NOT_CONTROLLER, RunningMovesRequest, by_topic, listed
from kquota.terms import BrokerId, TopicPartition


class ControllerConfigs(WireConfigs):
    """The configs of resources through the active controller. Implements `Configs`.

    A controller reports only the broker configs of its own node, so kquota can change the configs of other brokers but
    not read them. Loggers belong to a process, so each controller shows and changes only its own loggers.
    """

    _wire: ControllerWire

    def resources(self, kind: Kind) -> tuple[Resource, ...]:
        if kind == BROKER_LOGGERS:
            nodes = ", ".join(map(str, self._wire.brokers()))
            raise Refused(f"a controller reports only its own loggers (controllers: {nodes}). Connect to the brokers")
        raise Refused(f"controllers do not list {kind}. Name one of the {kind}, or connect to the brokers")

    def configured(self, kind: Kind) -> tuple[Resource, ...]:
        return self.resources(kind)

    @property
    def cluster_id(self) -> str:
        """The cluster id that the controllers report."""
        return self._wire.cluster_id

    @property
    def active(self) -> str:
        """The active controller as text for messages, for example `controller 3 at host:9093`."""
        controller = self._wire.controller
        node = None if controller is None else self._wire.brokers().get(controller)
        return f"controller {controller}" if node is None else f"controller {controller} at {node.host}:{node.port}"

    def running(self) -> dict[TopicPartition, PartitionReplicas]:
        """Return the running reassignments, as the active controller lists them."""
        return listed(by_topic(self._wire.ask_active(RunningMovesRequest(), lambda answer: answer.error_code)))

    def altered(self, operations: Mapping[Resource, Mapping[str, Operation]]) -> dict[Resource, Any | KquotaError]:
        """Write through the active controller, and return its answer or the error for each resource."""
        return self._altered(operations) if operations else {}

    def _altered(self, operations: Mapping[Resource, Mapping[str, Operation]]) -> dict[Resource, Any | KquotaError]:
        """Write loggers through their own controllers, and all other configs through the active controller."""
        if any(resource.kind == BROKER_LOGGERS for resource in operations):
            return super()._altered(operations)
        self._must_hold()
        request = alter_request(operations)
        try:
            answer = self._wire.ask_active(request, _code)
        except Unreachable as error:
            if not was_sent(request, error):
                return dict.fromkeys(operations, Refused(f"{error}. Nothing was written"))
            return dict.fromkeys(operations, error)
        except KquotaError as error:
            return dict.fromkeys(operations, error)
        results = by_resource(answer.responses)
        return {resource: results[on_the_wire(resource)] for resource in operations}

    def _by_broker(self, resources: Iterable[Resource]) -> dict[BrokerId, list[Resource]]:
        """Group the resources by the controller to ask. Brokers that are not controllers are left out."""
        controllers, active = self._wire.brokers(), self._wire.controller
        sent: dict[BrokerId, list[Resource]] = {}
        for resource in resources:
            node = BrokerId(int(str(resource.name))) if resource.of_broker else active
            if node is not None and node in controllers:
                sent.setdefault(node, []).append(resource)
        return sent


def _code(answer: Any) -> int:
    """Return `NOT_CONTROLLER` if the controller wrote nothing because it is not the active one, otherwise 0."""
    return NOT_CONTROLLER if any(one.error_code == NOT_CONTROLLER for one in answer.responses) else 0
