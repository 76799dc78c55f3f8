"""The fields of a run as JSON values: the only codec of the journal and of the shared record.

The input may be forged, so every value must have its type, and a run can restore only the throttle keys.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any, Final, NamedTuple, cast

from kquota.measure import ByteRate
from kquota.reassign.course import EMPTY, MOST_CHANGES, MOST_READINGS, BrokerCourse, Course, CourseReading, RateChange
from kquota.reassign.plan import Plan, of_record
from kquota.reassign.progress import Progress
from kquota.reassign.run import Owner, Purpose, Run, Stamp
from kquota.reassign.throttle import Taken
from kquota.reassign.wave import MoveLimits
from kquota.settings.rates import bytes_per_second
from kquota.settings.resource import Setting
from kquota.settings.throttled_lists import entries
from kquota.stores.state.topic_id import canonical
from kquota.terms import (
    EVERY_REPLICA,
    REPLICATION_RATES,
    THROTTLE_LISTS,
    THROTTLE_RATES,
    BrokerId,
    TopicPartition,
    is_id,
    listed_replica,
    wrong_topic_name,
)

_RUN_ID: Final = re.compile(r"[A-Za-z0-9-]{1,100}")
_LONGEST_PRIOR: Final = 1_000_000
"""The longest prior value, in characters. Kafka 3.9.1 stores longer lists than it can describe."""
_LONGEST_TEXT: Final = 1_000
_FIRST_YEAR: Final = 2
_LAST_YEAR: Final = 9998
"""The years that every time zone can show."""
_MOST_SECONDS: Final = 1e12
_HIGHEST_VERSION: Final = 2**31

Json = Mapping[str, Any]


def is_run_id(text: object) -> bool:
    """Return True if this is a valid id of a run, which also names a file and a znode."""
    return isinstance(text, str) and _RUN_ID.fullmatch(text) is not None


def written(run: Run) -> dict[str, Any]:
    """Return the fields of the run as JSON values. A field of `_IF_ANY` without a value is left out."""
    names = [name for name in _FIELDS if name not in _IF_ANY or getattr(run, name)]
    return {name: _FIELDS[name].write(getattr(run, name)) for name in names}


def changed(before: Run, after: Run) -> dict[str, Any]:
    """Return the fields that change `before` to `after`, two versions of the same run.

    For `taken`, these are the items that differ, with the removed ones as `gone`.
    """
    document = {
        name: write(getattr(after, name))
        for name, (write, _) in _FIELDS.items()
        if name != "taken" and getattr(after, name) != getattr(before, name)
    }
    differ = {s: taken for s, taken in after.taken.items() if before.taken.get(s) != taken}
    removed = [setting_fields(setting) for setting in before.taken if setting not in after.taken]
    more = {"taken": _taken(differ)} if differ else {}
    return document | more | ({"gone": removed} if removed else {})


def run_of(documents: Sequence[Json], stamp: Stamp) -> Run:
    """Return the run from a document of `written` and those of `changed` after it.

    Raises ValueError, KeyError, TypeError or Invalid.
    """
    latest = {name: document[name] for document in documents for name in _FIELDS if name in document}
    values = {
        name: read(latest[name])
        for name, (_, read) in _FIELDS.items()
        if name != "taken" and (name in latest or name not in _SINCE_3)
    }
    return Run(**values, taken=_all_taken(documents), stamp=stamp)


def stamp_written(stamp: Stamp) -> dict[str, Any]:
    """Return a stamp as JSON values."""
    return {"v": stamp.version, "by": _owner(stamp.by), "at": _when(stamp.at), "record": stamp.record}


def stamp_of(document: Json) -> Stamp:
    """Return the stamp of a line or of a sheet. Raises ValueError, KeyError or TypeError."""
    version = document["v"]
    if type(version) is not int or not 0 < version < _HIGHEST_VERSION:
        raise ValueError(f"{str(version)[:40]!r} is not the version of a run")
    record = document["record"]
    return Stamp(
        version=version,
        by=_one_owner(document["by"]),
        at=_time(document["at"]),
        record=None if record is None else _text(record),
    )


def _all_taken(documents: Iterable[Json]) -> dict[Setting, Taken]:
    found: dict[Setting, Taken] = {}
    for document in documents:
        for item in document.get("taken", ()):
            taken = _one_taken(item)
            found[taken.setting] = taken
        for item in document.get("gone", ()):
            found.pop(setting_of(item), None)
    return dict(sorted(found.items()))


def _same(value: Any) -> Any:
    return value


def _text(value: Any, longest: int = _LONGEST_TEXT) -> str:
    if not isinstance(value, str) or len(value) > longest:
        raise ValueError(f"{str(value)[:40]!r} is not a string of at most {longest:,} characters")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{value!r} is neither true nor false")
    return value


def _id(value: Any) -> str:
    if not is_run_id(value):
        raise ValueError(f"{str(value)[:40]!r} is not a run id (letters, digits and '-')")
    return cast(str, value)


def _plan_document(plan: Plan) -> object:
    return json.loads(plan.text())


def _when(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()


def _time(text: Any) -> datetime | None:
    return None if text is None else _moment(text)


def _moment(text: Any) -> datetime:
    found = datetime.fromisoformat(_text(text))
    if found.tzinfo is None:
        raise ValueError(f"{text} has no time zone")
    if not _FIRST_YEAR <= found.year <= _LAST_YEAR:
        raise ValueError(f"{text} is not the time of a run")
    return found


def _rate(number: Any) -> ByteRate | None:
    if number is not None and (type(number) is not int or not 0 < number < 2**63):
        raise ValueError(f"{str(number)[:40]!r} is not a rate in bytes per second")
    return None if number is None else ByteRate(number)


def _partitions(names: Iterable[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for name in sorted(names):
        found.setdefault(name.topic, []).append(name.partition)
    return found


def _names(document: Any) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(_topic(topic), _number(n)) for topic, those in document.items() for n in those)


def _number(value: Any) -> int:
    if type(value) is not int or not is_id(str(value)):
        raise ValueError(f"{str(value)[:40]!r} is not the number of a partition or a broker")
    return value


def _topic(value: Any) -> str:
    if why := wrong_topic_name(_text(value)):
        raise ValueError(f"{value[:40]!r} {why}")
    return cast(str, value)


def _topic_ids(document: Any) -> dict[str, str]:
    return {_topic(topic): canonical(_text(known)) for topic, known in document.items()}


def setting_fields(setting: Setting) -> dict[str, str]:
    """Return a setting as it is stored in files and shared records."""
    return {"kind": setting.kind, "name": setting.name, "key": setting.key}


def setting_of(item: Any) -> Setting:
    """Return the setting that `setting_fields` wrote. Raises ValueError, KeyError or TypeError for anything else."""
    kind, name, key = item["kind"], _text(item["name"]), item["key"]
    if kind == "topic":
        _topic(name)
    elif kind != "broker" or not is_id(name):
        raise ValueError(f"{str(kind)[:40]!r} {name[:40]!r} is neither a topic nor a broker")
    if key not in (THROTTLE_LISTS if kind == "topic" else THROTTLE_RATES):
        raise ValueError(f"{str(key)[:60]!r} is not a throttle key of a {kind}")
    return Setting.of_topic(name, key) if kind == "topic" else Setting.of_broker(BrokerId(int(name)), key)


def _taken(taken: Mapping[Setting, Taken]) -> list[dict[str, Any]]:
    return [{**setting_fields(s), "prior": mine.prior, "ours": list(mine.ours)} for s, mine in sorted(taken.items())]


def _one_taken(item: Any) -> Taken:
    setting, prior, ours = setting_of(item), item["prior"], item["ours"]
    if not isinstance(ours, list):
        raise ValueError(f"{setting}: {str(ours)[:40]!r} is not a list")
    return Taken(
        setting=setting,
        prior=None if prior is None else _text(prior, _LONGEST_PRIOR),
        ours=tuple(_own(setting, value) for value in ours),
    )


def _own(setting: Setting, value: Any) -> str:
    text = _text(value)
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
    return {"user": owner.user, "host": owner.host, "pid": owner.pid, "since": _when(owner.since)}


def _one_owner(document: Any) -> Owner | None:
    if document is None:
        return None
    return Owner(
        user=_text(document["user"]),
        host=_text(document["host"]),
        pid=_number(document["pid"]),
        since=_moment(document["since"]),
    )


def _broker_rates(rates: Mapping[Setting, ByteRate]) -> list[dict[str, Any]]:
    return [{**setting_fields(setting), "rate": rate} for setting, rate in rates.items()]


def _one_broker_rates(document: Any) -> dict[Setting, ByteRate]:
    found = {}
    for item in document:
        setting, rate = setting_of(item), _rate(item["rate"])
        if setting.key not in REPLICATION_RATES or rate is None:
            raise ValueError(f"{setting} with {rate!r} is not a replication rate of a broker")
        found[setting] = rate
    return found


def _limits(limits: MoveLimits) -> dict[str, int | None]:
    return {field.name: getattr(limits, field.name) for field in fields(limits)}


def _one_limits(document: Any) -> MoveLimits:
    return MoveLimits(**{field.name: _rate(document[field.name]) for field in fields(MoveLimits)})


def _course(course: Course) -> dict[str, Any]:
    return {
        "expected_seconds": course.expected,
        "verdict": course.verdict,
        "brokers": [
            {
                "broker": one.broker,
                "expected_bytes": one.expected_bytes,
                "expected_seconds": one.expected,
                "copied": one.copied,
                "ended": _when(one.ended),
            }
            for one in course.brokers
        ],
        "readings": [[_when(one.at), one.copied, one.left] for one in course.readings],
        "changes": [
            {
                "at": _when(one.at),
                "from": one.before,
                "to": one.rate,
                "by": one.by,
                "reason": one.reason,
                **({"settings": [setting_fields(setting) for setting in one.settings]} if one.settings else {}),
            }
            for one in course.changes
        ],
    }


def _one_course(document: Any) -> Course:
    """Return the course, or an empty one if it is not valid, because the run must still be resumed and undone."""
    try:
        return _valid_course(document)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        return EMPTY


def _valid_course(document: Any) -> Course:
    readings, changes, verdict = document["readings"], document["changes"], document["verdict"]
    if len(readings) > MOST_READINGS or len(changes) > MOST_CHANGES:
        raise ValueError("too many readings or changes")
    return Course(
        expected=_seconds(document["expected_seconds"]),
        verdict=None if verdict is None else Progress(verdict).value,
        brokers=tuple(
            BrokerCourse(
                broker=BrokerId(_number(one["broker"])),
                expected_bytes=_count(one["expected_bytes"]),
                expected=_seconds(one["expected_seconds"]),
                copied=_count(one["copied"]),
                ended=_time(one["ended"]),
            )
            for one in document["brokers"]
        ),
        readings=tuple(
            CourseReading(at=_moment(at), copied=_count(copied), left=_count(left)) for at, copied, left in readings
        ),
        changes=tuple(
            RateChange(
                at=_moment(one["at"]),
                before=_rate(one["from"]),
                rate=_rate(one["to"]),
                by=_optional(one["by"]),
                reason=_optional(one["reason"]),
                settings=tuple(setting_of(setting) for setting in one.get("settings", ())),
            )
            for one in changes
        ),
    )


def _optional(text: Any) -> str | None:
    return None if text is None else _text(text)


def _count(number: Any) -> int | None:
    if number is not None and (type(number) is not int or not 0 <= number < 2**63):
        raise ValueError(f"{str(number)[:40]!r} is not a number of bytes")
    return number


def _seconds(number: Any) -> float | None:
    if number is None:
        return None
    if type(number) not in (int, float) or not 0 <= number < math.inf or number > _MOST_SECONDS:
        raise ValueError(f"{str(number)[:40]!r} is not a time in seconds")
    return float(number)


class _Codec(NamedTuple):
    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


_FIELDS: Final[Mapping[str, _Codec]] = {
    "id": _Codec(str, _id),
    "purpose": _Codec(lambda purpose: purpose.value, Purpose),
    "begun": _Codec(_when, _moment),
    "rate": _Codec(_same, _rate),
    "log_dir_rate": _Codec(_same, _rate),
    "topic_ids": _Codec(dict, _topic_ids),
    "aborting": _Codec(bool, _flag),
    "finished": _Codec(_when, _time),
    "handed_over": _Codec(_partitions, _names),
    "taken": _Codec(_taken, _same),
    "plan": _Codec(_plan_document, of_record),
    "rollback": _Codec(_plan_document, of_record),
    "owner": _Codec(_owner, _one_owner),
    "reason": _Codec(_same, _optional),
    "crowded": _Codec(bool, _flag),
    "paused": _Codec(bool, _flag),
    "broker_rates": _Codec(_broker_rates, _one_broker_rates),
    "limits": _Codec(_limits, _one_limits),
    "course": _Codec(_course, _one_course),
}
"""The functions that write and read each field of a run."""
_IF_ANY: Final = ("paused", "broker_rates", "limits", "course")
"""The fields that most runs do not have."""
_SINCE_3: Final = ("owner", "reason", "crowded", *_IF_ANY)
"""The fields that a journal of version 2 does not have. The first journals of version 3 lack those of `_IF_ANY`."""

assert set(_FIELDS) | {"stamp"} == {field.name for field in fields(Run)}
