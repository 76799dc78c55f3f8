"""The Log port on a compacted topic with one partition: compare-and-append with the sequence of one producer id."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Final

from kquota.errors import NextStep, Parameter, Refused, StepFor, Unknown, Unreachable
from kquota.stores.admin.connection import Wire, kafka_error
from kquota.stores.admin.partition import (
    NO_LEADER_YET,
    OUT_OF_ORDER,
    TOO_FEW_IN_SYNC,
    Deadline,
    PartitionLog,
    Produced,
    leader,
    refusal,
)
from kquota.stores.admin.record_batch import Batch, decode, encode, following
from kquota.stores.admin.requests import UNKNOWN_TOPIC
from kquota.stores.admin.wire_format import printed_id
from kquota.stores.state.log import Item, KeyAndValue, Stale, now

SECONDS: Final = 15.0
"""The default time limit in seconds of one call to the log, for example `append`. All requests of the call share it."""
_FRESH_SECONDS: Final = 1.0
_PAUSE_SECONDS: Final = 0.05
_NONCE_BYTES: Final = 16
_EMPTY_FETCHES: Final = 3


class WireLog:
    """Implements `Log`.

    Each append is one batch. Its sequence (KIP-98) follows the last batch that the caller has read, so the broker
    rejects the batch of a caller that has not read all batches. There are two exceptions. The broker acknowledges a
    batch with the sequences of one of the last five batches, but does not append it. The broker also accepts any batch
    after it has dropped the producer id, which happens after a day or more without writes. Therefore, every append
    reads the log back, and succeeds only if its batch is the first new one. A random nonce identifies the batch of this
    process.
    """

    def __init__(self, partition: PartitionLog, wire: Wire, seconds: float) -> None:
        self._partition = partition
        self._wire = wire
        self._seconds = seconds
        self._position = 0
        self._verified = float("-inf")
        self._waiting: list[Item] = []
        self._unseen: list[Batch] = []
        """The batches of all kquota processes after the last batch that the caller has read or appended."""
        self._sequence = 0
        self.foreign = 0
        """The number of ignored records: records of other producers, records without a text key, and records in an
        unreadable batch.
        """
        self.truncated = False
        """Also True after an unclean election that deleted records."""

    @property
    def identity(self) -> str:
        return printed_id(self._partition.topic_id) or ""

    def read(self) -> Sequence[Item]:
        self._catch_up(Deadline(self._wire, self._seconds))
        return self.seen()

    def seen(self) -> Sequence[Item]:
        items, self._waiting = self._waiting, []
        if self._unseen:
            self._sequence = following(self._unseen[-1].last_sequence)
            self._unseen = []
        return items

    def append(self, entries: Sequence[KeyAndValue]) -> None:
        deadline = Deadline(self._wire, self._seconds)
        if now() - self._verified > _FRESH_SECONDS:
            self._catch_up(deadline)
        if self._unseen:
            raise self._stale()
        if not entries:
            return
        nonce = os.urandom(_NONCE_BYTES)
        batch = encode(entries, self._sequence, nonce)
        maybe, read = False, self._position
        while True:
            sent = self._partition.produce(batch, deadline)
            # An acknowledged offset that was already read is that of an earlier batch with the same sequence.
            maybe |= sent.maybe and not 0 <= sent.offset < read
            if sent.refused and not maybe:
                raise refusal(sent.code, sent.reason)
            try:
                self._catch_up(deadline, sent.offset + 1)
            except Unreachable as error:
                raise self._undecided(sent, str(error), maybe=maybe) from error
            if self._unseen:
                self._decide(nonce, maybe=maybe)
                return
            if deadline.over or sent.refused:
                reason = f"topic {self._partition.name}: the broker acknowledged a duplicate of offset {sent.offset}"
                raise self._undecided(sent, reason if sent.code == 0 else sent.reason, maybe=maybe)
            time.sleep(_PAUSE_SECONDS)

    def offer(self, entries: Sequence[KeyAndValue]) -> None:
        if not self._unseen:
            self._partition.produce(
                encode(entries, self._sequence, os.urandom(_NONCE_BYTES)), Deadline(self._wire, self._seconds)
            )

    def _decide(self, nonce: bytes, *, maybe: bool) -> None:
        """Accept the append if the first new batch is from this process. Otherwise raise Stale, or Unknown if the batch
        of this process may also be in the log.

        A first new batch with an unexpected sequence does not show which kquota appended first. Compaction may have
        removed an earlier batch, or the broker may have dropped the producer id.
        """
        first, *others = self._unseen
        if first.nonce == nonce:
            self._sequence = following(first.last_sequence)
            self._unseen = others
            return
        took_our_place = first.base_sequence == self._sequence and first.nonce is not None
        if any(batch.nonce == nonce for batch in others) or (maybe and not took_our_place):
            raise Unknown(
                f"topic {self._partition.name}: another kquota also appended, and it is unknown which record came "
                "first. Run the command again"
            )
        raise self._stale()

    def _undecided(self, sent: Produced, reason: str, *, maybe: bool) -> Refused | Unknown | Unreachable:
        """Return the error for an append that was not seen in the log before the deadline."""
        step: tuple[str | StepFor, ...] = ()
        if sent.code in TOO_FEW_IN_SYNC:
            start = ". Start the brokers of its replicas, or lower its min.insync.replicas. "
            step = (start, StepFor(NextStep.SHOW_TOPIC, self._partition.name), " shows the in-sync replicas")
        if maybe:
            return Unknown(f"{reason}. It is unknown whether the record was written", *step)
        if sent.code in (0, OUT_OF_ORDER):
            deleted = f"{reason}, because the last records of the topic were deleted. Nothing was appended. "
            return Refused(deleted, "Delete the topic, and then run ", NextStep.SHARE_RECORD, " on every host")
        return Unreachable(f"{reason}. Nothing was appended", *step)

    def _stale(self) -> Stale:
        return Stale(f"topic {self._partition.name}: another kquota appended first. Nothing was appended")

    def _catch_up(self, deadline: Deadline, least: int = 0) -> None:
        """Fetch up to the high watermark, and at least up to offset `least`."""
        empty = 0
        while True:
            found = self._partition.fetch(self._position, deadline)
            if found.start > 0 or found.offset != self._position:
                self.truncated = True
            before = self._position = found.offset
            for batch in decode(found.data):
                self._take(batch)
            if found.end == self._position >= least:
                break
            # The high watermark of a new leader can be below the committed offset for a moment.
            empty = empty + 1 if self._position == before else 0
            if empty >= _EMPTY_FETCHES and found.end > self._position >= least:
                break
            if empty and deadline.over:
                late = f"did not return all records up to offset {least} in time"
                raise Unreachable(f"topic {self._partition.name}: its leader {late}")
            if empty:
                time.sleep(_PAUSE_SECONDS)
        self._verified = now()

    def _take(self, batch: Batch) -> None:
        if batch.last_offset < self._position:
            return
        self._position = batch.last_offset + 1
        self.foreign += batch.foreign
        self._waiting.extend(batch.items)
        if batch.ours:
            self._unseen.append(batch)


def find(wire: Wire, name: str, seconds: float = SECONDS) -> WireLog | None:
    """Return the log of the shared record, or None if the topic does not exist.

    `seconds` is the time limit of each call of the log, as in `SECONDS`. Raises Forbidden if this user may not see the
    topic, even if the topic does not exist. Raises Refused if the topic has several partitions or no id (before Kafka
    2.8), or if the broker reports another error. Raises Unreachable if there is no answer.
    """
    (found,) = wire.metadata([name]).topics
    if found.error_code == UNKNOWN_TOPIC:
        return None
    if found.error_code not in (0, NO_LEADER_YET):
        raise refusal(found.error_code, f"topic {name}: the broker answered {kafka_error(found.error_code, None)}")
    if not found.topic_id.int:
        raise Refused(f"topic {name} has no id. The shared record needs Kafka 2.8 or newer on every broker")
    if len(found.partitions) > 1:
        problem = f"topic {name} has {len(found.partitions)} partitions, but the shared record needs exactly one"
        raise Refused(
            f"{problem}. Give another topic with ",
            Parameter("record"),
            ". If this topic was the record until someone added partitions, delete the topic, and then run ",
            NextStep.SHARE_RECORD,
            " on every host",
        )
    return WireLog(PartitionLog(wire, name, found.topic_id, leader(found)), wire, seconds)
