"""A real broker with a listener for every kind of login, started once per run, and the files that clients need."""

from __future__ import annotations

import base64
import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kquota.sandbox import cluster as sandbox
from kquota.sandbox.servers import HOST, free_ports
from tests import certificates
from tests.canary import CANARY
from tests.certificates import Certified
from tests.waiting import until

PASSWORD = rf"{CANARY}\"quoted\" back\\slash, comma;=é"
ALICE = 'al=ice,"x"'
"""A user name with all characters that some layer must escape."""

_MODULES = "org.apache.kafka.common.security"
_PROTOCOLS = {
    "MTLS": "SSL",
    "TLS": "SSL",
    "TLS12": "SSL",
    "EXPIRED": "SSL",
    "ELSEWHERE": "SSL",
    "LOGIN": "SASL_SSL",
    "BARELOGIN": "SASL_PLAINTEXT",
    "BEARER": "SASL_PLAINTEXT",
    "ASTRAY": "PLAINTEXT",
}
DEAD_END = f"{HOST}:1"
"""The address to which listener ASTRAY directs its clients."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Secured:
    """The broker's addresses, by listener, and a folder with the stores."""

    at: Mapping[str, str]
    folder: Path
    client: Certified

    def config(self, name: str, properties: Mapping[str, str], mode: int = 0o600) -> Path:
        """Write a properties file with Java's escapes, as an operator would, and return its path."""
        return properties_file(self.folder / name, properties, mode)


def properties_file(path: Path, properties: Mapping[str, str], mode: int = 0o600) -> Path:
    """Write Java properties with Java's escapes, and return the path."""
    path.touch(mode=mode)
    path.chmod(mode)
    path.write_text("".join(f"{key}={escaped(value)}\n" for key, value in properties.items()), encoding="latin-1")
    return path


def escaped(value: str) -> str:
    """Return a value as it is written in a properties file."""
    pairs = value.encode("utf-16-be")
    units = [int.from_bytes(pairs[i : i + 2], "big") for i in range(0, len(pairs), 2)]
    return "".join(chr(u) if 0x20 <= u <= 0x7E and u != 0x5C else f"\\u{u:04x}" for u in units)


def jaas(module: str, **options: str) -> str:
    """Return a JAAS line with JAAS quoting."""
    told = "".join(
        f' {key}="' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' for key, value in options.items()
    )
    return f"{_MODULES}.{module} required{told};"


def jwt(**claims: Any) -> str:
    """Return a bearer token without a signature. The broker accepts it, because its listener has no provider's keys."""

    def coded(part: Mapping[str, Any]) -> str:
        return base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()

    return f"{coded({'alg': 'none'})}.{coded(claims)}."


PLAIN = "plain.PlainLoginModule"
SCRAM = "scram.ScramLoginModule"
OAUTH = "oauthbearer.OAuthBearerLoginModule"


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """Kafka 4.3.1, one broker, with all listeners of `_PROTOCOLS`."""
    folder = tmp_path_factory.mktemp("secured")
    ours, stranger = certificates.authority("ours"), certificates.authority("stranger")
    client = certificates.signed("client", ours)
    (folder / "ca.pem").write_text(ours.pem)
    (folder / "stranger.pem").write_text(stranger.pem)
    ours.p12_trust(folder / "trust.p12", CANARY)
    client.pem_store(folder / "client.pem")
    client.pem_store(folder / "client-locked.pem", CANARY)
    client.p12_store(folder / "client.p12", CANARY)
    certificates.signed("client", stranger).pem_store(folder / "stranger-client.pem")
    now = time.time()
    (folder / "token").write_text(jwt(sub="alice", iat=now, exp=now + 86_400))
    (folder / "ended-token").write_text(jwt(sub="alice", iat=now - 60, exp=now - 1))
    ports = dict(zip(_PROTOCOLS, free_ports(len(_PROTOCOLS)), strict=True))
    at = {name: f"{HOST}:{port}" for name, port in ports.items()}
    started = sandbox.up(
        name="secured",
        kafka="4.3.1",
        brokers=1,
        properties=_listeners(at) | _stores(folder, ours) | _logins() | _rights(),
        owner_pid=os.getpid(),
    )
    try:
        _users(started.bootstrap, at["BARELOGIN"])
        yield Secured(at=at | {"PLAINTEXT": started.bootstrap}, folder=folder, client=client)
    finally:
        sandbox.down("secured")


def _listeners(at: Mapping[str, str]) -> dict[str, str]:
    told = {**at, "ASTRAY": DEAD_END}
    return {
        "listeners": ",".join(f"{name}://{address}" for name, address in at.items()),
        "advertised.listeners": ",".join(f"{name}://{address}" for name, address in told.items()),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in _PROTOCOLS.items()),
    }


def _stores(folder: Path, ours: Certified) -> dict[str, str]:
    """Write the servers' certificates: PEM for most listeners, PKCS12 for TLS, and two invalid ones. Return their
    properties."""
    good = certificates.signed("broker", ours, hosts=("localhost", HOST))
    stores = {
        "EXPIRED": certificates.signed("broker", ours, hosts=("localhost", HOST), days=-1),
        "ELSEWHERE": certificates.signed("broker", ours, hosts=("kafka.example",)),
    }
    found: dict[str, str] = {}
    for name in (name for name, protocol in _PROTOCOLS.items() if protocol.endswith("SSL")):
        store = stores.get(name, good).pem_store(folder / f"server-{name}.pem")
        found |= _named(name, {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(store)})
    p12 = good.p12_store(folder / "server.p12", CANARY)
    of_p12 = {"ssl.keystore.type": "PKCS12", "ssl.keystore.location": str(p12), "ssl.keystore.password": CANARY}
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(folder / "ca.pem")}
    return (
        found
        | _named("TLS", of_p12 | {"ssl.key.password": CANARY})
        | _named("MTLS", trust | {"ssl.client.auth": "required"})
        | _named("TLS12", {"ssl.enabled.protocols": "TLSv1.2"})
    )


def _logins() -> dict[str, str]:
    found: dict[str, str] = {}
    for name in ("LOGIN", "BARELOGIN"):
        found |= _named(
            name,
            {
                "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
                "plain.sasl.jaas.config": jaas(PLAIN, user_bob=PASSWORD, user_carol=PASSWORD),
                "scram-sha-256.sasl.jaas.config": jaas(SCRAM),
                "scram-sha-512.sasl.jaas.config": jaas(SCRAM),
            },
        )
    unsecured = jaas(OAUTH, unsecuredLoginStringClaim_sub="admin")
    return found | _named(
        "BEARER", {"sasl.enabled.mechanisms": "OAUTHBEARER", "oauthbearer.sasl.jaas.config": unsecured}
    )


def _rights() -> dict[str, str]:
    """Return the properties by which all users except carol have all permissions."""
    users = ("ANONYMOUS", "CN=client", "alice", "bob", ALICE)
    return {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": ";".join(f"User:{user}" for user in users),
    }


def _named(listener: str, properties: Mapping[str, str]) -> dict[str, str]:
    return {f"listener.name.{listener.lower()}.{key}": value for key, value in properties.items()}


def _users(bootstrap: str, login: str) -> None:
    """Create alice with both SCRAM mechanisms by another client. Wait until she can log in at `login`."""
    from confluent_kafka.admin import (
        AdminClient,
        ScramCredentialInfo,
        ScramMechanism,
        UserScramCredentialUpsertion,
    )

    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        info = ScramCredentialInfo(mechanism, 4096)
        wanted = UserScramCredentialUpsertion(ALICE, info, PASSWORD.encode())
        for done in admin.alter_user_scram_credentials([wanted]).values():
            done.result(timeout=60)
    for size in (256, 512):
        until(lambda size=size: _gets_in(login, f"SCRAM-SHA-{size}"))  # type: ignore[misc]


def _gets_in(address: str, mechanism: str) -> bool:
    """Return True if the login works. On KRaft, the credentials may not be in force yet."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    security = {"security.protocol": "sasl_plaintext", "sasl.mechanism": mechanism}
    who = {"sasl.username": ALICE, "sasl.password": PASSWORD}
    quiet = {"log_level": 0, "error_cb": lambda _error: None}
    try:
        AdminClient({"bootstrap.servers": address, **security, **who, **quiet}).list_topics(timeout=5)
    except KafkaException:
        return False
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class SecuredZooKeeper:
    """ZooKeeper's two ports, one without TLS and one that requires a client certificate. Both accept logins."""

    plain: str
    tls: str
    folder: Path

    def file(self, name: str, text: str, mode: int = 0o600) -> Path:
        """Write an operator's file, and return its path."""
        path = self.folder / name
        path.touch(mode=mode)
        path.chmod(mode)
        path.write_text(text, encoding="utf-8")
        return path

    def login(self, user: str = "kafka", password: str = PASSWORD, section: str = "Client") -> Path:
        """Write a JAAS file as an operator would, and return its path."""
        return self.file("jaas.conf", f"{section} {{\n  {digest(username=user, password=password)}\n}};\n")


def digest(**options: str) -> str:
    """Return a line of ZooKeeper's digest login."""
    return jaas("x", **options).replace(f"{_MODULES}.x", "org.apache.zookeeper.server.auth.DigestLoginModule")


@pytest.fixture(scope="session")
def secured_zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredZooKeeper]:
    """A ZooKeeper with Kafka's znodes, and the users kafka and other."""
    folder = tmp_path_factory.mktemp("secured-zookeeper")
    ours, stranger = certificates.authority("ours"), certificates.authority("stranger")
    (folder / "ca.pem").write_text(ours.pem)
    (folder / "stranger.pem").write_text(stranger.pem)
    ours.p12_trust(folder / "trust.p12", CANARY)
    client = certificates.signed("client", ours)
    client.pem_store(folder / "client.pem")
    client.p12_store(folder / "client.p12", CANARY)
    certificates.signed("client", stranger).pem_store(folder / "stranger-client.pem")
    server = certificates.signed("zookeeper", ours, hosts=("localhost",)).pem_store(folder / "server.pem")
    users = folder / "server-jaas.conf"
    users.write_text(f"Server {{ {digest(user_kafka=PASSWORD, user_other=CANARY)} }};")
    (port,) = free_ports(1)
    with pytest.MonkeyPatch.context() as patch:
        # ZooKeeper reads its users only from a property of the JVM.
        patch.setenv("JAVA_TOOL_OPTIONS", f"-Djava.security.auth.login.config={users}")
        started = sandbox.up(
            name="secured-zookeeper",
            kafka=None,
            properties={
                "secureClientPort": str(port),
                "secureClientPortAddress": HOST,
                "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
                "ssl.keyStore.location": str(server),
                "ssl.trustStore.location": str(folder / "ca.pem"),
                "authProvider.sasl": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
            },
            owner_pid=os.getpid(),
        )
    try:
        yield SecuredZooKeeper(plain=str(started.zookeeper), tls=f"localhost:{port}", folder=folder)
    finally:
        sandbox.down("secured-zookeeper")
