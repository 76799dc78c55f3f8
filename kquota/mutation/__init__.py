"""Create, grow and delete topics under KIP-599. By default, if a mutation quota rejects topics, kquota sends these
topics again as soon as the quota allows them, until a timeout.

A program needs only a cluster from `kquota.connect` and these names.
"""

from kquota.errors import QuotaViolatedException
from kquota.mutation.admin import create_partitions, create_topics, delete_topics
from kquota.mutation.topic import Creation

__all__ = ["Creation", "QuotaViolatedException", "create_partitions", "create_topics", "delete_topics"]
