"""The answer of `kquota configs --alter --dry-run`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kquota.cli.configs.answer import HIDDEN, named_resource
from kquota.cli.output import Answer, Row, key, named
from kquota.quota.entity import Entity
from kquota.quota.limits import plain
from kquota.settings.resource import Resource


def _named(entity: Entity | Resource) -> Mapping[str, str | int | None]:
    return named_resource(entity) if isinstance(entity, Resource) else named(entity)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unwritten(Answer):
    """The values that a write would send. The value of a secret is None."""

    HEADER = ("entity", "operation", "key", "value")

    dry_run: bool = True
    altered: Entity | Resource = key(form=_named)
    added: Mapping[str, str | float | None] = key("set")
    deleted: tuple[str, ...] = key("delete")

    def text(self) -> Iterator[str]:
        sent = [f"set {name}={_sent(value)}" for name, value in self.added.items()]
        sent += [f"delete {name}" for name in self.deleted]
        yield f"{self.altered}: {'; '.join(sent)}"

    def rows(self) -> Iterator[Row]:
        for name, value in self.added.items():
            yield [str(self.altered), "set", name, _sent(value)]
        for name in self.deleted:
            yield [str(self.altered), "delete", name, None]


def unwritten(
    entity: Entity | Resource, added: Mapping[str, str | float | None], deleted: tuple[str, ...]
) -> Unwritten:
    """Return the answer of a dry run for one entity."""
    return Unwritten(altered=entity, added=added, deleted=deleted, closing_notes=("nothing was written",))


def _sent(value: str | float | None) -> str:
    if value is None:
        return HIDDEN
    return value if isinstance(value, str) else plain(value)
