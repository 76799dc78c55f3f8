"""`kquota throttle`: what is throttled, by whom; set and given back; leftovers found and taken away."""

from __future__ import annotations

import typer

from kquota.cli import throttle_clear, throttle_doctor, throttle_set, throttle_show

app = typer.Typer(no_args_is_help=True)


@app.callback()
def group() -> None:
    """What replication throttles stand on the cluster, by whom; set them, give them back, clear what was left."""


app.command("show", epilog=throttle_show.EPILOG)(throttle_show.show)
app.command("set", epilog=throttle_set.EPILOG)(throttle_set.set_)
app.command("clear", epilog=throttle_clear.EPILOG)(throttle_clear.clear)
app.command("doctor", epilog=throttle_doctor.EPILOG)(throttle_doctor.doctor)
