"""The text of a document of quotas: parsing YAML, and writing YAML and JSON, without loss.

The key of a default entity, for example `default-user`, is outside the mappings `users`, `clients` and `ips`, because
every key in these mappings is a name.
"""

from __future__ import annotations

import json
import math
import sys
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, NoReturn

from kquota.errors import Invalid
from kquota.measure import exact_rate
from kquota.quota.document import MOST_PATTERNS, NO_ENTITY, Document, Scope, Throttles, order
from kquota.quota.entity import Entity, Name
from kquota.quota.limits import Limits, plain, value
from kquota.quota.yaml_source import SPLIT, Scalar, Source, quoted
from kquota.quota_keys import QUOTA_KEYS, quotas_of
from kquota.settings import ignored
from kquota.settings.resource import BROKERS, THROTTLE_KEYS, TOPICS, Resource, ResourceKind
from kquota.terms import DEFAULT

VERSION: Final = "1"
_LONGEST_KEY: Final = 1000  # YAML accepts 1,024 characters before the colon; longer keys begin with `? `.
_MOST_EQUAL: Final = 100
"""The maximum number of sets of limits that entities share in memory. Most entities of a large document have equal
limits.
"""

_MOST_ENTRIES: Final = 200_000
"""The maximum number of entities, brokers, topics and unreadable quotas in a document. This many entries take 50 MB of
memory.
"""

_DEFAULTS: Final = {
    "default-user": Entity(user=DEFAULT),
    "default-client": Entity(client_id=DEFAULT),
    "default-ip": Entity(ip=DEFAULT),
}
_NAMED: Final = {"users": "user", "clients": "client_id", "ips": "ip"}
_ORDER: Final = ("default-user", "users", "default-client", "clients", "default-ip", "ips")
_THROTTLES: Final = "replication-throttles"
_UNREADABLE: Final = "unreadable"
_KNOWN: Final = ("version", "owns", "protect", *_ORDER, _THROTTLES, _UNREADABLE)


def read(text: str, name: str) -> Document:
    """Parse the document in `text`. Error messages begin with `name`, the file.

    Raises Invalid, with line and column if they are known, for everything that kquota does not understand exactly:
    unknown or repeated keys, invalid values, anchors and tags. Also raises Invalid for a document that is too large.
    """
    return _Reading(Source(text, name)).document()


class _Reading:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._throttles: dict[Resource, Mapping[str, str]] = {}
        self._limits: dict[Entity, Limits] = {}
        self._lines = array("I")
        """The line of each entity in `_limits`, in the same order."""
        self._entries = 0
        self._equal: dict[tuple[tuple[str, float], ...], Limits] = {}
        self._owns: Scope | None = None
        self._protect = NO_ENTITY
        self._unreadable: tuple[str, ...] = ()

    def document(self) -> Document:
        self._source.begin()
        versioned = False
        for key in self._source.mapping("the document"):
            versioned = versioned or key.text == "version"
            self._section(key)
        self._source.end()
        if not versioned:
            self._source.refuse(1, 1, f"the version is missing. Begin with the line `version: {VERSION}`")
        return Document(
            limits=self._limits,
            owns=self._owns,
            protect=self._protect,
            throttles=self._throttles,
            unreadable=self._unreadable,
        )

    def _section(self, key: Scalar) -> None:
        if key.text == "version":
            version = self._source.scalar("version")
            if version.text != VERSION:
                self._refuse(version, f"version {version.text!r} is not supported. This kquota reads version {VERSION}")
        elif key.text == "owns":
            self._owns = self._scope(key)
        elif key.text == "protect":
            self._protect = self._scope(key)
        elif key.text in _DEFAULTS:
            self._entity(key, _DEFAULTS[key.text])
        elif key.text in _NAMED:
            for name in self._source.mapping(key.text, unique=False):
                self._entity(name, self._named(key.text, name, **{_NAMED[key.text]: name.text}))
        elif key.text == _THROTTLES:
            for kind in self._source.mapping(_THROTTLES):
                self._throttled(kind)
        elif key.text == _UNREADABLE:
            self._unreadable = tuple(self._counted(item).text for item in self._source.sequence(_UNREADABLE))
        else:
            self._refuse(key, f"unknown key {key.text!r}. Valid keys: {', '.join(_KNOWN)}")

    def _scope(self, key: Scalar) -> Scope:
        patterns: list[str] = []
        for item in self._source.sequence(key.text):
            with self._source.at(item, f"{key.text}: "):
                Scope(patterns=(item.text,))
            if len(patterns) == MOST_PATTERNS:
                why = f"has more than {MOST_PATTERNS:,} patterns. Use fewer patterns that match more names"
                self._refuse(item, f"{key.text}: {why}")
            patterns.append(item.text)
        with self._source.at(key, f"{key.text}: "):
            return Scope(patterns=tuple(patterns))

    def _counted(self, at: Scalar) -> Scalar:
        self._entries += 1
        if self._entries > _MOST_ENTRIES:
            self._refuse(at, f"the document has more than {_MOST_ENTRIES:,} entries. {SPLIT}")
        return at

    def _named(
        self, what: str, at: Scalar, user: Name | None = None, client_id: Name | None = None, ip: Name | None = None
    ) -> Entity:
        with self._source.at(at):
            entity = Entity(user=user, client_id=client_id, ip=ip)
        if entity in self._limits:
            self._source.refuse_repeated(what, at, self._lines[list(self._limits).index(entity)])
        return entity

    def _entity(self, at: Scalar, entity: Entity) -> None:
        self._counted(at)
        whose = str(entity)
        allowed = quotas_of([kind for kind, _ in entity.parts()])
        nests = entity.user is not None and entity.client_id is None
        found: dict[str, float] = {}
        for key in self._source.mapping(whose):
            if key.text in allowed:
                found[sys.intern(key.text)] = self._value(whose, key.text)
            elif nests and key.text == "clients":
                clients = f"{whose}: clients"
                for name in self._source.mapping(clients, unique=False):
                    self._entity(name, self._named(clients, name, user=entity.user, client_id=name.text))
            elif nests and key.text == "default-client":
                self._entity(key, replace(entity, client_id=DEFAULT))
            else:
                known = (*allowed, "clients", "default-client") if nests else allowed
                self._refuse(key, f"{whose}: unknown key {key.text!r}. Valid keys here: {', '.join(known)}")
        self._limits[entity] = self._shared(found)
        self._lines.append(at.line)

    def _shared(self, limits: Limits) -> Limits:
        key = tuple(limits.items())
        if len(self._equal) < _MOST_EQUAL:
            return self._equal.setdefault(key, limits)
        return self._equal.get(key, limits)

    def _throttled(self, section: Scalar) -> None:
        if section.text == "default-broker":
            self._throttle(Resource(kind=BROKERS, name=DEFAULT))
        elif section.text in THROTTLE_KEYS:
            kind: ResourceKind = BROKERS if section.text == BROKERS else TOPICS
            for name in self._source.mapping(section.text):
                with self._source.at(self._counted(name)):
                    resource = Resource(kind=kind, name=name.text)
                self._throttle(resource)
        else:
            known = ", ".join(("default-broker", *THROTTLE_KEYS))
            self._refuse(section, f"{_THROTTLES}: unknown key {section.text!r}. Valid keys here: {known}")

    def _throttle(self, resource: Resource) -> None:
        found = {}
        for key in self._source.mapping(str(resource)):
            if key.text not in THROTTLE_KEYS[resource.kind]:
                known = ", ".join(THROTTLE_KEYS[resource.kind])
                self._refuse(key, f"{resource}: unknown key {key.text!r}. Valid keys here: {known}")
            written = self._source.scalar(f"{resource}: {key.text}")
            with self._source.at(written, f"{resource}: "):
                found[key.text] = ignored.value(resource, key.text, written.text)
        self._throttles[resource] = found

    def _value(self, whose: str, key: str) -> float:
        written = self._source.scalar(f"{whose}: {key}")
        with self._source.at(written, f"{whose}: "):
            return value(key, written.text)

    def _refuse(self, at: Scalar, why: str) -> NoReturn:
        self._source.refuse(at.line, at.column, why)


def written(key: str, limit: float) -> str:
    """Format a limit without loss. Byte rates have a unit if the number then has fewer digits.

    >>> written("producer_byte_rate", 52428800.0), written("request_percentage", 12.5)
    ('50MiB/s', '12.5')
    """
    if QUOTA_KEYS[key].in_bytes and limit.is_integer() and limit > 0:
        return exact_rate(int(plain(limit)))
    return plain(limit)


def unfit(limits: Mapping[Entity, Limits]) -> Iterator[tuple[Entity, str]]:
    """Yield (entity, key) of each limit that is set but not valid in a document, for example NaN or 0, in display
    order.
    """
    for entity in sorted(limits, key=Entity.order):
        for key, limit in sorted(limits[entity].items()):
            try:
                value(key, written(key, limit))
            except Invalid:
                yield entity, key


def text(document: Document) -> str:
    """Return the document as YAML in its canonical form. If no limit is `unfit`, `read` returns the same document,
    plus an entity without limits for each user that the document names only together with a client-id.
    """
    lines = [f"version: {VERSION}"]
    for key, scope in (("owns", document.owns), ("protect", document.protect)):
        if scope is not None and scope != NO_ENTITY:
            lines += [f"{key}:", *(f"  - {quoted(pattern)}" for pattern in scope.patterns)]
        elif scope is not None and key == "owns":
            lines.append("owns: []")
    _write(lines, _tree(document.limits) | _throttles_tree(document.throttles), "")
    if document.unreadable:
        lines += [f"{_UNREADABLE}:", *(f"  - {quoted(line)}" for line in document.unreadable)]
    return "\n".join(lines) + "\n"


def as_json(document: Document) -> str:
    """Return the document as JSON, with the same keys as the YAML of `text`. `read` also accepts it if no limit is
    `unfit`. Limits are numbers in Kafka's units, or text for NaN and infinity.
    """
    top: dict[str, object] = {"version": int(VERSION)}
    if document.owns is not None:
        top["owns"] = list(document.owns.patterns)
    if document.protect != NO_ENTITY:
        top["protect"] = list(document.protect.patterns)
    tree = _numbers(_tree(document.limits) | _throttles_tree(document.throttles))
    if document.unreadable:
        tree[_UNREADABLE] = list(document.unreadable)
    return _printable(json.dumps(top | tree, ensure_ascii=False, indent=2))


_Tree = dict[str, Any]
"""The nested keys of a document. A value is another tree, a limit as a number, or a throttle as text. In the tree for
JSON, limits and throttles have their JSON values, and the unreadable quotas are a list.
"""


def _tree(limits: Mapping[Entity, Limits]) -> _Tree:
    top: _Tree = {}
    for entity in sorted(limits, key=Entity.order):
        body = top
        for word, name in (("user", entity.user), ("client", entity.client_id), ("ip", entity.ip)):
            if name is DEFAULT:
                body = body.setdefault(f"default-{word}", {})
            elif name is not None:
                body = body.setdefault(f"{word}s", {}).setdefault(name, {})
        body.update(sorted(limits[entity].items()))
    return {key: top[key] for key in _ORDER if key in top}


def _throttles_tree(throttles: Throttles) -> _Tree:
    found: _Tree = {}
    for resource in sorted(throttles, key=order):
        name, held = resource.name, dict(sorted(throttles[resource].items()))
        if name is DEFAULT:
            found["default-broker"] = held
        else:
            found.setdefault(resource.kind, {})[name] = held
    return {_THROTTLES: found} if found else {}


def _write(lines: list[str], tree: _Tree, indent: str) -> None:
    for key, below in tree.items():
        name = quoted(key)
        head = f"{indent}{name}:" if len(name) <= _LONGEST_KEY else f"{indent}? {name}\n{indent}:"
        if isinstance(below, float):
            lines.append(f"{head} {written(key, below)}")
        elif isinstance(below, str):
            lines.append(f"{head} {exact_rate(int(below)) if below.isdecimal() else quoted(below)}")
        elif below:
            lines.append(head)
            _write(lines, below, indent + "  ")
        else:
            lines.append(f"{head} {{}}")


def _numbers(tree: _Tree) -> _Tree:
    return {key: _numbers(below) if isinstance(below, dict) else leaf(below) for key, below in tree.items()}


def leaf(value: float | str) -> int | float | str:
    """Convert a limit or a throttle for JSON, which has no NaN and no infinity: to a number if possible, otherwise to
    text.
    """
    if isinstance(value, str):
        return int(value) if value.isdecimal() else value
    if not math.isfinite(value):
        return repr(value)
    return int(plain(value)) if value.is_integer() else value


def _printable(document: str) -> str:
    """Replace each character that YAML or a terminal does not accept with a JSON escape. Line breaks and characters
    above U+FFFF do not change.
    """
    return "".join(
        char if char.isprintable() or char == "\n" or ord(char) > 0xFFFF else f"\\u{ord(char):04x}" for char in document
    )
