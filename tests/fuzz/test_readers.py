"""A short run of the readers: a mutated example gives a value or a known error, soon and in little memory."""

from __future__ import annotations

import re
import tracemalloc
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kquota
from tests.fuzz import limit
from tests.fuzz.__main__ import main
from tests.fuzz.limit import TooSlow, within_a_second
from tests.fuzz.mutation import mutated
from tests.fuzz.readers import READERS, outcome

NEEDS_A_FILE = ("TLS of ZooKeeper",)
"""Readers whose example names a store that does not exist."""


@pytest.mark.parametrize("name", READERS)
def test_the_first_example_can_be_read(name: str) -> None:
    reader = READERS[name]
    assert (outcome(reader, reader.examples[0]) is None) == (name not in NEEDS_A_FILE)


@pytest.mark.parametrize("name", READERS)
@settings(max_examples=10, suppress_health_check=list(HealthCheck))
@given(random=st.randoms(use_true_random=False))
def test_a_mutated_example_gives_a_value_or_a_known_error(name: str, random: Random) -> None:
    reader = READERS[name]
    data = mutated(random, reader.examples)
    with within_a_second():
        outcome(reader, data)


LARGE = 100_000
NOT_MEASURED = {
    "configs of a file": "at most 256 KiB",
    "topics of --from-file": "at most 100,000 topics, so its memory has a limit of its own",
    "write rates": "at most 8 MB",
    "a trace in CSV": "the table keeps every row, a command does not",
    "a part of a sheet": "JSON of less than 1 MiB may be nothing but lists",
    "the cluster's id": "JSON of less than 1 MiB may be nothing but lists",
    "the names of quotas": "a znode's name",
    "percent codes": "a znode's name",
    "a stored throttled list": "at most 32,767 bytes",
}
"""Readers whose inputs are short by nature, or that have another limit, with the reason."""
MEASURED = [name for name, reader in READERS.items() if not reader.is_argument and name not in NOT_MEASURED]


@pytest.mark.parametrize("name", MEASURED)
def test_a_large_input_takes_at_most_eight_times_its_size(name: str) -> None:
    reader = READERS[name]
    example = reader.examples[0]
    data = example * (LARGE // len(example))
    outcome(reader, data)  # what is imported, compiled or cached at the first call does not count
    tracemalloc.start()
    try:
        outcome(reader, data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= 8 * len(data) + 200_000


def test_a_slow_reader_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limit, "SECONDS", 0.01)
    with pytest.raises(TooSlow), within_a_second():
        while True:
            pass


def test_the_long_run_counts_each_execution_and_repeats_by_its_seed(capsys: pytest.CaptureFixture[str]) -> None:
    run = ["--executions", "500", "--seed", "7", "--reader", "a rate", "--reader", "a plan"]
    told = []
    for _ in range(2):
        assert main(run) == 0
        told.append(re.sub(r"in \d+ s|longest .*", "", capsys.readouterr().out))
    assert told[0] == told[1]
    assert "500 executions of 2 readers" in told[0]


READS = re.compile(r"\b(bounded\.(json_value|json_object|file_bytes|file_text|expanded|lines)|text_file\.read)\(")


def test_every_module_that_reads_outside_text_is_in_the_table() -> None:
    """A module that calls a reader of `bounded` or `text_file` is imported by the table, or listed here."""
    table = (Path(__file__).parent / "readers.py").read_text()
    others = {
        *("bounded.py", "text_file.py", "java_properties.py"),  # called by the others
        *("quota/comparison.py", "reassign_partitions/generation.py", "cli/list_options.py", "quota/run.py"),
        *("login/arguments.py", "login/keystores.py", "configs/pairs.py", "state/runs.py", "state/completion.py"),
        *("settings/change.py", "zookeeper/topics.py", "state/run_fields.py"),
    }
    folder = Path(kquota.__file__).parent
    for path in folder.rglob("*.py"):
        if READS.search(path.read_text()) and not any(str(path).endswith(other) for other in others):
            assert re.search(rf"\b{path.stem}\b", table), path
