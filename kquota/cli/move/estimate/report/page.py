"""The page of `move estimate --report`: one HTML file for a change ticket, without scripts, fonts or links."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC
from typing import TYPE_CHECKING, Final

from kquota import __version__
from kquota.cli.formats import printable
from kquota.cli.keeping_up import named_wave, why_never
from kquota.cli.move.estimate.outlook import band_source, may_fit, warnings, why_full
from kquota.cli.move.estimate.report import commands
from kquota.cli.move.estimate.report.sections import Ticket, carried, rooms, sources, stored, times, unchecked
from kquota.cli.move.estimate.running import running_words
from kquota.cli.move.estimate.text import writes_from
from kquota.cli.move.estimate.verdict import UNFOLLOWED
from kquota.cli.move.log_dir_time import time_lines
from kquota.measure import counted, human_bytes, human_duration, human_rate
from kquota.pace.enforcement import START_SECONDS

if TYPE_CHECKING:
    from jinja2 import Environment

GENERATOR: Final = "kquota move estimate"
"""The generator in the head of a page. kquota does not overwrite a file that lacks it."""
_ROWS: Final = 20
"""The maximum number of rows in a table."""
_FUNCTIONS: Final = (
    *(band_source, counted, may_fit, named_wave),
    *(running_words, time_lines, warnings, why_full, why_never, writes_from),
)
"""The functions that templates call by their Python names."""


def page(ticket: Ticket) -> str:
    """Return the whole page. Equal tickets give the same page."""
    answer = ticket.answer
    moves = bool(answer.pace.shares)
    return (
        environment(__package__, _FUNCTIONS)
        .get_template("page.html.jinja")
        .render(
            generator=GENERATOR,
            commands=commands,
            start_seconds=START_SECONDS,
            unfollowed=UNFOLLOWED,
            ticket=ticket,
            answer=answer,
            made=ticket.made.astimezone(UTC),
            rows=_ROWS,
            stored=stored(ticket) if ticket.moved.held else None,
            rooms=rooms(answer.outlook),
            unchecked=unchecked(answer.outlook, _ROWS),
            carried=carried(answer) if moves else None,
            times=times(ticket) if moves else None,
            sources=sources(answer),
        )
    )


def environment(package: str, functions: Iterable[Callable[..., object]]) -> Environment:
    """Return the Jinja environment with the templates of a package and the shared templates. Templates call `functions`
    by name.

    Templates escape every value. An unknown name raises an error.
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
