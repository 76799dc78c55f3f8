"""What an operator asks for on one topic or broker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kquota.config.resource import Resource
from kquota.errors import Invalid


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigChange:
    """Keys to set and keys to delete on one resource; Invalid when there are none, or one key is in both."""

    resource: Resource
    add: Mapping[str, str] = field(default_factory=dict)
    delete: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.add and not self.delete:
            raise Invalid("nothing to change: give --add-config, --delete-config or both")
        if both := sorted(set(self.add) & set(self.delete)):
            raise Invalid(f"{', '.join(both)}: both added and deleted")
