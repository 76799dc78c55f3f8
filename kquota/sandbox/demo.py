"""The demo on a fresh sandbox: a throttled client, and a move that is predicted, run and checked."""

from __future__ import annotations

import enum
import json
import os
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kquota.errors import KquotaError, Unreachable
from kquota.measure import counted, human_bytes, human_duration, human_rate
from kquota.reassign.plan import Plan
from kquota.sandbox import cluster as sandbox
from kquota.sandbox import traffic
from kquota.sandbox.cluster import Sandbox
from kquota.sandbox.jars import ReportProgress
from kquota.terms import BrokerId, TopicPartition

NAME: Final = "demo"
MOST_MISSED: Final = 0.15
MOVING, _STAYING, _PARTITIONS = "orders", "audit", 4
_TO: Final = BrokerId(1), BrokerId(3)
_LOADED: Final = 400_000_000
_WRITES: Final = 1_000_000
THROTTLE: Final = "12MB/s"
CLIENT_QUOTA: Final = "1MB/s"
REASON: Final = "broker 2 gets new disks"
_MOVE_SECONDS: Final = 240.0
_NOT_YET: Final = 8


class DemoCommand(enum.Enum):
    """A kquota command that the demo runs. `cli` provides its command line."""

    SET_QUOTA = enum.auto()
    SHOW_QUOTA = enum.auto()
    REMOVE_QUOTA = enum.auto()
    TAKE_SNAPSHOT = enum.auto()
    SHARE_RECORD = enum.auto()
    ESTIMATE = enum.auto()
    ESTIMATE_AS_JSON = enum.auto()
    MOVE = enum.auto()
    STATUS_ELSEWHERE = enum.auto()
    REPORT = enum.auto()
    SET_QUOTAS_OF_USER = enum.auto()
    SHOW_QUOTAS_OF_USER = enum.auto()
    REMOVE_QUOTAS_OF_USER = enum.auto()


@dataclass(frozen=True, slots=True)
class DemoOutput:
    """The output of the demo. `line` prints a line from its parts (text or errors), and `progress` shows the progress
    of a step. `commands` has the command lines without the leading `kquota`.
    """

    line: Callable[..., None]
    progress: ReportProgress
    commands: Mapping[DemoCommand, str]


def demo(output: DemoOutput) -> bool:
    """Run the demo. Return False if Kafka's jars could not be downloaded, so that only the part with ZooKeeper was
    possible.

    The sandbox is removed at the end, even if a step fails or is interrupted. If a server does not start, the servers
    are stopped, but their logs are kept. Raises KquotaError if a step fails, or if the predicted time is off by more
    than 15%.
    """
    with tempfile.TemporaryDirectory(prefix="kquota-demo-") as folder:
        try:
            output.line("A sandbox: three real Kafka 4.3.1 brokers (KRaft) on this machine.")
            found = sandbox.up(name=NAME, owner_pid=os.getpid(), report=output.progress)
        except Unreachable as error:
            output.line("Kafka is not available here: ", error)
            return _on_zookeeper_alone(output, Path(folder))
        try:
            runner = _DemoRunner(output, {"KQUOTA_BOOTSTRAP_SERVER": found.bootstrap}, Path(folder))
            _quota(runner, found)
            _load(runner, found)
            _move(runner, found)
        finally:
            output.progress("stopping the sandbox", None)
            sandbox.down(NAME)
    output.line("\nAll steps worked. The sandbox is removed.")
    return True


@dataclass(frozen=True, slots=True)
class _DemoRunner:
    """A runner that starts kquota in a separate process, as an operator would, and shows the command and its output."""

    output: DemoOutput
    where: dict[str, str]
    folder: Path

    def started(self, wanted: DemoCommand, *, stderr: int, show: bool = True) -> subprocess.Popen[str]:
        command = self.output.commands[wanted]
        if show:
            self.output.line(f"\n$ kquota {command}")
        return subprocess.Popen(
            [sys.executable, "-m", "kquota", *shlex.split(command)],
            env={**os.environ, **self.where, "XDG_STATE_HOME": str(self.folder / "state")},
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )

    def kquota(self, wanted: DemoCommand, *expected: int, show: bool = True) -> str:
        command = self.output.commands[wanted]
        with self.started(wanted, stderr=subprocess.PIPE, show=show) as ran:
            out, err = ran.communicate()
        if ran.returncode not in (expected or (0,)):
            raise _failed(f"kquota {command} ended with exit code {ran.returncode}: {err.strip() or out.strip()}")
        if show:
            for text in (err, out):
                for line in text.splitlines():
                    self.output.line(f"  {line}")
            if ran.returncode:
                self.output.line(f"  (exit code {ran.returncode})")
        return out


def _quota(runner: _DemoRunner, found: Sandbox) -> None:
    runner.output.line("\n1. A quota, and a client that reaches it")
    traffic.create(found.bootstrap, "greetings", [[1]])
    runner.kquota(DemoCommand.SET_QUOTA)
    runner.kquota(DemoCommand.SHOW_QUOTA)
    runner.output.progress("client greedy writes as fast as it can", None)
    met = traffic.run_into_quota(found.bootstrap, "greetings", 100_000_000)
    if not met.times:
        raise _failed("client greedy was never throttled, although its quota is set")
    runner.output.line(
        f"\n  Client greedy wrote at {human_rate(met.rate)}. The broker throttled it {counted(met.times, 'time')}, "
        f"for up to {met.longest_ms} ms (KIP-219)."
    )
    runner.kquota(DemoCommand.REMOVE_QUOTA)


def _load(runner: _DemoRunner, found: Sandbox) -> None:
    output = runner.output
    output.line(f"\n2. {human_bytes(_LOADED)} in topic {MOVING} on brokers 1 and 2, and a snapshot of its size")
    traffic.create(found.bootstrap, _STAYING, [[2, 3]] * _PARTITIONS)
    traffic.create(found.bootstrap, MOVING, [[1, 2]] * _PARTITIONS)
    traffic.load(found.bootstrap, _STAYING, _PARTITIONS, _LOADED // 10, lambda _: None)
    loading = f"loading {human_bytes(_LOADED)}"
    traffic.load(found.bootstrap, MOVING, _PARTITIONS, _LOADED, lambda share: output.progress(loading, share))
    runner.kquota(DemoCommand.TAKE_SNAPSHOT)
    output.line("\n  Several hosts will manage moves of this cluster, so they share one record of all runs.")
    runner.kquota(DemoCommand.SHARE_RECORD)


def _move(runner: _DemoRunner, found: Sandbox) -> None:
    runner.output.line(
        f"\n3. Topic {MOVING} moves from broker 2 to broker 3 while clients write {human_rate(_WRITES)} to it, "
        "and keeps its replicas on broker 1"
    )
    plan = Plan(targets={TopicPartition(MOVING, number): _TO for number in range(_PARTITIONS)})
    (runner.folder / "plan.json").write_text(plan.text())
    with traffic.steady(found.bootstrap, MOVING, _PARTITIONS, _WRITES):
        runner.output.progress("Spark estimates the move", None)
        runner.kquota(DemoCommand.ESTIMATE)
        predicted = _estimated(runner)
        actual = _moved(runner, found)
    left = traffic.throttles(found.bootstrap, [MOVING, _STAYING], [1, 2, 3])
    if left:
        raise _failed(f"the move is done, but a throttle is left: {'; '.join(left)}")
    runner.output.line("\n  Another client confirms: no throttle is left on any topic or broker.")
    _judge(runner.output, predicted, actual)
    runner.output.line("\n  The second host checks again, and lists the runs on record.")
    runner.kquota(DemoCommand.STATUS_ELSEWHERE)
    runner.kquota(DemoCommand.REPORT)


def _estimated(runner: _DemoRunner) -> float:
    """Return the expected time of the move in seconds, more than 0."""
    found = json.loads(runner.kquota(DemoCommand.ESTIMATE_AS_JSON, show=False))
    seconds = found["expected_seconds"]
    if not seconds:  # null if the move never finishes, 0 if it copies nothing
        raise _failed(f"the estimate has no expected time (expected_seconds: {json.dumps(seconds)})")
    again = f"{human_duration(seconds)} for {human_bytes(found['bytes_to_copy'])}"
    runner.output.line(f"\n  Clients keep writing, so kquota estimates the move again before the start: {again}.")
    return float(seconds)


def _moved(runner: _DemoRunner, found: Sandbox) -> float:
    """Return the seconds from the start of the move until a client sees the new replicas."""
    client = traffic.admin(found.bootstrap)
    with runner.started(DemoCommand.MOVE, stderr=subprocess.STDOUT) as running:
        printed = threading.Thread(target=_print, args=(runner.output, running), daemon=True)
        printed.start()
        try:
            _wait(running, lambda: any(len(now) > len(_TO) for now in traffic.replicas(client, MOVING).values()))
            began = time.monotonic()
            if not traffic.throttles(found.bootstrap, [MOVING], [1, 2, 3]):
                raise _failed("the move is running, but no throttle is set")
            _seen_elsewhere(runner)
            _wait(running, lambda: set(traffic.replicas(client, MOVING).values()) == {frozenset(_TO)})
            seconds = time.monotonic() - began
            code = _exit_code(running, _MOVE_SECONDS)
        except BaseException:
            running.kill()
            raise
        printed.join()
    if code:
        raise _failed(f"kquota {runner.output.commands[DemoCommand.MOVE]} ended with exit code {code}")
    return seconds


def _print(output: DemoOutput, running: subprocess.Popen[str]) -> None:
    assert running.stdout is not None
    for line in running.stdout:
        output.line(f"  {line.rstrip()}")


def _exit_code(running: subprocess.Popen[str], seconds: float) -> int:
    try:
        return running.wait(seconds)
    except subprocess.TimeoutExpired:
        waited = f"{human_duration(seconds)} after the move was done"
        raise _failed(f"the move command is still running {waited}") from None


def _wait(running: subprocess.Popen[str], seen: Callable[[], bool]) -> None:
    give_up = time.monotonic() + _MOVE_SECONDS
    while not seen():
        if running.poll() is not None:
            raise _failed(f"the move command ended too early, with exit code {running.returncode}")
        if time.monotonic() > give_up:
            raise _failed(f"the move is not done after {human_duration(_MOVE_SECONDS)}")
        time.sleep(0.2)


def _seen_elsewhere(runner: _DemoRunner) -> None:
    runner.output.line("\n  Meanwhile a second host, which has no journal of the run, checks the status.")
    shown = runner.kquota(DemoCommand.STATUS_ELSEWHERE, _NOT_YET)
    if REASON not in shown:
        raise _failed(f"the second host does not see the run: {shown!r}")


def _judge(output: DemoOutput, predicted: float, actual: float) -> None:
    missed = abs(actual / predicted - 1)
    output.line(
        f"\n  Predicted {human_duration(predicted)}, took {human_duration(actual)}: {missed:.0%} off "
        f"(this demo accepts at most {MOST_MISSED:.0%})."
    )
    if missed > MOST_MISSED:
        raise _failed(f"the prediction was off by {missed:.0%}, more than {MOST_MISSED:.0%}")


def _failed(problem: str) -> KquotaError:
    """Return the error of a failed step, with the next step."""
    again = "The sandbox is removed. Run the same command again when this machine is idle"
    return KquotaError(f"demo: {problem.rstrip('.')}. {again}")


def _on_zookeeper_alone(output: DemoOutput, folder: Path) -> bool:
    output.line("The demo therefore shows only quotas in a real ZooKeeper, written as Kafka stores them.")
    found = sandbox.up(name=NAME, kafka=None, owner_pid=os.getpid(), report=output.progress)
    try:
        runner = _DemoRunner(output, {"KQUOTA_ZOOKEEPER": str(found.zookeeper)}, folder)
        runner.kquota(DemoCommand.SET_QUOTAS_OF_USER)
        shown = runner.kquota(DemoCommand.SHOW_QUOTAS_OF_USER)
        if "producer_byte_rate=1000000" not in shown:
            raise _failed(f"the quota was written, but it is not shown: {shown!r}")
        runner.kquota(DemoCommand.REMOVE_QUOTAS_OF_USER)
    finally:
        sandbox.down(NAME)
    output.line(
        "\nNot shown: a throttled client and a throttled move. They need Kafka's jars, which are downloaded once."
    )
    return False
