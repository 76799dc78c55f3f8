"""`kquota quota simulate`: the broker's own arithmetic on a load, before a quota is set."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from kquota.cli.actions import given_options
from kquota.cli.contract import DONE
from kquota.cli.listed import topics_in
from kquota.cli.quota.simulate.options import LASTING, REQUEST_SIZE, Given, Model, quotas
from kquota.errors import Invalid
from kquota.measure import byte_rate, byte_size, duration

if TYPE_CHECKING:
    from kquota.simulate.load import Admission, Quotas, Request

EPILOG: Final = """No cluster is asked: the brokers' own arithmetic, to the millisecond.

Examples:
  kquota quota simulate --controller-mutation-rate 5 --topics 7 --partitions 80
  kquota quota simulate --producer-byte-rate 10MB/s --request-percentage 5 --trace 'trace-*.csv.gz'"""

MOST_REQUESTS: Final = 2_000_000


@given_options(Given)
def simulate(given: Given) -> int:
    """Reckon what a load gets under quotas, request by request, exactly as a broker does."""
    from kquota.cli.quota.simulate import trace

    held = quotas(given)
    kinds = {"--topics": given.topics, "--from-file": given.from_file, "--load": given.load, "--trace": given.trace}
    loads = [option for option, value in kinds.items() if value is not None]
    if not loads:
        raise Invalid("which load? Give --topics N, --from-file FILE, --load RATE or --trace FILE")
    if len(loads) > 1:
        raise Invalid(f"{' and '.join(loads)} are two loads: give one, or write both as one --trace")
    _check(given, loads[0])
    if given.topics is not None or given.from_file is not None:
        print(_deployed(given, held))
        return DONE
    told = (held.producer_byte_rate, held.consumer_byte_rate, held.request_percentage, held.controller_mutation_rate)
    if told == (None,) * 4:
        raise Invalid("which quota? Give --producer-byte-rate, --consumer-byte-rate or --request-percentage")
    print(_streamed(given, held) if given.trace is None else trace.answer(given, held))
    return DONE


def _check(given: Given, load: str) -> None:
    """Raises Invalid for an option that this kind of load passes over."""
    deploys = load in ("--topics", "--from-file")
    useless = {
        "--partitions": given.partitions is not None and not deploys,
        "--within": given.within is not None and not deploys,
        "--per-request": given.per_request is not None and not deploys,
        "--model": given.model is not Model.shipped and not deploys,
        "--request-size": given.request_size is not None and load != "--load",
        "--for": given.for_ is not None and load != "--load",
        "--closed-loop": given.closed_loop and deploys,
        "--controller-mutation-rate": given.controller_mutation_rate is not None and load == "--load",
        "--permissive": given.permissive and load == "--load",
        "--thread-time": given.thread_time is not None and load == "--trace",
        "--spark-master": given.spark_master is not None and load != "--trace",
        "--spark-remote": given.spark_remote is not None and load != "--trace",
        "--conf": bool(given.conf) and load != "--trace",
    }
    for option, found in useless.items():
        if found:
            raise Invalid(f"{option} has no effect with {load}")
    if given.thread_time is not None and given.request_percentage is None:
        raise Invalid("--thread-time has no effect without --request-percentage")
    if given.permissive and given.controller_mutation_rate is None and given.within is None:
        raise Invalid("--permissive has no effect without --controller-mutation-rate")


def _deployed(given: Given, held: Quotas) -> str:
    from kquota.cli.quota.simulate import printed
    from kquota.simulate.answer import deploy, rate_within
    from kquota.simulate.load import Manner

    if held.producer_byte_rate is not None or held.consumer_byte_rate is not None:
        raise Invalid("a deploy has no bytes: give --controller-mutation-rate and --request-percentage, or a --trace")
    rate, within = held.controller_mutation_rate, given.within
    if (rate is None) == (within is None):
        raise Invalid("give --controller-mutation-rate N, or --within TIME to find one, not both")
    manner = Manner(
        strict=held.strict,
        per_request=given.per_request,
        request_percentage=held.request_percentage,
        thread_ms=_thread_ms(given, held),
        samples=held.samples,
    )
    items = _items(given)
    if within is not None:
        ms = int(duration(within, "--within") * 1_000)
        rate = float(rate_within(items, ms, lambda rate: quota(given.model, rate, held.samples), manner))
    assert rate is not None
    told = printed.Deployed(
        items=items,
        rate=rate,
        found=within is not None,
        model=given.model.value,
        held=held,
        answer=deploy(items, quota(given.model, rate, held.samples), manner),
    )
    return printed.deployed(told, given.output)


def quota(model: Model, rate: float, samples: int) -> Admission:
    """A mutation quota of that rate, in the model's arithmetic; a draft's burst is what the shipped one has."""
    from kquota.simulate.bucket import Bucket
    from kquota.simulate.delay import Mutations
    from kquota.simulate.draft import Draft, Spread

    if model is Model.shipped:
        return Mutations(Bucket(rate=rate, samples=samples))
    return Draft(spread=Spread(model.value), rate=rate, samples=samples)


def _items(given: Given) -> Sequence[int]:
    each = given.partitions or 1
    if given.from_file is None:
        return [each] * (given.topics or 0)
    found: dict[str, int] = {}
    for topic, partitions, _ in topics_in(given.from_file, "--from-file"):
        if topic in found:
            raise Invalid(f"--from-file {given.from_file}: topic {topic} is named twice")
        found[topic] = partitions or each
    return list(found.values())


def _streamed(given: Given, held: Quotas) -> str:
    from kquota.cli.quota.simulate import printed
    from kquota.simulate.answer import flow

    found = flow(_steady(given, held), held, closed_loop=given.closed_loop)
    if found.unfinished:
        raise Invalid(printed.UNFINISHED)
    return printed.streamed(found, held, given.output)


def _steady(given: Given, held: Quotas) -> Iterable[Request]:
    from kquota.simulate.load import Request

    assert given.load is not None
    of_size, lasting = given.request_size or REQUEST_SIZE, given.for_ or LASTING
    size, each = byte_size(of_size, "--request-size"), byte_rate(given.load, "--load")
    cost = _thread_ms(given, held)
    count = int(duration(lasting, "--for") * each / size)
    if count < 1:
        raise Invalid(
            f"--load {given.load} for {lasting} is less than one request of {of_size}: give a smaller --request-size "
            "or a longer --for"
        )
    if count > MOST_REQUESTS:
        raise Invalid(
            f"{count:,} requests: give a larger --request-size or a shorter --for (at most {MOST_REQUESTS:,})"
        )
    return (Request(n * size * 1_000 // each, size, cost) for n in range(count))


def _thread_ms(given: Given, held: Quotas) -> float:
    if held.request_percentage is not None and given.thread_time is None:
        raise Invalid("--request-percentage needs what a request costs: give --thread-time TIME")
    return 0.0 if given.thread_time is None else duration(given.thread_time, "--thread-time") * 1_000
