"""`kquota quota`: commands that Kafka's tools do not have, for all quotas of a cluster at once."""

from __future__ import annotations

from typing import Final

import typer

from kquota.cli import commands
from kquota.cli.help import Group
from kquota.cli.quota.apply import command as apply
from kquota.cli.quota.diff import command as diff
from kquota.cli.quota.explain import command as explain
from kquota.cli.quota.export import command as export
from kquota.cli.quota.probe import command as probe
from kquota.cli.quota.simulate import command as simulate

EPILOG: Final = """Examples:
  kquota quota explain --bootstrap-server localhost:9092 --user alice --client-id billing
  kquota quota export --bootstrap-server localhost:9092 > quotas.yaml"""

app = typer.Typer(cls=Group, epilog=EPILOG, no_args_is_help=True)


@app.callback()
def group() -> None:
    """Manage all quotas of a cluster as one document, explain which one limits a client, and test what a load gets."""


commands.add(app, "export", export.ExportOptions, epilog=export.EPILOG)
commands.add(app, "diff", diff.DiffOptions, epilog=diff.EPILOG)
commands.add(app, "apply", apply.ApplyOptions, epilog=apply.EPILOG)
commands.add(app, "explain", explain.ExplainOptions, epilog=explain.EPILOG)
commands.add(app, "simulate", simulate.SimulateOptions, epilog=simulate.EPILOG, headings=simulate.HEADINGS)
commands.add(app, "probe", probe.ProbeOptions, epilog=probe.EPILOG, headings=probe.HEADINGS)
