"""`kquota throttle`: what is throttled, by whom; set and given back; leftovers found and taken away."""

from __future__ import annotations

from typing import Final

import typer

from kquota.cli.help import Command, Group, under
from kquota.cli.throttle import clear, doctor, show
from kquota.cli.throttle import set as setting

EPILOG: Final = """Examples:
  kquota throttle show --bootstrap-server localhost:9092
  kquota throttle doctor --bootstrap-server localhost:9092"""

app = typer.Typer(cls=Group, epilog=EPILOG, no_args_is_help=True)


@app.callback()
def group() -> None:
    """What replication throttles stand on the cluster, by whom; set them, give them back, clear what was left."""


app.command("show", cls=Command, epilog=show.EPILOG)(show.show)
app.command("set", cls=under(setting.HEADINGS, Command), epilog=setting.EPILOG)(setting.set_)
app.command("clear", cls=Command, epilog=clear.EPILOG)(clear.clear)
app.command("doctor", cls=Command, epilog=doctor.EPILOG)(doctor.doctor)
