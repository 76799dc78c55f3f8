"""`kquota quota explain`: each limit that applies to a client or an IP, with the level that sets it. With `--all`,
findings about all quotas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from kquota.cli import world
from kquota.cli.output import Answer, JsonObject, Row, spread
from kquota.cli.quota.command import ExplainOptions
from kquota.cli.quota.findings import findings
from kquota.cli.quota.sentences import reasons
from kquota.cli.table import COLUMNS, columns
from kquota.errors import Invalid, Refused
from kquota.library import cluster_of
from kquota.quota.capacity import Capacity
from kquota.quota.explain import Explanation, KeyAnswer, address, explain
from kquota.quota.finding import QuotaFinding
from kquota.quota.limits import plain
from kquota.quota.lint import lint
from kquota.quota.precedence import Client, LevelState, QuotasByEntity
from kquota.quota_keys import Model


def _key(answer: KeyAnswer, cluster: Capacity) -> JsonObject:
    """Return the JSON of one key. If `unlimited` is false, null for `cluster`, `burst` or `burst_seconds` means
    unknown. The bursts of `request_percentage` are always null, because kquota does not calculate them.
    """
    won, ignored = answer.winner, cluster.ignores(answer.key)
    return {
        "key": answer.key,
        "unit": answer.row.unit,
        "unlimited": answer.limit is None or ignored,
        "ignored": ignored,
        "limit": answer.limit,
        "level": None if won is None else won.level,
        "entity": None if won is None else won.entity,
        "broker_config": answer.static,
        "cluster": answer.cluster,
        "burst": answer.burst,
        "burst_seconds": answer.burst_seconds,
        "bucket": None if answer.per is None else {"per": answer.per, "shared_by": answer.shared},
        "levels": [
            {"level": rung.level, "entity": rung.entity, "value": rung.value, "state": rung.state}
            for rung in answer.rungs
        ],
        "exceptions": answer.exceptions,
        **({"capacity": _capacity(cluster)} if answer.row.model is Model.SHARE else {}),
    }


def _capacity(cluster: Capacity) -> Mapping[str, int | None] | None:
    return None if cluster.brokers is None else {str(one.id): one.request_capacity for one in cluster.brokers}


def _document(found: Explanation) -> JsonObject:
    client, cluster = found.client, found.cluster
    asked = {} if client is None else {"user": client.user, "client_id": client.client_id}
    return {
        "asked": asked if found.ip is None else asked | {"ip": found.ip},
        "brokers": cluster.size,
        "settings_known": cluster.reported,
        "quota_callback": cluster.callback,
        "unresolved_ips": found.unresolved,
        "keys": [_key(answer, cluster) for answer in found.answers],
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained(Answer):
    """All keys that can apply to a client, an IP or both."""

    HEADER = ("key", "level", *COLUMNS, "value", "state")
    INDENT = 2

    explanation: Explanation = spread(_document)

    def text(self) -> Iterator[str]:
        return reasons(self.explanation)

    def rows(self) -> Iterator[Row]:
        """Yield a row for each key and level. A limit from a broker config has a row without a level."""
        for one in self.explanation.answers:
            for at in one.rungs:
                value = None if at.value is None else plain(at.value)
                yield [one.key, str(at.level), *columns(at.entity), value, at.state.value]
            if one.static is not None and one.limit is not None:
                yield [one.key, None, *columns(None), plain(one.limit), LevelState.WINS.value]


def run(options: ExplainOptions) -> Answer:
    """Explain the limits of a client, an IP or both. With `--all`, check all quotas instead (exit code as for
    `findings`).

    Raises Invalid if neither `--all` nor a client nor an IP is given, and for `--all` together with a client or an IP.
    Also raises Invalid for an empty user and for an invalid IP. Raises Refused if the cluster refuses the login or the
    request for the quotas, and Unreachable if it does not answer.
    """
    user, client_id, ip = options.user, options.client_id, options.ip
    if options.all_:
        if user is not None or client_id is not None or ip is not None:
            raise Invalid("--all checks all quotas. Leave out --user, --client-id and --ip")
        unreadable: list[str] = []
        quotas, cluster = _read(world.where(options.connection), unreadable.append)
        found = [*map(QuotaFinding.unreadable, unreadable), *lint(quotas, cluster)]
        return findings(found, quotas, options.connection)
    at = world.where(options.connection)
    client = _client(user, client_id, ip)
    quotas, cluster = _read(at, world.warn)
    return Explained(explanation=explain(quotas, cluster, client=client, ip=ip))


def _client(user: str | None, client_id: str | None, ip: str | None) -> Client | None:
    if user is None and client_id is None and ip is None:
        raise Invalid(
            "no client is given. Give --user, --client-id or both, or give --ip. To check all quotas, give --all"
        )
    if user == "":
        raise Invalid("--user is empty. For a client that does not authenticate, give --user ANONYMOUS")
    if ip is not None and address(ip) is None:
        raise Invalid(
            f"--ip {ip!r} is not an IP address. Brokers compare addresses, not names. Give the client's address"
        )
    return None if user is None and client_id is None else Client(user=user, client_id=client_id)


def _read(at: world.Where, unreadable: Callable[[str], None]) -> tuple[QuotasByEntity, Capacity]:
    with world.quotas(at, unreadable) as port:
        quotas, release = port.everything(), port.release()
    try:
        with world.configs(at) as configs:
            return quotas, cluster_of(configs, release)
    except Refused as error:
        world.warn(Refused(error, ". The configs of the brokers are unknown"))
        return quotas, Capacity(brokers=None, release=release)
