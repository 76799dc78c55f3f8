"""The throughput of a real client: a load on a scratch topic, its result, and the quota that applies.

A program needs only a cluster from `kquota.connect` and these names.
"""

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
