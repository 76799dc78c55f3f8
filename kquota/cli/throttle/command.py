"""`kquota throttle`: show, set, restore and clean up replication throttles."""

from __future__ import annotations

from typing import Final

from kquota.cli import commands
from kquota.cli.throttle.clear import command as clear
from kquota.cli.throttle.doctor import command as doctor
from kquota.cli.throttle.set import command as set_
from kquota.cli.throttle.show import command as show

EPILOG: Final = """Examples:
  kquota throttle show --bootstrap-server localhost:9092
  kquota throttle doctor --bootstrap-server localhost:9092"""

app = commands.group("throttle", EPILOG)

commands.add(app, "show", show.ShowOptions, epilog=show.EPILOG)
commands.add(app, "set", set_.SetOptions, epilog=set_.EPILOG, headings=set_.HEADINGS)
commands.add(app, "clear", clear.ClearOptions, epilog=clear.EPILOG)
commands.add(app, "doctor", doctor.DoctorOptions, epilog=doctor.EPILOG)
