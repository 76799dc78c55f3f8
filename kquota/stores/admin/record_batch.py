"""Record batches as bytes: encodes the batch of an append, and decodes the batches of a fetch."""

from __future__ import annotations

import struct
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import kafka.errors as kafka_errors
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from kquota.errors import Refused
from kquota.stores.state.log import Item, KeyAndValue

PRODUCER_ID: Final = 0x6B71_756F_7461_0001
"""The producer id of every kquota process: `kquota` in ASCII, then 1. Brokers assign ids from 0 upwards."""
_EPOCH: Final = 0
_NONCE: Final = "kquota"
_LARGEST_SEQUENCE: Final = 2**31 - 1
_MAGIC: Final = 2
_UNLIMITED: Final = 2**31 - 1
"""The builder's limit in bytes. It is as large as possible, because the broker checks the size of a batch."""

_PREFIX: Final = struct.Struct(">qi4xb")
"""Every format of a batch begins with its base offset, the length of the rest, 4 other bytes, and its magic."""
_LENGTH_FROM: Final = 12
_UNREADABLE: Final = (kafka_errors.KafkaError, ValueError, IndexError, OSError, EOFError, zlib.error, RuntimeError)
"""Errors of kafka-python for a codec that is not installed, or for damaged data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One batch of the log.

    `items` is empty and `nonce` is None if another producer wrote the batch, if kafka-python cannot read it, or if
    compaction has removed every record.
    """

    base_offset: int
    last_offset: int
    ours: bool
    """True if a kquota process wrote the batch."""
    base_sequence: int
    """The sequence of the first record, or -1 if the batch has no sequences."""
    last_sequence: int
    nonce: bytes | None = None
    """The random bytes that identify the append that wrote the batch."""
    items: tuple[Item, ...] = ()
    foreign: int = 0
    """The number of records of the batch that are not in `items`."""


def following(sequence: int) -> int:
    """Return the next sequence. Kafka continues with 0 after 2^31 - 1."""
    return 0 if sequence == _LARGEST_SEQUENCE else sequence + 1


def encode(entries: Sequence[KeyAndValue], sequence: int, nonce: bytes) -> bytes:
    """Encode the entries as one batch. The first record has `sequence`. Each record has `nonce` in a header."""
    builder = DefaultRecordBatchBuilder(
        magic=_MAGIC,
        compression_type=DefaultRecordBatch.CODEC_NONE,
        is_transactional=False,
        producer_id=PRODUCER_ID,
        producer_epoch=_EPOCH,
        base_sequence=sequence,
        batch_size=_UNLIMITED,
    )
    now_ms = int(time.time() * 1000)
    for offset, (key, value) in enumerate(entries):
        builder.append(offset, now_ms, key.encode(), value, [(_NONCE, nonce)])
    return bytes(builder.build())


def decode(data: bytes) -> Iterator[Batch]:
    """Yield the batches of a fetch, in order, without an incomplete last batch.

    Raises Refused for a batch that is shorter than its header.
    """
    view, position = memoryview(data), 0
    while position + _PREFIX.size <= len(view):
        offset, length, magic = _PREFIX.unpack_from(view, position)
        end = position + _LENGTH_FROM + length
        if end > len(view):
            return
        if end - position < (DefaultRecordBatch.HEADER_STRUCT.size if magic == _MAGIC else _PREFIX.size):
            damaged = f"a damaged record batch at offset {offset} (length {length})"
            raise Refused(f"shared record: the broker sent {damaged}. Run the command again")
        if magic == _MAGIC:
            yield _batch(view[position:end])
        else:  # a message in a format from before Kafka 0.11 has no producer id
            yield Batch(
                base_offset=offset, last_offset=offset, ours=False, base_sequence=-1, last_sequence=-1, foreign=1
            )
        position = end


def _batch(data: memoryview) -> Batch:
    # The checksum is not verified, because the broker has verified it, and TCP also uses checksums.
    found = DefaultRecordBatch(data)
    ours = found.producer_id == PRODUCER_ID and not found.is_control_batch
    items, nonce = _items(found) if ours else ((), None)
    return Batch(
        base_offset=found.base_offset,
        last_offset=found.last_offset,
        ours=ours,
        base_sequence=found.base_sequence,
        last_sequence=found.last_sequence,
        nonce=nonce,
        items=items,
        foreign=found.records_count - len(items),
    )


def _items(batch: Any) -> tuple[tuple[Item, ...], bytes | None]:
    try:
        records = list(batch)
    except _UNREADABLE:
        return (), None
    nonces = (value for record in records for key, value in record.headers if key == _NONCE)
    return tuple(item for record in records if (item := _item(record)) is not None), next(nonces, None)


def _item(record: Any) -> Item | None:
    """Return the item of a record, or None if its key is not text."""
    try:
        return Item(offset=record.offset, key=record.key.decode(), value=record.value)
    except (AttributeError, ValueError):
        return None
