"""The fields of a run as JSON values: the only codec of the journal and of the shared record.

The input may be forged, so every value must have its type, and a run can restore only the throttle keys.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final, NamedTuple, cast

from kquota import bounded
from kquota.errors import Invalid
from kquota.measure import ByteRate
from kquota.reassign.plan import Plan, of_record, plain_entry
from kquota.reassign.run import Owner, Purpose, Run, Stamp, Taken
from kquota.reassign.wave import MoveLimits
from kquota.settings.rates import bytes_per_second
from kquota.settings.resource import Setting
from kquota.settings.throttled_lists import entries
from kquota.stores.state import checked_values as values
from kquota.stores.state import course_fields, handed_over
from kquota.terms import (
    EVERY_REPLICA,
    LONGEST_VALUE,
    REPLICATION_RATES,
    listed_replica,
)

_RUN_ID: Final = re.compile(r"[A-Za-z0-9-]{1,100}")
_LONGEST_PRIOR: Final = 1_000_000
"""The longest prior value, in characters. It may exceed `LONGEST_VALUE`, because Kafka 3.9.1 stores longer lists than
it can describe.
"""
_HIGHEST_VERSION: Final = 2**31
_MOST_SHARED: Final = 10_000
"""After this many different entries of throttled replica lists, further entries do not share memory."""
_MOST_ENTRIES: Final = LONGEST_VALUE // len("0:1,")
"""The maximum number of entries in a throttled replica list. A longer list counts toward the decoder's memory limit."""
NOT_A_RUN: Final = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, Invalid)
"""The errors that this codec raises for input that kquota did not write."""

Json = Mapping[str, Any]


def is_run_id(text: object) -> bool:
    """Return True if `text` is a valid run id, which is also a valid name of a file and a znode."""
    return isinstance(text, str) and _RUN_ID.fullmatch(text) is not None


def decoder() -> json.JSONDecoder:
    """Return a decoder for the JSON of a run. It converts each entry of a plan and each item of `taken` as soon as it
    has read that entry or item.

    The JSON objects of a long plan would otherwise take nine times its length in memory. Equal entries of throttled
    replica lists share their memory, because most topics have the same entries.
    """
    topics: dict[str, str] = {}
    shared: dict[str, str] = {}

    def converted(found: dict[str, Any]) -> object:
        if "replicas" in found:
            return plain_entry(found, topics)
        if "ours" not in found:
            return found
        try:
            return _one_taken(found, shared) if len(found["ours"]) <= _MOST_ENTRIES else found
        except NOT_A_RUN:
            return found  # `run_of` raises the error again, and its caller names the run

    return bounded.json_decoder(converted)


def written(run: Run) -> dict[str, Any]:
    """Return the fields of the run as JSON values. A field of `_IF_ANY` without a value is left out."""
    names = [name for name in _FIELDS if name not in _IF_ANY or getattr(run, name)]
    return {name: _FIELDS[name].write(getattr(run, name)) for name in names} | handed_over.written(run)


def changed(before: Run, after: Run) -> dict[str, Any]:
    """Return the fields that differ between two versions of the same run, with their values in `after`.

    `taken` has only the items that differ, and `gone` has the settings that were removed from `taken`. Partitions that
    were added to `handed_over` have a key of their own.
    """
    document = {
        name: write(getattr(after, name))
        for name, (write, _) in _FIELDS.items()
        if name != "taken" and getattr(after, name) != getattr(before, name)
    }
    differ = {s: taken for s, taken in after.taken.items() if before.taken.get(s) != taken}
    removed = [values.setting_fields(setting) for setting in before.taken if setting not in after.taken]
    more = {"taken": _taken(differ)} if differ else {}
    return document | handed_over.changed(before, after) | more | ({"gone": removed} if removed else {})


def run_of(documents: Sequence[Json], stamp: Stamp) -> Run:
    """Return the run from a document of `written` and the documents of `changed` that follow it.

    Raises one of `NOT_A_RUN` for an invalid document.
    """
    latest = {name: document[name] for document in documents for name in _FIELDS if name in document}
    values = {
        name: read(latest[name])
        for name, (_, read) in _FIELDS.items()
        if name != "taken" and (name in latest or name not in _IF_ANY)
    }
    run = Run(**values, taken=_all_taken(documents), stamp=stamp)
    return replace(run, handed_over=handed_over.latest(documents, run))


def stamp_written(stamp: Stamp) -> dict[str, Any]:
    """Return a stamp as JSON values."""
    return {"v": stamp.version, "by": _owner(stamp.by), "at": values.when(stamp.at), "record": stamp.record}


def stamp_of(document: Json) -> Stamp:
    """Return the stamp in a document of a journal or of the shared record. Raises ValueError, KeyError or TypeError for
    an invalid stamp.
    """
    version = document["v"]
    if type(version) is not int or not 0 < version < _HIGHEST_VERSION:
        raise ValueError(f"{str(version)[:40]!r} is not the version of a run")
    record = document["record"]
    return Stamp(
        version=version,
        by=_one_owner(document["by"]),
        at=values.optional_moment(document["at"]),
        record=None if record is None else values.text(record),
    )


def _all_taken(documents: Iterable[Json]) -> dict[Setting, Taken]:
    found: dict[Setting, Taken] = {}
    for document in documents:
        for item in document.get("taken", ()):
            taken = item if isinstance(item, Taken) else _one_taken(item, {})
            found[taken.setting] = taken
        for item in document.get("gone", ()):
            found.pop(values.setting_of(item), None)
    return dict(sorted(found.items()))


def _same(value: Any) -> Any:
    return value


def _id(value: Any) -> str:
    if not is_run_id(value):
        raise ValueError(f"{str(value)[:40]!r} is not a run id (letters, digits and '-')")
    return cast(str, value)


def _plan_document(plan: Plan) -> object:
    return json.loads(plan.text())


def _topic_ids(document: Any) -> dict[str, str]:
    return {values.topic(topic): values.text(known) for topic, known in document.items()}


def _taken(taken: Mapping[Setting, Taken]) -> list[dict[str, Any]]:
    return [
        {**values.setting_fields(s), "prior": mine.prior, "ours": list(mine.ours)} for s, mine in sorted(taken.items())
    ]


def _one_taken(item: Any, shared: dict[str, str]) -> Taken:
    """Return an item of `taken`. `shared` has the entries of lists that were read before."""
    setting, prior, ours = values.setting_of(item), item["prior"], item["ours"]
    if not isinstance(ours, list):
        raise ValueError(f"{setting}: {str(ours)[:40]!r} is not a list")
    return Taken(
        setting=setting,
        prior=None if prior is None else values.text(prior, _LONGEST_PRIOR),
        ours=tuple(_shared(_own(setting, value), shared) for value in ours),
    )


def _shared(text: str, shared: dict[str, str]) -> str:
    return shared.setdefault(text, text) if len(shared) < _MOST_SHARED else shared.get(text, text)


def _own(setting: Setting, value: Any) -> str:
    text = values.text(value)
    if setting.is_list:
        valid = text == EVERY_REPLICA or (listed_replica(text) is not None and entries(text) == (text,))
    else:
        valid = bytes_per_second(text) is not None
    if not valid:
        raise ValueError(f"{setting}: {text[:40]!r} is not a value that kquota sets")
    return text


def _owner(owner: Owner | None) -> dict[str, Any] | None:
    if owner is None:
        return None
    return {"user": owner.user, "host": owner.host, "pid": owner.pid, "since": values.when(owner.since)}


def _one_owner(document: Any) -> Owner | None:
    if document is None:
        return None
    return Owner(
        user=values.text(document["user"]),
        host=values.text(document["host"]),
        pid=values.number(document["pid"]),
        since=values.moment(document["since"]),
    )


def _broker_rates(rates: Mapping[Setting, ByteRate]) -> list[dict[str, Any]]:
    return [{**values.setting_fields(setting), "rate": rate} for setting, rate in rates.items()]


def _one_broker_rates(document: Any) -> dict[Setting, ByteRate]:
    found = {}
    for item in document:
        setting, rate = values.setting_of(item), values.rate(item["rate"])
        if setting.key not in REPLICATION_RATES or rate is None:
            raise ValueError(f"{setting} with {rate!r} is not a replication rate of a broker")
        found[setting] = rate
    return found


def _limits(limits: MoveLimits) -> dict[str, int | None]:
    return {field.name: getattr(limits, field.name) for field in fields(limits)}


def _one_limits(document: Any) -> MoveLimits:
    return MoveLimits(**{field.name: values.rate(document[field.name]) for field in fields(MoveLimits)})


class _Codec(NamedTuple):
    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


_FIELDS: Final[Mapping[str, _Codec]] = {
    "id": _Codec(str, _id),
    "purpose": _Codec(lambda purpose: purpose.value, Purpose),
    "begun": _Codec(values.when, values.moment),
    "rate": _Codec(_same, values.rate),
    "log_dir_rate": _Codec(_same, values.rate),
    "topic_ids": _Codec(dict, _topic_ids),
    "aborting": _Codec(bool, values.flag),
    "finished": _Codec(values.when, values.optional_moment),
    "taken": _Codec(_taken, _same),
    "plan": _Codec(_plan_document, of_record),
    "rollback": _Codec(_plan_document, of_record),
    "owner": _Codec(_owner, _one_owner),
    "reason": _Codec(_same, values.optional_text),
    "crowded": _Codec(bool, values.flag),
    "paused": _Codec(bool, values.flag),
    "broker_rates": _Codec(_broker_rates, _one_broker_rates),
    "limits": _Codec(_limits, _one_limits),
    "course": _Codec(course_fields.written, course_fields.course_of),
}
"""The functions that write and read each field of a run, except for `handed_over`, which depends on the plans."""
_IF_ANY: Final = ("paused", "broker_rates", "limits", "course")
"""The fields that `written` leaves out if they have no value."""

assert set(_FIELDS) | {"handed_over", "stamp"} == {field.name for field in fields(Run)}
