"""OAUTHBEARER with a real endpoint and a real broker: failures print one line, in time, without a secret."""

from __future__ import annotations

import base64
import json
import os
import re
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs

import pytest

from kquota.errors import Invalid, KquotaError, Refused, Unreachable
from kquota.stores.login import kafka_python, oauth, rdkafka, tokens
from kquota.stores.login.oauth import ClientCredentials, TokenFile
from kquota.stores.login.security import security
from tests import certificates
from tests.canary import CANARY
from tests.cli.run import kquota
from tests.logins import bearer
from tests.secured import Secured, escaped, jwt

PACKAGE = "org.apache.kafka.common.security.oauthbearer"
SECRET = f"{CANARY}:+/ é"


def fresh() -> str:
    now = time.time()
    return jwt(sub="alice", iat=now, exp=now + 600)


class Endpoint(BaseHTTPRequestHandler):
    """An identity provider: the requests that it received, and its answers."""

    asked: ClassVar[list[tuple[str, str, dict[str, list[str]]]]] = []
    answer: ClassVar[Callable[[], tuple[int, dict[str, str], bytes]]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        type(self).asked.append((self.path, self.headers["Authorization"], parse_qs(body)))
        code, headers, document = type(self).answer()
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(document)

    def do_GET(self) -> None:
        """A followed redirect would arrive here."""
        type(self).asked.append((self.path, self.headers["Authorization"], {}))
        self.send_error(404)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def endpoint(store: Path | None, answer: Callable[[], tuple[int, dict[str, str], bytes]]) -> Iterator[str]:
    Endpoint.asked.clear()
    Endpoint.answer = staticmethod(answer)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    server.daemon_threads = True
    if store is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(store)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=[0.01], daemon=True)
    thread.start()
    try:
        yield f"{'https' if store else 'http'}://localhost:{server.server_port}/token"
    finally:
        server.shutdown()
        server.server_close()


def given(token: object) -> Callable[[], tuple[int, dict[str, str], bytes]]:
    return lambda: (200, {"Content-Type": "application/json"}, json.dumps({"access_token": token}).encode())


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("provider")
    ours = certificates.authority("ours")
    (folder / "ca.pem").write_text(ours.pem)
    (folder / "stranger.pem").write_text(certificates.authority("stranger").pem)
    certificates.signed("provider", ours, hosts=("localhost",)).pem_store(folder / "server.pem")
    return folder


def properties(url: str, trust: Path, secret: str = SECRET, **more: str) -> dict[str, str]:
    return {
        **bearer(clientId="kquota", clientSecret=secret, scope="kafka admin"),
        "sasl.login.callback.handler.class": f"{PACKAGE}.OAuthBearerLoginCallbackHandler",
        "sasl.oauthbearer.token.endpoint.url": url,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(trust),
        **more,
    }


def written(folder: Path, found: Mapping[str, str]) -> Path:
    file = folder / "client.properties"
    file.touch(mode=0o600)
    file.write_text("".join(f"{key}={escaped(value)}\n" for key, value in found.items()))
    return file


def test_a_token_from_a_provider_logs_in(secured: Secured, stores: Path, tmp_path: Path) -> None:
    with endpoint(stores / "server.pem", given(fresh())) as url:
        file = written(tmp_path, properties(url, stores / "ca.pem"))
        where = ("--bootstrap-server", secured.at["BEARER"], "--command-config", str(file))
        ran = kquota("configs", "--describe", "--entity-type", "users", *where)
        assert (ran.code, ran.err) == (0, "")
        basic = base64.b64encode(f"kquota:{SECRET}".encode()).decode()
        # Two connections, to the bootstrap address and to the broker, share one token.
        assert Endpoint.asked == [
            ("/token", f"Basic {basic}", {"grant_type": ["client_credentials"], "scope": ["kafka admin"]})
        ]


def test_librdkafka_also_logs_in_with_it(secured: Secured, stores: Path, tmp_path: Path) -> None:
    from confluent_kafka.admin import AdminClient

    with endpoint(stores / "server.pem", given(fresh())) as url:
        found = security(written(tmp_path, properties(url, stores / "ca.pem")), {}, lambda _line: None)
        client = AdminClient(rdkafka.settings(found) | {"bootstrap.servers": secured.at["BEARER"], "log_level": 0})
        client.poll(0)
        assert set(client.list_topics(timeout=60).brokers) == {1}


def asked(url: str, trust: Path, folder: Path, **more: str) -> oauth.Token:
    found = security(written(folder, properties(url, trust, **more)), {}, lambda _line: None)
    assert isinstance(found.credentials, ClientCredentials)
    assert CANARY not in repr(found)
    return tokens.token(found.credentials, found.context)


def answering(code: int, document: object = None, **headers: str) -> Callable[[], tuple[int, dict[str, str], bytes]]:
    return lambda: (code, headers, json.dumps(document).encode())


BAD: dict[str, tuple[Callable[[], tuple[int, dict[str, str], bytes]], type[KquotaError], str]] = {
    "another secret": (
        answering(401, {"error": "invalid_client", "error_description": f"{SECRET} is wrong"}),
        Refused,
        "answered 401 invalid_client. Check clientId, clientSecret, scope and sasl.oauthbearer.token.endpoint.url",
    ),
    "an error that repeats the secret": (answering(400, {"error": CANARY}), Refused, "answered 400. Check"),
    "a broken provider": (answering(503), Refused, "answered 503. Check"),
    "a redirect": (answering(302, Location="/elsewhere"), Refused, "answered 302"),
    "no token": (answering(200, {"token": CANARY}), Refused, "returned no token"),
    "no object": (answering(200, [CANARY]), Refused, "returned no token"),
    "no JSON": (lambda: (200, {}, b"<html>" + CANARY.encode()), Refused, "did not return JSON"),
    "deep JSON": (lambda: (200, {}, b"[" * 100_000), Refused, "did not return JSON"),
    "an error of deep JSON": (lambda: (400, {}, b"[" * 100_000), Refused, "answered 400. Check"),
    "chunks that are none": (
        lambda: (200, {"Transfer-Encoding": "chunked"}, b"none\r\n"),
        Refused,
        "does not answer with HTTP. Check",
    ),
    "a token that would break out of its frame": (given(f"{CANARY}\x01auth=x"), Refused, "returned no token"),
    "a token that is not text": (given(7), Refused, "returned no token"),
}


@pytest.mark.parametrize(("answer", "kind", "reason"), BAD.values(), ids=BAD)
def test_errors_of_a_provider(
    stores: Path,
    tmp_path: Path,
    answer: Callable[[], tuple[int, dict[str, str], bytes]],
    kind: type[KquotaError],
    reason: str,
) -> None:
    with endpoint(stores / "server.pem", answer) as url:
        with pytest.raises(kind, match=re.escape(reason)) as refused:
            asked(url, stores / "ca.pem", tmp_path)
        assert CANARY not in repr(refused.value)
        assert len(Endpoint.asked) == 1


def test_a_server_that_speaks_another_protocol(stores: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            client, _ = server.accept()
            with client:
                client.recv(1 << 16)
                client.sendall(b"220 mail.example.com ESMTP\r\n")

        thread = threading.Thread(target=greet, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/token"
        with pytest.raises(Refused, match=f"the token endpoint {url} does not answer with HTTP. Check sasl"):
            asked(url, stores / "ca.pem", tmp_path)
        thread.join(10)


ENDED = {
    "reset": (struct.pack("ii", 1, 0), "Connection reset by peer"),
    "closed": (struct.pack("ii", 0, 0), "Remote end closed connection without response"),
}


@pytest.mark.parametrize(("linger", "reason"), ENDED.values(), ids=ENDED)
def test_a_connection_without_tls_that_ends_is_not_explained_by_tls(
    stores: Path, tmp_path: Path, linger: bytes, reason: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def end() -> None:
            client, _ = server.accept()
            with client:
                data = b""
                while b"scope=" not in data:
                    data += client.recv(1 << 16)
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)

        thread = threading.Thread(target=end, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/token"
        with pytest.raises(Unreachable, match=f"{url} cannot be reached: {reason}$"):
            asked(url, stores / "ca.pem", tmp_path)
        thread.join(10)


SHOWN = {
    "a name": ("https://login.example.com/token", "https://login.example.com/token"),
    "a port": ("https://login.example.com:8443/token", "https://login.example.com:8443/token"),
    "IPv6": ("https://[2001:db8::1]/token", "https://[2001:db8::1]/token"),
    "IPv6 with a port": ("https://[2001:db8::1]:8443/token", "https://[2001:db8::1]:8443/token"),
    "a user and a query": (f"https://kquota:{CANARY}@[::1]:8443/token?key={CANARY}", "https://[::1]:8443/token"),
}


@pytest.mark.parametrize(("url", "expected"), SHOWN.values(), ids=SHOWN)
def test_the_url_in_a_message(url: str, expected: str) -> None:
    assert oauth.shown(url) == expected


NOT_ASKED = {
    "a host that DNS has no form for": "http://.example.com/token",
    "a blank": "http://127.0.0.1:1/to ken",
    "a letter that no request line holds": "http://127.0.0.1:1/t\u00f6ken",
}


@pytest.mark.parametrize("url", NOT_ASKED.values(), ids=NOT_ASKED)
def test_invalid_requests_to_a_provider(stores: Path, tmp_path: Path, url: str) -> None:
    with pytest.raises(Invalid, match=f"{url} is not a valid URL. Check sasl.oauthbearer.token.endpoint.url"):
        asked(url, stores / "ca.pem", tmp_path)


@pytest.mark.parametrize("claims", [{"exp": 10**400}, {"exp": "soon"}, {}], ids=["beyond a float", "no number", "none"])
def test_a_token_without_expiry(tmp_path: Path, claims: dict[str, Any]) -> None:
    (tmp_path / "token").write_text(jwt(sub="alice", **claims))
    assert (
        tokens.token(TokenFile(path=tmp_path / "token", extensions={}), lambda: pytest.fail("no TLS")).expires is None
    )


def test_an_impossible_path_of_a_token_file() -> None:
    with pytest.raises(Invalid, match=r"cannot read .*: its name has a null character"):
        tokens.token(TokenFile(path=Path("/a\0b"), extensions={}), lambda: pytest.fail("no TLS"))


def test_a_provider_with_an_untrusted_certificate_gets_no_secret(stores: Path, tmp_path: Path) -> None:
    with endpoint(stores / "server.pem", given(fresh())) as url:
        with pytest.raises(Unreachable, match="is not signed by an authority in the trust store"):
            asked(url, stores / "stranger.pem", tmp_path)
        assert Endpoint.asked == []


def test_a_provider_whose_answer_never_ends_is_abandoned(stores: Path, tmp_path: Path) -> None:
    ended = threading.Event()

    def endless() -> tuple[int, dict[str, str], bytes]:
        ended.wait(60)
        return 200, {}, b""

    with endpoint(stores / "server.pem", endless) as url:
        with pytest.raises(Unreachable, match=r"cannot be reached: no answer within 0\.5 s"):
            asked(url, stores / "ca.pem", tmp_path, **{"sasl.login.read.timeout.ms": "500"})
        ended.set()


def test_an_unreachable_provider_prints_one_line(secured: Secured, stores: Path, tmp_path: Path) -> None:
    file = written(tmp_path, properties("https://127.0.0.1:1/token?x=y", stores / "ca.pem"))
    where = ("--bootstrap-server", secured.at["BEARER"], "--command-config", str(file))
    ran = kquota("configs", "--describe", "--entity-type", "users", *where)
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert "the token endpoint https://127.0.0.1:1/token cannot be reached: Connection refused" in ran.err
    assert CANARY not in ran.err


def test_a_secret_without_tls_causes_a_warning(stores: Path, tmp_path: Path) -> None:
    told: list[str] = []
    with endpoint(None, given(fresh())) as url:
        found = security(written(tmp_path, properties(url, stores / "ca.pem")), {}, told.append)
        assert isinstance(found.credentials, ClientCredentials)
        assert tokens.token(found.credentials, found.context).principal == "alice"
    assert [
        line.endswith(f"kquota sends the client secret to {url} without TLS. Use an https URL") for line in told
    ] == [True]


def test_an_encoded_header(stores: Path, tmp_path: Path) -> None:
    with endpoint(stores / "server.pem", given("opaque")) as url:
        token = asked(url, stores / "ca.pem", tmp_path, **{"sasl.oauthbearer.header.urlencode": "true"})
        assert Endpoint.asked[0][1] == "Basic " + base64.b64encode(b"kquota:CANARY-7f3a%3A%2B%2F+%C3%A9").decode()
    assert (token.value, token.principal, token.expires) == ("opaque", "kquota", None)


def test_a_token_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(fresh() + "\n")
    found = security(
        written(tmp_path, {**bearer(), "sasl.oauthbearer.token.endpoint.url": f"file://{tmp_path}/token"}),
        {},
        lambda _line: None,
    )
    assert found.credentials == TokenFile(path=tmp_path / "token", extensions={})
    assert tokens.token(found.credentials, found.context).principal == "alice"
    (tmp_path / "token").unlink()
    with pytest.raises(Invalid, match=r"cannot read .*: No such file"):
        tokens.token(found.credentials, found.context)


def in_file(folder: Path) -> tuple[Path, Callable[[], str]]:
    """A token file, and the token that kafka-python gets for a connection."""
    file = folder / "token"
    properties = {**bearer(), "sasl.oauthbearer.token.endpoint.url": f"file://{file}"}
    found = security(written(folder, properties), {}, lambda _line: None)
    return file, kafka_python.settings(found)["sasl_oauth_token_provider"].token


SOON = jwt(sub="alice", exp=time.time() + 10)
LATER = jwt(sub="alice", exp=time.time() + 30 * 86_400)
"""All tests of a run may come between the import of this module and its tests."""
RENEWED = {"of unknown expiry": ("old", "new"), "about to expire": (SOON, "new"), "valid for long": (LATER, LATER)}


@pytest.mark.parametrize(("first", "second"), RENEWED.values(), ids=RENEWED)
def test_a_token_file_that_is_renewed(tmp_path: Path, first: str, second: str) -> None:
    file, token = in_file(tmp_path)
    file.write_text(first)
    assert token() == first
    file.write_text("new")
    assert token() == second


def test_a_token_in_a_pipe_is_read_once(tmp_path: Path) -> None:
    file, token = in_file(tmp_path)
    os.mkfifo(file)
    writer = threading.Thread(target=file.write_text, args=["opaque"], daemon=True)
    writer.start()
    assert [token(), token()] == ["opaque", "opaque"]
    writer.join(10)
