"""Addresses in an operator's form. Addresses that no socket accepts are refused before a socket is opened."""

from __future__ import annotations

import pytest

from kquota.errors import Invalid
from kquota.stores.login.listening import addresses

TAKEN = {
    "one": ("b1:9092", [("b1", 9092)]),
    "several, with blanks": ("b1:9092, b2:9093", [("b1", 9092), ("b2", 9093)]),
    "IPv6": ("[fe80::1%eth0]:9092", [("fe80::1%eth0", 9092)]),
    "a name from the root on": ("b1.example.com.:9092", [("b1.example.com.", 9092)]),
    "an underscore, as containers have": ("kafka_1:9092", [("kafka_1", 9092)]),
    "another script": ("b\u00fccher:9092", [("b\u00fccher", 9092)]),
    "the last port": ("b1:65535", [("b1", 65535)]),
}


@pytest.mark.parametrize(("text", "pairs"), TAKEN.values(), ids=TAKEN)
def test_addresses(text: str, pairs: list[tuple[str, int]]) -> None:
    assert addresses(text, "--x", "config") == pairs


REFUSED = {
    "none": (" ,", "--x: no address given. Write host:port"),
    "a protocol": ("SSL://b1:9092", "leave out SSL://"),
    "no port": ("b1", "'b1' is not host:port"),
    "no host": ("[]:9092", "'[]:9092' is not host:port"),
    "a port above all": ("b1:65536", "is not host:port"),
    "more digits than int() takes": (f"b1:{'9' * 5_000}", "is not host:port"),
    "an empty label": (".example.com:9092", "'.example.com:9092': '.example.com' is not a valid host name"),
    "two dots": ("b1:9092,b1..example.com:9092", "'b1..example.com' is not a valid host name"),
    "a long label": (f"{'x' * 64}:9092", "is not a valid host name"),
    "what a shell of another locale hands over": ("b\udcff:9092", "is not a valid host name"),
}


@pytest.mark.parametrize(("text", "complaint"), REFUSED.values(), ids=REFUSED)
def test_invalid_addresses(text: str, complaint: str) -> None:
    with pytest.raises(Invalid) as raised:
        addresses(text, "--x", "config")
    assert str(raised.value).startswith("--x: ")
    assert complaint in str(raised.value)
