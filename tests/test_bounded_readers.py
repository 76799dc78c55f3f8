"""Long inputs for the readers of metrics, documents, usage, traces and courses: memory, time and largest sizes."""

from __future__ import annotations

import contextlib
import gc
import gzip
import json
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pytest

from kquota import text_file
from kquota.errors import Invalid, KquotaError
from kquota.quota import document_text, rpk, strimzi
from kquota.quota.document import Document
from kquota.reassign.course import MOST_CHANGES, MOST_READINGS
from kquota.reassign.plan import Plan
from kquota.reassign.run import Taken
from kquota.settings.resource import Setting
from kquota.spark import files, trace_files
from kquota.stores.metrics import exporters, prometheus
from kquota.stores.record import sheet
from kquota.stores.state import history, journal, usage_files
from kquota.terms import THROTTLE_LISTS, BrokerId, TopicPartition
from tests.fuzz import limit
from tests.fuzz.limit import SPREAD, within_a_second
from tests.fuzz.readers import _STAMP
from tests.stores.record.hosts import RUN

LONG: Final = 100_000


def rows(row: Callable[[int], str], separator: str = "") -> str:
    """Rows of different numbers, about LONG characters in all."""
    return separator.join(map(row, range(LONG // len(row(1_000)))))


def answer(series: str) -> bytes:
    return f'{{"status":"success","data":{{"resultType":"matrix","result":[{series}]}}}}'.encode()


def one_series(number: int, times: int) -> str:
    values = ",".join(f'[{1795526187 + second},"{number}.5"]' for second in range(times))
    labels = f'{{"__name__":"kafka_server_Produce_byte_rate","client_id":"c{number}","instance":"h:7071"}}'
    return f'{{"metric":{labels},"values":[{values}]}}'


def run_with(course: dict[str, Any]) -> bytes:
    return journal.line({**journal.first(RUN, _STAMP), "course": course})


def course(brokers: int = 1, readings: int = 1, changes: int = 1, settings: int = 1) -> dict[str, Any]:
    at = "2026-03-01T12:30:00+00:00"
    unknown = dict.fromkeys(("expected_bytes", "expected_seconds", "copied", "ended"))
    setting = {"kind": "broker", "key": "leader.replication.throttled.rate"}
    return {
        "expected_seconds": 5.5,
        "verdict": None,
        "brokers": [{"broker": number, **unknown} for number in range(brokers)],
        "readings": [[at, number * 10**9, number * 10**9] for number in range(readings)],
        "changes": [
            {
                "at": at,
                "from": 1,
                "to": 2,
                "by": None,
                "reason": None,
                "settings": [{**setting, "name": str(number)} for number in range(settings)],
            }
            for _ in range(changes)
        ],
    }


def replayed(data: bytes) -> journal.JournaledRun:
    documents, _ = journal.lines(data, "a journal")
    return journal.replay(documents, "a journal")


PLANNED: Final = replace(
    RUN,
    plan=Plan(targets={TopicPartition("orders", n): tuple(map(BrokerId, (1, 2, 3))) for n in range(2_000)}),
    stamp=_STAMP,
)
ENCODED: Final = sheet.encode(PLANNED, "c")


def throttled(topics: int, partitions: int) -> bytes:
    """Return the journal of a run that has set the throttled lists of topics, for 3 of 9 brokers each."""
    lists = [
        Taken(
            setting=Setting.of_topic(f"t{topic}", key),
            prior=None,
            ours=tuple(f"{number}:{(number + broker) % 9}" for number in range(partitions) for broker in range(3)),
        )
        for topic in range(topics)
        for key in THROTTLE_LISTS
    ]
    return journal.line(journal.first(replace(RUN, taken={one.setting: one for one in lists}), _STAMP))


def usage_row(number: int) -> str:
    of = {"version": 1, "cluster": "c", "time": "2026-03-01T12:30:00Z", "seconds": 60, "key": "producer_byte_rate"}
    use = {"user": None, "client_id": f"c{number}", "broker": "1", "used": 5.5, "throttle_ms": None, "tokens": None}
    return json.dumps(of | use) + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class LongInput:
    """An input, the reader of it, and the most bytes of memory that do not grow with the input."""

    read: Callable[[Path], object]
    data: bytes | str
    fixed: int = 50_000


def _of_bytes(read: Callable[[bytes], object]) -> Callable[[Path], object]:
    return lambda path: read(path.read_bytes())


def _document(read: Callable[[str, str], Document]) -> Callable[[Path], object]:
    return lambda path: read(*text_file.read(path, "a document"))


def _traced(path: Path) -> int:
    folder = path.with_name(f"scratch-{len(list(path.parent.iterdir()))}")
    folder.mkdir()
    bad = trace_files.BadRows()
    return sum(1 for _ in trace_files.rows(trace_files.opened([str(path)], folder), bad)) + bad.count


EXPORTER: Final = _of_bytes(lambda data: sum(1 for _ in exporters.parsed([data], "h").readings()))
PROMETHEUS: Final = _of_bytes(lambda data: sum(1 for _ in prometheus.parsed(data)))
STRIMZI: Final = _document(strimzi.read)
RPK: Final = _document(rpk.read)
QUOTAS: Final = _document(document_text.read)
USAGE: Final[Callable[[Path], object]] = lambda path: history.check_snapshots([path])  # noqa: E731
LIST: Final = "apiVersion: v1\nitems:\n"
USER: Final = "apiVersion: kafka.strimzi.io/v1, kind: KafkaUser, metadata: {{name: u{}}}, spec: {{quotas: {{}}}}".format

INPUTS: Final = {
    "metrics of an exporter": LongInput(
        read=EXPORTER, data=rows('kafka_server_Produce_byte_rate{{client_id="c{}",user=""}} 5.5\n'.format)
    ),
    "metrics with the shortest names": LongInput(read=EXPORTER, data=rows('fetch_tokens{{user="{}"}}5\n'.format)),
    "metrics with short names of wide characters": LongInput(
        read=EXPORTER, data=rows('fetch_tokens{{user="\U0001f600{}"}}5\n'.format)
    ),
    "blank lines of an exporter": LongInput(read=EXPORTER, data="\n" * LONG),
    "lines that are not metrics": LongInput(read=EXPORTER, data=rows("produce_tokens{{{}\n".format)),
    "metrics with many labels": LongInput(
        read=EXPORTER, data=f'produce_tokens{{{"".join(f"""l{n}="",""" for n in range(9_000))}user="a"}} 1\n' * 4
    ),
    "an hour of metrics from Prometheus": LongInput(
        read=PROMETHEUS, data=answer(",".join(one_series(number, 240) for number in range(30)))
    ),
    "the newest metrics from Prometheus": LongInput(
        read=PROMETHEUS, data=answer(",".join(one_series(number, 1) for number in range(1_000)))
    ),
    "a series of an hour from Prometheus": LongInput(
        read=PROMETHEUS, data=answer(one_series(1, 3_600)), fixed=2_000_000
    ),
    "resources of Strimzi": LongInput(read=STRIMZI, data=rows(lambda n: f"---\n{{{USER(n)}}}\n")),
    "a list of Strimzi": LongInput(read=STRIMZI, data=LIST + rows(lambda n: f"- {{{USER(n)}}}\n") + "kind: List\n"),
    "a list of junk": LongInput(read=STRIMZI, data=LIST + rows("- a{}\n".format) + "kind: List\n"),
    "lists in a resource": LongInput(read=STRIMZI, data="a: [" + "[]," * 120_000 + "]\n", fixed=20_000_000),
    "quotas of rpk": LongInput(
        read=RPK,
        data="quotas:\n"
        + rows(
            '- entity: [{{name: u{}, type: client-id}}]\n  values: [{{key: producer_byte_rate, values: "5"}}]\n'.format
        ),
    ),
    "junk for rpk": LongInput(read=RPK, data="quotas: [" + "[]," * 100_000 + "]\n"),
    "a document of quotas": LongInput(
        read=QUOTAS,
        data="version: 1\nusers:\n"
        + rows("  payments-{}:\n    producer_byte_rate: 10MB/s\n    consumer_byte_rate: 10MB/s\n".format),
    ),
    "a document of quotas that all differ": LongInput(
        read=QUOTAS,
        data="version: 1\nusers:\n"
        + rows("  payments-{0}:\n    producer_byte_rate: 1{0}MB/s\n    consumer_byte_rate: 1{0}kB/s\n".format),
    ),
    "the shortest lines of quotas": LongInput(
        read=QUOTAS, data="version: 1\nusers:\n" + rows("  u{}: {{producer_byte_rate: 5}}\n".format)
    ),
    "short lines of quotas that all differ": LongInput(
        read=QUOTAS,
        data="version: 1\nusers:\n" + rows("  u{0}: {{producer_byte_rate: {0}}}\n".format),
        fixed=1_000_000,
    ),
    "entities without quotas": LongInput(
        read=QUOTAS, data=f"{{version: 1,users: {{{rows('{}: {{}},'.format)}}}}}", fixed=3_000_000
    ),
    "topics without throttles": LongInput(
        read=QUOTAS,
        data="version: 1\nreplication-throttles:\n  topics:\n" + rows("   {}: {{}}\n".format),
        fixed=3_000_000,
    ),
    "a scope of names": LongInput(
        read=QUOTAS,
        data=f"version: 1\nowns: [{','.join(f'u{n}' for n in range(9_000))}]\n",
        fixed=5_000_000,
    ),
    "a scope with too many names": LongInput(read=QUOTAS, data=f"version: 1\nowns: [{rows('{},'.format)}]\n"),
    "a scope of wildcards": LongInput(
        read=QUOTAS, data=f"version: 1\nowns: [{','.join(f'u{n}*' for n in range(1_000))}]\n", fixed=2_500_000
    ),
    "a list of too many throttled replicas": LongInput(
        read=QUOTAS,
        data="version: 1\nreplication-throttles:\n  topics:\n   t: {leader.replication.throttled.replicas: '"
        + rows("{}:1,".format)
        + "'}\n",
    ),
    "a usage snapshot": LongInput(read=USAGE, data=rows(usage_row)),
    "a trace in CSV": LongInput(read=_traced, data="ms,bytes\n" + rows("{},5\n".format)),
    "a trace in JSON lines": LongInput(read=_traced, data=rows('{{"ms":{},"bytes":5}}\n'.format)),
    "a trace of invalid rows": LongInput(read=_traced, data="ms,bytes\n" + rows("x{},5\n".format)),
    "the longest course": LongInput(
        read=_of_bytes(replayed), data=run_with(course(200, MOST_READINGS, MOST_CHANGES, 20))
    ),
    "a course of many brokers": LongInput(read=_of_bytes(replayed), data=run_with(course(brokers=1_000))),
    "a course with too many readings": LongInput(read=_of_bytes(replayed), data=run_with(course(readings=3_000))),
    "the plans of a run": LongInput(read=_of_bytes(replayed), data=journal.line(journal.first(PLANNED, _STAMP))),
    "the throttled lists of a run": LongInput(read=_of_bytes(replayed), data=throttled(topics=100, partitions=50)),
    "the throttled lists of large topics": LongInput(
        read=_of_bytes(replayed), data=throttled(topics=10, partitions=1_500)
    ),
    "a throttled list that is longer than a broker can store": LongInput(
        read=_of_bytes(replayed), data=throttled(topics=1, partitions=50_000), fixed=2_500_000
    ),
    "many versions of a course": LongInput(
        read=_of_bytes(replayed),
        data=journal.line(journal.first(RUN, _STAMP))
        + b"".join(
            journal.line({"v": n, "by": None, "at": "2026-03-01T12:30:00+00:00", "record": None, "course": course(9)})
            for n in range(2, 100)
        ),
    ),
}


@pytest.mark.parametrize("given", INPUTS.values(), ids=INPUTS)
def test_a_long_input_takes_memory_and_time_in_proportion(
    given: LongInput, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limit, "SECONDS", 10.0)  # a reader whose time is quadratic takes minutes
    data = given.data.encode() if isinstance(given.data, str) else given.data
    path = tmp_path / "input"
    path.write_bytes(data)

    def once() -> None:
        with contextlib.suppress(KquotaError, ValueError):
            given.read(path)

    with within_a_second():
        once()  # The first call also imports modules, and leaves garbage.
    most = given.fixed + SPREAD * len(data)
    # Another thread of the tests, which looks for secrets on command lines, can add to a peak.
    peaks = [_peak(once)]
    while peaks[-1] > most and len(peaks) < 3:
        peaks.append(_peak(once))
    assert min(peaks) <= most


def _peak(once: Callable[[], None]) -> int:
    gc.collect()
    tracemalloc.start()
    try:
        once()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_the_plan_of_a_run_in_the_record_takes_memory_in_proportion() -> None:
    """Its part is compressed, so the memory is compared with the text."""
    (part,) = ENCODED.parts.values()
    length = len(gzip.decompress(part))

    def once() -> None:
        assert sheet.decode(ENCODED.sheet, RUN.id, "c", lambda _: part).run.plan == PLANNED.plan

    once()
    assert _peak(once) <= SPREAD * length + 50_000


ENDLESS: Final = gzip.compress(b"ms,bytes\n" + b"0" * 30_000_000)


def _usage(path: Path) -> object:
    day = path.parent / "date=2026-03-01"
    day.mkdir()
    path.rename(day / "c-20260301T123000Z.jsonl.gz")
    return usage_files.found([path.parent])


BOMBS: Final[dict[str, tuple[Callable[[Path], object], str]]] = {
    "usage": (_usage, "not a row of a snapshot"),
    "a trace": (_traced, "more than 100,000 characters"),
    "sizes": (lambda path: files.log_dirs([str(path)], path.parent), "contains no JSON line"),
}


@pytest.mark.parametrize(("read", "why"), BOMBS.values(), ids=BOMBS)
def test_gzip_with_an_endless_line_is_refused_in_little_memory(
    read: Callable[[Path], object], why: str, tmp_path: Path
) -> None:
    path = tmp_path / "packed.gz"
    path.write_bytes(ENDLESS)
    tracemalloc.start()
    try:
        with pytest.raises(Invalid, match=why):
            read(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2_000_000


def test_a_prometheus_answer_has_a_largest_number_of_times() -> None:
    with pytest.raises(ValueError, match="more than 11,000 timestamps"):
        prometheus.parsed(answer(one_series(1, 11_001)))


def test_a_resource_has_a_largest_number_of_values() -> None:
    item = "- {apiVersion: v1, kind: Secret, data: [" + "1," * 99_990 + "]}\n"
    assert len(strimzi.read(f"kind: List\nitems:\n{item}{item}", "a document").unreadable) == 2
    with pytest.raises(Invalid, match="one resource or document has more than 100,000 values"):
        strimzi.read(f"kind: List\nitems:\n{item}".replace("[", "[" + "1," * 20), "a document")
