"""`kquota quota explain`: which quota binds a client and why, or what is wrong in the whole set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from kquota.cli import world
from kquota.cli.connection import Connection, connected
from kquota.cli.contract import DONE, say
from kquota.cli.options import Output, TableFormat
from kquota.errors import Invalid, Refused

if TYPE_CHECKING:
    from kquota.config.port import Configs
    from kquota.quota.capacity import Cluster
    from kquota.quota.entity import Entity
    from kquota.quota.limits import Limits
    from kquota.quota.precedence import Client

EPILOG = """Examples:

kquota quota explain --bootstrap-server localhost:9092 --user alice --client-id billing

kquota quota explain --bootstrap-server localhost:9092 --all

A client that did not authenticate is --user ANONYMOUS; one that sends no client-id is --client-id ''."""


@connected()
def explain(
    connection: Connection,
    user: Annotated[
        str | None, typer.Option("--user", metavar="NAME", help="The client's user. Without: one no quota names.")
    ] = None,
    client_id: Annotated[
        str | None,
        typer.Option(
            "--client-id", "--client", metavar="NAME", help="Its client-id, '' for none. Without: one no quota names."
        ),
    ] = None,
    ip: Annotated[
        str | None, typer.Option("--ip", metavar="ADDRESS", help="The address that it connects from.")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Look through all quotas for what is in vain or wrong.")] = False,
    output: TableFormat = Output.text,
) -> int:
    """Say which quota binds a client, why, what it shares with whom, and what it comes to on this cluster."""
    from kquota.cli import explanation
    from kquota.quota import explain as rules

    if all_:
        raise Invalid("--all is not there yet")
    client = _client(user, client_id, ip)
    quotas, cluster = _read(world.where(connection))
    explained = rules.explain(quotas, cluster, client=client, ip=ip)
    print(explanation.WRITE[output](explained))
    return DONE


def _client(user: str | None, client_id: str | None, ip: str | None) -> Client | None:
    """Whom the options ask for. Raises Invalid where they name nobody."""
    from kquota.quota.explain import address
    from kquota.quota.precedence import Client

    if user is None and client_id is None and ip is None:
        raise Invalid("whose quotas? Give --user, --client-id, both, or --ip; or --all for the whole set")
    if user == "":
        raise Invalid("--user is empty; a client that did not authenticate is --user ANONYMOUS")
    if ip is not None and address(ip) is None:
        raise Invalid(f"--ip {ip!r} is not an IP address; brokers compare addresses, not names")
    return None if user is None and client_id is None else Client(user=user, client_id=client_id)


def _read(at: world.Where) -> tuple[Mapping[Entity, Limits], Cluster]:
    """Every quota, and what of the cluster decides what they come to."""
    from kquota.quota.explain import NOTHING_KNOWN

    with world.quotas(at) as port:
        quotas = port.everything()
    if at.zookeeper is not None:
        return quotas, NOTHING_KNOWN
    try:
        with world.configs(at) as configs:
            return quotas, cluster_of(configs)
    except Refused as error:
        say(f"warning: {error}; capacity, windows and bursts are unknown")
        return quotas, NOTHING_KNOWN


def cluster_of(configs: Configs) -> Cluster:
    """The live brokers as quotas see them. Settings that a connection does not tell are unknown."""
    from kquota.config.resource import BROKERS
    from kquota.quota.capacity import Cluster, broker
    from kquota.terms import BrokerId

    found = configs.describe(configs.resources(BROKERS))
    brokers = [
        broker(BrokerId(int(str(resource.name))), {entry.key: entry.value for entry in entries})
        for resource, entries in found.items()
    ]
    return Cluster(brokers=tuple(sorted(brokers, key=lambda one: one.id)))
