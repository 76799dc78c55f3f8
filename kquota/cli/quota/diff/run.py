"""`kquota quota diff`: read the document and the cluster, and show the differences."""

from __future__ import annotations

from kquota.cli.quota.comparison import compare, opened, read, warn_of
from kquota.cli.quota.diff.answer import Reviewed, reviewed
from kquota.cli.quota.diff.command import DiffOptions


def run(options: DiffOptions) -> Reviewed:
    """Raises the same errors as `apply` before its first write."""
    document = read(options.file, prune=options.prune)
    with opened(options.connection, with_configs=bool(document.throttles)) as cluster:
        found = compare(cluster, document, prune=options.prune)
        warn_of(cluster, found)
        return reviewed(found)
