"""Kafka's own ConfigCommand, many times in one JVM: a process a call would be most of a test's time."""

from __future__ import annotations

import base64
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

import pytest

from kquota.sandbox.cluster import kafka_tool
from tests.cli.run import Ran, run

T = TypeVar("T")
SEEN_SECONDS: Final = 20.0
_SOURCE = Path(__file__).with_name("ConfigCommands.java")
DEPRECATED = (
    "Warning: --zookeeper is deprecated and will be removed in a future version of Kafka.\n"
    "Use --bootstrap-server instead to specify a broker to connect to.\n"
)


class ConfigCommand:
    """One version's tool; the protocol is told in ConfigCommands.java."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def __call__(self, *arguments: str) -> Ran:
        asking, answering = self._process.stdin, self._process.stdout
        assert asking is not None
        assert answering is not None
        asking.write(" ".join("=" + base64.b64encode(argument.encode()).decode() for argument in arguments) + "\n")
        asking.flush()
        answer = answering.readline().split()
        assert len(answer) == 3, f"Kafka's tool ended on {arguments}"
        out, err = (base64.b64decode(part[1:]).decode() for part in answer[1:])
        return Ran(int(answer[0]), out.removeprefix(DEPRECATED), err)


def told(line: str) -> tuple[str, frozenset[str]]:
    """One described entity. Kafka's tools print a hash map's order, kquota sorts: words agree, and the set of pairs."""
    head, are, tail = line.partition(" are ")
    assert are, line
    return head, frozenset(tail.replace(", ", ",").split(","))


def must_compile(java: str) -> None:
    """Skip where this Java runs no source file, as one that pip installs: it is then said at the end of the run."""
    if "jdk.compiler" not in run([java, "--list-modules"]).out:
        pytest.skip("this Java has no compiler (jdk.compiler): install a JDK")


@contextmanager
def config_command(version: str) -> Iterator[ConfigCommand]:
    """kafka.admin.ConfigCommand of this release, until the block ends."""
    java = kafka_tool(version, "x")
    must_compile(java[0])
    command = [*java[: java.index("-cp") + 2], str(_SOURCE)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield ConfigCommand(process)
        finally:
            process.kill()


ConfigCommands: TypeAlias = Callable[[str], ConfigCommand]
"""A version to its tool, started when it is first asked for: the fixture `config_commands`."""


def settled(read: Callable[[], T], fits: Callable[[T], bool]) -> T:
    """What is read once it fits, or what stands at the end: on KRaft a broker may be behind for a moment."""
    give_up = time.monotonic() + SEEN_SECONDS
    while not fits(found := read()) and time.monotonic() < give_up:
        time.sleep(0.02)
    return found


def altered(alter: Callable[[], Ran]) -> Ran:
    """Through Kafka's tool, again where the broker that it asked has not yet heard of what it is to delete."""
    return settled(alter, lambda ran: ran.code == 0 or "Invalid config(s)" not in ran.err)
