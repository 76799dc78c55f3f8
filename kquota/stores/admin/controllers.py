"""The controllers of a KRaft cluster (KIP-853), and connections to the active one (KIP-919).

Controllers accept config changes for every broker, including dead ones. They do not answer Metadata requests, so kquota
sends them DescribeCluster instead.
"""

from __future__ import annotations

import contextlib
from typing import Any, Final

import kafka.errors as kafka_errors
from kafka.net.manager import ClusterMetadata  # kafka.cluster cannot be imported before kafka.net
from kafka.net.selector import NetworkSelector
from kafka.protocol.admin.cluster import DescribeClusterRequest, DescribeQuorumRequest
from kafka.protocol.metadata import MetadataResponse

from kquota.addresses import host_and_port
from kquota.errors import KquotaError, NotSent, Refused, Unreachable
from kquota.settings.resource import BROKERS, Resource
from kquota.stores.admin.client import Manager
from kquota.stores.admin.connection import Wire
from kquota.stores.admin.requests import describe_request

_CONTROLLERS: Final = 2
"""The endpoint type of controllers in DescribeCluster."""
_METADATA_VERSION: Final = 9
_FIND_SECONDS: Final = 4.0
"""The time limit in seconds of each request that looks for controllers. The limit is short, because a broker that finds
no controller holds requests that it must forward.
"""
_ACTIVE_SECONDS: Final = 8.0
_NOT_A_CONTROLLER: Final = (
    kafka_errors.MismatchedEndpointTypeError,
    kafka_errors.UnsupportedEndpointTypeError,
    kafka_errors.IncompatibleBrokerVersion,
)
_VOTERS: Final = ("controller.quorum.bootstrap.servers", "controller.quorum.voters")

_Topic = DescribeQuorumRequest.TopicData


class ControllerMetadata(ClusterMetadata):  # type: ignore[misc]
    """kafka-python's metadata, with the controllers instead of the brokers."""

    def metadata_request(self) -> Any:
        return DescribeClusterRequest(endpoint_type=_CONTROLLERS, min_version=1)

    def update_metadata(self, metadata: Any) -> None:
        """Update the known controllers. Raise KafkaError for an error in the answer, and for an answer without an
        active controller, so that kafka-python asks again.
        """
        error: Exception | None = None
        if metadata.error_code:
            error = kafka_errors.for_code(metadata.error_code)(metadata.error_message)
        elif metadata.controller_id not in {node.broker_id for node in metadata.brokers}:
            error = kafka_errors.BrokerNotAvailableError("the controllers have not elected an active controller")
        if error is not None:
            self.failed_update(error)
            raise error
        super().update_metadata(_as_metadata(metadata))

    def failed_update(self, exception: Any) -> None:
        """Record a failure, as ClusterMetadata does. Stop the attempts to connect if another attempt cannot help."""
        super().failed_update(exception)
        self._manager.unanswered(exception)


class ControllerManager(Manager):
    """A manager of connections to controllers."""

    def __init__(self, net: NetworkSelector, **settings: Any) -> None:
        super().__init__(net, **settings)
        self.cluster = ControllerMetadata(bootstrap_servers=self.config["bootstrap_servers"])
        self.cluster.attach(self)

    def unanswered(self, error: Exception) -> None:
        """Record why the controllers are unknown. End the bootstrap if the port is not that of a controller, or the
        controller is older than Kafka 3.7.
        """
        if isinstance(error, _NOT_A_CONTROLLER):
            why = "this is not the port of a controller of Kafka 3.7 or newer. Brokers use another port"
            self._failed(Refused(why), final=True)
        else:
            self._failed(error, final=False)


class ControllerWire(Wire):
    """An open connection to the controllers. `brokers` returns the controllers, and `controller` the active one."""

    MANAGER = ControllerManager

    def refresh(self) -> None:
        """Read again which controller is the active one. Keep the previous answer if this fails."""
        with contextlib.suppress(kafka_errors.KafkaError, Unreachable, Refused):
            answer = self.ask(self._manager.cluster.metadata_request(), None, _FIND_SECONDS)
            self._manager.cluster.update_metadata(answer)


def reported(wire: Wire) -> str | None:
    """Return the addresses of the controllers (host:port, separated by commas), as a broker reports them.

    None means that this is not a KRaft cluster, or that no broker reported addresses. Kafka 3.9 and newer report the
    addresses of the quorum, and kquota puts the active controller first. If no addresses are reported, kquota reads
    those in the configuration of one broker, and keeps their order.
    """
    found = _quorum(wire) or _configured(wire)
    return ",".join(found) or None


def must_be_active(wire: Wire) -> None:
    """Raise NotSent if the brokers of a KRaft cluster reach no active controller.

    Without this check, a broker that finds no controller would hold a write for its whole timeout. After a success,
    kquota does not check the same connection again.
    """
    if wire.has_controller:
        return
    try:
        wire.ask(_about_the_quorum(), None, _ACTIVE_SECONDS)
    except Refused:
        pass  # the cluster uses ZooKeeper, so it has no quorum
    except Unreachable as error:
        words = f"no active controller answered through the brokers ({error}). Nothing was written. "
        raise NotSent(f"{words}Check that the controllers are running") from error
    wire.has_controller = True


def _about_the_quorum() -> Any:
    topic = _Topic(topic_name="__cluster_metadata", partitions=[_Topic.PartitionData(partition_index=0)])
    return DescribeQuorumRequest(topics=[topic])


def _quorum(wire: Wire) -> list[str]:
    try:
        answer = wire.ask(_about_the_quorum(), None, _FIND_SECONDS)
    except (Unreachable, Refused):
        return []
    if answer.error_code or not answer.nodes:
        return []
    leaders = {part.leader_id for named in answer.topics for part in named.partitions}
    nodes = sorted(answer.nodes, key=lambda node: (node.node_id not in leaders, node.node_id))
    return [host_and_port(listener.host, listener.port) for node in nodes for listener in node.listeners]


def _configured(wire: Wire) -> list[str]:
    broker = next(iter(wire.brokers()), None)
    if broker is None:
        return []
    resource = Resource(kind=BROKERS, name=str(broker))
    try:
        answer = wire.ask(describe_request({resource: _VOTERS}, synonyms=False), broker, _FIND_SECONDS)
    except KquotaError:
        return []
    texts = {config.name: config.value or "" for result in answer.results for config in result.configs or ()}
    for key in _VOTERS:
        if servers := [part.strip().rpartition("@")[2] for part in texts.get(key, "").split(",") if part.strip()]:
            return servers
    return []


def _as_metadata(answer: Any) -> Any:
    node, version = MetadataResponse.MetadataResponseBroker, _METADATA_VERSION
    return MetadataResponse(
        brokers=[node(one.broker_id, one.host, one.port, one.rack, version=version) for one in answer.brokers],
        cluster_id=answer.cluster_id,
        controller_id=answer.controller_id,
        topics=[],
        version=version,
    )
