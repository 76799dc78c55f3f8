"""The shared record of a cluster with brokers and a ZooKeeper, both in memory: its choice, and its end."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn

import pytest
from kazoo import exceptions as kazoo_errors

from kquota.cli import world
from kquota.errors import Busy, Incomplete, Refused
from kquota.mutation.topic import Creation
from kquota.stores.admin import topic_setup
from kquota.stores.record import choose
from kquota.stores.record.choose import MARKER, Choice
from kquota.stores.record.lease import LeaseClock, Sighting
from kquota.stores.record.memory import Remembered, recall, remember
from kquota.stores.record.runs import RecordedRuns
from kquota.stores.record.shared import Unshared
from kquota.stores.record.sharing import Removal, Sharing, SharingPlan
from kquota.stores.record.topic import TopicRecord
from kquota.stores.record.znodes import ZnodeRecord
from kquota.stores.state.runs import RunFiles
from tests.cli.run import kquota_here
from tests.hosts.tree import Answer, MemoryClient, MemoryTree, MemoryZnodes
from tests.stores.record.broker import BrokerWire, HeldTopic
from tests.stores.record.hosts import RUN
from tests.stores.record.stage import handle

NAME = "runs"


@dataclass
class Site:
    """One cluster. Each host has its own connections and state folder."""

    folder: Path
    topics: dict[str, HeldTopic] = field(default_factory=lambda: {NAME: HeldTopic()})
    tree: MemoryTree = field(default_factory=MemoryTree)

    def files(self, host: str) -> RunFiles:
        return RunFiles(self.folder / host, "cluster")

    def sharing(self, host: str) -> Sharing:
        return Sharing(wire=BrokerWire(self.topics), znodes=MemoryZnodes(self.tree), files=self.files(host), topic=NAME)

    def record(self, host: str) -> TopicRecord:
        """The record as another command of the host opens it."""
        log = handle(BrokerWire(self.topics), NAME)
        return TopicRecord(log, NAME, "cluster", Sighting(self.files(host).folder / "lock.seen", LeaseClock()))

    def share(self, host: str) -> None:
        sharing = self.sharing(host)
        sharing.share(sharing.plan())


class LosingClient(MemoryClient):
    """A client whose connection is lost after the broker has deleted the topic of the record."""

    def __init__(self, site: Site) -> None:
        super().__init__(site.tree)
        self._topics = site.topics

    def get_async(self, path: str) -> Answer:
        return super().get_async(path) if NAME in self._topics else Answer(_lost)


def _lost() -> NoReturn:
    raise kazoo_errors.ConnectionLoss


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.mark.parametrize("used", [False, True], ids=["another host used it", "this host used it"])
@pytest.mark.parametrize("writes", [False, True], ids=["reads", "writes"])
@pytest.mark.parametrize("name", [None, NAME], ids=["no --record", "--record"])
def test_over_zookeeper_a_deleted_topic_of_the_record_is_named_with_its_marker(
    site: Site, used: bool, writes: bool, name: str | None
) -> None:
    site.share("one")
    remember(site.files("two").folder, topic=NAME if used else None, topic_id="an id" if used else None)
    del site.topics[NAME]
    warnings: list[Exception] = []
    choice = Choice(name=name, writes=writes, warned=warnings.append)
    with pytest.raises(Refused) as error:
        choose.over_zookeeper(MemoryZnodes(site.tree), site.files("two"), choice, lambda: BrokerWire(site.topics))
    assert (str(error.value), warnings) == (
        "/kquota/record in ZooKeeper names topic runs as the record of runs, but the topic does not exist. "
        "Nothing was written. To remove the marker, run unsharing the record in topic runs",
        [],
    )


@pytest.mark.parametrize("writes", [False, True], ids=["reads", "writes"])
@pytest.mark.parametrize("name", [None, NAME], ids=["no --record", "--record"])
@pytest.mark.parametrize("over", ["brokers", "zookeeper"])
def test_nothing_is_written_without_a_record_that_was_named_and_is_forbidden(
    site: Site, over: str, name: str | None, writes: bool
) -> None:
    """Error 29 is not `absent`: other hosts use this topic, so a command without its lock could write at the same time.
    Nothing names the topic over brokers without --record.
    """
    site.share("one")
    wire = BrokerWire(site.topics)
    wire.forbidden = True
    files, znodes = site.files("two"), MemoryZnodes(site.tree)
    choice = Choice(name=name, writes=writes, warned=lambda _: None)

    def found() -> object:
        if over == "brokers":
            return choose.over_brokers(wire, files, choice, lambda _: znodes)
        return choose.over_zookeeper(znodes, files, choice, lambda: wire)

    if writes and (over == "zookeeper" or name is not None):
        with pytest.raises(Refused, match="kquota writes nothing without the record"):
            found()
        assert recall(files.folder) == Remembered()
    else:
        alone = found()
        assert isinstance(alone, Unshared)
        assert alone.hidden


def test_no_record_over_zookeeper_does_not_read_the_marker(site: Site) -> None:
    site.tree.put(MARKER, b"junk")
    warnings: list[Exception] = []
    choice = Choice(name=choose.NONE, writes=True, warned=warnings.append)
    found = choose.over_zookeeper(MemoryZnodes(site.tree), site.files("one"), choice, lambda: BrokerWire(site.topics))
    assert (type(found), warnings) == (Unshared, [])


@pytest.mark.parametrize(
    ("name", "why"), [("lock", "cannot be written"), ("2026-11-27T10-00-00-abc.journal", "cannot be read")]
)
def test_share_creates_no_topic_if_this_host_cannot_add_its_runs(
    site: Site, monkeypatch: pytest.MonkeyPatch, name: str, why: str
) -> None:
    """Otherwise, all other hosts would use the record, without the open runs of this host."""
    sharing = site.sharing("one")
    setup = Creation(topic=NAME, partitions=1, replication_factor=1)
    created = []
    monkeypatch.setattr(topic_setup, "create", lambda _, topic: created.append(topic))
    sharing.files.folder.mkdir(parents=True)
    (sharing.files.folder / name).mkdir()
    with pytest.raises(Refused, match=f"{name}: {why}"):
        sharing.plan()
    with pytest.raises(Refused, match=f"{name}: {why}"):
        sharing.share(SharingPlan(setup=setup, marker=False))
    assert created == []


def test_a_plan_to_share_needs_a_state_folder_that_can_be_made(site: Site) -> None:
    sharing = site.sharing("one")
    assert sharing.plan() == SharingPlan(setup=None, marker=True)
    assert not sharing.files.folder.exists(), "a dry run creates nothing"
    sharing.files.folder.parent.write_text("a file")
    with pytest.raises(Refused, match="one: cannot be written \\(Not a directory\\)"):
        sharing.plan()


def test_share_creates_no_topic_if_the_journal_of_an_open_run_can_only_be_read(
    site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """kquota reads a journal that is a link, but does not write to it. An ended run is not written."""
    files, sharing = site.files("one"), site.sharing("one")
    wanted = SharingPlan(setup=Creation(topic=NAME, partitions=1, replication_factor=1), marker=False)
    created = []
    monkeypatch.setattr(topic_setup, "create", lambda _, topic: created.append(topic))
    files.write(RUN, None, 1)
    journal = Path(files.place(RUN)).rename(tmp_path / "elsewhere")
    Path(files.place(RUN)).symlink_to(journal)
    with pytest.raises(Refused, match=f"{RUN.id}.journal: cannot be written"):
        sharing.plan()
    with pytest.raises(Refused, match=f"{RUN.id}.journal: cannot be written"):
        sharing.share(wanted)
    assert created == []
    journal.rename(files.place(RUN))
    files.write(replace(RUN, finished=RUN.begun), None, 2)
    Path(files.place(RUN)).rename(journal)
    Path(files.place(RUN)).symlink_to(journal)
    sharing.share(wanted)
    assert created == [NAME]


def test_share_writes_no_marker_while_another_command_writes(site: Site) -> None:
    other = RecordedRuns(site.files("one"), site.record("one"))
    with other.hold("move run"), pytest.raises(Busy, match="holds the lock of this cluster"):
        site.share("two")
    assert MARKER not in site.tree.nodes
    site.share("two")
    assert MARKER in site.tree.nodes


@pytest.mark.parametrize("still", [False, True], ids=["has begun", "is just writing"])
def test_share_writes_no_marker_if_a_run_begins_in_zookeeper_meanwhile(site: Site, still: bool) -> None:
    """With the marker, no command would read the run in the znodes, and its throttle would stay set."""
    sharing = site.sharing("two")
    wanted = sharing.plan()
    other = RecordedRuns(site.files("one"), ZnodeRecord(MemoryZnodes(site.tree), "cluster"))
    with ExitStack() as stack:
        stack.enter_context(other.hold("--execute"))
        other.begin(RUN)
        if not still:
            stack.close()
        with pytest.raises(Busy if still else Refused, match="holds the lock" if still else RUN.id):
            sharing.share(wanted)
    assert MARKER not in site.tree.nodes


def test_unshare_names_the_deleted_topic_if_the_marker_stays(site: Site) -> None:
    site.share("one")
    sharing = site.sharing("one")
    assert sharing.znodes is not None
    sharing.znodes._client = LosingClient(site)
    with pytest.raises(Incomplete, match=r"Topic runs was deleted. Run the same command again") as error:
        sharing.unshare()
    assert (error.value.done, NAME in site.topics, MARKER in site.tree.nodes) == ((NAME,), False, True)
    assert site.sharing("one").unshare() == Removal(topic=False, marker=True, memory=True, ended_runs=0)


def test_the_runs_of_a_record_that_cannot_be_used_are_unknown(site: Site) -> None:
    site.topics[NAME].partitions = 2
    found = site.sharing("one").condition()
    assert found is not None
    assert found.wrong == ("it has 2 partitions, and the record needs one",)
    assert (found.open_runs, found.ended_runs, found.unreadable, found.foreign) == (None, None, None, None)
    for dry_run in (True, False):
        with pytest.raises(Refused, match="topic runs has 2 partitions, but the shared record needs exactly one"):
            site.sharing("one").unshare(dry_run=dry_run)


@pytest.mark.parametrize("configs", [{}, {"cleanup.policy": "delete"}], ids=["sound", "cannot be used"])
def test_a_dry_run_of_unshare_reads_the_runs_like_unshare(site: Site, configs: Mapping[str, str]) -> None:
    site.share("one")
    site.topics[NAME].configs = configs
    runs = RecordedRuns(site.files("one"), site.record("one"))
    with runs.hold("move run"):
        runs.begin(RUN)
    for dry_run in (True, False):
        with pytest.raises(Refused, match=f"topic runs: 1 run is open or unreadable .{RUN.id}."):
            site.sharing("two").unshare(dry_run=dry_run)
    with runs.hold("move run"):
        runs.update(replace(RUN, finished=RUN.begun))
    removed = Removal(topic=True, marker=True, memory=False, ended_runs=1)
    assert (site.sharing("two").unshare(dry_run=True), NAME in site.topics) == (removed, True)
    assert (site.sharing("two").unshare(), NAME in site.topics) == (removed, False)


@pytest.mark.parametrize("verb", ["share", "unshare"])
def test_a_dry_run_reports_the_command_that_holds_the_lock(
    site: Site, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    """The same command without --dry-run would end with 75."""
    site.share("one")
    monkeypatch.setattr(world, "record", lambda *_: nullcontext(site.sharing("two")))
    dry = ("record", verb, "--bootstrap-server", "b1:9092", "--dry-run")
    with RecordedRuns(site.files("one"), site.record("one")).hold("move run"):
        held = kquota_here(*dry)
        assert kquota_here("record", verb, "--bootstrap-server", "b1:9092", "--yes").code == 75
    assert held.code == 0
    assert re.fullmatch(
        r"kquota: note: another kquota \(move run, pid .*\) holds the lock of this cluster. Without --dry-run, this "
        r"command would now exit with 75\n",
        held.err,
    )
    free = kquota_here(*dry)
    assert (free.code, free.out, free.err) == (0, held.out, "")


def test_without_a_topic_the_lock_is_that_of_this_host(site: Site) -> None:
    del site.topics[NAME]
    with site.files("one").hold("move run"):
        writer = site.sharing("one").writer()
        assert writer is not None
        assert writer.startswith("another kquota (move run, pid ")
        assert site.sharing("two").writer() is None
    assert site.sharing("one").writer() is None
