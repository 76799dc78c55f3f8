"""The load of a probe, made of what is asked for, what the brokers are and what binds the client."""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime

from kquota.errors import Invalid, Refused
from kquota.probe import load, scratch
from kquota.probe.load import KEYS, MOST_BYTES, Kind, Load
from kquota.quota.explain import Answer, Explanation
from kquota.terms import BrokerId


def prepared(
    kind: Kind,
    explained: Explanation,
    alive: Sequence[BrokerId],
    *,
    rate: float | None = None,
    seconds: float | None = None,
    brokers: Sequence[BrokerId] | None = None,
    most_bytes: int = MOST_BYTES,
) -> Load:
    """The load, bounded, on a topic that is yet to be. `rate` is bytes per second in all, for what is produced.

    Raises Invalid without it, and Refused for what a probe does not do, and where the quota is no rate.
    """
    limit = _limit(next(one for one in explained.answers if one.key == KEYS[kind]), explained)
    where = _alive(alive, brokers)
    if kind is Kind.PRODUCE and not (rate is not None and math.isfinite(rate) and rate > 0):
        raise Invalid(f"a rate of {rate}: say how many bytes per second to produce")
    warm = load.warm(_window(kind, explained))
    lasts = load.seconds(seconds, warm)
    each = {
        Kind.PRODUCE: (rate or 0.0) / len(where),
        Kind.CONSUME: load.pushing(limit, len(where)),
        Kind.REQUESTS: load.connections(limit),
        Kind.CREATE_TOPICS: load.mutating(limit),
    }[kind]
    return load.bounded(
        Load(
            kind=kind,
            topic=scratch.name(datetime.now(UTC), warm + lasts, secrets.token_hex(4)),
            leaders=dict(enumerate(where)),
            rate=each,
            limit=limit,
            warm=warm,
            seconds=lasts,
            most_bytes=most_bytes,
        )
    )


def _limit(answer: Answer, explained: Explanation) -> float | None:
    """The quota, None without one. Raises Refused for what is no rate: nobody is held to it as to one."""
    if answer.limit is None or explained.cluster.ignores(answer.key):
        return None
    if not (math.isfinite(answer.limit) and answer.limit > 0):
        raise Refused(f"{answer.key} is {answer.limit:g} for this client, which is no rate; set one, or remove it")
    return answer.limit


def _window(kind: Kind, explained: Explanation) -> int | None:
    cluster = explained.cluster
    window = cluster.mutation_window if kind is Kind.CREATE_TOPICS else cluster.window
    return None if window is None else window.bucket_seconds


def _alive(alive: Sequence[BrokerId], wanted: Sequence[BrokerId] | None) -> tuple[BrokerId, ...]:
    if wanted is None:
        return tuple(alive)
    if missing := [broker for broker in wanted if broker not in alive]:
        raise Refused(f"--broker-list: broker {missing[0]} is not alive")
    return tuple(wanted)
