"""`quota probe --client-command`: run an operator's own client, and judge its reaction to throttling."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from kquota.cli.contract import DONE, FAILED, NOT_YET, complain, worded
from kquota.cli.output import Answer, JsonObject, key, spread
from kquota.cli.quota.sentences import wrapped
from kquota.errors import Invalid, Refused
from kquota.interrupt import deferred
from kquota.measure import counted
from kquota.probe.behavior import ALLOWED, GRACE_SECONDS, ClientBehavior, Honors

BOOTSTRAP: Final = "{bootstrap}"
TOPIC: Final = "{topic}"
_STOP_SECONDS: Final = 5.0
"""The maximum number of seconds that kquota waits for a client to end after SIGTERM."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientPlanned(Answer):
    """The client that kquota would run."""

    INDENT = 2

    dry_run: bool = True
    command: str
    topic: str | None
    """The topic that kquota would create, or None if the command does not contain `{topic}`."""
    seconds: float
    """The maximum time for which the client would run."""

    def text(self) -> Iterator[str]:
        yield from wrapped("command", self.command)
        yield from wrapped("time", f"at most {self.seconds:g} s")
        if self.topic is not None:
            yield from wrapped("topic", f"{self.topic} (temporary). Nothing was created")


def _figures(one: ClientBehavior) -> JsonObject:
    return {
        "requests": one.requests,
        "responses_throttled": one.throttled,
        "throttle_ms": one.throttle_ms,
        "longest_throttle_ms": one.longest_throttle_ms,
        "throttles_judged": one.judged,
        "throttles_broken": one.broken,
        "requests_during_throttle": one.early,
        "waited_ms": one.waited_ms,
        "longest_wait_ms": one.longest_wait_ms,
        "responses_not_read": one.unread,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientJudged(Answer):
    """The verdict on the client, and its figures."""

    INDENT = 2

    command: str
    topic: str | None
    """The topic that kquota created, or None if the command does not contain `{topic}`."""
    client_exit_code: int | None
    """The exit code of the client, or None if kquota stopped the client."""
    verdict: Honors = key(form=lambda found: found.name.lower())
    figures: ClientBehavior = spread(_figures)

    def text(self) -> Iterator[str]:
        one = self.figures
        yield from wrapped("command", self.command)
        yield from wrapped("requests", f"{one.requests:,}")
        responses = counted(one.throttled, "response")
        throttled = f"{responses}, {one.throttle_ms:,} ms in total, longest {one.longest_throttle_ms:,} ms"
        yield from wrapped("throttle", throttled if one.throttled else "never")
        if one.throttled:
            early = f"{counted(one.early, 'request')}, in {one.broken:,} of {counted(one.judged, 'throttle time')}"
            waits = f". Waits: {one.waited_ms:,} ms in total, longest {one.longest_wait_ms:,} ms"
            yield from wrapped("during", early + (waits if one.early else ""))
        yield ""
        yield from wrapped("", _conclusion(one, self.client_exit_code), indent="")


def _conclusion(one: ClientBehavior, exit_code: int | None) -> str:
    if exit_code:
        return f"The client failed: {_ending(exit_code)}. Run it without kquota to see why."
    throttles = counted(one.judged, "throttle time")
    if one.honors is Honors.YES:
        if not one.broken:
            return f"The client honors throttle times: it sent no early request in {throttles}."
        return (
            f"The client honors throttle times: it sent early requests in {one.broken:,} of {throttles}. kquota allows "
            f"{ALLOWED:.0%}, because busy machines cause a few early requests."
        )
    if one.honors is Honors.NO:
        return (
            f"The client ignores throttle times: it sent early requests in {one.broken:,} of {throttles}. The broker "
            "reads them at the end of the throttle time. The client's timeouts and latencies include this wait."
        )
    if not one.throttled:
        return "No response had a throttle time. Set a lower quota for this client, or let it send more."
    return (
        "kquota could not judge any throttle time, because the client sent nothing after a throttle time of more than "
        f"{GRACE_SECONDS * 1_000:g} ms. "
        "Set a lower quota, or let the client run longer."
    )


def _ending(exit_code: int) -> str:
    """Return as text how the client ended. An exit code of -N means that signal N ended the client."""
    if exit_code > 0:
        return f"it ended with exit code {exit_code}"
    try:
        return f"{signal.Signals(-exit_code).name} ended it"
    except ValueError:  # most real-time signals have no name
        return f"signal {-exit_code} ended it"


def must_run(command: str) -> None:
    """Raise Invalid for a command without `{bootstrap}`, with invalid quoting, or with an unknown program. Without
    `{bootstrap}`, the client would not use the proxy.
    """
    if BOOTSTRAP not in command:
        raise Invalid(
            f"--client-command: {BOOTSTRAP} is missing ({command!r}). Write {BOOTSTRAP} instead of the broker's address"
        )
    program = words(command, "", "")[0]
    if shutil.which(program) is None:
        raise Invalid(f"--client-command: {program or command!r} is not a program on this machine. Check the path")


def must_be_plain(protocol: str) -> None:
    """Raise Refused for a protocol with a login or TLS, because the proxy must read the bytes of the client."""
    if protocol != "PLAINTEXT":
        raise Refused(
            f"--client-command: only PLAINTEXT listeners are supported (security.protocol={protocol} in "
            "--command-config). Give the address of a PLAINTEXT listener, and a --command-config without "
            "security.protocol"
        )


def words(command: str, bootstrap: str, topic: str) -> list[str]:
    """Return the words of the command, with `bootstrap` in place of `{bootstrap}`, and `topic` in place of `{topic}`.
    No shell is used.

    Raises Invalid if the quoting of the command is not valid.
    """
    try:
        found = shlex.split(command)
    except ValueError as error:
        raise Invalid(f"--client-command: {error} ({command!r}). Quote the whole command once") from error
    return [word.replace(BOOTSTRAP, bootstrap).replace(TOPIC, topic) for word in found]


def ran(command: Sequence[str], seconds: float) -> int | None:
    """Run the client until it ends, but for at most `seconds`. Return its exit code, or None if kquota stopped it.

    The output of the client goes to stderr. At the end, kquota also stops the processes that the client started. Raises
    Invalid if the client cannot be started, and Refused if it runs as another user and does not end in time. If an
    interrupt ends the run of such a client, kquota only prints the error, and raises the interrupt again.
    """
    with _started(command) as process:
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None


@contextmanager
def _started(command: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Start the client in a new process group, and stop this group at the end of the block."""
    process = None
    try:
        with deferred():  # because an interrupt while the client starts would leave it running
            process = _spawned(command)
        yield process
    except BaseException:
        # Ctrl-C keeps its exit code, even if the client cannot be stopped.
        try:
            if process is not None:
                _stop(process)
        except Refused as error:
            complain(worded(error))
        raise
    _stop(process)


def _spawned(command: Sequence[str]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, start_new_session=True)
    except OSError as error:
        raise Invalid(
            f"--client-command: {command[0]} cannot be started ({error.strerror}). Check the program"
        ) from error


def _stop(process: subprocess.Popen[bytes]) -> None:
    try:
        _signal(process, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_SECONDS)
    finally:
        # SIGKILL has its own `finally`, because a second interrupt must not leave the client running.
        _signal(process, signal.SIGKILL)
        process.wait()


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    # Send the signal even if the client has ended, because the client may have started other processes.
    try:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
    except PermissionError as error:
        if process.poll() is None:
            raise Refused(
                f"--client-command: the client (process {process.pid}) runs as another user, so kquota cannot stop it. "
                "Stop it yourself, and run the client as your own user"
            ) from error


def shown(command: str, topic: str | None, exit_code: int | None, one: ClientBehavior) -> ClientJudged:
    """Return the answer. `exit_code` is that of the client, or None if kquota stopped the client.

    The exit code of the answer is 1 if the client failed, or if kquota could not judge any throttle time. Otherwise, it
    is 0 if the client honors throttle times, and 8 if it ignores them.
    """
    codes = {Honors.YES: DONE, Honors.NO: NOT_YET, Honors.UNKNOWN: FAILED}
    return ClientJudged(
        command=command,
        topic=topic,
        client_exit_code=exit_code,
        verdict=one.honors,
        figures=one,
        code=FAILED if exit_code else codes[one.honors],
    )
