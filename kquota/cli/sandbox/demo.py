"""`kquota sandbox demo`: print the demo while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kquota.cli.contract import DONE, NOT_YET, worded
from kquota.cli.output import Lines
from kquota.cli.progress import downloading
from kquota.cli.sandbox.command import DemoOptions
from kquota.errors import KquotaError
from kquota.sandbox.demo import CLIENT_QUOTA, REASON, THROTTLE, DemoCommand, DemoOutput, demo

_CLIENT: Final = "--entity-type clients --entity-name greedy"
_USER: Final = "--entity-type users --entity-name alice --entity-type clients --entity-default"
_PLAN: Final = "--reassignment-json-file plan.json"
_ESTIMATE: Final = f"move estimate {_PLAN} --throttle {THROTTLE}"

COMMANDS: Final[Mapping[DemoCommand, str]] = {
    DemoCommand.SET_QUOTA: f"configs --alter --add-config producer_byte_rate={CLIENT_QUOTA} {_CLIENT}",
    DemoCommand.SHOW_QUOTA: f"configs --describe {_CLIENT}",
    DemoCommand.REMOVE_QUOTA: f"configs --alter --delete-config producer_byte_rate {_CLIENT}",
    DemoCommand.TAKE_SNAPSHOT: "log-dirs --snapshot history",
    DemoCommand.SHARE_RECORD: "record share",
    DemoCommand.ESTIMATE: _ESTIMATE,
    DemoCommand.ESTIMATE_AS_JSON: f"{_ESTIMATE} --output json",
    DemoCommand.MOVE: f"move run plan.json --throttle {THROTTLE} --reason '{REASON}'",
    # Another state folder acts as another host, because journals belong to one host.
    DemoCommand.STATUS_ELSEWHERE: "move status --state-dir other-host",
    DemoCommand.REPORT: "move report --state-dir other-host",
    DemoCommand.SET_QUOTAS_OF_USER: (
        f"configs --alter --add-config producer_byte_rate={CLIENT_QUOTA},request_percentage=50 {_USER}"
    ),
    DemoCommand.SHOW_QUOTAS_OF_USER: f"configs --describe {_USER}",
    DemoCommand.REMOVE_QUOTAS_OF_USER: f"configs --alter --delete-config producer_byte_rate,request_percentage {_USER}",
}


def run(options: DemoOptions) -> Lines:  # noqa: ARG001 - the command has no options
    """Run the demo. The exit code is 8 if Kafka cannot be downloaded, otherwise 0. Raises KquotaError if a step
    fails.
    """
    with downloading() as report:
        whole = demo(DemoOutput(line=_line, progress=report, commands=COMMANDS))
    return Lines(lines=(), code=DONE if whole else NOT_YET)


def _line(*parts: str | KquotaError) -> None:
    print(worded(KquotaError(*parts)), flush=True)
