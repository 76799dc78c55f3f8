"""The MoveCluster port on ZooKeeper: `/brokers`, `/config`, `/admin/reassign_partitions` (KIP-73, KIP-455)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from kquota.errors import Conflict, ExamineZnode, KquotaError, Refused, Unknown, Unreachable
from kquota.reassign.moves import PartitionReplicas, Replicas
from kquota.reassign.port import Overwritten, Snapshot
from kquota.settings.change import Change
from kquota.settings.resource import BROKERS, Resource, Setting
from kquota.stores.zookeeper.configs import Fence, ZooKeeperConfigs, entity_path
from kquota.stores.zookeeper.topics import (
    SUBMITTED,
    TopicNode,
    json_object,
    leader_and_isr,
    not_begun,
    partitions,
    plain_id,
    requested,
    running,
    submitted,
    topic_in,
)
from kquota.stores.zookeeper.znode import EVERY_TOPIC, LIVE_BROKERS, NOTIFICATIONS, Create, Node, config_in
from kquota.stores.zookeeper.znodes import ConfigEdit, Znodes
from kquota.terms import DEFAULT, MIN_IN_SYNC, BrokerId, TopicPartition, is_id, wrong_topic_name

_LARGEST_NODE: Final = 1_000_000
"""The maximum size of a znode in bytes. ZooKeeper rejects a packet of 1 MiB (`jute.maxbuffer`), which also contains the
path and the ACL.
"""
_BATCH_BYTES: Final = 700_000
"""The maximum size in bytes of the configs in one transaction, which also contains the run's record."""
_ENTITY_BYTES: Final = 2_000
"""An upper estimate of the bytes that an entity's other configs and its notification add to a transaction."""
_ALL_BROKERS: Final = entity_path(Resource(kind=BROKERS, name=DEFAULT))
_APPLY_SECONDS: Final = 0.5
_APPLY_SECONDS_EACH: Final = 0.004
"""The seconds per notification that the brokers may take to apply changed configs.

For every change, the brokers read all notifications of the last 15 minutes again (measured: 0.1 s with a few
notifications, 1 to 2.3 s with 1,000 to 2,000).
"""


class ZooKeeperMoves(ZooKeeperConfigs):
    """Moves of replicas, over the ZooKeeper of the cluster. Implements `MoveCluster` and `Configs`."""

    stale_seconds = 0.0
    largest_submission = 700_000
    """The maximum number of bytes in a submission. All its moves must fit into one znode, which the controller deletes
    when the last move has ended.
    """

    def __init__(self, znodes: Znodes, unreadable: Callable[[Refused], None], fence: Fence | None = None) -> None:
        super().__init__(znodes, unreadable, fence)
        self._changed: float | None = None
        self._warned: set[str] = set()
        self._brokers = znodes.names.bootstrap_server

    def snapshot(self, topics: Collection[str] | None) -> Snapshot:
        """Return the snapshot, including the moves that were submitted through the Admin API (since Kafka 2.4).

        A topic whose znode Kafka did not write is left out. A leader or a rack that cannot be read is None, and in-sync
        replicas that cannot be read are (). kquota warns once about each. Raises Refused if
        `/admin/reassign_partitions` cannot be read.
        """
        node = self._znodes.read(SUBMITTED)
        every = [(topic, f"{EVERY_TOPIC}/{topic}") for topic in self._znodes.children(EVERY_TOPIC)]
        nodes = self._znodes.read_all(path for _, path in every)
        topics_nodes = {topic: found for topic, path in every if (found := nodes[path]) is not None}
        moving = submitted(node, topics_nodes)
        known = self._topics(topics_nodes)
        wanted = known.keys() if topics is None else set(topics) & known.keys()
        named = {
            name: state for topic in sorted(wanted) for name, state in partitions(topic, known[topic], moving).items()
        }
        return Snapshot(
            racks=self._racks(),
            partitions=self._with_states(named),
            running=running(known, moving),
            topic_ids={topic: found.topic_id for topic, found in known.items() if found.topic_id is not None},
            not_begun=frozenset(not_begun(known, moving)),
        )

    def values(self, settings: Collection[Setting]) -> Mapping[Setting, str | None]:
        """Also raises Refused for a config that Kafka did not write, and for a value that is not a string."""
        configs = self._configs({entity_path(setting.resource) for setting in settings})
        return {setting: _value(setting, configs[entity_path(setting.resource)]) for setting in settings}

    def overwrite(self, values: Mapping[Setting, str | None]) -> Overwritten:
        """Raise Unreachable. Over ZooKeeper, `change` also writes the settings of dead brokers."""
        raise Unreachable(
            f"{next(iter(values), 'no setting')}: a ZooKeeper cluster has no KRaft controllers to write it"
        )

    def change(self, changes: Sequence[Change]) -> Mapping[Setting, KquotaError]:
        """Write the changes in one transaction, or in several if they are too large for ZooKeeper.

        If a transaction fails, kquota continues with the next one. If the session was lost, the error is Unknown.
        kquota skips a change whose `after` equals its `before`, because every reader already sees this value.
        """
        changes = [change for change in changes if change.after != change.before]
        missing = frozenset(self._missing([change.setting.resource for change in changes]))
        errors: dict[Setting, KquotaError] = {}
        for batch in _batches(changes):
            edits = {entity: _edit(those, missing) for entity, those in batch.items()}
            failed: KquotaError | None = None
            try:
                self._znodes.alter_configs(edits, also=self._fence.operations)
                self._fence.committed()
            except (Conflict, Refused) as error:
                failed = error
            except Unreachable as error:
                failed = Unknown(str(error))
            if failed is None:
                self._changed = time.monotonic()
            else:
                errors |= {change.setting: failed for those in batch.values() for change in those}
        return errors

    def must_permit(self, settings: Collection[Setting], *, moves: bool) -> None:
        """Raise nothing, because ZooKeeper checks the ACL of each znode only when a client writes to it."""

    def minimum_in_sync(self, topics: Collection[str]) -> Mapping[str, int]:
        """Return the `min.insync.replicas` of each topic: its own value, or the highest dynamic value of a live broker.
        The value of the leader applies, and any broker can become the leader.

        The static default of the brokers, which can be higher, is not read, because ZooKeeper does not store static
        configs. Raises Refused for a config that Kafka did not write, and for a value that is not a number.
        """
        configs = self._configs(f"topics/{topic}" for topic in topics)
        own = {path: _minimum(path, config) for path, config in configs.items() if MIN_IN_SYNC in config}
        otherwise = self._minimum_of_brokers() if len(own) < len(configs) else 1
        return {topic: own.get(f"topics/{topic}", otherwise) for topic in topics}

    def _minimum_of_brokers(self) -> int:
        """Return the highest `min.insync.replicas` of a live broker: its own dynamic value, else the dynamic default of
        all brokers, else 1.
        """
        configs = self._configs([_ALL_BROKERS, *(f"brokers/{name}" for name in self._znodes.children(LIVE_BROKERS))])
        default = _minimum(_ALL_BROKERS, configs.pop(_ALL_BROKERS))
        return max((_minimum(path, config, default) for path, config in configs.items()), default=default)

    def _configs(self, paths: Iterable[str]) -> dict[str, Mapping[str, object]]:
        wanted = list(paths)
        nodes = self._znodes.read_all(f"/config/{path}" for path in wanted)
        return {path: config_in(nodes[f"/config/{path}"], path) for path in wanted}

    def submit(self, targets: Mapping[TopicPartition, Replicas | None]) -> Mapping[TopicPartition, str]:
        """Submit the moves in one znode. The controller reads this znode once, and deletes it when the last move has
        ended.

        First waits until the brokers have had time to apply earlier config changes, because ZooKeeper does not report
        when brokers apply a change. Without this wait, a move can start without its throttle. In a test with a throttle
        rate of 20 kB/s, 3 MB were copied at once. Also raises Refused if the znode would be larger than ZooKeeper
        accepts.
        """
        if None in targets.values():
            raise Refused(f"Kafka does not accept a cancellation over ZooKeeper (KIP-455). Use {self._brokers}")
        refused = self._nonexistent(targets)
        sent = [
            {"topic": name.topic, "partition": name.partition, "replicas": list(target)}
            for name, target in targets.items()
            if name not in refused and target is not None
        ]
        if not sent:
            return refused
        data = json.dumps({"version": 1, "partitions": sent}, separators=(",", ":")).encode()
        if len(data) > _LARGEST_NODE:
            raise Refused(
                f"{SUBMITTED} would have {len(data):,} bytes, but ZooKeeper accepts at most {_LARGEST_NODE:,}. Split "
                f"the plan ({len(sent):,} partitions) into smaller ones, or use {self._brokers}"
            )
        self._let_brokers_act()
        try:
            created = self._znodes.committed([*self._fence.operations(), Create(path=SUBMITTED, data=data)])
        except Unreachable as error:
            raise Unknown(f"{error}. It is unknown whether the moves were submitted") from error
        if created:
            self._fence.committed()
            return refused
        self._fence.operations()  # raises Busy if another kquota took over
        there = requested(self._znodes.read(SUBMITTED))
        if any(there.get(name) != target for name, target in targets.items() if name not in refused):
            raise Conflict(self._occupied())
        return refused

    def _occupied(self) -> str:
        """Return why no move can be submitted now. If a moving topic is deleted, the znode stays (seen on 3.9.1)."""
        node = self._znodes.read(SUBMITTED)
        if node is None:
            return f"ZooKeeper: {SUBMITTED} existed until now, because other moves were running. Try again"
        topics = sorted({name.topic for name in requested(node)})
        nodes = self._znodes.read_all(f"{EVERY_TOPIC}/{topic}" for topic in topics)
        there = {topic: found for topic in topics if (found := nodes[f"{EVERY_TOPIC}/{topic}"]) is not None}
        if topics and not submitted(node, there):
            return (
                f"ZooKeeper: {SUBMITTED} names only topics that were deleted while they moved "
                f"({', '.join(topics[:5])}{', …' if len(topics) > 5 else ''}). Kafka did not delete the znode. While "
                f"it exists, Kafka accepts no other moves over ZooKeeper. Use {self._brokers}, or delete the znode and "
                "then /controller with zookeeper-shell.sh, so that the brokers elect a new controller"
            )
        return (
            f"ZooKeeper: {SUBMITTED} exists, because its moves have not ended. Over ZooKeeper, Kafka "
            f"accepts only one reassignment at a time. Wait until the moves end, or use {self._brokers}"
        )

    def _topics(self, nodes: Mapping[str, Node]) -> dict[str, TopicNode]:
        found = {}
        for topic, node in nodes.items():
            if why := wrong_topic_name(topic):
                self._warn(Refused(f"under {EVERY_TOPIC}: {topic!r} {why}. The topic is left out"))
                continue
            try:
                found[topic] = topic_in(node, f"{EVERY_TOPIC}/{topic}")
            except Refused as error:
                self._warn(Refused(error, f". Topic {topic} is left out"))
        return found

    def _racks(self) -> dict[BrokerId, str | None]:
        """Return the rack of each live broker. A broker with an unreadable rack is also live, and its rack is None."""
        paths = {node: f"{LIVE_BROKERS}/{node}" for node in self._znodes.children(LIVE_BROKERS)}
        nodes = self._znodes.read_all(paths.values())
        found: dict[BrokerId, str | None] = {}
        for name, path in paths.items():
            if not plain_id(name):
                self._warn(Refused(f"ZooKeeper: {path} is not the znode of a broker, so it is left out"))
                continue
            try:
                rack = json_object(nodes[path], path).get("rack")
                if rack is not None and not isinstance(rack, str):
                    raise Refused(f"ZooKeeper: {path} has a rack that is not a string. ", ExamineZnode(path))
            except Refused as error:
                self._warn(Refused(error, f". The rack of broker {name} is unknown"))
                rack = None
            found[BrokerId(int(name))] = rack
        return dict(sorted(found.items()))

    def _warn(self, problem: Refused) -> None:
        """Report each problem only once, because a command that waits reads the same znodes many times."""
        if str(problem) not in self._warned:
            self._warned.add(str(problem))
            self._unreadable(problem)

    def _let_brokers_act(self) -> None:
        if self._changed is not None:
            notifications = len(self._znodes.children(NOTIFICATIONS))
            acted = self._changed + _APPLY_SECONDS + _APPLY_SECONDS_EACH * notifications
            time.sleep(max(0.0, acted - time.monotonic()))

    def _with_states(
        self, partitions: Mapping[TopicPartition, PartitionReplicas]
    ) -> dict[TopicPartition, PartitionReplicas]:
        """Return the partitions with their leaders and in-sync replicas, which are not in the znode of the topic."""
        paths = {name: f"{EVERY_TOPIC}/{name.topic}/partitions/{name.partition}/state" for name in partitions}
        nodes = self._znodes.read_all(paths.values())
        found = {}
        for name, state in partitions.items():
            leader: BrokerId | None = None
            isr: Replicas = ()
            try:
                leader, isr = leader_and_isr(nodes[paths[name]], paths[name])
            except Refused as error:
                self._warn(Refused(error, f". The leader and the in-sync replicas of {name} are unknown"))
            found[name] = replace(state, leader=leader, isr=isr)
        return found

    def _nonexistent(self, targets: Collection[TopicPartition]) -> dict[TopicPartition, str]:
        """Return an error for each partition that does not exist, because the controller ignores its move without an
        error.
        """
        paths = {name.topic: f"{EVERY_TOPIC}/{name.topic}" for name in targets}
        nodes = self._znodes.read_all(paths.values())
        there = {topic: topic_in(nodes[path], path).replicas for topic, path in paths.items()}
        return {name: "The partition does not exist." for name in targets if name.partition not in there[name.topic]}


def _batches(changes: Iterable[Change]) -> list[dict[str, list[Change]]]:
    """Group the changes by entity, in batches that are small enough for one transaction."""
    by_entity: dict[str, list[Change]] = {}
    for change in changes:
        by_entity.setdefault(entity_path(change.setting.resource), []).append(change)
    batches: list[dict[str, list[Change]]] = [{}]
    size = 0
    for entity, those in by_entity.items():
        more = _ENTITY_BYTES + sum(len(c.after or "") for c in those)
        if batches[-1] and size + more > _BATCH_BYTES:
            batches.append({})
            size = 0
        batches[-1][entity] = those
        size += more
    return [batch for batch in batches if batch]


def _edit(changes: Sequence[Change], missing: Collection[Resource]) -> ConfigEdit:
    def edited(before: Mapping[str, str]) -> Mapping[str, str]:
        after = dict(before)
        for change in changes:
            setting, now = change.setting, before.get(change.setting.key)
            if now != change.before:
                raise change.conflict(now)
            if setting.resource in missing and change.after is not None:
                raise Refused(f"{setting}: the topic does not exist. Nothing was written")
            if change.after is None:
                after.pop(setting.key, None)
            else:
                after[setting.key] = change.after
        return after

    return edited


def _value(setting: Setting, config: Mapping[str, object]) -> str | None:
    value = config.get(setting.key)
    if value is not None and not isinstance(value, str):
        path = f"/config/{entity_path(setting.resource)}"
        raise Refused(f"{path}: {setting.key} is not a string. ", ExamineZnode(path))
    return value


def _minimum(entity: str, config: Mapping[str, object], otherwise: int = 1) -> int:
    value = config.get(MIN_IN_SYNC, str(otherwise))
    if not isinstance(value, str) or not is_id(value):
        path = f"/config/{entity}"
        raise Refused(
            f"{path}: {MIN_IN_SYNC} must be a string with a whole number, but is {value!r:.40}. ",
            ExamineZnode(path),
            ". Nothing was written",
        )
    return int(value)
