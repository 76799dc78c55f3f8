"""The output of commands that need real servers: `record`, `sandbox`, and the topics that brokers report.

Words replace ids, ports and times in the files `golden/contract-servers-*.txt`. REWRITE_GOLDEN=1 writes them again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from kquota.cli.formats import WITHOUT_TABLES, Output
from kquota.sandbox import places
from kquota.sandbox.cluster import Sandbox
from tests.cli.contracts.transcript import Transcript
from tests.cli.hosts import MARKER, forget, znodes
from tests.cli.run import kquota_here
from tests.stores.moves_stage import OtherHand
from tests.waiting import until

pytestmark = pytest.mark.kafka

RECORD = "kquota-contracts"


@pytest.fixture(params=["kafka_431", "kafka_391"], ids=["4.3.1", "3.9.1"])
def hand(request: pytest.FixtureRequest) -> Iterator[OtherHand]:
    servers: Sandbox = request.getfixturevalue(request.param)
    found = OtherHand(servers)
    yield found
    forget(found, RECORD)
    found.close()


def session_on(servers: Sandbox, folder: Path) -> Transcript:
    """A session in which words replace the texts that differ from run to run."""
    names = {str(folder): "FOLDER", servers.bootstrap: "BROKERS", str(servers.directory): "DIRECTORY"}
    names |= {servers.zookeeper: "ZOOKEEPER"} if servers.zookeeper else {}
    return Transcript(
        names=names,
        patterns={
            r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}": "UUID",
            r'("(?:topic_)?id": "|, id |\tTopicId: )[\w-]{22}\b': r"\1TOPIC-ID",
            r"(target cluster: |cluster )[\w-]{22}(?=[\n:])": r"\1CLUSTER-ID",
            r'("(?:pid|port)": |\b(?:pid|port) )\d+': r"\1NUMBER",
        },
    )


def test_the_shared_record(hand: OtherHand, tmp_path: Path) -> None:
    servers = hand.servers
    session = session_on(servers, tmp_path)
    at = f"--bootstrap-server {servers.bootstrap}" + (f" --zookeeper {servers.zookeeper}" if servers.zookeeper else "")

    def record(verb: str, more: str = "", forms: Sequence[str] = WITHOUT_TABLES) -> None:
        for form in forms:
            state = f"--state-dir {tmp_path}"
            session.kquota(f"record {verb} {at} --record {RECORD} {state} {more} --output {form}".replace("  ", " "))

    record("status")
    record("share", "--dry-run")
    record("share")
    record("status")
    if servers.zookeeper:
        with znodes(hand) as client:
            found = json.loads(client.get(MARKER)[0])
        session.note(f"the marker: {json.dumps(found)}")
    record("unshare", "--dry-run")
    record("unshare", forms=["text"])
    record("unshare", "--yes", ["text"])
    hand.shown({RECORD: 0})
    record("unshare", "--yes")
    record("share", forms=["text"])
    hand.admin.delete_topics([RECORD])[RECORD].result()
    hand.shown({RECORD: 0})
    record("unshare", "--dry-run", ["text"])
    record("unshare", "--yes")
    session.must_be(f"contract-servers-record-{servers.kafka}")


def test_topics_and_their_configs(hand: OtherHand, tmp_path: Path) -> None:
    """The stores report the values that the printers show.

    The test follows a topic from its creation to its deletion.
    """
    servers = hand.servers
    session = session_on(servers, tmp_path)
    at = f"--bootstrap-server {servers.bootstrap}"
    session.kquota(f"topics {at} --create --topic contracts --replica-assignment 1:2,2:3 --config preallocate=true")
    described = f"topics {at} --describe --topic contracts"
    until(lambda: _in_sync(described) == [[1, 2], [2, 3]], "all replicas are in sync")
    try:
        for form in Output:
            session.kquota(f"{described} --output {form}")
            session.kquota(f"configs {at} --describe --topic contracts --output {form}")
        if servers.zookeeper:
            session.kquota(f"configs --zookeeper {servers.zookeeper} --describe --topic contracts")
            session.kquota(f"configs --zookeeper {servers.zookeeper} --describe --topic contracts --output json")
    finally:
        session.kquota(f"topics {at} --delete --topic contracts --output json")
    session.must_be(f"contract-servers-topics-{servers.kafka}")


def _in_sync(described: str) -> list[list[int]]:
    ran = kquota_here(*described.split(), "--output", "json")
    found = json.loads(ran.out)["topics"] if ran.code == 0 else []
    return [sorted(one["isr"]) for topic in found for one in topic["partitions"]]


def test_a_started_sandbox() -> None:
    name = f"contracts-{os.getpid()}"
    session = Transcript(
        names={str(places.directory(name)): "DIRECTORY", name: "NAME"},
        patterns={r"127\.0\.0\.1:\d+": "ADDRESS", r'("(?:pid|port)": |\b(?:pid|port) )\d+': r"\1NUMBER"},
    )
    try:
        session.kquota(f"sandbox up {name} --zookeeper-only --output json")
        session.kquota(f"sandbox status {name}")
        session.kquota(f"sandbox up {name} --zookeeper-only --output json")
    finally:
        session.kquota(f"sandbox down {name}")
    session.must_be("contract-servers-sandbox-up")


def test_the_sandbox(hand: OtherHand, tmp_path: Path) -> None:
    servers = hand.servers
    session = session_on(servers, tmp_path)
    session.kquota(f"sandbox status {servers.name}")
    session.kquota(f"sandbox status {servers.name} --output json")
    session.kquota(f"sandbox env {servers.name}")
    session.names = {**session.names, servers.name: "NAME"}
    session.must_be(f"contract-servers-sandbox-{servers.kafka}")
