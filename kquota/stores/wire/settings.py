"""Dynamic configs of topics and brokers on the Admin API: read, and changed where they still are what was read."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from kquota.errors import Conflict, KquotaError, Refused, Unknown, Unreachable
from kquota.reassign.throttle import Change, Setting
from kquota.stores.wire.connection import Wire, kafka_error
from kquota.stores.wire.requests import (
    APPEND,
    BROKER,
    DELETE,
    FORBIDDEN,
    MAYBE_WRITTEN,
    SET,
    SUBTRACT,
    TOPIC,
    UNKNOWN_TOPIC,
    Operation,
    WireResource,
    alter_request,
    by_resource,
    describe_request,
)
from kquota.terms import MIN_IN_SYNC, SEEN_SECONDS, BrokerId

_DYNAMIC: Final = {"topic": 1, "broker": 2}
"""The config source of a value set on this very topic or broker; all others stand behind it."""
_APPEND_IS_SOUND: Final = (3, 4)
"""Below this release APPEND and SUBTRACT corrupt lists: the broker does not start again (measured on 2.8.2)."""
_SEEN_POLL_SECONDS: Final = 0.05


class WireSettings:
    """The dynamic values behind `Cluster.values` and `Cluster.change`.

    A broker answers for itself. Topics are always asked of the same broker, the first that answers: one that was seen
    to know of a write does not forget it, another may not know of it yet.
    """

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._silent: set[BrokerId] = set()

    def values(self, settings: Collection[Setting]) -> dict[Setting, str | None]:
        """See the port."""
        while True:
            sent = self._by_broker(settings)
            answers = self._wire.ask_each({broker: _describe(those) for broker, those in sent.items()})
            lost = {broker for broker, answer in answers.items() if isinstance(answer, KquotaError)}
            if not any(setting.kind == "topic" for broker in lost for setting in sent[broker]):
                found: dict[Setting, str | None] = {}
                for broker in answers.keys() - lost:
                    found |= _values(answers[broker], sent[broker])
                return found
            self._silent |= lost

    def minimum_in_sync(self, topics: Collection[str]) -> dict[str, int]:
        """See the port."""
        asked: dict[WireResource, list[str]] = {(TOPIC, topic): [MIN_IN_SYNC] for topic in topics}
        answer = self._wire.ask(describe_request(asked, synonyms=False))
        return {
            result.resource_name: int(config.value)
            for result in answer.results
            for config in result.configs or ()
            if config.name == MIN_IN_SYNC and config.value is not None
        }

    def change(self, changes: Sequence[Change]) -> dict[Setting, KquotaError]:
        """See the port. Reads just before it writes; only for lists, from 3.4, is nothing lost in between."""
        now = self.values([change.setting for change in changes])
        incremental = any(c.setting.is_list for c in changes) and self._wire.oldest() >= _APPEND_IS_SOUND
        errors: dict[Setting, KquotaError] = {}
        ready: dict[Setting, Operation] = {}
        emptied: list[Change] = []
        for change in changes:
            setting = change.setting
            if setting not in now:
                errors[setting] = Unreachable(f"{setting} cannot be read, so it was not written; is the broker alive?")
            elif now[setting] != change.before:
                errors[setting] = Conflict(f"{setting} is {now[setting]!r} and was {change.before!r} a moment ago")
            else:
                ready[setting] = operation(change, incremental=incremental)
                if change.after is None and ready[setting][0] == SUBTRACT:
                    emptied.append(change)
        errors |= self._write(ready)
        return errors | self._delete_empty([change for change in emptied if change.setting not in errors])

    def _delete_empty(self, changes: Sequence[Change]) -> dict[Setting, KquotaError]:
        """Unset the lists that the subtraction left empty; one that somebody has written to meanwhile stays."""
        left = {change.setting: change for change in changes}
        errors: dict[Setting, KquotaError] = {}
        give_up = time.monotonic() + SEEN_SECONDS
        while left:
            now = self.values(left)
            seen = [s for s, change in left.items() if s in now and (now[s] == "" or change.seen_in(now[s]))]
            errors |= self._write({setting: (DELETE, None) for setting in seen if now[setting] == ""})
            left = {setting: change for setting, change in left.items() if setting not in seen}
            if left and time.monotonic() > give_up:
                why = f"its entries were taken away and still stood {SEEN_SECONDS:.0f} s later"
                return errors | {setting: Unknown(f"{setting}: {why}") for setting in left}
            if left:
                time.sleep(_SEEN_POLL_SECONDS)
        return errors

    def _write(self, operations: Mapping[Setting, Operation]) -> dict[Setting, KquotaError]:
        sent = self._by_broker(operations)
        requests = {broker: _alter({s: operations[s] for s in those}) for broker, those in sent.items()}
        errors: dict[Setting, KquotaError] = {}
        for broker, answer in self._wire.ask_each(requests).items():
            if isinstance(answer, KquotaError):
                # It answered a moment ago, so the request may well have reached it.
                lost = Unknown(f"{answer}; whether it was written is not known")
                errors |= dict.fromkeys(sent[broker], lost)
                continue
            told = by_resource(answer.responses)
            for setting in sent[broker]:
                error = _error(setting, operations[setting], told[_on_the_wire(setting)])
                if error is not None:
                    errors[setting] = error
        return errors

    def _by_broker(self, settings: Iterable[Setting]) -> dict[BrokerId, list[Setting]]:
        """Whom to ask for what; a setting of a broker that is not alive is left out."""
        alive = self._wire.brokers()
        reader = next((broker for broker in alive if broker not in self._silent), None)
        sent: defaultdict[BrokerId, list[Setting]] = defaultdict(list)
        for setting in settings:
            broker = reader if setting.kind == "topic" else BrokerId(int(setting.name))
            if broker is None:
                raise Unreachable("no broker answers any more")
            if broker in alive:
                sent[broker].append(setting)
        return dict(sent)


def operation(change: Change, *, incremental: bool) -> Operation:
    """What to send so that the value becomes `after` to the letter; incremental only where that makes no difference."""
    set_or_delete = (DELETE, None) if change.after is None else (SET, change.after)
    before, after = _parts(change.before), _parts(change.after)
    if not incremental or not change.setting.is_list or len(set(before)) < len(before):
        return set_or_delete
    come = [entry for entry in after if entry not in before]
    gone = [entry for entry in before if entry not in after]
    kept = [entry for entry in before if entry in after]
    if come and not gone and ",".join(before + come) == change.after:
        return APPEND, ",".join(come)
    if gone and not come and ",".join(kept) == (change.after or ""):
        return SUBTRACT, ",".join(gone)
    return set_or_delete


def _parts(text: str | None) -> list[str]:
    """As a broker splits a list: it drops what is empty, and trims nothing."""
    return [part for part in (text or "").split(",") if part]


def _on_the_wire(setting: Setting) -> WireResource:
    return (TOPIC if setting.kind == "topic" else BROKER), setting.name


def _resources(settings: Iterable[Setting]) -> dict[WireResource, list[Setting]]:
    found: defaultdict[WireResource, list[Setting]] = defaultdict(list)
    for setting in settings:
        found[_on_the_wire(setting)].append(setting)
    return found


def _describe(settings: Iterable[Setting]) -> Any:
    asked = {resource: [setting.key for setting in those] for resource, those in _resources(settings).items()}
    return describe_request(asked, synonyms=False)


def _values(answer: Any, asked: Iterable[Setting]) -> dict[Setting, str | None]:
    told = by_resource(answer.results)
    found: dict[Setting, str | None] = {}
    for setting in asked:
        result = told[_on_the_wire(setting)]
        if result.error_code in FORBIDDEN:
            raise Refused(f"reading {setting}: {kafka_error(result.error_code, result.error_message)}")
        if result.error_code == UNKNOWN_TOPIC:
            found[setting] = None
        elif result.error_code == 0:
            source = _DYNAMIC[setting.kind]
            values = (c.value for c in result.configs if c.name == setting.key and c.config_source == source)
            found[setting] = next(values, None)
    return found


def _alter(operations: Mapping[Setting, Operation]) -> Any:
    resources = _resources(operations)
    return alter_request({r: {setting.key: operations[setting] for setting in those} for r, those in resources.items()})


def _error(setting: Setting, sent: Operation, result: Any) -> KquotaError | None:
    code = result.error_code
    if code == 0 or (code == UNKNOWN_TOPIC and sent[0] in (DELETE, SUBTRACT)):
        return None
    words = f"writing {setting}: the broker answered {kafka_error(code, result.error_message)}"
    return Unknown(words) if code in MAYBE_WRITTEN else Refused(words)
