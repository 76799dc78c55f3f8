"""The hosts of one team at one cluster: each has a state folder, a connection, and the record that they share."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient

from kquota.settings.resource import Setting
from kquota.stores.admin.connection import Wire
from kquota.stores.admin.moves import WireMoves
from kquota.terms import TopicPartition
from tests.cli.dying import Doom, Mortal
from tests.cli.run import Ran, kquota, kquota_here
from tests.stores.moves_stage import OtherHand
from tests.waiting import until

ZOOKEEPER, BROKERS = "--zookeeper", "--bootstrap-server"
MARKER = "/kquota/record"


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """An operator on one machine. The state of this host is in `folder`, and it connects with `option`."""

    hand: OtherHand
    folder: Path
    option: str
    record: str | None

    @property
    def where(self) -> tuple[str, ...]:
        servers = self.hand.servers
        address = servers.zookeeper if self.option == ZOOKEEPER else servers.bootstrap
        named = () if self.record is None else ("--record", self.record)
        return (self.option, str(address), "--state-dir", str(self.folder), *named)

    @property
    def journals(self) -> list[Path]:
        return sorted(self.folder.rglob("*.journal"))

    def over(self, option: str) -> Host:
        """Return the same host over this connection."""
        return replace(self, option=option)

    def alone(self) -> Host:
        """Return the same host without the shared record."""
        return replace(self, record="none")

    def act(self, action: str, plan: str, *more: str) -> Ran:
        return kquota("reassign-partitions", *self.where, "--reassignment-json-file", plan, action, *more)

    def move(self, verb: str, *more: str) -> Ran:
        return kquota("move", verb, *self.where, *more)

    def throttle(self, verb: str, *more: str) -> Ran:
        sampled = ("--sample", "0") if verb in ("set", "show") else ()
        return kquota("throttle", verb, *self.where, *sampled, *more)

    def shared(self, verb: str, *more: str) -> Ran:
        """Run `kquota record`, over both connections where there are two."""
        servers = self.hand.servers
        both = (ZOOKEEPER, servers.zookeeper) if servers.zookeeper else ()
        return kquota("record", verb, *replace(self, option=BROKERS).where, *both, *more)

    def doomed(self, doom: Doom, action: str, plan: str, *more: str) -> Mortal:
        arguments = ("reassign-partitions", *self.where, "--reassignment-json-file", plan, action, *more)
        return Mortal(*arguments, folder=self.folder.parent, doom=doom)

    def runs(self) -> list[dict[str, Any]]:
        """Return the open runs that `move status` shows on this host."""
        told = kquota_here("move", "status", *self.where, "--output", "json")
        found: list[dict[str, Any]] = json.loads(told.out)["runs"]
        return found

    def holds(self, setting: Setting) -> list[str]:
        """Return the runs that hold a broker's rate, as `throttle show` shows them on this host."""
        told = kquota_here("throttle", "show", *self.where, "--sample", "0", "--output", "json")
        rates = next(one["rates"] for one in json.loads(told.out)["brokers"] if str(one["broker"]) == setting.name)
        found: list[str] = rates.get(setting.key, {}).get("runs", [])
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    """One cluster and its hosts. `record` is the topic that they share, or None without a topic.

    With `mixed`, the hosts use the two connections in turn. Otherwise, all hosts use `option`.
    """

    hand: OtherHand
    folder: Path
    option: str
    record: str | None = None
    mixed: bool = False

    def host(self, number: int) -> Host:
        """Return the host with this number. It always has the same state folder, which its first command creates."""
        other = BROKERS if self.option == ZOOKEEPER else ZOOKEEPER
        option = other if self.mixed and number % 2 else self.option
        folder = self.folder / f"host-{number}"
        folder.mkdir(exist_ok=True)
        return Host(hand=self.hand, folder=folder, option=option, record=self.record)

    def hosts(self) -> tuple[Host, Host, Host]:
        return self.host(0), self.host(1), self.host(2)

    def plan(self, targets: Mapping[TopicPartition, Sequence[int]]) -> str:
        entries = [{"topic": n.topic, "partition": n.partition, "replicas": list(r)} for n, r in targets.items()]
        path = self.folder / f"plan-{len(list(self.folder.iterdir()))}.json"
        path.write_text(json.dumps({"version": 1, "partitions": entries}))
        return str(path)

    def standing(self, *topics: str) -> dict[Setting, str]:
        """Return every throttle that is set on these topics and on any broker."""
        found = self.hand.rates()
        for topic in topics:
            found |= self.hand.lists(topic)
        return found

    def become(self, wanted: Mapping[Setting, str], *topics: str) -> None:
        """Wait until the throttles have these values, because brokers see later what was written over ZooKeeper."""
        until(lambda: self.standing(*topics) == wanted, f"{wanted} are the only values that are set")

    def closed(self) -> None:
        """Check that no host sees an open run over either connection."""
        for number in range(3):
            ran = kquota_here("move", "status", *self.host(number).where)
            assert (ran.code, "no run is open" in ran.err, "held" in ran.err) == (0, True, False), ran.err


@contextmanager
def znodes(hand: OtherHand) -> Iterator[KazooClient]:
    """Yield another client of ZooKeeper."""
    client = KazooClient(hosts=hand.servers.zookeeper)
    client.start()
    try:
        yield client
    finally:
        client.stop()
        client.close()


def forget(hand: OtherHand, record: str | None) -> None:
    """Remove all moves, the topic and all znodes of kquota before the next test.

    A controller on ZooKeeper keeps the move of a deleted topic forever.
    """
    hand.unthrottle()
    with Wire(hand.servers.bootstrap, {}) as wire:
        until(lambda: not WireMoves(wire).snapshot([]).running, "nothing moves")
    if record is not None and record in hand.admin.list_topics(timeout=30).topics:
        hand.delete(record)
    if hand.servers.zookeeper:
        with znodes(hand) as client:
            client.delete("/kquota", recursive=True)
