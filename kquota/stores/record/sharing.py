"""Creating and deleting the shared record: the topic and, on a cluster with ZooKeeper, the marker znode."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Final

from kquota.errors import Incomplete, KquotaError, NextStep, Parameter, Refused, StepFor
from kquota.measure import agreeing
from kquota.mutation.topic import Creation
from kquota.stores.admin import topic_log, topic_setup
from kquota.stores.admin.connection import Wire
from kquota.stores.record import choose
from kquota.stores.record.choose import MARKER, topic_record
from kquota.stores.record.memory import recall, remember
from kquota.stores.record.runs import RecordedRuns
from kquota.stores.record.shared import open_or_unreadable
from kquota.stores.record.topic import TopicRecord
from kquota.stores.record.znodes import ROOT, ZnodeLock, ZnodeRecord
from kquota.stores.state.runs import RunFiles
from kquota.stores.zookeeper.znode import Create, Delete, SetData, ZnodeOperation
from kquota.stores.zookeeper.znodes import Znodes

_UNREADABLE: Final = "End every unreadable run with the version of kquota that wrote it"


@dataclass(frozen=True, slots=True, kw_only=True)
class SharingPlan:
    """The steps of `share`."""

    setup: Creation | None
    """The topic to create, or None if the topic exists."""
    marker: bool
    """True if `share` also writes the marker znode."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """The state of the shared record.

    If there are `wrong` problems, kquota does not read the record, so the fields after `weak` are None.
    """

    identity: str
    """The id of the topic, or an empty string before Kafka 2.8."""
    replicas: int
    """The lowest replication factor of a partition, or 0 without partitions."""
    wrong: Sequence[str] = ()
    """The problems that prevent the use of the topic."""
    weak: Sequence[str] = ()
    """The problems that can make the topic lose or refuse records."""
    writer: str | None = None
    """The holder of the lock, or None if the lock is free or unreadable, or its holder has ended."""
    open_runs: Sequence[str] | None = None
    """The ids of the open runs, sorted."""
    ended_runs: int | None = None
    unreadable: Mapping[str, str] | None = None
    """The reason for each run that cannot be read, by id."""
    foreign: int | None = None
    """The number of Kafka records that kquota ignores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """The objects that `unshare` removes."""

    topic: bool
    """True if the topic exists."""
    marker: bool
    """True if the marker znode exists and names this topic."""
    memory: bool
    """True if the state of this host names this topic."""
    ended_runs: int
    """The number of ended runs in the topic."""


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
        """True if the topic has the default name. Unless another topic is given, a command over the brokers looks for
        the record in the topic with this name.
        """
        return self.topic == choose.TOPIC

    def plan(self) -> SharingPlan:
        """Return the steps of `share`. Raises Refused with the reason if the cluster cannot have a record now.

        Also raises Refused if the journals of this host cannot be read or written. Also raises the errors of
        `topic_setup.describe` and, if the caller did not name the ZooKeeper, of `zookeeper_of`.
        """
        self.files.must_be_writable()
        self._must_name_zookeeper()
        found = topic_setup.describe(self.wire, self.topic)
        if found is not None and (wrong := topic_setup.wrong(found)):
            # The number of partitions cannot be corrected, because Kafka cannot remove partitions.
            remedy = "Correct its configs, or choose" if found.partitions == 1 else "Choose"
            raise Refused(
                f"topic {self.topic} exists but cannot hold the record: {'; '.join(wrong)}. Nothing was written. "
                f"{remedy} another topic with ",
                Parameter("record"),
            )
        named = None if self.znodes is None else choose.marker(self.znodes)
        if named is not None and named.topic != self.topic:
            raise Refused(
                f"{MARKER} in ZooKeeper names topic {named.topic} as the record of this cluster. Nothing was written. "
                "First run ",
                StepFor(NextStep.UNSHARE_OTHER, named.topic),
            )
        if self.znodes is not None and named is None:
            _must_have_no_open_runs(self.znodes, self.files.cluster_id, ". Nothing was written")
            if (writer := ZnodeRecord(self.znodes, self.files.cluster_id).writer()) is not None:
                raise Refused(f"{writer} is writing to ZooKeeper. Nothing was written. Wait until that command ends")
        return SharingPlan(
            setup=topic_setup.create(self.wire, self.topic, dry_run=True) if found is None else None,
            marker=self.znodes is not None and (named is None or found is None or named.topic_id != found.identity),
        )

    def share(self, wanted: SharingPlan) -> RecordedRuns:
        """Create the topic and write the marker as planned, and record the open runs of this host.

        Also remembers the topic on this host. Returns the runs of the cluster. Raises Busy while another command
        writes. Raises Refused if the topic no longer exists, if a run in ZooKeeper is open or unreadable, or if another
        kquota has just written the marker. Also raises the errors of `topic_log.find`. If the plan creates the topic,
        raises the errors of `topic_setup.create`, and Incomplete for any error after the creation. Raises Refused,
        before it creates the topic, if the journals of this host cannot be read or locked, or the journal of an open
        run cannot be written.
        """
        if wanted.setup is None:
            return self._use(wanted)
        # Other hosts use the topic as soon as it exists, so create it only if this host can add its own runs.
        with self.files.hold("record share"):
            self.files.must_be_writable()
            topic_setup.create(self.wire, self.topic)
        try:
            return self._use(wanted)
        except KquotaError as error:
            created = f". Topic {self.topic} was created. Run the same command again, or delete the topic with "
            raise Incomplete((error, created, NextStep.UNSHARE_RECORD), [self.topic], []) from error

    def writer(self) -> str | None:
        """Return a description of the command that holds the lock that `share` and `unshare` need, or None if no such
        command is known. It runs on this host, or on any host if the topic exists.

        Raises the errors of `topic_log.find` and `RecordedRuns.unfinished`.
        """
        log = topic_log.find(self.wire, self.topic)
        if log is None:
            return self.files.writer()
        runs = RecordedRuns(self.files, topic_record(log, self.topic, self.files))
        runs.unfinished()  # `writer` returns the holder that the last reading found
        return runs.writer()

    def condition(self) -> Condition | None:
        """Return the state of the record, or None if its topic does not exist.

        Raises the errors of `topic_setup.describe` and `topic_log.find`, for example Forbidden if this user cannot see
        the topic.
        """
        found = topic_setup.describe(self.wire, self.topic)
        if found is None:
            return None
        wrong = topic_setup.wrong(found)
        weak = list(topic_setup.weak(found, len(self.wire.brokers())))
        unread = Condition(identity=found.identity, replicas=found.replicas, wrong=wrong, weak=weak)
        if wrong:
            return unread
        log = topic_log.find(self.wire, self.topic)
        if log is None:
            return None
        record = topic_record(log, self.topic, self.files)
        runs = record.runs()
        if log.truncated:
            weak.append(
                "the log no longer begins at offset 0: a client sent DeleteRecords, or cleanup.policy was not compact"
            )
        return replace(
            unread,
            weak=weak,
            writer=record.writer(),
            open_runs=sorted(run.id for run in runs.values() if run.finished is None),
            ended_runs=sum(run.finished is not None for run in runs.values()),
            unreadable=record.unreadable,
            foreign=log.foreign,
        )

    def unshare(self, *, dry_run: bool = False) -> Removal:
        """Delete the topic, the marker and this host's memory of the topic, and return the removed objects.

        A dry run only returns the objects that it would remove. Raises Refused if a run is open or cannot be read, or
        if the caller did not name the cluster's ZooKeeper. Raises Busy while another command writes, on this or any
        other host. Raises Incomplete if it deleted the topic, but not the marker. Also raises the errors of
        `topic_log.find`, `topic_setup.delete` and, if the caller did not name the ZooKeeper, of `zookeeper_of`.
        """
        self._must_name_zookeeper()
        log = topic_log.find(self.wire, self.topic)
        ended = 0
        if log is not None:
            record = topic_record(log, self.topic, self.files)
            runs = RecordedRuns(self.files, record)
            with nullcontext() if dry_run else runs.hold("record unshare"):
                ended = _ended_runs(self.topic, record, runs)
                if not dry_run:
                    topic_setup.delete(self.wire, self.topic)
        try:
            marked = _unmark(self.znodes, self.topic, dry_run=dry_run)
        except KquotaError as error:
            if log is None or dry_run:
                raise
            deleted = f". Topic {self.topic} was deleted. Run the same command again to delete {MARKER}"
            raise Incomplete((error, deleted), [self.topic], [MARKER]) from error
        known = recall(self.files.folder).topic == self.topic
        if known and not dry_run:
            remember(self.files.folder, topic=None, topic_id=None)
        return Removal(topic=log is not None, marker=marked, memory=known, ended_runs=ended)

    def _use(self, wanted: SharingPlan) -> RecordedRuns:
        log = topic_log.find(self.wire, self.topic)
        if log is None:
            raise Refused(f"topic {self.topic} no longer exists. Run the command again")
        runs = RecordedRuns(self.files, topic_record(log, self.topic, self.files))
        with runs.hold("record share"):
            if self.znodes is not None and wanted.marker:
                # Commands over ZooKeeper use the znodes until the marker exists, and a run may have begun there.
                with ZnodeLock(self.znodes).hold("record share", take_over=False):
                    if choose.marker(self.znodes) is None:
                        _must_have_no_open_runs(self.znodes, self.files.cluster_id)
                    _mark(self.znodes, self.topic, log.identity)
            remember(self.files.folder, topic=self.topic, topic_id=log.identity)
        return runs

    def _must_name_zookeeper(self) -> None:
        address = None if self.znodes is not None else choose.zookeeper_of(self.wire)
        if address is not None:
            raise Refused(
                f"this cluster keeps its metadata in ZooKeeper ({address}). Also give ",
                Parameter("zookeeper"),
                ", because commands over ZooKeeper find the record through a znode. Nothing was written",
            )


def _ended_runs(topic: str, record: TopicRecord, runs: RecordedRuns) -> int:
    if still := [*(run.id for run in runs.unfinished()), *runs.unreadable]:
        names = ", ".join(sorted(still))
        raise Refused(
            f"topic {topic}: {agreeing(len(still), 'run', 'is', 'are')} open or unreadable ({names}). First end every "
            "open run: ",
            NextStep.SHOW_MOVES,
            " and ",
            NextStep.SHOW_THROTTLES,
            f" list them. {_UNREADABLE}. Nothing was deleted",
        )
    return sum(run.finished is not None for run in record.runs().values())


def _must_have_no_open_runs(znodes: Znodes, cluster_id: str, written: str = "") -> None:
    if still := open_or_unreadable(ZnodeRecord(znodes, cluster_id)):
        raise Refused(
            f"{agreeing(len(still), 'run', 'is', 'are')} open or unreadable in ZooKeeper ({', '.join(still)}). First "
            "end every open run with a command that uses ",
            Parameter("zookeeper"),
            f". {_UNREADABLE}{written}",
        )


def _mark(znodes: Znodes, topic: str, identity: str) -> None:
    data = json.dumps({"version": 1, "topic": topic, "topic_id": identity}).encode()
    if znodes.read(ROOT) is None:
        znodes.committed([Create(path=ROOT, data=b"")])
    node = znodes.read(MARKER)
    write: ZnodeOperation = Create(path=MARKER, data=data)
    if node is not None:
        write = SetData(path=MARKER, data=data, version=node.version)
    if not znodes.committed([write]):
        raise Refused(f"ZooKeeper: another kquota has just written {MARKER}. Try again")


def _unmark(znodes: Znodes | None, topic: str, *, dry_run: bool) -> bool:
    """Delete the marker if it names the topic. Returns True if it was deleted or, in a dry run, would be deleted."""
    node = None if znodes is None else znodes.read(MARKER)
    if znodes is None or node is None or (named := choose.marker(znodes)) is None or named.topic != topic:
        return False
    return dry_run or znodes.committed([Delete(path=MARKER, version=node.version)])
