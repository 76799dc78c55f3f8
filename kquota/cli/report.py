"""`move estimate --report`: the same answer as a page for a change ticket."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from kquota.cli.connection import Connection
from kquota.cli.contract import say
from kquota.errors import Refused

if TYPE_CHECKING:
    from kquota.cli.estimate import Estimate
    from kquota.cli.estimate_limits import Limits

Report: TypeAlias = Annotated[
    Path | None, typer.Option("--report", metavar="FILE", help="Write the answer as a page for a change ticket, too.")
]


def check(path: Path | None) -> None:
    """Before anything takes seconds. Raises Invalid for a place that cannot hold a page, Refused without matplotlib."""
    if path is None:
        return
    from kquota.cli.report_page import GENERATOR
    from kquota.stores import reports

    if find_spec("matplotlib") is None:
        raise Refused("--report draws with matplotlib, which is not installed: pip install 'kquota[report]'")
    reports.check(path, GENERATOR)


def write(
    path: Path | None, answer: Estimate, asked: Limits, plan: str, connection: Connection, remarks: Sequence[str]
) -> None:
    """Write the page, where one is asked for, and say so. Raises Refused where the disk says no."""
    if path is None:
        return
    from kquota.cli import report_commands
    from kquota.cli.report_page import page
    from kquota.cli.report_sections import Ticket
    from kquota.stores import reports

    assert answer.measured.moved is not None
    ticket = Ticket(
        answer=answer,
        asked=asked,
        moved=answer.measured.moved,
        plan=plan,
        cluster=report_commands.cluster(connection),
        remarks=tuple(remarks),
        made=datetime.now(UTC),
    )
    reports.write(path, page(ticket))
    say(f"the report is {path}")
