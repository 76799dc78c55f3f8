"""Files of write rates: the rate of each broker, and the errors."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.errors import Invalid
from kquota.sizes.bytes_in import BytesIn, by_hand, bytes_in, parse

MB = 1e6


def answered(*series: tuple[dict[str, str], object], kind: str = "vector") -> str:
    """Prometheus' answer to a query, as saved to a file."""
    key = "value" if kind == "vector" else "values"
    result = [{"metric": labels, key: value} for labels, value in series]
    return json.dumps({"status": "success", "data": {"resultType": kind, "result": result}})


RANGE = [[n, str(n)] for n in range(101)]
READ = {
    "CSV": ("broker,bytes_in\n1,3MB/s\n2,0\n", {1: BytesIn(mean=3 * MB), 2: BytesIn(mean=0.0)}),
    "CSV of a spreadsheet": (
        "broker; bytes_in; peak; note\n1; 3MB/s; 9MB/s; x\n2;5;;\n",
        {1: BytesIn(mean=3 * MB, peak=9 * MB), 2: BytesIn(mean=5.0)},
    ),
    "JSON by broker": ('{"1": "24Mbit/s", "2": 7.5}', {1: BytesIn(mean=3 * MB), 2: BytesIn(mean=7.5)}),
    "JSON by broker, percentiles": ('{"1": {"bytes_in": 5, "low": 2}}', {1: BytesIn(mean=5.0, low=2.0)}),
    "a percentile of 0 is known": ('{"1": {"bytes_in": 5, "low": 0}}', {1: BytesIn(mean=5.0, low=0.0)}),
    "null and nothing are not": ('{"1": {"bytes_in": 5, "low": null, "high": ""}}', {1: BytesIn(mean=5.0)}),
    "JSON rows": ('[{"broker": 1, "bytes_in": 5, "high": "1MB/s"}]', {1: BytesIn(mean=5.0, high=MB)}),
    "a vector": (answered(({"broker_id": "3"}, [0, "1.5"])), {3: BytesIn(mean=1.5)}),
    "a matrix": (
        answered(({"instance": "kafka-3.kafka.svc:9404"}, RANGE), kind="matrix"),
        {3: BytesIn(mean=50.0, low=5.0, high=95.0, peak=99.0)},
    ),
    "too few values for percentiles": (
        answered(({"pod": "kafka-3"}, [[0, "1"], [1, "NaN"], [2, "3"]]), kind="matrix"),
        {3: BytesIn(mean=2.0)},
    ),
    "topics are summed": (
        answered(({"broker": "3", "topic": "a"}, [0, "1"]), ({"broker": "3", "topic": "b"}, [0, "2"])),
        {3: BytesIn(mean=3.0)},
    ),
    "all topics are in the series without one": (
        answered(({"broker": "3", "topic": "a"}, [0, "1"]), ({"broker": "3"}, [0, "5"])),
        {3: BytesIn(mean=5.0)},
    ),
    "unknown stays unknown": (
        answered(({"broker": "3"}, [0, "NaN"]), ({"broker": "4"}, [0, "5"])),
        {4: BytesIn(mean=5.0)},
    ),
    "rare bursts": ("broker,bytes_in,low,high,peak\n1,5,1,3,4\n", {1: BytesIn(mean=5.0, low=1.0, high=3.0, peak=4.0)}),
}


@pytest.mark.parametrize(("text", "rates"), READ.values(), ids=READ.keys())
def test_read(text: str, rates: dict[int, BytesIn]) -> None:
    assert parse(text, "rates") == rates


REFUSED = {
    "empty": ("", "rates: is empty. Write a header"),
    "no such column": ("id,rate\n1,2\n", "rates: has no column broker or bytes_in. Write a header"),
    "no broker": ("broker,bytes_in\nx,2\n", "rates: 'x' is not a broker id"),
    "no rate": ("broker,bytes_in\n1,\n", "rates: broker 1 has no bytes_in. Leave out brokers"),
    "another unit": ("broker,bytes_in\n1,3Mb\n", "rates: broker 1 '3Mb': unknown unit 'Mb'"),
    "twice": ("broker,bytes_in\n1,3\n1,4\n", "rates: broker 1 is listed twice"),
    "negative": ('{"1": -3}', "rates: broker 1: -3 is not a valid rate"),
    "not JSON": ("{", "rates: is not JSON: "),
    "null": ('{"1": null}', "rates: broker 1 has no bytes_in"),
    "low above the mean": (
        '{"1": {"bytes_in": 5, "low": 6}}',
        "rates: broker 1: low is above bytes_in. low must not be above bytes_in, high or peak, and",
    ),
    "high above the peak": ("broker,bytes_in,high,peak\n1,3,5,4\n", "rates: broker 1: high is above peak"),
    "low above the peak": ("broker,bytes_in,low,peak\n1,3,2,1\n", "rates: broker 1: low is above peak"),
    "no broker's rate": ("[]", "rates: contains no rate for any broker"),
    "an error": (
        '{"status":"error","error":"query timed out"}',
        "Prometheus answered: query timed out. Correct the query, or run it again",
    ),
    "a scalar": (
        '{"status":"success","data":{"resultType":"scalar","result":[0,"1"]}}',
        "contains neither a vector nor a matr",
    ),
    "nothing found": (answered(), "rates: contains no rate for any broker"),
    "a counter": (answered(({"__name__": "b_total"}, [0, "1"])), r"b_total is a counter, not a rate. Query rate\("),
    "an address": (
        answered(({"instance": "10.0.0.3:9404"}, [0, "1"])),
        'no label names the broker ({instance="10.0.0.3:9404"})',
    ),
    "two numbers": (
        answered(({"pod": "prod2-kafka-3"}, [0, "1"])),
        'no label names the broker ({pod="prod2-kafka-3"})',
    ),
    "no label": (answered(({}, [0, "1"])), "no label names the broker ({})"),
    "two jobs": (
        answered(({"broker": "3", "job": "a"}, [0, "1"]), ({"broker": "3", "job": "b"}, [0, "1"])),
        "broker 3 has 2 series that differ in job. Query one series per broker",
    ),
    "infinity": (answered(({"broker": "3"}, [0, "+Inf"])), "rates: broker 3: inf is not a valid rate"),
    "a rate whose sum no float holds": (
        answered(({"broker": "3"}, [0, "1e308"])),
        "rates: broker 3: 1e+308 is not a valid rate",
    ),
    "a label that is none": (
        '{"resultType":"vector","result":[{"metric":null,"value":[0,"1"]}]}',
        "not a valid Prometheus answer. Save",
    ),
    "a list of labels": (
        '{"resultType":"vector","result":[{"metric":[],"value":[0,"1"]}]}',
        "not a valid Prometheus answer. Save",
    ),
    "a value beyond a float": (
        f'{{"resultType":"vector","result":[{{"metric":{{"broker":"1"}},"value":[0,1{"0" * 400}]}}]}}',
        "not a valid Prometheus answer. Save",
    ),
    "a rate beyond a float": (f'{{"1": 1{"0" * 400}}}', "rates: broker 1: inf is not a valid rate"),
    "deep JSON": ("[" * 100_000, "rates: is not JSON: it is nested too deeply"),
    "no CSV": (f"broker,bytes_in\n1,{'3' * 140_000}\n", "rates: is not CSV: field larger than field limit (131072)"),
    "no header of CSV": (f"broker,{'b' * 140_000}\n", "rates: is not CSV: field larger than field limit (131072)"),
    "a broker beyond its id": ('{"2147483648": 1}', "rates: '2147483648' is not a broker id"),
    "cut off": (
        '{"status":"success","data":{"resultType":"vector","result":[{}]}}',
        "not a valid Prometheus answer",
    ),
}


@pytest.mark.parametrize(("text", "complaint"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(text: str, complaint: str) -> None:
    with pytest.raises(Invalid) as raised:
        parse(text, "rates")
    assert str(raised.value).startswith("rates: ")
    assert complaint.replace("\\", "") in str(raised.value)


def test_short_series_of_many_topics() -> None:
    """Such values take more than seven times the memory of their text."""
    series = [({"broker_id": str(number % 3), "topic": f"t{number}"}, [1795526187, "2.5"]) for number in range(30_000)]
    assert parse(answered(*series), "rates") == dict.fromkeys(range(3), BytesIn(mean=25_000.0))


def test_a_handwritten_file() -> None:
    assert by_hand(["3=12MB/s", "4=0"]) == {3: BytesIn(mean=12 * MB), 4: BytesIn(mean=0.0)}
    with pytest.raises(Invalid, match="broker 3 already has a rate"):
        by_hand(["3=1", "3=1"])


@given(st.lists(st.floats(0, 1e9), min_size=20, max_size=50))
def test_percentiles_are_in_order_and_within_the_samples(rates: list[float]) -> None:
    found = bytes_in(rates)
    assert found.low is not None and found.high is not None and found.peak is not None
    rounding = 1 + 1e-9  # interpolation rounds, also downwards
    ordered = (min(rates), found.low, found.high, found.peak, max(rates))
    assert all(lower <= higher * rounding for lower, higher in itertools.pairwise(ordered))
