"""`kquota quota`: the options of `export`, `diff`, `apply` and `explain`, and the registration of all its commands."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from kquota.cli import commands
from kquota.cli.connection import Unrecorded
from kquota.cli.options import Output, OutputFormat, TableFormat, WritingOptions, Yes, flag, value
from kquota.cli.quota.advise import command as advise
from kquota.cli.quota.probe import command as probe
from kquota.cli.quota.simulate import command as simulate
from kquota.cli.quota.top import command as top

EPILOG: Final = """Examples:
  kquota quota explain --bootstrap-server localhost:9092 --user alice --client-id billing
  kquota quota export --bootstrap-server localhost:9092 > quotas.yaml"""


class QuotaFormat(StrEnum):
    """The format of a document of quotas."""

    kquota = "kquota"
    strimzi = "strimzi"
    terraform = "terraform"
    rpk = "rpk"


EXPORT_EPILOG: Final = """The document is YAML, or JSON with --output json. If you apply an exported
document, the next `quota export` prints the same document, byte for byte. With --format, kquota warns about each quota
that the format of the other tool cannot hold, and then exits with 8.

Examples:
  kquota quota export --bootstrap-server localhost:9092 > quotas.yaml
  kquota quota export --bootstrap-server localhost:9092 --format strimzi > users.yaml  # exit 0 or 8"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """Print all client quotas of the cluster as one document, in YAML or JSON."""

    connection: Unrecorded
    replication_throttles: Annotated[
        bool, flag("replication-throttles", "Also print the replication throttles of brokers and topics.")
    ] = False
    form: Annotated[
        QuotaFormat,
        value(
            "format",
            f"[{'|'.join(QuotaFormat)}]",
            "Format of the document: kquota's own, KafkaUser resources of Strimzi, resources of the Terraform "
            "provider Mongey/kafka, or the YAML of `rpk cluster quotas`.",
        ),
    ] = QuotaFormat.kquota
    output: OutputFormat = Output.text


QuotaFile: TypeAlias = Annotated[Path, typer.Argument(metavar="FILE", help="Document of quotas, or - for stdin.")]
Prune: TypeAlias = Annotated[
    bool,
    flag(
        "prune",
        "Also remove the limits of entities that `owns:` covers, except those that the document names or `protect:` "
        "covers.",
    ),
]
FormatToRead: TypeAlias = Annotated[
    QuotaFormat, value("format", "[kquota|strimzi|rpk]", "Format of FILE, as for `quota export`.")
]
DIFF_EPILOG: Final = """Exit codes: 0 if nothing would change, 8 if something would change.

Examples:
  kquota quota diff --bootstrap-server localhost:9092 quotas.yaml
  kquota quota diff --zookeeper localhost:2181 quotas.yaml --prune --output tsv"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffOptions:
    """Show what `apply` would change, key by key, and the hash that identifies this change."""

    connection: Unrecorded
    file: QuotaFile
    prune: Prune = False
    form: FormatToRead = QuotaFormat.kquota
    output: TableFormat = Output.text


APPLY_EPILOG: Final = """\
On a terminal, kquota shows the change and asks for confirmation. Without a terminal, give --yes, or
--change with the hash that you reviewed. Exit codes: 0 done, or nothing to change; 1 refused, or some entities
were not changed (--output json lists all of them).

Examples:
  kquota quota apply --bootstrap-server localhost:9092 quotas.yaml --yes
  kquota quota apply --bootstrap-server localhost:9092 quotas.yaml --prune --change sha256:1f0e9c2b7a6d5e43"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyOptions(WritingOptions):
    """Change the quotas of the cluster to match the document. If they already match, nothing changes."""

    connection: Unrecorded
    file: QuotaFile
    prune: Prune = False
    form: FormatToRead = QuotaFormat.kquota
    yes: Yes = False
    change: Annotated[
        str | None,
        value("change", "HASH", "Apply without confirmation, and only if `quota diff` shows this hash for the change."),
    ] = None
    dry_run: Annotated[bool, flag("dry-run", "Print the changes, without sending them.")] = False
    output: OutputFormat = Output.text

    @property
    def asks(self) -> bool:
        return True

    @property
    def agreed(self) -> bool:
        return self.yes or self.change is not None


EXPLAIN_EPILOG: Final = """\
Give --user ANONYMOUS for a client that does not authenticate, and --client-id '' for a client that
sends no client-id. Exit codes: 0 done, 8 if --all reports a finding.

Examples:
  kquota quota explain --bootstrap-server localhost:9092 --user alice --client-id billing
  kquota quota explain --bootstrap-server localhost:9092 --all"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainOptions:
    """Explain which quota limits a client and why, which clients share the quota, and how much it allows."""

    connection: Unrecorded
    user: Annotated[
        str | None, value("user", "NAME", "User of the client.  [default: any user that no quota names]")
    ] = None
    client_id: Annotated[
        str | None,
        typer.Option(
            "--client-id",
            "--client",
            metavar="NAME",
            help="Client-id, '' for none.  [default: any client-id that no quota names]",
        ),
    ] = None
    ip: Annotated[str | None, value("ip", "ADDRESS", "IP address that the client connects from.")] = None
    all_: Annotated[bool, flag("all", "Check all quotas for mistakes and for limits without effect.")] = False
    output: TableFormat = Output.text


app = commands.group("quota", EPILOG)

commands.add(app, "export", ExportOptions, epilog=EXPORT_EPILOG, work="run.export")
commands.add(app, "diff", DiffOptions, epilog=DIFF_EPILOG, work="run.diff")
commands.add(app, "apply", ApplyOptions, epilog=APPLY_EPILOG, work="run.apply")
commands.add(app, "explain", ExplainOptions, epilog=EXPLAIN_EPILOG, work="explain.run")
commands.add(app, "top", top.TopOptions, epilog=top.EPILOG)
commands.add(app, "advise", advise.AdviseOptions, epilog=advise.EPILOG, headings=advise.HEADINGS)
commands.add(app, "simulate", simulate.SimulateOptions, epilog=simulate.EPILOG, headings=simulate.HEADINGS)
commands.add(app, "probe", probe.ProbeOptions, epilog=probe.EPILOG, headings=probe.HEADINGS)
