"""All errors of kquota. Adapters translate other errors where they occur. Only `cli.main` catches these errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Parameter(str):
    """The name of a parameter in a message, which `cli` writes as an option."""

    __slots__ = ()


class NextStep(StrEnum):
    """The next step in a message, which `cli` writes as a command."""

    TAKE_SNAPSHOT = "Take a snapshot"
    TAKE_SIZES = "Take it again"
    RESUME = "resuming"
    ABORT = "aborting"
    END_THROTTLE = "ending run"
    EXAMINE_THROTTLES = "examine the throttles"
    SHOW_THROTTLES = "showing the throttles"
    SHOW_MOVES = "showing the moves"
    SHOW_TOPIC = "showing topic"
    SHOW_TOPIC_CONFIGS = "showing the configs of topic"
    SHOW_BROKER_CONFIGS = "showing the configs of broker"
    SHOW_GROUP_CONFIGS = "showing the configs of group"
    SHOW_CLIENT_METRICS = "showing the configs of client metrics"
    SHOW_LOGGERS = "showing the loggers of broker"
    SHOW_USER = "showing the configs of user"
    SHOW_BROKER_DEFAULTS = "showing the default configs of all brokers"
    SHARE_RECORD = "sharing the record"
    UNSHARE_RECORD = "unsharing the record"
    UNSHARE_OTHER = "unsharing the record in topic"


@dataclass(frozen=True, slots=True)
class StepFor:
    """A next step with its value, for example the id of a run."""

    step: NextStep
    what: str

    def __str__(self) -> str:
        return f"{self.step} {self.what}"


class KquotaError(Exception):
    """An error that kquota can explain: the message states the action, its object, the answer and the next step.

    Its arguments are the parts of the message.
    """

    def __str__(self) -> str:
        return "".join(map(str, self.args))


class Invalid(KquotaError):
    """The input is not valid. kquota contacted no server, or wrote nothing."""


class Refused(KquotaError):
    """A check refused the action before anything was written."""


class Conflict(KquotaError):
    """The cluster changed during the command, and merging and retrying did not help."""


class Unreachable(KquotaError):
    """A server could not be reached, or gave no valid answer before the deadline."""


class Busy(KquotaError):
    """Another kquota holds the lock that this command needs. A later attempt may succeed."""


class Unknown(KquotaError):
    """A write was sent, but its effect was not visible in time. The write may or may not be in force."""


class Unseen(Unknown):
    """A write was sent and accepted, but reads did not show it in time."""


class QuotaViolatedException(KquotaError):
    """THROTTLING_QUOTA_EXCEEDED (89): the broker rejected a mutation (KIP-599).

    `throttle_time_ms` is how long the broker asks its client to wait, in milliseconds. If the error is raised for a
    whole call, `results` has the error of each topic, or None for success.
    """

    def __init__(
        self, throttle_time_ms: int, message: str, results: Mapping[str, KquotaError | None] | None = None
    ) -> None:
        super().__init__(message)
        self.throttle_time_ms = throttle_time_ms
        self.results = dict(results or {})


class Incomplete(KquotaError):
    """kquota did some of the work, but not all of it. The error names both parts."""

    def __init__(
        self, message: str | tuple[str | KquotaError | StepFor, ...], done: Sequence[str], undone: Sequence[str]
    ) -> None:
        super().__init__(*([message] if isinstance(message, str) else message))
        self.done = tuple(done)
        self.undone = tuple(undone)
