"""The text of `quota explain`: clients, limits and reasons, wrapped at 80 columns."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterator
from typing import Final

from kquota.cli.formats import printable
from kquota.list_text import few, listed
from kquota.measure import human_bytes, human_duration, human_rate
from kquota.quota.capacity import AS_SHIPPED, Capacity
from kquota.quota.explain import Explanation, KeyAnswer
from kquota.quota.limits import plain
from kquota.quota.precedence import LEVELS, Client, LevelPart, LevelState, Rung
from kquota.quota_keys import QUOTA_KEYS, Model
from kquota.terms import IPS

WIDTH: Final = 80
_INDENT: Final = " " * 11


def whom(client: Client) -> str:
    """Return the client as text. None for its user or client-id means any name that has no quota of its own."""
    user = "any user that no quota names" if client.user is None else f"user {client.user!r}"
    if client.client_id is None:
        return f"{user}, any client-id that no quota names"
    return f"{user}, client-id {client.client_id!r}" if client.client_id else f"{user}, without a client-id"


def headline(answer: KeyAnswer, cluster: Capacity) -> str:
    """Return the answer for one key in one sentence."""
    if cluster.ignores(answer.key):
        return f"{answer.key}: unlimited, because these brokers do not support it"
    if answer.limit is None:
        return f"{answer.key}: unlimited, because no applicable limit is set"
    won = answer.winner
    where = "for the cluster" if answer.row.model is Model.BUCKET else "per broker"
    source = (
        f"{answer.static} of the brokers (below all levels)"
        if won is None
        else f"{won.entity} (level {won.level} of {len(answer.rungs)})"
    )
    return f"{answer.key}: {amount(answer.key, answer.limit)} {where}, from {source}"


def amount(key: str, value: float) -> str:
    """Format a limit with its unit."""
    row = QUOTA_KEYS[key]
    if row.in_bytes and math.isfinite(value):
        return human_rate(value)
    return plain(value) + (" B/s" if row.in_bytes else "%" if row.model is Model.SHARE else "/s")


_TOGETHER: Final = re.compile(r"(?<=level) (?=\d)|(?<=\d) (?=of \d)|(?<=of) (?=\d\))|(?<=\d) (?=s\b)")


def wrapped(head: str, line: str, indent: str = _INDENT) -> Iterator[str]:
    """Wrap a line at the same width on every terminal. Text such as `level 3 of 8` is never split.

    `head` is the label before the first line, and `indent` begins every further line.
    """
    lines = textwrap.wrap(
        _TOGETHER.sub("\0", printable(line)),
        width=WIDTH,
        initial_indent=f"  {head:<9}" if head else "",
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    yield from (one.replace("\0", " ") for one in lines)


_MOST_NAMED: Final = 5
_NO_BROKERS: Final = "kquota needs --bootstrap-server and a user with DescribeConfigs on the cluster"
EXEMPT: Final = (
    "never counted: fetches of followers, WriteTxnMarkers, requests between brokers and the controller (they need"
    " ClusterAction), and producing with acks=0"
)
"""Requests that KafkaApis and ControllerApis answer without the request quota (KIP-124 as shipped)."""


def reasons(explained: Explanation) -> Iterator[str]:
    """Yield the lines of the explanation. Sentences are wrapped at `WIDTH` columns. The table of the levels is not
    wrapped.
    """
    if explained.client is not None:
        yield from wrapped("", whom(explained.client))
    if explained.ip is not None:
        yield f"connections from {explained.ip}"
    yield ""
    for answer in explained.answers:
        yield from wrapped("", headline(answer, explained.cluster), indent="  ")
    if any(answer.exceptions for answer in explained.answers):
        yield ""
        yield "Another quota may take precedence for some of these clients: see `except` below."
    if (callback := explained.cluster.callback) is not None:
        yield ""
        yield from wrapped(
            "",
            f"The brokers use client.quota.callback.class={callback}. This class sets the limits, so the real "
            "limits may differ from the limits shown here.",
            indent="  ",
        )
    elif explained.client is not None and not explained.cluster.reported:
        static = " or ".join(row.static for row in QUOTA_KEYS.values() if row.static is not None)
        yield ""
        yield from wrapped(
            "",
            "Some configs of the brokers are unknown. A client.quota.callback.class would set the limits instead of "
            f"Kafka. Before Kafka 3.0, {static} may also apply. To read these configs, use --bootstrap-server and a "
            "user with DescribeConfigs on the cluster.",
            indent="  ",
        )
    for answer in explained.answers:
        if answer.limit is not None or answer.exceptions or any(rung.value is not None for rung in answer.rungs):
            yield ""
            yield answer.key
            yield from _why(answer, explained)


def _why(answer: KeyAnswer, explained: Explanation) -> Iterator[str]:
    cluster, won = explained.cluster, answer.winner
    yield from wrapped("why", _reason(answer, explained.client))
    if answer.limit is not None and not (math.isfinite(answer.limit) and answer.limit > 0):
        yield from wrapped(
            "warning",
            "this limit is not a valid rate, so brokers do not enforce it as a rate. Set a valid rate, or remove the "
            "limit",
        )
    elif answer.limit is not None:
        yield from wrapped("cluster", _in_the_cluster(answer, cluster))
        bucket = "one bucket, in the controller" if answer.row.model is Model.BUCKET else "a bucket on each broker"
        yield from wrapped("shared", f"{bucket}: {answer.shared}")
        yield from _burst(answer, cluster)
        if answer.row.model is Model.SHARE:
            yield from wrapped("exempt", EXEMPT)
    if answer.exceptions:
        others = few(answer.exceptions, _MOST_NAMED)
        yield from wrapped("except", f"another quota takes precedence for {others}. Give both --user and --client-id")
    if IPS in answer.row.entity_types and explained.unresolved:
        names = few(list(map(repr, explained.unresolved)), _MOST_NAMED)
        one_of = "one of " * (len(explained.unresolved) > 1)
        yield from wrapped("unknown", f"whether {one_of}{names} is this IP, because each broker resolves names itself")
    width = max(len(level(rung, answer)) for rung in answer.rungs)
    head = "levels"
    for rung in answer.rungs:
        mark = ">" if rung is won else " "
        yield f"  {head:<9}{mark} {rung.level}  {level(rung, answer):<{width}}  {_value(answer.key, rung)}".rstrip()
        head = ""


def _reason(answer: KeyAnswer, client: Client | None) -> str:
    won = answer.winner
    nameless = client is not None and client.client_id == ""
    quirk = "a level with a client-id, even the default one, does not apply to a client without a client-id"
    if won is None:
        reason = "no limit is set on any level that applies"
    elif won.level == 1:
        reason = "level 1 takes precedence over all others"
    else:
        above = {2: "level 1", 3: "levels 1 and 2"}.get(won.level, f"levels 1 to {won.level - 1}")
        reason = f"no limit applies on {above}, which would take precedence"
    if shadowed := [str(rung.level) for rung in answer.rungs if rung.state is LevelState.SHADOWED]:
        reason += f"; brokers ignore {'level' if len(shadowed) == 1 else 'levels'} {listed(shadowed)}"
    return f"{reason}; {quirk}" if nameless else reason


def _in_the_cluster(answer: KeyAnswer, cluster: Capacity) -> str:
    if answer.row.model is Model.BUCKET:
        return "this limit is for the whole cluster, because only the controller counts mutations"
    if cluster.size == 0:
        return "unknown, because no broker is alive; each broker counts separately"
    if cluster.size is None or answer.cluster is None:
        return f"unknown: {_NO_BROKERS}"
    brokers = "1 broker" if cluster.size == 1 else f"{cluster.size} brokers"
    most = f"at most {amount(answer.key, answer.cluster)} on {brokers}; each broker counts separately"
    return f"{most}. {_capacity(answer, cluster)}" if answer.row.model is Model.SHARE else most


def _capacity(answer: KeyAnswer, cluster: Capacity) -> str:
    """Describe the quota as a share of a broker's threads (KIP-124), as a range if brokers differ."""
    brokers = cluster.brokers or ()
    capacities = sorted(one.request_capacity for one in brokers if one.request_capacity is not None)
    mosts = [one.request_most for one in brokers if one.request_most is not None]
    if len(capacities) < len(brokers) or not capacities or answer.limit is None:
        return "The number of a broker's threads is unknown"
    shares = [f"{100 * answer.limit / capacity:.3g}%" for capacity in capacities]
    threads = _range(f"{capacities[0] // 100}", f"{capacities[-1] // 100}")
    has = f"100% is the time of one thread. Each broker has {threads} threads (num.io.threads + num.network.threads)"
    if len(mosts) == len(brokers) and answer.limit > max(mosts):
        return f"{has}, so this quota has no effect"
    return f"{has}, so this quota is {_range(shares[-1], shares[0])} of their time"


def _range(least: str, most: str) -> str:
    return least if least == most else f"{least} to {most}"


def _burst(answer: KeyAnswer, cluster: Capacity) -> Iterator[str]:
    if answer.row.model is Model.SHARE:
        return
    mutations = answer.row.model is Model.BUCKET
    if answer.burst is None or answer.burst_seconds is None:
        yield from wrapped("burst", f"unknown: {_no_window(answer, cluster)}")
    elif mutations:
        window = cluster.mutation_window
        assert window is not None
        yield from wrapped(
            "burst",
            f"{_with_noun(answer.burst, 'partitions')} at once = {plain(answer.limit or 0)}/s x {window.samples}"
            f" (controller.quota.window.num) x {window.seconds} s (controller.quota.window.size.seconds). The "
            "controller"
            f" accepts requests while the bucket is not below 0, and an empty bucket is full after"
            f" {human_duration(answer.burst_seconds)}",
        )
    else:
        size = human_bytes(answer.burst) if answer.row.in_bytes else _with_noun(answer.burst, answer.row.counts)
        yield from wrapped(
            "burst", f"{size} at once, then delays: brokers measure the rate over the last {answer.burst_seconds} s"
        )


def _no_window(answer: KeyAnswer, cluster: Capacity) -> str:
    if not cluster.reported:
        return _NO_BROKERS
    if answer.row.model is not Model.BUCKET:
        return "it depends on the brokers' quota.window settings, which are unknown or differ"
    shipped = f"{AS_SHIPPED.samples} x {AS_SHIPPED.seconds} s"
    burst = _with_noun(AS_SHIPPED.bucket_seconds * (answer.limit or 0), "partitions")
    example = f"with Kafka's defaults, {shipped}, it is {burst}"
    return f"it depends on the controllers' controller.quota.window settings, which are unknown or differ; {example}"


def _with_noun(value: float, nouns: str) -> str:
    """Return a value with its noun. The value is rounded to 15 digits, because 11 x 0.7 is 7.699999999999999 in
    floating point.
    """
    return f"{value:.15g} {nouns.removesuffix('s') if value == 1 else nouns}"


def level(rung: Rung, answer: KeyAnswer) -> str:
    """Return a level as text: its entity, or the kind of entity that this level covers."""
    if rung.entity is not None:
        return str(rung.entity)
    if len(answer.rungs) < len(LEVELS):
        return "the ip"
    words = {LevelPart.NAMED: "by name", LevelPart.DEFAULT: "default"}
    pairs = zip(("user", "client"), LEVELS[rung.level - 1], strict=True)
    return " ".join(f"{kind} {words[part]}" for kind, part in pairs if part in words)


def _value(key: str, rung: Rung) -> str:
    if rung.value is None:
        return "-"
    exact = plain(rung.value)
    shown = amount(key, rung.value)
    words = f"{shown} ({exact})" if QUOTA_KEYS[key].in_bytes and shown.partition(" ")[0] != exact else shown
    return words if rung.state is LevelState.WINS else f"{words}, {rung.state.value}"
