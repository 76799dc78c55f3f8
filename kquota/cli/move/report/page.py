"""The page of `move report RUN --report`: one HTML file with the style and the plots of an estimate's page."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kquota.cli import local_files
from kquota.cli.contract import say
from kquota.cli.move.estimate.report import plots
from kquota.cli.move.estimate.report.page import environment
from kquota.cli.move.report.answer import UNWATCHED, RunReport, facts, moment

_GENERATOR: Final = "kquota move report"
"""The generator in the head of a page. kquota does not overwrite a file that lacks it."""
_ROWS: Final = 20


def must_be_writable(path: Path) -> None:
    """Raise Refused if a library is missing, Invalid for a path that cannot hold a page."""
    plots.must_be_installed()
    local_files.check_report(path, _GENERATOR)


def write(path: Path, answer: RunReport) -> None:
    """Write the page, and report its path on stderr. Raises Refused if the page cannot be written."""
    local_files.write_report(path, page(answer))
    say(f"report written: {path}")


def page(answer: RunReport) -> str:
    """Return the whole page. Equal answers give the same page."""
    both = [to for to in answer.brokers if to.expected is not None and to.seconds is not None]
    return (
        environment(__package__, [moment])
        .get_template("run.html.jinja")
        .render(
            answer=answer,
            run=answer.summary,
            facts=list(facts(answer)),
            generator=_GENERATOR,
            rows=_ROWS,
            unwatched=UNWATCHED,
            course=_course(answer) if answer.watched else None,
            compared=plots.compared(
                [to.broker for to in both], [to.expected or 0.0 for to in both], [to.seconds or 0.0 for to in both]
            )
            if both
            else None,
        )
    )


def _course(answer: RunReport) -> plots.Plot:
    readings = [(one.seconds, one.rate) for one in answer.readings if one.rate is not None]
    before = next(one.seconds for one in answer.readings if one.copied is not None)
    end = max(readings[-1][0], answer.summary.seconds or 0.0)
    changes = [change for change in answer.changes if not change.settings]
    first = changes[0].before if changes else answer.summary.throttle
    throttles = [(0.0, first), *((change.seconds, change.rate) for change in changes)]
    known = [(seconds, float(rate)) for seconds, rate in throttles if rate is not None]
    return plots.course([(before, readings[0][1]), *readings], known, end)
