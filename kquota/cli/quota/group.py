"""`kquota quota`: what Kafka's tools have no name for; the quotas of a whole cluster at once."""

from __future__ import annotations

from typing import Final

import typer

from kquota.cli.help import Command, Group, under
from kquota.cli.quota.explain import command as explain
from kquota.cli.quota.probe import command as probe
from kquota.cli.quota.probe.options import HEADINGS as OF_A_PROBE
from kquota.cli.quota.simulate import command as simulate
from kquota.cli.quota.simulate.options import HEADINGS as OF_A_SIMULATION

EPILOG: Final = """Examples:
  kquota quota explain --bootstrap-server localhost:9092 --user alice --client-id billing
  kquota quota export --bootstrap-server localhost:9092 > quotas.yaml"""

app = typer.Typer(cls=Group, epilog=EPILOG, no_args_is_help=True)


@app.callback()
def group() -> None:
    """The quotas of a whole cluster as one document; which one binds a client; what a load, or a real client, gets."""


def _document() -> None:
    from kquota.cli.quota.document import command as document

    app.command(cls=Command, epilog=document.EXPORT_EPILOG)(document.export)
    app.command(cls=Command, epilog=document.DIFF_EPILOG)(document.diff)
    app.command(cls=Command, epilog=document.APPLY_EPILOG)(document.apply)


_document()
app.command("explain", cls=Command, epilog=explain.EPILOG)(explain.explain)
app.command("simulate", cls=under(OF_A_SIMULATION, Command), epilog=simulate.EPILOG)(simulate.simulate)
app.command("probe", cls=under(OF_A_PROBE, Command), epilog=probe.EPILOG)(probe.probe)
