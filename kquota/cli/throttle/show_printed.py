"""What `throttle show` prints: text that a narrow terminal holds, JSON, and one long table."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Final

from kquota.cli import fields, tsv
from kquota.cli.contract import printable
from kquota.cli.table import aligned
from kquota.cli.throttle.entries import compact, spans
from kquota.cli.unknown import count_or_unknown, rate_or_unknown
from kquota.reassign.run import Run
from kquota.reassign.throttle import Setting, entries
from kquota.terms import DYNAMIC_BROKER, THROTTLE_RATES, BrokerId, Default, ReplicaId, TopicPartition
from kquota.throttle.flow import Flow
from kquota.throttle.standing import SHORT, Limit, Standing, Where, written

VERSION: Final = 1
LEADER_FLOW: Final = "LeaderReplicationThrottledRate"
FOLLOWER_FLOW: Final = "FollowerReplicationThrottledRate"
SUM_LAG: Final = "SumReplicaLag"
BYTES_IN: Final = "PartitionBytesInRate"
_MOST: Final = 20
NOBODY: Final = "by no run on record here"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One answer of `throttle show`; empty filters show everything. `flow` None: unknown."""

    standing: Standing
    flow: Flow | None
    topics: Sequence[str] = ()
    brokers: Sequence[BrokerId] = ()

    @property
    def lists(self) -> list[Setting]:
        """The lists to show; with --broker alone those that name one of them."""
        if self.brokers and not self.topics:
            wanted = set(self.brokers)
            return [
                setting
                for setting, text in self.standing.lists.items()
                if any(b in wanted for e in entries(text) for _, b in self.standing.replicas(setting, e))
            ]
        return [s for s in self.standing.lists if not self.topics or s.name in self.topics]

    @property
    def limits(self) -> list[tuple[Where, str, Limit]]:
        """The rates to show, brokers by id, the default of all last."""
        held = self.standing.limits
        every: list[Where] = [*self.standing.brokers, *(where for where in held if isinstance(where, Default))]
        if self.brokers or self.topics:
            wanted = set(self.brokers) if self.brokers else {b for _, b in self.replicas()}
            every = [where for where in every if where in wanted]
        return [(where, key, held[where][key]) for where in every for key in THROTTLE_RATES if key in held[where]]

    def replicas(self) -> Iterator[ReplicaId]:
        """Every replica of the partitions that the lists to show name."""
        partitions = self.standing.snapshot.partitions
        for setting in self.lists:
            for entry in entries(self.standing.lists[setting]):
                for name, _ in self.standing.replicas(setting, entry):
                    yield from ((name, broker) for broker in partitions[name].replicas)

    @property
    def partitions(self) -> list[TopicPartition]:
        """Every partition that the lists to show name."""
        return sorted({name for name, _ in self.replicas()})

    @property
    def measured(self) -> list[BrokerId]:
        """The brokers whose flows are shown: those with a rate or a throttled replica."""
        wanted = {where for where, _, _ in self.limits if not isinstance(where, Default)}
        wanted |= {broker for _, broker in self.replicas()}
        return sorted(b for b in wanted if not self.brokers or b in self.brokers)


def text(shown: Shown) -> str:
    """For people: rates that are the same stand together, so do entries."""
    return "".join(f"{printable(line)}\n" for line in _lines(shown))


def _lines(shown: Shown) -> Iterator[str]:
    if not shown.limits and not shown.lists:
        yield "nothing is throttled" + (" there" if shown.topics or shown.brokers else "")
        return
    yield "rates" if shown.limits else "rates: none, so nothing is throttled"
    for line in _rate_lines(shown):
        yield f"  {line}"
    yield "lists" if shown.lists else "lists: none, so nothing is throttled"
    topic = None
    for setting in shown.lists:
        if setting.name != topic:
            topic = setting.name
            yield f"  {topic}"
        for held, values in _by_run(shown.standing, setting):
            yield f"    {SHORT[setting.key]:<9} {compact(setting, values)}, {by(held)}"
    if shown.lists:
        yield from _flow_lines(shown)


def _rate_lines(shown: Shown) -> Iterator[str]:
    together: defaultdict[tuple[int, str, str, bool, str], list[Where]] = defaultdict(list)
    for where, key, limit in shown.limits:
        held = holders(shown.standing, where, key, limit)
        group = (THROTTLE_RATES.index(key), limit.value, limit.source, limit.in_force, by(held))
        together[group].append(where)
    for (index, value, source, in_force, whose), brokers in together.items():
        of_all = [where for where in brokers if isinstance(where, Default)]
        on = (
            "the default of all brokers"
            if of_all
            else f"broker{'s' if len(brokers) > 1 else ''} {spans(b for b in brokers if isinstance(b, int))}"
        )
        told = whose if source == DYNAMIC_BROKER else f"from {source}"
        unheeded = "" if in_force else ", not in force"
        yield f"{SHORT[THROTTLE_RATES[index]]:<9} {written(value)} on {on}, {told}{unheeded}"


def _flow_lines(shown: Shown) -> Iterator[str]:
    flow = shown.flow
    if flow is None:
        yield "what flows: unknown"
        return
    yield f"what flows, measured for {flow.seconds:.1f} s"
    heads = [
        "broker",
        "LeaderReplication\nThrottledRate",
        "FollowerReplication\nThrottledRate",
        f"{SUM_LAG}\n(offsets)",
    ]
    rows = [
        [
            str(b),
            rate_or_unknown(flow.leader.get(b)),
            rate_or_unknown(flow.follower.get(b)),
            count_or_unknown(flow.lag.get(b)),
        ]
        for b in shown.measured
    ]
    yield from _set_in(aligned(rows, heads, left=[0]))
    busiest = sorted(shown.partitions, key=lambda name: (-(flow.bytes_in.get(name) or 0.0), name))
    cells = [
        [str(n), rate_or_unknown(flow.bytes_in.get(n)), count_or_unknown(flow.lags.get(n))] for n in busiest[:_MOST]
    ]
    yield ""
    yield from _set_in(aligned(cells, ["partition", BYTES_IN, "lag (offsets)"], left=[0]))
    if (more := len(busiest) - _MOST) > 0:
        yield f"  and {more:,} more: --output json shows them all"


def _set_in(text: str) -> Iterator[str]:
    return (f"  {line}".rstrip() for line in text.splitlines())


def document(shown: Shown) -> str:
    """The contract with scripts, version 1. Bytes per second, offsets, seconds; null is unknown, or unset; never 0."""
    standing, flow = shown.standing, shown.flow
    runs: dict[str, Run] = {}
    brokers: dict[Where, dict[str, object]] = {broker: {} for broker in shown.measured}
    for where, key, limit in shown.limits:
        held = holders(standing, where, key, limit)
        runs |= {run.id: run for run in held}
        brokers.setdefault(where, {})[key] = {
            "value": limit.value,
            "source": limit.source,
            "in_force": limit.in_force,
            "runs": [run.id for run in held],
        }
    lists = []
    for setting in shown.lists:
        groups = _by_run(standing, setting)
        runs |= {run.id: run for held, _ in groups for run in held}
        told = [{"runs": [run.id for run in held], "entries": list(values)} for held, values in groups]
        lists.append({"topic": setting.name, "key": setting.key, "value": standing.lists[setting], "held": told})
    return (
        json.dumps(
            {
                "version": VERSION,
                "measured_seconds": None if flow is None else round(flow.seconds, 3),
                "brokers": [
                    {"broker": None if isinstance(b, Default) else b, "rates": rates, **_broker_flow(flow, b)}
                    for b, rates in brokers.items()
                ],
                "unread_brokers": list(standing.unread),
                "lists": lists,
                "partitions": [{**fields.partition(n), **_partition_flow(flow, n)} for n in shown.partitions],
                "runs": [
                    {"run": run.id, "purpose": run.purpose.value, "begun": run.begun.isoformat(), "rate": run.rate}
                    for _, run in sorted(runs.items())
                ],
            },
            ensure_ascii=False,
        )
        + "\n"
    )


def table(shown: Shown) -> str:
    """A row for each value that stands and each that was measured; runs joined by commas, empty for nobody's."""
    rows: list[list[str | None]] = []
    for where, key, limit in shown.limits:
        name = None if isinstance(where, Default) else str(where)
        rows.append(["broker", name, key, limit.value, *_whose(holders(shown.standing, where, key, limit))])
    for setting in shown.lists:
        for held, values in _by_run(shown.standing, setting):
            rows.append(["topic", setting.name, setting.key, ",".join(values), *_whose(held)])
    for broker in shown.measured:
        for key, value in _broker_flow(shown.flow, broker).items():
            rows.append(["broker", str(broker), key, None if value is None else str(value), "", ""])
    for partition in shown.partitions:
        for key, value in _partition_flow(shown.flow, partition).items():
            rows.append(["partition", str(partition), key, None if value is None else str(value), "", ""])
    return tsv.table(("kind", "name", "key", "value", "runs", "since"), rows)


def _whose(held: Sequence[Run]) -> list[str]:
    return [",".join(run.id for run in held), ",".join(since(run) for run in held)]


def _broker_flow(flow: Flow | None, broker: Where) -> dict[str, float | int | None]:
    if isinstance(broker, Default):
        return {}
    return {
        LEADER_FLOW: _rounded(flow.leader if flow else {}, broker),
        FOLLOWER_FLOW: _rounded(flow.follower if flow else {}, broker),
        SUM_LAG: flow.lag.get(broker) if flow else None,
    }


def _partition_flow(flow: Flow | None, name: TopicPartition) -> dict[str, float | int | None]:
    return {
        BYTES_IN: None if flow is None or (rate := flow.bytes_in.get(name)) is None else round(rate),
        "lag": flow.lags.get(name) if flow else None,
    }


def _rounded(rates: Mapping[BrokerId, float | None], broker: BrokerId) -> int | None:
    rate = rates.get(broker)
    return None if rate is None else round(rate)


def holders(standing: Standing, where: Where, key: str, limit: Limit) -> tuple[Run, ...]:
    """The runs on record that set a rate; nobody's where it was not set on this very broker."""
    if isinstance(where, Default) or limit.source != DYNAMIC_BROKER:
        return ()
    return standing.holders(Setting.of_broker(where, key), limit.value)


def _by_run(standing: Standing, setting: Setting) -> list[tuple[tuple[Run, ...], tuple[str, ...]]]:
    """The entries of a list, those of the same runs together; one group without entries for an empty list."""
    taken = [(run, set(run.taken[setting].ours)) for run in standing.runs if setting in run.taken]
    groups: dict[tuple[str, ...], tuple[tuple[Run, ...], list[str]]] = {}
    for entry in entries(standing.lists[setting]):
        held = tuple(run for run, ours in taken if entry in ours)
        groups.setdefault(tuple(run.id for run in held), (held, []))[1].append(entry)
    return [(held, tuple(values)) for held, values in groups.values()] or [((), ())]


def by(held: Sequence[Run]) -> str:
    """Whose a value is and since when."""
    return " and ".join(f"by run {run.id} since {since(run)}" for run in held) or NOBODY


def since(run: Run) -> str:
    """When a run began, in UTC."""
    return run.begun.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")
