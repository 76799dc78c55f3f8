"""Creating and deleting the shared record: the topic and, on a cluster with ZooKeeper, the marker znode."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from kquota.errors import Incomplete, KquotaError, NextStep, Parameter, Refused, StepFor
from kquota.stores.admin import topic_log, topic_setup
from kquota.stores.admin.connection import Wire
from kquota.stores.record import choose
from kquota.stores.record.choose import MARKER
from kquota.stores.record.lease import MachineClock, Sighting
from kquota.stores.record.memory import RecordMemory
from kquota.stores.record.runs import RecordedRuns
from kquota.stores.record.topic import TopicRecord
from kquota.stores.record.znodes import ROOT, ZnodeRecord
from kquota.stores.state.runs import RunFiles
from kquota.stores.zookeeper.znode import Create, Delete, Operation, SetData
from kquota.stores.zookeeper.znodes import Znodes


@dataclass(frozen=True, slots=True, kw_only=True)
class SharingPlan:
    """The steps of `share`. `setup` is the topic to create, or None if it exists. With `marker`, `share` also writes
    the marker znode.
    """

    setup: topic_setup.Setup | None
    marker: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """The state of the shared record. `wrong` are problems that prevent its use, and `weak` are problems because of
    which the topic may lose or delay records.

    `writer` is the current holder of the lock, if any. `foreign` is the number of Kafka records that kquota ignores. If
    there are `wrong` problems, the record is not read, so the fields after `weak` are empty.
    """

    identity: str
    replicas: int
    wrong: Sequence[str] = ()
    weak: Sequence[str] = ()
    writer: str | None = None
    open_runs: Sequence[str] = ()
    ended_runs: int = 0
    unreadable: Mapping[str, str] = field(default_factory=dict)
    foreign: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """The objects that `unshare` removes: the topic, the marker znode, and the topic in the state of this host.

    A field is False if the object does not exist. `marker` and `memory` are also False if they name another topic.
    """

    topic: bool
    marker: bool
    memory: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """Creates, examines and deletes the shared record of one cluster.

    `znodes` is None if the caller did not name the ZooKeeper. `files` are the journals of this host.
    """

    wire: Wire
    znodes: Znodes | None
    files: RunFiles
    topic: str

    @property
    def has_default_name(self) -> bool:
        """True if commands over the brokers find the topic without its name."""
        return self.topic == choose.TOPIC

    def plan(self) -> SharingPlan:
        """Return what `share` would do. Raises Refused with the reason if the cluster cannot have a record now."""
        _must_have_both(self)
        found = topic_setup.describe(self.wire, self.topic)
        if found is not None and (wrong := topic_setup.wrong(found)):
            raise Refused(
                f"topic {self.topic} exists but cannot hold the record: {'; '.join(wrong)}. Nothing was written. "
                "Correct the configs of the topic, or choose another name"
            )
        named = None if self.znodes is None else choose.marker(self.znodes)
        if named is not None and named.topic != self.topic:
            raise Refused(
                f"topic {named.topic} already holds the record of this cluster. Nothing was written. First run ",
                StepFor(NextStep.UNSHARE_OTHER, named.topic),
            )
        if self.znodes is not None and named is None:
            _must_have_no_open_znodes(self.znodes, self.files.cluster_id)
        return SharingPlan(
            setup=topic_setup.create(self.wire, self.topic, dry_run=True) if found is None else None,
            marker=self.znodes is not None and (named is None or found is None or named.topic_id != found.identity),
        )

    def share(self, wanted: SharingPlan) -> RecordedRuns:
        """Create the topic and write the marker as planned, and record the open runs of this host.

        Returns the runs of the cluster. Raises Incomplete if the topic was created but cannot be used.
        """
        if wanted.setup is None:
            return _used(self, wanted)
        topic_setup.create(self.wire, self.topic)
        try:
            return _used(self, wanted)
        except KquotaError as error:
            created = f". Topic {self.topic} was created. Run the same command again, or undo it with "
            raise Incomplete((error, created, NextStep.UNSHARE_RECORD), [self.topic], []) from error

    def condition(self) -> Condition | None:
        """Return the state of the record, or None if its topic does not exist.

        Raises Forbidden if this user cannot see the topic.
        """
        found = topic_setup.describe(self.wire, self.topic)
        if found is None:
            return None
        wrong = topic_setup.wrong(found)
        weak = list(topic_setup.weak(found, len(self.wire.brokers())))
        sound = Condition(identity=found.identity, replicas=found.replicas, wrong=wrong, weak=weak)
        log = None if wrong else topic_log.find(self.wire, self.topic)
        if log is None:
            return sound
        record = _record(self, log)
        runs = record.runs()
        if log.truncated:
            weak.append(
                "the log no longer begins at offset 0: a client sent DeleteRecords, or cleanup.policy was not compact"
            )
        writer = record.writer()
        return replace(
            sound,
            weak=weak,
            writer=None if writer is None else str(writer),
            open_runs=sorted(run.id for run in runs.values() if run.finished is None),
            ended_runs=sum(run.finished is not None for run in runs.values()),
            unreadable=record.unreadable,
            foreign=log.foreign,
        )

    def removal(self, found: Condition | None) -> Removal:
        """Return what `unshare` would remove. Raises Refused like `unshare`."""
        _must_have_both(self)
        if found is not None:
            _must_be_over(self.topic, [*found.open_runs, *found.unreadable])
        marked = self.znodes is not None and _names(choose.marker(self.znodes), self.topic)
        known = RecordMemory(self.files.folder).recall()
        return Removal(topic=found is not None, marker=marked, memory=known.topic == self.topic)

    def unshare(self) -> Removal:
        """Delete the topic and the marker, and clear the topic in `RecordMemory`. Returns what was removed.

        Raises Refused if a run is open or cannot be read, or if the caller did not name the cluster's ZooKeeper. Raises
        Busy while another command writes, on this or any other host.
        """
        _must_have_both(self)
        log = topic_log.find(self.wire, self.topic)
        if log is not None:
            runs = RecordedRuns(self.files, _record(self, log))
            with runs.hold("record unshare"):
                _must_be_over(self.topic, [*(run.id for run in runs.unfinished()), *runs.unreadable])
                topic_setup.delete(self.wire, self.topic)
        marked = _unmark(self.znodes, self.topic)
        memory = RecordMemory(self.files.folder)
        known = memory.recall()
        if known.topic == self.topic:
            memory.keep(replace(known, topic=None, topic_id=None))
        return Removal(topic=log is not None, marker=marked, memory=known.topic == self.topic)


def _used(at: Sharing, wanted: SharingPlan) -> RecordedRuns:
    log = topic_log.find(at.wire, at.topic)
    if log is None:
        raise Refused(f"topic {at.topic} no longer exists. Run the command again")
    if at.znodes is not None and wanted.marker:
        _mark(at.znodes, at.topic, log.identity)
    runs = RecordedRuns(at.files, _record(at, log))
    with runs.hold("record share"):
        memory = RecordMemory(at.files.folder)
        memory.keep(replace(memory.recall(), topic=at.topic, topic_id=log.identity))
    return runs


def _record(at: Sharing, log: topic_log.WireLog) -> TopicRecord:
    clock = MachineClock()
    return TopicRecord(log, at.topic, at.files.cluster_id, Sighting(at.files.folder / "lock.seen", clock), clock)


def _must_be_over(topic: str, still: Sequence[str]) -> None:
    if still:
        names = ", ".join(sorted(still))
        raise Refused(
            f"topic {topic}: runs are open or unreadable ({names}). End these runs first. ",
            NextStep.SHOW_MOVES,
            " and ",
            NextStep.SHOW_THROTTLES,
            " list them. Nothing was deleted",
        )


def _must_have_both(at: Sharing) -> None:
    """Raise Refused if the cluster has a ZooKeeper and the caller did not name it."""
    address = None if at.znodes is not None else choose.zookeeper_of(at.wire)
    if address is not None:
        raise Refused(
            f"this cluster keeps its metadata in ZooKeeper ({address}). Also give ",
            Parameter("zookeeper"),
            ", so that commands over ZooKeeper find the same record. Nothing was written",
        )


def _must_have_no_open_znodes(znodes: Znodes, cluster_id: str) -> None:
    record = ZnodeRecord(znodes, cluster_id)
    still = [run.id for run in record.runs().values() if run.finished is None] + list(record.unreadable)
    if not still and (writer := record.writer()) is not None:
        raise Refused(f"{writer} is writing to ZooKeeper. Nothing was written. Wait until that command ends")
    if still:
        runs = f"runs are on record in ZooKeeper: {', '.join(sorted(still))}. End them first, with "
        raise Refused(runs, Parameter("zookeeper"), ". Nothing was written")


def _mark(znodes: Znodes, topic: str, identity: str) -> None:
    data = json.dumps({"version": 1, "topic": topic, "topic_id": identity}).encode()
    if znodes.read(ROOT) is None:
        znodes.committed([Create(path=ROOT, data=b"")])
    node = znodes.read(MARKER)
    write: Operation = Create(path=MARKER, data=data)
    if node is not None:
        write = SetData(path=MARKER, data=data, version=node.version)
    if not znodes.committed([write]):
        raise Refused(f"ZooKeeper: another kquota has just written {MARKER}. Try again")


def _unmark(znodes: Znodes | None, topic: str) -> bool:
    node = None if znodes is None else znodes.read(MARKER)
    if znodes is None or node is None or not _names(choose.marker(znodes), topic):
        return False
    return znodes.committed([Delete(path=MARKER, version=node.version)])


def _names(found: choose.Marker | None, topic: str) -> bool:
    return found is not None and found.topic == topic
