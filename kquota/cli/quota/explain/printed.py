"""What `quota explain` prints for one client: JSON and the table are contracts with scripts, text is for people."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Final

from kquota.cli import tsv
from kquota.cli.fields import COLUMNS, columns, named, number
from kquota.cli.options import Output
from kquota.cli.quota.explain.reasons import text
from kquota.quota.capacity import Cluster
from kquota.quota.explain import UNITS, Answer, Explanation
from kquota.quota.limits import plain
from kquota.quota.precedence import State
from kquota.terms import REQUEST_PERCENTAGE

VERSION: Final = 1


def document(explained: Explanation) -> str:
    """The contract with scripts, version 1. A null figure is unlimited where `unlimited` says so, else unknown."""
    client, cluster = explained.client, explained.cluster
    asked: dict[str, object] = {}
    if client is not None:
        asked |= {"user": client.user, "client_id": client.client_id}
    if explained.ip is not None:
        asked["ip"] = explained.ip
    return (
        json.dumps(
            {
                "version": VERSION,
                "asked": asked,
                "brokers": cluster.size,
                "settings_known": cluster.told,
                "quota_callback": cluster.callback,
                "unresolved_ips": list(explained.unresolved),
                "keys": [_key(answer, cluster) for answer in explained.answers],
            },
            ensure_ascii=False,
            indent=2,
        )
        + "\n"
    )


def _key(answer: Answer, cluster: Cluster) -> dict[str, object]:
    won = answer.winner
    found: dict[str, object] = {
        "key": answer.key,
        "unit": UNITS[answer.key],
        "unlimited": answer.limit is None or cluster.ignores(answer.key),
        "ignored": cluster.ignores(answer.key),
        "limit": number(answer.limit),
        "level": None if won is None else won.level,
        "entity": None if won is None or won.entity is None else named(won.entity),
        "broker_config": answer.static,
        "cluster": number(answer.cluster),
        "burst": number(answer.burst),
        "burst_seconds": answer.burst_seconds,
        "bucket": None if answer.per is None else {"per": answer.per.value, "shared_by": answer.shared},
        "levels": [
            {
                "level": rung.level,
                "entity": None if rung.entity is None else named(rung.entity),
                "value": number(rung.value),
                "state": rung.state.value,
            }
            for rung in answer.rungs
        ],
        "exceptions": [named(entity) for entity in answer.exceptions],
    }
    if answer.key == REQUEST_PERCENTAGE:
        found["capacity"] = (
            None if cluster.brokers is None else {str(b.id): b.request_capacity for b in cluster.brokers}
        )
    return found


def table(explained: Explanation) -> str:
    """A row for each key and level; what no level sets and a broker config does has a row without a level."""
    rows: list[list[str | None]] = []
    for answer in explained.answers:
        for rung in answer.rungs:
            value = None if rung.value is None else plain(rung.value)
            rows.append([answer.key, str(rung.level), *columns(rung.entity), value, rung.state.value])
        if answer.static is not None and answer.limit is not None:
            rows.append([answer.key, None, *columns(None), plain(answer.limit), State.WINS.value])
    return tsv.table(("key", "level", *COLUMNS, "value", "state"), rows)


WRITE: Final[Mapping[Output, Callable[[Explanation], str]]] = {
    Output.text: text,
    Output.json: document,
    Output.tsv: table,
}
