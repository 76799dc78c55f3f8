"""The errors of a probe, with the options of the command line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from kquota.cli.suggestion import suggested
from kquota.errors import Invalid, KquotaError, Refused
from kquota.measure import human_bytes
from kquota.probe.refusals import (
    ArgumentError,
    LimitedClient,
    NotRemoved,
    OtherUser,
    RejectedClient,
    TooManyBytes,
    TooManyMutations,
    UnknownUser,
)

_INSTEAD: Final[Mapping[type[KquotaError], str]] = {
    LimitedClient: ", or give --client-config or --client-id of a client without this quota",
    RejectedClient: ", or give --client-config with a login without this quota",
    TooManyMutations: ". Give fewer --seconds",
}


@contextmanager
def named_by_options() -> Iterator[None]:
    """Errors name the options of the command."""
    try:
        yield
    except KquotaError as error:
        said = worded(error)
        if said is error:
            raise
        raise said from error


def worded(error: KquotaError) -> KquotaError:
    """The same error with options; an error that names no argument stays unchanged."""
    match error:
        case ArgumentError():
            name = "broker-list" if error.argument == "brokers" else error.argument.replace("_", "-")
            kind = Invalid if isinstance(error, Invalid) else Refused
            return kind(f"--{name}{error.problem}")
        case UnknownUser():
            return Invalid(f"--user is missing: {error}")
        case OtherUser():
            return Invalid(f"--user {error.user}: {error}. Give the login of {error.user} with --client-config")
        case TooManyBytes():
            return Refused(
                f"this would write {human_bytes(error.written)}, and --most-bytes allows {human_bytes(error.allowed)}."
                " Give a lower rate, fewer --seconds, fewer brokers (--broker-list) or more --most-bytes"
            )
        case NotRemoved():
            return NotRemoved(f"{error}. Run {suggested('quota probe --clean-up')} later", error.done, error.undone)
        case LimitedClient() | RejectedClient() | TooManyMutations():
            return Refused(f"{error}{_INSTEAD[type(error)]}")
        case _:
            return error
