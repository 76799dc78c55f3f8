"""Quotas as resources of the Terraform provider Mongey/kafka, each with an `import` block. kquota only writes them
(decision 0047).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

from kquota.quota.document import Document
from kquota.quota.entity import Entity
from kquota.quota.foreign import ForeignText, digits, divided
from kquota.quota.limits import Limits
from kquota.terms import DEFAULT, WIRE_TYPES

ONE: Final = "kafka_quota"
"""The resource type for an entity with one part."""
TWO: Final = "kafka_quota_composite"
"""The resource type for a user with a client-id. Only newer releases of the provider have this type."""
DEFAULT_ID: Final = "entity-default"
"""The name of a default entity in a resource id. The resource itself has no name for a default entity."""
_LABEL: Final = re.compile(r"[^A-Za-z0-9_-]+", re.A)
_LONGEST_LABEL: Final = 40
_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}


def write(document: Document) -> ForeignText:
    """Return a resource and an `import` block for each entity that the provider can hold, in the format of
    `terraform fmt`. The labels of the resources are unique. Everything else in the document is in `losses`.
    """
    held, losses = divided(document, _wrong)
    labels: dict[str, int] = {}
    blocks = ["\n".join(_blocks(entity, limits, _label(entity, labels))) for entity, limits in held.items()]
    return ForeignText(text="\n\n".join(blocks) + "\n" if blocks else "", losses=losses)


def _wrong(entity: Entity, limits: Limits) -> str | None:
    if not limits:
        return "the provider cannot create a quota without a limit"
    composite = len(list(entity.parts())) > 1
    for _, name in entity.parts():
        if name is DEFAULT:
            continue
        text = str(name)
        if text == DEFAULT_ID:
            return f"the provider treats the name {DEFAULT_ID} as the default entity"
        if "|" in text or (composite and ":" in text):
            return (
                f"the id of a {TWO if composite else ONE} cannot contain a name with {'| or :' if composite else '|'}"
            )
        if unicodedata.normalize("NFC", text) != text:
            return "Terraform stores names in Unicode form NFC, which would change this name"
        if "\0" in text:
            return "Terraform does not accept the character NUL"
    return None


def _label(entity: Entity, used: dict[str, int]) -> str:
    """Return a unique label. `used` has the highest number of each label."""
    words = "_".join("default" if name is DEFAULT else str(name) for _, name in entity.parts())
    kinds = "_".join(WIRE_TYPES[kind] for kind, _ in entity.parts())
    label = base = _LABEL.sub("_", f"{kinds}_{words}")[:_LONGEST_LABEL].strip("_")
    while label in used:
        used[base] += 1
        label = f"{base}_{used[base]}"
    used[label] = 1
    return label


def _blocks(entity: Entity, limits: Limits, label: str) -> Iterator[str]:
    parts = [(WIRE_TYPES[kind], None if name is DEFAULT else str(name)) for kind, name in entity.parts()]
    resource = ONE if len(parts) == 1 else TWO
    yield f'resource "{resource}" "{label}" {{'
    for kind, name in parts:
        yield from _single(kind, name) if resource == ONE else _component(kind, name)
    yield "  config = {"
    width = max(map(len, limits)) + 2
    for key, limit in limits.items():
        yield f"    {string(key):{width}} = {digits(limit)}"
    yield from ("  }", "}", "", "import {", f"  to = {resource}.{label}", f"  id = {string(_id(parts))}", "}")


def _single(kind: str, name: str | None) -> Iterator[str]:
    yield f'  entity_type = "{kind}"'
    if name is not None:
        yield f"  entity_name = {string(name)}"


def _component(kind: str, name: str | None) -> Iterator[str]:
    yield "  entity {"
    yield f'    type = "{kind}"'
    if name is not None:
        yield f"    name = {string(name)}"
    yield "  }"


def _id(parts: list[tuple[str, str | None]]) -> str:
    if len(parts) == 1:
        ((kind, name),) = parts
        return f"{DEFAULT_ID if name is None else name}|{kind}"
    return "|".join(sorted(f"{kind}:{DEFAULT_ID if name is None else name}" for kind, name in parts))


def string(text: str) -> str:
    """Quote text for HCL. `${` and `%{` would begin a template, so their first character is doubled.

    >>> print(string('a"b${c}'))
    "a\\"b$${c}"
    """
    quoted = "".join(map(_escaped, text)).replace("${", "$${").replace("%{", "%%{")
    return f'"{quoted}"'


def _escaped(char: str) -> str:
    if char in _SHORT:
        return _SHORT[char]
    if char.isprintable():
        return char
    return f"\\u{ord(char):04x}" if ord(char) <= 0xFFFF else f"\\U{ord(char):08x}"
