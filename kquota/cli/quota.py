"""`kquota quota`: what Kafka's tools have no name for; the quotas of a whole cluster at once."""

from __future__ import annotations

import typer

from kquota.cli import explain, probe, simulate

app = typer.Typer(no_args_is_help=True)


@app.callback()
def group() -> None:
    """The quotas of a whole cluster as one document; which one binds a client; what a load, or a real client, gets."""


def _document() -> None:
    from kquota.cli import document

    app.command(epilog=document.EXPORT_EPILOG)(document.export)
    app.command(epilog=document.DIFF_EPILOG)(document.diff)
    app.command(epilog=document.APPLY_EPILOG)(document.apply)


_document()
app.command("explain", epilog=explain.EPILOG)(explain.explain)
app.command("simulate", epilog=simulate.EPILOG)(simulate.simulate)
app.command("probe", epilog=probe.EPILOG)(probe.probe)
