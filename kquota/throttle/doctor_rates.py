"""Findings about rates: without listed replicas, not in force, or different between brokers or sides."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from kquota.list_text import named_brokers
from kquota.settings.resource import Setting
from kquota.terms import (
    DEFAULT,
    DYNAMIC_BROKER,
    DYNAMIC_DEFAULT_BROKER,
    FOLLOWER_RATE,
    LEADER_RATE,
    REPLICATION_RATES,
    THROTTLE_LISTS,
    BrokerId,
)
from kquota.throttle.cluster_throttles import SHORT, ClusterThrottles, Finding, Remedy, written


def without_lists(throttles: ClusterThrottles) -> Iterator[Finding]:
    """Report the rates of each broker without a listed replica or a running move. Rates that a run holds are ignored.

    If a list is unknown, nothing is reported, because this list may name any broker.
    """
    if throttles.unread_topics or throttles.hidden_topics:
        return
    in_use = _in_use(throttles)
    for broker in throttles.brokers:
        settings = (Setting.of_broker(broker, key) for key in REPLICATION_RATES)
        values = {setting: foreign for setting in settings if (foreign := throttles.foreign(setting))}
        if values and broker not in in_use:
            idle = not throttles.snapshot.running
            limits = "limits" if len(values) == 1 else "limit"
            yield Finding(
                rule="rates-without-lists",
                where=f"broker {broker}",
                what=", ".join(f"{SHORT[s.key]} rate {written(value)}" for s, (value,) in values.items())
                + ", but no list names a replica of this broker",
                effect=f"{limits} nothing now, but {limits} every replica that is listed later",
                remedy=Remedy.REMOVE if idle else Remedy.REMOVE_AFTER_MOVES,
                values=values,
                fixable=idle,
            )


def removable_unread(throttles: ClusterThrottles) -> tuple[BrokerId, ...]:
    """Return the brokers whose unknown rates are not in use, because no run, list or running move names the broker.

    If a list is unknown, return no brokers.
    """
    if throttles.unread_topics or throttles.hidden_topics:
        return ()
    in_use = _in_use(throttles)
    held = {setting.name for run in throttles.runs for setting in run.held if setting.kind == "broker"}
    return tuple(b for b in throttles.unread if b not in in_use and str(b) not in held)


def _in_use(throttles: ClusterThrottles) -> set[BrokerId]:
    """Return the brokers with a listed replica or a running move."""
    moving = {broker for now in throttles.snapshot.running.values() for broker in now.replicas}
    return moving.union(broker for key in THROTTLE_LISTS for _, broker in throttles.listed(key))


def differ_between_brokers(throttles: ClusterThrottles) -> Iterator[Finding]:
    """Report a rate that differs between brokers. Rates that a run holds, and brokers without a rate, are ignored."""
    for key in REPLICATION_RATES:
        brokers: defaultdict[str, list[BrokerId]] = defaultdict(list)
        for broker in throttles.brokers:
            for value in throttles.foreign(Setting.of_broker(broker, key)):
                brokers[value].append(broker)
        if len(brokers) > 1:
            on = (
                f"{written(value)} on {named_brokers(those)}"
                for value, those in sorted(brokers.items(), key=lambda i: i[1])
            )
            yield Finding(
                rule="rates-differ-between-brokers",
                where=named_brokers([b for those in brokers.values() for b in those]),
                what=f"{SHORT[key]} rate is {', '.join(on)}",
                effect="a broker with a lower rate delays the moves that it takes part in",
                remedy=Remedy.SET_SAME_RATE_ON_BROKERS,
                keys=(key,),
                values={Setting.of_broker(b, key): (value,) for value, those in brokers.items() for b in those},
            )


def differ_between_sides(throttles: ClusterThrottles) -> Iterator[Finding]:
    """Report brokers with different leader and follower rates, or only one rate, unless a run holds either rate."""
    for broker in throttles.brokers:
        settings = {key: Setting.of_broker(broker, key) for key in REPLICATION_RATES}
        values = {key: throttles.foreign(setting) for key, setting in settings.items()}
        now = {key: throttles.values.get(setting) for key, setting in settings.items()}
        held = any(now[key] is not None and not values[key] for key in REPLICATION_RATES)
        if held or now[LEADER_RATE] == now[FOLLOWER_RATE]:
            continue
        limits = (
            f"no {SHORT[key]} rate" if (value := now[key]) is None else f"{SHORT[key]} rate {written(value)}"
            for key in REPLICATION_RATES
        )
        yield Finding(
            rule="rates-differ-between-sides",
            where=f"broker {broker}",
            what=", ".join(limits),
            effect="copies from this broker and copies to it have different limits",
            remedy=Remedy.SET_SAME_RATE_ON_SIDES,
            brokers=(broker,),
            values={settings[key]: foreign for key, foreign in values.items() if foreign},
        )


def not_in_force(throttles: ClusterThrottles) -> Iterator[Finding]:
    """Report stored rates that brokers ignore: rates in `server.properties`, and in broker defaults before Kafka 3.9.

    Rates in broker defaults are also reported if the release is unknown.
    """
    default = throttles.limits.get(DEFAULT, {})
    if stored := [key for key in SHORT if key in default and not default[key].in_force]:
        known = "" if throttles.release else ", and the release is unknown"
        rates = "the rate" if len(stored) == 1 else "the rates"
        yield Finding(
            rule="rate-not-in-force",
            where="default broker",
            what=", ".join(f"{SHORT[key]} rate {written(default[key].value)}" for key in stored),
            effect=f"brokers before Kafka 3.9 ignore {rates} (KAFKA-10190){known}",
            remedy=Remedy.SET_RATE_ON_EACH_BROKER,
            keys=tuple(stored),
        )
    for broker in throttles.brokers:
        static = {
            key: limit
            for key, limit in throttles.limits[broker].items()
            if not limit.in_force and limit.source not in (DYNAMIC_BROKER, DYNAMIC_DEFAULT_BROKER)
        }
        if static:
            yield Finding(
                rule="rate-not-in-force",
                where=f"broker {broker}",
                what=", ".join(
                    f"{SHORT[key]} rate {written(static[key].value)} in server.properties" for key in static
                ),
                effect="brokers apply only rates that were set dynamically (KAFKA-20125)",
                remedy=Remedy.SET_RATE_DYNAMICALLY,
                brokers=(broker,),
            )
