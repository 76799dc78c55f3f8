"""Creates, describes, checks and deletes the topic of the shared record."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from kquota.errors import KquotaError, NextStep, QuotaViolatedException, Refused, Retry, StepFor, Unknown, Unreachable
from kquota.measure import counted
from kquota.mutation.port import EXISTS, Failure
from kquota.mutation.topic import Creation, Deletion, Mutation
from kquota.settings.resource import TOPICS, Resource
from kquota.stores.admin.broker_metadata import WireSight
from kquota.stores.admin.connection import Wire, kafka_error, metadata_request, was_sent
from kquota.stores.admin.partition import NO_LEADER_YET
from kquota.stores.admin.requests import (
    FORBIDDEN,
    TOPIC_DENIED,
    UNKNOWN_TOPIC,
    by_resource,
    describe_request,
    on_the_wire,
)
from kquota.stores.admin.topics import WireTopics
from kquota.stores.admin.wire_format import printed_id
from kquota.stores.state.log import Forbidden
from kquota.terms import MAYBE_WRITTEN, WITHOUT_ZOOKEEPER

_CONFIGS: Final = {
    "cleanup.policy": "compact",
    "message.timestamp.type": "LogAppendTime",
    "min.insync.replicas": "2",
    "unclean.leader.election.enable": "false",
    "segment.ms": "600000",
    "min.cleanable.dirty.ratio": "0.01",
    "max.message.bytes": "1048588",
    "compression.type": "producer",
}
"""The configs of a new topic with `_REPLICAS` replicas."""

_REPLICAS: Final = 3
_SECONDS: Final = 30.0
_PAUSE_SECONDS: Final = 0.05
_READABLE: Final = ("producer", "uncompressed", "gzip")
"""Values of `compression.type` for batches that kafka-python can read without another library."""
_LARGEST_BATCH: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTopic:
    """The setup of the record's topic."""

    identity: str
    """The topic id as Kafka prints it, or an empty string before Kafka 2.8."""
    partitions: int
    replicas: int
    """The lowest replication factor of a partition, or 0 without partitions."""
    configs: Mapping[str, str] | None = None
    """The topic's values for the keys in `_CONFIGS`, or None if this user may not read them."""


def create(wire: Wire, name: str, *, dry_run: bool = False) -> Creation:
    """Create the topic, wait until every broker shows its leader, and return its `Creation`.

    A dry run only returns the `Creation`. Raises:

    - Forbidden: this user lacks a permission on the topic.
    - Refused: the topic exists, or the brokers refused the request for another reason.
    - QuotaViolatedException: a mutation quota rejected the request.
    - Unreachable: the request was not sent.
    - Unknown: the topic may have been created, or a broker does not show its leader within 30 s.
    """
    replicas = min(_REPLICAS, len(wire.brokers()))
    wanted = Creation(
        topic=name,
        partitions=1,
        replication_factor=replicas,
        configs=_CONFIGS if replicas >= _REPLICAS else {**_CONFIGS, "min.insync.replicas": "1"},
    )
    if dry_run:
        return wanted
    _mutate(wire, wanted, "created")
    sight = WireSight(wire)
    _wait(name, lambda: sight.behind({name: 1}) == 0, "was created, but not every broker shows its leader")
    return wanted


def delete(wire: Wire, name: str) -> None:
    """Delete the topic. Wait until its name is free, and no broker that answers shows the topic.

    Raises the errors of `create`. Here, Refused also means that the topic does not exist, and Unknown that the topic
    may have been deleted, or that its name may still be in use after 30 s.
    """
    _mutate(wire, Deletion(topic=name, partitions=1), "deleted")
    free = "was deleted, but its name may still be in use"
    _wait(name, lambda: _no_broker_shows(wire, name) and _free(wire, name), free)


def describe(wire: Wire, name: str) -> LogTopic | None:
    """Return the setup of the topic, or None if the topic does not exist.

    Raises Forbidden if this user cannot see the topic, Refused after another error, and Unreachable if there is no
    answer.
    """
    (found,) = wire.metadata([name]).topics
    if found.error_code == UNKNOWN_TOPIC:
        return None
    if found.error_code not in (0, NO_LEADER_YET):
        raise _refusal(name, found.error_code, kafka_error(found.error_code, None))
    return LogTopic(
        identity=printed_id(found.topic_id) or "",
        partitions=len(found.partitions),
        replicas=min((len(partition.replica_nodes) for partition in found.partitions), default=0),
        configs=_configs(wire, name),
    )


def wrong(topic: LogTopic) -> tuple[str, ...]:
    """Return the reasons why the topic cannot hold the record. An unreadable config is not checked."""
    configs = topic.configs or {}
    found = []
    if topic.partitions != 1:
        found.append(f"it has {topic.partitions} partitions, and the record needs one")
    if (policy := configs.get("cleanup.policy", "compact")) != "compact":
        found.append(f"cleanup.policy is {policy}, but must be compact")
    if (stamp := configs.get("message.timestamp.type", "LogAppendTime")) != "LogAppendTime":
        found.append(f"message.timestamp.type is {stamp}, but must be LogAppendTime")
    if (codec := configs.get("compression.type", "producer")) not in _READABLE:
        found.append(f"compression.type is {codec}, but must be one of {', '.join(_READABLE)}")
    return tuple(found)


def weak(topic: LogTopic, brokers: int) -> tuple[str, ...]:
    """Return problems of the topic that can lose records or make writes fail. `brokers` is the number of live brokers.

    Unreadable configs are also a problem.
    """
    configs = topic.configs
    found = []
    if topic.replicas < (replicas := min(_REPLICAS, brokers)):
        found.append(f"replication factor is {topic.replicas}, but should be {replicas}")
    if configs is None:
        return (*found, "its configs cannot be read; this user needs DescribeConfigs on the topic")
    least = 2 if topic.replicas >= _REPLICAS else 1
    if (insync := int(configs.get("min.insync.replicas", least))) < least:
        found.append(f"min.insync.replicas is {insync}, but should be {least}: records can be lost if a broker fails")
    elif insync > topic.replicas:
        # Kafka 3.9 and 4.3 lower the value to the number of replicas (Partition.effectiveMinIsr), and 2.8 does not.
        found.append(
            f"min.insync.replicas is {insync}, but the topic has {counted(topic.replicas, 'replica')}: old brokers, "
            f"for example of Kafka 2.8, refuse every write. It should be {least}"
        )
    elif topic.replicas > 1 and insync == topic.replicas:
        found.append(
            f"min.insync.replicas is {insync}, and the topic has {topic.replicas} replicas: writes fail while a broker "
            "is down"
        )
    if configs.get("unclean.leader.election.enable") == "true":
        found.append("unclean.leader.election.enable is true: an election can lose records")
    if int(size := configs.get("max.message.bytes", _LARGEST_BATCH)) < _LARGEST_BATCH:
        found.append(f"max.message.bytes is {size}, but should be {_LARGEST_BATCH} or more")
    return tuple(found)


def _configs(wire: Wire, name: str) -> dict[str, str] | None:
    topic = Resource(kind=TOPICS, name=name)
    answer = wire.ask(describe_request({topic: tuple(_CONFIGS)}, synonyms=False))
    result = by_resource(answer.results)[on_the_wire(topic)]
    if result.error_code in FORBIDDEN:
        return None
    if result.error_code:
        raise Refused(f"topic {name}: the broker answered {kafka_error(result.error_code, result.error_message)}")
    return {config.name: config.value for config in result.configs if config.value is not None}


def _mutate(wire: Wire, wanted: Mutation, done: str) -> None:
    topics = WireTopics(wire)
    request = topics.request([wanted], _SECONDS)
    try:
        answer = topics.answer(request, [wanted])
    except Unreachable as error:
        if not was_sent(request, error):
            raise
        lost = f"topic {wanted.topic} may have been {done} ("
        raise Unknown(lost, error, "). Check with ", StepFor(NextStep.SHOW_TOPIC, wanted.topic)) from error
    if (failure := answer.outcomes[wanted.topic]) is None:
        return
    if failure.rejected:
        seconds = answer.throttle_time_ms / 1000
        reason = f"topic {wanted.topic}: controller_mutation_rate rejected the request. Try again in {seconds:.1f} s"
        raise QuotaViolatedException(answer.throttle_time_ms, reason)
    raise _failed(wanted, failure, done)


def _failed(wanted: Mutation, failure: Failure, done: str) -> KquotaError:
    if failure.code == EXISTS:
        return Refused(f"topic {wanted.topic} already exists", Retry(". Run the command again"))
    if failure.code in MAYBE_WRITTEN:
        words = f"topic {wanted.topic}: the broker answered {failure.reason}. The topic may have been {done}"
        return Unknown(words, ". Check with ", StepFor(NextStep.SHOW_TOPIC, wanted.topic))
    return _refusal(wanted.topic, failure.code, failure.reason)


def _refusal(name: str, code: int, reason: str) -> Refused:
    words = f"topic {name}: the broker answered {reason}"
    if code == TOPIC_DENIED:
        return Forbidden(f"{words}. Check the permissions of this user on the topic")
    return Refused(words)


def _no_broker_shows(wire: Wire, name: str) -> bool:
    answers = wire.ask_each(dict.fromkeys(wire.brokers(), metadata_request([name]))).values()
    return all(isinstance(answer, KquotaError) or answer.topics[0].error_code == UNKNOWN_TOPIC for answer in answers)


def _free(wire: Wire, name: str) -> bool:
    """Return True if the name of the deleted topic is free. Before Kafka 4.0, asks the controller, because on a
    ZooKeeper cluster the topic's znode may still exist when no broker shows the topic.
    """
    if wire.version() >= WITHOUT_ZOOKEEPER:
        return True
    wanted = Creation(topic=name, partitions=1, replication_factor=1)
    try:
        failure = WireTopics(wire, validate_only=True).send([wanted], _SECONDS).outcomes[name]
    except Unreachable:
        return False
    return failure is None or failure.code != EXISTS


def _wait(name: str, seen: Callable[[], bool], failure: str) -> None:
    give_up = time.monotonic() + _SECONDS
    while not seen():
        if time.monotonic() > give_up:
            words = f"topic {name} {failure} after {_SECONDS:.0f} s. Check with "
            raise Unknown(words, StepFor(NextStep.SHOW_TOPIC, name))
        time.sleep(_PAUSE_SECONDS)
