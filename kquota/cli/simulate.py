"""`kquota quota simulate`: the broker's own arithmetic on a load, before a quota is set."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kquota.cli.contract import DONE
from kquota.cli.options import Output, OutputFormat
from kquota.errors import Invalid
from kquota.measure import byte_rate, byte_size, duration

if TYPE_CHECKING:
    from kquota.simulate.load import Admission, Request

EPILOG: Final = """Examples:

kquota quota simulate --controller-mutation-rate 5 --topics 7 --partitions 80

kquota quota simulate --topics 2000 --partitions 12 --within 10m

kquota quota simulate --producer-byte-rate 10MB/s --load 25MB/s --request-size 1MB"""

MOST_REQUESTS: Final = 2_000_000


class Model(StrEnum):
    """How mutations are counted: as Kafka ships it, or as one of KIP-599's drafts had it."""

    shipped = "shipped"
    draft_even = "draft-even"
    draft_front = "draft-front"


def simulate(
    controller_mutation_rate: Annotated[
        str | None,
        typer.Option("--controller-mutation-rate", metavar="N", help="The quota, in mutations per second (KIP-599)."),
    ] = None,
    topics: Annotated[
        int | None, typer.Option("--topics", metavar="N", min=1, help="How many topics a deploy creates.")
    ] = None,
    partitions: Annotated[int, typer.Option("--partitions", metavar="N", min=1, help="Partitions of each.")] = 1,
    within: Annotated[
        str | None, typer.Option("--within", metavar="TIME", help="Find the smallest rate for that: 10m.")
    ] = None,
    model: Annotated[Model, typer.Option("--model", help="As Kafka ships it, or as a draft had it.")] = Model.shipped,
    producer_byte_rate: Annotated[
        str | None, typer.Option("--producer-byte-rate", metavar="RATE", help="The quota, on each broker.")
    ] = None,
    consumer_byte_rate: Annotated[
        str | None, typer.Option("--consumer-byte-rate", metavar="RATE", help="The quota, on each broker.")
    ] = None,
    request_percentage: Annotated[
        float | None,
        typer.Option("--request-percentage", metavar="N", help="The quota, in percent of one thread (KIP-124)."),
    ] = None,
    load: Annotated[
        str | None, typer.Option("--load", metavar="RATE", help="What the client would send without a quota.")
    ] = None,
    request_size: Annotated[str, typer.Option("--request-size", metavar="SIZE", help="Of each request.")] = "100kB",
    thread_time: Annotated[
        str | None, typer.Option("--thread-time", metavar="TIME", help="That a request costs a broker's thread: 2ms.")
    ] = None,
    for_: Annotated[str, typer.Option("--for", metavar="TIME", help="How long the load lasts.")] = "60s",
    trace: Annotated[
        Path | None,
        typer.Option("--trace", metavar="FILE", help="A load as CSV: ms,bytes[,thread_ms] with that header."),
    ] = None,
    output: OutputFormat = Output.text,
) -> int:
    """Reckon what a load gets under a quota, request by request, exactly as a broker does."""
    from kquota.cli import simulated

    if topics is not None:
        rate = _mutation_rate(controller_mutation_rate, topics, partitions, within, model)
        print(simulated.deployed(topics, partitions, rate, model, quota(model, rate), output, found=within is not None))
        return DONE
    from kquota.simulate.answer import flow
    from kquota.simulate.delay import byte_rate as bytes_quota
    from kquota.simulate.delay import request_percentage as percentage_quota
    from kquota.simulate.load import stream

    if producer_byte_rate is not None and consumer_byte_rate is not None:
        raise Invalid("one connection produces or consumes: give --producer-byte-rate or --consumer-byte-rate")
    option = "--producer-byte-rate" if consumer_byte_rate is None else "--consumer-byte-rate"
    text = producer_byte_rate or consumer_byte_rate
    limit = None if text is None else float(byte_rate(text, option))
    if limit is None and request_percentage is None:
        raise Invalid("which quota? Give --topics with a mutation rate, --producer-byte-rate or --request-percentage")
    if request_percentage is not None and not (request_percentage > 0 and math.isfinite(request_percentage)):
        raise Invalid(f"--request-percentage {request_percentage:g}: must be more than 0")
    requests = _traced(trace) if trace is not None else _steady(load, request_size, thread_time, for_)
    sent = stream(
        requests,
        None if limit is None else bytes_quota(limit),
        None if request_percentage is None else percentage_quota(request_percentage),
    )
    print(simulated.streamed(flow(sent), limit, request_percentage, output))
    return DONE


def quota(model: Model, rate: float) -> Admission:
    """A mutation quota of that rate, in the model's arithmetic; a draft's burst is what the shipped one has."""
    from kquota.simulate.bucket import Bucket
    from kquota.simulate.delay import Mutations
    from kquota.simulate.draft import Draft, Spread
    from kquota.simulate.rate import SAMPLES

    if model is Model.shipped:
        return Mutations(Bucket(rate=rate))
    return Draft(spread=Spread(model.value), rate=rate, samples=SAMPLES)


def _mutation_rate(text: str | None, topics: int, partitions: int, within: str | None, model: Model) -> float:
    from kquota.quota import limits
    from kquota.simulate.answer import rate_within
    from kquota.terms import CONTROLLER_MUTATION_RATE

    if (text is None) == (within is None):
        raise Invalid("give --controller-mutation-rate N, or --within TIME to find one")
    if within is not None:
        ms = int(duration(within, "--within") * 1_000)
        return float(rate_within([partitions] * topics, ms, lambda rate: quota(model, rate)))
    assert text is not None
    return limits.value(CONTROLLER_MUTATION_RATE, text)


def _steady(load: str | None, request_size: str, thread_time: str | None, lasting: str) -> Iterable[Request]:
    from kquota.simulate.load import Request

    if load is None:
        raise Invalid("which load? Give --load RATE or --trace FILE")
    size, each = byte_size(request_size, "--request-size"), byte_rate(load, "--load")
    cost = 0.0 if thread_time is None else _milliseconds(thread_time)
    count = int(duration(lasting, "--for") * each / size)
    if count > MOST_REQUESTS:
        raise Invalid(
            f"{count:,} requests: give a larger --request-size or a shorter --for (at most {MOST_REQUESTS:,})"
        )
    return (Request(at=n * size * 1_000 // each, bytes=size, thread_ms=cost) for n in range(count))


def _milliseconds(text: str) -> float:
    number, ms, rest = text.partition("ms")
    return float(duration(number, "--thread-time")) if ms and not rest else duration(text, "--thread-time") * 1_000


def _traced(path: Path) -> Iterator[Request]:
    from kquota.simulate.load import Request

    try:
        with path.open(newline="") as file:
            rows = csv.DictReader(file)
            if not {"ms", "bytes"} <= set(rows.fieldnames or ()):
                raise Invalid(f"--trace {path}: its first line must name the columns ms,bytes or ms,bytes,thread_ms")
            before = 0
            for row in rows:
                try:
                    one = Request(
                        at=int(row["ms"]), bytes=int(row["bytes"]), thread_ms=float(row.get("thread_ms") or 0.0)
                    )
                except (ValueError, TypeError) as error:
                    raise Invalid(f"--trace {path}: line {rows.line_num}: write whole ms and bytes") from error
                if one.at < before or one.bytes < 0 or one.thread_ms < 0:
                    raise Invalid(f"--trace {path}: line {rows.line_num}: times go on, and nothing is negative")
                before = one.at
                yield one
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"--trace {path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
