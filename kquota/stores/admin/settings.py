"""Dynamic configs on the Admin API: reads, changes that require an unchanged value, and writes for dead brokers."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from kquota.errors import KquotaError, NextStep, Parameter, Refused, StepFor, Unknown, Unreachable
from kquota.reassign.port import Overwritten
from kquota.settings.change import Change
from kquota.settings.resource import TOPICS, Resource, Setting
from kquota.settings.throttled_lists import parts
from kquota.stores.admin.configs import WireConfigs
from kquota.stores.admin.connection import ALTER, ALTER_CONFIGS, Wire, advice_on_rights, kafka_error
from kquota.stores.admin.controller_configs import ControllerConfigs
from kquota.stores.admin.controllers import must_be_active
from kquota.stores.admin.permissions import must_permit
from kquota.stores.admin.requests import (
    APPEND,
    DELETE,
    FORBIDDEN,
    SET,
    SUBTRACT,
    UNKNOWN_TOPIC,
    ConfigOperation,
    describe_request,
    own_source,
)
from kquota.terms import MAYBE_WRITTEN, MIN_IN_SYNC, SEEN_SECONDS

_APPEND_IS_SOUND: Final = (3, 4)
"""Before this release, `APPEND` and `SUBTRACT` damage lists, and the broker cannot start again (seen on 2.8.2)."""
_UNKNOWN: Final = (0,)
"""The release that kquota assumes for a broker that does not answer. With this release, kquota writes whole lists."""
_BLANK: Final = re.compile(r"\s")
"""kquota writes a list with blanks as a whole, because a broker does not trim entries when it appends or subtracts."""
_SEEN_POLL_SECONDS: Final = 0.05


class WireSettings(WireConfigs):
    """Implements `values`, `change`, `overwrite` and `minimum_in_sync` of `MoveCluster`."""

    def __init__(
        self,
        wire: Wire,
        must_hold: Callable[[], None] = lambda: None,
        controllers: Callable[[], ControllerConfigs] | None = None,
    ) -> None:
        """`must_hold` is the same as for WireConfigs. `controllers` connects to the KRaft controllers, or is None if
        they are unknown.
        """
        super().__init__(wire, must_hold)
        self._controllers = controllers
        self._unreached: Unreachable | Refused | None = None

    def _open_controllers(self) -> ControllerConfigs:
        """Connect. After a failure, raise the same error again at once, because each attempt takes seconds."""
        if self._controllers is None:
            raise Unreachable("the controllers are unknown")
        if self._unreached is not None:
            raise self._unreached
        try:
            return self._controllers()
        except (Unreachable, Refused) as error:
            self._unreached = error
            raise

    def overwrite(self, values: Mapping[Setting, str | None]) -> Overwritten:
        controllers = self._open_controllers()
        self._wire.refresh()
        alive = self._wire.brokers()
        errors: dict[Setting, KquotaError] = {}
        sent: dict[Setting, ConfigOperation] = {}
        for setting, value in values.items():
            if not setting.resource.of_broker:
                errors[setting] = Unreachable(f"{setting} is not a config of one broker")
            elif setting.broker in alive:
                why = f"broker {setting.name} is registered, but did not answer. Check that the broker is running"
                errors[setting] = Unreachable(why)
            else:
                sent[setting] = (DELETE, None) if value is None else (SET, value)
        self._must_hold()
        errors |= _written(sent, controllers.altered)
        # Read `active` after the write, because the write finds the new controller after an election.
        return Overwritten(by=controllers.active, errors=errors)

    def values(self, settings: Collection[Setting]) -> dict[Setting, str | None]:
        found: dict[Setting, str | None] = {}
        asked = _keys(settings)
        for resource, answer in self._described(asked, synonyms=False):
            if not isinstance(answer, KquotaError):
                found |= _values(resource, answer, asked[resource])
        return found

    def must_permit(self, settings: Collection[Setting], *, moves: bool) -> None:
        topics = {setting.name: ALTER_CONFIGS for setting in settings if setting.kind == "topic"}
        cluster = {ALTER_CONFIGS} if any(setting.kind != "topic" for setting in settings) else set()
        must_permit(self._wire, cluster | ({ALTER} if moves else set()), topics)

    def minimum_in_sync(self, topics: Collection[str]) -> dict[str, int]:
        asked = {Resource(kind=TOPICS, name=topic): [MIN_IN_SYNC] for topic in topics}
        answer = self._wire.read(describe_request(asked, synonyms=False))
        for result in answer.results:
            if result.error_code in FORBIDDEN:
                words = kafka_error(result.error_code, result.error_message) + advice_on_rights(result.error_code)
                raise Refused(
                    f"topic {result.resource_name} {MIN_IN_SYNC}: the broker answered {words}, or give ",
                    Parameter("force"),
                    ". Nothing was written",
                )
        return {
            result.resource_name: int(config.value)
            for result in answer.results
            for config in result.configs or ()
            if config.name == MIN_IN_SYNC and config.value is not None
        }

    def change(self, changes: Sequence[Change]) -> dict[Setting, KquotaError]:
        """Read the values just before the write. A change by another client in between is lost, unless the write is an
        `APPEND` or `SUBTRACT` (lists since Kafka 3.4).
        """
        must_be_active(self._wire)
        now = self.values([change.setting for change in changes])
        has_lists = any(change.setting.is_list for change in changes)
        incremental = has_lists and self._wire.oldest(unanswered=_UNKNOWN) >= _APPEND_IS_SOUND
        errors: dict[Setting, KquotaError] = {}
        ready: dict[Setting, ConfigOperation] = {}
        emptied: list[Change] = []
        for change in changes:
            setting = change.setting
            if setting not in now:
                errors[setting] = _unread(setting)
            elif now[setting] != change.before:
                errors[setting] = change.conflict(now[setting])
            else:
                ready[setting] = operation(change, incremental=incremental)
                if change.after is None and ready[setting][0] == SUBTRACT:
                    emptied.append(change)
        errors |= _written(ready, self.altered)
        return errors | self._delete_empty([change for change in emptied if change.setting not in errors])

    def _delete_empty(self, changes: Sequence[Change]) -> dict[Setting, KquotaError]:
        """Unset the lists that the subtraction left empty, unless another client has written to them since."""
        left = {change.setting: change for change in changes}
        errors: dict[Setting, KquotaError] = {}
        give_up = time.monotonic() + SEEN_SECONDS
        while left:
            now = self.values(left)
            seen = [s for s, change in left.items() if s in now and (now[s] == "" or change.seen_in(now[s]))]
            errors |= _written({setting: (DELETE, None) for setting in seen if now[setting] == ""}, self.altered)
            left = {setting: change for setting, change in left.items() if setting not in seen}
            if left and time.monotonic() > give_up:
                why = f"kquota removed entries, but could not confirm this within {SEEN_SECONDS:.0f} s. "
                step = NextStep.SHOW_TOPIC_CONFIGS
                return errors | {s: Unknown(f"{s}: {why}", StepFor(step, s.name), " shows the value") for s in left}
            if left:
                time.sleep(_SEEN_POLL_SECONDS)
        return errors


def operation(change: Change, *, incremental: bool) -> ConfigOperation:
    """Return the operation that changes the value to exactly `change.after`. With `incremental`, this is `APPEND` or
    `SUBTRACT` if possible. If `change.after` is None, `SUBTRACT` leaves an empty value, which the caller must delete.
    """
    set_or_delete = (DELETE, None) if change.after is None else (SET, change.after)
    before, after = parts(change.before), parts(change.after)
    if (
        not incremental
        or not change.setting.is_list
        or len(set(before)) < len(before)
        or _BLANK.search(change.before or "")
    ):
        return set_or_delete
    added = [entry for entry in after if entry not in before]
    removed = [entry for entry in before if entry not in after]
    kept = [entry for entry in before if entry in after]
    if added and not removed and ",".join((*before, *added)) == change.after:
        return APPEND, ",".join(added)
    if removed and not added and ",".join(kept) == (change.after or ""):
        return SUBTRACT, ",".join(removed)
    return set_or_delete


def _keys(settings: Iterable[Setting]) -> dict[Resource, list[str]]:
    found: defaultdict[Resource, list[str]] = defaultdict(list)
    for setting in settings:
        found[setting.resource].append(setting.key)
    return dict(found)


def _values(resource: Resource, answer: Any, keys: Iterable[str]) -> dict[Setting, str | None]:
    settings = [Setting(resource, key) for key in keys]
    if answer.error_code in FORBIDDEN:
        reason = kafka_error(answer.error_code, answer.error_message)
        raise Refused(f"reading {settings[0]}: the broker answered {reason}{advice_on_rights(answer.error_code)}")
    if answer.error_code == UNKNOWN_TOPIC:
        return dict.fromkeys(settings)
    if answer.error_code != 0:
        return {}
    own = {config.name: config.value for config in answer.configs if config.config_source == own_source(resource)}
    return {setting: own.get(setting.key) for setting in settings}


def _error(setting: Setting, sent: ConfigOperation, answer: Any | KquotaError | None) -> KquotaError | None:
    """`answer` is None for a dead broker."""
    if answer is None:
        return Unreachable(f"{setting} was not written, because the broker is dead. Check that the broker is running")
    if isinstance(answer, Refused):
        return answer
    if isinstance(answer, KquotaError):
        # The broker answered a moment ago, so this request may have reached the broker.
        return Unknown(f"{answer}. The change may have been written")
    code = answer.error_code
    if code == 0 or (code == UNKNOWN_TOPIC and sent[0] in (DELETE, SUBTRACT)):
        return None
    words = f"writing {setting}: the broker answered {kafka_error(code, answer.error_message)}"
    words += advice_on_rights(code, ALTER_CONFIGS)
    return Unknown(words) if code in MAYBE_WRITTEN else Refused(words)


def _written(
    operations: Mapping[Setting, ConfigOperation],
    altered: Callable[[Mapping[Resource, Mapping[str, ConfigOperation]]], Mapping[Resource, Any | KquotaError]],
) -> dict[Setting, KquotaError]:
    """Write with `altered`, and return the error of each setting that failed. A setting without an answer was not sent,
    because its broker has died since kquota read the value.
    """
    keys = _keys(operations)
    answers = altered({r: {key: operations[Setting(r, key)] for key in keys[r]} for r in keys})
    return {
        setting: error
        for setting, sent in operations.items()
        if (error := _error(setting, sent, answers.get(setting.resource)))
    }


def _unread(setting: Setting) -> Unreachable:
    unread = f"{setting} cannot be read, so it was not written. "
    if setting.is_list:
        return Unreachable(unread, StepFor(NextStep.SHOW_TOPIC_CONFIGS, setting.name), " shows the reason")
    return Unreachable(f"{unread}Check that the broker is running")
