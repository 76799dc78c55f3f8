"""Lists of broker ids in options."""

from __future__ import annotations

import pytest

from kquota.cli.list_options import broker_ids
from kquota.cli.reassign_partitions.generation import broker_list
from kquota.errors import Invalid

GOOD = {
    "none": (None, ()),
    "as Kafka's tools take them": (["2,1"], (2, 1)),
    "with blanks, which Kafka's do not": (["1, 2"], (1, 2)),
    "repeated, and one twice": (["3,1", "1"], (3, 1)),
    "the highest": (["2147483647"], (2147483647,)),
}
BAD = {
    "a hole": "1,,2",
    "nothing": "",
    "no number": "1,x",
    "below 0": "-1",
    "too high": "2147483648",
    "more than int() takes": "9" * 5_000,
    "another 2": "²",
}


@pytest.mark.parametrize(("texts", "ids"), GOOD.values(), ids=GOOD)
def test_broker_ids(texts: list[str] | None, ids: tuple[int, ...]) -> None:
    assert broker_ids(texts, "--brokers") == ids


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_invalid_lists_of_brokers(text: str) -> None:
    with pytest.raises(
        Invalid, match=r"--brokers '.*': not a list of broker ids. Write broker ids joined by commas, for example 1,2,3"
    ):
        broker_ids([text], "--brokers")


def test_generate_takes_each_broker_once() -> None:
    assert broker_list("3, 1") == (1, 3)
    with pytest.raises(Invalid, match=r"Broker list contains duplicate entries: \[1\]"):
        broker_list("1,2,1")
