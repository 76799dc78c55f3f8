"""Rates, sizes and times: valid text, errors, and the printed form."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.errors import Invalid
from kquota.measure import byte_rate, byte_size, duration, human_bytes, human_duration, human_rate, human_rates

RATES = {
    "1": 1,
    "10000000": 10_000_000,
    "1e7": 10_000_000,
    "50MB/s": 50_000_000,
    "50 MB/s": 50_000_000,
    " 50MB ": 50_000_000,
    "1.5MiB/s": 1_572_864,
    "2.3GB/s": 2_300_000_000,
    "400Mbit/s": 50_000_000,
    "1kbit/s": 125,
    "1KB": 1000,
    "8TiB/s": 8 * 2**40,
}
NO_RATES = {
    "": "not a positive number",
    "0": "at least 1 byte",
    "0MB/s": "at least 1 byte",
    "-5": "not a positive number",
    "+5": "not a positive number",
    "NaN": "not a positive number",
    "inf": "not a positive number",
    "٣": "not a positive number",
    "1_000": "not a positive number",
    "0x10": "not a positive number",
    "1.5": "not a whole number",
    "1bit/s": "at least 1 byte",
    "9bit/s": "not a whole number",
    "10Mb/s": r"unknown unit 'Mb' \(b could be bit or byte\)",
    "10MBps": "unknown unit 'MBps'",
    "10 parsecs": "unknown unit 'parsecs'",
    "10MB/h": "not a positive number",
    "9223372036854775808": r"must be at most 2\^63 - 1 bytes per second",
    "1e999999999": "not a positive number",
}


@pytest.mark.parametrize(("text", "rate"), RATES.items(), ids=RATES)
def test_a_rate(text: str, rate: int) -> None:
    assert byte_rate(text) == rate


@pytest.mark.parametrize(("text", "reason"), NO_RATES.items(), ids=NO_RATES)
def test_invalid_rates(text: str, reason: str) -> None:
    with pytest.raises(Invalid, match=reason) as refused:
        byte_rate(text, "--throttle")
    assert str(refused.value).startswith("--throttle")


@given(st.integers(1, 2**63 - 1))
def test_a_bare_number_is_bytes_per_second_as_in_kafka(rate: int) -> None:
    assert byte_rate(str(rate)) == rate


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("15m", 900), ("6h", 21600), ("1.5d", 129600), ("250ms", 0.25)]
)
def test_a_duration(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "-1s", "1 fortnight", "NaN", "36501d", "1e999"])
def test_invalid_durations(text: str) -> None:
    with pytest.raises(Invalid):
        duration(text)


@pytest.mark.parametrize(
    ("shown", "meant"),
    [
        (human_bytes(0), "0 B"),
        (human_bytes(999), "999 B"),
        (human_bytes(1000), "1 kB"),
        (human_bytes(12_345_678), "12.3 MB"),
        (human_bytes(999_999_999), "1 GB"),
        (human_bytes(5e15), "5000 TB"),
        (human_rate(10_000_000), "10 MB/s"),
        (human_rate(0), "0 B/s"),
        (human_rate(0.5), "<1 B/s"),
        (human_rate(0.6), "1 B/s"),
        (human_duration(0.5), "0.5 s"),
        (human_duration(43.3), "43 s"),
        (human_duration(119.6), "2 min 00 s"),
        (human_duration(3_725), "1 h 02 min"),
        (human_duration(500_000), "5 d 18 h"),
    ],
)
def test_the_printed_form(shown: str, meant: str) -> None:
    assert shown == meant


WHOLE_RATES = st.integers(0, 2**63 - 1)
NEAR = st.tuples(WHOLE_RATES, st.integers(1, 1000)).map(lambda pair: [pair[0], pair[0] + pair[1]])


@given(st.one_of(NEAR, st.lists(WHOLE_RATES, min_size=1, max_size=4)))
def test_different_rates_of_one_sentence_have_different_texts(rates: list[int]) -> None:
    texts = human_rates(*rates)
    assert len(set(texts)) == len(set(rates))
    short = tuple(map(human_rate, rates))
    assert texts == short or len(set(short)) < len(set(rates)), "no more digits than needed"


@given(st.integers(0, 2**50))
def test_less_than_a_byte_per_second_needs_no_digits(rate: int) -> None:
    assert human_rates(rate, rate + 0.25) == (human_rate(rate),) * 2


SIZES = {"1": 1, "2TB": 2 * 10**12, "500 GiB": 500 * 2**30, "1.5kB": 1500}
NO_SIZES = {
    "0": "1 or more",
    "1.5": "whole number",
    "2Tbit": "unknown unit 'Tbit'",
    "50MB/s": "not a positive number",
    "9223372036854775808": r"at most 2\^63 - 1",
    "1e999": r"at most 2\^63 - 1",
}


@pytest.mark.parametrize(("text", "size"), SIZES.items())
def test_a_size(text: str, size: int) -> None:
    assert byte_size(text) == size


@pytest.mark.parametrize(("text", "reason"), NO_SIZES.items())
def test_invalid_sizes(text: str, reason: str) -> None:
    with pytest.raises(Invalid, match=f"^--disk '{text}'.*{reason}"):
        byte_size(text, "--disk")
