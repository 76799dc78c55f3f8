"""Findings about throttled replica lists: leftover entries, lists without a rate, lists that are set on a broker, and
lists that are malformed or too long.

The rules about entries, including `*`, ignore entries that a recorded run holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from kquota.list_text import few, named_brokers
from kquota.settings.resource import Setting
from kquota.settings.throttled_lists import parts, replica
from kquota.terms import DEFAULT, EVERY_REPLICA, FOLLOWER_REPLICAS, LONGEST_VALUE
from kquota.throttle.cluster_throttles import SHORT, SIDES, ClusterThrottles, Finding, Remedy

_NEARLY: Final = 0.9
_SHOWN: Final = 6
_MISREAD: Final = "before Kafka 3.4, an empty or invalid entry disables the throttle, and a broker may fail to restart"


def without_rates(throttles: ClusterThrottles) -> Iterator[Finding]:
    """Report lists with replicas of brokers that have no rate in force for the same side (leader or follower).

    Brokers with unknown rates are ignored.
    """
    moving = throttles.moving_topics
    for setting in throttles.lists:
        key = SIDES[setting.key]
        unlimited = {
            broker: entry
            for entry in throttles.foreign(setting)
            for name, broker in throttles.replicas(setting, entry)
            if broker in throttles.limits and throttles.rate(broker, key) is None
        }
        if unlimited:
            moves = setting.name in moving
            yield Finding(
                rule="lists-without-rates",
                where=str(setting),
                what=f"lists replicas of {named_brokers(unlimited)}, where no {SHORT[key]} rate is in force",
                effect="the topic's move is not throttled there" if moves else "limits nothing there",
                remedy=Remedy.SET_RATE if moves else Remedy.REMOVE_OR_SET_RATE,
                brokers=tuple(sorted(unlimited)),
                values={setting: tuple(dict.fromkeys(unlimited.values()))},
            )


def stale(throttles: ClusterThrottles) -> Iterator[Finding]:
    """Report entries whose partition does not exist, or whose broker has no replica of the partition."""
    yield from _of_entries(
        throttles,
        _is_stale,
        rule="stale-entry",
        what="no such replica",
        effect="takes up space, and throttles the replica if it is created later",
        many=("no such replicas", "take up space, and throttle the replicas if they are created later"),
    )


def caught_up(throttles: ClusterThrottles) -> Iterator[Finding]:
    """Report entries of follower lists that name an in-sync follower of a partition that is not moving."""
    yield from _of_entries(
        throttles,
        _is_caught_up,
        rule="caught-up-replica",
        what="in sync, and not part of a move",
        effect="throttles the replica when it next falls behind",
        many=("in sync, and not part of a move", "throttle the replicas when they next fall behind"),
    )


def without_move(throttles: ClusterThrottles) -> Iterator[Finding]:
    """Report entries of existing replicas whose partition is not moving, except `*` and the entries that `caught_up`
    reports.
    """
    yield from _of_entries(
        throttles,
        _is_idle,
        rule="list-without-move",
        what="not part of a move, and held by no recorded run",
        effect="in-sync replicas use up the rate, and replicas that fall behind catch up slowly",
    )


def empty(throttles: ClusterThrottles) -> Iterator[Finding]:
    """Report lists that are set but have no entries, for example after a kill between the two writes that unset a list.
    Lists that a run holds are ignored.
    """
    for setting, text in throttles.lists.items():
        if not parts(text) and not any(setting in run.held for run in throttles.runs):
            yield Finding(
                rule="list-empty",
                where=str(setting),
                what="is set, but has no entries",
                effect="limits nothing",
                remedy=Remedy.REMOVE,
                values={setting: (text,)},
                fixable=True,
            )


def wildcard(throttles: ClusterThrottles) -> Iterator[Finding]:
    """Report `*` on topics without a moving partition."""
    moving = throttles.moving_topics
    for setting in throttles.lists:
        if setting.name not in moving and EVERY_REPLICA in throttles.foreign(setting):
            yield Finding(
                rule="wildcard-without-move",
                where=str(setting),
                what="* lists every replica of the topic, but none of its partitions is moving",
                effect="every replica that falls behind catches up slowly",
                remedy=Remedy.REMOVE,
                values={setting: (EVERY_REPLICA,)},
                fixable=True,
            )


def on_brokers(throttles: ClusterThrottles) -> Iterator[Finding]:
    """Report lists that are set on a broker, as in the text of KIP-73, or on the default of all brokers. Brokers read
    lists only from topic configs.
    """
    for where, keys in throttles.misplaced.items():
        lists = "the list" if len(keys) == 1 else "the lists"
        yield Finding(
            rule="list-on-broker",
            where="default broker" if where is DEFAULT else f"broker {where}",
            what=f"has {', '.join(keys)}",
            effect=f"brokers ignore {lists}, because they read throttled replica lists only from topic configs",
            remedy=Remedy.REMOVE_FROM_BROKER,
            keys=tuple(keys),
            brokers=(where,),
        )


def malformed(throttles: ClusterThrottles) -> Iterator[Finding]:
    """Report lists with empty or repeated entries, entries that are not `partition:broker`, or entries besides `*`."""
    for setting, text in throttles.lists.items():
        found = parts(text)
        empty = text.count(",") + 1 - len(found) if text else 0
        wrong = [
            words
            for words, is_so in {
                "begins with a comma": text.startswith(","),
                "has an empty entry": empty > text.startswith(","),
                "has an entry that is not partition:broker": any(
                    replica(setting, entry) is None for entry in found if entry != EVERY_REPLICA
                ),
                "has other entries besides *": EVERY_REPLICA in found and len(found) > 1,
            }.items()
            if is_so
        ]
        twice = ["lists an entry twice"] if len(set(found)) < len(found) else []
        if wrong or twice:
            yield Finding(
                rule="list-malformed",
                where=str(setting),
                what=" and ".join(wrong + twice),
                effect=_MISREAD if wrong else "the second entry takes up space, and has no other effect",
                remedy=Remedy.CORRECT_LIST,
                keys=(setting.key,),
                topic=setting.name,
            )


def too_long(throttles: ClusterThrottles) -> Iterator[Finding]:
    """Report lists that are longer than a broker allows, or longer than 90% of this limit."""
    for setting, text in throttles.lists.items():
        size = len(text.encode())
        if size > LONGEST_VALUE * _NEARLY:
            over = size > LONGEST_VALUE
            yield Finding(
                rule="list-too-long" if over else "list-nearly-full",
                where=str(setting),
                what=f"is {size:,} bytes long (longest allowed: {LONGEST_VALUE:,})",
                effect="brokers cannot describe the topic" if over else "the entries of the next move may not fit",
                remedy=Remedy.SHORTEN_LIST,
                topic=setting.name,
            )


def _is_stale(throttles: ClusterThrottles, setting: Setting, entry: str) -> bool:
    return replica(setting, entry) is not None and not throttles.replicas(setting, entry)


def _is_caught_up(throttles: ClusterThrottles, setting: Setting, entry: str) -> bool:
    if setting.key != FOLLOWER_REPLICAS or not _is_at_rest(throttles, setting, entry):
        return False
    ((name, broker),) = throttles.replicas(setting, entry)
    now = throttles.snapshot.partitions[name]
    return broker in now.isr and broker != now.leader


def _is_idle(throttles: ClusterThrottles, setting: Setting, entry: str) -> bool:
    return _is_at_rest(throttles, setting, entry) and not _is_caught_up(throttles, setting, entry)


def _is_at_rest(throttles: ClusterThrottles, setting: Setting, entry: str) -> bool:
    """Return whether the entry names one existing replica of a partition that is not moving."""
    found = () if entry == EVERY_REPLICA else throttles.replicas(setting, entry)
    running = throttles.snapshot.running
    return bool(found) and not any(name in running or throttles.snapshot.partitions[name].moving for name, _ in found)


def _of_entries(
    throttles: ClusterThrottles,
    wrong: Callable[[ClusterThrottles, Setting, str], bool],
    *,
    rule: str,
    what: str,
    effect: str,
    many: tuple[str, str] | None = None,
) -> Iterator[Finding]:
    """Yield one finding for each list with wrong entries. `many` replaces `what` and `effect` for several entries."""
    for setting in throttles.lists:
        if found := tuple(entry for entry in throttles.foreign(setting) if wrong(throttles, setting, entry)):
            problem, result = (what, effect) if many is None or len(found) == 1 else many
            yield Finding(
                rule=rule,
                where=str(setting),
                what=f"{few(found, _SHOWN, ',')}: {problem}",
                effect=result,
                remedy=Remedy.REMOVE,
                values={setting: found},
                fixable=True,
            )
