"""The files that --bytes-in accepts, and when kquota samples a live cluster."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from kquota.cli.connection import Connection
from kquota.cli.contract import worded
from kquota.cli.engine_options import SparkOptions
from kquota.cli.move.estimate.command import EstimateOptions
from kquota.cli.move.estimate.inputs import GivenInputs, asked, gathered, is_live
from kquota.errors import Invalid
from kquota.reassign.plan import Plan
from kquota.sizes.bytes_in import BytesIn
from kquota.spark.files import SIZE_FILES
from kquota.terms import BrokerId
from tests.spark.rows import row, written

RATES = "broker,bytes_in\n1,5\n"


def given(*rates: str, history: list[str] | None = None) -> GivenInputs:
    plan = Path("plan.json")
    return asked(
        EstimateOptions(
            connection=Connection(),
            reassignment_json_file=plan,
            history=history,
            bytes_in=list(rates),
            spark=SparkOptions(),
        )
    )


FILES = ["rates.csv", "day=1.csv", "date=2026-11-21/rates.csv"]


@pytest.mark.parametrize("name", FILES)
def test_a_bytes_in_file_may_have_any_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(RATES)
    assert given(str(path), "2=7").bytes_in() == {1: BytesIn(mean=5.0), 2: BytesIn(mean=7.0)}


def test_a_pipe_is_read_as_a_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(RATES,), daemon=True)
    writer.start()
    assert given(str(pipe)).bytes_in() == {1: BytesIn(mean=5.0)}
    writer.join(10)


def test_a_value_that_is_neither_a_file_nor_a_rate_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="is not a broker id with a rate"):
        given(str(tmp_path))


WRONG = {
    "a name that is too long": (None, "cannot be read: File name too long. Check the path and its permissions"),
    "latin-1": (b"broker,bytes_in\n1,\xe4", "line 2 column 3: is not UTF-8. Save the file as UTF-8"),
    "utf-16": (RATES.encode("utf-16"), "is UTF-16, not UTF-8. Save it as UTF-8"),
    "empty": (b"", "is empty. Give a file with rates (--bytes-in)"),
}


@pytest.mark.parametrize(("content", "complaint"), WRONG.values(), ids=WRONG)
def test_a_file_that_cannot_be_read(tmp_path: Path, content: bytes | None, complaint: str) -> None:
    path = tmp_path / ("x" * 300 if content is None else "rates.csv")
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(Invalid) as raised:
        given(str(path))
    assert str(raised.value).endswith(f"{path}: {complaint}")


HISTORIES: dict[str, tuple[list[str], tuple[str, ...]]] = {
    "a glob": (["{here}/c-*.jsonl.gz"], ("c-1", "c-2")),
    "a folder": (["{here}"], ("c-1", "c-2", "d-1")),
    "a glob of folders": (["{here}/../h*"], ("c-1", "c-2", "d-1")),
    "one named twice": (["{here}/c-1.jsonl.gz", "{here}/c-*.jsonl.gz"], ("c-1", "c-2")),
    "a folder elsewhere": (["s3a://b/h", "{here}/d-*"], ("d-1",)),
}


@pytest.mark.parametrize(("patterns", "stems"), HISTORIES.values(), ids=HISTORIES)
def test_a_history_can_be_files_globs_or_folders(tmp_path: Path, patterns: list[str], stems: tuple[str, ...]) -> None:
    here = tmp_path / "here"
    here.mkdir()
    for stem in ("c-1", "c-2", "d-1"):
        cluster, day = stem.split("-")
        written(here / f"{stem}.jsonl.gz", [row(1, "t", 0, 5, cluster=cluster, time=f"2026-11-0{day}T00:00:00Z")])
    asks = given(history=[pattern.format(here=here) for pattern in patterns])
    found = gathered(asks, Connection(), Plan(targets={}), tmp_path)
    assert found.listing is not None
    assert tuple(sorted(path.name.removesuffix(".jsonl.gz") for path in found.listing.waiting)) == stems
    assert found.listing.rolled == (("s3a://b/h/rolled/v1",) if "s3a://b/h" in patterns else ())


def test_a_login_without_a_cluster_is_not_a_source_of_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    login = Connection(command_config=tmp_path / "client.properties")
    sizes = EstimateOptions(
        connection=login, reassignment_json_file=Path("plan.json"), log_dirs=["sizes.json"], spark=SparkOptions()
    )
    assert not is_live(asked(sizes), login)
    assert is_live(asked(sizes), replace(login, cluster="prod"))
    written(tmp_path / "c.jsonl.gz", [row(1, "t", 0, 5, cluster="c", time="2026-11-01T00:00:00Z")])
    found = gathered(given(history=[str(tmp_path / "c.jsonl.gz")]), login, Plan(targets={}), tmp_path)
    assert found.source == "history"
    assert "so kquota does not use --command-config\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("pattern", "complaint"),
    [
        ("no-such-*", "the file or folder does not exist. Check the path"),
        ("x" * 300, "cannot be read: File name too long. Check the path and its permissions"),
    ],
    ids=["a glob of nothing", "a name that is too long"],
)
def test_a_missing_history(tmp_path: Path, pattern: str, complaint: str) -> None:
    with pytest.raises(Invalid) as raised:
        gathered(given(history=[str(tmp_path / pattern)]), Connection(), Plan(targets={}), tmp_path)
    assert worded(raised.value) == f"--history {tmp_path / pattern}: {complaint}"


def test_sizes_come_from_files_of_one_source(tmp_path: Path) -> None:
    """A row of the table is enough: each source has a reader, and the option with its name."""
    from kquota.spark.sizes import READERS

    assert READERS.keys() == SIZE_FILES.keys()
    assert {source.replace("-", "_") for source in SIZE_FILES} <= EstimateOptions.__dataclass_fields__.keys()
    two = replace(given(), sizes={"log-dirs": ["sizes.txt"], "volumes": ["volumes.csv"]})
    with pytest.raises(Invalid, match="given: --log-dirs and --volumes"):
        gathered(two, Connection(), Plan(targets={}), tmp_path)


TOLD: dict[str, tuple[tuple[str, ...], list[str] | None, set[int], bool]] = {
    # --bytes-in, --history, the brokers that hold a replica: whether kquota samples nothing.
    "no source": ((), None, {1, 2}, False),
    "of one of two": (("1=3MB/s",), None, {1, 2}, False),
    "of all": (("1=3MB/s", "2=0"), None, {1, 2}, True),
    "of all that hold something": (("1=3MB/s",), None, {1}, True),
    "a history": ((), ["h"], {1, 2}, True),
}


@pytest.mark.parametrize(("rates", "history", "holding", "told"), TOLD.values(), ids=TOLD)
def test_a_cluster_is_sampled_unless_the_write_rate_of_every_leader_is_given(
    rates: tuple[str, ...], history: list[str] | None, holding: set[int], told: bool
) -> None:
    assert given(*rates, history=history).covers(set(map(BrokerId, holding))) is told
