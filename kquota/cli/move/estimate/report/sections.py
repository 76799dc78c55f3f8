"""A report section by section: what moves, who carries it, how long, under which limits, and how it is done."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from kquota.cli.move.estimate.answer import Estimate
from kquota.cli.move.estimate.limits import Limits
from kquota.cli.move.estimate.printed import others, writes_from
from kquota.cli.move.estimate.report import commands, outlook, plots
from kquota.cli.move.estimate.report.curve import curve
from kquota.cli.move.estimate.report.markup import Markup, joined, tag
from kquota.cli.move.estimate.report.words import note, number, rate, size, table, time
from kquota.cli.move.estimate.verdict import refusal
from kquota.measure import ByteRate, counted, human_bytes, human_duration, human_rate
from kquota.pace.enforcement import START_SECONDS
from kquota.pace.room import disks
from kquota.pace.share import Pace, Share, Side
from kquota.pace.waves import Waves
from kquota.pace.window import Bound
from kquota.sizes.moved import Moved

_NAMES: Final = 10
"""Files of sizes that are named: a history has thousands."""
_MOST: Final = 60
"""Brokers that one picture can hold."""
_FAR: Final = 5
"""Times the bytes stored: disks beyond it would make bars invisible."""
_ROWS: Final = 20
"""Rows that one table should."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """What a page tells: an estimate and what was asked for, the plan's name, the options that name the cluster.

    `remarks` are what was left out and what was taken for granted, `made` is when; `runnable` is whether
    reassign-partitions takes the plan.
    """

    answer: Estimate
    asked: Limits
    moved: Moved
    plan: str
    cluster: tuple[str, ...]
    remarks: tuple[str, ...]
    made: datetime
    runnable: bool = True


def sections(ticket: Ticket) -> Iterator[Markup]:
    """In the order in which a change board asks; where nothing moves, few are left."""
    pace = ticket.answer.pace
    if pace.shares:
        yield _section("What moves", *_topics(ticket))
    if ticket.moved.held:
        yield _section("Brokers before and after", *_stored(ticket), *outlook.disks(ticket.answer.outlook))
    if pace.shares:
        yield _section("What each broker carries", *_carried(ticket.answer))
        yield _section("Time against throttle", *_times(ticket))
        yield _section("Limits of the throttle", *_limits(ticket.answer))
    if ticket.answer.outlook.waves:
        yield _section("Waves, one after the other", *outlook.waves(ticket.answer.outlook.waves))
    yield _section("KIP-73's own estimate", *_kip(ticket.answer))
    yield _section("Where the numbers come from", *_sources(ticket))
    if pace.shares:
        yield _section("Commands, in their order", *_commands(ticket))


def _section(title: str, *inside: Markup) -> Markup:
    return tag("section", tag("h2", title), *inside)


def _topics(ticket: Ticket) -> Iterator[Markup]:
    measured, work, topics = ticket.answer.measured, ticket.answer.pace.work, ticket.moved.topics
    yield tag(
        "p",
        joined(size(work.bytes), f" in {counted(work.copies, 'copy')} of {counted(measured.moving, 'partition')}, of "),
        f"{counted(measured.partitions, 'partition')} in the sizes.",
    )
    rows = [(t.topic, number(t.partitions), number(t.copies), size(t.bytes)) for t in topics]
    if more := ticket.moved.topics_in_all - len(topics):
        partitions = measured.moving - sum(t.partitions for t in topics)
        copies, rest = work.copies - sum(t.copies for t in topics), work.bytes - sum(t.bytes for t in topics)
        rows.append((f"{counted(more, 'topic')} more", number(partitions), number(copies), size(rest)))
    last = ("Sum", number(measured.moving), number(work.copies), size(work.bytes))
    yield table(("topic", "partitions#", "copies#", "bytes to copy#"), rows, last=last)


def _stored(ticket: Ticket) -> Iterator[Markup]:
    held, known = ticket.moved.held, disks(ticket.answer.outlook.volumes)
    shown = sorted(sorted(held, key=lambda h: -abs(h.after - h.before))[:_MOST], key=lambda h: h.broker)
    most = max(max(h.before, h.after) for h in shown)
    near = known if known and min(known.values()) <= _FAR * most else {}
    yield _figure("Bytes stored on each broker", plots.stored(shown, near))
    if known and not near:
        yield note(f"Disk sizes, {human_bytes(min(known.values()))} and more, are outside of the picture.")
    if not known:
        yield note("Disk sizes are not known.")
    if len(shown) < len(held):
        yield note(f"The {len(shown)} brokers of {len(held)} that change most.")


def _carried(answer: Estimate) -> Iterator[Markup]:
    pace = answer.pace
    if answer.outlook.waves:
        yield note("All waves together, as if they went at once; each wave's time stands below.")
    worst, ends = pace.bottleneck, pace.ends
    slowest = sorted(pace.shares, key=lambda s: (s == worst, _done(s, ends), -s.broker), reverse=True)
    brokers = list(dict.fromkeys(share.broker for share in slowest))[:_MOST]
    most = [share for share in pace.shares if share.broker in brokers]
    yield _figure("Bytes that each broker sends and receives", plots.carried(most))
    if pace.feasible is not None:
        yield _figure("What each broker's throttle has to carry", plots.spent(sorted(slowest[:_MOST], key=_place)))
        yield note(
            "A copy must outrun what is written to it: it can finish only while a bar's lower parts stay below the "
            "throttle. Keep-up: followers in sync spend their leader's throttle, and are not slowed down (KAFKA-4313)."
        )
    else:
        yield note("How much of the throttle producers take is not known: the write rates are unknown.")
    heads = ("broker#", "side", "copies#", "bytes#", "keep-up#", "for copies#", "writes#", "done after#")
    yield table(heads, [_share(share, ends) for share in slowest[:_ROWS]], marked=0)
    if len(slowest) > _ROWS:
        yield note(f"The {_ROWS} sides of brokers that take longest, of {len(slowest)}.")


def _done(share: Share, ends: Mapping[tuple[int, Side], float]) -> float:
    """When a side is done, in seconds; while rates are unknown, if nothing is written."""
    return math.inf if share.finishes is False else ends.get((share.broker, share.side), share.least_seconds)


def _place(share: Share) -> tuple[int, bool]:
    return share.broker, share.side is Side.DESTINATION


def _share(share: Share, ends: Mapping[tuple[int, Side], float]) -> tuple[str, ...]:
    sends = share.side is Side.LEADER
    return (
        str(share.broker),
        "out" if sends else "in",
        number(share.copies),
        size(share.bytes),
        rate(share.keep_up) if sends else "",
        rate(share.left),
        rate(share.writes),
        "never" if share.finishes is False else time(ends.get((share.broker, share.side))),
    )


def _times(ticket: Ticket) -> Iterator[Markup]:
    answer = ticket.answer
    shown = curve(answer.judged, ticket.asked, answer.window)
    yield _figure("Expected time against the throttle", plots.time(shown, answer.outlook.band))
    if shown.never:
        yield tag("p", "It can finish under any throttle above ", rate(shown.never), ".")
    if shown.beyond:
        yield note(f"Outside of the picture: {'; '.join(shown.beyond)}.")
    rows = [(rate(other.throttle), _time(other)) for other in others(answer.judged)]
    yield table(("throttle#", "if nothing is written#" if shown.never is None else "expected time#"), rows)


def _time(pace: Pace | Waves) -> str:
    if pace.feasible is None:
        return time(pace.seconds_without_writes)
    return "never" if pace.feasible is False else time(pace.seconds)


def _limits(answer: Estimate) -> Iterator[Markup]:
    window, fetch = answer.window, answer.fetch
    bounds = [*(("above", b) for b in window.above), *(("below", b) for b in window.below)]
    words = {"above": "at least", "below": "at most"}
    rows = [
        (
            words[side] if b.closed else side,
            rate(b.rate),
            b.why,
            _kept(b, answer.throttle, above=side == "above"),
        )
        for side, b in bounds
    ]
    yield table(("throttle", "rate#", "because of", "kept"), rows)
    if window.empty:
        yield tag("p", "No throttle keeps them all.")
    verdict = "holds" if fetch.holds else f"does not hold: keep the setting below {human_bytes(fetch.largest)}"
    yield tag(
        "p",
        f"Fetch size (KIP-73): {fetch.brokers} brokers x {human_bytes(fetch.response_max_bytes)} "
        f"replica.fetch.response.max.bytes / {human_rate(fetch.rate)} = {human_duration(fetch.seconds)}, which must be "
        f"less than the quota's window of {human_duration(fetch.window_seconds)}: {verdict}.",
    )


def _kept(bound: Bound, throttle: ByteRate, *, above: bool) -> str:
    words = {None: "", True: "yes", False: "no" if bound.binds else "no, and forbids nothing: the whole cluster's"}
    return words[bound.kept(throttle, above=above)]


def _kip(answer: Estimate) -> Iterator[Markup]:
    kip = answer.kip
    below = {True: "holds", False: "does not hold", None: "not checked"}[kip.in_below_throttle]
    ended = "none" if kip.in_below_throttle is False else time(kip.seconds)
    rows: list[tuple[str, str]] = [
        ("#partitions-to-be-moved", number(kip.partitions_to_be_moved)),
        ("#total-partition-count", number(kip.total_partition_count)),
        ("MoveRatio = the one / the other", tag("data", f"{kip.move_ratio:.3g}", value=kip.move_ratio)),
        ("TotalLogSizePerBroker", size(kip.log_size_per_broker)),
        ("#Brokers", number(kip.brokers)),
        ("replication-quota, T", rate(kip.replication_quota)),
        ("max(BytesInPerSec), IN", rate(kip.max_bytes_in)),
        ("IN < T", below),
        ("MoveTime = MoveRatio x TotalLogSizePerBroker x #Brokers / (T - IN)", ended),
    ]
    yield table(("term", "value#"), rows)
    yield note(
        "KIP-73 looks at the cluster as a whole and at no single broker; the times above do. Its IN < T is necessary "
        "only where that much is written to what moves, and not sufficient."
    )


def _sources(ticket: Ticket) -> Iterator[Markup]:
    answer = ticket.answer
    names = list(answer.names[:_NAMES])
    if more := len(answer.names) - len(names):
        names.append(f"{counted(more, 'file')} more")
    rows = [
        ("Sizes", ", ".join((answer.source, *names))),
        ("Write rates", writes_from(answer.rates)),
        ("Time", f"{START_SECONDS:g} s to start and end, and the part of a throttle that flows, as measured"),
        (
            "Fetch size and quota window",
            "as the brokers are set" if answer.pace.enforcement.told else "as Kafka ships them",
        ),
    ]
    yield table(("number", "from"), rows)
    if not ticket.remarks:
        yield note("No row of the sizes was left out, and nothing was taken for granted.")
    else:
        yield tag("ul", *(tag("li", remark) for remark in ticket.remarks))


def _commands(ticket: Ticket) -> Iterator[Markup]:
    answer = ticket.answer
    if refusal(answer):
        yield tag("p", "None yet: what stands above forbids it.")
        return
    if not ticket.runnable:
        yield tag(
            "p",
            "None: the plan is JSON lines or Parquet, which kquota reassign-partitions does not take. Write it as "
            'Kafka\'s JSON, {"version":1,"partitions":[…]}.',
        )
        return
    if answer.outlook.waves and answer.pace.feasible is False:
        yield tag(
            "p", "None: at once the plan can never finish. Write a plan of each wave, and run one after the other."
        )
        return
    if answer.outlook.waves:
        yield note(
            "These commands move the whole plan at once. To move wave by wave, write a plan of each wave, from its "
            "first partition to its last, and run these commands with one after the other."
        )
    if ticket.cluster == commands.NOBODY:
        yield note("The sizes came from files: put the cluster's address in the place of HOST:PORT.")
    if ticket.plan == commands.PIPED:
        yield note(f"Put the plan's file, as reassign-partitions takes it, in the place of {commands.PIPED}.")
    steps = commands.commands(ticket.cluster, ticket.plan, ticket.answer.throttle)
    yield tag("ol", *(tag("li", what, tag("pre", _code(words))) for what, words in steps))


def _code(words: Sequence[str]) -> Markup:
    """A command of many lines that a shell takes as one."""
    first, *others = words
    return tag("code", first, *(joined(Markup(" \\\n  "), word) for word in others))


def _figure(title: str, plot: Markup) -> Markup:
    return tag("figure", tag("figcaption", title), tag("div", plot, class_="wide"))
