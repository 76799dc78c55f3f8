"""Converts values to and from the JSON of runs and other state. `Fields` converts a dataclass.

The input may be forged, so each function that reads a value checks its type and its bounds, and raises ValueError for
any other value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Final, Generic, NamedTuple, TypeVar, cast

from kquota.measure import ByteRate
from kquota.settings.resource import Setting
from kquota.terms import LONG_MAX, LONGEST_TEXT, THROTTLE_LISTS, THROTTLE_RATES, BrokerId, is_id, wrong_topic_name

_T = TypeVar("_T")
_FIRST_YEAR: Final = 2
_LAST_YEAR: Final = 9998
"""The last valid year. Before `_FIRST_YEAR` or after `_LAST_YEAR`, a conversion to another time zone can fail."""
_MOST_SECONDS: Final = 1e12


def text(value: Any, longest: int = LONGEST_TEXT) -> str:
    """Return the value if it is a string of at most `longest` characters."""
    if not isinstance(value, str) or len(value) > longest:
        raise ValueError(f"{value!r:.40} is not a string of at most {longest:,} characters")
    return value


def flag(value: Any) -> bool:
    """Return the value if it is true or false."""
    if not isinstance(value, bool):
        raise ValueError(f"{value!r} is neither true nor false")
    return value


def moment(value: Any) -> datetime:
    """Return the time of an ISO 8601 string, which must have a time zone and a year from 2 to 9998."""
    found = datetime.fromisoformat(text(value))
    if found.tzinfo is None:
        raise ValueError(f"{value} has no time zone")
    if not _FIRST_YEAR <= found.year <= _LAST_YEAR:
        raise ValueError(f"{value} is not between the years {_FIRST_YEAR} and {_LAST_YEAR}")
    return found


def rate(number: Any) -> ByteRate | None:
    """Return a rate of 1 to 2^63 - 1 whole bytes per second, or None for null."""
    if number is not None and (type(number) is not int or not 0 < number <= LONG_MAX):
        raise ValueError(f"{str(number)[:40]!r} is not a rate in bytes per second")
    return None if number is None else ByteRate(number)


def number(value: Any) -> int:
    """Return the value if it is a valid partition, broker or process id."""
    if type(value) is not int or not is_id(str(value)):
        raise ValueError(f"{str(value)[:40]!r} is not a partition, broker or process id")
    return value


def topic(value: Any) -> str:
    """Return the value if it is a valid topic name."""
    if why := wrong_topic_name(text(value)):
        raise ValueError(f"{value[:40]!r} {why}")
    return cast(str, value)


def count(number: Any) -> int | None:
    """Return a whole number from 0 to 2^63 - 1, or None for null."""
    if number is not None and (type(number) is not int or not 0 <= number <= LONG_MAX):
        raise ValueError(f"{str(number)[:40]!r} is not a whole number from 0 to 2^63 - 1")
    return number


def seconds(number: Any) -> float | None:
    """Return a duration of 0 to 10^12 seconds, or None for null."""
    if number is None:
        return None
    if type(number) not in (int, float) or not 0 <= number < math.inf or number > _MOST_SECONDS:
        raise ValueError(f"{str(number)[:40]!r} is not a time in seconds")
    return float(number)


def setting_fields(setting: Setting) -> dict[str, str]:
    """Return a setting as JSON values."""
    return {"kind": setting.kind, "name": setting.name, "key": setting.key}


def setting_of(item: Any) -> Setting:
    """Return the throttle setting that `setting_fields` wrote. Also raises KeyError or TypeError for anything else."""
    kind, name, key = item["kind"], text(item["name"]), item["key"]
    if kind == "topic":
        topic(name)
    elif kind != "broker" or not is_id(name):
        raise ValueError(f"{str(kind)[:40]!r} {name[:40]!r} is neither a topic nor a broker")
    if key not in (THROTTLE_LISTS if kind == "topic" else THROTTLE_RATES):
        raise ValueError(f"{str(key)[:60]!r} is not a throttle key of a {kind}")
    return Setting.of_topic(name, key) if kind == "topic" else Setting.of_broker(BrokerId(int(name)), key)


def same(value: Any) -> Any:
    """Return the value unchanged. A codec uses this function if the value needs no conversion."""
    return value


class Codec(NamedTuple):
    """The functions that write and read one value, and its key in JSON if that is not the name of its field.

    With `if_any`, a field that is None, empty, 0 or false is not written. A field that is missing in JSON then gets its
    default.
    """

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]
    key: str | None = None
    if_any: bool = False


def optional(codec: Codec) -> Codec:
    """Return a codec that also accepts None, which JSON writes as null. It has the default `key` and `if_any`."""
    return Codec(
        lambda value: None if value is None else codec.write(value),
        lambda value: None if value is None else codec.read(value),
    )


MOMENT: Final = Codec(datetime.isoformat, moment)
OPTIONAL_MOMENT: Final = optional(MOMENT)
RATE: Final = Codec(same, rate)
COUNT: Final = Codec(same, count)
SECONDS: Final = Codec(same, seconds)
TEXT: Final = Codec(same, text)
OPTIONAL_TEXT: Final = optional(TEXT)
NUMBER: Final = Codec(same, number)


class Fields(Generic[_T]):
    """Converts the values of one dataclass to JSON objects and back. `codecs` are in the order of the JSON."""

    def __init__(self, kind: type[_T], **codecs: Codec) -> None:
        self._kind = kind
        self._codecs = {name: (codec.key or name, codec) for name, codec in codecs.items()}

    def written(self, value: _T) -> dict[str, Any]:
        """Return the JSON object of a value."""
        return {
            key: codec.write(getattr(value, name))
            for name, (key, codec) in self._codecs.items()
            if not codec.if_any or getattr(value, name)
        }

    def of(self, document: Any) -> _T:
        """Return the value that `written` wrote. Ignores unknown keys. A missing key of an `if_any` codec gives the
        default of its field.

        Raises KeyError or TypeError, or the error of a codec (usually ValueError), for another missing key or an
        invalid value.
        """
        found = {
            name: codec.read(document[key])
            for name, (key, codec) in self._codecs.items()
            if not codec.if_any or key in document
        }
        return self._kind(**found)

    def written_all(self, values: Iterable[_T]) -> list[dict[str, Any]]:
        """Return the JSON objects of several values."""
        return [self.written(value) for value in values]

    def all_of(self, items: Iterable[Any]) -> tuple[_T, ...]:
        """Return the values that `written_all` wrote. Raises the errors of `of`."""
        return tuple(self.of(item) for item in items)
