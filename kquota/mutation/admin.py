"""The three calls of KIP-599 for programs: create topics, add partitions, and delete topics. `kquota.connect` provides
the cluster.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias

from kquota.errors import Invalid, KquotaError, QuotaViolatedException, Unreachable
from kquota.mutation.actions import Fate, OnWait, TopicOutcome, carry_out, unheard, work
from kquota.mutation.pace import MutationPace
from kquota.mutation.port import MutationCluster
from kquota.mutation.topic import Creation, Deletion, Growth, Mutation

Results: TypeAlias = Mapping[str, KquotaError | None]
"""The error of each topic, in the order of the call. It is None if the topic succeeded, and Refused for a broker's
error. It is Unreachable if the result is unknown or the topic was not sent. It is QuotaViolatedException if the quota
still rejects the topic.
"""


def create_topics(
    cluster: MutationCluster,
    creations: Iterable[Creation],
    *,
    timeout: float | None = None,
    retry_quota_violated: bool = True,
    validate_only: bool = False,
    on_wait: OnWait = unheard,
) -> Results:
    """Create topics. Topics that the controller mutation quota rejects are sent again for up to `timeout` seconds.

    `timeout` defaults to `default.api.timeout.ms` of the login, or else 60 s. With `validate_only`, the controller only
    checks the request, and Kafka 4 counts the check against the quota.

    Raises QuotaViolatedException, with the time to wait and the `results` of all topics, if the quota does not allow
    all topics within `timeout`. Without `retry_quota_violated`, the first rejection raises it. Any other error of a
    topic is in the results. Raises Refused for a topic that is listed twice, Invalid for a `timeout` that is not above
    0, and Unreachable without an active controller. Source: KIP-599.

        with kquota.connect("localhost:9092") as cluster:
            results = create_topics(cluster, [Creation(topic="orders", partitions=12, replication_factor=3)])
    """
    found = with_partitions(cluster, creations)
    return _results(cluster, found, timeout, on_wait, retry=retry_quota_violated, validate_only=validate_only)


def create_partitions(
    cluster: MutationCluster,
    totals: Mapping[str, int],
    *,
    timeout: float | None = None,
    retry_quota_violated: bool = True,
    validate_only: bool = False,
    on_wait: OnWait = unheard,
) -> Results:
    """Add partitions until each topic has as many as `totals` says.

        with kquota.connect("localhost:9092") as cluster:
            results = create_partitions(cluster, {"orders": 24}, timeout=600)

    The other arguments, the results and the errors are those of `create_topics`.
    """
    now = _partitions(cluster, totals)
    growths = [Growth(topic=topic, partitions=total, now=now.get(topic, 0)) for topic, total in totals.items()]
    return _results(cluster, growths, timeout, on_wait, retry=retry_quota_violated, validate_only=validate_only)


def delete_topics(
    cluster: MutationCluster,
    topics: Iterable[str],
    *,
    timeout: float | None = None,
    retry_quota_violated: bool = True,
    on_wait: OnWait = unheard,
) -> Results:
    """Delete topics. Raises Invalid for a single name instead of a list.

        with kquota.connect("localhost:9092") as cluster:
            results = delete_topics(cluster, ["orders"], retry_quota_violated=False)

    The other arguments, the results and the other errors are those of `create_topics`.
    """
    if isinstance(topics, str):
        raise Invalid(
            f"topics {topics!r}: not a list. Nothing was sent. Give a list of names, for example [{topics!r}]"
        )
    names = list(topics)
    now = _partitions(cluster, names)
    deletions = [Deletion(topic=topic, partitions=now.get(topic, 0)) for topic in names]
    return _results(cluster, deletions, timeout, on_wait, retry=retry_quota_violated, validate_only=False)


def pace_of(cluster: MutationCluster, topics: int, *, validate_only: bool) -> MutationPace:
    """Return the pace for this number of topics. The pace uses the quota of this client, if the cluster reports one.

    For a single topic, and with `validate_only`, only rejections determine the pace. According to KIP-599, a request
    with `validate_only` is free, so kquota does not wait before sending it. However, Kafka 4 counts the request against
    the quota and can reject it.
    """
    rate = cluster.mutation_rate() if topics > 1 and not validate_only else None
    if rate is None:
        return MutationPace(quota=None)
    return MutationPace(quota=rate, burst_seconds=cluster.mutation_burst())


def with_partitions(cluster: MutationCluster, creations: Iterable[Creation]) -> list[Creation]:
    """Return the creations. If one of them has neither a number of partitions nor an assignment, all get the brokers'
    probable default as `default_partitions`.
    """
    found = list(creations)
    if all(one.partitions or one.assignment for one in found):
        return found
    # Read the default only once, because this sends a request to every broker.
    partitions = cluster.default_partitions()
    return [replace(one, default_partitions=partitions) for one in found]


def _partitions(cluster: MutationCluster, names: Iterable[str]) -> dict[str, int]:
    """Return the number of partitions of each topic. A topic that does not exist is left out, because the answer to its
    mutation reports this error.
    """
    return {topic.name: len(topic.partitions) for topic in cluster.topics.topics(set(names))}


def _results(
    cluster: MutationCluster,
    mutations: Iterable[Mutation],
    timeout: float | None,
    on_wait: OnWait,
    *,
    retry: bool,
    validate_only: bool,
) -> Results:
    doing = work(mutations)
    asked = [one.topic for one in doing.left]
    topics = cluster.checked if validate_only else cluster.topics
    pace = pace_of(cluster, len(asked), validate_only=validate_only) if retry else MutationPace(quota=None)
    seconds = cluster.timeout if timeout is None else timeout
    if not seconds > 0:
        raise Invalid(f"timeout {seconds:g}: must be more than 0 seconds. Nothing was sent")
    outcomes = carry_out(topics, time, doing, pace, seconds=seconds, retry=retry, on_wait=on_wait)
    errors = {outcome.mutation.topic: _error(outcome) for outcome in outcomes}
    results = {topic: errors[topic] for topic in asked}
    rejected = [error for error in results.values() if isinstance(error, QuotaViolatedException)]
    if rejected:
        raise QuotaViolatedException(rejected[0].throttle_time_ms, str(rejected[0]), results)
    return results


def _error(outcome: TopicOutcome) -> KquotaError | None:
    if outcome.fate is Fate.NOT_SENT:
        return Unreachable(
            f"topic {outcome.mutation.topic}: not sent, because an earlier request got no answer or the timeout passed"
        )
    return outcome.error
