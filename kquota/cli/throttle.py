"""`kquota throttle`: what is throttled, by whom; set and given back; leftovers found and taken away."""

from __future__ import annotations

from typing import Final

import typer

from kquota.cli import throttle_clear, throttle_doctor, throttle_set, throttle_show
from kquota.cli.help import Command, Group, under

EPILOG: Final = """Examples:
  kquota throttle show --bootstrap-server localhost:9092
  kquota throttle doctor --bootstrap-server localhost:9092"""

app = typer.Typer(cls=Group, epilog=EPILOG, no_args_is_help=True)


@app.callback()
def group() -> None:
    """What replication throttles stand on the cluster, by whom; set them, give them back, clear what was left."""


app.command("show", cls=Command, epilog=throttle_show.EPILOG)(throttle_show.show)
app.command("set", cls=under(throttle_set.HEADINGS, Command), epilog=throttle_set.EPILOG)(throttle_set.set_)
app.command("clear", cls=Command, epilog=throttle_clear.EPILOG)(throttle_clear.clear)
app.command("doctor", cls=Command, epilog=throttle_doctor.EPILOG)(throttle_doctor.doctor)
