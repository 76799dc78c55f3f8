"""The shown commands that no test runs, each with the reason. One that no document shows any more fails the test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_CI: Final = ".ci/run is this very command"

NOT_RUN: Final[Mapping[str, str]] = {
    "make demo": _CI,
    "make test": _CI,
}
"""Command, without the comment that tells its exit, to reason."""
