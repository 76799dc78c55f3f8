"""The warnings of `quota export` and `quota advise` about limits that are not valid in a document."""

from __future__ import annotations

from kquota.cli import world
from kquota.quota.document import Document
from kquota.quota.document_text import unfit


def warn_of_unfit(document: Document) -> None:
    """Print a warning about each limit of a printed document that `diff` and `apply` refuse, for example NaN or 0."""
    for entity, key in unfit(document.limits):
        world.warn(
            f"{entity}: {key} is {document.limits[entity][key]!r}, which is not valid in a document. "
            "Correct the value before you apply the document"
        )
