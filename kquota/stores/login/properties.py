"""Properties that may be secrets: which file holds them, who may read it, and what a message may show of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from kquota.java_properties import entries

OTHERS: Final = 0o077
"""The permissions of everybody but a file's owner."""
_NAME: Final = re.compile(r"[a-z][a-z0-9]*([._-][a-z0-9]+)*([.][a-zA-Z0-9]+)?")
_SHOWN: Final = 12


def properties(path: Path, option: str) -> dict[str, str]:
    """A file's properties; of a key that stands there twice the last value. Raises Invalid as `entries` does."""
    return dict(entries(path, option))


def tell_if_open(path: Path, what: str, tell: Callable[[str], None]) -> None:
    """Tell when a file with secrets may be read or changed by its group, or by everybody."""
    if path.stat().st_mode & OTHERS:
        tell(f"{what} holds secrets, and users other than its owner can read it. Run chmod 600 {path}")


def listed(found: Mapping[str, str], keys: Iterable[str]) -> str:
    """Keys for a message. What looks like no property may be a secret, in a file that is something else: counted."""
    named = sorted(key for key in keys if _NAME.fullmatch(key) and found[key])
    others = len(set(keys)) - len(named)
    shown = [*named[:_SHOWN], *([f"{len(named) - _SHOWN} more"] if len(named) > _SHOWN else [])]
    if others:
        shown.append(f"{others} line(s) that are not properties")
    return ", ".join(shown)
