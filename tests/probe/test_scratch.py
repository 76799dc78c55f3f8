"""A scratch topic is identified by its name and its seal together, never by only one of them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.probe import scratch
from kquota.terms import TOPIC_NAME

NOW = datetime(2026, 11, 21, 23, 0, tzinfo=UTC)
DRAWS = st.integers(0, 2**32 - 1).map(lambda n: f"{n:08x}")


@given(st.timedeltas(timedelta(0), timedelta(days=20_000)), st.floats(1, 3_600), DRAWS)
def test_a_name_contains_the_expiry_of_its_probe(later: timedelta, seconds: float, draw: str) -> None:
    began = NOW + later
    topic = scratch.name(began, seconds, draw)
    assert re.fullmatch(TOPIC_NAME, topic)
    ends = scratch.ends(topic)
    assert ends is not None
    assert timedelta(0) <= began + timedelta(seconds=seconds) + scratch.MARGIN - ends < timedelta(seconds=1)
    assert scratch.ends(f"{topic}-12") == ends


@given(DRAWS, DRAWS)
def test_a_seal_fits_its_own_topic_only(one: str, other: str) -> None:
    topic, another = scratch.name(NOW, 60, one), scratch.name(NOW, 60, other)
    assert scratch.ours(topic, scratch.configs(topic))
    assert scratch.ours(another, scratch.configs(topic)) == (one == other)
    assert not scratch.ours(topic, scratch.configs(topic) | {scratch.SEAL: "0"})
    assert not scratch.ours(topic, {})


OTHERS = {
    "an operator's": "orders",
    "only the prefix": "kquota-probe-",
    "no such time": "kquota-probe-20261399T000000Z-0badcafe",
    "no chance in it": "kquota-probe-20261121T230000Z",
    "something behind it": "kquota-probe-20261121T230000Z-0badcafe-copy",
    "something before it": "my-kquota-probe-20261121T230000Z-0badcafe",
}


@pytest.mark.parametrize("topic", OTHERS.values(), ids=OTHERS)
def test_a_topic_with_another_name_is_never_a_scratch_topic(topic: str) -> None:
    assert scratch.ends(topic) is None
    assert not scratch.ours(topic, scratch.configs(topic))
