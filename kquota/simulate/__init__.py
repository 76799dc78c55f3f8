"""The quota arithmetic of a broker: when it accepts a request, and for how long it delays a client. A program needs
only the names in `__all__`.

The code reads no clock and no file. Time is an argument, in ms.
"""

from kquota.simulate.answer import Deploy, Flow, deploy, flow, rate_within
from kquota.simulate.delay import Bucket, Draft, Mutations, Spread, most_thread_ms, throttle_time_ms
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
    "most_thread_ms",
    "rate_within",
    "throttle_time_ms",
]
