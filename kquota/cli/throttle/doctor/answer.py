"""The answer of `throttle doctor`: one finding per line, and what `--fix` removed or would remove."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from kquota.cli.contract import DONE, NOT_YET
from kquota.cli.output import Answer, JsonObject, Row, hidden, key, plain
from kquota.cli.suggestion import suggested
from kquota.cli.throttle.changes import pending
from kquota.cli.throttle.throughput import hidden_lists
from kquota.errors import KquotaError
from kquota.list_text import named_brokers
from kquota.measure import counted
from kquota.settings.change import Change
from kquota.settings.resource import Setting
from kquota.terms import DEFAULT, REPLICATION_RATES, BrokerId
from kquota.throttle.cluster_throttles import ClusterThrottles, Finding, Remedy
from kquota.throttle.doctor import Sightings, findings


def _fix_command() -> str:
    return suggested("throttle doctor --fix")


def _set(what: str) -> str:
    return suggested(f"throttle set --throttle RATE {what}")


def _set_on_brokers(of: Finding) -> str:
    return _set(f"--broker {','.join(map(str, of.brokers))}")


def _alter(how: str) -> str:
    return suggested(f"configs --alter {how}")


def _remove_from_broker(of: Finding) -> str:
    where = "--broker-defaults" if of.brokers[0] is DEFAULT else f"--broker {of.brokers[0]}"
    return _alter(f"--delete-config {','.join(of.keys)} {where}")


def _correct_list(of: Finding) -> str:
    key, topic = of.keys[0], f"--topic {of.topic}"
    corrected = _alter(f"--add-config '{key}=[P:B,…]' {topic}")
    return f"{corrected}, or {_alter(f'--delete-config {key} {topic}')}"


def _alter_side(of: Finding) -> str:
    rates = {setting.key: values[0] for setting, values in of.values.items()}
    unset = [side for side in REPLICATION_RATES if side not in rates]
    config = f"{unset[0]}={next(iter(rates.values()))}" if len(unset) == 1 else "KEY=RATE"
    return _alter(f"--add-config {config} --broker {of.brokers[0]}")


DO: Final[Mapping[Remedy, Callable[[Finding], str]]] = {
    Remedy.RESUME_RUN: lambda _: suggested("move resume"),
    Remedy.END_RUN: lambda _: f"{suggested('reassign-partitions --verify --all-runs')}, or {suggested('move resume')}",
    Remedy.REMOVE: lambda _: _fix_command(),
    Remedy.REMOVE_AFTER_MOVES: lambda _: f"after all moves have ended: {_fix_command()}",
    Remedy.SET_RATE: lambda of: _set_on_brokers(of),
    Remedy.REMOVE_OR_SET_RATE: lambda of: f"{_fix_command()}, or {_set_on_brokers(of)}",
    Remedy.SET_SAME_RATE_ON_BROKERS: lambda of: (
        "if this is not intended: " + _alter(f"--add-config {of.keys[0]}=RATE --broker ID")
    ),
    Remedy.SET_SAME_RATE_ON_SIDES: lambda of: "if this is not intended: " + _alter_side(of),
    Remedy.SET_RATE_ON_EACH_BROKER: lambda of: (
        f"set {'this rate' if len(of.keys) == 1 else 'each of these rates'} on every broker, then "
        + _alter(f"--delete-config {','.join(of.keys)} --broker-defaults")
    ),
    Remedy.SET_RATE_DYNAMICALLY: lambda of: (
        f"remove throttle rates from server.properties, and set the rate with {_set_on_brokers(of)}"
    ),
    Remedy.REMOVE_FROM_BROKER: _remove_from_broker,
    Remedy.CORRECT_LIST: _correct_list,
    Remedy.SHORTEN_LIST: lambda of: "remove entries, or throttle the whole topic: " + _set(f"--topic {of.topic}"),
}
"""The text of each remedy, with the command to run."""


def _to_the_second(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat(timespec="seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination(Answer):
    """The findings of doctor, and the result of `--fix`."""

    found: tuple[Finding, ...] = hidden()
    findings: Sequence[JsonObject]
    """The JSON of `found`."""
    planned: tuple[Change, ...]
    """The changes that `--fix` would make. Only a dry run has them."""
    fixed: tuple[Change, ...]
    """The changes that `--fix` made."""
    pending: Mapping[Setting, KquotaError] = key(form=pending)
    """The settings that `--fix` could not remove, with the reasons."""
    unread_brokers: tuple[int, ...] | None
    """The brokers whose rates are unknown. None if it is unknown which brokers are dead."""
    cleared_brokers: tuple[int, ...]
    """The dead brokers whose rates were unknown until `--fix` removed the rates."""
    unread_topics: tuple[str, ...]
    """The topics whose lists are unknown, because they could not be read."""
    hidden_topics: tuple[str, ...]
    """The topics whose lists are unknown, because Kafka hides the topics from this user."""

    HEADER = ("rule", "where", "what", "effect", "do", "fixable")

    def text(self) -> Iterator[str]:
        for one in self.found:
            yield f"{one.rule}: {one.where}: {one.what}; {one.effect}. Do: {DO[one.remedy](one)}"

    def needs(self) -> Iterator[str]:
        """Yield the same lines as `text`, because every finding needs action."""
        yield from self.text()

    def rows(self) -> Iterator[Row]:
        for one in self.found:
            yield [one.rule, one.where, one.what, one.effect, DO[one.remedy](one), "yes" if one.fixable else "no"]


def _summary(found: Sequence[Finding], throttles: ClusterThrottles, unread: Sequence[BrokerId]) -> str:
    counts = Counter(one.rule for one in found)
    by_rule = ", ".join(f"{rule} {count:,}" for rule, count in counts.items())
    known = f"{counted(len(found), 'finding')}: {by_rule}" if found else "no findings"
    unknown = [f"the rates of {named_brokers(unread)}"] if unread else []
    unknown += ["the rates of dead brokers without replicas"] if throttles.why_unlisted is not None else []
    unknown += [f"the lists of {counted(len(throttles.unread_topics), 'topic')}"] if throttles.unread_topics else []
    hidden = len(throttles.hidden_topics)
    unknown += [f"the lists of {counted(hidden, 'hidden topic')}"] if hidden else []
    return f"{known}; unknown: {', '.join(unknown)}" if unknown else known


def examination(
    throttles: ClusterThrottles,
    sightings: Sightings | None,
    *,
    planned: Sequence[Change] = (),
    fixed: Sequence[Change] = (),
    undone: Mapping[Setting, KquotaError] | None = None,
    cleared: Sequence[BrokerId] = (),
    notes: Sequence[str] = (),
) -> Examination:
    """Return the answer with the findings about `throttles`. `sightings` has the time when doctor first saw each
    leftover, or is None if kquota could not record these times. `undone` has the pending settings. The other arguments
    are as in `Examination`.

    The exit code is 8 for a finding, for a pending value, and for an unknown rate or list, which may be a leftover.
    Otherwise, it is 0.
    """
    found = findings(throttles)
    first = {} if sightings is None else sightings.first
    unread = tuple(broker for broker in throttles.unread if broker not in cleared)
    unlisted = throttles.why_unlisted is not None
    unlisted_topics = throttles.unread_topics or throttles.hidden_topics
    return Examination(
        found=found,
        findings=[_finding(one, first) for one in found],
        planned=tuple(planned),
        fixed=tuple(fixed),
        pending=undone or {},
        notes=(*notes, *hidden_lists(throttles.hidden_topics)),
        unread_brokers=None if unlisted else unread,
        cleared_brokers=tuple(cleared),
        unread_topics=throttles.unread_topics,
        hidden_topics=throttles.hidden_topics,
        closing_notes=(_summary(found, throttles, unread),),
        code=NOT_YET if found or undone or unread or unlisted or unlisted_topics else DONE,
    )


def _finding(one: Finding, first: Mapping[Setting, Mapping[str, datetime]]) -> JsonObject:
    """Return the JSON of one finding. `first_seen` is null if it is unknown, or if `--fix` cannot remove the value."""
    return {
        "rule": one.rule,
        "where": one.where,
        "what": one.what,
        "effect": one.effect,
        "do": DO[one.remedy](one),
        "fixable": one.fixable,
        "values": [
            {
                **plain(setting),
                "value": value,
                "first_seen": _to_the_second(first.get(setting, {}).get(value)),
            }
            for setting, values in one.values.items()
            for value in values
        ],
    }
