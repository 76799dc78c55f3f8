"""`kquota quota export`: read every quota, and the replication throttles if they are asked for."""

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

_HEADER: Final = """\
# Quotas of a Kafka cluster, for `kquota quota diff` and `kquota quota apply`.
# What is named here has exactly the limits written here; what is not named is left alone, unless
# `owns: [patterns]` speaks for it and --prune is given. Byte rates are per broker and take units.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported(Answer):
    """The quotas of a cluster, as `quota diff` and `quota apply` read them."""

    quotas: Document = hidden()

    def text(self) -> Sequence[str]:
        return (_HEADER + text(self.quotas)).splitlines()

    def document(self) -> str:
        return as_json(self.quotas)


def run(options: ExportOptions) -> Exported:
    """Warns of each limit that is set and that no document may ask for."""
    with opened(options.connection, with_configs=options.replication_throttles) as cluster:
        found = {} if cluster.configs is None else throttles.every(cluster.configs)
        document = Document(limits=cluster.quotas.everything(), throttles=found)
    for entity, key in unfit(document.limits):
        world.warn(
            f"{entity}: {key} is {document.limits[entity][key]!r}, which no document may ask for; "
            "correct it in the document before you apply it"
        )
    return Exported(quotas=document)
