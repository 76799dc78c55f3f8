"""What an operator asks for on one topic or broker, and when it is seen to be in force."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kquota.config.resource import Entry, Resource
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

    def seen(self, before: Iterable[Entry], after: Iterable[Entry]) -> bool:
        """Whether `after` shows this change in force; keys that it does not name do not matter.

        A broker tells a value as it understood it (` 0500` as `500`), and of a password only that it is set. So a value
        that means the same, or that has changed since `before`, counts as seen.
        """
        stood = {entry.key: entry for entry in before if entry.dynamic}
        now = {entry.key: entry for entry in after if entry.dynamic}
        return not set(self.delete) & now.keys() and all(
            key in now
            and (now[key].sensitive or meaning(now[key].value or "") == meaning(asked) or now[key] != stood.get(key))
            for key, asked in self.add.items()
        )


def meaning(text: str) -> object:
    """What a broker may make of a value: a number, or words in any case, blanks around list items being nothing.

    >>> meaning(" 0500") == meaning("500"), meaning("compact, DELETE") == meaning("compact,delete")
    (True, True)
    """
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return [item.strip().lower() for item in text.split(",")]
