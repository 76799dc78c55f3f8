"""Reads the part of HCL that `kquota.quota.terraform` writes, independently of it.

`tests/quota/test_terraform_tool.py` gives the output to Terraform itself.
"""

from __future__ import annotations

import json
import re

from kquota.quota.entity import Entity, Name
from kquota.quota.limits import Limits
from kquota.terms import DEFAULT

_BLOCK = re.compile(r'^resource "(\w+)" "([^"]+)" \{\n(.*?)^\}\n', re.M | re.S)
_IMPORT = re.compile(r'^import \{\n  to = (\S+)\n  id = ("(?:[^"\\]|\\.)*")\n\}', re.M)
_SINGLE = re.compile(r'^  entity_type = "([^"]+)"\n(?:  entity_name = ("(?:[^"\\]|\\.)*")\n)?', re.M)
_PART = re.compile(r'^  entity \{\n    type = "([^"]+)"\n(?:    name = ("(?:[^"\\]|\\.)*")\n)?  \}\n', re.M)
_LIMIT = re.compile(r'^    "(\w+)" += ([0-9.]+)$', re.M)
_PARTS = {"user": "user", "client-id": "client_id", "ip": "ip"}


def entities_in(text: str) -> dict[Entity, Limits]:
    """Return the quotas of all resources. Fail for a label that is not unique."""
    found: dict[Entity, Limits] = {}
    labels = set()
    for kind, label, body in _BLOCK.findall(text):
        parts = (_SINGLE if kind == "kafka_quota" else _PART).findall(body)
        entity = Entity(**{_PARTS[word]: _name(written) for word, written in parts})
        assert entity not in found
        assert (kind, label) not in labels
        labels.add((kind, label))
        found[entity] = {key: float(limit) for key, limit in _LIMIT.findall(body)}
    return found


def ids_in(text: str) -> dict[str, str]:
    """Return the id of each import block, by the address of its resource."""
    found = {to: _text(written) for to, written in _IMPORT.findall(text)}
    assert found.keys() == {f"{kind}.{label}" for kind, label, _ in _BLOCK.findall(text)}
    return found


def _name(written: str) -> Name:
    return _text(written) if written else DEFAULT


def _text(written: str) -> str:
    long = re.sub(r"(?<!\\)((?:\\\\)*)\\U([0-9a-f]{8})", lambda m: m[1] + chr(int(m[2], 16)), written)
    text: str = json.loads(re.sub(r"([$%])\1\{", r"\1{", long))
    return text
