"""A controller mutation quota on real brokers: rejected requests, duration, and fairness among many clients."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Barrier
from typing import Final

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

import kquota as library
from bench.race import kquota, say
from bench.section import Section, verdict
from bench.servers import brokers
from kquota.mutation import Creation, create_topics
from kquota.mutation.actions import MutationWork
from kquota.quota.entity import Entity
from kquota.quota.limits import QuotaChange
from kquota.sandbox.cluster import Sandbox
from kquota.sandbox.servers import HOST, free_ports
from kquota.simulate.delay import Bucket, Mutations
from kquota.simulate.load import rounds
from kquota.stores.admin.connection import Wire
from kquota.stores.admin.quotas import WireQuotas
from kquota.terms import CONTROLLER_MUTATION_RATE

VERSIONS: Final = ("4.3.1", "3.9.1")
MOST_SENT: Final = 1.1
MOST_TIME: Final = 1.1
MOST_SPREAD: Final = 1.3
AT_ONCE: Final = 5.0
"""The maximum seconds of a whole process that does not wait for the quota, on a busy machine. A wait would take 13 s.
"""
_BUSY: Final = 75
_HEARD: Final = 3.0
"""The seconds after which brokers on ZooKeeper also apply a quota."""
_LONGEST: Final = 600.0
_AUTHORIZERS: Final = {
    "4.3.1": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "3.9.1": "kafka.security.authorizer.AclAuthorizer",
}
_BLIND: Final = "blind"
"""A user who may create topics but not read quotas."""
_PLAIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Clients that start together under one quota. Each client creates this number of topics. `rate` is in mutations
    per second.
    """

    name: str
    topics: int
    partitions: int
    rate: int
    clients: int = 1

    @property
    def ideal(self) -> float:
        """The seconds that the token bucket requires, by Kafka's arithmetic and without other delays."""
        items = [self.partitions] * (self.topics * self.clients)
        return list(rounds(items, Mutations(Bucket(rate=self.rate))))[-1].at / 1_000


ALONE: Final = (
    Case(name="7 topics x 20 at 5/s", topics=7, partitions=20, rate=5),
    Case(name="500 topics x 20 at 100/s", topics=500, partitions=20, rate=100),
)
CROWD: Final = Case(name="20 clients x 50 topics at 10/s", topics=50, partitions=1, rate=10, clients=20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The seconds of the first and the last client. `sent` is the number of topics in all requests, including repeated
    ones, divided by the number of topics."""

    kafka: str
    name: str
    ideal: float
    first: float
    last: float
    sent: float
    promised: str
    kept: bool

    @property
    def spread(self) -> float:
        """The time of the last client divided by the time of the first, for clients that start together."""
        return self.last / self.first


def sections() -> list[Section]:
    """Run every case on every version. Each case begins with a full bucket."""
    found = [outcome for version in VERSIONS for outcome in (*_readable(version), _unreadable(version))]
    table = [
        [
            each.kafka,
            each.name,
            f"{each.ideal:.1f}",
            f"{each.last:.1f}",
            f"{each.sent:.2f}",
            f"{each.spread:.2f}",
            verdict(each.promised, each.kept),
        ]
        for each in found
    ]
    headers = ["Kafka", "under a mutation quota", "bucket, s", "kquota, s", "sent / topics", "last / first", "promised"]
    rows = [asdict(each) | {"spread": each.spread} for each in found]
    return [Section(name="mutation", headers=headers, table=table, rows=rows, kept=all(each.kept for each in found))]


def _readable(version: str) -> Iterator[Outcome]:
    with (
        brokers(f"mutation-{version.replace('.', '')}", version) as found,
        TemporaryDirectory() as scratch,
    ):
        for number, case in enumerate((*ALONE, CROWD)):
            client = f"bench-{number}"
            config = Path(scratch) / client
            config.write_text(f"client.id={client}\n")
            _limit(found, Entity(client_id=client), case.rate)
            yield _ran(version, found.bootstrap, config, case, MOST_SPREAD)
        yield _opted_out(version, found, Path(scratch))


def _unreadable(version: str) -> Outcome:
    address = f"{HOST}:{free_ports(1)[0]}"
    properties = {
        "listeners": f"LOGIN://{address}",
        "advertised.listeners": f"LOGIN://{address}",
        "listener.security.protocol.map": "LOGIN:SASL_PLAINTEXT",
        "listener.name.login.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.login.plain.sasl.jaas.config": f'{_PLAIN} user_{_BLIND}="{_BLIND}";',
        "authorizer.class.name": _AUTHORIZERS[version],
        "super.users": "User:ANONYMOUS",
    }
    if version < "4":
        properties["listener.security.protocol.map"] += ",PLAINTEXT:PLAINTEXT"
    of = f"mutation-{version.replace('.', '')}-{_BLIND}"
    with brokers(of, version, 1, properties) as found, TemporaryDirectory() as scratch:
        _allow(found.bootstrap, AclOperation.CREATE)
        _limit(found, Entity(user=_BLIND), CROWD.rate)
        config = Path(scratch) / _BLIND
        config.touch(mode=0o600)
        config.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
            f'sasl.jaas.config={_PLAIN} username="{_BLIND}" password="{_BLIND}";\n'
        )
        with library.connect(address, config) as cluster:
            assert cluster.mutation_rate() is None, "this user is not to read its quota"
        return _ran(version, address, config, CROWD, None)


def _ran(version: str, bootstrap: str, config: Path, case: Case, most_spread: float | None) -> Outcome:
    """Run one case. If `most_spread` is None, several clients only promise that all of them end."""
    say(f"Kafka {version}: {case.name}, {case.ideal:.0f} s ...")
    together = Barrier(case.clients)

    def one(number: int) -> tuple[float, int]:
        held: list[MutationWork] = []
        creations = [
            Creation(topic=f"{config.name}-{number}-{n}", partitions=case.partitions, replication_factor=1)
            for n in range(case.topics)
        ]
        with library.connect(bootstrap, config) as cluster:
            together.wait()
            began = time.monotonic()
            results = create_topics(
                cluster,
                creations,
                timeout=_LONGEST,
                on_wait=lambda doing, _wait: held.append(doing) if not held else None,
            )
            took = time.monotonic() - began
        assert set(results.values()) == {None}, results
        return took, held[0].sent if held else case.topics

    with ThreadPoolExecutor(case.clients) as threads:
        ended = list(threads.map(one, range(case.clients)))
    first, last = min(took for took, _ in ended), max(took for took, _ in ended)
    sent = sum(count for _, count in ended) / (case.topics * case.clients)
    promised, kept = f"sent {MOST_SENT:g}, time {MOST_TIME:g}", sent <= MOST_SENT and last <= MOST_TIME * case.ideal
    if case.clients > 1:
        promised, kept = (f"last / first {most_spread:g}", last / first <= most_spread) if most_spread else ("", True)
    return Outcome(
        kafka=version,
        name=case.name if case.clients == 1 or most_spread else f"{case.name}, quota unreadable",
        ideal=case.ideal,
        first=first,
        last=last,
        sent=sent,
        promised=promised,
        kept=kept,
    )


def _opted_out(version: str, found: Sandbox, scratch: Path) -> Outcome:
    """Run a command with `--no-retry-quota-violated`, which the first rejection ends with exit code 75."""
    case, config = ALONE[0], scratch / "opted-out"
    config.write_text(f"client.id={config.name}\n")
    _limit(found, Entity(client_id=config.name), case.rate)
    topics = [word for n in range(case.topics) for word in ("--topic", f"{config.name}-{n}")]
    at = ["--bootstrap-server", found.bootstrap, "--command-config", str(config)]
    began = time.monotonic()
    ran = subprocess.run(
        kquota("topics", "--create", *topics, "--partitions", str(case.partitions), "--no-retry-quota-violated", *at),
        capture_output=True,
        check=False,
    )
    took = time.monotonic() - began
    return Outcome(
        kafka=version,
        name=f"{case.name}, --no-retry-quota-violated",
        ideal=0.0,
        first=took,
        last=took,
        sent=1.0,
        promised=f"exit {_BUSY} within {AT_ONCE:g} s",
        kept=ran.returncode == _BUSY and took <= AT_ONCE,
    )


def _limit(found: Sandbox, entity: Entity, rate: int) -> None:
    with Wire(found.bootstrap, {}) as wire:
        WireQuotas(wire).alter([QuotaChange(entity=entity, add={CONTROLLER_MUTATION_RATE: float(rate)})])
    time.sleep(_HEARD)


def _allow(bootstrap: str, operation: AclOperation) -> None:
    binding = AclBinding(
        ResourceType.BROKER,
        "kafka-cluster",
        ResourcePatternType.LITERAL,
        f"User:{_BLIND}",
        "*",
        operation,
        AclPermissionType.ALLOW,
    )
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    for done in admin.create_acls([binding]).values():
        done.result(timeout=30)
