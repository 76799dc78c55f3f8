"""`kquota quota export`: read all quotas and, if requested, the replication throttles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kquota.cli import world
from kquota.cli.output import Answer, hidden
from kquota.cli.quota import throttles
from kquota.cli.quota.comparison import opened
from kquota.cli.quota.export.command import ExportOptions
from kquota.quota.document import Document, as_json, text, unfit

HEADER: Final = """\
# Quotas of a Kafka cluster, for `kquota quota diff` and `kquota quota apply`.
# An entity that is named here has exactly the limits written here. Other entities stay unchanged, unless
# `owns: [patterns]` covers them and --prune is given. Byte rates are per broker and accept units.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported(Answer):
    """The quotas of a cluster in the form that `quota diff` and `quota apply` read."""

    quotas: Document = hidden()

    def text(self) -> Sequence[str]:
        return (HEADER + text(self.quotas)).splitlines()

    def document(self) -> str:
        return as_json(self.quotas)


def run(options: ExportOptions) -> Exported:
    """Warns of each limit that is not valid in a document."""
    with opened(options.connection, with_configs=options.replication_throttles) as cluster:
        found = {} if cluster.configs is None else throttles.every(cluster.configs)
        document = Document(limits=cluster.quotas.everything(), throttles=found)
    for entity, key in unfit(document.limits):
        world.warn(
            f"{entity}: {key} is {document.limits[entity][key]!r}, which is not valid in a document. "
            "Correct it in the document before you apply it"
        )
    return Exported(quotas=document)
