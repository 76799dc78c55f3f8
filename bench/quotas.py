"""Quotas: describing them, compared with Kafka's tool, and `quota apply`."""

from __future__ import annotations

from typing import Final

from bench import document
from bench.document import CONFIGS, ENTITIES
from bench.measured import measured
from bench.race import Race, kquota, raced, run
from bench.section import Section
from bench.servers import brokers
from kquota.quota.entity import Entity
from kquota.quota.limits import QuotaChange
from kquota.sandbox.cluster import Sandbox, kafka_tool
from kquota.stores.admin.connection import Wire
from kquota.stores.admin.quotas import WireQuotas
from kquota.terms import Default

ONE: Final = 0.25
EVERY: Final = 0.35
MEGABYTES: Final = 60.0
LOG_DIRS: Final = "org.apache.kafka.tools.LogDirsCommand"
_BATCH: Final = 1_000


def sections() -> list[Section]:
    """Measure whole processes on a cluster with 10,000 quotas. `apply` runs before on the empty cluster, and in
    ZooKeeper.
    """
    with brokers("quotas") as found:
        applied = document.through_the_admin_api(found)
        seed(found.bootstrap, range(ENTITIES))
        results = [run(race) for race in _races(found)]
    return [raced("describe", results), measured("apply", [*applied, *document.in_zookeeper()])]


def seed(bootstrap: str, users: range, client_id: Default | None = None) -> None:
    """Set a quota for each of these users, or with `client_id` for clients of each user."""
    with Wire(bootstrap, {}) as wire:
        for first in range(users.start, users.stop, _BATCH):
            batch = [Entity(user=f"user-{n}", client_id=client_id) for n in users[first - users.start :][:_BATCH]]
            WireQuotas(wire).alter([QuotaChange(entity=user, add={"producer_byte_rate": 1e6}) for user in batch])


def _races(found: Sandbox) -> list[Race]:
    at = ["--bootstrap-server", found.bootstrap]
    one = [*at, "--describe", "--entity-type", "users", "--entity-name", "user-7"]
    every = [*at, "--describe", "--entity-type", "users"]
    return [
        Race(
            name="configs --describe, one user",
            ours=kquota("configs", *one),
            theirs=kafka_tool(found, CONFIGS, *one),
            promised=ONE,
        ),
        Race(
            name=f"configs --describe, {ENTITIES} users",
            ours=kquota("configs", *every),
            theirs=kafka_tool(found, CONFIGS, *every),
            promised=EVERY,
            megabytes=MEGABYTES,
        ),
        Race(
            name="log-dirs --describe",
            ours=kquota("log-dirs", *at, "--describe"),
            theirs=kafka_tool(found, LOG_DIRS, *at, "--describe"),
            promised=None,
        ),
    ]
