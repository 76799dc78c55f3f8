"""The options of `quota probe`, and what may stand together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from kquota.cli.listed import broker_ids
from kquota.cli.options import Output, OutputFormat
from kquota.errors import Invalid
from kquota.measure import byte_rate, byte_size, exact_size
from kquota.probe import ladder, load
from kquota.probe.load import Kind
from kquota.terms import SAMPLE_MS, SAMPLES, BrokerId

HEADINGS: Final = {
    "--produce": "The load (exactly one)",
    "--user": "The client",
    "--seconds": "How long, how much",
    "--most-partitions": "For --find-limit",
    "--dry-run": "Trial and output",
}
"""The first option of each part of the help, and its heading."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The options as the command line gave them; what is None or False was not given."""

    produce: Annotated[
        str | None, typer.Option("--produce", metavar="RATE", help="Write so much, over all brokers together: 20MB/s.")
    ] = None
    consume: Annotated[bool, typer.Option("--consume", help="Read, faster than the quota lets it.")] = False
    requests: Annotated[bool, typer.Option("--requests", help="Send small requests, one after the other.")] = False
    create_topics: Annotated[
        bool, typer.Option("--create-topics", help="Create and delete topics, faster than the quota lets it.")
    ] = False
    find_limit: Annotated[
        bool,
        typer.Option(
            "--find-limit", help="Find what the controller can take, and suggest a controller_mutation_rate (KIP-599)."
        ),
    ] = False
    clean_up: Annotated[bool, typer.Option("--clean-up", help="Only remove what killed probes left.")] = False
    user: Annotated[
        str | None,
        typer.Option(
            "--user",
            metavar="NAME",
            help="Who the client is. No client can choose that: it is whoever its login says, ANONYMOUS without one, "
            "and another is refused. To be given where only brokers know: certificates, tokens, tickets.",
        ),
    ] = None
    client_id: Annotated[
        str | None,
        typer.Option(
            "--client-id",
            "--client",
            metavar="NAME",
            help="Its client-id. [default: client.id of its login's file, else kquota]",
        ),
    ] = None
    client_config: Annotated[
        Path | None,
        typer.Option(
            "--client-config",
            metavar="FILE",
            help="Java properties with the client's login, where that is not --command-config's.",
        ),
    ] = None
    seconds: Annotated[
        float | None,
        typer.Option(
            "--seconds",
            metavar="N",
            help="How long to measure, once two of the quota's windows have passed; a byte rate over whole windows "
            f"({SAMPLES * SAMPLE_MS // 1_000} s as shipped). [default: two windows; "
            f"with --find-limit 3 for each step; at most {load.MOST_SECONDS:g}]",
        ),
    ] = None
    broker_list: Annotated[
        str | None, typer.Option("--broker-list", metavar="ID,…", help="Load these brokers only.  [default: all]")
    ] = None
    most_bytes: Annotated[
        str, typer.Option("--most-bytes", metavar="SIZE", help="Write no more than this, over all brokers together.")
    ] = exact_size(load.MOST_BYTES)
    most_partitions: Annotated[
        int,
        typer.Option(
            "--most-partitions",
            metavar="N",
            min=ladder.PARTITIONS[0],
            max=ladder.PARTITIONS[-1],
            help="No more than these exist at any one time.",
        ),
    ] = ladder.MOST_PARTITIONS
    tenants: Annotated[
        int, typer.Option("--tenants", metavar="N", min=1, help="Divide the rate that is found by so many.")
    ] = 1
    overcommit: Annotated[
        float,
        typer.Option(
            "--overcommit", metavar="F", min=1, help="And multiply it by this: tenants never all work at the same time."
        ),
    ] = 1.0
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and touch nothing.")] = False
    output: OutputFormat = Output.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The same, understood. `kind` None: --find-limit or --clean-up; the rest None: as it takes, or all brokers."""

    kind: Kind | None
    rate: float | None
    seconds: float | None
    brokers: tuple[BrokerId, ...] | None
    most_bytes: int


_LOADS: Final[Mapping[str, Kind | None]] = {
    "produce": Kind.PRODUCE,
    "consume": Kind.CONSUME,
    "requests": Kind.REQUESTS,
    "create_topics": Kind.CREATE_TOPICS,
    "find_limit": None,
    "clean_up": None,
}


def asked(given: Given) -> Asked:
    """What is asked for. Raises Invalid for no load or more than one, and for options that it does not take."""
    named = [name for name in _LOADS if getattr(given, name) not in (None, False)]
    if len(named) != 1:
        said = f"not {' and '.join(map(_option, named))}" if named else "none is given"
        raise Invalid(
            "which load? Exactly one of --produce RATE, --consume, --requests, --create-topics, --find-limit or"
            f" --clean-up; {said}"
        )
    if not given.find_limit and (given.tenants != 1 or given.overcommit != 1):
        raise Invalid("--tenants and --overcommit go with --find-limit")
    _must_have_effect(given, named[0])
    ladder.must_divide(given.tenants, given.overcommit)
    if given.user == "":
        raise Invalid("--user is empty; a client that did not authenticate is --user ANONYMOUS")
    if given.client_id == "":
        raise Invalid("--client-id is empty: this client (librdkafka) always sends one")
    return Asked(
        kind=_LOADS[named[0]],
        rate=None if given.produce is None else byte_rate(given.produce, "--produce"),
        seconds=None if given.seconds is None else load.seconds(given.seconds, given.seconds),
        brokers=None if given.broker_list is None else tuple(sorted(broker_ids([given.broker_list], "--broker-list"))),
        most_bytes=byte_size(given.most_bytes, "--most-bytes"),
    )


def _must_have_effect(given: Given, load: str) -> None:
    """Raises Invalid for an option that this load passes over."""
    every, unsaid = set(_LOADS), Given()
    takes = {
        "broker_list": every - {"find_limit", "clean_up"},
        "most_bytes": {"produce", "consume"},
        "most_partitions": {"find_limit"},
        **dict.fromkeys(("seconds", "user", "client_id"), every - {"clean_up"}),
    }
    for name, loads in takes.items():
        if load not in loads and getattr(given, name) != getattr(unsaid, name):
            raise Invalid(f"{_option(name)} has no effect with {_option(load)}")


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
