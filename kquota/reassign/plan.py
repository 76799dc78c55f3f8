"""A reassignment plan: which partitions go where, read from Kafka's JSON and written back in one canonical form."""

from __future__ import annotations

import codecs
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NoReturn, TypeVar, cast

from kquota.errors import Invalid
from kquota.terms import BrokerId, TopicPartition

_T = TypeVar("_T")
_MOST: Final = 2**31 - 1
_TOPIC: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_EXAMPLE: Final = '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2]}]}'
_UTF16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The wanted replicas of each partition, the preferred leader first; always ordered by topic, then partition.

    `log_dirs` are those that the file names for a replica; they are no part of what makes two plans equal.
    """

    targets: Mapping[TopicPartition, tuple[BrokerId, ...]]
    log_dirs: Mapping[tuple[TopicPartition, BrokerId], str] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "targets", dict(sorted(self.targets.items())))

    @property
    def topics(self) -> tuple[str, ...]:
        """Every topic of the plan once, sorted."""
        return tuple(dict.fromkeys(p.topic for p in self.targets))

    def text(self) -> str:
        """The plan as Kafka's tools write it, one line, ordered: equal plans have equal text."""
        partitions = [
            {
                "topic": p.topic,
                "partition": p.partition,
                "replicas": list(replicas),
                "log_dirs": ["any"] * len(replicas),
            }
            for p, replicas in self.targets.items()
        ]
        return json.dumps({"version": 1, "partitions": partitions}, separators=(",", ":"))


def run_id(plan: Plan, time: datetime) -> str:
    """The name of a run of `plan` begun at `time`: UTC time and hash of the canonical plan; safe as a file's name.

    >>> run_id(Plan(targets={}), datetime(2026, 3, 1, 12, 30, tzinfo=UTC))
    '20260301T123000Z-c4eb806c53c4'
    """
    digest = hashlib.sha256(plan.text().encode()).hexdigest()
    return f"{time.astimezone(UTC):%Y%m%dT%H%M%SZ}-{digest[:12]}"


def read(path: Path) -> Plan:
    """The plan in a file of kafka-reassign-partitions' JSON (UTF-8, a byte order mark is allowed). Raises Invalid."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise Invalid(f"{path}: cannot be read: {error.strerror}; name a reassignment JSON file") from error
    if data.startswith(_UTF16) or b"\0" in data[:2]:
        raise Invalid(f"{path}: is UTF-16, not UTF-8; save it as UTF-8")
    try:
        return parse(data.decode("utf-8-sig"), str(path))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Invalid(f"{path}: line {line}: is not UTF-8; save the file as UTF-8") from error


def parse(text: str, where: str) -> Plan:
    """The plan in kafka-reassign-partitions' JSON; a missing version is 1 and missing log_dirs are "any", as for Kafka.

    Raises Invalid beginning with `where` (a file's name), then line and column or the JSON path of what is wrong.
    """
    if not text.strip():
        raise Invalid(f"{where}: is empty; write for example {_EXAMPLE}")
    document = _Value(_json(text, where), where, "")
    version = document.field("version", 1).number()
    if version != 1:
        raise Invalid(f"{where}: Not supported version field value {version}; kquota reads version 1")
    targets: dict[TopicPartition, tuple[BrokerId, ...]] = {}
    log_dirs: dict[tuple[TopicPartition, BrokerId], str] = {}
    entries = document.field("partitions").items()
    if not entries:
        raise Invalid(f"{where}: Partition reassignment list cannot be empty")
    for entry in entries:
        partition, replicas, chosen = _target(entry)
        if partition in targets:
            raise entry.wrong(f"Partition reassignment contains duplicate topic partitions: {partition}")
        targets[partition] = replicas
        log_dirs |= {(partition, broker): log_dir for broker, log_dir in chosen.items()}
    return Plan(targets=targets, log_dirs=log_dirs)


@dataclass(frozen=True, slots=True)
class _Value:
    """A JSON value that knows where it stands, so that every complaint names the place."""

    value: object
    where: str
    path: str

    def wrong(self, what: str) -> Invalid:
        return Invalid(f"{self.where}: {self.path or 'the document'}: {what}")

    def field(self, name: str, default: object = None) -> _Value:
        if not isinstance(self.value, dict):
            raise self.wrong(f"must be an object, is {_kind(self.value)}; write for example {_EXAMPLE}")
        path = f"{self.path}.{name}" if self.path else name
        if name not in self.value and default is None:
            raise self.wrong(f"field {name!r} is missing; write for example {_EXAMPLE}")
        return _Value(self.value.get(name, default), self.where, path)

    def items(self) -> list[_Value]:
        if not isinstance(self.value, list):
            raise self.wrong(f"must be a list, is {_kind(self.value)}")
        return [_Value(item, self.where, f"{self.path}[{n}]") for n, item in enumerate(self.value)]

    def number(self) -> int:
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            raise self.wrong(f"must be a whole number, is {_kind(self.value)}")
        if not 0 <= self.value <= _MOST:
            raise self.wrong(f"must be from 0 to {_MOST}, is {_brief(self.value)}")
        return self.value

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.wrong(f"must be a string, is {_kind(self.value)}")
        return self.value


def _target(entry: _Value) -> tuple[TopicPartition, tuple[BrokerId, ...], dict[BrokerId, str]]:
    topic = entry.field("topic")
    name = topic.text()
    if name in (".", "..") or not _TOPIC.fullmatch(name):
        raise topic.wrong(f"{_brief(name)} is not a topic's name (1 to 249 of a-z A-Z 0-9 . _ -, not . or ..)")
    partition = TopicPartition(name, entry.field("partition").number())
    field = entry.field("replicas")
    replicas = tuple(BrokerId(item.number()) for item in field.items())
    if not replicas:
        raise field.wrong(f"{partition}: Partition replica list cannot be empty")
    if repeated := _repeated(replicas):
        raise field.wrong(
            f"Partition replica lists may not contain duplicate entries: {partition} contains multiple entries for "
            f"{','.join(map(str, repeated))}"
        )
    return partition, replicas, _log_dirs(entry.field("log_dirs", ["any"] * len(replicas)), partition, replicas)


def _log_dirs(field: _Value, partition: TopicPartition, replicas: tuple[BrokerId, ...]) -> dict[BrokerId, str]:
    log_dirs = field.items()
    if len(log_dirs) != len(replicas):
        raise field.wrong(
            f"Size of replicas list {_listed(replicas)} is different from size of log dirs list "
            f"{_listed(item.value for item in log_dirs)} for partition {partition}"
        )
    for log_dir in log_dirs:
        if log_dir.text() != "any" and not log_dir.text().startswith("/"):
            raise log_dir.wrong(f'{_brief(log_dir.text())} is neither "any" nor an absolute path')
    return {broker: item.text() for broker, item in zip(replicas, log_dirs, strict=True) if item.text() != "any"}


def _json(text: str, where: str) -> object:
    def no_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
        if repeated := _repeated(key for key, _ in pairs):
            raise Invalid(f"{where}: key {_brief(repeated[0])} stands twice in one object; keep one of them")
        return dict(pairs)

    def no_constant(name: str) -> NoReturn:
        raise Invalid(f"{where}: {name} is not JSON; write a whole number")

    try:
        return cast(object, json.loads(text, object_pairs_hook=no_duplicates, parse_constant=no_constant))
    except json.JSONDecodeError as error:
        raise Invalid(f"{where}: line {error.lineno} column {error.colno}: is not JSON: {error.msg}") from error
    except RecursionError as error:
        raise Invalid(f"{where}: is nested too deeply for a reassignment; write for example {_EXAMPLE}") from error
    except ValueError as error:
        # Python refuses to convert very long digit strings.
        raise Invalid(f"{where}: holds a number too long for any broker or partition") from error


def _repeated(items: Iterable[_T]) -> list[_T]:
    counts = Counter(items)
    return [item for item, count in counts.items() if count > 1]


def _listed(items: Iterable[object]) -> str:
    return f"[{', '.join(map(str, items))}]"


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", float: "a fraction"}
    return "null" if value is None else names.get(type(value), "a number")


def _brief(value: object) -> str:
    shown = json.dumps(value) if isinstance(value, str) else str(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}…"
