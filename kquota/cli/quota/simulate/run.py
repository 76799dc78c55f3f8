"""`kquota quota simulate`: check the options, and simulate topics, a steady load or a trace."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from kquota.cli import local_files
from kquota.cli.contract import say
from kquota.cli.engine_options import engine, spark_reader
from kquota.cli.list_options import topics_in
from kquota.cli.options import option_name
from kquota.cli.output import Answer
from kquota.cli.quota.simulate.answer import UNFINISHED, Deployed, Streamed, Traced, client_name
from kquota.cli.quota.simulate.command import LASTING, LIMITS, REQUEST_SIZE, Arithmetic, SimulateOptions
from kquota.errors import Invalid
from kquota.list_text import listed
from kquota.measure import byte_rate, byte_size, duration
from kquota.quota.limits import value
from kquota.quota_keys import QUOTA_KEYS, Model
from kquota.simulate import trace as traces
from kquota.simulate.answer import NoRate, deploy, flow, rate_within
from kquota.simulate.curve import total
from kquota.simulate.delay import Bucket, Draft, Mutations, Spread
from kquota.simulate.load import Admission, Manner, Quotas, Request
from kquota.simulate.trace import Answered
from kquota.spark import trace_files
from kquota.spark.engine import Engine
from kquota.spark.trace_files import BadRows, TraceFiles
from kquota.terms import SAMPLES

MOST_REQUESTS: Final = 2_000_000
_MUCH: Final = 20_000_000
"""If Spark is not requested, kquota reads a trace of less than this many bytes of text without Spark. For more text,
Spark is faster, although it needs time to start.
"""


def run(options: SimulateOptions) -> Answer:
    """Simulate the load under the quotas, and return its figures.

    Raises Invalid unless exactly one load is given, if no quota to simulate or to find is given, and for options that
    are not valid or have no effect. Also raises Invalid for a trace without a valid row, and for topics or a steady
    load that take more than 30 simulated days. Raises Refused if Spark must read the trace but is missing or fails.
    """
    held = _quotas(options)
    kinds = {
        "--topics": options.topics,
        "--from-file": options.from_file,
        "--load": options.load,
        "--trace": options.trace,
    }
    loads = [option for option, value in kinds.items() if value is not None]
    if not loads:
        raise Invalid("no load is given. Give --topics N, --from-file FILE, --load RATE or --trace FILE")
    if len(loads) > 1:
        raise Invalid(f"{' and '.join(loads)} are different loads. Give only one, or combine them in one --trace")
    _check(options, held, loads[0])
    if options.topics is not None or options.from_file is not None:
        return _deployed(options, held)
    if not held.limits:
        # A steady load has no mutations.
        keys = [key for key in LIMITS if options.trace is not None or QUOTA_KEYS[key].model is not Model.BUCKET]
        raise Invalid(f"no quota is given. Give {listed(map(option_name, keys), 'or')}")
    if options.trace is not None:
        return _traced(options, held)
    found = flow(_steady(options, held), held, closed_loop=options.closed_loop)
    if found.unfinished:
        raise Invalid(UNFINISHED)
    return Streamed(held=held, flow=found, bytes_curve=found.bytes_curve)


def _quotas(given: SimulateOptions) -> Quotas:
    if len(sides := [option_name(key) for key in QUOTA_KEYS if key in given.limits and QUOTA_KEYS[key].in_bytes]) > 1:
        raise Invalid(f"one connection either produces or consumes. Give {' or '.join(sides)}")
    limits = {key: value(key, text, option_name(key)) for key, text in given.limits.items()}
    return Quotas(strict=not given.permissive, samples=given.window_num or SAMPLES, **limits)


def _check(given: SimulateOptions, held: Quotas, load: str) -> None:
    deploys = load in ("--topics", "--from-file")
    useless = {
        "--partitions": given.partitions is not None and not deploys,
        "--within": given.within is not None and not deploys,
        "--per-request": given.per_request is not None and not deploys,
        "--model": given.model is not Arithmetic.shipped and not deploys,
        "--request-size": given.request_size is not None and load != "--load",
        "--for": given.for_ is not None and load != "--load",
        "--closed-loop": given.closed_loop and deploys,
        **{option_name(key): load == "--load" for key in held.limits if QUOTA_KEYS[key].model is Model.BUCKET},
        "--permissive": given.permissive and load == "--load",
        "--thread-time": given.thread_time is not None and load == "--trace",
        "--spark-master": given.spark.master is not None and load != "--trace",
        "--spark-remote": given.spark.remote is not None and load != "--trace",
        "--conf": bool(given.spark.conf) and load != "--trace",
    }
    for name, found in useless.items():
        if found:
            raise Invalid(f"{name} has no effect with {load}. Leave out {name}")
    if given.thread_time is not None and held.limit(Model.SHARE) is None:
        raise Invalid("--thread-time has no effect without --request-percentage. Give both, or leave out --thread-time")
    if given.permissive and held.limit(Model.BUCKET) is None and given.within is None:
        alternative = " or --within" if deploys else ""
        raise Invalid(
            f"--permissive has no effect without --controller-mutation-rate{alternative}. Leave out --permissive"
        )


def _deployed(given: SimulateOptions, held: Quotas) -> Answer:
    if held.limit(Model.RATE) is not None:
        raise Invalid(
            "byte rates do not apply to --topics and --from-file. Leave out the byte rate, or simulate it with --load "
            "or --trace"
        )
    rate, within = held.limit(Model.BUCKET), given.within
    if (rate is None) == (within is None):
        raise Invalid("give a rate with --controller-mutation-rate N, or find one with --within TIME, but not both")
    manner = Manner(quotas=held, per_request=given.per_request, thread_ms=_thread_ms(given, held))
    items = _items(given)
    if within is not None:
        ms = int(duration(within, "--within") * 1_000)
        try:
            rate = float(rate_within(items, ms, lambda rate: quota(given.model, rate, held.samples), manner))
        except NoRate as error:
            raise Invalid(
                "no mutation rate is high enough: the request percentage alone makes the load take longer than "
                "--within. Give a longer --within or a higher --request-percentage"
            ) from error
        held = Quotas(strict=held.strict, samples=held.samples, **held.limits, controller_mutation_rate=rate)
    assert rate is not None
    found = deploy(items, quota(given.model, rate, held.samples), manner)
    return Deployed(model=given.model.value, held=held, items=items, found=found, sought=within is not None)


def quota(model: Arithmetic, rate: float, samples: int) -> Admission:
    """Return a mutation quota of this rate, with the arithmetic of the model. Every model has the same burst.

    `rate` is in mutations per second. `samples` is the number of samples in the quota window.
    """
    if model is Arithmetic.shipped:
        return Mutations(Bucket(rate=rate, samples=samples))
    return Draft(spread=Spread(model.value), rate=rate, samples=samples)


def _items(given: SimulateOptions) -> Sequence[int]:
    each = given.partitions or 1
    if given.from_file is None:
        return [each] * (given.topics or 0)
    found: dict[str, int] = {}
    for topic, partitions, _ in topics_in(given.from_file):
        if topic in found:
            raise Invalid(f"--from-file {given.from_file}: topic {topic} is listed twice. Keep one of its lines")
        found[topic] = partitions or each
    return list(found.values())


def _steady(given: SimulateOptions, held: Quotas) -> Iterable[Request]:
    assert given.load is not None
    of_size, lasting = given.request_size or REQUEST_SIZE, given.for_ or LASTING
    size, each = byte_size(of_size, "--request-size"), byte_rate(given.load, "--load")
    cost = _thread_ms(given, held)
    count = int(duration(lasting, "--for") * each / size)
    if count < 1:
        raise Invalid(
            f"--load {given.load} for {lasting} is less than one request of {of_size}. Give a smaller --request-size "
            "or a longer --for"
        )
    if count > MOST_REQUESTS:
        raise Invalid(
            f"the load has {count:,} requests, and the maximum is {MOST_REQUESTS:,}. Give a larger --request-size or a "
            "shorter --for"
        )
    return (Request(n * size * 1_000 // each, size, cost) for n in range(count))


def _thread_ms(given: SimulateOptions, held: Quotas) -> float:
    if held.limit(Model.SHARE) is not None and given.thread_time is None:
        raise Invalid("--request-percentage needs the cost of a request. Give --thread-time TIME")
    return 0.0 if given.thread_time is None else duration(given.thread_time, "--thread-time") * 1_000


def _traced(given: SimulateOptions, held: Quotas) -> Traced:
    where = engine(given.spark)
    with local_files.workspace() as scratch:
        trace = trace_files.opened(given.trace or (), scratch)
        columns = {key: QUOTA_KEYS[key].counts for key in held.limits}
        for key, column in columns.items():
            if trace.header is not None and column not in trace.names:
                raise Invalid(
                    f"{option_name(key)} has no effect: --trace {trace.files.given_names()[0]} has no column {column}. "
                    f"Leave out {option_name(key)}, or add the column"
                )
        bad = BadRows()
        found = _answered(given, held, trace, bad, where, scratch)
        if (note := trace.left_out(bad)) is not None:
            say(note)
    if not found:
        raise trace.no_row()
    costs = {cost for one in found for cost in one.flow.costs}
    for key, column in columns.items():
        if column not in costs:
            say(f"warning: {option_name(key)} has no effect: no row has {column}")
    for one in found:
        if one.flow.unfinished:
            say(f"warning: {client_name(one.stream)}: {UNFINISHED}. The figures cover only the simulated time")
    return Traced(
        held=held,
        streams=found,
        bytes_curve=total([one.flow.bytes_curve for one in found]),
        mutations_curve=total([one.flow.mutations_curve for one in found]),
    )


def _answered(
    given: SimulateOptions, held: Quotas, trace: TraceFiles, bad: BadRows, where: Engine, scratch: Path
) -> list[Answered]:
    asks_for_spark = where.master is not None or where.remote is not None or bool(given.spark.conf)
    if not asks_for_spark and trace.text_size() < _MUCH:
        return traces.answered(trace_files.rows(trace, bad), held, closed_loop=given.closed_loop)
    with spark_reader(scratch, trace.files, where) as reader:
        # Imported here, because a small trace does not need PySpark.
        from kquota.spark.trace import answered

        return answered(reader, trace, held, bad, closed_loop=given.closed_loop)
