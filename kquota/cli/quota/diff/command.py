"""`kquota quota diff`: show what a document would change in the quotas of a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kquota.cli.connection import Unrecorded
from kquota.cli.options import Output, Prune, QuotaFile, TableFormat

EPILOG: Final = """Exit codes: 0 nothing would change, 8 something would.

Examples:
  kquota quota diff --bootstrap-server localhost:9092 quotas.yaml
  kquota quota diff --zookeeper localhost:2181 quotas.yaml --prune --output tsv"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffOptions:
    """Show what `apply` would change, key by key, and the hash that identifies this change."""

    connection: Unrecorded
    file: QuotaFile
    prune: Prune = False
    output: TableFormat = Output.text
