"""Values of a run's JSON: each is written in one form, and read only if it has its type and its bounds.

The input may be forged. Each function that reads raises ValueError for another value.
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any, Final, cast

from kquota.measure import ByteRate
from kquota.settings.resource import Setting
from kquota.terms import THROTTLE_LISTS, THROTTLE_RATES, BrokerId, is_id, wrong_topic_name

_LONGEST_TEXT: Final = 1_000
_FIRST_YEAR: Final = 2
_LAST_YEAR: Final = 9998
"""The years that every time zone can show."""
_MOST_SECONDS: Final = 1e12


def text(value: Any, longest: int = _LONGEST_TEXT) -> str:
    """Read a string."""
    if not isinstance(value, str) or len(value) > longest:
        raise ValueError(f"{str(value)[:40]!r} is not a string of at most {longest:,} characters")
    return value


def flag(value: Any) -> bool:
    """Read true or false."""
    if not isinstance(value, bool):
        raise ValueError(f"{value!r} is neither true nor false")
    return value


def when(time: datetime | None) -> str | None:
    """Write a time, or null."""
    return None if time is None else time.isoformat()


def optional_moment(value: Any) -> datetime | None:
    """Read a time, or null."""
    return None if value is None else moment(value)


def moment(value: Any) -> datetime:
    """Read a time with its time zone."""
    found = datetime.fromisoformat(text(value))
    if found.tzinfo is None:
        raise ValueError(f"{value} has no time zone")
    if not _FIRST_YEAR <= found.year <= _LAST_YEAR:
        raise ValueError(f"{value} is not the time of a run")
    return found


def rate(number: Any) -> ByteRate | None:
    """Read a rate in bytes per second, or null."""
    if number is not None and (type(number) is not int or not 0 < number < 2**63):
        raise ValueError(f"{str(number)[:40]!r} is not a rate in bytes per second")
    return None if number is None else ByteRate(number)


def number(value: Any) -> int:
    """Read the number of a partition or the id of a broker."""
    if type(value) is not int or not is_id(str(value)):
        raise ValueError(f"{str(value)[:40]!r} is not the number of a partition or a broker")
    return value


def topic(value: Any) -> str:
    """Read a topic name."""
    if why := wrong_topic_name(text(value)):
        raise ValueError(f"{value[:40]!r} {why}")
    return cast(str, value)


def optional_text(value: Any) -> str | None:
    """Read a string, or null."""
    return None if value is None else text(value)


def count(number: Any) -> int | None:
    """Read a number of bytes, or null."""
    if number is not None and (type(number) is not int or not 0 <= number < 2**63):
        raise ValueError(f"{str(number)[:40]!r} is not a number of bytes")
    return number


def seconds(number: Any) -> float | None:
    """Read a time in seconds, or null."""
    if number is None:
        return None
    if type(number) not in (int, float) or not 0 <= number < math.inf or number > _MOST_SECONDS:
        raise ValueError(f"{str(number)[:40]!r} is not a time in seconds")
    return float(number)


def setting_fields(setting: Setting) -> dict[str, str]:
    """Return a setting as it is stored in files and shared records."""
    return {"kind": setting.kind, "name": setting.name, "key": setting.key}


def setting_of(item: Any) -> Setting:
    """Return the setting that `setting_fields` wrote. Raises ValueError, KeyError or TypeError for anything else."""
    kind, name, key = item["kind"], text(item["name"]), item["key"]
    if kind == "topic":
        topic(name)
    elif kind != "broker" or not is_id(name):
        raise ValueError(f"{str(kind)[:40]!r} {name[:40]!r} is neither a topic nor a broker")
    if key not in (THROTTLE_LISTS if kind == "topic" else THROTTLE_RATES):
        raise ValueError(f"{str(key)[:60]!r} is not a throttle key of a {kind}")
    return Setting.of_topic(name, key) if kind == "topic" else Setting.of_broker(BrokerId(int(name)), key)
