"""The answer of `throttle show`: text for narrow terminals, JSON, and a table with one value per row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kquota.cli.amounts import count_or_unknown, rate_or_unknown
from kquota.cli.output import Answer, JsonObject, Part, Row, each, hidden, key, moment, rounded, spread
from kquota.cli.table import aligned
from kquota.cli.throttle.changes import compact, spans
from kquota.measure import counted
from kquota.reassign.run import Run
from kquota.settings.rates import StoredRate
from kquota.settings.resource import Setting
from kquota.terms import DEFAULT, DYNAMIC_BROKER, THROTTLE_RATES, TopicPartition
from kquota.throttle.cluster_throttles import SHORT, BrokerOrDefault, written

LEADER_FLOW: Final = "LeaderReplicationThrottledRate"
FOLLOWER_FLOW: Final = "FollowerReplicationThrottledRate"
SUM_LAG: Final = "SumReplicaLag"
BYTES_IN: Final = "PartitionBytesInRate"
_MOST: Final = 20
NO_RECORDED_RUN: Final = "not set by a recorded run"


def _whole(rate: float | None) -> int | None:
    return None if rate is None else round(rate)


def _stored(rate: StoredRate) -> JsonObject:
    return {"value": rate.value, "source": rate.source, "in_force": rate.in_force}


@dataclass(frozen=True, slots=True, kw_only=True)
class RateShown(Part):
    """A rate as its broker reports it, and the recorded runs that set it."""

    stored: StoredRate = spread(_stored)
    runs: tuple[str, ...]
    """The ids of the runs. Empty if no recorded run set the rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerFlow(Part):
    """The throttled throughput of a broker, in bytes per second, and its lag in offsets. None means unknown."""

    leader: float | None = key(LEADER_FLOW, _whole)
    follower: float | None = key(FOLLOWER_FLOW, _whole)
    lag: int | None = key(SUM_LAG)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerShown(Part):
    """The rates of a broker by key, and its throughput. `flow` is None for the broker defaults."""

    broker: BrokerOrDefault
    rates: Mapping[str, RateShown]
    flow: BrokerFlow | None = spread()


@dataclass(frozen=True, slots=True, kw_only=True)
class EntriesShown(Part):
    """The entries of one list that the same runs set. `runs` is empty for entries that no recorded run set."""

    runs: tuple[str, ...]
    entries: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListShown(Part):
    """A throttled replica list of a topic, and its entries by the runs that set them (`held`)."""

    topic: str
    key: str
    value: str
    held: tuple[EntriesShown, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFlow(Part):
    """The write rate of a throttled partition in bytes per second, and the lag of its followers in offsets.

    None means unknown.
    """

    partition: TopicPartition = spread()
    bytes_in: float | None = key(BYTES_IN, _whole)
    lag: int | None


def _owner(run: Run) -> str | None:
    return None if run.owner is None else run.owner.person


def _run(run: Run) -> JsonObject:
    values = {"purpose": run.purpose, "begun": run.begun, "rate": run.rate, "owner": _owner(run), "reason": run.reason}
    return {"run": run.id, **values}


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottlesShown(Answer):
    """The throttles of a cluster, with their throughput and lag. None means unknown or unset, never 0."""

    measured_seconds: float | None = key(form=rounded(3))
    """The time of the measurement. None if the throughput was not measured."""
    brokers: tuple[BrokerShown, ...]
    unread_brokers: tuple[int, ...] | None
    """The brokers whose rates are unknown. None if it is unknown which brokers are dead."""
    unread_topics: tuple[str, ...]
    """The topics whose throttled replica lists are unknown."""
    lists: tuple[ListShown, ...]
    partitions: tuple[PartitionFlow, ...]
    runs: tuple[Run, ...] = key(form=each(_run))
    """The runs that set at least one of the shown values, sorted by id."""
    filtered: bool = hidden()
    """True if the operator selected topics or brokers."""
    rates_unknown: bool = hidden()
    """True if a rate of the selection is unknown."""
    lists_unknown: bool = hidden()
    """True if a list of the selection is unknown."""

    HEADER = ("kind", "name", "key", "value", "runs", "since")

    def text(self) -> Iterator[str]:
        """Yield lines for people. Equal rates share a line, and so do the entries of one group in `held`."""
        limited = any(broker.rates for broker in self.brokers)
        if not limited and not self.lists:
            known = " that could be read" if self.rates_unknown or self.lists_unknown else ""
            yield f"nothing{known}{' in this selection' if self.filtered else ''} is throttled"
            return
        here = " in this selection" if self.filtered else ""
        none = "none that could be read" if self.rates_unknown else f"none, so nothing{here} is throttled"
        yield "rates" if limited else f"rates: {none}"
        for line in self._rate_lines():
            yield f"  {line}"
        none = f"none, so the leader and follower rates throttle nothing{here}"
        yield "lists" if self.lists else f"lists: {'none that could be read' if self.lists_unknown else none}"
        topic = None
        for one in self.lists:
            if one.topic != topic:
                topic = one.topic
                yield f"  {topic}"
            setting = Setting.of_topic(one.topic, one.key)
            for group in one.held:
                yield f"    {SHORT[one.key]:<9} {compact(setting, group.entries)}, {self._by(group.runs)}"
        if self.lists:
            yield from self._flow_lines()

    def _rate_lines(self) -> Iterator[str]:
        together: defaultdict[tuple[int, StoredRate, str], list[BrokerOrDefault]] = defaultdict(list)
        for broker in self.brokers:
            for name, rate in broker.rates.items():
                together[THROTTLE_RATES.index(name), rate.stored, self._by(rate.runs)].append(broker.broker)
        for (index, stored, whose), brokers in together.items():
            numbers = spans(b for b in brokers if isinstance(b, int))
            where = f"on broker{'s' if len(brokers) > 1 else ''} {numbers}"
            where = "in the broker defaults" if DEFAULT in brokers else where
            origin = whose if stored.source == DYNAMIC_BROKER else f"from {stored.source}"
            unheeded = "" if stored.in_force else ", not in force"
            yield f"{SHORT[THROTTLE_RATES[index]]:<9} {written(stored.value)} {where}, {origin}{unheeded}"

    def _flow_lines(self) -> Iterator[str]:
        if self.measured_seconds is None:
            yield "throughput: unknown"
            return
        yield f"throughput, measured for {self.measured_seconds:.1f} s"
        heads = [
            "broker",
            "LeaderReplication\nThrottledRate",
            "FollowerReplication\nThrottledRate",
            f"{SUM_LAG}\n(offsets)",
        ]
        rows = [
            [str(b.broker), rate_or_unknown(f.leader), rate_or_unknown(f.follower), count_or_unknown(f.lag)]
            for b in self.brokers
            if (f := b.flow) is not None
        ]
        yield from _indented(aligned(rows, heads, left=[0]))
        busiest = sorted(self.partitions, key=lambda one: (-(one.bytes_in or 0.0), one.partition))
        cells = [[str(p.partition), rate_or_unknown(p.bytes_in), count_or_unknown(p.lag)] for p in busiest[:_MOST]]
        yield ""
        yield from _indented(aligned(cells, ["partition", BYTES_IN, "lag (offsets)"], left=[0]))
        if (more := len(busiest) - _MOST) > 0:
            yield f"  ... and {counted(more, 'more partition')}. --output json shows all partitions"

    def rows(self) -> Iterator[Row]:
        """Yield a row for each rate, for each group in `held`, and for each throughput and lag.

        The columns `runs` and `since` have the ids and the start times of the runs, separated by commas. Without a run,
        both columns are empty. An unknown value is None. The name of the broker defaults is also None.
        """
        for broker in self.brokers:
            name = None if broker.broker is DEFAULT else str(broker.broker)
            for rate, one in broker.rates.items():
                yield ["broker", name, rate, one.stored.value, *self._whose(one.runs)]
        for listed in self.lists:
            for group in listed.held:
                yield ["topic", listed.topic, listed.key, ",".join(group.entries), *self._whose(group.runs)]
        for broker in self.brokers:
            if (flow := broker.flow) is not None:
                values = {LEADER_FLOW: _whole(flow.leader), FOLLOWER_FLOW: _whole(flow.follower), SUM_LAG: flow.lag}
                yield from _measured("broker", str(broker.broker), values)
        for partition in self.partitions:
            values = {BYTES_IN: _whole(partition.bytes_in), "lag": partition.lag}
            yield from _measured("partition", str(partition.partition), values)

    def _holders(self, ids: Sequence[str]) -> list[Run]:
        runs = {run.id: run for run in self.runs}
        return [runs[one] for one in ids]

    def _whose(self, ids: Sequence[str]) -> list[str]:
        return [",".join(ids), ",".join(moment(run.begun) for run in self._holders(ids))]

    def _by(self, ids: Sequence[str]) -> str:
        holders = [
            f"by run {run.id}{'' if run.owner is None else f' of {_owner(run)}'} since {moment(run.begun)}"
            for run in self._holders(ids)
        ]
        return " and ".join(holders) or NO_RECORDED_RUN


def _measured(kind: str, name: str, values: Mapping[str, int | None]) -> Iterator[Row]:
    for what, value in values.items():
        yield [kind, name, what, None if value is None else str(value), "", ""]


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}".rstrip() for line in lines)
