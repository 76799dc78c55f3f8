"""The options of `quota simulate`: quotas, a load, and where a large trace is worked on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kquota.cli.actions import flag, value
from kquota.cli.engine_options import Conf, Debug, SparkMaster, SparkRemote
from kquota.cli.options import Output, OutputFormat
from kquota.errors import Invalid
from kquota.measure import byte_rate
from kquota.terms import HIGHEST_ID

if TYPE_CHECKING:
    from kquota.simulate.load import Quotas


HEADINGS: Final = {
    "--controller-mutation-rate": "Quotas",
    "--topics": "Topics created, grown or deleted",
    "--load": "Or a steady load",
    "--trace": "Or a trace",
    "--spark-master": "Where Spark runs a large trace; by default here",
    "--output": "Output",
}
"""The first option of each part of the help, and its heading."""


REQUEST_SIZE: Final = "100kB"
LASTING: Final = "60s"
_MOST_TOPICS: Final = 1_000_000
_MOST_SAMPLES: Final = 3_600


class Model(StrEnum):
    """How mutations are counted: as Kafka ships it, or as one of KIP-599's drafts had it."""

    shipped = "shipped"
    draft_even = "draft-even"
    draft_front = "draft-front"


def _count(name: str, text: str, least: int = 1, most: int | None = None) -> Any:
    return typer.Option(f"--{name}", metavar="N", min=least, max=most, help=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The options as the command line gave them; what is None or False was not given."""

    controller_mutation_rate: Annotated[
        str | None, value("controller-mutation-rate", "N", "In partitions created or deleted per second (KIP-599).")
    ] = None
    producer_byte_rate: Annotated[
        str | None, value("producer-byte-rate", "RATE", "On each broker: 10MB/s; bare: bytes per second.")
    ] = None
    consumer_byte_rate: Annotated[
        str | None, value("consumer-byte-rate", "RATE", "On each broker, as the one before.")
    ] = None
    request_percentage: Annotated[
        float | None, value("request-percentage", "N", "In percent of one of a broker's threads (KIP-124).")
    ] = None
    window_num: Annotated[
        int | None,
        _count(
            "window-num",
            "The brokers' quota.window.num and controller.quota.window.num. [default: 11]",
            2,
            _MOST_SAMPLES,
        ),
    ] = None

    topics: Annotated[
        int | None, _count("topics", "How many topics are created, grown or deleted.", 1, _MOST_TOPICS)
    ] = None
    partitions: Annotated[
        int | None,
        _count("partitions", "Partitions that each of them gains or loses. [default: 1]", 1, HIGHEST_ID),
    ] = None
    from_file: Annotated[
        Path | None, value("from-file", "FILE", "The topics as `kquota topics` takes them: NAME [PARTITIONS] a line.")
    ] = None
    within: Annotated[
        str | None, value("within", "TIME", "Find the smallest mutation rate that takes no longer: 10m.")
    ] = None
    model: Annotated[
        Model,
        typer.Option(
            "--model",
            metavar="[shipped|draft-even|draft-front]",
            help="As Kafka ships it, or as a draft of KIP-599 had it.",
        ),
    ] = Model.shipped
    permissive: Annotated[
        bool, flag("permissive", "The client is one that brokers cannot reject, as librdkafka: it is delayed instead.")
    ] = False
    per_request: Annotated[
        int | None, _count("per-request", "Topics in each request.  [default: all that are left]")
    ] = None

    load: Annotated[
        str | None, value("load", "RATE", "What the client would send or fetch without a quota: 25MB/s.")
    ] = None
    request_size: Annotated[
        str | None, value("request-size", "SIZE", f"The size of each request. [default: {REQUEST_SIZE}]")
    ] = None
    for_: Annotated[str | None, value("for", "TIME", f"How long the load lasts. [default: {LASTING}]")] = None
    thread_time: Annotated[
        str | None, value("thread-time", "TIME", "What each request costs a broker's threads: 2ms.")
    ] = None
    trace: Annotated[
        list[str] | None,
        value(
            "trace", "FILE", "A load as CSV or JSON lines, a file or glob, repeatable: ms and bytes of each request."
        ),
    ] = None
    closed_loop: Annotated[
        bool,
        flag(
            "closed-loop",
            "With --load and --trace: the client sends only what was answered before, so each wait moves the rest.",
        ),
    ] = False

    spark_master: SparkMaster = None
    spark_remote: SparkRemote = None
    conf: Conf = None
    debug: Debug = False
    output: OutputFormat = Output.text


def quotas(given: Given) -> Quotas:
    """The quotas that are given. Raises Invalid for none, for what is no rate, and for both sides at once."""
    from kquota.quota import limits
    from kquota.simulate.load import Quotas
    from kquota.terms import CONTROLLER_MUTATION_RATE, SAMPLES

    produced, fetched, percentage = given.producer_byte_rate, given.consumer_byte_rate, given.request_percentage
    if produced is not None and fetched is not None:
        raise Invalid("one connection produces or consumes: give --producer-byte-rate or --consumer-byte-rate")
    if percentage is not None and not (percentage > 0 and math.isfinite(percentage)):
        raise Invalid(f"--request-percentage {percentage:g}: must be more than 0")
    rate = given.controller_mutation_rate
    return Quotas(
        producer_byte_rate=None if produced is None else float(byte_rate(produced, "--producer-byte-rate")),
        consumer_byte_rate=None if fetched is None else float(byte_rate(fetched, "--consumer-byte-rate")),
        request_percentage=percentage,
        controller_mutation_rate=None if rate is None else limits.value(CONTROLLER_MUTATION_RATE, rate),
        strict=not given.permissive,
        samples=given.window_num or SAMPLES,
    )
