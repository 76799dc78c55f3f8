"""Files of properties, which may be secrets: reading them, checking their permissions, and naming keys in messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from kquota.java_properties import entries

OTHERS: Final = 0o077
"""The permission bits of users other than the file's owner."""
_NAME: Final = re.compile(r"[a-z][a-z0-9]*([._-][a-z0-9]+)*([.][a-zA-Z0-9]+)?")
_SHOWN: Final = 12


def properties(path: Path, option: str) -> dict[str, str]:
    """Return the properties of a file. The last value of a repeated key counts. Raises Invalid as `entries`."""
    return dict(entries(path, option))


def tell_if_open(path: Path, what: str, tell: Callable[[str], None]) -> None:
    """Call `tell` with a warning if users other than the owner can read or change a file with secrets."""
    if path.stat().st_mode & OTHERS:
        tell(f"{what} holds secrets, and users other than its owner can read it. Run chmod 600 {path}")


def listed(found: Mapping[str, str], keys: Iterable[str]) -> str:
    """Return keys for a message.

    Keys that do not look like a property are only counted, because in a file of another kind they may be secrets.
    """
    named = sorted(key for key in keys if _NAME.fullmatch(key) and found[key])
    others = len(set(keys)) - len(named)
    shown = [*named[:_SHOWN], *([f"{len(named) - _SHOWN} more"] if len(named) > _SHOWN else [])]
    if others:
        shown.append(f"{others} line(s) that are not properties")
    return ", ".join(shown)
