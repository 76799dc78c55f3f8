"""Record batches as bytes: one table of cases, which both kquota and kafka-python read."""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from typing import Any

import pytest
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from kquota.errors import Refused
from kquota.stores.admin.record_batch import PRODUCER_ID, Batch, decode, encode, following
from kquota.stores.state.log import KeyAndValue

NONCE = bytes(range(16))
LARGEST = 2**31 - 1
CASES: dict[str, tuple[list[KeyAndValue], int, int]] = {
    "one record": ([("a", b"1")], 0, 0),
    "a deletion": ([("a", None)], 7, 7),
    "an empty value": ([("a", b"")], 7, 7),
    "a key of nothing and one in Cyrillic": ([("", b"1"), ("ключ", b"2")], 3, 4),
    "a key twice": ([("a", b"1"), ("a", b"2")], 0, 1),
    "many records": ([(f"k{n}", b"%d" % n) for n in range(300)], 100, 399),
    "a large value": ([("a", os.urandom(200_000))], 0, 0),
    "the largest sequence": ([("a", b"1")], LARGEST, LARGEST),
    "a batch across the largest sequence": ([("a", b"1"), ("b", b"2"), ("c", b"3")], LARGEST - 1, 0),
}


@pytest.mark.parametrize(("entries", "first", "last"), CASES.values(), ids=CASES)
def test_a_batch_is_read_back_unchanged(entries: list[KeyAndValue], first: int, last: int) -> None:
    data = encode(entries, first, NONCE)
    assert DefaultRecordBatch(data).validate_crc()
    (batch,) = decode(data)
    assert [(item.key, item.value) for item in batch.items] == entries
    assert [item.offset for item in batch.items] == list(range(len(entries)))
    assert (batch.ours, batch.nonce, batch.foreign) == (True, NONCE, 0)
    assert (batch.base_sequence, batch.last_sequence) == (first, last)
    assert (batch.base_offset, batch.last_offset) == (0, len(entries) - 1)


def test_the_sequence_after_the_largest_is_0() -> None:
    assert [following(n) for n in (0, 41, LARGEST - 1, LARGEST)] == [1, 42, LARGEST, 0]


Keys = Sequence[tuple[bytes | None, bytes | None]]


def built(records: Keys, producer: int = PRODUCER_ID, codec: int = 0, at: int = 0) -> bytes:
    """A batch of any producer, at an offset."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=False,
        producer_id=producer,
        producer_epoch=0,
        base_sequence=5,
        batch_size=2**31 - 1,
    )
    for offset, (key, value) in enumerate(records):
        builder.append(offset, 0, key, value, [])
    return struct.pack(">q", at) + bytes(builder.build())[8:]


def emptied(data: bytes) -> bytes:
    """The last batch of a producer after compaction: a header with offsets and sequence, without records."""
    size = DefaultRecordBatch.HEADER_STRUCT.size
    header = list(DefaultRecordBatch.HEADER_STRUCT.unpack_from(data))
    header[1], header[12] = size - 12, 0
    return bytes(DefaultRecordBatch.HEADER_STRUCT.pack(*header))


def summary(batch: Batch) -> tuple[Any, ...]:
    return (batch.ours, batch.last_offset, [item.key for item in batch.items], batch.foreign, batch.last_sequence)


def dated(data: bytes, ms: int) -> bytes:
    """The same batch with another time."""
    header = list(DefaultRecordBatch.HEADER_STRUCT.unpack_from(data))
    header[7] = header[8] = ms
    return bytes(DefaultRecordBatch.HEADER_STRUCT.pack(*header)) + data[DefaultRecordBatch.HEADER_STRUCT.size :]


TEXT: Keys = [(b"a" * 50, b"1" * 50), (b"b", b"2")]
STRANGE: dict[str, tuple[bytes, tuple[Any, ...]]] = {
    "of another producer": (built(TEXT, producer=4), (False, 1, [], 2, 6)),
    "of a producer without an id": (built(TEXT, producer=-1), (False, 1, [], 2, 6)),
    "ours, with gzip": (built(TEXT, codec=1), (True, 1, ["a" * 50, "b"], 0, 6)),
    "ours, in a codec that does not exist": (
        (data := built(TEXT))[:22] + b"\x07" + data[23:],
        (True, 1, [], 2, 6),
    ),
    "ours, with gzip that is none": ((data := built(TEXT))[:22] + b"\x01" + data[23:], (True, 1, [], 2, 6)),
    "a key that is not text": (built([(b"\xff", b"1"), (b"b", b"2")]), (True, 1, ["b"], 1, 6)),
    "a time that no date has": (dated(built(TEXT), 2**62), (True, 1, ["a" * 50, "b"], 0, 6)),
    "no key": (built([(None, b"1")]), (True, 0, [], 1, 5)),
    "emptied by compaction": (emptied(built(TEXT)), (True, 1, [], 0, 6)),
    "a message of Kafka 0.10": (struct.pack(">qiIb9x", 0, 14, 0, 1), (False, 0, [], 1, -1)),
}


@pytest.mark.parametrize(("data", "wanted"), STRANGE.values(), ids=STRANGE)
def test_an_unknown_batch_is_counted_and_offsets_continue(data: bytes, wanted: tuple[Any, ...]) -> None:
    (batch,) = decode(data)
    assert summary(batch) == wanted


def test_a_fetch_holds_several_batches_and_may_end_within_one() -> None:
    one, two = built(TEXT), built([(b"c", b"3")], at=10)
    assert [(b.base_offset, b.last_offset) for b in decode(one + two)] == [(0, 1), (10, 10)]
    for cut in range(1, len(two)):
        assert [b.last_offset for b in decode(one + two[:-cut])] == [1]
    assert list(decode(b"")) == []


@pytest.mark.parametrize("length", [-(2**31), -12, -1, 0, 48])
def test_a_batch_that_is_shorter_than_its_header_is_refused(length: int) -> None:
    """A length of -12 caused an endless loop."""
    data = bytearray(built(TEXT))
    data[8:12] = length.to_bytes(4, "big", signed=True)
    with pytest.raises(Refused, match=f"damaged record batch at offset 0 .length {length}"):
        list(decode(bytes(data)))
