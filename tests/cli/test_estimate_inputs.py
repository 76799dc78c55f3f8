"""What --bytes-in takes for a file, and when a live cluster is sampled."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from kquota.cli.move.estimate.inputs import Asked, asked
from kquota.errors import Invalid
from kquota.sizes.bytes_in import BytesIn
from kquota.terms import BrokerId

RATES = "broker,bytes_in\n1,5\n"


def given(*rates: str, history: list[str] | None = None) -> Asked:
    return asked(None, history, None, None, rates, "3", None)


FILES = ["rates.csv", "day=1.csv", "date=2026-11-21/rates.csv"]


@pytest.mark.parametrize("name", FILES)
def test_a_file_may_have_any_name(tmp_path: Path, name: str) -> None:
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


def test_what_is_no_file_and_no_rate_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="write a broker's id and a rate"):
        given(str(tmp_path))


TOLD: dict[str, tuple[tuple[str, ...], list[str] | None, set[int], bool]] = {
    # --bytes-in, --history, the brokers that hold something: whether nothing is sampled.
    "nobody tells": ((), None, {1, 2}, False),
    "of one of two": (("1=3MB/s",), None, {1, 2}, False),
    "of all": (("1=3MB/s", "2=0"), None, {1, 2}, True),
    "of all that hold something": (("1=3MB/s",), None, {1}, True),
    "a history": ((), ["h"], {1, 2}, True),
}


@pytest.mark.parametrize(("rates", "history", "holding", "told"), TOLD.values(), ids=TOLD)
def test_a_cluster_is_sampled_unless_every_leader_is_told(
    rates: tuple[str, ...], history: list[str] | None, holding: set[int], told: bool
) -> None:
    assert given(*rates, history=history).told(set(map(BrokerId, holding))) is told
