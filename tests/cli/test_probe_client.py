"""`kquota quota probe --client-command` with real clients under a real quota, and without a cluster."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pytest

from kquota.cli.quota.probe import client_command
from kquota.cli.quota.probe.client_command import shown
from kquota.errors import Refused
from kquota.probe.behavior import BehaviorRecord, Honors
from kquota.probe.scratch import PREFIX
from kquota.quota.entity import Entity
from kquota.quota.limits import QuotaChange
from kquota.sandbox.cluster import Sandbox
from kquota.stores.admin.connection import Wire
from kquota.stores.admin.quotas import WireQuotas
from kquota.stores.admin.topics import WireTopics
from tests.cli.run import kquota, started
from tests.waiting import until

RUDE = """
import socket, struct, sys, time
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

host, port = sys.argv[1].rsplit(":", 1)
with socket.create_connection((host, int(port))) as broker, broker.makefile("rb") as answers:
    throttled = 0
    while throttled < 5:
        request = MetadataRequest(topics=[], version=12)
        request.with_header(correlation_id=1, client_id=sys.argv[2])
        broker.sendall(request.encode(header=True, framed=True))
        frame = answers.read(int.from_bytes(answers.read(4), "big"))
        throttled += MetadataResponse.decode(frame, version=12, header=True).throttle_time_ms > 100
"""
"""A client that ignores throttle_time_ms, until 5 responses of one bare connection were throttled."""

POLITE = RUDE.replace(
    "        throttled += MetadataResponse.decode(frame, version=12, header=True).throttle_time_ms > 100\n",
    "        wait = MetadataResponse.decode(frame, version=12, header=True).throttle_time_ms\n"
    "        time.sleep(wait / 1_000)\n"
    "        throttled += wait > 100\n",
)
"""The same client, which waits."""

LIBRDKAFKA = """
import sys, time
from confluent_kafka import Producer

producer = Producer({"bootstrap.servers": sys.argv[1], "client.id": sys.argv[2], "batch.size": 16384})
end = time.monotonic() + 20
while time.monotonic() < end:
    producer.produce(sys.argv[3], bytes(8_000))
    producer.poll(0.02)
producer.flush(60)
"""
"""librdkafka reports throttle times to the application, but does not wait: its pipeline stays full."""


@contextmanager
def limited(cluster: Sandbox, **quota: float) -> Iterator[str]:
    """A client-id with this quota."""
    client_id = f"behavior-{uuid.uuid4().hex[:8]}"
    with Wire(cluster.bootstrap, {}) as wire:
        quotas, entity = WireQuotas(wire), Entity(client_id=client_id)
        quotas.alter([QuotaChange(entity=entity, add=quota)])
        until(lambda: entity in quotas.everything(), "the quota is visible")
        yield client_id
        quotas.alter([QuotaChange(entity=entity, delete=tuple(quota))])


def command(source: str, *arguments: str) -> str:
    return shlex.join([sys.executable, "-c", source, *arguments])


def probed(cluster: Sandbox, client: str) -> tuple[int, dict[str, object]]:
    at = ("--bootstrap-server", cluster.bootstrap)
    ran = kquota("quota", "probe", *at, "--client-command", client, "--output", "json")
    return ran.code, json.loads(ran.out)


def test_a_client_that_ignores_throttle_times_is_found(kafka_431: Sandbox) -> None:
    with limited(kafka_431, request_percentage=0.01) as client_id:
        code, found = probed(kafka_431, command(RUDE, "{bootstrap}", client_id))
    assert (code, found["verdict"], found["client_exit_code"]) == (8, "no", 0)
    # The client ends after its fifth such response, which is the last one.
    assert isinstance(found["responses_throttled"], int) and found["responses_throttled"] >= 5
    assert isinstance(found["requests_during_throttle"], int) and found["requests_during_throttle"] >= 4
    assert isinstance(found["waited_ms"], int) and found["waited_ms"] > 0


def test_a_client_that_waits_honors_throttle_times(kafka_431: Sandbox) -> None:
    with limited(kafka_431, request_percentage=0.01) as client_id:
        code, found = probed(kafka_431, command(POLITE, "{bootstrap}", client_id))
    assert (code, found["verdict"], found["requests_during_throttle"]) == (0, "yes", 0)


def test_librdkafka_ignores_throttle_times(kafka_431: Sandbox) -> None:
    with limited(kafka_431, producer_byte_rate=50_000) as client_id:
        code, found = probed(kafka_431, command(LIBRDKAFKA, "{bootstrap}", client_id, "{topic}"))
    assert isinstance(found["throttle_ms"], int) and found["throttle_ms"] > 0
    assert (code, found["verdict"]) == (8, "no")
    with Wire(kafka_431.bootstrap, {}) as wire:
        assert found["topic"] not in {topic.name for topic in WireTopics(wire).topics(None)}


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_client_and_its_children(kafka_431: Sandbox, tmp_path: Path, how: signal.Signals) -> None:
    alive = tmp_path / "alive"
    client = f"sh -c 'sleep 600 & echo $! > {alive}; wait' {{bootstrap}} {{topic}}"
    process = started("quota", "probe", "--bootstrap-server", kafka_431.bootstrap, "--client-command", client)
    until(lambda: alive.exists() and alive.read_text().endswith("\n"), "the client runs")
    process.send_signal(how)
    # The child of the client holds the pipes of kquota, so this fails if the child stays.
    process.communicate(timeout=60)
    assert process.returncode == 128 + how
    until(lambda: not Path(f"/proc/{alive.read_text().strip()}").exists(), "the child of the client ended")
    with Wire(kafka_431.bootstrap, {}) as wire:
        assert not [topic for topic in WireTopics(wire).topics(None) if topic.name.startswith(PREFIX)]


@pytest.mark.parametrize(
    ("client", "complaint"),
    [
        ("true", "{bootstrap} is missing"),
        ("no-such-program {bootstrap}", "'no-such-program' is not a program on this machine"),
        ("sh -c 'x {bootstrap}", "No closing quotation"),
    ],
)
def test_a_wrong_command_is_refused_before_anything_starts(client: str, complaint: str) -> None:
    ran = kquota("quota", "probe", "--bootstrap-server", "127.0.0.1:1", "--client-command", client)
    assert (ran.code, ran.out) == (2, "")
    assert complaint in ran.err


def test_tls_and_logins_are_refused_before_anything_starts(tmp_path: Path) -> None:
    config = tmp_path / "tls.properties"
    config.write_text("security.protocol=SSL\n")
    at = ("--bootstrap-server", "127.0.0.1:1", "--command-config", str(config))
    ran = kquota("quota", "probe", *at, "--client-command", "true {bootstrap}")
    assert (ran.code, ran.out) == (1, "")
    assert "only PLAINTEXT listeners are supported (security.protocol=SSL in --command-config)" in ran.err


@pytest.mark.unit
@pytest.mark.parametrize(
    ("early", "verdict", "measured"),
    [
        (0, Honors.YES, "it sent no early request in 20 throttle times"),
        (2, Honors.YES, "it sent early requests in 2 of 20 throttle times"),
        (3, Honors.NO, "it sent early requests in 3 of 20 throttle times"),
    ],
)
def test_the_conclusion_says_what_was_measured(early: int, verdict: Honors, measured: str) -> None:
    record = BehaviorRecord()
    seen = record.connection()
    for number in range(20):
        seen.answered(float(number), 500)
        seen.requested(number + (0.1 if number < early else 0.6))
    seen.closed()
    found = shown("client {bootstrap}", None, 0, record.figures())
    assert found.verdict is verdict
    assert measured in " ".join(" ".join(found.text()).split())


@pytest.mark.unit
@pytest.mark.parametrize(
    ("exit_code", "ending"),
    [(3, "it ended with exit code 3"), (-9, "SIGKILL ended it"), (-40, "signal 40 ended it")],
)
def test_the_conclusion_says_how_a_client_failed(exit_code: int, ending: str) -> None:
    found = shown("client {bootstrap}", None, exit_code, BehaviorRecord().figures())
    assert found.code == 1
    assert f"The client failed: {ending}. Run it without kquota to see why." in " ".join(found.text())


def test_an_interrupt_while_the_client_starts_ends_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client already runs when Python returns from starting it."""
    running = []

    class Interrupted(subprocess.Popen[bytes]):
        def __init__(self, *words: Any, **options: Any) -> None:
            super().__init__(*words, **options)
            running.append(self)
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            client_command.ran(["sleep", "600"], 10.0)
        assert running[0].returncode == -signal.SIGTERM
    finally:
        running[0].kill()


def test_a_client_of_another_user_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """For example `sudo -u app client`, whose processes kquota may not signal."""
    groups = []

    def forbidden(group: int, _number: int) -> None:
        groups.append(group)
        raise PermissionError(1, "Operation not permitted")

    def interrupted(_process: object, _timeout: float) -> NoReturn:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "killpg", forbidden)
        with pytest.raises(Refused, match=r"the client \(process \d+\) runs as another user, so kquota cannot stop it"):
            client_command.ran(["sleep", "600"], 0.1)
        assert client_command.ran(["true"], 10.0) == 0
        patch.setattr(subprocess.Popen, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            client_command.ran(["sleep", "600"], 10.0)
    assert f"the client (process {groups[-1]}) runs as another user, so kquota" in capfd.readouterr().err
    for group in (groups[0], groups[-1]):
        os.kill(group, signal.SIGKILL)
