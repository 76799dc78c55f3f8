"""CREATE, GROW, DELETE UNDER KIP-599: what a controller mutation quota rejects is sent again when it may be.

A program needs no more than this: a cluster from `kquota.connect`, and these names.
"""

from kquota.errors import QuotaViolatedException
from kquota.mutation.admin import create_partitions, create_topics, delete_topics
from kquota.mutation.request import Creation

__all__ = ["Creation", "QuotaViolatedException", "create_partitions", "create_topics", "delete_topics"]
