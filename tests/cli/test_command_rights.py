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
from confluent_kafka.admin import AclOperation, AdminClient, ResourceType

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
    if (right.kind, right.operation, name) != (TOPIC, DESCRIBE, "follow a move")
    if (right.kind, right.operation, name) != (CLUSTER, READ_CONFIGS, "estimate a move")
]
"""Each permission of each task. `move watch` shows only the topics that it may see, as docs/login.md says. An estimate
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


# Two topics, and permissions that are missing only on the second one or on the cluster. SECOND is replaced by its name.


@pytest.fixture
def second(stage: Stage) -> str:
    """The name of a second topic, which the plan of the stage also moves to broker 2."""
    name = f"{stage.topic}-second"
    targets = [{"topic": topic, "partition": 0, "replicas": [2]} for topic in (stage.topic, name)]
    stage.files["PLAN"].write_text(json.dumps({"version": 1, "partitions": targets}))
    stage.files["LISTED"].write_text(
        json.dumps({"version": 1, "topics": [{"topic": topic} for topic in (stage.topic, name)]})
    )
    return name


def both(stage: Stage, second: str, size: int = SMALL) -> None:
    for topic in (stage.topic, second):
        stage.hand.topic({0: (1,)}, size=size, name=topic)


def in_place(stage: Stage, second: str) -> tuple[object, ...]:
    """Return everything on the cluster that a move or a throttle changes."""
    replicas = [stage.hand.replicas(TopicPartition(topic, 0)) for topic in (stage.topic, second)]
    return stage.hand.rates(), stage.hand.lists(stage.topic), stage.hand.lists(second), replicas


def all_but(stage: Stage, second: str, *missing: Right) -> list[Right]:
    """Return the permissions for moves and throttles of both topics, without the missing ones."""
    every = [*(Right(CLUSTER, one) for one in (DESCRIBE, ALTER, READ_CONFIGS, WRITE_CONFIGS))]
    every += [Right(TOPIC, one, topic) for topic in (stage.topic, second) for one in (DESCRIBE, READ_CONFIGS)]
    every += [Right(TOPIC, WRITE_CONFIGS, topic) for topic in (stage.topic, second)]
    return [KNOWN, *(right for right in every if right not in missing)]


def recorded(stage: Stage) -> tuple[object, ...]:
    """Return the fields of the only open run that each change of the run changes."""
    (run,) = json.loads(stage.admin("move", "status", "--output", "json").out)["runs"]
    return run["run"], run["throttle"], run["revision"], run["written_at"]


SET_BOTH: Final = (*SET, "--topic", "SECOND")
THROTTLED_EXECUTE: Final = (*EXECUTE, "--throttle", FAST)
BEFORE_WRITES: Final = {
    "execute": THROTTLED_EXECUTE,
    "a dry run": (*THROTTLED_EXECUTE, "--dry-run"),
    "run": ("move", "run", "PLAN", "--throttle", FAST),
    "set": SET_BOTH,
}
DENIED: Final = {
    "the second topic": (TOPIC, WRITE_CONFIGS, "AlterConfigs on topic {second}"),
    "the brokers": (CLUSTER, WRITE_CONFIGS, "AlterConfigs on the cluster"),
    "the moves": (CLUSTER, ALTER, "Alter on the cluster"),
}


@pytest.mark.parametrize(
    ("name", "lacking"),
    [(name, lacking) for name in BEFORE_WRITES for lacking in DENIED if (name, lacking) != ("set", "the moves")],
)
def test_a_missing_permission_is_named_before_the_first_write(
    stage: Stage, admin: AdminClient, second: str, name: str, lacking: str
) -> None:
    """Each permission is missing alone. A throttle needs no permission for moves."""
    kind, operation, needed = DENIED[lacking]
    both(stage, second)
    before = in_place(stage, second)
    missing = Right(kind, operation, second) if kind == TOPIC else Right(kind, operation)
    with granted(admin, all_but(stage, second, missing)):
        ran = stage.carol(*(second if word == "SECOND" else word for word in BEFORE_WRITES[name]))
    words = f"kquota: error: this user needs {needed.format(second=second)}. Nothing was written"
    assert (ran.code, ran.err.splitlines()[-1]) == (1, words)
    assert in_place(stage, second) == before
    assert stage.admin("move", "status").code == 0


def test_all_missing_permissions_are_in_one_line(stage: Stage, admin: AdminClient, second: str) -> None:
    both(stage, second)
    read_only = [Right(CLUSTER, READ_CONFIGS), Right(CLUSTER, DESCRIBE)]
    read_only += [Right(TOPIC, one, topic) for topic in (stage.topic, second) for one in (DESCRIBE, READ_CONFIGS)]
    with granted(admin, [KNOWN, *read_only]):
        ran = stage.carol(*THROTTLED_EXECUTE)
    assert ran.err.splitlines()[-1] == (
        f"kquota: error: this user needs AlterConfigs on topics {stage.topic},{second}; "
        "Alter and AlterConfigs on the cluster. Nothing was written"
    )


@pytest.mark.parametrize(("kind", "operation", "needed"), DENIED.values(), ids=DENIED)
def test_a_running_move_continues_as_recorded_if_a_permission_to_stop_it_is_missing(
    stage: Stage, admin: AdminClient, second: str, kind: ResourceType, operation: AclOperation, needed: str
) -> None:
    """Neither the cluster nor the record of the run changes. A user with the permission then aborts the run."""
    both(stage, second, LASTING)
    stage.must(*EXECUTE, "--throttle", SLOW)
    before, run = in_place(stage, second), recorded(stage)
    missing = Right(kind, operation, second) if kind == TOPIC else Right(kind, operation)
    commands = [CANCEL, ("move", "abort", "--yes"), ("move", "abort", "--dry-run")]
    commands += [("move", "adjust", "2MB/s")] if (kind, operation) == (CLUSTER, WRITE_CONFIGS) else []
    with granted(admin, all_but(stage, second, missing)):
        for command in commands:
            ran = stage.carol(*command)
            words = f"kquota: error: this user needs {needed.format(second=second)}. Nothing was written"
            assert (ran.code, ran.err.splitlines()[-1]) == (1, words), command
    assert in_place(stage, second) == before
    assert recorded(stage) == run
    until(lambda: restored(stage), "an admin restores everything")


NAMED: Final = {
    "execute": THROTTLED_EXECUTE,
    "verify": VERIFY,
    "propose": TASKS["propose a plan"].command,
    "show": ("throttle", "show", "--topic", "SECOND", "--sample", "0"),
    "set": SET_BOTH,
    "describe": ("topics", "--describe", "--topic", "SECOND"),
    "describe if it exists": ("topics", "--describe", "--topic", "SECOND", "--if-exists"),
    "delete if it exists": ("topics", "--delete", "--topic", "SECOND", "--if-exists"),
    "grow if it exists": ("topics", "--alter", "--topic", "SECOND", "--partitions", "2", "--if-exists"),
    "elect": ("leader-election", "--election-type", "preferred", "--topic", "SECOND", "--partition", "0"),
}
"""Commands that name a hidden topic."""


def test_a_hidden_topic_is_never_a_deleted_one(stage: Stage, admin: AdminClient, second: str) -> None:
    both(stage, second)
    rights = [right for right in all_but(stage, second) if right.topic != second]
    with granted(admin, rights):
        for command in NAMED.values():
            ran = stage.carol(*(second if word == "SECOND" else word for word in command))
            words = f"topic {second}: the broker answered TopicAuthorizationFailed (29). This user needs Describe on"
            assert (ran.code, words in ran.err.splitlines()[-1]) == (1, True), (command, ran)
        for target in (("--all-topics",), ("--recovering", "2", "--once")):
            ran = stage.carol("throttle", "set", *target, "--throttle", "5MB/s")
            assert (ran.code, "This user needs Describe on every topic. Nothing was written" in ran.err) == (1, True)
    assert second in stage.hand.admin.list_topics(timeout=30).topics


def test_the_throttle_of_a_hidden_topic_is_kept_and_unknown(stage: Stage, admin: AdminClient, second: str) -> None:
    """Without its list, the rate looks like a leftover. Nobody has recorded the throttle."""
    both(stage, second)
    listed, rate = Setting.of_topic(second, LEADER_REPLICAS), Setting.of_broker(BrokerId(1), LEADER_RATE)
    stage.hand.write(listed, "0:1")
    stage.hand.write(rate, "1000000")
    rights = [right for right in all_but(stage, second) if right.topic != second]
    with granted(admin, rights):
        for command in (("doctor",), ("doctor", "--fix", "--yes"), ("show", "--sample", "0")):
            ran = stage.carol("throttle", *command)
            assert (ran.code, f"Kafka hides 1 topic from this user ({second})" in ran.err) == (8, True), ran
            assert "throttle nothing" not in ran.out
    assert (stage.hand.value(listed), stage.hand.value(rate)) == ("0:1", "1000000")
    until(lambda: restored(stage), "an admin restores everything")


def test_a_run_with_a_hidden_topic_stays_open(stage: Stage, admin: AdminClient, second: str) -> None:
    """Its moves have ended. Nothing of it is restored, because the user cannot read the values of the hidden topic."""
    both(stage, second)
    stage.must(*THROTTLED_EXECUTE)
    stage.hand.arrived({TopicPartition(topic, 0): [2] for topic in (stage.topic, second)})
    before = in_place(stage, second)
    rights = [right for right in all_but(stage, second) if right.topic != second]
    with granted(admin, rights):
        for command in (VERIFY, (*VERIFY[:2], "--all-runs"), ("move", "resume"), ("move", "status")):
            ran = stage.carol(*command)
            assert (ran.code, f"topic {second}: the broker answered" in ran.err) == (1, True), ran
        for command in (("throttle", "show", "--sample", "0"), ("throttle", "doctor", "--fix", "--yes")):
            ran = stage.carol(*command)
            assert (ran.code, f"Kafka hides 1 topic from this user ({second})" in ran.err) == (8, True), ran
    assert in_place(stage, second) == before
    assert stage.admin(*VERIFY).code == 0
    assert in_place(stage, second)[:3] == ({}, {}, {})


def test_an_end_restores_what_it_may_and_names_the_rest(stage: Stage, admin: AdminClient, second: str) -> None:
    both(stage, second)
    stage.must(*THROTTLED_EXECUTE)
    stage.hand.arrived({TopicPartition(topic, 0): [2] for topic in (stage.topic, second)})
    with granted(admin, all_but(stage, second, Right(TOPIC, WRITE_CONFIGS, second))):
        ran = stage.carol(*VERIFY)
    assert (ran.code, "This user needs AlterConfigs on the topic" in ran.err) == (8, True), ran
    rates, first, other, _ = in_place(stage, second)
    assert (rates, first, other == {}) == ({}, {}, False)
    assert stage.admin(*VERIFY).code == 0
    assert in_place(stage, second)[:3] == ({}, {}, {})
