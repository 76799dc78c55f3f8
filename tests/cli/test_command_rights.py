"""The permissions of moves, throttles, topics and quotas that docs/login.md lists, on three real brokers: they
are enough, and each one is needed. Whatever is missing, an admin can restore everything.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka.admin import AclOperation, AdminClient

from kquota.sandbox import cluster as sandbox
from kquota.sandbox.cluster import Sandbox
from kquota.sandbox.servers import HOST
from kquota.settings.resource import Setting
from kquota.terms import LEADER_RATE, LEADER_REPLICAS, BrokerId, TopicPartition
from tests.cli.run import Ran, kquota
from tests.logins import plain
from tests.rights import CLUSTER, MOVED, TOPIC, Right, granted
from tests.secured import PASSWORD, PLAIN, jaas, properties_file
from tests.stores.moves_stage import OtherHand
from tests.waiting import until

pytestmark = pytest.mark.kafka

CREATE, ALTER, DELETE, DESCRIBE = AclOperation.CREATE, AclOperation.ALTER, AclOperation.DELETE, AclOperation.DESCRIBE
READ_CONFIGS, WRITE_CONFIGS = AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS
READ, WRITE = AclOperation.READ, AclOperation.WRITE
SCRATCH: Final = "kquota-probe-"
NAME: Final = "kquota-rights"
SMALL, LASTING = 100_000, 30_000_000
SLOW, FAST = "1MB/s", "100MB/s"


@pytest.fixture(scope="module")
def servers() -> Iterator[Sandbox]:
    """Three brokers that know carol's login. She has no permission. All others may do everything."""
    started = sandbox.up(
        name=NAME,
        kafka="4.3.1",
        properties={
            "listeners": f"LOGIN://{HOST}:0",
            "advertised.listeners": f"LOGIN://{HOST}:0",
            "listener.security.protocol.map": "LOGIN:SASL_PLAINTEXT",
            "listener.name.login.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.login.plain.sasl.jaas.config": jaas(PLAIN, user_carol=PASSWORD),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        },
        owner_pid=os.getpid(),
    )
    yield started
    sandbox.down(NAME)


@pytest.fixture(scope="module")
def login(servers: Sandbox) -> str:
    """The address of carol's listener on broker 2. Its port is free, so only the broker's log names it."""
    text = "".join(path.read_text(errors="replace") for path in servers.directory.rglob("broker-2.log"))
    ports = set(re.findall(r"Awaiting socket connections on [\d.]+:(\d+)", text))
    (port,) = ports - {servers.broker(2).address.rpartition(":")[2]}
    return f"{HOST}:{port}"


@pytest.fixture(scope="module")
def admin(servers: Sandbox) -> AdminClient:
    return AdminClient({"bootstrap.servers": servers.bootstrap, "log_level": 0})


@dataclass
class Stage:
    """A new topic with one partition on broker 1, a plan that moves it to broker 2, and one host's state folder.

    `files` has the file for each word in a command. TOPIC is replaced by the name of the topic.
    """

    hand: OtherHand
    folder: Path
    login: str
    topic: str = field(default_factory=lambda: f"rights-{uuid.uuid4().hex[:8]}")

    def __post_init__(self) -> None:
        self.files = {word: self.folder / word.lower() for word in ("PLAN", "LISTED", "DOCUMENT")}
        moved = {"topic": self.topic, "partition": 0, "replicas": [2]}
        self.files["PLAN"].write_text(json.dumps({"version": 1, "partitions": [moved]}))
        self.files["LISTED"].write_text(json.dumps({"version": 1, "topics": [{"topic": self.topic}]}))
        login = {"security.protocol": "SASL_PLAINTEXT", **plain("carol")}
        self.carols = properties_file(self.folder / "carol.properties", login)

    def _words(self, command: tuple[str, ...], where: str) -> list[str]:
        names = {"TOPIC": self.topic, **self.files}
        keeps_state = command[0] in ("reassign-partitions", "move", "throttle")
        planning = command[:2] == ("move", "plan") or "--generate" in command
        state = ["--state-dir", str(self.folder / "state")] if keeps_state and not planning else []
        return [*(str(names.get(word, word)) for word in command), "--bootstrap-server", where, *state]

    def admin(self, *command: str) -> Ran:
        return kquota(*self._words(command, self.hand.servers.bootstrap))

    def carol(self, *command: str) -> Ran:
        return kquota(*self._words(command, self.login), "--command-config", str(self.carols))

    def must(self, *command: str) -> Ran:
        ran = self.admin(*command)
        assert ran.code == 0, ran.err
        return ran

    # The state before the command.

    def nothing(self) -> None:
        pass

    def small(self) -> None:
        self.hand.topic({0: (1,)}, size=SMALL, name=self.topic)

    def lasting(self) -> None:
        self.hand.topic({0: (1,)}, size=LASTING, name=self.topic)

    def moving(self) -> None:
        self.lasting()
        self.must(*EXECUTE, "--throttle", SLOW)

    def arrived(self) -> None:
        self.small()
        self.must(*EXECUTE, "--throttle", FAST)
        self.hand.arrived({TopicPartition(self.topic, 0): [2]})

    def throttled(self) -> None:
        self.small()
        self.must(*SET)

    def leftover(self) -> None:
        self.small()
        self.hand.write(Setting.of_topic(self.topic, LEADER_REPLICAS), "0:1")
        self.hand.write(Setting.of_broker(BrokerId(1), LEADER_RATE), "1000000")

    def exported(self) -> None:
        self.files["DOCUMENT"].write_text(self.must("quota", "export").out)

    def one_quota_less(self) -> None:
        self.must("configs", "--alter", "--add-config", "producer_byte_rate=1000", "--user", self.topic)
        self.exported()
        self.must("configs", "--alter", "--delete-config", "producer_byte_rate", "--user", self.topic)


@pytest.fixture
def stage(servers: Sandbox, login: str, tmp_path: Path) -> Iterator[Stage]:
    hand = OtherHand(servers)
    yield Stage(hand, tmp_path, login)
    hand.unthrottle()
    if left := list(hand.admin.list_topics(timeout=30).topics):
        for deleted in hand.admin.delete_topics(left).values():
            deleted.result(timeout=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """The permissions that are enough. AlterConfigs includes DescribeConfigs, and Alter includes Describe."""

    cluster: tuple[AclOperation, ...] = ()
    topic: tuple[AclOperation, ...] = ()
    scratch: tuple[AclOperation, ...] = ()
    """Those on the topics of a probe. Delete and Write include Describe."""

    def rights(self, topic: str) -> list[Right]:
        return [
            *(Right(CLUSTER, operation) for operation in self.cluster),
            *(Right(TOPIC, operation, topic) for operation in self.topic),
            *(Right(TOPIC, operation, SCRATCH, prefix=True) for operation in self.scratch),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A command, what exists before it, its exit code, and its permissions.

    `busy` is its exit code if this machine is too busy for the rate that it expects. `proves` are the operations to
    take away, if other tasks prove the others.
    """

    command: tuple[str, ...]
    needs: Needs
    before: Callable[[Stage], None] = Stage.small
    code: int = 0
    busy: int | None = None
    proves: tuple[AclOperation, ...] | None = None


EXECUTE: Final = ("reassign-partitions", "--execute", "--reassignment-json-file", "PLAN")
VERIFY: Final = ("reassign-partitions", "--verify", "--reassignment-json-file", "PLAN")
CANCEL: Final = ("reassign-partitions", "--cancel", "--reassignment-json-file", "PLAN")
SET: Final = ("throttle", "set", "--topic", "TOPIC", "--throttle", "5MB/s", "--sample", "0")
DOES: Final = Needs(cluster=(ALTER, WRITE_CONFIGS), topic=(DESCRIBE, WRITE_CONFIGS))
SEES: Final = Needs(cluster=(DESCRIBE, READ_CONFIGS), topic=(DESCRIBE, READ_CONFIGS))
SETS: Final = Needs(cluster=(DESCRIBE, WRITE_CONFIGS), topic=(DESCRIBE, WRITE_CONFIGS))
PROBES: Final = (CREATE, READ_CONFIGS, DELETE, WRITE)
PROBE: Final = ("quota", "probe", "--seconds", "1", "--yes")
PROTECT: Final = ("--protect", "--min-rate", "20MB/s", "--max-rate", "100MB/s")

TASKS: Final = {
    "create a topic": Task(
        command=("topics", "--create", "--topic", "TOPIC", "--partitions", "1", "--replication-factor", "1"),
        before=Stage.nothing,
        needs=Needs(topic=(CREATE,)),
    ),
    "grow a topic": Task(
        command=("topics", "--alter", "--topic", "TOPIC", "--partitions", "2"), needs=Needs(topic=(ALTER,))
    ),
    "delete a topic": Task(command=("topics", "--delete", "--topic", "TOPIC"), needs=Needs(topic=(DELETE,))),
    "describe a topic": Task(
        command=("topics", "--describe", "--topic", "TOPIC"), needs=Needs(topic=(DESCRIBE, READ_CONFIGS))
    ),
    "show throttles": Task(
        command=("throttle", "show", "--sample", "0"),
        before=Stage.throttled,
        needs=SEES,
    ),
    "throttle a topic": Task(command=SET, needs=SETS),
    "end a throttle": Task(
        command=("throttle", "clear"),
        before=Stage.throttled,
        needs=Needs(cluster=(WRITE_CONFIGS,), topic=(WRITE_CONFIGS,)),
    ),
    "find leftovers": Task(
        command=("throttle", "doctor"),
        before=Stage.leftover,
        code=8,
        needs=SEES,
    ),
    "remove leftovers": Task(
        command=("throttle", "doctor", "--fix", "--yes"),
        before=Stage.leftover,
        needs=SETS,
    ),
    "execute": Task(command=(*EXECUTE, "--throttle", FAST), needs=DOES),
    "execute without a throttle": Task(command=EXECUTE, needs=Needs(cluster=(ALTER,), topic=(DESCRIBE,))),
    "verify a running move": Task(command=VERIFY, before=Stage.moving, code=8, needs=SEES),
    "verify a move that has ended": Task(command=VERIFY, before=Stage.arrived, needs=SETS),
    "cancel": Task(command=CANCEL, before=Stage.moving, needs=DOES),
    "propose a plan": Task(
        command=("reassign-partitions", "--generate", "--topics-to-move-json-file", "LISTED", "--broker-list", "1,2"),
        needs=Needs(cluster=(DESCRIBE,), topic=(DESCRIBE,)),
    ),
    "plan a move": Task(command=("move", "plan", "--drain", "1"), needs=Needs(cluster=(DESCRIBE,), topic=(DESCRIBE,))),
    "show runs": Task(command=("move", "status"), before=Stage.moving, code=8, needs=SEES),
    "follow a move": Task(
        command=("move", "watch", "--once"),
        before=Stage.moving,
        code=8,
        needs=SEES,
    ),
    "adjust a move": Task(
        command=("move", "adjust", "2MB/s"),
        before=Stage.moving,
        needs=Needs(cluster=(DESCRIBE, WRITE_CONFIGS), topic=(DESCRIBE,)),
    ),
    "resume a move": Task(command=("move", "resume"), before=Stage.moving, code=8, needs=SEES),
    "abort a move": Task(command=("move", "abort", "--yes"), before=Stage.moving, needs=DOES),
    "run a move": Task(command=("move", "run", "PLAN", "--throttle", FAST), needs=DOES),
    "elect leaders": Task(
        command=("leader-election", "--election-type", "preferred", "--topic", "TOPIC", "--partition", "0"),
        needs=Needs(cluster=(ALTER,), topic=(DESCRIBE,)),
    ),
    "export quotas": Task(command=("quota", "export"), needs=Needs(cluster=(READ_CONFIGS,))),
    "compare quotas": Task(
        command=("quota", "diff", "DOCUMENT"), before=Stage.exported, needs=Needs(cluster=(READ_CONFIGS,))
    ),
    "apply quotas": Task(
        command=("quota", "apply", "DOCUMENT", "--yes"),
        before=Stage.one_quota_less,
        needs=Needs(cluster=(WRITE_CONFIGS,)),
    ),
    "estimate a move": Task(
        command=("move", "estimate", "--reassignment-json-file", "PLAN", "--throttle", "5MB/s", "--sample", "1"),
        needs=Needs(cluster=(DESCRIBE, READ_CONFIGS), topic=(DESCRIBE,)),
    ),
    "probe a quota": Task(
        command=(*PROBE, "--produce", "200kB/s"),
        needs=Needs(cluster=(READ_CONFIGS,), scratch=PROBES),
        busy=8,
    ),
    "probe a quota by reading": Task(
        command=(*PROBE, "--consume"),
        needs=Needs(cluster=(READ_CONFIGS,), scratch=(*PROBES, READ)),
        busy=8,
        proves=(READ,),
    ),
    "find the limit of the controller": Task(
        command=(*PROBE, "--find-limit", "--most-partitions", "20"),
        needs=Needs(cluster=(READ_CONFIGS,), scratch=(CREATE, READ_CONFIGS, DELETE, ALTER)),
        busy=8,
        proves=(ALTER,),
    ),
    "protect clients during a move": Task(
        command=("move", "run", "PLAN", *PROTECT), needs=replace(DOES, scratch=PROBES), proves=PROBES
    ),
    "protect clients from now on": Task(
        command=("move", "adjust", *PROTECT),
        before=Stage.moving,
        code=8,  # the run has ended, and its throttle is still set
        needs=Needs(cluster=(DESCRIBE, WRITE_CONFIGS), topic=(DESCRIBE, READ_CONFIGS), scratch=PROBES),
        proves=PROBES,
    ),
    "explain quotas": Task(
        command=("quota", "explain", "--user", "alice", "--client-id", "app"), needs=Needs(cluster=(READ_CONFIGS,))
    ),
}


KNOWN: Final = Right(TOPIC, DESCRIBE, "__kquota_runs")
"""It proves to kquota that the cluster has no record."""


def restored(stage: Stage) -> bool:
    """Let an admin of the same host end what is open. Return True if nothing of kquota is left."""
    stage.admin(*VERIFY)
    stage.admin("move", "abort", "--yes")
    stage.admin("throttle", "clear")
    stage.admin("throttle", "doctor", "--fix", "--yes")
    there = stage.topic in stage.hand.admin.list_topics(timeout=30).topics
    return stage.hand.rates() == {} and (not there or stage.hand.lists(stage.topic) == {})


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_the_documented_permissions_are_enough(stage: Stage, admin: AdminClient, task: Task) -> None:
    task.before(stage)
    with granted(admin, [KNOWN, *task.needs.rights(stage.topic)]):
        ran = stage.carol(*task.command)
    assert (ran.code in (task.code, task.busy), "Authorization" in ran.err) == (True, False), ran.err


LACKING: Final = [
    (name, number)
    for name, task in TASKS.items()
    for number, right in enumerate(task.needs.rights(MOVED))
    if task.proves is None or (right.operation in task.proves and right.kind == TOPIC)
    if (right.kind, right.operation) != (TOPIC, DESCRIBE) or name not in ("show throttles", "follow a move")
    if (right.kind, right.operation, name) != (CLUSTER, READ_CONFIGS, "estimate a move")
]
"""Each permission of each task. Two commands show only the topics that they may see, as docs/login.md says. An estimate
without the configs of brokers warns that it assumes Kafka's defaults.
"""


@pytest.mark.parametrize(
    ("name", "number"), LACKING, ids=[f"{name} without {TASKS[name].needs.rights(MOVED)[n]}" for name, n in LACKING]
)
def test_each_documented_permission_is_needed(stage: Stage, admin: AdminClient, name: str, number: int) -> None:
    task = TASKS[name]
    task.before(stage)
    left = task.needs.rights(stage.topic)
    del left[number]
    with granted(admin, [KNOWN, *left]):
        ran = stage.carol(*task.command)
    assert ran.code not in (0, task.busy)
    assert ran.code != task.code or "Kafka hides" in ran.err, ran
    assert ran.err.splitlines()[-1].startswith("kquota: ")
    until(lambda: restored(stage), "an admin restores everything")


def test_an_estimate_warns_of_what_it_may_not_see(stage: Stage, admin: AdminClient) -> None:
    """The settings of brokers, and topics that are not in its plan."""
    stage.small()
    stage.hand.topic({0: (1,)}, size=SMALL, name=f"{stage.topic}-hidden")
    with granted(admin, [KNOWN, Right(CLUSTER, DESCRIBE), Right(TOPIC, DESCRIBE, stage.topic)]):
        ran = stage.carol(*TASKS["estimate a move"].command)
    settings = next(line for line in ran.err.splitlines() if "Authorization" in line)
    assert settings.startswith(
        "kquota: warning: kquota assumes Kafka's defaults, because the brokers' settings for throttles are unknown"
    ), ran.err
    assert f"kquota: warning: Kafka hides 1 topic from this user ({stage.topic}-hidden), so" in ran.err
    assert ran.code == 0
