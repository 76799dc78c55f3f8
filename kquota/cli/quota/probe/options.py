"""The parser for the options of a probe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kquota.cli.list_options import broker_ids
from kquota.cli.options import option_name
from kquota.cli.quota.probe.command import ProbeOptions
from kquota.errors import Invalid
from kquota.measure import byte_rate, byte_size
from kquota.probe import ladder, load
from kquota.probe.load import Kind
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
    """The parsed options that describe the load."""

    kind: Kind | None
    """None for `--find-limit`, `--client-command` and `--clean-up`."""
    rate: float | None
    """The rate of `--produce` in bytes per second, or None without `--produce`."""
    seconds: float | None
    """The value of `--seconds`, or None if it is not given."""
    brokers: tuple[BrokerId, ...] | None
    """The brokers of `--broker-list` in ascending order, or None if it is not given."""
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
