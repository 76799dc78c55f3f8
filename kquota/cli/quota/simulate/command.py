"""`kquota quota simulate`: the result of a load under a quota, calculated before the quota is set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

from kquota.cli.engine_options import SparkOptions
from kquota.cli.options import Each, Output, OutputFormat, flag, option_name, value
from kquota.quota_keys import QUOTA_KEYS, Model
from kquota.terms import HIGHEST_ID

EPILOG: Final = """kquota does not connect to a cluster. It calculates like Kafka 3.9 or newer, to the millisecond.

Examples:
  kquota quota simulate --controller-mutation-rate 5 --topics 7 --partitions 80
  kquota quota simulate --producer-byte-rate 10MB/s --request-percentage 5 --trace 'trace-*.csv.gz'"""

HEADINGS: Final = {
    "--controller-mutation-rate": "Quotas",
    "--topics": "Topics created, grown or deleted",
    "--load": "Or a steady load",
    "--trace": "Or a trace",
    "--spark-master": "Spark, for a large trace (default: on this machine)",
    "--output": "Output",
}


REQUEST_SIZE: Final = "100kB"
LASTING: Final = "60s"
_MOST_TOPICS: Final = 1_000_000
_MOST_SAMPLES: Final = 3_600


class Arithmetic(StrEnum):
    """The arithmetic for mutations, from Kafka's releases or from a draft of KIP-599."""

    shipped = "shipped"
    draft_even = "draft-even"
    draft_front = "draft-front"


def _count(name: str, text: str, least: int = 1, most: int | None = None) -> Any:
    return value(name, "N", text, min=least, max=most)


LIMITS: Final = {
    key: value(option_name(key)[2:], "RATE" if row.in_bytes else "N", row.simulated)
    for key, row in sorted(QUOTA_KEYS.items(), key=lambda item: item[1].model is not Model.BUCKET)
    if row.simulated is not None
}
"""An option for each simulated quota key. The mutation rate comes first, because `--topics` is the first load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulateOptions:
    """Calculate the effect of quotas on a load, request by request, like a broker of Kafka 3.9 or newer."""

    limits: Annotated[Mapping[str, str], Each(LIMITS)]
    window_num: Annotated[
        int | None,
        _count(
            "window-num",
            "Samples in a quota window: the brokers' quota.window.num and controller.quota.window.num.  [default: 11]",
            2,
            _MOST_SAMPLES,
        ),
    ] = None

    topics: Annotated[
        int | None, _count("topics", "Number of topics that are created, grown or deleted.", 1, _MOST_TOPICS)
    ] = None
    partitions: Annotated[
        int | None,
        _count("partitions", "Partitions that each topic gains or loses.  [default: 1]", 1, HIGHEST_ID),
    ] = None
    from_file: Annotated[
        Path | None,
        value("from-file", "FILE", "File with one topic per line: NAME [PARTITIONS]. `kquota topics` also reads it."),
    ] = None
    within: Annotated[
        str | None,
        value(
            "within",
            "TIME",
            "Find the smallest mutation rate at which the load takes at most this time, for example 10m.",
        ),
    ] = None
    model: Annotated[
        Arithmetic,
        value(
            "model",
            "[shipped|draft-even|draft-front]",
            "Use the arithmetic of Kafka's releases, or of a draft of KIP-599.",
        ),
    ] = Arithmetic.shipped
    permissive: Annotated[
        bool,
        flag(
            "permissive", "Simulate a client that brokers delay because they cannot reject it, for example librdkafka."
        ),
    ] = False
    per_request: Annotated[int | None, _count("per-request", "Topics in each request.  [default: all that remain]")] = (
        None
    )

    load: Annotated[
        str | None,
        value("load", "RATE", "Rate at which the client would send or fetch without a quota, for example 25MB/s."),
    ] = None
    request_size: Annotated[
        str | None, value("request-size", "SIZE", f"Size of each request.  [default: {REQUEST_SIZE}]")
    ] = None
    for_: Annotated[str | None, value("for", "TIME", f"Duration of the load.  [default: {LASTING}]")] = None
    thread_time: Annotated[
        str | None, value("thread-time", "TIME", "Thread time that each request costs a broker, for example 2ms.")
    ] = None
    trace: Annotated[
        list[str] | None,
        value(
            "trace",
            "FILE",
            "File or glob of requests, as CSV or JSON lines. Each row has ms and at least one of bytes, thread_ms and "
            "mutations. Repeatable.",
        ),
    ] = None
    closed_loop: Annotated[
        bool,
        flag(
            "closed-loop",
            "With --load or --trace: the client waits for each answer, so each delay also delays later requests.",
        ),
    ] = False

    spark: SparkOptions
    output: OutputFormat = Output.text
