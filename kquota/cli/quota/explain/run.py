"""`kquota quota explain`: read all quotas and the brokers' settings, then explain one client or check all quotas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kquota.cli import world
from kquota.cli.output import Answer
from kquota.cli.quota.explain.answer import explained
from kquota.cli.quota.explain.command import ExplainOptions
from kquota.cli.quota.explain.findings import findings
from kquota.errors import Invalid, Refused
from kquota.library import cluster_of
from kquota.quota.capacity import Capacity
from kquota.quota.explain import NOTHING_KNOWN, address, explain
from kquota.quota.finding import QuotaFinding
from kquota.quota.lint import lint
from kquota.quota.precedence import Client, Quotas


def run(options: ExplainOptions) -> Answer:
    """Raises Invalid if the options name no client, or a client together with --all."""
    user, client_id, ip = options.user, options.client_id, options.ip
    if options.all_:
        if user is not None or client_id is not None or ip is not None:
            raise Invalid("--all checks all quotas: leave out --user, --client-id and --ip")
        unreadable: list[str] = []
        quotas, cluster = _read(world.where(options.connection), unreadable.append)
        found = [*map(QuotaFinding.unreadable, unreadable), *lint(quotas, cluster)]
        return findings(found, quotas, options.connection)
    at = world.where(options.connection)
    client = _client(user, client_id, ip)
    quotas, cluster = _read(at, world.warn)
    return explained(explain(quotas, cluster, client=client, ip=ip))


def _client(user: str | None, client_id: str | None, ip: str | None) -> Client | None:
    """The client of the options. Raises Invalid if they name none."""
    if user is None and client_id is None and ip is None:
        raise Invalid("no client is given. Give --user, --client-id, both, or --ip; or --all to check all quotas")
    if user == "":
        raise Invalid("--user is empty. For a client that does not authenticate, give --user ANONYMOUS")
    if ip is not None and address(ip) is None:
        raise Invalid(f"--ip {ip!r} is not an IP address; brokers compare addresses, not names")
    return None if user is None and client_id is None else Client(user=user, client_id=client_id)


def _read(at: world.Where, unreadable: Callable[[str], None]) -> tuple[Quotas, Capacity]:
    """All quotas, and the settings that determine their effect; `unreadable` receives values that cannot be read."""
    with world.quotas(at, unreadable) as port:
        quotas, release = port.everything(), port.release()
    try:
        with world.configs(at) as configs:
            return quotas, cluster_of(configs, release)
    except Refused as error:
        world.warn(f"{error}; the settings of the brokers are unknown")
        return quotas, replace(NOTHING_KNOWN, release=release)
