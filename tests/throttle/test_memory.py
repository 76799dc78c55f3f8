"""Doctor's memory on disk: complete or absent, readable only by its owner, and never an error if damaged."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from kquota import bounded
from kquota.errors import Refused
from kquota.settings.resource import Setting
from kquota.stores.state.doctor_memory import SightingsFile
from kquota.terms import LEADER_RATE, BrokerId
from kquota.throttle.doctor import Sightings
from tests.throttle.stage import BEGUN, LEADER

LEFTOVERS = Sightings(
    at=BEGUN + timedelta(hours=1),
    first={
        Setting.of_broker(BrokerId(1), LEADER_RATE): {"1000": BEGUN},
        Setting.of_topic("t", LEADER): {"0:1": BEGUN, "*": BEGUN + timedelta(microseconds=1)},
        Setting.of_topic("u", LEADER): {"": BEGUN},
    },
)


def test_the_memory_is_read_back(tmp_path: Path) -> None:
    assert SightingsFile(tmp_path, "here").recall() is None
    for kept in (LEFTOVERS, Sightings(at=BEGUN)):
        SightingsFile(tmp_path, "here").keep(kept)
        assert SightingsFile(tmp_path, "here").recall() == kept
    assert SightingsFile(tmp_path, "there").recall() is None


@pytest.mark.parametrize("topics", [1, 100_000])
def test_a_hundred_thousand_leftovers_are_read_back(tmp_path: Path, topics: int) -> None:
    lists = [Setting.of_topic(f"orders-{n}", LEADER) for n in range(topics)]
    kept = Sightings(at=BEGUN, first={one: {f"{n}:1": BEGUN for n in range(100_000 // topics)} for one in lists})
    SightingsFile(tmp_path, "here").keep(kept)
    assert SightingsFile(tmp_path, "here").recall() == kept


def test_the_first_seen_are_kept_if_there_are_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "STATE", 1_000)
    first = {f"{n}:1": BEGUN + timedelta(seconds=n) for n in range(100)}
    kept = Sightings(at=BEGUN, first={Setting.of_topic("t", LEADER): first})
    SightingsFile(tmp_path, "here").keep(kept)
    found = SightingsFile(tmp_path, "here").recall()
    assert found is not None
    (values,) = found.first.values()
    assert 0 < len(values) < 100
    assert values == dict(list(first.items())[: len(values)])


def test_only_the_owner_can_read_it_and_no_other_file_is_left(tmp_path: Path) -> None:
    SightingsFile(tmp_path / "new", "here").keep(LEFTOVERS)
    (path,) = (tmp_path / "new" / "here").iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    assert [folder.stat().st_mode & 0o777 for folder in path.parents[:2]] == [0o700, 0o700]


DAMAGED = {
    "empty": "",
    "torn": '{"version": 1, "at": "2026-03-',
    "no object": "[]",
    "a newer kquota's": '{"version": 3}',
    "version 1": '{"version": 1, "at": "2026-03-01T12:30:00+00:00", "leftovers": [{"kind": "topic", "name": "t"}]}',
    "no time zone": '{"version": 2, "at": "2026-03-01T12:30:00", "leftovers": []}',
    "no texts": '{"version": 2, "at": "2026-03-01T12:30:00+00:00", "leftovers": '
    '[{"kind": "broker", "key": "k", "first_seen": "2026-03-01T12:30:00+00:00", "values": [1]}]}',
    "too large": " " * (bounded.STATE + 1),
    "deep": "[" * 100_000,
}


@pytest.mark.parametrize("text", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_memory_starts_again(tmp_path: Path, text: str) -> None:
    memory = SightingsFile(tmp_path, "here")
    memory.keep(LEFTOVERS)
    (tmp_path / "here" / "leftovers.json").write_text(text)
    assert memory.recall() is None
    memory.keep(LEFTOVERS)
    assert memory.recall() == LEFTOVERS


def test_a_folder_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "here").write_text("in the way")
    with pytest.raises(Refused, match=r"leftovers\.json: cannot be written"):
        SightingsFile(tmp_path, "here").keep(LEFTOVERS)
