"""Measures the throughput of a real client on scratch topics (`probe`), and the mutation rate that a controller
sustains (`find_limit`).

A program needs only a cluster from `kquota.connect` and these names. Each name is imported when it is first used, so
that `kquota quota --help`, which reads only the bounds of the options, starts fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kquota.probe.admin import Result, find_limit, probe
    from kquota.probe.ladder import Held, Limit, Operation, Step
    from kquota.probe.load import Kind
    from kquota.probe.verdict import Reading, Verdict

__all__ = [
    "Held",
    "Kind",
    "Limit",
    "Operation",
    "Reading",
    "Result",
    "Step",
    "Verdict",
    "find_limit",
    "probe",
]


def __getattr__(name: str) -> object:
    if name in __all__:
        for module in ("load", "ladder", "verdict", "admin"):
            if hasattr(found := import_module(f"kquota.probe.{module}"), name):
                return getattr(found, name)
    raise AttributeError(f"module 'kquota.probe' has no attribute {name!r}")
