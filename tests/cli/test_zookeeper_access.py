"""ZooKeeper over TLS, with logins and with ACLs: the accepted logins, the errors, and that no ACL becomes weaker."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.security import OPEN_ACL_UNSAFE, make_acl

from kquota.sandbox.cluster import Sandbox
from tests.canary import CANARY
from tests.cli.run import Ran, kquota
from tests.secured import PASSWORD, SecuredZooKeeper, escaped

TLS = {
    "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
    "zookeeper.ssl.client.enable": "true",
    "zookeeper.ssl.truststore.location": "ca.pem",
    "zookeeper.ssl.keystore.location": "client.pem",
}
PKCS12 = {
    **TLS,
    "zookeeper.ssl.truststore.location": "trust.p12",
    "zookeeper.ssl.truststore.password": CANARY,
    "zookeeper.ssl.keystore.location": "client.p12",
    "zookeeper.ssl.keystore.password": CANARY,
    "zookeeper.ssl.keystore.type": "PKCS12",
}


def tls_file(there: SecuredZooKeeper, properties: Mapping[str, str]) -> Path:
    lines = []
    for key, value in properties.items():
        placed = str(there.folder / value) if key.endswith(".location") else value
        lines.append(f"{key}={escaped(placed)}\n")
    return there.file("zk.properties", "".join(lines))


def describe(address: str, *options: str, env: dict[str, str] | None = None) -> Ran:
    return kquota("configs", "--describe", "--entity-type", "users", "--zookeeper", address, *options, env=env)


def without(properties: Mapping[str, str], word: str) -> dict[str, str]:
    return {key: value for key, value in properties.items() if word not in key}


RIGHT: dict[str, Mapping[str, str]] = {
    "PEM": TLS,
    "PKCS12": PKCS12,
    "PKCS12 by its bytes": without(PKCS12, ".type"),
    "in ZooKeeper's own words": {key.replace("store", "Store"): value for key, value in TLS.items()},
    "TLS 1.3 alone": {**TLS, "zookeeper.ssl.enabled.protocols": "TLSv1.3"},
}


@pytest.mark.parametrize("properties", RIGHT.values(), ids=RIGHT)
def test_tls_connects(secured_zookeeper: SecuredZooKeeper, properties: Mapping[str, str]) -> None:
    file = tls_file(secured_zookeeper, properties)
    assert describe(secured_zookeeper.tls, "--zk-tls-config-file", str(file)) == Ran(0, "", "")


NO_NAMES = [{"zookeeper.ssl.endpoint.identification.algorithm": ""}, {"zookeeper.ssl.hostnameVerification": "false"}]


@pytest.mark.parametrize("off", NO_NAMES, ids=["Kafka's word", "ZooKeeper's word"])
def test_host_names_are_checked_unless_switched_off(
    secured_zookeeper: SecuredZooKeeper, off: Mapping[str, str]
) -> None:
    by_number = secured_zookeeper.tls.replace("localhost", "127.0.0.1")
    checked = describe(by_number, "--zk-tls-config-file", str(tls_file(secured_zookeeper, TLS)))
    assert (checked.code, checked.out, checked.err.count("\n")) == (1, "", 1)
    assert "the server's certificate is for another name (IP address mismatch" in checked.err
    assert describe(by_number, "--zk-tls-config-file", str(tls_file(secured_zookeeper, {**TLS, **off}))).code == 0


WRONG: dict[str, tuple[Mapping[str, str], str]] = {
    "an unknown authority": (
        {**TLS, "zookeeper.ssl.truststore.location": "stranger.pem"},
        "the server's certificate is not signed by an authority in the trust store",
    ),
    "a stranger's client certificate": (
        {**TLS, "zookeeper.ssl.keystore.location": "stranger-client.pem"},
        "the server does not accept this client's certificate",
    ),
    "TLS 1.2, which ZooKeeper does not speak by itself": (
        {**TLS, "zookeeper.ssl.enabled.protocols": "TLSv1.2"},
        "server and client have no TLS version in common",
    ),
    "no client certificate": (without(TLS, "keystore"), "the server requires a client certificate"),
}


@pytest.mark.parametrize(("properties", "reason"), WRONG.values(), ids=WRONG)
def test_wrong_tls_prints_one_line(
    secured_zookeeper: SecuredZooKeeper, properties: Mapping[str, str], reason: str
) -> None:
    ran = describe(secured_zookeeper.tls, "--zk-tls-config-file", str(tls_file(secured_zookeeper, properties)))
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert ran.err.startswith(f"kquota: error: ZooKeeper at {secured_zookeeper.tls}: {reason}")
    assert CANARY not in ran.err


def test_tls_against_a_port_without_tls(secured_zookeeper: SecuredZooKeeper) -> None:
    bare = describe(secured_zookeeper.tls)
    assert (bare.code, bare.out, bare.err.count("\n")) == (1, "", 1)
    assert "the port speaks TLS. Give --zk-tls-config-file" in bare.err
    ran = describe(secured_zookeeper.plain, "--zk-tls-config-file", str(tls_file(secured_zookeeper, TLS)))
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert "the port probably does not speak TLS" in ran.err


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "TLS"])
def test_kquota_tries_the_next_server_when_the_first_is_silent(secured_zookeeper: SecuredZooKeeper, tls: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        first = f"localhost:{silent.getsockname()[1]}"
        how = ("--zk-tls-config-file", str(tls_file(secured_zookeeper, TLS))) if tls else ()
        there = secured_zookeeper.tls if tls else secured_zookeeper.plain
        assert describe(f"{first},{there}", *how) == Ran(0, "", "")


def test_tls_and_a_login_together(secured_zookeeper: SecuredZooKeeper) -> None:
    tls, login = tls_file(secured_zookeeper, TLS), secured_zookeeper.login()
    ran = describe(secured_zookeeper.tls, "--zk-tls-config-file", str(tls), "--zk-sasl-config-file", str(login))
    assert ran == Ran(0, "", "")


@pytest.mark.parametrize("login", [{"password": f"not{CANARY}"}, {"user": "nobody"}], ids=["password", "user"])
def test_a_wrong_login_prints_one_line(secured_zookeeper: SecuredZooKeeper, login: dict[str, str]) -> None:
    ran = describe(secured_zookeeper.plain, "--zk-sasl-config-file", str(secured_zookeeper.login(**login)))
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert ": the login was refused. Check the user and the password in the file of" in ran.err
    assert CANARY not in ran.err


def test_a_login_to_a_server_without_logins_prints_one_line(
    zookeeper: Sandbox, secured_zookeeper: SecuredZooKeeper
) -> None:
    ran = describe(str(zookeeper.zookeeper), "--zk-sasl-config-file", str(secured_zookeeper.login()))
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert "and that this ZooKeeper accepts logins" in ran.err


@pytest.fixture
def guarded(secured_zookeeper: SecuredZooKeeper) -> Iterator[KazooClient]:
    """The tree with ACLs of zookeeper.set.acl: only the creator can read /config/users, everyone the rest."""
    login = {"mechanism": "DIGEST-MD5", "username": "kafka", "password": PASSWORD.encode("latin-1")}
    client = KazooClient(hosts=secured_zookeeper.plain, sasl_options=login)
    client.start()
    own = make_acl("sasl", "kafka", all=True)
    read = make_acl("world", "anyone", read=True)
    client.set_acls("/config/users", [own])
    for path in ("/config/clients", "/config/changes"):
        client.set_acls(path, [own, read])
    yield client
    for path in ("/config/users", "/config/clients", "/config/changes"):
        for name in client.get_children(path):
            client.delete(f"{path}/{name}", recursive=True)
        client.set_acls(path, OPEN_ACL_UNSAFE)
    client.stop()
    client.close()


ADD = ("--alter", "--add-config", "producer_byte_rate=1000")


def alter(there: SecuredZooKeeper, *entity: str, login: Path | None = None) -> Ran:
    how = () if login is None else ("--zk-sasl-config-file", str(login))
    return kquota("configs", *ADD, *entity, "--zookeeper", there.plain, *how)


def test_new_znodes_have_the_acls_of_their_parent(secured_zookeeper: SecuredZooKeeper, guarded: KazooClient) -> None:
    login = secured_zookeeper.login()
    for entity in (("--user", "alice", "--client", "c"), ("--client", "c")):
        ran = alter(secured_zookeeper, *entity, login=login)
        assert ran.code == 0, ran.err
    own, read = make_acl("sasl", "kafka", all=True), make_acl("world", "anyone", read=True)
    for path in ("alice", "alice/clients", "alice/clients/c"):
        assert guarded.get_acls(f"/config/users/{path}")[0] == [own]
    assert guarded.get_acls("/config/clients/c")[0] == [own, read]
    (_, notice) = guarded.get_children("/config/changes")
    assert guarded.get_acls(f"/config/changes/{notice}")[0] == [own, read]


@pytest.mark.parametrize("who", ["nobody", "another user"])
def test_without_permission_nothing_is_written(
    secured_zookeeper: SecuredZooKeeper, guarded: KazooClient, who: str
) -> None:
    login = secured_zookeeper.login("other", CANARY) if who == "another user" else None
    for entity in (("--user", "alice"), ("--client", "c")):
        ran = alter(secured_zookeeper, *entity, login=login)
        assert (ran.code, ran.out) == (1, "")
        assert "no access (NoAuth)" in ran.err.splitlines()[-1]
    assert guarded.get_children("/config/users") == guarded.get_children("/config/clients") == []
    assert guarded.get_children("/config/changes") == []


def test_reading_without_permission_prints_one_line(secured_zookeeper: SecuredZooKeeper, guarded: KazooClient) -> None:
    ran = describe(secured_zookeeper.plain)
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert "no access (NoAuth)" in ran.err
    assert "Log in with --zk-sasl-config-file" in ran.err
    login = secured_zookeeper.login()
    assert describe(secured_zookeeper.plain, "--zk-sasl-config-file", str(login)) == Ran(0, "", "")
    as_for_kafkas_tools = {"KAFKA_OPTS": f"-Xmx256m -Djava.security.auth.login.config={login}"}
    assert describe(secured_zookeeper.plain, env=as_for_kafkas_tools) == Ran(0, "", "")
