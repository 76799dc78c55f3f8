"""Estimates for reports, and a report parsed as a browser parses it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

from kquota.cli.move.estimate.inputs import CLUSTER, SAMPLE, Inputs, RateSource
from kquota.cli.move.estimate.job import Calculated
from kquota.cli.move.estimate.limits import limits
from kquota.cli.move.estimate.report.page import page
from kquota.cli.move.estimate.report.sections import Ticket, Wanted
from kquota.cli.move.estimate.run import estimate
from kquota.pace.disk_space import Arrival, Volume
from kquota.pace.past_moves import ErrorBand
from kquota.pace.uncertainty import OF_THE_MODEL
from kquota.pace.waves import Wave
from kquota.pace.work import Link, work
from kquota.reassign.running_copies import MoveUnderWay
from kquota.sizes.bytes_in import BytesIn
from kquota.sizes.replica import BrokerBytes, Moved, MovingTopic
from kquota.spark.estimate import Measured, Unsized
from kquota.spark.files import NOTHING
from kquota.spark.partitions import Health
from kquota.terms import BrokerId

MB = 10**6
VOID = {"meta", "br", "use", "path"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A small move: broker 1 sends `size` bytes to broker 3, while producers write and broker 2 stays in sync.

    `asked` has the options.
    """

    throttle: str | None = "8MB/s"
    deadline: str | None = None
    nic: str | None = None
    impact: str | None = None
    writes: float | None = 3.0 * MB
    links: tuple[Link, ...] | None = None
    topic: str = "my-topic"
    plan: str = "plan.json"
    cluster: str | None = "q3HkLkX9TQ-pXg8a1yNcXw"
    options: tuple[str, ...] = ("--bootstrap-server", "b1:9092")
    remarks: tuple[str, ...] = ()
    disk: int | None = None
    traffic: BytesIn | None = None
    waves: int = 0
    each_link: bool = False
    bytes_in: float | None = None
    runnable: bool = True
    running: MoveUnderWay | None = None
    behind: int = 0


def ticket(case: Case, errors: ErrorBand = OF_THE_MODEL) -> Ticket:
    """Return the ticket of a case. The band has the `errors` of the model, or of past moves."""
    size = 91 * MB
    links = (Link(leader=1, destination=3, copies=1, bytes=size, writes=case.writes),)
    made = work(links if case.links is None else case.links, {1: case.writes})
    asked = limits(case.throttle, case.deadline, case.nic, case.impact)
    parts = [work([link], {1: case.writes}) for link in made.links] if case.each_link else [made] * case.waves
    brokers = sorted({1, 2, 3, *(broker for link in made.links for broker in (link.leader, link.destination))})
    health = Health(
        cluster=case.cluster,
        time="2026-11-21T01:02:03Z",
        brokers=tuple(map(BrokerId, brokers)),
        volumes=tuple(Volume(broker=b, log_dir="/d", total=case.disk, usable=case.disk) for b in brokers),
        bad=0,
        future=0,
        duplicate=0,
        offline=0,
    )
    come: Counter[int] = Counter()
    for link in made.links:
        come[link.destination] += link.bytes
    arrivals = [
        Arrival(broker=b, log_dir=None, copies=1, bytes=come[b], writes=case.writes, grows=case.writes)
        for b in sorted(come)
    ]
    topics = (MovingTopic(topic=case.topic, partitions=made.copies, copies=made.copies, bytes=made.bytes),)
    measured = Measured(
        health=health,
        partitions=10,
        moving=made.copies,
        log_size=2 * size,
        max_bytes_in=case.bytes_in if case.bytes_in is not None else case.writes,
        any_rate_known=case.writes is not None,
        unallotted=(),
        leaders_assumed=0,
        in_sync_assumed=0,
        lagging=0,
        behind=case.behind,
        assumed=Unsized(partitions=0, named=()),
        unseen=(),
        least_replicas=2,
        work=made,
        arrivals=tuple(arrivals),
        waves=tuple(
            Wave(first=f"{case.topic}-{n}", last=f"{case.topic}-{n}", partitions=1, work=part)
            for n, part in enumerate(parts)
        ),
        moved=Moved(
            held=tuple(BrokerBytes(broker=b, before=size * (b < 3), after=size * (b != 2)) for b in brokers),
            topics=topics if made.copies else (),
            topics_in_all=1 if made.copies else 0,
        ),
    )
    inputs = Inputs(source=CLUSTER, names=(), files=NOTHING, sources=(RateSource(kind=SAMPLE),))
    bytes_in = {BrokerId(1): case.traffic} if case.traffic else {}
    found = Calculated(measured=measured, bytes_in=bytes_in, running=case.running)
    answer = estimate(inputs, found, asked, errors)
    return Ticket(
        answer=answer,
        wanted=Wanted(path=Path("move.html"), plan=case.plan, cluster=case.options, runnable=case.runnable),
        remarks=case.remarks,
        made=datetime(2026, 11, 21, 20, 30, tzinfo=UTC),
    )


@dataclass
class Page(HTMLParser):
    """A page: its elements with their attributes, and for each section its text, values and commands."""

    source: str
    elements: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    text: defaultdict[str, str] = field(default_factory=lambda: defaultdict(str))
    values: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    commands: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.section, self.open = "", list[str]()
        self.feed(self.source)
        self.close()
        assert self.open == [], f"these elements are not closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.elements.append((tag, given))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "h2":
            self.section = ""
        if tag == "code":
            self.commands.append("")
        if tag == "data":
            self.values[self.section].append(float(given["value"] or ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "h2":
            self.section += data
        elif self.open and self.open[-1] == "code":
            self.commands[-1] += data
        elif "style" not in self.open:
            self.text[self.section] += data

    @property
    def sections(self) -> list[str]:
        """The headings in their order."""
        return re.findall("<h2>(.*?)</h2>", self.source)

    @property
    def plots(self) -> list[str]:
        """The alternative text of each plot."""
        return [given["aria-label"] or "" for tag, given in self.elements if tag == "svg" and given["role"] == "img"]


@cache
def shown(case: Case, errors: ErrorBand = OF_THE_MODEL) -> Page:
    """Return the parsed page of a case."""
    return Page(page(ticket(case, errors)))
