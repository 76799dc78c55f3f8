"""The configs of resources, including dead brokers, through the active controller of a KRaft cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kquota.addresses import host_and_port
from kquota.entity_types import BROKER_LOGGERS, BROKERS
from kquota.errors import KquotaError, Parameter, Refused, Unreachable
from kquota.reassign.moves import PartitionReplicas
from kquota.settings.resource import Resource, ResourceKind
from kquota.stores.admin.configs import WireConfigs
from kquota.stores.admin.connection import CONNECT_SECONDS, was_sent
from kquota.stores.admin.controllers import ControllerWire
from kquota.stores.admin.requests import ConfigOperation, alter_request, by_resource, on_the_wire
from kquota.stores.admin.running import RunningMovesRequest, ask_controller, by_topic, listed
from kquota.terms import BrokerId, TopicPartition


class ControllerConfigs(WireConfigs):
    """The configs of resources through the active controller. Implements `Configs`.

    A controller reports only the broker configs of its own node, so kquota can change the configs of other brokers but
    not read them. Loggers belong to a process, so each controller shows and changes only its own loggers.
    """

    _wire: ControllerWire
    _NO_READER = "the active controller does not answer. Check that the controllers are running"

    def resources(self, kind: ResourceKind) -> tuple[Resource, ...]:
        if kind == BROKER_LOGGERS:
            nodes = ", ".join(map(str, self._wire.brokers()))
            raise Refused(
                f"a controller reports only its own loggers. Name one of the controllers ({nodes}), or use ",
                Parameter("bootstrap_server"),
            )
        if kind == BROKERS:
            # A name would not help, because a controller cannot show the configs of another node.
            unlisted = "controllers do not list brokers, and each controller shows only its own configs. Use "
            raise Refused(unlisted, Parameter("bootstrap_server"))
        raise Refused(f"controllers do not list {kind}. Name one of the {kind}, or use ", Parameter("bootstrap_server"))

    @property
    def cluster_id(self) -> str:
        return self._wire.cluster_id

    @property
    def active(self) -> str:
        """The active controller as text for messages, for example `controller 3 at host:9093`."""
        controller = self._wire.controller
        node = None if controller is None else self._wire.brokers().get(controller)
        at = "" if node is None else f" at {host_and_port(node.host, node.port)}"
        return f"controller {controller}{at}"

    def running(self) -> dict[TopicPartition, PartitionReplicas]:
        """Return the running reassignments, sorted. Raises the same errors as `running.moving`."""
        return listed(by_topic(ask_controller(self._wire, RunningMovesRequest(), CONNECT_SECONDS)))

    def altered(
        self, operations: Mapping[Resource, Mapping[str, ConfigOperation]]
    ) -> dict[Resource, Any | KquotaError]:
        """Write loggers through their own controllers, and all other configs through the active controller."""
        if not operations:
            return {}
        if any(resource.kind == BROKER_LOGGERS for resource in operations):
            return super().altered(operations)
        self._must_hold()
        request = alter_request(operations)
        try:
            answer = ask_controller(self._wire, request, CONNECT_SECONDS, results=lambda answer: answer.responses)
        except Unreachable as error:
            if not was_sent(request, error):
                return dict.fromkeys(operations, Refused(f"{error}. Nothing was written"))
            return dict.fromkeys(operations, error)
        except KquotaError as error:
            return dict.fromkeys(operations, error)
        results = by_resource(answer.responses)
        return {resource: results[on_the_wire(resource)] for resource in operations}

    def _readers(self) -> list[BrokerId]:
        """Return the active controller, because only it answers for shared resources. The list is empty if the active
        controller is unknown or did not answer.
        """
        active = self._wire.controller
        return [] if active is None or active in self._silent else [active]
