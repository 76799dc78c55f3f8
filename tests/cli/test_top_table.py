"""The table of `quota top` on terminals of different widths."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace

import pytest

from kquota.cli.connection import Connection
from kquota.cli.quota.metrics_source import MetricsSource
from kquota.cli.quota.top import run as top
from kquota.cli.quota.top.command import TopOptions
from kquota.cli.quota.top.run import TopClients
from kquota.errors import Invalid, KquotaError, Unreachable
from kquota.quota.entity import Entity
from kquota.quota.usage import BucketUse, QuotaBucket, Usage
from kquota.terms import CONTROLLER_MUTATION_RATE, PRODUCER_BYTE_RATE

CLIENT = Usage(
    bucket=QuotaBucket(key=PRODUCER_BYTE_RATE, user=None, client_id="slow-one"),
    level=7,
    entity=Entity(client_id="slow-one"),
    limit=50_000.0,
    readings=(BucketUse(broker="1", used=60_600.0, throttle_ms=1_285.0),),
)
WIDTHS = {
    None: "client key used limit of limit throttled broker quota",
    120: "client key used limit of limit throttled broker quota",
    100: "client key used limit of limit throttled broker",
    90: "client key used limit of limit throttled broker",
    85: "client key used limit of limit throttled",
    80: "client key used of limit throttled",
    40: "client key used of limit throttled",
}


@pytest.mark.parametrize(("width", "heads"), WIDTHS.items())
def test_a_narrow_terminal_shows_fewer_columns(width: int | None, heads: str) -> None:
    found = TopClients(brokers=("1",), controller_queue_ms=None, clients=(CLIENT,), most=20)
    head, line = found.text(width)
    assert head.split() == heads.split()
    assert width in (None, 40) or len(line) <= width
    assert ("1,285 ms" in line, "client 'slow-one'" in line.partition("1,285 ms")[2]) == (True, "quota" in heads)


def test_a_long_client_id_does_not_wrap() -> None:
    name = "orders-service-of-team-a-7f8c9d-StreamThread-1-producer"
    client = replace(CLIENT, bucket=replace(CLIENT.bucket, client_id=name))
    found = TopClients(brokers=("1",), controller_queue_ms=None, clients=(client, CLIENT), most=20)
    lines = list(found.text(80))
    assert max(map(len, lines)) == 80
    assert [line.split("  ")[0] for line in lines[1:]] == ["client-id 'ord…d-1-producer'", "client-id 'slow-one'"]
    assert name in "".join(found.text())


@pytest.mark.parametrize(
    ("throttle_ms", "tokens", "shown"),
    [
        (0.0, 0.0, ""),
        (None, -0.25, "less than 1 token over"),
        (None, -0.5, "less than 1 token over"),
        (None, -1.0, "1 token over"),
        (None, -2.6, "3 tokens over"),
        (0.4, None, "less than 1 ms"),
        (1.2, None, "1 ms"),
    ],
)
def test_a_throttled_client_never_shows_0(throttle_ms: float | None, tokens: float | None, shown: str) -> None:
    bucket = replace(CLIENT.bucket, key=CONTROLLER_MUTATION_RATE)
    reading = BucketUse(broker="1", used=1.5, throttle_ms=throttle_ms, tokens=tokens)
    client = replace(CLIENT, bucket=bucket, limit=2.0, readings=(reading,))
    assert client.throttled is bool(shown)
    found = TopClients(brokers=("1",), controller_queue_ms=None, clients=(client,), most=20)
    (line,) = list(found.text())[1:]
    assert line.partition("75%")[2].partition("  1  ")[0].strip() == shown


EMPTY = TopClients(brokers=("1",), controller_queue_ms=None, clients=(), most=20)


def live_table(monkeypatch: pytest.MonkeyPatch, *results: TopClients | BaseException) -> list[str]:
    """The lines of readings with these results. The last result is an error that ends the table."""
    lines: list[str] = []
    left = iter(results)

    def read(*_: object) -> TopClients:
        result = next(left)
        if isinstance(result, BaseException):
            raise result
        return result

    @contextmanager
    def live() -> Iterator[Callable[[Iterable[str], Iterable[str]], None]]:
        yield lambda table, _: lines.extend(table)

    monkeypatch.setattr(top, "_read", read)
    monkeypatch.setattr(top, "live", live)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.setattr("kquota.cli.world.quotas", nullcontext)
    source = MetricsSource(prometheus="http://prometheus:9090")
    last = results[-1]
    assert isinstance(last, BaseException)
    with pytest.raises(type(last)):
        list(top.run(TopOptions(connection=Connection(bootstrap_server="broker:9092"), source=source)))
    return lines


def test_a_live_table_continues_while_prometheus_lists_a_returning_broker_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    silent, twice = Unreachable("no answer"), Invalid("broker 3 is listed twice")
    assert live_table(monkeypatch, EMPTY, silent, twice, KeyboardInterrupt()) == [
        "no clients to show",
        "warning: no answer. Trying again",
        "warning: broker 3 is listed twice. Trying again",
    ]


@pytest.mark.parametrize("error", [Invalid("broker 3 is listed twice"), Unreachable("not a page of metrics")])
def test_a_live_table_ends_if_its_first_reading_fails(monkeypatch: pytest.MonkeyPatch, error: KquotaError) -> None:
    """The address is probably wrong, so all later readings would also fail."""
    assert live_table(monkeypatch, error) == []
