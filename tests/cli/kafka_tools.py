"""Runs Kafka's own tools many times in one JVM, because one process for each call would take most of a test's time."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import pytest

from kquota.sandbox.cluster import kafka_tool
from tests.cli.run import Ran, run

_SOURCE = Path(__file__).with_name("KafkaTools.java")


class KafkaTools:
    """One version's tools. KafkaTools.java describes the protocol."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def __call__(self, main_class: str, *arguments: str) -> Ran:
        asking, answering = self._process.stdin, self._process.stdout
        assert asking is not None
        assert answering is not None
        words = (main_class, *arguments)
        asking.write(" ".join("=" + base64.b64encode(word.encode()).decode() for word in words) + "\n")
        asking.flush()
        answer = answering.readline().split()
        assert len(answer) == 3, f"Kafka's tool ended on {words}"
        out, err = (base64.b64decode(part[1:]).decode() for part in answer[1:])
        return Ran(int(answer[0]), out, err)


Tools: TypeAlias = Callable[[str], KafkaTools]
"""The type of the fixture `kafka_tools`, which returns the tools of a version and starts them at their first use."""


def must_compile(java: str) -> None:
    """Skip the test if this Java cannot run a source file, like a Java from pip. The end of the run reports this."""
    if "jdk.compiler" not in run([java, "--list-modules"]).out:
        pytest.skip("this Java has no compiler (jdk.compiler): install a JDK")


def source_command(version: str, source: Path) -> list[str]:
    """Return the command line that runs one Java source file with the jars of this release."""
    java = kafka_tool(version, "x")
    must_compile(java[0])
    return [*java[: java.index("-cp") + 2], str(source)]


@contextmanager
def started(version: str) -> Iterator[KafkaTools]:
    """Yield the tools of this release until the block ends."""
    command = source_command(version, _SOURCE)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield KafkaTools(process)
        finally:
            process.kill()
