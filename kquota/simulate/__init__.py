"""THE BROKER'S OWN ARITHMETIC: when a load is let through, and when it waits. Pure; time is an argument, in ms.

A program needs no more than these names.
"""

from kquota.simulate.answer import Deploy, Flow, deploy, flow, rate_within
from kquota.simulate.bucket import Bucket
from kquota.simulate.delay import Mutations
from kquota.simulate.draft import Draft, Spread
from kquota.simulate.load import Manner, Quotas, Request

__all__ = [
    "Bucket",
    "Deploy",
    "Draft",
    "Flow",
    "Manner",
    "Mutations",
    "Quotas",
    "Request",
    "Spread",
    "deploy",
    "flow",
    "rate_within",
]
