"""Checks of values before kquota writes them to ZooKeeper, which accepts any value.

An invalid value can prevent a broker from starting.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from kquota.errors import Invalid, Parameter
from kquota.settings.change import ConfigChange
from kquota.settings.ignored import value
from kquota.settings.resource import BROKERS
from kquota.terms import LONG_MAX, MIN_IN_SYNC, THROTTLE_LISTS, THROTTLE_RATES

_BROKERS: Final = Parameter("bootstrap_server")
_INT: Final = 2**31 - 1
_BLANKS: Final = "".join(map(chr, range(0x21)))
"""The characters that Java's `String.trim` removes. Brokers do not remove other blanks of Unicode."""
_LIST_BLANKS: Final = " \t\n\v\f\r"
"""The characters that Java's `\\s` matches. Brokers remove them around the commas of a list."""
_WHOLE: Final = re.compile(r"[\x00-\x20]*[+-]?[0-9]{1,19}[\x00-\x20]*")
_PASSWORD: Final = re.compile(r"password|secret|jaas|keytab|credential|\.key$|certificate", re.I)


def _whole(least: int, most: int) -> Callable[[str], bool]:
    return lambda text: _WHOLE.fullmatch(text) is not None and least <= int(text.strip(_BLANKS)) <= most


def _one_of(*words: str) -> Callable[[str], bool]:
    return lambda text: text in words


def _ratio(text: str) -> bool:
    return re.fullmatch(r"[0-9]*\.?[0-9]+", text) is not None and 0 <= float(text) <= 1


def _policies(text: str) -> bool:
    return {item.strip(_LIST_BLANKS) for item in text.strip(_BLANKS).split(",")} <= {"compact", "delete"}


_BOOLEAN: Final = _one_of("true", "false")
TOPIC: Final[Mapping[str, Callable[[str], bool]]] = {
    "cleanup.policy": _policies,
    "compression.type": _one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
    "delete.retention.ms": _whole(0, LONG_MAX),
    "file.delete.delay.ms": _whole(0, LONG_MAX),
    "flush.messages": _whole(1, LONG_MAX),
    "flush.ms": _whole(0, LONG_MAX),
    "index.interval.bytes": _whole(0, _INT),
    "max.compaction.lag.ms": _whole(1, LONG_MAX),
    "max.message.bytes": _whole(0, _INT),
    "message.downconversion.enable": _BOOLEAN,
    "message.timestamp.difference.max.ms": _whole(0, LONG_MAX),
    "message.timestamp.type": _one_of("CreateTime", "LogAppendTime"),
    "min.cleanable.dirty.ratio": _ratio,
    "min.compaction.lag.ms": _whole(0, LONG_MAX),
    MIN_IN_SYNC: _whole(1, _INT),
    "preallocate": _BOOLEAN,
    "retention.bytes": _whole(-1, LONG_MAX),
    "retention.ms": _whole(-1, LONG_MAX),
    "segment.bytes": _whole(14, _INT),
    "segment.index.bytes": _whole(4, _INT),
    "segment.jitter.ms": _whole(0, LONG_MAX),
    "segment.ms": _whole(1, LONG_MAX),
    "unclean.leader.election.enable": _BOOLEAN,
}
"""The topic configs that every Kafka release from 2.4 to 3.9 has, each with a check for the values that every release
accepts. The throttled replica lists are not included.
"""


def must_be_sound(change: ConfigChange) -> None:
    """Raise Invalid for a value that brokers reject, that is not in the form that Kafka stores, or that only a running
    broker can check.
    """
    for key, text in change.add.items():
        if key in THROTTLE_RATES or key in THROTTLE_LISTS:
            if (stored := value(change.resource, key, text)) != text:
                raise Invalid(f"{key}={text}: is not in the form that Kafka stores. Write {key}={stored}")
        elif change.resource.kind == BROKERS:
            raise Invalid(
                f"{key}: over ZooKeeper, kquota sets only {', '.join(THROTTLE_RATES)} of a broker, because "
                "a running broker must check all other configs. Use ",
                _BROKERS,
            )
        elif key not in TOPIC:
            raise Invalid(
                f"{key}: is not a topic config of every Kafka release, so kquota cannot check its value for ZooKeeper. "
                "Use ",
                _BROKERS,
            )
        elif not TOPIC[key](text):
            raise Invalid(
                f"{key}={text}: is not a valid value, and ZooKeeper would store it without a check. Give a value that "
                f"Kafka's documentation of {key} allows"
            )


def is_password(key: str) -> bool:
    """Return True if the name of a config suggests a secret, even if kquota does not know the config."""
    return _PASSWORD.search(key) is not None
