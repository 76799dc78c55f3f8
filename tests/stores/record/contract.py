"""The contract of a Log port. The fake and the real store pass it."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest

from kquota.stores.state.log import Item, KeyAndValue, Log, Stale

LARGE = 900_000


def entries(items: Sequence[Item]) -> list[KeyAndValue]:
    return [(item.key, item.value) for item in items]


def newest(items: Sequence[Item]) -> dict[str, bytes | None]:
    return {item.key: item.value for item in items}


class LogContract:
    """The subclass provides `handle`: each call is another host's view of one log, which is new in each test."""

    def handle(self) -> Log:
        raise NotImplementedError

    def test_a_new_log_is_empty(self) -> None:
        assert self.handle().read() == []

    def test_every_handle_shows_the_same_identity(self) -> None:
        assert self.handle().identity == self.handle().identity != ""

    def test_each_handle_reads_every_item_once(self) -> None:
        one, two = self.handle(), self.handle()
        one.append([("a", b"1"), ("b", b"\x00\xff")])
        for log in (one, two):
            assert entries(log.read()) == [("a", b"1"), ("b", b"\x00\xff")]
            assert log.read() == []

    def test_items_have_growing_offsets(self) -> None:
        log = self.handle()
        log.append([("a", b"1"), ("b", b"2")])
        log.append([("a", b"3")])
        items = log.read()
        assert [item.offset for item in items] == sorted({item.offset for item in items})

    def test_seen_returns_items_found_by_appends_and_read_the_others(self) -> None:
        one, two = self.handle(), self.handle()
        one.append([("a", b"1")])
        assert two.seen() == []
        assert entries(one.seen()) == [("a", b"1")]
        assert one.seen() == one.read() == []
        assert entries(two.read()) == [("a", b"1")]
        two.append([("b", b"2")])
        two.append([("c", b"3")])
        assert entries(two.seen()) == [("b", b"2"), ("c", b"3")]
        assert entries(one.read()) == [("b", b"2"), ("c", b"3")]

    def test_an_offer_is_appended_unless_stale(self) -> None:
        one, two = self.handle(), self.handle()
        one.append([("a", b"1")])
        two.read()
        one.offer([("a", b"2")])
        two.offer([("a", b"stale")])
        assert entries(self.handle().read()) == [("a", b"1"), ("a", b"2")]

    def test_a_stale_append_appends_nothing(self) -> None:
        one, two = self.handle(), self.handle()
        assert two.read() == []
        one.append([("a", b"1")])
        for _ in range(2):
            with pytest.raises(Stale, match="another kquota appended first"):
                two.append([("a", b"2"), ("b", b"2")])
        assert entries(self.handle().read()) == [("a", b"1")]
        assert entries(two.read()) == [("a", b"1")]
        two.append([("a", b"2")])
        assert entries(one.read()) == [("a", b"1"), ("a", b"2")]

    def test_an_append_to_a_log_that_was_never_read_is_stale(self) -> None:
        self.handle().append([("a", b"1")])
        with pytest.raises(Stale):
            self.handle().append([("a", b"2")])

    def test_only_the_newest_position_may_append(self) -> None:
        """Old positions are included, because a broker answers one of the last five batches differently from an older
        batch.
        """
        behind = {count: self.handle() for count in range(8)}
        writer = self.handle()
        for count, log in behind.items():
            log.read()
            writer.append([("k", b"%d" % count)])
        for log in behind.values():
            with pytest.raises(Stale):
                log.append([("k", b"stale")])
        assert newest(writer.read()) == {"k": b"7"}
        for count, log in behind.items():
            assert entries(log.read()) == [("k", b"%d" % later) for later in range(count, 8)]

    def test_hosts_take_turns(self) -> None:
        one, two = self.handle(), self.handle()
        for turn in range(6):
            log = (one, two)[turn % 2]
            log.read()
            log.append([("turn", b"%d" % turn)])
        assert entries(self.handle().read()) == [("turn", b"%d" % turn) for turn in range(6)]

    def test_none_deletes_a_key(self) -> None:
        log = self.handle()
        log.append([("a", b"1"), ("b", b"1")])
        log.append([("a", None)])
        assert newest(self.handle().read()) == {"a": None, "b": b"1"}

    def test_a_value_may_be_empty(self) -> None:
        log = self.handle()
        log.append([("", b""), ("ключ/<default>", b"")])
        assert entries(log.read()) == [("", b""), ("ключ/<default>", b"")]

    def test_an_append_of_nothing_does_nothing(self) -> None:
        one, two = self.handle(), self.handle()
        assert two.read() == []
        one.append([])
        two.append([("a", b"1")])
        assert entries(two.read()) == [("a", b"1")]

    def test_a_large_batch_is_accepted(self) -> None:
        log = self.handle()
        value = os.urandom(LARGE)
        log.append([("large", value), ("small", b"1")])
        assert newest(self.handle().read()) == {"large": value, "small": b"1"}

    def test_many_appends_keep_their_order(self) -> None:
        log = self.handle()
        wanted = [(f"k{n % 7}", b"%d" % n) for n in range(60)]
        for start in range(0, len(wanted), 3):
            log.append(wanted[start : start + 3])
        assert entries(log.read()) == wanted
        assert newest(self.handle().read()) == dict(wanted)
