"""Prepares a probe from the options, the live brokers and the quotas of the client."""

from __future__ import annotations

import math
import secrets
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from kquota.errors import Invalid, Parameter, Refused
from kquota.list_text import joined
from kquota.probe import ladder, load, scratch
from kquota.probe.ladder import Ladder
from kquota.probe.load import KEYS, MOST_BYTES, Kind, Load
from kquota.quota.explain import Explanation, KeyAnswer
from kquota.terms import CONTROLLER_MUTATION_RATE, BrokerId

_REPLICAS: Final = 3


def user(known: str | None, given: str | None) -> str:
    """Return the user of the client: `known` from its login, or `given` by the caller if only the brokers know it.

    Raises Invalid if both are None, or if both are given and differ.
    """
    if known is None:
        if given is None:
            raise Invalid(
                Parameter("user"),
                " is missing: with this login, only the brokers know the user of the client. Name the principal that "
                "they derive from its certificate, token or ticket",
            )
        return given
    if given is not None and given != known:
        raise Invalid(
            Parameter("user"),
            f" {given}: the login determines the user of a client, and the user of this login is {known}. Give the "
            f"login of {given} with ",
            Parameter("client_config"),
        )
    return known


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
    """Return the load, within its bounds, on a topic that does not exist yet.

    `rate` is the rate to produce, in bytes per second over all `brokers` (None: all live brokers). Other kinds of load
    ignore it. `seconds` is the time to measure (None: two quota windows). Raises Invalid for producing without a valid
    `rate`, for less than 1 s, and for an empty list of brokers or a repeated broker. Raises Refused for a load beyond
    the bounds, for a dead broker, and for a quota that is not a valid rate.
    """
    limit = _limit(next(one for one in explained.answers if one.key == KEYS[kind]), explained)
    where = _alive(alive, brokers)
    if kind is Kind.PRODUCE and not (rate is not None and math.isfinite(rate) and rate > 0):
        raise Invalid(f"rate {rate}: must be a finite number of bytes per second, more than 0")
    warm = load.warm(_window(kind, explained))
    lasts = load.seconds(seconds, warm)
    if kind in load.BYTES:
        lasts = load.whole_windows(lasts, warm)
    each = {
        Kind.PRODUCE: (rate or 0.0) / len(where),
        Kind.CONSUME: load.read_rate(limit, len(where)),
        Kind.REQUESTS: load.connections(limit),
        Kind.CREATE_TOPICS: load.mutation_rate(limit),
    }[kind]
    found = load.bounded(
        Load(
            kind=kind,
            topic="",
            leaders=dict(enumerate(where)),
            rate=each,
            limit=limit,
            warm=warm,
            seconds=lasts,
            most_bytes=most_bytes,
        )
    )
    return replace(found, topic=scratch.name(datetime.now(UTC), found.longest, secrets.token_hex(4)))


def climbing(
    explained: Explanation, alive: Sequence[BrokerId], *, seconds: float | None, most_partitions: int
) -> Ladder:
    """Return the ladder that finds a limit. `seconds` is the duration of each operation (None: `ladder.SECONDS`).

    Raises Invalid for less than 1 s, for `most_partitions` outside its range, and if not even one rung fits. Raises
    Refused for a client with a mutation quota, and for more than `load.MOST_SECONDS`.
    """
    bound = next(one for one in explained.answers if one.key == CONTROLLER_MUTATION_RATE)
    if bound.limit is not None and not explained.cluster.ignores(bound.key):
        raise Refused(
            f"this client has a {bound.key} of {bound.limit:g}, so a probe would only measure this quota. Remove the "
            "quota while the probe runs, or give ",
            Parameter("client_config"),
            " or ",
            Parameter("client_id"),
            " of a client without this quota",
        )
    if most_partitions not in ladder.PARTITIONS:
        least, most = ladder.PARTITIONS[0], ladder.PARTITIONS[-1]
        raise Invalid(Parameter("most_partitions"), f" {most_partitions}: must be from {least} to {most:,}")
    each = load.seconds(seconds, ladder.SECONDS)
    found = [tuple(ladder.rungs(size, each, most_partitions)) for size in ladder.SIZES]
    if not any(found):
        raise Invalid(
            Parameter("most_partitions"),
            f" {most_partitions}: too few for a single step of {each:g} s. Allow more partitions",
        )
    return Ladder(
        rungs=tuple(of_size for of_size in found if of_size),
        seconds=each,
        replication_factor=min(_REPLICAS, len(alive)),
    )


def _limit(answer: KeyAnswer, explained: Explanation) -> float | None:
    """Return the limit of the client, or None if it has none or the brokers ignore it. Raises Refused if the limit is
    not a valid rate, because brokers do not enforce it as a rate.
    """
    if answer.limit is None or explained.cluster.ignores(answer.key):
        return None
    if not (math.isfinite(answer.limit) and answer.limit > 0):
        raise Refused(
            f"{answer.key} is {answer.limit:g} for this client, which is not a valid rate. Set a valid rate, or remove "
            "the quota"
        )
    return answer.limit


def _window(kind: Kind, explained: Explanation) -> int | None:
    cluster = explained.cluster
    window = cluster.mutation_window if kind is Kind.CREATE_TOPICS else cluster.window
    return None if window is None else window.bucket_seconds


def _alive(alive: Sequence[BrokerId], wanted: Sequence[BrokerId] | None) -> tuple[BrokerId, ...]:
    if wanted is None:
        return tuple(alive)
    if not wanted:
        raise Invalid("the list of brokers is empty. Give at least one broker")
    if twice := [broker for broker, times in Counter(wanted).items() if times > 1]:
        raise Invalid(f"broker {twice[0]} is listed twice. List each broker once")
    if missing := [broker for broker in wanted if broker not in alive]:
        live = joined(sorted(alive))
        raise Refused(f"broker {missing[0]} is dead (live brokers: {live}). Start it or leave it out")
    return tuple(wanted)
