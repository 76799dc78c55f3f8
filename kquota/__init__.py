"""kquota: manage Kafka quotas, move partitions under a throttle, and restore every throttle afterwards."""

from __future__ import annotations

TYPE_CHECKING = False
"""Type checkers treat this name as true. `typing` is not imported, because its import would delay the signal handlers.
Until these handlers are set, Ctrl-C prints a traceback.
"""
if TYPE_CHECKING:
    from kquota.library import connect

__all__ = ["connect"]

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    if name == "connect":
        from kquota.library import connect  # imported here, because the import doubles the time of `kquota --version`

        return connect
    raise AttributeError(f"module 'kquota' has no attribute {name!r}")
