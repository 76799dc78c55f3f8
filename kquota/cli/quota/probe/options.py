"""The parser for the options of a probe, and the rewording of errors so that they name these options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from kquota.cli.list_options import broker_ids
from kquota.cli.options import option_name
from kquota.cli.quota.probe.command import ProbeOptions
from kquota.cli.suggestion import suggested
from kquota.errors import Invalid, KquotaError, Refused
from kquota.measure import byte_rate, byte_size, size_in_full
from kquota.probe import ladder, load
from kquota.probe.load import (
    ArgumentError,
    Kind,
    LimitedClient,
    NotRemoved,
    OtherUser,
    RejectedClient,
    TooManyBytes,
    TooManyMutations,
    UnknownUser,
)
from kquota.terms import BrokerId

_LOADS: Final[Mapping[str, Kind | None]] = {
    "produce": Kind.PRODUCE,
    "consume": Kind.CONSUME,
    "requests": Kind.REQUESTS,
    "create_topics": Kind.CREATE_TOPICS,
    "find_limit": None,
    "client_command": None,
    "clean_up": None,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedLoad:
    """The parsed options. `kind` is None for --find-limit, --client-command and --clean-up. `rate`, `seconds` and
    `brokers` are None if their option is not given.

    `rate` is the rate of --produce, in bytes per second.
    """

    kind: Kind | None
    rate: float | None
    seconds: float | None
    brokers: tuple[BrokerId, ...] | None
    most_bytes: int


def asked(given: ProbeOptions) -> AskedLoad:
    """Parse the requested load.

    Raises Invalid unless exactly one load is given, and for an option that is not valid or has no effect. Raises
    Refused for more seconds than a probe may take.
    """
    named = [name for name in _LOADS if getattr(given, name) not in (None, False)]
    if len(named) != 1:
        raise Invalid(
            "give exactly one of --produce RATE, --consume, --requests, --create-topics, --find-limit, "
            "--client-command COMMAND or --clean-up"
            f" (given: {' and '.join(map(option_name, named)) or 'none'})"
        )
    if not given.find_limit and (given.tenants != 1 or given.overcommit != 1):
        raise Invalid("--tenants and --overcommit have an effect only with --find-limit. Leave them out")
    _must_have_effect(given, named[0])
    ladder.must_divide(given.tenants, given.overcommit)
    if given.user == "":
        raise Invalid("--user is empty. For a client that does not authenticate, give --user ANONYMOUS")
    if given.client_id == "":
        raise Invalid("--client-id is empty, but this client (librdkafka) always sends a client-id. Give a name")
    return AskedLoad(
        kind=_LOADS[named[0]],
        rate=None if given.produce is None else byte_rate(given.produce, "--produce"),
        seconds=None if given.seconds is None else load.seconds(given.seconds, given.seconds),
        brokers=None if given.broker_list is None else tuple(sorted(broker_ids([given.broker_list], "--broker-list"))),
        most_bytes=byte_size(given.most_bytes, "--most-bytes"),
    )


def _must_have_effect(given: ProbeOptions, load: str) -> None:
    """Raise Invalid for an option that has no effect on this load."""
    every, unsaid = set(_LOADS), ProbeOptions(connection=given.connection)
    takes = {
        "broker_list": every - {"find_limit", "client_command", "clean_up"},
        "most_bytes": {"produce", "consume"},
        "most_partitions": {"find_limit"},
        "seconds": every - {"clean_up"},
        "client_config": every - {"client_command"},
        **dict.fromkeys(("user", "client_id"), every - {"client_command", "clean_up"}),
    }
    for name, loads in takes.items():
        if load not in loads and getattr(given, name) != getattr(unsaid, name):
            raise Invalid(f"{option_name(name)} has no effect with {option_name(load)}. Leave out {option_name(name)}")


_INSTEAD: Final[Mapping[type[KquotaError], str]] = {
    LimitedClient: ", or give --client-config or --client-id of a client without this quota",
    RejectedClient: ", or give --client-config with a login without this quota",
    TooManyMutations: ". Give fewer --seconds, or --client-id of a client with a lower quota",
}


@contextmanager
def named_by_options() -> Iterator[None]:
    """Reword errors that are raised in this block, so that they name the command's options."""
    try:
        yield
    except KquotaError as error:
        printable = worded(error)
        if printable is error:
            raise
        raise printable from error


def worded(error: KquotaError) -> KquotaError:
    """Return an error of a probe with the option to change or the command to run in its message. Return any other error
    unchanged.
    """
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
                f"the probe would write {size_in_full(error.written)}, and --most-bytes allows "
                f"{size_in_full(error.allowed)}. Give a lower rate, fewer --seconds or brokers (--broker-list), or a "
                "higher --most-bytes"
            )
        case NotRemoved():
            return NotRemoved(f"{error}. Run {suggested('quota probe --clean-up')} later", error.done, error.undone)
        case LimitedClient() | RejectedClient() | TooManyMutations():
            return Refused(f"{error}{_INSTEAD[type(error)]}")
        case _:
            return error
