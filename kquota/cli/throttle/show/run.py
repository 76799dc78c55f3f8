"""`kquota throttle show`: read the throttles, measure throughput, and select the requested part."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from kquota.cli import move_stores, world
from kquota.cli.contract import DONE, NOT_YET
from kquota.cli.list_options import broker_ids, names
from kquota.cli.throttle import checks, throughput
from kquota.cli.throttle.show.answer import (
    BrokerFlow,
    BrokerShown,
    EntriesShown,
    ListShown,
    PartitionFlow,
    RateShown,
    ThrottlesShown,
)
from kquota.cli.throttle.show.command import ShowOptions
from kquota.reassign.run import Run
from kquota.settings.rates import StoredRate
from kquota.settings.resource import Setting
from kquota.settings.throttled_lists import entries
from kquota.terms import DYNAMIC_BROKER, THROTTLE_RATES, BrokerId, Default, ReplicaId, TopicPartition
from kquota.throttle import actions
from kquota.throttle.cluster_throttles import BrokerOrDefault, ClusterThrottles
from kquota.throttle.throughput import MeasuredFlow


def run(options: ShowOptions) -> ThrottlesShown:
    """Return the selected throttles, and their throughput if it was measured. The measurement takes the time of
    `--sample`.

    The exit code is 8 if a rate or a list of the selection is unknown. Raises Invalid for an invalid option, and
    Refused for a topic or a broker that does not exist. Also raises the errors of `actions.read_effective` and of
    `flowing`.
    """
    topics, brokers = names(options.topic, "--topic"), broker_ids(options.broker, "--broker")
    seconds = 0.0 if options.no_sample else checks.seconds_of(options.sample)
    with move_stores.throttling(world.where(options.connection), options.state_dir) as ports:
        throttles = actions.read_effective(ports)
        checks.must_exist(ports.cluster, throttles, topics, brokers, writes=False)
        flow = throughput.flowing(ports, throttles, seconds)
    return Selection(throttles=throttles, flow=flow, topics=topics, brokers=brokers).answer()


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The part of one reading to show. If `topics` and `brokers` are both empty, everything is shown. `flow` is None if
    the throughput was not measured.
    """

    throttles: ClusterThrottles
    flow: MeasuredFlow | None
    topics: Sequence[str] = ()
    brokers: Sequence[BrokerId] = ()

    def answer(self) -> ThrottlesShown:
        """Return the selection, with the runs that set its values."""
        lists = tuple(self._list(setting) for setting in self._lists)
        brokers = tuple(self._broker(where) for where in (*self._measured, *self._defaults))
        named = {run_id for broker in brokers for rate in broker.rates.values() for run_id in rate.runs}
        named |= {run_id for one in lists for group in one.held for run_id in group.runs}
        return ThrottlesShown(
            measured_seconds=None if self.flow is None else self.flow.seconds,
            brokers=brokers,
            unread_brokers=self.throttles.unread if self.throttles.why_unlisted is None else None,
            unread_topics=tuple(sorted({*self.throttles.unread_topics, *self.throttles.hidden_topics})),
            lists=lists,
            partitions=tuple(self._partition(name) for name in sorted({name for name, _ in self._replicas})),
            runs=tuple(one for one in sorted(self.throttles.runs, key=lambda run: run.id) if one.id in named),
            filtered=bool(self.topics or self.brokers),
            rates_unknown=self._rates_unknown,
            lists_unknown=self._lists_unknown,
            notes=(
                *throughput.unread(self.throttles),
                *throughput.hidden_lists(self.throttles.hidden_topics),
                *throughput.starving(self.throttles, self.flow),
            ),
            code=NOT_YET if self._rates_unknown or self._lists_unknown else DONE,
        )

    @property
    def _rates_unknown(self) -> bool:
        unlisted = self.throttles.why_unlisted is not None and self._wanted is None
        return unlisted or any(self._shows(broker) for broker in self.throttles.unread)

    @property
    def _lists_unknown(self) -> bool:
        unknown = (*self.throttles.unread_topics, *self.throttles.hidden_topics)
        return any(not self.topics or topic in self.topics for topic in unknown)

    @cached_property
    def _lists(self) -> list[Setting]:
        if self.brokers and not self.topics:
            wanted = set(self.brokers)
            return [
                setting
                for setting, text in self.throttles.lists.items()
                if any(b in wanted for e in entries(text) for _, b in self.throttles.replicas(setting, e))
            ]
        return [s for s in self.throttles.lists if not self.topics or s.name in self.topics]

    @cached_property
    def _replicas(self) -> frozenset[ReplicaId]:
        """The replicas of all partitions in the lists to show."""
        partitions = self.throttles.snapshot.partitions
        return frozenset(
            (name, broker)
            for setting in self._lists
            for entry in entries(self.throttles.lists[setting])
            for name, _ in self.throttles.replicas(setting, entry)
            for broker in partitions[name].replicas
        )

    @cached_property
    def _wanted(self) -> frozenset[BrokerOrDefault] | None:
        """The brokers whose rates are shown. None means all brokers and the broker defaults."""
        if self.brokers:
            return frozenset(self.brokers)
        return frozenset(broker for _, broker in self._replicas) if self.topics else None

    @property
    def _measured(self) -> list[BrokerId]:
        limited = {b for b in self.throttles.brokers if self.throttles.limits[b] and self._shows(b)}
        replicas = {broker for _, broker in self._replicas}
        return sorted(b for b in limited | replicas if not self.brokers or b in self.brokers)

    @property
    def _defaults(self) -> list[BrokerOrDefault]:
        return [where for where in self.throttles.limits if isinstance(where, Default) and self._shows(where)]

    def _shows(self, where: BrokerOrDefault) -> bool:
        return self._wanted is None or where in self._wanted

    def _broker(self, where: BrokerOrDefault) -> BrokerShown:
        held = self.throttles.limits.get(where, {}) if self._shows(where) else {}
        rates = {key: self._rate(where, key, held[key]) for key in THROTTLE_RATES if key in held}
        if isinstance(where, Default):
            return BrokerShown(broker=where, rates=rates, flow=None)
        flow = BrokerFlow(leader=None, follower=None, lag=None)
        if (measured := self.flow) is not None:
            leader, follower = measured.leader.get(where), measured.follower.get(where)
            flow = BrokerFlow(leader=leader, follower=follower, lag=measured.lag.get(where))
        return BrokerShown(broker=where, rates=rates, flow=flow)

    def _rate(self, where: BrokerOrDefault, key: str, limit: StoredRate) -> RateShown:
        """Return a rate with the runs that set it. Only a dynamic rate of one broker has runs, because a run sets no
        other rates.
        """
        held: tuple[Run, ...] = ()
        if not isinstance(where, Default) and limit.source == DYNAMIC_BROKER:
            held = self.throttles.holders(Setting.of_broker(where, key), limit.value)
        runs = tuple(run.id for run in held)
        return RateShown(stored=limit, runs=runs)

    def _list(self, setting: Setting) -> ListShown:
        """Return the entries of a list, grouped by the runs that set them. An empty list has one empty group, so that
        the output shows it.
        """
        value = self.throttles.lists[setting]
        taken = [(run.id, set(run.taken[setting].ours)) for run in self.throttles.runs if setting in run.taken]
        groups: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
        for entry in entries(value):
            groups[tuple(run_id for run_id, ours in taken if entry in ours)].append(entry)
        held = [EntriesShown(runs=runs, entries=tuple(values)) for runs, values in groups.items()]
        held = held or [EntriesShown(runs=(), entries=())]
        return ListShown(topic=setting.name, key=setting.key, value=value, held=tuple(held))

    def _partition(self, name: TopicPartition) -> PartitionFlow:
        if self.flow is None:
            return PartitionFlow(partition=name, bytes_in=None, lag=None)
        return PartitionFlow(partition=name, bytes_in=self.flow.bytes_in.get(name), lag=self.flow.lags.get(name))
