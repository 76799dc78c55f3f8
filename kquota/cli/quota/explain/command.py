"""`kquota quota explain`: which quota binds a client and why, or what is wrong in the whole set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kquota.cli import world
from kquota.cli.connection import Connection, connected
from kquota.cli.contract import DONE, NOT_YET, say
from kquota.cli.options import Output, TableFormat
from kquota.errors import Invalid, Refused

if TYPE_CHECKING:
    from kquota.quota.capacity import Cluster
    from kquota.quota.precedence import Client, Quotas

EPILOG: Final = """A client that did not authenticate is --user ANONYMOUS; one that sends no client-id is --client-id
''. Exit code 8: --all found something.

Examples:
  kquota quota explain --bootstrap-server localhost:9092 --user alice --client-id billing
  kquota quota explain --bootstrap-server localhost:9092 --all"""


@connected()
def explain(
    connection: Connection,
    user: Annotated[
        str | None,
        typer.Option("--user", metavar="NAME", help="The client's user.  [default: any that no quota names]"),
    ] = None,
    client_id: Annotated[
        str | None,
        typer.Option(
            "--client-id",
            "--client",
            metavar="NAME",
            help="Its client-id, '' for none.  [default: any that no quota names]",
        ),
    ] = None,
    ip: Annotated[
        str | None, typer.Option("--ip", metavar="ADDRESS", help="The address that it connects from.")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Look through all quotas for what is in vain or wrong.")] = False,
    output: TableFormat = Output.text,
) -> int:
    """Say which quota binds a client, why, what it shares with whom, and what it comes to on this cluster."""
    if all_:
        if user is not None or client_id is not None or ip is not None:
            raise Invalid("--all looks at all quotas: leave --user, --client-id and --ip out")
        return _lint(connection, output)
    return _explain(world.where(connection), _client(user, client_id, ip), ip, output)


def _explain(at: world.Where, client: Client | None, ip: str | None, output: Output) -> int:
    from kquota.cli.quota.explain import printed
    from kquota.quota.explain import explain

    quotas, cluster = _read(at, lambda line: say(f"warning: {line}"))
    print(printed.WRITE[output](explain(quotas, cluster, client=client, ip=ip)), end="")
    return DONE


def _lint(connection: Connection, output: Output) -> int:
    from kquota.cli.quota.explain import findings_printed
    from kquota.quota.finding import Finding
    from kquota.quota.lint import lint

    unreadable: list[str] = []
    quotas, cluster = _read(world.where(connection), unreadable.append)
    found = [Finding.unreadable(line) for line in unreadable]
    found += lint(quotas, cluster)
    print(findings_printed.WRITE[output](found, quotas, connection), end="")
    return NOT_YET if found else DONE


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


def _read(at: world.Where, unreadable: Callable[[str], None]) -> tuple[Quotas, Cluster]:
    """Every quota, and what of the cluster decides what they come to; `unreadable` hears what nobody can read."""
    from kquota.library import cluster_of
    from kquota.quota.explain import NOTHING_KNOWN

    with world.quotas(at, unreadable) as port:
        quotas, release = port.everything(), port.release()
    try:
        with world.configs(at) as configs:
            return quotas, cluster_of(configs, release)
    except Refused as error:
        say(f"warning: {error}; what the brokers are set to is unknown")
        return quotas, replace(NOTHING_KNOWN, release=release)
