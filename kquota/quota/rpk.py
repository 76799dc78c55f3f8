"""Quotas as `rpk cluster quotas describe` prints them and `rpk cluster quotas import` reads them, in YAML or JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kquota.quota.document import Document
from kquota.quota.entity import Entity, Name
from kquota.quota.foreign import ForeignText, LimitReader, digits, divided
from kquota.quota.limits import Limits
from kquota.quota.yaml_source import Source, YamlNode, quoted
from kquota.quota_keys import quotas_of
from kquota.terms import DEFAULT, WIRE_DEFAULT, WIRE_TYPES

_PARTS: Final = {"user": "user", "client-id": "client_id", "ip": "ip"}


def write(document: Document) -> ForeignText:
    """Return the document that `rpk cluster quotas import` reads. Everything that it cannot restore is in `losses`.

    `rpk cluster quotas describe` prints a default entity as `<default>`, but `import` reads this as a name (import.go).
    The import would set the limits for a user or client-id that is named `<default>`. It would also remove the limits
    of the default entity, and would not show this.
    """
    held, losses = divided(document, _wrong)
    lines = ["quotas:" if held else "quotas: []"]
    for entity, limits in held.items():
        lines += _quota(entity, limits)
    return ForeignText(text="".join(f"{line}\n" for line in lines), losses=losses)


def _wrong(entity: Entity, _limits: Limits) -> str | None:
    if any(name is DEFAULT for _, name in entity.parts()):
        return f"`rpk cluster quotas import` reads {WIRE_DEFAULT} as a name, so it cannot restore a default"
    if any(name == WIRE_DEFAULT for _, name in entity.parts()):
        return f"rpk writes the default entity as {WIRE_DEFAULT}, so no name can be {WIRE_DEFAULT}"
    return None


def _quota(entity: Entity, limits: Limits) -> Iterator[str]:
    yield "  - entity:"
    for kind, name in sorted(entity.parts(), key=lambda part: WIRE_TYPES[part[0]]):
        yield f"      - name: {quoted(str(name))}"
        yield f"        type: {WIRE_TYPES[kind]}"
    yield "    values:" if limits else "    values: []"
    for key, limit in limits.items():
        yield f"      - key: {key}"
        yield f'        values: "{digits(limit)}"'


def read(text: str, name: str) -> Document:
    """Parse the output of `rpk cluster quotas describe --format yaml` or `json`. Error messages begin with `name`, the
    name of the file.

    For a cluster without quotas, rpk prints `{}`. `unreadable` of the result describes the entities of types that Kafka
    does not have, for example `client-id-prefix`. Raises Invalid for everything else that kquota does not understand
    exactly.
    """
    source = Source(text, name)
    found = _Quotas(source)
    for number, document in enumerate(source.documents("quotas", found.quota)):
        if number:
            source.refuse(
                document.line,
                document.column,
                "a second document begins here, but a file can contain only one document",
            )
        for key, node in source.keys(document, "the document").items():
            if key != "quotas":
                found.refuse(node, f"unknown key {key!r}. Valid keys: quotas")
            source.items(node, "quotas")
    return found.result()


class _Quotas(LimitReader):
    def quota(self, node: YamlNode) -> None:
        fields = self._fields(node, "a quota", ("entity", "values"))
        parts: dict[str, Name] = {}
        unknown = []
        for item in self._source.items(fields["entity"], "entity"):
            part = self._fields(item, "entity", ("name", "type"))
            kind = self._source.text(part["type"], "type")
            written = self._source.text(part["name"], "name")
            if kind not in _PARTS:
                unknown.append(f"{kind} {written!r}")
            elif _PARTS[kind] in parts:
                self.refuse(item, f"entity: has two names of type {kind}")
            else:
                parts[_PARTS[kind]] = DEFAULT if written == WIRE_DEFAULT else written
        if unknown:
            self.unreadable.append(f"{' '.join(unknown)}: Kafka does not have this entity type")
        else:
            self._add(node, parts, fields["values"])

    def _add(self, node: YamlNode, parts: dict[str, Name], values: YamlNode) -> None:
        entity = self.entity(node, **parts)
        allowed = quotas_of([kind for kind, _ in entity.parts()])
        limits: dict[str, float] = {}
        for item in self._source.items(values, f"{entity}: values"):
            pair = self._fields(item, f"{entity}: values", ("key", "values"))
            key = self._source.text(pair["key"], "key")
            if key not in allowed:
                self.refuse(pair["key"], f"{entity}: unknown key {key!r}. Valid keys here: {', '.join(allowed)}")
            if key in limits:
                self.refuse(pair["key"], f"{entity}: {key} is listed twice")
            limits[key] = self.number(pair["values"], str(entity), key)
        self.add(node, entity, limits)

    def _fields(self, node: YamlNode, what: str, names: tuple[str, ...]) -> dict[str, YamlNode]:
        found = self._source.keys(node, what)
        if set(found) != set(names):
            self.refuse(node, f"{what}: must have exactly the keys {' and '.join(names)}")
        return found
