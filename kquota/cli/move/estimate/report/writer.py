"""`move estimate --report`: the same estimate as an HTML page for a change ticket."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from kquota.cli import local_files
from kquota.cli.connection import Connection
from kquota.cli.contract import say
from kquota.cli.move.estimate.answer import Estimate
from kquota.cli.move.estimate.limits import Limits
from kquota.cli.move.estimate.report import commands
from kquota.cli.move.estimate.report.page import GENERATOR, page
from kquota.cli.move.estimate.report.plots import must_be_installed
from kquota.cli.move.estimate.report.sections import Ticket
from kquota.reassign.plan import Plan
from kquota.spark.plan_files import PlanFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A requested page: its path, its plan, and the options that name the cluster.

    `runnable` is true if reassign-partitions accepts the plan. That requires Kafka's JSON.
    """

    path: Path
    plan: str
    cluster: tuple[str, ...]
    runnable: bool = True


def wanted(path: Path | None, plan: Path, connection: Connection) -> Wanted | None:
    """Return the requested page, or None if no page is requested. Call this function before the job, to report errors
    early.

    Raises Invalid for a path that cannot hold a page, Refused if a library is missing.
    """
    if path is None:
        return None
    must_be_installed()
    local_files.check_report(path, GENERATOR)
    # A plan from a pipe cannot be read again under its name.
    named = str(plan) if plan.is_file() else commands.PIPED
    return Wanted(path=path, plan=named, cluster=commands.cluster(connection))


def knowing(wanted: Wanted | None, plan: Plan | PlanFiles) -> Wanted | None:
    """Return the requested page with the name of the opened plan. A plan in JSON lines or Parquet is not runnable,
    because only `move estimate` reads these formats.
    """
    if wanted is None or isinstance(plan, Plan):
        return wanted
    return replace(wanted, plan=plan.name, runnable=False)


def write(wanted: Wanted, answer: Estimate, asked: Limits, remarks: Iterable[str]) -> None:
    """Write the page, and report its path on stderr. Raises Refused if the page cannot be written.

    `remarks` are the notes and warnings about the inputs.
    """
    assert answer.measured.moved is not None
    ticket = Ticket(
        answer=answer,
        asked=asked,
        moved=answer.measured.moved,
        plan=wanted.plan,
        cluster=wanted.cluster,
        runnable=wanted.runnable,
        remarks=tuple(remarks),
        made=datetime.now(UTC),
    )
    local_files.write_report(wanted.path, page(ticket))
    say(f"report written: {wanted.path}")
