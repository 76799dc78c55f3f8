"""WHAT A CLIENT REALLY GETS: a load on a topic of our own, what came of it, and what its quota had promised.

A program needs no more than this: a cluster from `kquota.connect`, and these names.
"""

from kquota.probe.admin import Result, find_limit, probe
from kquota.probe.ladder import Held, Limit, Operation, Step
from kquota.probe.load import Kind
from kquota.probe.meter import Reading
from kquota.probe.verdict import Verdict

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
