"""The whole error tree. Adapters translate into it at the edge; `cli.main` alone catches it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum


class Parameter(str):
    """The name of a parameter, as a part of a message: `cli` writes it as an option."""

    __slots__ = ()


class NextStep(StrEnum):
    """The next step, as a part of a message: `cli` writes it as a command."""

    TAKE_SNAPSHOT = "take a snapshot"
    TAKE_SIZES = "take it again"
    RESUME = "resuming"
    ABORT = "aborting"
    END_THROTTLE = "ending run"
    EXAMINE_THROTTLES = "examine the throttles"
    SHOW_THROTTLES = "showing the throttles"
    SHOW_MOVES = "showing the moves"
    SHOW_TOPICS = "showing the topics"
    SHOW_CONFIGS = "describing it"
    SHARE_RECORD = "sharing the record"
    UNSHARE_RECORD = "unsharing the record"


class KquotaError(Exception):
    """Anything kquota can explain: the message says what was tried, on what, what was answered, and what to do next.

    Its arguments are the parts of the message.
    """

    def __str__(self) -> str:
        return "".join(map(str, self.args))


class Invalid(KquotaError):
    """The input cannot be right: nothing was contacted, or nothing was written."""


class Refused(KquotaError):
    """A guard said no, before anything was written."""


class Conflict(KquotaError):
    """The cluster changed under us, and merging and trying again did not help."""


class Unreachable(KquotaError):
    """A server did not answer within its deadline."""


class Busy(KquotaError):
    """Another kquota holds what this one needs: try again later."""


class Unknown(KquotaError):
    """A write was sent and its effect was not seen in time: it may or may not be in force."""


class Unseen(Unknown):
    """A write was sent and accepted, and reads did not show it in time."""


class QuotaViolatedException(KquotaError):
    """THROTTLING_QUOTA_EXCEEDED (89): the broker rejected a mutation (KIP-599).

    `throttle_time_ms` is how long the broker asks its client to wait, in milliseconds. Raised for a whole call, it has
    in `results` the error of each topic, None for what is done.
    """

    def __init__(
        self, throttle_time_ms: int, message: str, results: Mapping[str, KquotaError | None] | None = None
    ) -> None:
        super().__init__(message)
        self.throttle_time_ms = throttle_time_ms
        self.results = dict(results or {})


class Incomplete(KquotaError):
    """Some of the work was done and some was not; both are named, so that neither is guessed."""

    def __init__(
        self, message: str | tuple[str | KquotaError, ...], done: Sequence[str], undone: Sequence[str]
    ) -> None:
        super().__init__(*([message] if isinstance(message, str) else message))
        self.done = tuple(done)
        self.undone = tuple(undone)
