"""The kinds of errors that kquota raises. `cli.main` turns them into messages and exit codes. Adapters translate all
other errors where they occur.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Parameter(str):
    """The name of a parameter in a message, which `cli` writes as an option."""

    __slots__ = ()


class Retry(str):
    """Advice to repeat the command. A command that repeats its work itself leaves this advice out of its messages."""

    __slots__ = ()


AGAIN_LATER: Final = Retry(". Try again later")


class NextStep(StrEnum):
    """The next step in a message, which `cli` writes as a command."""

    TAKE_SNAPSHOT = "Take a snapshot"
    TAKE_SIZES = "Take it again"
    RESUME_RUN = "resuming run"
    ABORT_RUN = "aborting run"
    CANCEL_MOVES = "the cancellation of the plan"
    END_THROTTLE = "ending run"
    EXAMINE_THROTTLES = "examining the throttles"
    SHOW_THROTTLES = "showing the throttles"
    SHOW_MOVES = "showing the moves"
    SHOW_TOPIC = "showing topic"
    SHOW_TOPIC_CONFIGS = "showing the configs of topic"
    SHOW_BROKER_CONFIGS = "showing the configs of broker"
    SHOW_GROUP_CONFIGS = "showing the configs of group"
    SHOW_CLIENT_METRICS = "showing the configs of client metrics"
    SHOW_LOGGERS = "showing the loggers of broker"
    SHOW_USER = "showing the configs of user"
    SHOW_QUOTAS = "showing all quotas"
    SHOW_BROKER_DEFAULTS = "showing the default configs of all brokers"
    SHARE_RECORD = "sharing the record"
    UNSHARE_RECORD = "unsharing the record"
    UNSHARE_OTHER = "unsharing the record in topic"
    CLEAN_UP_PROBES = "cleaning up after probes"
    USE_SANDBOX = "Use sandbox"
    STOP_SANDBOX = "stop sandbox"
    REMOVE_SANDBOX = "Remove sandbox"


@dataclass(frozen=True, slots=True)
class StepFor:
    """A next step with its value, for example the id of a run."""

    step: NextStep
    what: str

    def __str__(self) -> str:
        return f"{self.step} {self.what}"


@dataclass(frozen=True, slots=True)
class ExamineZnode:
    """The advice to examine a znode whose content is not valid. `cli` writes it with a command of
    zookeeper-shell.sh.
    """

    path: str

    def __str__(self) -> str:
        return f"Examine znode {self.path}"


class KquotaError(Exception):
    """An error that kquota can explain: the message states the object, the problem, the observed value and the next
    step.

    The arguments of the exception are the parts of the message.
    """

    def __str__(self) -> str:
        return "".join(map(str, self.args))


class Invalid(KquotaError):
    """The input is not valid. Nothing was written."""


class Refused(KquotaError):
    """A check, the cluster or this machine refused the action. The refused action wrote nothing."""


class Conflict(KquotaError):
    """Another client changed the state during the command, so kquota did not write, or gave up after several attempts
    to write.
    """


class Unreachable(KquotaError):
    """A server could not be reached, or gave no valid answer before the deadline."""


class NotSent(Unreachable):
    """A check before the request showed that a server cannot be reached. The request was not sent, so nothing was
    written.
    """


class Busy(KquotaError):
    """Another kquota holds the lock that this command needs. A later attempt may succeed."""


class Unknown(KquotaError):
    """A write was sent, but its effect is unknown."""


class Unseen(Unknown):
    """A write was sent and accepted, but reads did not show it in time."""


class QuotaViolatedException(KquotaError):
    """`THROTTLING_QUOTA_EXCEEDED` (89): the broker rejected a mutation (KIP-599), or kquota held the mutation back
    because the broker would have rejected it.

    `throttle_time_ms` is the time that the client has to wait, in milliseconds. kquota estimates this time for a
    mutation that it held back. If the error is raised for a whole call, `results` has the error of each topic, or None
    for success. Otherwise `results` is empty.
    """

    def __init__(
        self, throttle_time_ms: int, message: str, results: Mapping[str, KquotaError | None] | None = None
    ) -> None:
        super().__init__(message)
        self.throttle_time_ms = throttle_time_ms
        self.results = dict(results or {})


class Incomplete(KquotaError):
    """kquota did some of the work, but not all of it. `done` and `undone` name the two parts."""

    def __init__(
        self,
        message: str | tuple[str | KquotaError | NextStep | StepFor, ...],
        done: Sequence[str],
        undone: Sequence[str],
    ) -> None:
        super().__init__(*([message] if isinstance(message, str) else message))
        self.done = tuple(done)
        self.undone = tuple(undone)
