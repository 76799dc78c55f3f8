"""Addresses in an operator's form. Addresses that no socket accepts are refused before a socket is opened."""

from __future__ import annotations

import re
import socket
import ssl
from types import SimpleNamespace
from typing import Any

import pytest

from kquota.errors import Invalid, Unreachable
from kquota.stores.login import listening
from kquota.stores.login.listening import addresses, explained, must_listen

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
    "none": (" ,", "--x: no address is given. Write host:port"),
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


def test_the_reason_for_each_address() -> None:
    with pytest.raises(Unreachable) as raised:
        must_listen("broker", "[::1]:1,127.0.0.1:1", "--x", "config", 1.0)
    causes = r"\(\[::1\]:1: [^;]+; 127\.0\.0\.1:1: [^;]+\)"
    named = rf"no broker accepts a connection at \[::1\]:1,127\.0\.0\.1:1 {causes}\. Check --x"
    assert re.fullmatch(named, str(raised.value))


@pytest.mark.parametrize("lookup", [0.0, 5.0])
def test_the_addresses_of_a_host_share_the_time_limit(lookup: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow lookup does not use up the time to connect."""
    clock, tried = SimpleNamespace(seconds=0.0), list[str]()

    def resolved(host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        clock.seconds += lookup if host == "k1" else 0.0
        ips = [f"10.0.0.{n}" for n in (1, 2, 3)] if host == "k1" else [host]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, port)) for ip in ips]

    class Dropped(socket.socket):
        """A connection whose packets a firewall drops."""

        def connect(self, address: Any) -> None:
            clock.seconds += self.gettimeout() or 0.0
            tried.append(address[0])
            raise TimeoutError("timed out")

    monkeypatch.setattr(listening, "time", SimpleNamespace(monotonic=lambda: clock.seconds))
    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    monkeypatch.setattr(socket, "socket", Dropped)
    with pytest.raises(Unreachable, match=re.escape("(k1:9092: timed out; 10.0.0.9:9092: timed out)")):
        must_listen("broker", "k1:9092,10.0.0.9:9092", "--x", "config", 10.0)
    assert clock.seconds == pytest.approx(10.0 + lookup)
    assert tried == ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.9"]


UNVERIFIED = {
    "certificate has expired": "is no longer valid ({}). Renew it, or check the clock of this machine",
    "certificate is not yet valid": "is not valid yet ({}). Check the clock of this machine",
    "Hostname mismatch, certificate is not valid for 'k1'.": "is for another name ({}). Use a name that it contains",
    "self-signed certificate": "is not signed by an authority in the trust store ({}). Check the file",
    "unable to get local issuer certificate": "is not signed by an authority in the trust store ({}). Check the file",
    "unsuitable certificate purpose": "was not accepted ({}). Check the file",
}


@pytest.mark.parametrize("reason", UNVERIFIED)
def test_each_certificate_error_has_one_next_step(reason: str) -> None:
    error = ssl.SSLCertVerificationError(1, "failed")
    error.verify_message = reason
    words = UNVERIFIED[reason].format(reason.rstrip("."))
    assert explained(error, "Check the file") == f"the server's certificate {words}"


def test_only_a_failed_handshake_is_explained() -> None:
    assert explained(ConnectionRefusedError("refused"), "Check the file") is None
    failed = ssl.SSLError(1, "failed")
    failed.reason = "NO_CIPHERS_AVAILABLE"
    assert explained(failed) == "TLS failed (NO_CIPHERS_AVAILABLE)"
