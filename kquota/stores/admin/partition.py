"""Requests with a deadline for a topic's only partition: Metadata, ListOffsets, Fetch and Produce."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from uuid import UUID

from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest
from kafka.protocol.producer import ProduceRequest

from kquota.errors import NextStep, Refused, Unreachable
from kquota.stores.admin.connection import Wire, kafka_error, was_sent
from kquota.stores.admin.offsets import CONSUMER, EARLIEST
from kquota.stores.admin.requests import TOPIC_DENIED, UNKNOWN_TOPIC
from kquota.stores.admin.wire_format import printed_id
from kquota.stores.state.log import Forbidden, now
from kquota.terms import BrokerId

OUT_OF_ORDER: Final = 45
DUPLICATE: Final = 46
_OUT_OF_RANGE: Final = 1
_TOO_LARGE: Final = (10, 18)
NO_LEADER_YET: Final = 5
TOO_FEW_IN_SYNC: Final = (19, 20)
"""The error codes if fewer replicas are in sync than `min.insync.replicas`: before and after the append."""
_MAYBE_APPENDED: Final = (-1, 7, 13, 20, 56)
"""Error codes after which the batch may be in the log, for example REQUEST_TIMED_OUT."""
_PASSING: Final = (*_MAYBE_APPENDED, UNKNOWN_TOPIC, NO_LEADER_YET, 6, 9, 19, 74, 75, 78, 100, 103)
"""Error codes after which another attempt can help, for example because the partition is new."""

_ABSENT_SECONDS: Final = 3.0
"""A missing topic counts as deleted only after this many seconds, because a broker may not know a new topic yet."""
_PAUSE_SECONDS: Final = 0.05
_MOST_BYTES: Final = 16 * 2**20
_NO_LEADER: Final = "it has no leader now"
_ALL_IN_SYNC: Final = -1
_BY_ID: Final = 13
"""The first version of Fetch that names topics by id (Kafka 3.1)."""

_REQUEST_SECONDS: Final = 5.0
_LEAST_SECONDS: Final = 0.5
_MUTED_SECONDS: Final = 60.0

_Answer = TypeVar("_Answer")


class Deadline:
    """The time limit of one call to the log. All requests of the call share this limit.

    The first minute of throttle time does not count (KIP-219).
    """

    def __init__(self, wire: Wire, seconds: float) -> None:
        self._wire = wire
        self._end = now() + seconds
        self._mute_left = _MUTED_SECONDS
        self.seconds = seconds

    @property
    def over(self) -> bool:
        """True if the deadline has passed."""
        return now() >= self._end

    def request(self, broker: BrokerId | None) -> float:
        """Return the seconds (0.5 to 5) that one request to `broker`, or to any broker (None), may take.

        The current throttle time is not part of these seconds, and extends this deadline. Raises Unreachable and ends
        the deadline if the throttle time is longer than the rest of the minute that does not count.
        """
        muted = self._wire.muted(broker)
        if muted > self._mute_left:
            self._end = now()
            who = "each broker" if broker is None else f"broker {broker}"
            raise Unreachable(
                f"{who} throttles this client for at least another {muted:.0f} s, because a quota of the client is too "
                "low. Raise the quota"
            )
        self._mute_left -= muted
        self._end += muted
        return max(_LEAST_SECONDS, min(_REQUEST_SECONDS, self._end - now()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """The answer to one fetch."""

    offset: int
    """The requested offset or, after OFFSET_OUT_OF_RANGE, the first offset in the log."""
    start: int
    """The first offset in the log."""
    end: int
    """The high watermark."""
    data: bytes
    """The record batches from `offset` on. The first batch can begin before `offset`. The last one can be
    incomplete.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Produced:
    """The answer to one batch, or the reason why there is no answer."""

    code: int | None
    """The broker's error code: 0 for an acknowledgement, or None without an answer."""
    reason: str
    """The result in words, for an error message."""
    maybe: bool
    """True if the sent batch may be in the log."""
    offset: int = -1
    """The first offset of the acknowledged batch, or -1 without an acknowledgement.

    The acknowledged batch can be that of another kquota with the same sequence.
    """

    @property
    def refused(self) -> bool:
        """True if the broker refused the batch, and another attempt cannot help.

        False without an answer, and after `OUT_OF_ORDER` and `DUPLICATE`.
        """
        return self.code not in (None, 0, OUT_OF_ORDER, DUPLICATE, *_PASSING)


def leader(topic: Any) -> BrokerId | None:
    """Return the leader of the first partition in a topic's metadata, or None without a leader or a partition."""
    found = topic.partitions[0].leader_id if topic.partitions else -1
    return None if found < 0 else BrokerId(found)


def refusal(code: int | None, reason: str) -> Refused:
    """Return the error for an answer that another attempt cannot change.

    The error is Forbidden if this user lacks a permission on the topic, and Refused otherwise.
    """
    if code == TOPIC_DENIED:
        return Forbidden(f"{reason}. This user needs Read on the topic, and Write if the command writes to it")
    if code in _TOO_LARGE:
        return Refused(f"{reason}: the batch is larger than the topic's max.message.bytes. Raise this config")
    return Refused(reason)


class PartitionLog:
    """Partition 0 of the topic with `topic_id`. `fetch` refuses a later topic of the same name with another id."""

    def __init__(self, wire: Wire, name: str, topic_id: UUID, leader: BrokerId | None) -> None:
        self._wire = wire
        self.name = name
        self._prefix = f"topic {name}: "
        self.topic_id = topic_id
        self._leader = leader
        self._absent_since: float | None = None

    def fetch(self, offset: int, deadline: Deadline) -> Fetched:
        """Return committed records from `offset`, or from the first offset in the log if the log does not have
        `offset`.

        The data can be empty even if the log has more records. Raises Unreachable at the deadline, and Forbidden if
        this user lacks a permission. Raises Refused if the topic was deleted or created again, and after any other
        error if another attempt cannot help.
        """
        return self._asked(lambda broker: self._fetched(broker, offset, deadline), deadline)

    def produce(self, batch: bytes, deadline: Deadline) -> Produced:
        """Send the batch at most once, and return the result.

        A write without an answer raises nothing, because `Produced` also describes failures.
        """
        if self._leader is None:
            return Produced(code=None, reason=f"{self._prefix}{_NO_LEADER}", maybe=False)
        try:
            seconds = deadline.request(self._leader)
        except Unreachable as error:
            return Produced(code=None, reason=f"{self._prefix}{error}", maybe=False)
        request = self._produce_request(batch, seconds)
        try:
            answer = self._wire.ask(request, self._leader, seconds)
        except (Unreachable, Refused) as error:
            maybe = isinstance(error, Unreachable) and was_sent(request, error)
            return Produced(code=None, reason=f"{self._prefix}{error}", maybe=maybe)
        (found,) = (one for topic in answer.responses for one in topic.partition_responses)
        code = found.error_code
        return Produced(
            code=code,
            reason=self._words(code, getattr(found, "error_message", None)),
            maybe=code == 0 or code in _MAYBE_APPENDED,
            offset=found.base_offset,
        )

    def _asked(self, ask: Callable[[BrokerId], _Answer], deadline: Deadline) -> _Answer:
        """Return the answer of the current leader. `ask` raises Unreachable with the reason to ask again."""
        while True:
            reason = _NO_LEADER
            if self._leader is not None:
                try:
                    return ask(self._leader)
                except Unreachable as error:
                    reason = str(error)
            self._look_again(reason, deadline)

    def _first_offset(self, broker: BrokerId, deadline: Deadline) -> int:
        offset = ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(partition_index=0, timestamp=EARLIEST)
        topic = ListOffsetsRequest.ListOffsetsTopic(name=self.name, partitions=[offset])
        wanted = ListOffsetsRequest(replica_id=CONSUMER, topics=[topic])
        answer = self._wire.ask(wanted, broker, deadline.request(broker))
        (found,) = (one for topic in answer.topics for one in topic.partitions)
        self._check(found.error_code)
        return int(found.offset)

    def _fetched(self, broker: BrokerId, offset: int, deadline: Deadline) -> Fetched:
        answer = self._wire.ask(self._fetch_request(offset), broker, deadline.request(broker))
        self._check(answer.error_code)
        found = next((one for topic in answer.responses for one in topic.partitions), None)
        if found is None:
            # A throttled fetch returns no partitions. A broker with Kafka's default windows never sends a batch that is
            # larger than the quota allows in 10 s, so another attempt may not help.
            too_low = "the client's consumer_byte_rate or request_percentage is too low"
            raise Unreachable(f"broker {broker} throttles this client, because {too_low}")
        if found.error_code == _OUT_OF_RANGE:
            start = self._asked(lambda leader: self._first_offset(leader, deadline), deadline)
            if start == offset:
                raise Unreachable(self._words(_OUT_OF_RANGE))
            return self._fetched(broker, start, deadline)
        self._check(found.error_code)
        if answer.API_VERSION < _BY_ID:
            self._look(broker, deadline)
            if self._leader is None:
                raise Unreachable(_NO_LEADER)
        data = bytes(found.records or b"")
        return Fetched(offset=offset, start=found.log_start_offset, end=found.high_watermark, data=data)

    def _produce_request(self, batch: bytes, seconds: float) -> Any:
        topic = ProduceRequest.TopicProduceData
        partition = topic.PartitionProduceData(index=0, records=batch)
        return ProduceRequest(
            transactional_id=None,
            acks=_ALL_IN_SYNC,
            timeout_ms=int(seconds * 1000),
            topic_data=[topic(name=self.name, topic_id=self.topic_id, partition_data=[partition])],
            min_version=3,
        )

    def _fetch_request(self, offset: int) -> Any:
        topic = FetchRequest.FetchTopic
        partition = topic.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=_MOST_BYTES)
        return FetchRequest(
            replica_id=-1,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=_MOST_BYTES,
            isolation_level=0,
            topics=[topic(topic=self.name, topic_id=self.topic_id, partitions=[partition])],
            forgotten_topics_data=[],
            min_version=5,
        )

    def _look_again(self, reason: str, deadline: Deadline) -> None:
        time.sleep(_PAUSE_SECONDS)
        if deadline.over:
            seconds = f"{deadline.seconds:.0f} s"
            raise Unreachable(f"topic {self.name}: no answer within {seconds} ({reason.removeprefix(self._prefix)})")
        others = [broker for broker in self._wire.brokers() if broker != self._leader]
        try:
            self._look(random.choice(others) if others else None, deadline)
        except Unreachable:
            return

    def _look(self, broker: BrokerId | None, deadline: Deadline) -> None:
        """Read the leader from the metadata of `broker`, or of any broker (None), and verify the topic's id."""
        answer = self._wire.metadata([self.name], broker, deadline.request(broker))
        (found,) = answer.topics
        if found.error_code == TOPIC_DENIED:
            raise refusal(TOPIC_DENIED, self._words(TOPIC_DENIED))
        if found.error_code == UNKNOWN_TOPIC:
            self._leader = None
            self._absent_since = now() if self._absent_since is None else self._absent_since
            if now() - self._absent_since > _ABSENT_SECONDS:
                deleted = f"{self._prefix}it was deleted (id {printed_id(self.topic_id)}). "
                raise Refused(deleted, NextStep.SHARE_RECORD, " creates a new one")
            return
        self._absent_since = None
        if found.topic_id.int and found.topic_id != self.topic_id:
            ids = f"old id {printed_id(self.topic_id)}, new id {printed_id(found.topic_id)}"
            again = f"{self._prefix}it was deleted and created again ({ids}). Runs may be missing from the new topic. "
            raise Refused(again, NextStep.SHARE_RECORD, " on each host adds its open runs")
        self._leader = leader(found)

    def _check(self, code: int) -> None:
        """Raise Unreachable for an error after which another attempt can help, and `refusal` for any other error."""
        if code:
            words = self._words(code)
            raise Unreachable(words) if code in _PASSING else refusal(code, words)

    def _words(self, code: int, message: str | None = None) -> str:
        return f"{self._prefix}the broker answered {kafka_error(code, message)}"
