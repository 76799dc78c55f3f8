"""Quotas as Strimzi's KafkaUser resources. `spec.quotas` of a resource has the limits of one user."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kquota.errors import Invalid
from kquota.quota.document import Document
from kquota.quota.entity import Entity
from kquota.quota.foreign import ForeignText, LimitReader, Loss, digits, divided
from kquota.quota.limits import Limits
from kquota.quota.yaml_source import Source, YamlNode, quoted
from kquota.terms import CONSUMER_BYTE_RATE, CONTROLLER_MUTATION_RATE, PRODUCER_BYTE_RATE, REQUEST_PERCENTAGE

FIELDS: Final = {
    PRODUCER_BYTE_RATE: "producerByteRate",
    CONSUMER_BYTE_RATE: "consumerByteRate",
    REQUEST_PERCENTAGE: "requestPercentage",
    CONTROLLER_MUTATION_RATE: "controllerMutationRate",
}
"""The field of each quota key that Strimzi supports. All fields except the last one are 32-bit integers in Strimzi's
Java classes.
"""
_KEYS: Final = {field: key for key, field in FIELDS.items()}
_INTEGERS: Final = tuple(key for key in FIELDS if key != CONTROLLER_MUTATION_RATE)
_LARGEST: Final = 2**31 - 1
API_VERSION: Final = "kafka.strimzi.io/v1"
_GROUP: Final = "kafka.strimzi.io/"
_KIND: Final = "KafkaUser"
_LISTS: Final = ("List", "KafkaUserList")
_NO_USERS: Final = "apiVersion: v1\nkind: List\nitems: []\n"
"""The document without users. An empty file would look as if it had not been written completely."""
_RESOURCE_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.A)
_LONGEST_NAME: Final = 253
_TLS_PREFIX: Final = "CN="
_TLS: Final = ("tls", "tls-external")
"""With these authentication types, Strimzi names the Kafka user `CN=` plus the resource name."""


def write(document: Document) -> ForeignText:
    """Return one KafkaUser for each user whose quotas a KafkaUser can hold. Everything else in the document is in
    `losses`.

    No KafkaUser has `authorization`. A KafkaUser has `authentication` only if the user name begins with `CN=`.
    """
    held, losses = divided(document, _wrong)
    names = {_resource_name(str(entity.user)) for entity in held}
    double = {name for name in names if {Entity(user=name), Entity(user=_TLS_PREFIX + name)} <= held.keys()}
    lines: list[str] = []
    for entity, limits in held.items():
        if (name := _resource_name(str(entity.user))) in double:
            why = f"users {name!r} and {_TLS_PREFIX + name!r} need the same KafkaUser, which can hold only one of them"
            losses = (*losses, Loss(what=str(entity), why=why))
        else:
            lines += _resource(str(entity.user), limits)
    return ForeignText(text="".join(f"{line}\n" for line in lines) or _NO_USERS, losses=losses)


def _wrong(entity: Entity, limits: Limits) -> str | None:
    if not isinstance(entity.user, str) or entity.client_id is not None:
        return "a KafkaUser can hold only the quotas of one named user"
    name = _resource_name(entity.user)
    if len(name) > _LONGEST_NAME or not _RESOURCE_NAME.fullmatch(name):
        return "the name is not a valid Kubernetes resource name"
    for key in _INTEGERS:
        limit = limits.get(key)
        if limit is not None and not (limit.is_integer() and limit <= _LARGEST):
            return f"{FIELDS[key]} must be a whole number, at most {_LARGEST}, and the limit is {digits(limit)}"
    return None


def _resource_name(user: str) -> str:
    return user.removeprefix(_TLS_PREFIX)


def _resource(user: str, limits: Limits) -> Iterator[str]:
    name = _resource_name(user)
    yield from ("---", f"apiVersion: {API_VERSION}", f"kind: {_KIND}", "metadata:", f"  name: {quoted(name)}", "spec:")
    if name != user:
        yield from ("  authentication:", "    type: tls-external")
    if not limits:
        yield "  quotas: {}"
        return
    yield "  quotas:"
    for key, field in FIELDS.items():
        if key in limits:
            yield f"    {field}: {digits(limits[key])}"


def read(text: str, name: str) -> Document:
    """Parse KafkaUser resources: one, several, or a List from kubectl. Error messages begin with `name`, the name of
    the file.

    A KafkaUser without `quotas` is not part of the result. `unreadable` of the result describes the resources of other
    kinds. Raises Invalid for limits that are not valid, for a user that is listed twice, and for a file or a resource
    that kquota cannot parse.
    """
    source = Source(text, name)
    found = _Users(source)
    for node in source.documents("items", found.item):
        found.document(node)
    return found.result()


@dataclass(frozen=True, slots=True, kw_only=True)
class _QuotaUser:
    at: YamlNode
    entity: Entity
    limits: Limits


class _Users(LimitReader):
    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._listed: list[_QuotaUser | str] = []
        self._wrong: Invalid | None = None

    def item(self, node: YamlNode) -> None:
        """Read an item before the kind of its document is known, because kubectl writes `kind` after the items.
        `document` keeps the item, or raises its error, only if the document is a List.
        """
        if self._wrong is None:
            try:
                self._listed += self._resources(node)
            except Invalid as error:
                self._wrong = error

    def document(self, node: YamlNode) -> None:
        listed, wrong, self._listed, self._wrong = self._listed, self._wrong, [], None
        resources = list(self._resources(node))
        if self._is_list(node):
            if wrong is not None:
                raise wrong
            resources = listed
        for one in resources:
            if isinstance(one, str):
                self.unreadable.append(one)
            else:
                self.add(one.at, one.entity, one.limits)

    def _is_list(self, node: YamlNode) -> bool:
        fields = self._source.keys(node, "a resource")
        return self._named(node, fields, "kind") in _LISTS and "items" in fields

    def _resources(self, node: YamlNode) -> Iterator[_QuotaUser | str]:
        """Yield the users with quotas, and a description of each resource of another kind."""
        fields = self._source.keys(node, "a resource")
        if self._is_list(node):
            for item in self._source.items(fields["items"], "items"):
                yield from self._resources(item)
            return
        kind, version = (self._named(node, fields, key) for key in ("kind", "apiVersion"))
        if kind != _KIND or not version.startswith(_GROUP):
            yield f"a resource of kind {kind} ({version})"
            return
        metadata = fields.get("metadata", node)
        name = self._named(metadata, self._source.keys(metadata, "metadata"), "name")
        yield from self._user(node, name, fields.get("spec"))

    def _user(self, node: YamlNode, name: str, spec: YamlNode | None) -> Iterator[_QuotaUser]:
        settings = {} if spec is None else self._source.keys(spec, f"KafkaUser {name!r}: spec")
        if "quotas" not in settings:
            return
        # An empty name gets no prefix, so that `entity` refuses it.
        entity = self.entity(node, user=_TLS_PREFIX + name if name and self._has_certificate(settings) else name)
        limits = {}
        for field, at in self._source.keys(settings["quotas"], f"KafkaUser {name!r}: quotas").items():
            key = _KEYS.get(field)
            if key is None:
                self.refuse(at, f"KafkaUser {name!r}: unknown key {field!r}. Valid keys: {', '.join(_KEYS)}")
            limits[key] = self.number(at, f"KafkaUser {name!r}", key)
        place = YamlNode("", node.line, node.column)  # without the content, because only the position is used
        yield _QuotaUser(at=place, entity=entity, limits=limits)

    def _has_certificate(self, settings: dict[str, YamlNode]) -> bool:
        if "authentication" not in settings:
            return False
        fields = self._source.keys(settings["authentication"], "authentication")
        return self._named(settings["authentication"], fields, "type") in _TLS

    def _named(self, node: YamlNode, fields: dict[str, YamlNode], key: str) -> str:
        if key not in fields:
            self.refuse(node, f"{key} is missing")
        return self._source.text(fields[key], key)
