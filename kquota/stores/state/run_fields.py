"""The fields of a run as JSON values: the only codec of the journal and of the shared record.

The input may be forged, so the codec checks the type of every value, and a run can restore only the throttle keys.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final, cast

from kquota import bounded
from kquota.errors import Invalid
from kquota.measure import ByteRate, whole_number
from kquota.reassign.course import EMPTY, MOST_CHANGES, MOST_READINGS, BrokerCourse, Course, CourseReading, RateChange
from kquota.reassign.plan import Plan, of_record, plain_entry
from kquota.reassign.progress import Progress
from kquota.reassign.run import Owner, Purpose, Run, Stamp, Taken
from kquota.reassign.wave import MoveLimits
from kquota.settings.resource import Setting
from kquota.settings.throttled_lists import entries
from kquota.stores.state import checked_values as values
from kquota.stores.state import handed_over
from kquota.stores.state.checked_values import Codec, Fields
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
"""The maximum number of different entries of throttled replica lists whose repetitions share memory."""
_MOST_ENTRIES: Final = LONGEST_VALUE // len("0:1,")
"""The maximum number of entries that fit into a config of `LONGEST_VALUE` bytes. `decoder` does not convert a longer
list, which therefore counts toward the decoder's memory limit.
"""
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
    """Return the fields of the run as JSON values."""
    return _RUN.written(run) | handed_over.written(run)


def changed(before: Run, after: Run) -> dict[str, Any]:
    """Return the fields that differ between two versions of the same run, with their values in `after`.

    `taken` has only the items that differ, and `gone` has the settings that were removed from `taken`. Partitions that
    were added to `handed_over` have a key of their own.
    """
    document = {
        name: codec.write(getattr(after, name))
        for name, codec in _FIELDS.items()
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
    run = replace(_RUN.of({**latest, "taken": _all_taken(documents)}), stamp=stamp)
    return replace(run, handed_over=handed_over.latest(documents, run))


def _version(version: Any) -> int:
    if type(version) is not int or not 0 < version < _HIGHEST_VERSION:
        raise ValueError(f"{str(version)[:40]!r} is not the version of a run")
    return version


def _all_taken(documents: Iterable[Json]) -> dict[Setting, Taken]:
    found: dict[Setting, Taken] = {}
    for document in documents:
        for item in document.get("taken", ()):
            taken = item if isinstance(item, Taken) else _one_taken(item, {})
            found[taken.setting] = taken
        for item in document.get("gone", ()):
            found.pop(values.setting_of(item), None)
    return dict(sorted(found.items()))


def _id(value: Any) -> str:
    if not is_run_id(value):
        raise ValueError(f"{str(value)[:40]!r} is not a run id (letters, digits and '-')")
    return cast(str, value)


def _topic_ids(document: Any) -> dict[str, str]:
    return {values.topic(topic): values.text(known) for topic, known in document.items()}


def _taken(taken: Mapping[Setting, Taken]) -> list[dict[str, Any]]:
    return [
        {**values.setting_fields(s), "prior": mine.prior, "ours": list(mine.ours)} for s, mine in sorted(taken.items())
    ]


def _one_taken(item: Any, shared: dict[str, str]) -> Taken:
    setting, prior, ours = values.setting_of(item), item["prior"], item["ours"]
    if not isinstance(ours, list):
        raise ValueError(f"{setting}: {str(ours)[:40]!r} is not a list")
    return Taken(
        setting=setting,
        prior=None if prior is None else values.text(prior, _LONGEST_PRIOR),
        ours=tuple(_own(setting, value, shared) for value in ours),
    )


def _own(setting: Setting, value: Any, shared: dict[str, str]) -> str:
    """Return a rate or an entry of a list. `shared` has the valid entries that were already read."""
    if setting.is_list and isinstance(value, str) and value in shared:
        return shared[value]
    text = values.text(value)
    if setting.is_list:
        valid = text == EVERY_REPLICA or (listed_replica(text) is not None and entries(text) == (text,))
    else:
        valid = whole_number(text) is not None
    if not valid:
        raise ValueError(f"{setting}: {text[:40]!r} is not a value that kquota sets")
    if setting.is_list and len(shared) < _MOST_SHARED:
        shared[text] = text
    return text


def _broker_rates(rates: Mapping[Setting, ByteRate]) -> list[dict[str, Any]]:
    return [{**values.setting_fields(setting), "rate": rate} for setting, rate in rates.items()]


def _one_broker_rates(document: Any) -> dict[Setting, ByteRate]:
    found = {}
    for item in document:
        setting, rate = values.setting_of(item), values.rate(item["rate"])
        if setting.key not in REPLICATION_RATES:
            raise ValueError(f"{setting} is not a replication throttle rate of a broker")
        if rate is None:
            raise ValueError(f"{setting}: the rate is missing")
        found[setting] = rate
    return found


def _course_of(document: Any) -> Course:
    """Return the course. An invalid document gives an empty course, so that you can still resume or undo the run."""
    try:
        if len(document["readings"]) > MOST_READINGS or len(document["changes"]) > MOST_CHANGES:
            raise ValueError("too many readings or changes")
        return _COURSE.of(document)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        return EMPTY


_OWNER: Final = Fields(Owner, user=values.TEXT, host=values.TEXT, pid=values.NUMBER, since=values.MOMENT)
_OPTIONAL_OWNER: Final = values.optional(Codec(_OWNER.written, _OWNER.of))
STAMP: Final = Fields(
    Stamp,
    version=Codec(values.same, _version, "v"),
    by=_OPTIONAL_OWNER,
    at=values.OPTIONAL_MOMENT,
    record=values.OPTIONAL_TEXT,
)
"""The codec of the stamp in a line of a journal, or in a sheet of the shared record."""
_LIMITS: Final = Fields(MoveLimits, **{field.name: values.RATE for field in fields(MoveLimits)})
_BROKERS: Final = Fields(
    BrokerCourse,
    broker=values.NUMBER,
    expected_bytes=values.COUNT,
    expected=values.SECONDS._replace(key="expected_seconds"),
    copied=values.COUNT,
    ended=values.OPTIONAL_MOMENT,
)
_CHANGES: Final = Fields(
    RateChange,
    at=values.MOMENT,
    before=values.RATE._replace(key="from"),
    rate=values.RATE._replace(key="to"),
    by=values.OPTIONAL_TEXT,
    reason=values.OPTIONAL_TEXT,
    settings=Codec(
        lambda settings: [values.setting_fields(setting) for setting in settings],
        lambda items: tuple(values.setting_of(item) for item in items),
        if_any=True,
    ),
)
_COURSE: Final = Fields(
    Course,
    expected=values.SECONDS._replace(key="expected_seconds"),
    verdict=values.optional(Codec(values.same, lambda value: Progress(value).value)),
    brokers=Codec(_BROKERS.written_all, _BROKERS.all_of),
    readings=Codec(
        lambda readings: [[one.at.isoformat(), one.copied, one.left] for one in readings],
        lambda items: tuple(
            CourseReading(at=values.moment(at), copied=values.count(copied), left=values.count(left))
            for at, copied, left in items
        ),
    ),
    changes=Codec(_CHANGES.written_all, _CHANGES.all_of),
    changes_dropped=Codec(values.same, lambda number: values.count(number) or 0, if_any=True),
)
_FIELDS: Final[Mapping[str, Codec]] = {
    "id": Codec(str, _id),
    "purpose": Codec(lambda purpose: purpose.value, Purpose),
    "begun": values.MOMENT,
    "rate": values.RATE,
    "log_dir_rate": values.RATE,
    "topic_ids": Codec(dict, _topic_ids),
    "aborting": Codec(bool, values.flag),
    "finished": values.OPTIONAL_MOMENT,
    "taken": Codec(_taken, values.same),
    "plan": Codec(Plan.document, of_record),
    "rollback": Codec(Plan.document, of_record),
    "owner": _OPTIONAL_OWNER,
    "reason": values.OPTIONAL_TEXT,
    "crowded": Codec(bool, values.flag),
    "paused": Codec(bool, values.flag, if_any=True),
    "broker_rates": Codec(_broker_rates, _one_broker_rates, if_any=True),
    "limits": Codec(_LIMITS.written, _LIMITS.of, if_any=True),
    "course": Codec(_COURSE.written, _course_of, if_any=True),
}
"""The codec of each field of a run, except for `stamp`, and for `handed_over`, which depends on the plans."""
_RUN: Final = Fields(Run, **_FIELDS)

assert set(_FIELDS) | {"handed_over", "stamp"} == {field.name for field in fields(Run)}
