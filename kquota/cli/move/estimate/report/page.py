"""The page of `move estimate --report`: one HTML file for a change ticket, without a script, a font or an address."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC
from importlib import resources
from typing import Final

from kquota import __version__
from kquota.cli.move.estimate.answer import Estimate
from kquota.cli.move.estimate.report.markup import Markup, joined, tag
from kquota.cli.move.estimate.report.outlook import sure, told
from kquota.cli.move.estimate.report.sections import Ticket, sections
from kquota.cli.move.estimate.report.words import rate, size, time
from kquota.cli.move.estimate.verdict import UNFOLLOWED, why_outside
from kquota.cli.why_never import named_wave, why_never
from kquota.pace.share import Share, Side
from kquota.pace.waves import Waves

GENERATOR: Final = "kquota move estimate"
"""What the page's head says that made it: a file without it is not overwritten."""


def page(ticket: Ticket) -> str:
    """The whole page. The same ticket makes the same bytes."""
    title = f"Throttled move of {ticket.plan}"
    style = resources.files(__package__).joinpath("page.css").read_text(encoding="utf-8")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="generator", content=f"{GENERATOR} {__version__}"),
        tag("title", title),
        tag("style", Markup(style)),
    )
    body = tag("body", tag("main", tag("h1", title), _facts(ticket), _answer(ticket), *sections(ticket)), _foot(ticket))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _facts(ticket: Ticket) -> Markup:
    answer, health = ticket.answer, ticket.answer.measured.health
    each = joined(rate(answer.throttle), " on each broker")
    found = ", the smallest that meets the deadline" if answer.for_deadline else ""
    facts = {
        "Cluster": health.cluster or "not told by the sizes",
        "Sizes as of": health.time or "not told by the sizes",
        "Plan": ticket.plan,
        "Throttle": joined(each, found),
        "Report made": f"{ticket.made.astimezone(UTC):%Y-%m-%d %H:%M} UTC",
    }
    if ticket.asked.deadline is not None:
        facts["Deadline"] = time(ticket.asked.deadline)
    return tag("dl", *(joined(tag("dt", name), tag("dd", fact)) for name, fact in facts.items()))


def _answer(ticket: Ticket) -> Markup:
    """The one sentence that a board needs, and why."""
    answer = ticket.answer
    kind = {True: None, False: "never", None: "unknown"}[answer.judged.feasible]
    first, *why = (tag("p", line) for line in _verdict(answer))
    lines = [first, sure(answer.outlook.band), *why, *told(answer.outlook)]
    if answer.outlook.full:
        kind = "never"
    if (answer.window.empty or answer.judged.feasible is not False) and (outside := why_outside(answer)):
        kind = "never"
        lines.append(tag("p", f"Do not run it: {outside}.", class_="broken"))
    return tag("div", *lines, class_=" ".join(filter(None, ("answer", kind))), role="note")


def _verdict(answer: Estimate) -> Iterator[Markup]:
    pace = answer.judged
    share = pace.bottleneck
    if share is None:
        yield Markup("Nothing moves: every replica of the plan is where it should be.")
        return
    verb = "sends" if share.side is Side.LEADER else "receives"
    where = f" in {named_wave(pace)}" if isinstance(pace, Waves) else ""
    if pace.feasible is False:
        yield joined("The move can never finish.")
        yield joined(f"The bottleneck{where} is broker {share.broker}: {why_never(pace)}.")
        return
    if pace.feasible is None:
        yield joined(
            "How long it takes is not known: about ", time(pace.seconds_without_writes), " if nothing is written."
        )
        yield joined(
            f"Whether it can finish was not checked, since the write rates are unknown. If nothing is written, the "
            f"bottleneck{where} is broker {share.broker}, which {verb} ",
            *(size(share.bytes), "."),
        )
        return
    yield joined("The move can finish, in about ", time(pace.seconds), ".")
    because = _because(share)
    yield joined(f"The bottleneck{where} is broker {share.broker}, which {verb} ", size(share.bytes), ". ", *because)
    yield joined("No move can be faster than ", time(pace.least_seconds), ": its bytes by the throttle.")
    if pace.followed is False:
        yield joined(f"The expected time is {UNFOLLOWED}.")


def _because(share: Share) -> Iterator[str]:
    """Where the bottleneck's throttle goes."""
    assert share.needed is not None
    spent = [(share.keep_up, "followers in sync"), (share.writes, "what is written to the copies meanwhile")]
    told = [(rate(each), to) for each, to in spent if each]
    if not told:
        yield from ("Nobody writes to the copies: all of its throttle of ", rate(share.throttle), " is theirs.")
        return
    yield from ("Of its throttle of ", rate(share.throttle), ", ")
    for n, (each, to) in enumerate(told):
        yield from (each, f" go to {to}" if n == 0 else f" to {to}", " and " if n < len(told) - 1 else "; ")
    yield from (rate(share.throttle - share.needed), " are left to catch up.")


def _foot(ticket: Ticket) -> Markup:
    return tag("footer", f"Made by kquota {__version__} at {ticket.made.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}. ")
