"""`kquota quota export`, `diff` and `apply` for operators and pipelines, over every connection to every Kafka."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kquota.cli.quota.answer import HEADER
from kquota.quota.document import Document
from kquota.quota.document_text import read, text
from kquota.quota.entity import Entity
from kquota.stores.admin.connection import Wire
from kquota.stores.admin.quotas import WireQuotas
from kquota.terms import CONNECTION_CREATION_RATE, CONTROLLER_MUTATION_RATE, DEFAULT, PRODUCER_BYTE_RATE
from tests.cli.run import Ran, kquota, run
from tests.quota.contract import LIMITS, NAMES
from tests.servers import WAYS, agreed
from tests.stores.moves_stage import OtherHand

EVERYBODY = 'version: 1\nowns: ["*", default-user, default-client, default-ip]\n'


@dataclass(frozen=True)
class Way:
    """One connection to one cluster, which has no client quota when a test begins."""

    connection: tuple[str, str]
    folder: Path

    def kquota(self, command: str, *arguments: str, document: str | None = None) -> Ran:
        if document is not None:
            file = self.folder / "quotas.yaml"
            file.write_text(document)
            arguments = (str(file), *arguments)
        ran = kquota("quota", command, *self.connection, *arguments)
        if command == "apply":
            self.seen()
        return ran

    def seen(self) -> None:
        """Wait until every broker shows what kquota wrote. Data in ZooKeeper is visible to all clients at once."""
        option, address = self.connection
        if option == "--bootstrap-server":
            agreed(address)

    def apply(self, document: str, *arguments: str) -> Ran:
        return self.kquota("apply", "--yes", *arguments, document=document)


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Way]:
    yield from emptied(request, *WAYS[request.param], tmp_path)


@pytest.fixture(
    params=[
        pytest.param(("kafka_431", False), id="4.3.1 Admin API", marks=pytest.mark.kafka),
        pytest.param(("zookeeper", True), id="ZooKeeper alone", marks=pytest.mark.zookeeper),
    ]
)
def unburdened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Way]:
    """A cluster for thousands of changes.

    On ZooKeeper they would delay its brokers for the tests of the next 15 minutes.
    """
    fixture, on_zookeeper = request.param
    yield from emptied(request, fixture, on_zookeeper, tmp_path)


def emptied(request: pytest.FixtureRequest, fixture: str, on_zookeeper: bool, folder: Path) -> Iterator[Way]:
    cluster = request.getfixturevalue(fixture)
    connection = ("--zookeeper", cluster.zookeeper) if on_zookeeper else ("--bootstrap-server", cluster.bootstrap)
    found = Way(connection, folder)
    assert found.apply(EVERYBODY, "--prune").code == 0
    yield found
    assert found.apply(EVERYBODY, "--prune").code == 0


def as_exported(document: Document) -> str:
    """The output of `quota export`: a comment, then the document."""
    return HEADER + text(document)


def everything() -> str:
    """A document with every type of entity, every name that Kafka accepts and every limit."""
    limits: dict[Entity, dict[str, float]] = {}
    for n, name in enumerate(NAMES.values()):
        some = dict(list(LIMITS.items())[n % 3 :])
        limits |= {Entity(user=name): some, Entity(client_id=name): some, Entity(user=name, client_id=name): some}
        limits |= {Entity(user=name, client_id=DEFAULT): some, Entity(user=DEFAULT, client_id=name): some}
    for entity in (Entity(user=DEFAULT), Entity(client_id=DEFAULT), Entity(user=DEFAULT, client_id=DEFAULT)):
        limits[entity] = {CONTROLLER_MUTATION_RATE: 2.5, PRODUCER_BYTE_RATE: float(2**63)}
    limits |= {
        # More than this run needs itself.
        Entity(ip=DEFAULT): {CONNECTION_CREATION_RATE: 70_000.0},
        Entity(ip="10.9.8.7"): {CONNECTION_CREATION_RATE: 5},
    }
    return as_exported(
        Document(limits={entity: {k: float(v) for k, v in some.items()} for entity, some in limits.items()})
    )


@pytest.mark.kafka
def test_export_applied_to_an_empty_cluster_exports_the_same_bytes(way: Way) -> None:
    assert way.apply(everything()).code == 0
    first = way.kquota("export")
    assert first == Ran(0, everything(), "")
    as_json = way.kquota("export", "--output", "json")

    assert way.apply(EVERYBODY, "--prune").code == 0
    assert way.kquota("export").out == as_exported(Document(limits={}))
    assert way.apply(first.out).code == 0
    assert way.kquota("export") == first

    for same in (first.out, as_json.out):
        told = "kquota: warning: <default> is an ordinary name in a document. For defaults, write default-user, "
        for ran in (way.kquota("diff", document=same), way.apply(same)):
            assert (ran.code, ran.out) == (0, "")
            assert ran.err == f"{told}default-client or default-ip\nkquota: nothing to change\n"


@pytest.mark.kafka
@pytest.mark.parametrize("way", ["4.3.1 Admin API"], indirect=True)
@pytest.mark.parametrize("form", ["strimzi", "rpk"])
def test_a_foreign_document_makes_the_same_quotas_on_another_day(way: Way, form: str) -> None:
    """Every quota of a cluster goes through the format of another tool and back, except for those that are named."""
    assert way.apply(everything()).code == 0
    certificate = "CN=web: {producer_byte_rate: 1MiB/s, controller_mutation_rate: 2.5}"
    assert way.apply(f"version: 1\nusers: {{billing: {{request_percentage: 55}}, {certificate}}}").code == 0
    exported = way.kquota("export", "--format", form)
    lost = exported.err.count(f"warning: the {form} document does not contain ")
    assert (exported.code, lost > 0) == (8, True)
    before = read(way.kquota("export").out, "before").limits
    assert way.apply(EVERYBODY, "--prune").code == 0

    assert way.kquota("diff", "--format", form, document=exported.out).code == 8
    applied = way.apply(exported.out, "--format", form)
    assert applied.code == 0, applied
    assert way.kquota("diff", "--format", form, document=exported.out) == Ran(0, "", "kquota: nothing to change\n")
    after = read(way.kquota("export").out, "after").limits
    assert after.items() <= before.items()
    assert len(after) == sum(1 for limits in before.values() if limits) - lost
    assert way.kquota("export", "--format", form).out == exported.out


ALICE = """\
version: 1
owns: ["team-*"]
protect: [User:admin]
users:
  alice:
    producer_byte_rate: 50MB/s  # as agreed
    clients:
      app: {consumer_byte_rate: 1234567}
"""


@pytest.mark.kafka
def test_a_change_from_diff_to_done(way: Way) -> None:
    alice = "alice: {request_percentage: 200, producer_byte_rate: 1MB/s}"
    others = "team-old: {request_percentage: 1}, admin: {request_percentage: 9}, bob: {request_percentage: 8}"
    assert way.apply(f"version: 1\nusers: {{{alice}, {others}}}").code == 0

    diff = way.kquota("diff", document=ALICE)
    change = diff.out.splitlines()[-1].removeprefix("change: ")
    changes = (
        "~ user 'alice'\n"
        "    producer_byte_rate: 1MB/s -> 50MB/s\n"
        "    request_percentage: 200 -> not set\n"
        "+ user 'alice' client 'app'\n"
        "    consumer_byte_rate: not set -> 1234567 (1.23 MB/s)\n"
    )
    assert diff == Ran(8, f"{changes}change: {change}\n", "kquota: 3 limits of 2 entities would change\n")
    assert way.kquota("diff", "--output", "tsv", document=ALICE).out == (
        "user\tclient\tip\tbroker\ttopic\tkey\told\tnew\n"
        "alice\t\t\t\t\tproducer_byte_rate\t1000000\t50000000\n"
        "alice\t\t\t\t\trequest_percentage\t200\t\\N\n"
        "alice\tapp\t\t\t\tconsumer_byte_rate\t\\N\t1234567\n"
    )
    pruning = json.loads(way.kquota("diff", "--prune", "--output", "json", document=ALICE).out)
    assert pruning["change"] != change
    assert [(c["user"], c["pruned"], c["limits"]) for c in pruning["changes"] if c["pruned"]] == [
        ("team-old", True, {"request_percentage": {"old": 1, "new": None}})
    ]

    dry = way.kquota("apply", "--dry-run", document=ALICE)
    assert (dry.code, dry.out) == (
        0,
        "user 'alice': set producer_byte_rate=50000000; delete request_percentage\n"
        "user 'alice' client 'app': set consumer_byte_rate=1234567\n"
        f"change: {change}\n",
    )
    assert way.kquota("diff", document=ALICE) == diff

    done = way.kquota("apply", "--change", change, document=ALICE)
    assert done == Ran(0, f"{changes}change: {change}\n", "kquota: 2 entities changed\n")
    again = way.kquota("apply", "--change", change, document=ALICE)
    assert again == Ran(0, "", "kquota: nothing to change\n")
    exported = way.kquota("export").out
    assert "team-old" in exported
    assert "bob" in exported

    pruned = way.kquota("apply", "--yes", "--prune", "--output", "json", document=ALICE)
    assert [entry["user"] for entry in json.loads(pruned.out)["changes"]] == ["team-old"]
    assert "team-old" not in way.kquota("export").out


@pytest.mark.kafka
def test_a_change_that_was_not_reviewed_is_not_written(way: Way) -> None:
    document = "version: 1\nusers: {carol: {request_percentage: 5}}"
    change = way.kquota("diff", document=document).out.splitlines()[-1].removeprefix("change: ")
    assert way.apply("version: 1\nusers: {carol: {request_percentage: 4}}").code == 0
    before = way.kquota("export")
    refused = way.kquota("apply", "--change", change, document=document)
    assert (refused.code, refused.out) == (1, "")
    assert f"not {change}" in refused.err
    assert way.kquota("export") == before


@pytest.mark.kafka
def test_a_protected_entity_is_neither_changed_nor_pruned(way: Way) -> None:
    assert way.apply("version: 1\nusers: {admin: {request_percentage: 9}}").code == 0
    protected = 'version: 1\nowns: ["*"]\nprotect: [User:admin]\n'
    pruned = way.apply(protected, "--prune")
    assert pruned == Ran(
        0, "", "kquota: warning: --prune keeps 1 protected entity: user 'admin'\nkquota: nothing to change\n"
    )
    named = way.apply(f"{protected}users: {{admin: {{request_percentage: 5}}, dave: {{request_percentage: 5}}}}")
    assert (named.code, named.out) == (1, "")
    assert "the document would change 1 protected entity: user 'admin'" in named.err
    assert "dave" not in way.kquota("export").out


def test_a_killed_apply_is_completed_by_the_next_apply(unburdened: Way) -> None:
    way = unburdened
    names = [f"k-{n:04}" for n in range(1_200)]
    document = "version: 1\nusers:\n" + "".join(f"  {name}: {{request_percentage: 5}}\n" for name in names)
    (way.folder / "many.yaml").write_text(document)
    applying = subprocess.Popen(
        [sys.executable, "-m", "kquota", "quota", "apply", *way.connection, "--yes", str(way.folder / "many.yaml")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    while applying.poll() is None and "k-0" not in way.kquota("export").out:
        pass
    applying.send_signal(signal.SIGKILL)
    applying.communicate()
    again = way.apply(document)
    assert again.code == 0
    exported = way.kquota("export").out
    assert [line.strip(" :") for line in exported.splitlines() if line.startswith("  k-")] == names
    assert exported.count("request_percentage: 5\n") == len(names)


def on_a_terminal(way: Way, answer: str) -> Ran:
    """Run `apply` with a terminal as stdin and stderr. The terminal shows the typed text."""
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "r+b", buffering=0) as terminal:
        applying = subprocess.Popen(
            [sys.executable, "-m", "kquota", "quota", "apply", *way.connection, str(way.folder / "quotas.yaml")],
            stdin=theirs,
            stderr=theirs,
            stdout=subprocess.PIPE,
        )
        os.close(theirs)
        os.write(ours, answer.encode())
        shown = b""
        try:
            while more := terminal.read(4096):
                shown += more
        except OSError:
            pass  # On Linux this error means that no process has the terminal open any more.
        out, _ = applying.communicate()
    way.seen()
    return Ran(applying.returncode, out.decode(), shown.decode().replace("\r\n", "\n"))


@pytest.mark.kafka
def test_apply_on_a_terminal_asks_once(way: Way) -> None:
    (way.folder / "quotas.yaml").write_text(ALICE)
    declined = on_a_terminal(way, "n\n")
    assert (declined.code, declined.out) == (1, "")
    assert "+ user 'alice'\n    producer_byte_rate: not set -> 50MB/s\n" in declined.err
    assert declined.err.count("apply this change? [y/N]") == 1
    assert declined.err.endswith("kquota: error: not confirmed. Nothing was written\n")
    assert way.kquota("export").out == as_exported(Document(limits={}))
    agreed = on_a_terminal(way, "y\n")
    assert (agreed.code, agreed.out) == (0, "")
    assert agreed.err.count("+ user 'alice'\n") == 1
    assert agreed.err.count("sha256:") == 1
    assert agreed.err.endswith("kquota: 2 entities changed\n")
    assert way.kquota("diff", document=ALICE).code == 0


@pytest.mark.kafka
def test_replication_throttles_in_a_document(way: Way, request: pytest.FixtureRequest) -> None:
    """On named brokers and topics. A topic that does not exist is refused before any write."""
    hand = OtherHand(request.getfixturevalue(WAYS[request.node.callspec.params["way"]][0]))
    request.addfinalizer(hand.close)
    topic = hand.topic({0: [1, 2], 1: [2, 3]}, size=1)
    section = (
        "replication-throttles:\n"
        "  brokers:\n"
        '    "2":\n'
        "      follower.replication.throttled.rate: 64MiB/s\n"
        "      leader.replication.throttled.rate: 50MB/s\n"
        "  topics:\n"
        f"    {topic}:\n"
        '      leader.replication.throttled.replicas: "0:1,1:2"\n'
    )
    missing = way.apply(f"version: 1\nusers: {{u: {{request_percentage: 5}}}}\n{section.replace(topic, f'{topic}x')}")
    assert (missing.code, missing.out) == (1, "")
    assert f"topic '{topic}x' does not exist" in missing.err
    assert "users" not in way.kquota("export").out
    assert way.apply(f"version: 1\n{section}").code == 0
    try:
        found = way.kquota("export", "--replication-throttles")
        assert found.out == as_exported(Document(limits={})) + section
        assert way.kquota("diff", document=found.out) == Ran(0, "", "kquota: nothing to change\n")
        assert "replication" not in way.kquota("export").out
    finally:
        gone = way.apply(f"version: 1\nreplication-throttles: {{brokers: {{2: {{}}}}, topics: {{{topic}: {{}}}}}}")
    assert gone.code == 0
    assert f"topic '{topic}'" in gone.out
    assert way.kquota("export", "--replication-throttles").out == as_exported(Document(limits={}))


@pytest.mark.kafka
@pytest.mark.parametrize("fixture", ["kafka_391", "kafka_282"])
def test_ipv6_in_zookeeper_is_refused_before_any_write(
    request: pytest.FixtureRequest, fixture: str, tmp_path: Path
) -> None:
    way = Way(("--zookeeper", str(request.getfixturevalue(fixture).zookeeper)), tmp_path)
    document = 'version: 1\nusers: {eve: {request_percentage: 5}}\nips: {"2001:db8::1": {connection_creation_rate: 5}}'
    for ran in (way.kquota("diff", document=document), way.apply(document)):
        assert (ran.code, ran.out) == (2, "")
        assert "an IPv6 address cannot have a quota" in ran.err
    assert "eve" not in way.kquota("export").out


@pytest.mark.kafka
def test_invalid_values_of_a_broker_are_exported_and_reported(kafka_431: object, tmp_path: Path) -> None:
    """NaN and infinity, which a broker accepts from other tools."""
    from kquota.quota.limits import QuotaChange

    bootstrap: str = kafka_431.bootstrap  # type: ignore[attr-defined]
    way, entity = Way(("--bootstrap-server", bootstrap), tmp_path), Entity(user="odd")
    with Wire(bootstrap, {}) as wire:
        WireQuotas(wire).alter([QuotaChange(entity=entity, add={"request_percentage": float("nan")})])
    try:
        exported = way.kquota("export")
        while "nan" not in exported.out:
            exported = way.kquota("export")
        way.seen()
        assert exported.code == 0
        assert exported.err.startswith("kquota: warning: user 'odd': request_percentage is nan, which is not valid")
        refused = way.kquota("diff", document=exported.out)
        assert (refused.code, refused.out) == (2, "")
        assert ":7:25: user 'odd': request_percentage=nan" in refused.err
    finally:
        assert way.apply("version: 1\nusers: {odd: {}}").code == 0


GOOD = "version: 1\nowns: [x]\nusers: {a: {request_percentage: 5}}\n"
BAD = {
    "no file": (["diff"], None, "Missing argument 'FILE'"),
    "a file that is not there": (["diff", "/nowhere/x.yaml"], None, "/nowhere/x.yaml: cannot be read: No such file"),
    "a folder": (["diff", "/"], None, "/: cannot be read: Is a directory. Give a document of quotas"),
    "UTF-16": (["diff"], GOOD.encode("utf-16"), "quotas.yaml: is UTF-16, not UTF-8. Save it as UTF-8"),
    "nothing": (["apply", "--yes"], b"", "quotas.yaml: is empty. Give a document of quotas"),
    "a mistake": (["apply", "--yes"], b"version: 1\nusers: {a: {rate: 5}}", "quotas.yaml:2:13: user 'a': unknown key"),
    "a name with an escape sequence": (
        ["diff"],
        b'version: 1\nusers: {"\\e[31m": 5}',
        r"user '\x1b[31m': must be a mapping",
    ),
    "an IP that is none": (
        ["apply", "--yes"],
        b"version: 1\nips: {nobody.invalid: {connection_creation_rate: 5}}",
        "quotas.yaml: ip 'nobody.invalid': neither an IP address nor a resolvable host",
    ),
    "prune without owns": (["diff", "--prune"], b"version: 1\n", "--prune needs `owns: [patterns]`"),
    "no terminal for a confirmation": (["apply"], GOOD.encode(), "Give --yes, or --change"),
    "a hash that is none": (["apply", "--change", "yes"], GOOD.encode(), "sha256: and 16 hexadecimal digits"),
    "a table of an export": (["export", "--output", "tsv"], None, "text or json"),
}


@pytest.mark.parametrize(("arguments", "document", "reason"), BAD.values(), ids=BAD)
def test_bad_input_prints_one_line_and_exits_2_without_a_connection(
    arguments: list[str], document: bytes | None, reason: str, tmp_path: Path
) -> None:
    file = tmp_path / "quotas.yaml"
    if document is not None:
        file.write_bytes(document)
        arguments = [*arguments, str(file)]
    ran = kquota("quota", *arguments, "--bootstrap-server", "127.0.0.1:1")
    assert (ran.code, ran.out) == (2, "")
    assert reason in ran.err
    assert ran.err.startswith("kquota: error: ")
    assert ran.err.count("\n") == 1
    assert "\x1b" not in ran.err


def test_errors_in_a_document_from_stdin_name_stdin() -> None:
    ran = run([sys.executable, "-m", "kquota", "quota", "diff", "-", "--zookeeper", "x:1"], stdin="users: {}")
    assert (ran.code, ran.err) == (
        2,
        "kquota: error: stdin:1:1: the version is missing. Begin with the line `version: 1`\n",
    )


@pytest.mark.parametrize("file", ["-", "pipe"])
def test_the_command_that_reviews_a_document_from_a_pipe_has_a_placeholder(file: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    given = file if file == "-" else str(tmp_path / file)
    ran = kquota("quota", "apply", given, "--prune", "--change", "x", "--bootstrap-server", "127.0.0.1:1")
    wanted = (
        "Copy the hash that `kquota quota diff --bootstrap-server 127.0.0.1:1 DOCUMENT --prune` (replace "
        "DOCUMENT with the file of the quotas) prints"
    )
    assert (ran.code, ran.out, wanted in ran.err) == (2, "", True), ran.err
