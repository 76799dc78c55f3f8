"""Reading within bounds: sizes, kinds of files, depth, gzip, and the memory and time of every reader of a file."""

from __future__ import annotations

import contextlib
import gc
import gzip
import io
import os
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from kquota import bounded, java_properties
from kquota.cli.list_options import topics_in
from kquota.cli.reassign_partitions.generation import topics_to_move
from kquota.election import leaders
from kquota.errors import Invalid, KquotaError, Refused
from kquota.reassign import plan
from kquota.sizes import bytes_in
from kquota.stores.login import jaas
from kquota.stores.login.keystores import trusted
from kquota.stores.state import clusters, history
from kquota.stores.state.runs import RunFiles


def test_a_file_has_at_most_the_bytes_that_a_reader_allows(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert bounded.file_bytes(path, 5) == b"12345"
    with pytest.raises(OSError, match="it has 5 bytes, and kquota reads at most 4"):
        bounded.file_bytes(path, 4)


def test_a_name_with_a_null_character_is_refused_like_a_missing_file() -> None:
    """A properties file can name such a store."""
    with pytest.raises(OSError, match="its name has a null character"):
        bounded.file_bytes(Path("/a\0b"), 100)


def test_endless_and_blocking_files_are_refused(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path in (fifo, Path("/dev/zero")):
        with pytest.raises(OSError, match="it is not a regular file"):
            bounded.file_bytes(path, 100)
    with pytest.raises(OSError, match="it has more than 100 bytes, the most that kquota reads"):
        bounded.file_bytes(Path("/dev/zero"), 100, pipe=True)
    for pipe in (False, True):
        with pytest.raises(IsADirectoryError):
            bounded.file_bytes(tmp_path, 100, pipe=pipe)


NOT_JSON = {
    "nothing": b"",
    "not UTF-8": b'"\xff"',
    "NaN": b"[NaN]",
    "Infinity": b"-Infinity",
    "too deep": b"[" * 100_000 + b"]" * 100_000,
    "too many digits": b"9" * 5_000,
    "half of a pair of escapes": rb'{"a":["\ud800"]}',
    "half of a pair in a key": rb'{"\uDFFF":1}',
    "half of a pair in UTF-8": b'["\xed\xa0\x80"]',
    "nothing but lists": b"[" + b"[]," * 400_000 + b"[]]",
    "nothing but objects": b"[" + b"{}," * 400_000 + b"{}]",
}


@pytest.mark.parametrize("data", NOT_JSON.values(), ids=NOT_JSON.keys())
def test_json_that_is_not_valid_or_not_worth_its_memory(data: bytes) -> None:
    for form in (data, data.decode("latin-1")):
        if isinstance(form, bytes) or form.isascii():  # other bytes are valid as text
            with pytest.raises(ValueError):
                bounded.json_value(form)


def test_a_pair_of_escapes_is_one_character() -> None:
    assert bounded.json_value(rb'["\ud83d\ude00","\\ud800"]') == ["\U0001f600", r"\ud800"]


def test_gzip_expands_to_what_was_compressed() -> None:
    data = os.urandom(700_000) + b"0" * 100_000
    assert bounded.expanded(gzip.compress(data), 800_000) == data
    assert bounded.expanded(gzip.compress(b""), 0) == b""


NOT_GZIP = {
    "nothing": (b"", "is truncated"),
    "truncated": (gzip.compress(os.urandom(1_000))[:-20], "is truncated"),
    "damaged": (b"x" * 50, "is damaged"),
    "too long": (gzip.compress(b"0" * 1_000_001), "expands to more than 1,000,000 bytes"),
    "a bomb": (gzip.compress(b"0" * 30_000_000), "expands to more than 1,000,000 bytes"),
}


@pytest.mark.parametrize(("data", "why"), NOT_GZIP.values(), ids=NOT_GZIP.keys())
def test_gzip_that_is_damaged_or_too_long(data: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        bounded.expanded(data, 1_000_000)


def test_a_bomb_is_refused_below_the_largest_size() -> None:
    data = gzip.compress(b"0" * 30_000_000)
    tracemalloc.start()
    with pytest.raises(ValueError, match="expands to more than"):
        bounded.expanded(data, 100_000_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000_000


def test_lines_have_a_longest_length() -> None:
    assert list(bounded.lines(io.BytesIO(b"a\nbc\n\nd"), 3)) == [b"a\n", b"bc\n", b"\n", b"d"]
    with pytest.raises(ValueError, match="line 2 has more than 3 bytes"):
        list(bounded.lines(io.BytesIO(b"a\n" + b"b" * 10), 3))


def test_a_snapshot_whose_line_has_no_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c-20260301T123000Z.jsonl.gz"
    path.write_bytes(gzip.compress(b"0" * 30_000_000))
    with pytest.raises(Invalid, match="line 1 has more than 100,000 bytes"):
        history.check_snapshots([path])


def test_a_journal_that_is_a_fifo_is_refused_and_hides_no_other(tmp_path: Path) -> None:
    files = RunFiles(tmp_path, "c")
    with files.hold("execute"):
        os.mkfifo(files.folder / "fifo.journal")
    with pytest.raises(Refused, match=r"fifo\.journal: cannot be read"):
        files.every()
    unread: dict[str, KquotaError] = {}
    assert files.every(unread) == {}
    assert unread.keys() == {"fifo"}


SMALL: dict[str, Callable[[Path], object]] = {
    "properties": lambda path: java_properties.entries(path, "--command-config"),
    "JAAS": lambda path: jaas.section(path, "KafkaClient", "--zk-sasl-config-file"),
    "a store": lambda path: trusted({"ssl.truststore.location": str(path)}, "ssl.", "--command-config"),
    "clusters": lambda path: clusters.cluster("prod", {"XDG_CONFIG_HOME": str(path.parent.parent)}),
}


@pytest.mark.parametrize("read", SMALL.values(), ids=SMALL.keys())
def test_settings_have_a_largest_size(read: Callable[[Path], object], tmp_path: Path) -> None:
    (tmp_path / "kquota").mkdir()
    path = tmp_path / "kquota" / "config.toml"
    path.write_bytes(b"# comment\n" * 1_000_000)
    with pytest.raises(Invalid, match="it has 10,000,000 bytes, and kquota reads at most"):
        read(path)


def test_continuation_lines_take_linear_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a bound they took 8 minutes for 21 MB."""
    monkeypatch.setattr(bounded, "SETTINGS", 10**8)
    path = tmp_path / "properties"
    path.write_bytes(b"a=" + b"b\\\n" * 300_000)
    begun = time.process_time()
    assert java_properties.entries(path, "--command-config") == [("a", "b" * 300_000)]
    assert time.process_time() - begun < 10


def test_toml_with_a_number_of_too_many_digits(tmp_path: Path) -> None:
    (tmp_path / "kquota").mkdir()
    (tmp_path / "kquota" / "config.toml").write_text("a = " + "9" * 5_000)
    with pytest.raises(Invalid, match="a number is too long"):
        clusters.cluster("prod", {"XDG_CONFIG_HOME": str(tmp_path)})


@pytest.mark.parametrize("text", ["a" + ".a" * 30_000 + " = 1", "a = " + "[" * 50_000], ids=["dots", "lists"])
def test_toml_that_takes_minutes_or_the_stack(text: str, tmp_path: Path) -> None:
    (tmp_path / "kquota").mkdir()
    (tmp_path / "kquota" / "config.toml").write_text(text)
    begun = time.process_time()
    with pytest.raises(Invalid, match=r"more than 300 dots|nested too deeply"):
        clusters.cluster("prod", {"XDG_CONFIG_HOME": str(tmp_path)})
    assert time.process_time() - begun < 10


def listed(key: str, entry: Callable[[int], str], count: int) -> str:
    return f'{{"{key}":[{",".join(map(entry, range(count)))}]}}'


JSON_FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a plan": (plan.read, listed("partitions", '{{"topic":"t","partition":{},"replicas":[1,2,3]}}'.format, 6_000)),
    "a plan with another field": (
        plan.read,
        listed("partitions", '{{"topic":"t","partition":{},"replicas":[1],"x":1}}'.format, 6_000),
    ),
    "a plan of junk": (plan.read, listed("partitions", lambda _: '{"aaaaaa":1}', 25_000)),
    "a plan of junk with keys": (plan.read, listed("partitions", '{{"aaaa{}":1}}'.format, 20_000)),
    "a plan inside a plan": (plan.read, listed("partitions", lambda _: '{"partitions":1}', 20_000)),
    "topics": (topics_to_move, listed("topics", '{{"topic":"orders-{:05d}"}}'.format, 12_000)),
    "topics of junk": (topics_to_move, listed("topics", lambda _: '{"aaaaaa":1}', 25_000)),
    "an election": (leaders.read, listed("partitions", '{{"topic":"t","partition":{}}}'.format, 9_000)),
    "an election of junk": (leaders.read, listed("partitions", lambda _: '{"aaaaaa":1}', 25_000)),
}


@pytest.mark.parametrize(("read", "text"), JSON_FILES.values(), ids=JSON_FILES.keys())
def test_a_long_file_takes_at_most_eight_times_its_size(
    read: Callable[[Path], object], text: str, tmp_path: Path
) -> None:
    path = tmp_path / "file.json"
    path.write_text(text)

    def once() -> None:
        with contextlib.suppress(KquotaError):
            read(path)

    once()  # The first call also imports modules, and leaves garbage.
    gc.collect()
    tracemalloc.start()
    once()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 8 * len(text)


def test_a_file_of_topics_has_at_most_100_000(tmp_path: Path) -> None:
    path = tmp_path / "topics"
    path.write_text("t\n" * 100_000)
    assert len(topics_in(path)) == 100_000
    path.write_text("t\n" * 100_001)
    with pytest.raises(Invalid, match="lists more than 100,000 topics"):
        topics_in(path)


def test_rates_have_a_largest_file() -> None:
    with pytest.raises(Invalid, match="and kquota reads at most 8,000,000"):
        bytes_in.parse("broker,bytes_in\n" + "1,1\n" * 2_000_000, "rates")
