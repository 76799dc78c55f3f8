"""Errors of a probe. Its callers name the arguments in their own way, for example as options."""

from __future__ import annotations

from kquota.errors import Incomplete, Invalid, KquotaError, Refused
from kquota.measure import human_bytes


class ArgumentError(KquotaError):
    """`problem` follows the name of the `argument`."""

    def __init__(self, argument: str, problem: str) -> None:
        super().__init__(f"{argument}{problem}")
        self.argument = argument
        self.problem = problem


class WrongArgument(ArgumentError, Invalid):
    """The argument is not valid."""


class RefusedArgument(ArgumentError, Refused):
    """The argument exceeds the bounds of a probe."""


class UnknownUser(Invalid):
    """Only the brokers know the user of the client, and the caller does not name it."""


class OtherUser(Invalid):
    """The client is not the `user` that the caller names."""

    def __init__(self, user: str, known: str) -> None:
        super().__init__(f"the login decides the user of a client, and this login is {known}")
        self.user = user


class LimitedClient(Refused):
    """The client has a mutation quota itself."""


class RejectedClient(Refused):
    """The controller rejected the client, so it has a mutation quota that was not visible before."""


class TooManyBytes(Refused):
    """The load would write `written` bytes, and `allowed` are allowed."""

    def __init__(self, written: float, allowed: int) -> None:
        super().__init__(f"this would write {human_bytes(written)}, and {human_bytes(allowed)} are allowed")
        self.written = written
        self.allowed = allowed


class TooManyMutations(Refused):
    """The load would make the controller do more than a probe may."""


class NotRemoved(Incomplete):
    """Topics of a probe that could not be deleted."""
