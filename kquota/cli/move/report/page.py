"""The page of `move report RUN --report`: one HTML file with the style and the plots of an estimate's page."""

from __future__ import annotations

from kquota.cli.move.estimate.report import plots
from kquota.cli.move.estimate.report.page import environment
from kquota.cli.move.report.answer import UNWATCHED, RunReport, facts, moment

_ROWS = 20


def page(answer: RunReport, generator: str) -> str:
    """The whole page. The same answer gives the same bytes."""
    both = [to for to in answer.brokers if to.expected is not None and to.seconds is not None]
    return (
        environment(__package__, [moment])
        .get_template("run.html.jinja")
        .render(
            answer=answer,
            run=answer.summary,
            facts=list(facts(answer)),
            generator=generator,
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
    first = answer.changes[0].before if answer.changes else answer.summary.throttle
    throttles = [(0.0, first), *((change.seconds, change.rate) for change in answer.changes)]
    known = [(seconds, float(rate)) for seconds, rate in throttles if rate is not None]
    return plots.course([(before, readings[0][1]), *readings], known, end)
