"""The throughput of throttled replicas, and warnings about unknown rates and about replicas that cannot catch up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kquota.cli.contract import say, without_retry, worded
from kquota.cli.suggestion import suggested
from kquota.errors import KquotaError, Refused, Unreachable
from kquota.list_text import few, named_brokers
from kquota.measure import counted, human_rate
from kquota.terms import BrokerId
from kquota.throttle import actions
from kquota.throttle.cluster_throttles import ClusterThrottles
from kquota.throttle.port import Ports
from kquota.throttle.throughput import MeasuredFlow, starved

_NAMED: Final = 3
"""The maximum number of topics that a warning names. JSON has all of them."""


def flowing(ports: Ports, throttles: ClusterThrottles, seconds: float) -> MeasuredFlow | None:
    """Return the throughput of replicas in throttled replica lists, or None if there is no list or `seconds` is 0.

    The measurement takes `seconds`. Over ZooKeeper, or if a broker does not answer or answers with an error, print the
    reason on stderr and return None.
    """
    if not throttles.lists or not seconds:
        return None
    if ports.log_dirs is None:
        say("note: throughput is unknown, because ZooKeeper does not store offsets. Use --bootstrap-server")
        return None
    say(f"measuring throughput for {seconds:g} s ...")
    try:
        return actions.sample(ports.log_dirs, throttles, seconds, ports.clock)
    except (Refused, Unreachable) as error:
        say(f"warning: throughput is unknown: {worded(error)}")
        return None


def unread(throttles: ClusterThrottles, cleared: Sequence[BrokerId] = ()) -> Iterator[str]:
    """Yield a warning for each of these problems: brokers with unknown throttle rates (except for brokers in
    `cleared`), an unknown set of dead brokers, and topics with unknown throttled replica lists. Unknown does not mean
    unset.
    """
    if brokers := [broker for broker in throttles.unread if broker not in cleared]:
        its, it_is, them = ("its", "it is", "it") if len(brokers) == 1 else ("their", "they are", "them")
        replicas = {broker for now in throttles.snapshot.partitions.values() for broker in now.replicas}
        away = "" if replicas.isdisjoint(brokers) else f"move {its} replicas to other brokers and then "
        gone = f", or {away}unregister {them} with kafka-cluster.sh if {it_is} gone for good"
        listed = not isinstance(throttles.fenced, KquotaError) and throttles.fenced.issuperset(brokers)
        yield (
            f"warning: {named_brokers(brokers)} did not answer, so {its} throttle rates are unknown. "
            f"Check that {it_is} running{gone if listed else ''}"
        )
    if throttles.why_unlisted is not None:
        yield f"warning: {unlisted(throttles.why_unlisted)}"
    if topics := throttles.unread_topics:
        name, its = ("topic", "its") if len(topics) == 1 else ("topics", "their")
        yield (
            f"warning: {name} {few(topics, _NAMED)}: the brokers cannot describe {its} configs, so {its} throttled "
            f"replica lists are unknown. Show the error with {suggested(f'configs --describe --topic {topics[0]}')}"
        )


def unlisted(why: KquotaError) -> str:
    """Return the text of a warning that the dead brokers are unknown, with the reason and the next step."""
    return (
        f"it is unknown whether dead brokers without replicas have throttle rates: {without_retry(why)}. "
        "Run the same command again"
    )


def hidden_lists(topics: Sequence[str]) -> Iterator[str]:
    """Yield a warning about the topics that Kafka hides from this user, because their lists are unknown."""
    if topics:
        its = "its" if len(topics) == 1 else "their"
        yield (
            f"warning: Kafka hides {counted(len(topics), 'topic')} from this user ({few(topics, _NAMED)}), so "
            f"{its} throttled replica lists are unknown. This user needs Describe and DescribeConfigs on every topic"
        )


def starving(throttles: ClusterThrottles, flow: MeasuredFlow | None) -> Iterator[str]:
    """Yield a warning for each broker whose in-sync followers use over half of its leader rate, or leave too little for
    the other followers (KIP-73: IN < T). Without a measurement (`flow` is None), yield nothing.
    """
    for one in () if flow is None else starved(throttles, flow):
        yield (
            f"warning: broker {one.broker}: in-sync followers use {human_rate(one.keep_up)} of its leader rate of "
            f"{human_rate(one.rate)}. Kafka counts their fetches, but does not delay them (KAFKA-4313). "
            + (
                f"Out-of-sync followers need {human_rate(one.behind)} for new data alone, so they can never catch up. "
                if one.hopeless and one.behind
                else f"{'Nothing' if one.hopeless else 'Little'} is left for replicas that fall behind. "
            )
            + "Raise the leader rate, or remove from leader.replication.throttled.replicas the replicas that need not "
            "catch up"
        )
