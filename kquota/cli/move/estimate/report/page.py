"""The page of `move estimate --report`: one HTML file for a change ticket, without scripts, fonts or links."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kquota import __version__
from kquota.cli import local_files
from kquota.cli.connection import Connection
from kquota.cli.contract import say
from kquota.cli.formats import printable
from kquota.cli.keeping_up import named_wave, why_never
from kquota.cli.move.estimate.answer import Estimate
from kquota.cli.move.estimate.outlook import band_source, may_fit, warnings, why_full
from kquota.cli.move.estimate.report import commands
from kquota.cli.move.estimate.report.plots import must_be_installed
from kquota.cli.move.estimate.report.sections import Ticket, Wanted, carried, sources, stored, times
from kquota.cli.move.estimate.running import running_words
from kquota.cli.move.estimate.text import writes_from
from kquota.cli.move.estimate.verdict import UNFOLLOWED
from kquota.cli.move.log_dir_time import time_line
from kquota.cli.suggestion import readable_again
from kquota.list_text import named_brokers
from kquota.measure import counted, human_bytes, human_duration, human_rate
from kquota.pace.enforcement import START_SECONDS, TURNOVER_SECONDS
from kquota.reassign.plan import Plan
from kquota.spark.plan_files import PlanFiles

if TYPE_CHECKING:
    from jinja2 import Environment

_GENERATOR: Final = "kquota move estimate"
"""The generator in the head of a page. kquota overwrites only a file that is empty or has this generator."""
_ROWS: Final = 20
"""The maximum number of rows in a table."""
_FUNCTIONS: Final = (
    *(band_source, counted, may_fit, named_brokers, named_wave),
    *(running_words, time_line, warnings, why_full, why_never, writes_from),
)
"""The functions that templates call by their Python names."""


def page(ticket: Ticket) -> str:
    """Return the report as an HTML page. Equal tickets give the same page."""
    answer = ticket.answer
    moves = bool(answer.pace.shares)
    return (
        environment(__package__, _FUNCTIONS)
        .get_template("page.html.jinja")
        .render(
            generator=_GENERATOR,
            commands=commands,
            start_seconds=START_SECONDS + TURNOVER_SECONDS,
            unfollowed=UNFOLLOWED,
            ticket=ticket,
            answer=answer,
            made=ticket.made.astimezone(UTC),
            rows=_ROWS,
            stored=stored(answer),
            rooms=sorted(answer.outlook.checked, key=itemgetter(0)),
            carried=carried(answer) if moves else None,
            times=times(answer) if moves else None,
            sources=sources(answer),
        )
    )


def wanted(path: Path | None, plan: Path, connection: Connection) -> Wanted | None:
    """Return the requested page, or None if no page is requested. Call this function before the job, to report errors
    early.

    Raises Refused if a library is missing, and Invalid for a path that cannot hold a page. Also raises the errors of
    `commands.cluster`.
    """
    if path is None:
        return None
    must_be_writable(path, _GENERATOR)
    # A plan from a pipe cannot be read again under its name.
    named = readable_again(plan) or commands.PLAN_PLACEHOLDER
    return Wanted(path=path, plan=named, cluster=commands.cluster(connection))


def knowing(wanted: Wanted, plan: Plan | PlanFiles) -> Wanted:
    """Return the requested page. If the plan is JSON lines or Parquet, the page names these files, and its `runnable`
    is False, because only `move estimate` reads these formats.
    """
    return wanted if isinstance(plan, Plan) else replace(wanted, plan=plan.name, runnable=False)


def write(wanted: Wanted, plan: Plan | PlanFiles, answer: Estimate, remarks: Iterable[str]) -> None:
    """Write the page, and report its path on stderr. Raises Refused if the page cannot be written.

    `remarks` are the notes and warnings about the inputs.
    """
    ticket = Ticket(wanted=knowing(wanted, plan), answer=answer, remarks=tuple(remarks), made=datetime.now(UTC))
    write_page(wanted.path, page(ticket))


def must_be_writable(path: Path, generator: str) -> None:
    """Raise Refused if a library is missing, and Invalid for a path that cannot hold a page. An existing file must be
    empty or have `generator` in its head.
    """
    must_be_installed()
    local_files.check_report(path, generator)


def write_page(path: Path, text: str) -> None:
    """Write the page, and report its path on stderr. Raises Refused if the page cannot be written."""
    local_files.write_report(path, text)
    say(f"report written: {path}")


def environment(package: str, functions: Iterable[Callable[..., object]]) -> Environment:
    """Return the Jinja environment with the templates of a package and the shared templates. Templates call `functions`
    by name.

    Templates escape every value that is not marked as HTML. An unknown name in a template raises UndefinedError.
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=ChoiceLoader([PackageLoader(package, ""), PackageLoader(__package__, "")]),
        autoescape=True,
        finalize=_visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    of_values = (human_bytes, human_duration, human_rate)
    made.globals |= {function.__name__: function for function in (*of_values, *functions)}
    made.globals |= {"grouped": "{:,}".format, "version": __version__}
    return made


def _visible(value: object) -> object:
    """Make control characters in a value visible before it is escaped. HTML stays unchanged."""
    return value if hasattr(value, "__html__") else printable(str(value))
