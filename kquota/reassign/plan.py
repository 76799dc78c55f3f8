"""A reassignment plan: the target replicas of partitions, read from Kafka's JSON and written in one form."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from kquota import text_file
from kquota.errors import Invalid, Parameter
from kquota.reassign import strict_json
from kquota.reassign.strict_json import Value, brief, cut, repeated
from kquota.terms import HIGHEST_ID, BrokerId, ReplicaId, TopicPartition, wrong_topic_name

ANY: Final = "any"
"""With this value in `log_dirs` of a plan, the broker chooses the log dir."""
_ANY_TOO: Final = f',"{ANY}"'
_FIELDS: Final = ("topic", "partition", "replicas", "log_dirs")
_KNOWN: Final = frozenset(_FIELDS)
_EXAMPLE: Final = '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2]}]}'
CURRENT: Final = "Current partition replica assignment"
"""The line of kafka-reassign-partitions above the rollback plan."""
PROPOSED: Final = "Proposed partition reassignment configuration"
"""The line of kafka-reassign-partitions above a generated plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The target replicas of each partition, with the preferred leader first. The partitions are sorted.

    `log_dirs` has the log dir of each replica for which the plan names one. All other replicas have "any".
    """

    targets: Mapping[TopicPartition, tuple[BrokerId, ...]]
    log_dirs: Mapping[ReplicaId, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "targets", {name: self.targets[name] for name in sorted(self.targets)})

    @property
    def topics(self) -> tuple[str, ...]:
        """Every topic of the plan once, sorted."""
        return tuple(dict.fromkeys(p.topic for p in self.targets))

    def text(self) -> str:
        """Return the plan on one line, as Kafka's tools print it. A log dir that is not named is "any"."""
        return "".join(self.pieces())

    def pieces(self) -> Iterator[str]:
        """Yield the text in pieces, because the text of 100,000 partitions takes 9 MB, and each copy another 9 MB."""
        names = {topic: json.dumps(topic) for topic in self.topics}
        before = '{"version":1,"partitions":['
        for name, replicas in self.targets.items():
            topic, number = name
            yield (
                f'{before}{{"topic":{names[topic]},"partition":{number},"replicas":[{",".join(map(str, replicas))}],'
                f'"log_dirs":[{self._log_dirs(name, replicas)}]}}'
            )
            before = ","
        yield "]}" if self.targets else f"{before}]}}"

    def document(self) -> dict[str, Any]:
        """Return the JSON object of `text`."""
        partitions = [
            {
                "topic": name.topic,
                "partition": name.partition,
                "replicas": list(replicas),
                "log_dirs": [self.log_dirs.get((name, broker), ANY) for broker in replicas],
            }
            for name, replicas in self.targets.items()
        ]
        return {"version": 1, "partitions": partitions}

    def _log_dirs(self, name: TopicPartition, replicas: Sequence[BrokerId]) -> str:
        if not self.log_dirs:
            return (_ANY_TOO * len(replicas))[1:]
        # Letters outside ASCII are not escaped, because Kafka's tools do not escape them either.
        return ",".join(json.dumps(self.log_dirs.get((name, b), ANY), ensure_ascii=False) for b in replicas)


def run_id(plan: Plan, time: datetime) -> str:
    """Return the id of a run of `plan` that began at `time`: the time in UTC, in whole seconds, and `plan_hash`. The id
    is safe as a file name.

    >>> run_id(Plan(targets={}), datetime(2026, 3, 1, 12, 30, tzinfo=UTC))
    '20260301T123000Z-c4eb806c53c4'
    """
    return f"{time.astimezone(UTC):%Y%m%dT%H%M%SZ}-{plan_hash(plan)}"


def plan_hash(plan: Plan) -> str:
    """Return a hash of the targets of `plan` as 12 hexadecimal digits. The hash does not depend on the log dirs."""
    digest = hashlib.sha256()
    for piece in Plan(targets=plan.targets).pieces():
        digest.update(piece.encode())
    return digest.hexdigest()[:12]


class UnknownKeys(Invalid):
    """An entry of a recorded plan has keys that only another version of kquota knows."""


def of_record(document: Any) -> Plan:
    """Return the plan of a record. `document` is the JSON object of `Plan.text`. Its entries can already be results of
    `plain_entry`.

    The plan may be empty. Raises UnknownKeys for an entry with keys that this kquota does not know, because it would
    lose these keys if it wrote the run again. Raises Invalid for an object that is not a valid entry, and for a second
    entry of the same partition. Raises KeyError, TypeError or AttributeError for JSON of another form.
    """
    topics: dict[str, str] = {}
    builder = _Builder()
    for entry in document["partitions"]:
        target = entry if isinstance(entry, tuple) else plain_entry(entry, topics)
        if not isinstance(target, tuple) and (unknown := entry.keys() - _KNOWN):
            keys = cut(", ".join(map(json.dumps, sorted(unknown))))
            raise UnknownKeys(f"the recorded plan has unknown keys ({keys}). Use the version of kquota that wrote it")
        if not isinstance(target, tuple) or not builder.add(target):
            raise Invalid(f"the recorded plan has an entry that kquota did not write: {brief(entry)}")
    return builder.plan()


def read(path: Path, warn: Callable[[str], None] = lambda _: None) -> Plan:
    """Read a plan in the JSON of kafka-reassign-partitions from a file, a pipe or stdin (`-`).

    `warn` receives a warning about fields that neither kquota nor Kafka's tools read. Raises Invalid if the input
    cannot be read or is not a valid plan.
    """
    text, name = text_file.read(path, "a reassignment JSON file")
    return parse(text, name, warn)


def parse(text: str, where: str, warn: Callable[[str], None] = lambda _: None) -> Plan:
    """Parse a plan. As in Kafka, a missing version means 1, and missing `log_dirs` mean "any".

    Raises Invalid if the text is not a valid plan, or has no partitions. The message begins with `where` (the file name
    or `stdin`). If the error has a position, the message then states the line and column, or the JSON path. `warn` is
    the same as for `read`.
    """
    unread: set[str] = set()
    found = _load(text, where, unread)
    version = found.field("version", 1).number()
    if version != 1:
        raise Invalid(f"{where}: Not supported version field value {version}; kquota reads version 1")
    partitions = found.field("partitions")
    entries = partitions.list()
    if not entries:
        raise Invalid(f"{where}: Partition reassignment list cannot be empty")
    builder = _Builder()
    unread |= found.fields().keys() - {"version", "partitions"}
    for n, entry in enumerate(entries):
        if not isinstance(entry, tuple):
            raise _wrong(partitions.item(n))
        if not builder.add(cast(_Target, entry)):
            raise partitions.item(n).wrong(f"Partition reassignment contains duplicate topic partitions: {entry[0]}")
        entries[n] = None  # free the memory of the entry, because a plan may have a million entries
    if unread:
        fields = cut(", ".join(map(json.dumps, sorted(unread))))
        warn(f"{where}: kquota and Kafka ignore {fields}. Check the spelling of each field")
    return builder.plan()


def _load(text: str, where: str, unread: set[str]) -> Value:
    topics: dict[str, str] = {}

    def shorten(entry: dict[str, Any]) -> _Target | dict[str, Any]:
        found = plain_entry(entry, topics)
        if isinstance(found, tuple) or not (more := entry.keys() - _KNOWN):
            return found
        found = plain_entry({key: entry[key] for key in _FIELDS if key in entry}, topics)
        if not isinstance(found, tuple):
            return entry
        unread.update(more)
        return found

    try:
        found = strict_json.load(text, where, _EXAMPLE, shorten, "partitions")
    except Invalid as error:
        if PROPOSED in text:
            raise Invalid(
                f"{where}: contains the whole output of ",
                Parameter("generate"),
                f'. Keep only the line below "{PROPOSED}", and save the line below "{CURRENT}" as the rollback plan',
            ) from error
        if CURRENT in text:
            raise Invalid(
                f"{where}: contains the whole output of ",
                Parameter("execute"),
                f'. Keep only the line below "{CURRENT}", which is the rollback plan',
            ) from error
        raise
    if "topics" in found.fields() and "partitions" not in found.fields():
        words = f"{where}: contains topics, not partitions. Give this file to "
        raise Invalid(words, Parameter("topics_to_move_json_file"))
    return found


_HALF: Final = re.compile("[\ud800-\udfff]")
_NO_LOG_DIRS: Final[Mapping[ReplicaId, str]] = {}
_Target: TypeAlias = tuple[TopicPartition, tuple[BrokerId, ...], Mapping[ReplicaId, str]]


class _Builder:
    def __init__(self) -> None:
        self._targets: dict[TopicPartition, tuple[BrokerId, ...]] = {}
        self._log_dirs: dict[ReplicaId, str] = {}

    def add(self, target: _Target) -> bool:
        partition, replicas, log_dirs = target
        if partition in self._targets:
            return False
        self._targets[partition] = replicas
        self._log_dirs.update(log_dirs)
        return True

    def plan(self) -> Plan:
        return Plan(targets=self._targets, log_dirs=self._log_dirs)


def plain_entry(entry: dict[str, Any], topics: dict[str, str]) -> _Target | dict[str, Any]:
    """Return the target of a valid entry that has only known fields, or any other entry unchanged.

    A plan may have 100,000 entries, so this function is fast, and `_wrong` finds the error. A target takes a fifth of
    the memory of its JSON object. `topics` caches the names that were already checked.
    """
    topic, number, replicas = entry.get("topic"), entry.get("partition"), entry.get("replicas")
    log_dirs = entry.get("log_dirs")
    if (
        len(entry) != (3 if log_dirs is None else 4)
        or type(topic) is not str
        or (topic not in topics and wrong_topic_name(topic))
        or type(number) is not int
        or not 0 <= number <= HIGHEST_ID
        or type(replicas) is not list
        or not replicas
        or not _are_brokers(replicas)
        or len(set(replicas)) != len(replicas)
    ):
        return entry
    partition = TopicPartition(topics.setdefault(topic, topic), number)
    if log_dirs is None or log_dirs == [ANY] * len(replicas):
        return partition, tuple(replicas), _NO_LOG_DIRS
    if type(log_dirs) is not list or len(log_dirs) != len(replicas) or not all(map(_is_log_dir, log_dirs)):
        return entry
    named = zip(replicas, log_dirs, strict=True)
    return partition, tuple(replicas), {(partition, broker): log_dir for broker, log_dir in named if log_dir != ANY}


def _wrong(entry: Value) -> Invalid:
    """Return or raise the error of an entry that `plain_entry` has returned unchanged."""
    topic = entry.field("topic")
    name = topic.text()
    if why := wrong_topic_name(name):
        return topic.wrong(f"{brief(name)} {why}")
    partition = TopicPartition(name, entry.field("partition").number())
    brokers = entry.field("replicas")
    replicas = tuple(map(BrokerId, brokers.numbers()))
    if not replicas:
        return brokers.wrong(f"{partition}: Partition replica list cannot be empty")
    if twice := repeated(replicas):
        return brokers.wrong(
            f"Partition replica lists may not contain duplicate entries: {partition} contains multiple entries for "
            f"{cut(','.join(map(str, twice)))}"
        )
    log_dirs = entry.field("log_dirs", [ANY] * len(replicas))
    if len(log_dirs.list()) != len(replicas):
        return log_dirs.wrong(
            f"Size of replicas list {_listed(replicas)} is different from size of log dirs list "
            f"{_listed(log_dirs.list())} for partition {partition}"
        )
    log_dir = next(log_dirs.item(n) for n, path in enumerate(log_dirs.list()) if not _is_log_dir(path))
    return log_dir.wrong(f'{brief(log_dir.text())} is neither "any" nor an absolute path')


def _are_brokers(replicas: list[Any]) -> bool:
    # This is a loop, because all(), min() and max() take three times as long here.
    for broker in replicas:  # noqa: SIM110
        if type(broker) is not int or not 0 <= broker <= HIGHEST_ID:
            return False
    return True


def _is_log_dir(log_dir: object) -> bool:
    if type(log_dir) is not str:
        return False
    # Reject half of a surrogate pair, because no path can contain it, although JSON can escape it.
    return log_dir == ANY or (log_dir.startswith("/") and (log_dir.isascii() or not _HALF.search(log_dir)))


def _listed(items: Iterable[object]) -> str:
    return cut(f"[{', '.join(map(str, islice(items, 60)))}]")
