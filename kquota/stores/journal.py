"""A run as lines of a journal: one JSON document each, under a checksum; the first is the run, the others its changes.

A line is the CRC-32 of the rest as eight hexadecimal digits, a space, the document, a newline. Whatever cut the last
line short, it is as if it had never been written.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any, Final, Literal, cast

from kquota.errors import Invalid, Refused
from kquota.measure import ByteRate
from kquota.reassign.plan import Plan, parse
from kquota.reassign.run import Purpose, Run
from kquota.reassign.throttle import Setting, Taken
from kquota.reassign.words import assignment
from kquota.terms import TopicPartition

VERSION: Final = 2
"""1 was a document that was replaced as a whole."""


def line(document: Mapping[str, Any]) -> bytes:
    """One line of a journal."""
    text = json.dumps(document, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def lines(data: bytes, where: str) -> tuple[list[dict[str, Any]], int]:
    """The documents of a journal and how many bytes of it are whole. Raises Refused for damage before the last line."""
    documents: list[dict[str, Any]] = []
    whole = 0
    while whole < len(data):
        end = data.find(b"\n", whole) + 1
        text = data[whole:end]
        if not end or text[:8] != b"%08x" % zlib.crc32(text[9:-1]):
            if end and end < len(data):
                raise Refused(f"{where}: line {len(documents) + 1} is damaged; {_BY_HAND}")
            break
        documents.append(json.loads(text[9:]))
        whole = end
    return documents, whole


def first(run: Run) -> dict[str, Any]:
    """The line that begins a run's journal."""
    return {"version": VERSION, **{name: write(getattr(run, name)) for name, (write, _) in _FIELDS.items()}}


def change(before: Run, after: Run) -> dict[str, Any]:
    """The line that makes `after` of `before`, the same run; {} where they are equal."""
    document = {
        name: write(getattr(after, name))
        for name, (write, _) in _FIELDS.items()
        if name != "taken" and getattr(after, name) != getattr(before, name)
    }
    differ = {s: taken for s, taken in after.taken.items() if before.taken.get(s) != taken}
    gone = [_setting(setting) for setting in before.taken if setting not in after.taken]
    more = {"taken": _taken(differ)} if differ else {}
    return document | more | ({"gone": gone} if gone else {})


def replay(documents: Sequence[Mapping[str, Any]], where: str) -> Run:
    """The run that the lines tell. Raises Refused, naming `where`, when a newer kquota wrote them, or none did."""
    try:
        if documents[0]["version"] != VERSION:
            raise Refused(
                f"{where}: is version {documents[0]['version']} of the journal, this kquota reads {VERSION}; "
                "use the kquota that wrote it"
            )
        latest = {name: document[name] for document in documents for name in _FIELDS if name in document}
        values = {name: read(latest[name]) for name, (_, read) in _FIELDS.items() if name != "taken"}
        return Run(**values, taken=_all_taken(documents))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, Invalid) as error:
        raise Refused(f"{where}: is no journal of kquota ({type(error).__name__}: {error}); {_BY_HAND}") from error


_BY_HAND: Final = "see what stands with kquota throttle show, then move this file away"


def _all_taken(documents: Iterable[Mapping[str, Any]]) -> dict[Setting, Taken]:
    found: dict[Setting, Taken] = {}
    for document in documents:
        for item in document.get("taken", ()):
            taken = _one_taken(item)
            found[taken.setting] = taken
        for item in document.get("gone", ()):
            found.pop(_one_setting(item), None)
    return dict(sorted(found.items()))


def _same(value: Any) -> Any:
    return value


def _plan(document: object) -> Plan:
    partitions = cast(dict[str, Any], document)["partitions"]
    return parse(json.dumps(document), "the plan on record") if partitions else Plan(targets={})


def _plan_document(plan: Plan) -> object:
    return json.loads(assignment(plan) if plan.log_dirs else plan.text())


def _when(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _rate(number: int | None) -> ByteRate | None:
    return None if number is None else ByteRate(int(number))


def _partitions(names: Iterable[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for name in sorted(names):
        found.setdefault(name.topic, []).append(name.partition)
    return found


def _names(document: Mapping[str, Sequence[int]]) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(topic, int(n)) for topic, numbers in document.items() for n in numbers)


def _setting(setting: Setting) -> dict[str, str]:
    return {"kind": setting.kind, "name": setting.name, "key": setting.key}


def _one_setting(item: Mapping[str, Any]) -> Setting:
    kind = item["kind"]
    if kind not in ("broker", "topic"):
        raise ValueError(f"unknown kind {kind!r}")
    return Setting(cast(Literal["broker", "topic"], kind), str(item["name"]), str(item["key"]))


def _taken(taken: Mapping[Setting, Taken]) -> list[dict[str, Any]]:
    return [{**_setting(s), "prior": mine.prior, "ours": list(mine.ours)} for s, mine in sorted(taken.items())]


def _one_taken(item: Mapping[str, Any]) -> Taken:
    prior = item["prior"]
    return Taken(
        setting=_one_setting(item),
        prior=None if prior is None else str(prior),
        ours=tuple(str(value) for value in item["ours"]),
    )


_FIELDS: Final[Mapping[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]]] = {
    "id": (str, str),
    "purpose": (lambda purpose: purpose.value, Purpose),
    "begun": (_when, _time),
    "rate": (_same, _rate),
    "log_dir_rate": (_same, _rate),
    "topic_ids": (dict, dict),
    "aborting": (bool, bool),
    "finished": (_when, _time),
    "handed_over": (_partitions, _names),
    "taken": (_taken, _same),
    "plan": (_plan_document, _plan),
    "rollback": (_plan_document, _plan),
}
"""Each field of a run: how it is written, and how it is read."""

assert set(_FIELDS) == {field.name for field in fields(Run)}
