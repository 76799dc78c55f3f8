"""Chooses the record that a command uses: the topic, the znodes, or only the journals of this host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from kquota import bounded
from kquota.errors import ExamineZnode, Invalid, KquotaError, NextStep, Parameter, Refused, StepFor, Unreachable
from kquota.measure import agreeing
from kquota.stores.record.lease import LeaseClock, Sighting
from kquota.stores.record.memory import Remembered, recall, remember
from kquota.stores.record.shared import MAYBE_LOST, ZOOKEEPER, Shared, Unshared, open_or_unreadable
from kquota.stores.record.topic import TopicRecord
from kquota.stores.state.log import Forbidden, Log
from kquota.terms import WITHOUT_ZOOKEEPER, wrong_topic_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kquota.stores.admin.connection import Wire
    from kquota.stores.record.znodes import ZnodeLock
    from kquota.stores.state.runs import RunFiles
    from kquota.stores.zookeeper.znode import ZnodeOperation
    from kquota.stores.zookeeper.znodes import Znodes

TOPIC: Final = "__kquota_runs"
"""The default name of the record's topic."""
NONE: Final = "none"
"""The value that selects only the journals of this host. It is given instead of a topic name."""
MARKER: Final = "/kquota/record"
"""The znode that names the topic on a cluster with ZooKeeper, so that commands over ZooKeeper find the topic."""
_ZOOKEEPER: Final = "zookeeper.connect"
_RECORD: Final = Parameter("record")
_USE_ZOOKEEPER: Final = (". Use ", Parameter("zookeeper"))
_ONLY_THIS_HOST: Final = (_RECORD, f" {NONE} uses the journals of this host only")


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """The content of the marker znode."""

    topic: str
    topic_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The values that decide which record a command uses."""

    name: str | None
    """The topic's name, `NONE`, or None if the operator chose no record."""
    writes: bool
    """True if the command writes. It then fails if it cannot read a record that was chosen, or that this host used."""
    warned: Callable[[KquotaError], None]
    """A function that receives each warning."""
    cautious: bool = False
    """True if the command removes settings that no run needs. It must then also know the runs in ZooKeeper."""
    waiting: Callable[[str], None] | None = None
    """The function that `TopicRecord` calls before it waits for the lock. None makes it raise Busy instead."""

    @property
    def topic(self) -> str:
        """The name of the chosen topic or the default topic. It is not used if `name` is `NONE`."""
        return self.name or TOPIC


def over_brokers(wire: Wire, files: RunFiles, choice: Choice, znodes: Callable[[Remembered], Znodes]) -> Shared:
    """Return the record in the topic if the topic exists, or in the znodes if this host has open runs there.

    Otherwise, and for `NONE` or a topic that this user may not see, returns `Unshared`. A command that only reads also
    gets `Unshared` if it cannot reach the znodes. `Unshared` is `hidden` for a topic that this user may not see and,
    with `cautious`, if ZooKeeper may have open or unreadable runs. `znodes` opens a session with the ZooKeeper in its
    argument. If the command writes, this host remembers the topic.

    Raises Refused for a chosen topic that does not exist, unless this host has used it. If the command writes, also
    raises Refused if a record that was chosen or that this host has used is missing or cannot be read. Also raises the
    errors of `RunFiles.every`, of `topic_log.find` other than Forbidden and, with `cautious`, of `zookeeper_of`.
    """
    known = recall(files.folder)
    if choice.name == NONE:
        return _chosen_alone(known, choice)
    found = _topic(wire, files, choice, known)
    if found is not None:
        return found
    _may_be_absent(choice, known)
    still_open = (kept.run for kept in files.every().values() if kept.run.finished is None)
    if any(run.stamp is not None and run.stamp.record == ZOOKEEPER for run in still_open):
        return _znodes_again(known, files, choice, znodes)
    address = zookeeper_of(wire) if choice.cautious else None
    if address is not None and (why := _in_the_way(replace(known, zookeeper=address), files, znodes)):
        return Unshared(*why, hidden=True)
    return Unshared("this cluster has no shared record (", NextStep.SHARE_RECORD, " sets one up)")


def over_zookeeper(znodes: Znodes, files: RunFiles, choice: Choice, wire: Callable[[], Wire]) -> Shared:
    """Return the record in the topic that the marker znode names, or in the znodes if there is no marker. `wire`
    connects to the brokers.

    Like `over_brokers`, returns `Unshared` for `NONE` and, if the command only reads, for a topic that this user may
    not see. Raises Refused if the marker is not valid, and if its topic does not exist or cannot be read. Also raises
    Refused if the operator chose a topic, but the marker is missing or names another topic.
    """
    from kquota.stores.record.znodes import ZnodeRecord

    known = recall(files.folder)
    if choice.name == NONE:
        return _chosen_alone(known, choice)
    named = marker(znodes)
    if choice.name is not None and (named is None or named.topic != choice.name):
        there = "no topic" if named is None else f"topic {named.topic}"
        named_there = f" {choice.name}: {MARKER} in ZooKeeper names {there} as the record. Nothing was written. "
        sets_up = (NextStep.SHARE_RECORD, f" sets up topic {choice.name} as the record")
        raise Refused(_RECORD, named_there, *(sets_up if named is None else ("Give ", _RECORD, f" {named.topic}")))
    if named is None:
        return ZnodeRecord(znodes, files.cluster_id)
    try:
        found = _topic(wire(), files, replace(choice, name=named.topic), known)
    except (Unreachable, Refused, Invalid) as error:
        raise Refused(
            f"the runs of this cluster are on record in topic {named.topic}, "
            "which kquota cannot read over the brokers: ",
            error,
            ". Nothing was written. Give a login for the brokers with ",
            Parameter("command_config"),
            ", or use ",
            Parameter("bootstrap_server"),
            " instead of ",
            Parameter("zookeeper"),
        ) from error
    if found is None:
        raise Refused(
            f"{MARKER} in ZooKeeper names topic {named.topic} as the record of runs, but the topic does not exist. "
            "Nothing was written. To remove the marker, run ",
            StepFor(NextStep.UNSHARE_OTHER, named.topic),
        )
    return found


def topic_record(log: Log, name: str, files: RunFiles, waiting: Callable[[str], None] | None = None) -> TopicRecord:
    """Return the record in the topic `name`. All kquota processes of this host share one file for its `Sighting`.

    `waiting` is called as in `TopicRecord`.
    """
    return TopicRecord(log, name, files.cluster_id, Sighting(files.folder / "lock.seen", LeaseClock()), waiting)


def marker(znodes: Znodes) -> Marker | None:
    """Return the content of the marker znode, or None if it does not exist.

    Raises Refused if its content is not valid.
    """
    node = znodes.read(MARKER)
    if node is None:
        return None
    try:
        document = bounded.json_object(node.data)
        if document["version"] != 1 or not all(isinstance(document[key], str) for key in ("topic", "topic_id")):
            raise ValueError("its version or topic is not valid")
        if why := wrong_topic_name(document["topic"]):
            raise ValueError(f"the topic {why}")
        return Marker(topic=document["topic"], topic_id=document["topic_id"])
    except (ValueError, KeyError) as error:
        raise Refused(
            f"ZooKeeper: {MARKER} does not name a valid record of runs ({type(error).__name__}: {error}). ",
            ExamineZnode(MARKER),
        ) from error


def zookeeper_of(wire: Wire) -> str | None:
    """Return the address of this cluster's ZooKeeper from the config of a broker.

    Returns None on KRaft, or without a live broker. Raises Refused if the broker answers with an error, for example
    because this user lacks DescribeConfigs on the cluster. Raises Unreachable if the broker does not answer.
    """
    from kquota.settings.resource import BROKERS, Resource
    from kquota.stores.admin.connection import kafka_error
    from kquota.stores.admin.requests import describe_request

    broker = next(iter(wire.brokers()), None)
    if broker is None or wire.version() >= WITHOUT_ZOOKEEPER:
        return None
    answer = wire.ask(
        describe_request({Resource(kind=BROKERS, name=str(broker)): [_ZOOKEEPER]}, synonyms=False), broker
    )
    if code := answer.results[0].error_code:
        raise Refused(
            f"broker {broker} did not report whether this cluster has a ZooKeeper "
            f"({kafka_error(code, answer.results[0].error_message)}). Nothing was written. This user "
            "needs DescribeConfigs on the cluster"
        )
    values = [c.value for result in answer.results for c in result.configs or () if c.name == _ZOOKEEPER]
    return next(filter(None, values), None)


class DoubleFence:
    """The lock of the topic and the lock in ZooKeeper. Implements `Fence`.

    kquota checks the lock of the topic before each transaction, and the transaction checks the lock in ZooKeeper.
    """

    def __init__(self, topic: TopicRecord, lock: ZnodeLock) -> None:
        self._topic = topic
        self._lock = lock

    @contextmanager
    def hold(self, doing: str, *, take_over: bool) -> Iterator[None]:
        """Hold the lock in ZooKeeper until the context ends. The caller must already hold the lock of the topic.

        Raises Busy like `ZnodeLock.hold`. After an error that a lost session can cause, also raises Busy like
        `Shared.must_hold`.
        """
        with self._lock.hold(doing, take_over=take_over):
            try:
                yield
            except MAYBE_LOST:
                self._topic.must_hold()  # raises Busy if another process has taken over, and names it
                raise

    def operations(self) -> Sequence[ZnodeOperation]:
        self._topic.must_hold()
        return self._lock.operations()

    def committed(self) -> None:
        return None


def _topic(wire: Wire, files: RunFiles, choice: Choice, known: Remembered) -> TopicRecord | Unshared | None:
    """Return the record in the topic, None if the topic does not exist, or `Unshared` if this user may not see it.

    Warns if a topic that this host has used was created again. A command that writes also remembers the topic. It gets
    Refused if this user may not see a topic that this host has used or that was chosen. Raises the other errors of
    `topic_log.find`.
    """
    from kquota.stores.admin import topic_log

    pinned = known.topic == choice.topic
    try:
        log = topic_log.find(wire, choice.topic)
    except Forbidden as error:
        if choice.writes and (pinned or choice.name is not None):
            used = "This host has used the record in this topic, so kquota" if pinned else "kquota"
            raise Refused(error, f". {used} writes nothing without the record. ", *_ONLY_THIS_HOST) from error
        return Unshared("this cluster may have a shared record that this user cannot read: ", error, hidden=True)
    if log is None:
        return None
    if pinned and known.topic_id != log.identity:
        made_again = f"topic {choice.topic} was deleted and created again. Runs of other hosts may be missing from it"
        choice.warned(KquotaError(made_again))
    if choice.writes:
        remember(files.folder, topic=choice.topic, topic_id=log.identity)
    return topic_record(log, choice.topic, files, choice.waiting)


def _may_be_absent(choice: Choice, known: Remembered) -> None:
    """Warn, or raise Refused, if this host has used the missing topic or the operator has chosen it."""
    pinned = known.topic == choice.topic
    if pinned and choice.writes:
        raise Refused(
            f"topic {choice.topic}: the shared record of this cluster no longer exists. Nothing was written. ",
            NextStep.SHARE_RECORD,
            " creates a new one, ",
            NextStep.UNSHARE_RECORD,
            " removes the old one from the state of this host, and ",
            *_ONLY_THIS_HOST,
        )
    if pinned:
        gone = f"topic {choice.topic}: the shared record no longer exists. "
        choice.warned(KquotaError(gone, NextStep.SHARE_RECORD, " creates a new one"))
    elif choice.name is not None:
        absent = f" {choice.name}: the topic does not exist. "
        raise Refused(_RECORD, absent, NextStep.SHARE_RECORD, " creates it")


def _znodes_again(known: Remembered, files: RunFiles, choice: Choice, znodes: Callable[[Remembered], Znodes]) -> Shared:
    from kquota.stores.record.znodes import ZnodeRecord

    try:
        if known.zookeeper is None:
            raise Refused("its address is unknown on this host")
        return ZnodeRecord(znodes(known), files.cluster_id)
    except (Unreachable, Refused, Invalid) as error:
        why = KquotaError("an open run of this host is also on record in ZooKeeper, which cannot be reached: ", error)
        if choice.writes:
            use = (Parameter("zookeeper"), ", so that all hosts see the same runs")
            raise Refused(why, ". Nothing was written. Use ", *use) from error
        choice.warned(why)
        return Unshared(why)


def _in_the_way(
    known: Remembered, files: RunFiles, znodes: Callable[[Remembered], Znodes]
) -> tuple[str | KquotaError, ...]:
    """Return the parts of a message about runs that are or may be in ZooKeeper, or () if there are none."""
    from kquota.stores.record.znodes import ZnodeRecord

    there = f"ZooKeeper ({known.zookeeper})"
    try:
        still = open_or_unreadable(ZnodeRecord(znodes(known), files.cluster_id))
    except (Unreachable, Refused, Invalid) as error:
        without = (", or ", _RECORD, f" {NONE} if no run is open")
        return (f"runs may be on record in {there}: ", error, *_USE_ZOOKEEPER, *without)
    if not still:
        return ()
    count = agreeing(len(still), "run", "is", "are")
    return (f"{count} open or unreadable in {there}: {', '.join(still)}", *_USE_ZOOKEEPER)


def _chosen_alone(known: Remembered, choice: Choice) -> Unshared:
    if known.topic is not None and choice.writes:
        unused = (
            f" {NONE}: kquota does not use the shared record in topic {known.topic}, so other hosts do not see the "
            "runs that this command begins or changes"
        )
        choice.warned(KquotaError(_RECORD, unused))
    return Unshared(_RECORD, f" is {NONE}")
