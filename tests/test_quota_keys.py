"""A new quota key needs only one row: with two made-up rows, every command accepts their keys.

The tests use ZooKeeper, which stores any key, because a broker refuses a key that its Kafka does not have. A row alone
does not provide a load of `quota probe` for the quota, nor a request of `simulate` that it counts. Completions and man
pages must be generated again, docs/formats.md must name the key that `simulate` prints, and docs/quotas.md needs a row.
"""

from __future__ import annotations

import json
import re
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from kquota.quota.capacity import Capacity, broker
from kquota.quota.explain import explain
from kquota.quota.precedence import Client
from kquota.quota_keys import QUOTA_KEYS, Model, QuotaKey
from kquota.sandbox.cluster import Sandbox
from kquota.simulate import Quotas, Request, flow
from kquota.terms import BrokerId
from tests.cli.run import Ran, run

ROWS = """
from kquota.quota_keys import QUOTA_KEYS, Model, QuotaKey
QUOTA_KEYS["replay_byte_rate"] = QuotaKey(
    counts="bytes",
    unit="replayed bytes per second, on each broker",
    model=Model.RATE,
    since=(9, 1),
    static="quota.replay.default",
    simulated="Replayed on each broker: 10MB/s.",
)
QUOTA_KEYS["session_rate"] = QuotaKey(
    entity_types=("ips",), counts="sessions", bits=31, unit="sessions per second, on each broker", model=Model.RATE
)
"""
QUOTAS = Path(__file__).parents[1] / "docs" / "quotas.md"
MAIN = "\nfrom kquota.cli.main import main\nmain()\n"


def kquota(*words: str, stdin: str = "") -> Ran:
    """`kquota WORDS…`, with the rows in the table before any other import."""
    ran = run([sys.executable, "-c", ROWS + MAIN, *words], stdin=stdin)
    assert "Traceback" not in ran.err, ran.err
    return ran


@pytest.fixture
def at(zookeeper: Sandbox) -> Iterator[tuple[str, str]]:
    """--zookeeper with a separate tree, in which alice and an address have their limits."""
    chroot = f"/keys-{uuid.uuid4().hex[:8]}"
    client = KazooClient(hosts=zookeeper.zookeeper)
    client.start()
    client.ensure_path(f"{chroot}/brokers/ids")
    client.ensure_path(f"{chroot}/config/changes")
    where = ("--zookeeper", f"{zookeeper.zookeeper}{chroot}")
    for entity, limit in {"--user alice": "replay_byte_rate=50kB/s", "--ip 10.0.0.1": "session_rate=7"}.items():
        ran = kquota("configs", *where, "--alter", "--add-config", limit, *entity.split())
        assert (ran.code, ran.out[:37]) == (0, "Completed updating config for entity:")
    yield where
    client.delete(chroot, recursive=True)
    client.stop()
    client.close()


def test_configs_takes_units_and_shows_the_limit(at: tuple[str, str]) -> None:
    ran = kquota("configs", "--alter", "--user", "alice", "--add-config", "replay_byte_rate=10MB/s", *at)
    assert "user 'alice': replay_byte_rate = 10000000 bytes per second (10 MB/s)" in ran.err
    assert "replay_byte_rate needs Kafka 9.1" in ran.err
    ran = kquota("configs", "--describe", "--user", "alice", *at)
    assert ran == Ran(0, "Configs for user-principal 'alice' are replay_byte_rate=10000000\n", "")


def test_the_document_of_quotas_lists_every_key() -> None:
    _, table = QUOTAS.read_text().split("\n| quota key |")
    assert re.findall(r"^\| `(\w+)` \|", table.split("\n\n")[0], re.MULTILINE) == list(QUOTA_KEYS)


WRONG = {
    "a part of a byte": ("--user=alice", "replay_byte_rate=1.5", "is not a whole number of bytes per second"),
    "more than its type holds": ("--ip=::1", "session_rate=2147483648", "a whole number, at most 2^31 - 1"),
    "another entity's key": ("--user=alice", "session_rate=5", "controller_mutation_rate, replay_byte_rate\n"),
}


@pytest.mark.parametrize(("entity", "limit", "complaint"), WRONG.values(), ids=WRONG)
def test_values_that_the_row_does_not_allow_are_refused(entity: str, limit: str, complaint: str) -> None:
    ran = kquota("configs", "--alter", "--zookeeper", "x:1", entity, "--add-config", limit)
    assert (ran.code, ran.out) == (2, "")
    assert complaint in ran.err


def test_explain_uses_the_text_of_the_row(at: tuple[str, str]) -> None:
    told = kquota("quota", "explain", "--user", "alice", "--ip", "10.0.0.1", *at).out
    assert "replay_byte_rate: 50 kB/s per broker, from user 'alice' (level 3 of 8)" in told
    assert "session_rate: 7/s per broker, from ip '10.0.0.1' (level 1 of 2)" in told
    assert "all new sessions from this IP" in told
    assert "quota.producer.default or quota.consumer.default or quota.replay.default" in " ".join(told.split())
    keys = json.loads(kquota("quota", "explain", "--user", "alice", "--output", "json", *at).out)["keys"]
    (key,) = (key for key in keys if key["key"] == "replay_byte_rate")
    assert (key["limit"], key["unit"]) == (50_000.0, "replayed bytes per second, on each broker")


def test_lint_checks_it_as_a_byte_rate(at: tuple[str, str]) -> None:
    ran = kquota("quota", "explain", "--all", *at)
    assert ran.code == 8
    assert "user 'alice': replay_byte_rate 50 kB/s" in ran.out
    assert "(low-rate)" in ran.out
    assert "--add-config replay_byte_rate=50000000 --user alice" in ran.out


def test_export_writes_it_with_units(at: tuple[str, str]) -> None:
    ran = kquota("quota", "export", *at)
    assert "users:\n  alice:\n    replay_byte_rate: 50kB/s\nips:\n  10.0.0.1:\n    session_rate: 7\n" in ran.out
    assert kquota("quota", "diff", "-", *at, stdin=ran.out).code == 0


def test_simulate_has_an_option_and_the_model_of_the_row() -> None:
    words = ("--load", "25MB/s", "--request-size", "1MB")
    told = kquota("quota", "simulate", "--replay-byte-rate", "10MB/s", *words)
    assert told == kquota("quota", "simulate", "--producer-byte-rate", "10MB/s", *words)
    found = json.loads(kquota("quota", "simulate", "--replay-byte-rate", "10MB/s", *words, "--output", "json").out)
    assert (found["replay_byte_rate"], found["producer_byte_rate"]) == (10_000_000.0, None)
    both = kquota("quota", "simulate", "--replay-byte-rate", "1MB/s", "--producer-byte-rate", "1MB/s", *words)
    assert (both.code, both.out) == (2, "")
    assert "Give --producer-byte-rate or --replay-byte-rate" in both.err
    assert "--replay-byte-rate RATE" in kquota("quota", "simulate", "--help").out
    assert "--session-rate" not in kquota("quota", "simulate", "--help").out


WINDOW = {"num": "11", "size.seconds": "1"}
CASES = {
    Model.RATE: ("bytes", 10, 500.0),
    Model.SHARE: ("thread_ms", None, None),
    Model.BUCKET: ("mutations", 11, 550.0),
}


@pytest.mark.parametrize(("model", "case"), CASES.items(), ids=[model.value for model in CASES])
def test_each_model_brings_its_burst_and_its_arithmetic(
    model: Model, case: tuple[str, int | None, float | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row with the model of one of Kafka's own keys behaves like that key."""
    counts, seconds, burst = case
    own = next(key for key, row in QUOTA_KEYS.items() if row.model is model and row.simulated)
    row = QuotaKey(counts=counts, unit="a unit", model=model, static="quota.made.up", simulated="A sentence.")
    monkeypatch.setitem(QUOTA_KEYS, "made_up", row)
    windows = {f"{name}.window.{part}": n for name in ("quota", "controller.quota") for part, n in WINDOW.items()}
    brokers = Capacity(brokers=(broker(BrokerId(1), {**windows, "quota.made.up": "50"}),))
    answers = explain({}, brokers, client=Client(user="alice", client_id="c")).answers
    assert [(a.limit, a.static, a.burst_seconds, a.burst) for a in answers if a.key == "made_up"] == [
        (50.0, "quota.made.up", seconds, burst)
    ]
    load = [Request(at=n * 10, **{counts: 9}) for n in range(900)]
    assert flow(load, Quotas(made_up=5.0)) == flow(load, Quotas(**{own: 5.0}))  # type: ignore[arg-type]
    assert flow(load, Quotas(made_up=5.0)).delayed > 0
