"""The environment in which a document runs: a bash, a folder, a home, and the cluster of the document's addresses."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from kquota.sandbox.cluster import Sandbox
from tests.documents.shown import Command, File, Step, prints
from tests.servers import agreed
from tests.stores.moves_stage import OtherHand
from tests.waiting import until

BROKERS: Final = ("localhost:9092", "b1:9093,b2:9093", "broker:9092")
"""The names of the brokers in documents."""
ZOOKEEPER: Final = ("localhost:2181", "zk1:2182,zk2:2182/kafka")
TOPICS: Final = {
    "orders": {0: [1, 2], 1: [2, 1], 2: [1, 2], 3: [2, 1]},
    "payments": {0: [2, 3], 1: [3, 2]},
}
_EVERYBODY: Final = 'version: 1\nowns: ["*", default-user, default-client, default-ip]\n'
_PATIENCE: Final = 240.0
_WRITE_QUOTAS: Final = ("--alter", "quota apply")
"""After each of these commands, every broker must show its changes, because the next command may ask any broker."""
_PLAIN: Final = "security.protocol=PLAINTEXT\n"
_QUOTAS: Final = """version: 1
owns: ["team-*"]
users:
  team-a:
    producer_byte_rate: 50MB/s
clients:
  billing: {consumer_byte_rate: 64MiB/s}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The exit code of a command, and its output on a terminal: stdout and stderr together."""

    code: int
    printed: str


class Stage:
    """One bash for a whole document; no servers for a document that needs none."""

    def __init__(self, folder: Path, servers: Sandbox | None) -> None:
        self.folder = folder / "here"
        self._home = folder / "home"
        self._printed = folder / "printed"
        self._complaints = folder / "complaints"
        self._servers = servers
        for made in (self.folder, self._home):
            made.mkdir()
        self._config()
        with self._complaints.open("w") as complaints:
            self._bash = subprocess.Popen(
                ["bash", "--norc", "--noprofile"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
                cwd=self.folder,
                env=self._environment(),
                text=True,
                start_new_session=True,
            )

    def set_out(self, steps: Iterable[Step]) -> None:
        """Write every file of `FILES` that the steps name, with plausible content that fits the real cluster."""
        texts = "\n".join(step.text for step in steps)
        for name, set_out in FILES.items():
            if name in texts:
                set_out(self)

    def tell(self, steps: Iterable[Step]) -> list[str]:
        """Run every step in order. Return the differences from the shown output, each with its position."""
        wrong = []
        for step in steps:
            if isinstance(step, File):
                path = Path(step.name.replace("~", str(self._home), 1))
                path = self.folder / path
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(self._meant(step.text))
            elif complaint := self._complaint(step):
                wrong.append(complaint)
        return wrong

    def run(self, text: str) -> Ended:
        """Run one command in bash. Its stdin is empty, so that no command waits for an answer."""
        assert self._bash.stdin
        assert self._bash.stdout
        too_long = threading.Timer(_PATIENCE, os.killpg, (self._bash.pid, signal.SIGKILL))
        too_long.start()
        try:
            self._bash.stdin.write(f'{{ {self._meant(text)}\n}} </dev/null >{self._printed} 2>&1; echo "$?"\n')
            self._bash.stdin.flush()
            code = self._bash.stdout.readline()
        finally:
            too_long.cancel()
        if self._servers and any(word in text for word in _WRITE_QUOTAS):
            agreed(self._servers.bootstrap)
        printed = self._printed.read_text(errors="replace")
        assert code, (
            f"{text}\nended the shell, or took more than {_PATIENCE:.0f} s: {printed}{self._complaints.read_text()}"
        )
        return Ended(code=int(code), printed=self._shown(printed))

    def close(self) -> None:
        """End every process of the document."""
        assert self._bash.stdin
        assert self._bash.stdout
        self._bash.stdin.close()
        self._bash.stdout.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._bash.pid, signal.SIGKILL)
        self._bash.wait()

    def _complaint(self, command: Command) -> str | None:
        ended = self.run(command.text)
        give_up = time.monotonic() + _PATIENCE
        while command.until and ended.code in command.codes and time.monotonic() < give_up:
            time.sleep(0.2)
            ended = self.run(command.text)
        codes = (0,) if command.until else command.codes
        if ended.code not in codes:
            return f"{command.where}: $ {command.text}\nexit {ended.code}, not {codes}\n{ended.printed}"
        if command.silent and ended.printed:
            return f"{command.where}: $ {command.text}\ncron would mail\n{ended.printed}"
        if command.output and not prints(command.output, ended.printed):
            shown = "\n".join(command.output)
            return f"{command.where}: $ {command.text}\nshown is\n{shown}\nprinted was\n{ended.printed}"
        return None

    def _environment(self) -> dict[str, str]:
        """Return the environment after an installation of kquota, with this machine's downloads."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("KQUOTA_", "XDG_", "PYTEST_"))}
        kept |= {key: value for key in ("KQUOTA_OFFLINE", "KQUOTA_JAVA") if (value := os.environ.get(key))}
        return {
            **kept,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(self._home),
            "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache"),
            "LC_ALL": "C.UTF-8",
            # As on a terminal, lines of stdout and stderr appear in the order in which they were written.
            "PYTHONUNBUFFERED": "1",
        }

    def _addresses(self) -> Mapping[str, str]:
        if self._servers is None:
            return {}
        brokers = dict.fromkeys(BROKERS, self._servers.bootstrap)
        return brokers | (dict.fromkeys(ZOOKEEPER, self._servers.zookeeper) if self._servers.zookeeper else {})

    def _meant(self, text: str) -> str:
        for name, address in self._addresses().items():
            text = text.replace(name, address)
        return text

    def _shown(self, text: str) -> str:
        for name in (BROKERS[0], ZOOKEEPER[0]):
            if address := self._addresses().get(name):
                text = text.replace(address, name)
        return text

    def _config(self) -> None:
        text = f'[clusters.prod]\nbootstrap-server = "{BROKERS[0]}"\n\n[clusters.old]\nzookeeper = "{ZOOKEEPER[0]}"\n'
        file = self._home / ".config" / "kquota" / "config.toml"
        file.parent.mkdir(parents=True)
        file.write_text(self._meant(text))


def servers(text: str) -> str | None:
    """Return the fixture of the cluster that a text needs, or None. With a ZooKeeper, both addresses belong to one
    cluster.
    """
    if any(name in text for name in ZOOKEEPER):
        return "documents_391"
    return "documents_431" if any(name in text for name in (*BROKERS, "--cluster prod")) else None


@contextlib.contextmanager
def stage(folder: Path, cluster: Sandbox | None) -> Iterator[Stage]:
    """Yield a stage on this cluster, with topics that contain data. Restore the servers afterwards."""
    with contextlib.ExitStack() as kept:
        set_up = Stage(folder, cluster)
        kept.callback(set_up.close)
        if cluster is not None:
            kept.enter_context(_topics(cluster))
            kept.callback(_without_quotas, set_up)
        yield set_up


@contextlib.contextmanager
def _topics(servers: Sandbox) -> Iterator[None]:
    hand = OtherHand(servers)
    before = set(hand.admin.list_topics(timeout=60).topics)
    try:
        for name, replicas in TOPICS.items():
            hand.topic(replicas, name=name)
        yield
    finally:
        made = set(hand.admin.list_topics(timeout=60).topics) - before - set(TOPICS)
        for deletion in hand.admin.delete_topics(sorted(made)).values() if made else ():
            deletion.result(60)
        hand.close()


def _without_quotas(stage: Stage) -> None:
    (stage.folder / "nobody.yaml").write_text(_EVERYBODY)
    ended = stage.run(f"kquota quota apply --bootstrap-server {BROKERS[0]} --prune --yes nobody.yaml")
    assert ended.code == 0, ended.printed


def _snapshots(name: str) -> Callable[[Stage], None]:
    """Return a function that writes two snapshots of the real cluster. Their names differ from those of later
    snapshots.
    """

    def two(stage: Stage) -> None:
        for _ in range(2):
            ended = stage.run(f"kquota log-dirs --bootstrap-server {BROKERS[0]} --snapshot {name}")
            assert ended.code == 0, ended.printed
            taken = max(path.name for path in (stage.folder / name).iterdir())
            until(lambda taken=taken: f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}" not in taken, "the next second")  # type: ignore[misc]

    return two


def _sizes(stage: Stage) -> None:
    assert stage.run(f"kquota log-dirs --bootstrap-server {BROKERS[0]} --describe > sizes.txt").code == 0


def _trace(stage: Stage) -> None:
    """Write ten seconds of 25 MB/s, with 2 ms of thread time for each request, in two files."""
    for number in (1, 2):
        rows = (f"{at},1000000,2,billing\n" for at in range((number - 1) * 5_000, number * 5_000, 40))
        with gzip.open(stage.folder / f"trace-{number}.csv.gz", "wt") as file:
            file.writelines(["ms,bytes,thread_ms,client_id\n", *rows])


def _written(name: str, text: str) -> Callable[[Stage], None]:
    def write(stage: Stage) -> None:
        (stage.folder / name).write_text(text)

    return write


def _plan() -> str:
    """Return a plan for topic orders: broker 3 replaces broker 2, as in make demo."""
    there = {2: 3}
    partitions = [
        {"topic": "orders", "partition": number, "replicas": [there.get(broker, broker) for broker in replicas]}
        for number, replicas in TOPICS["orders"].items()
    ]
    return json.dumps({"version": 1, "partitions": partitions})


FILES: Final[Mapping[str, Callable[[Stage], None]]] = {
    "plan.json": _written("plan.json", _plan()),
    "topics.json": _written("topics.json", '{"topics":[{"topic":"orders"}],"version":1}'),
    "topics.txt": _written("topics.txt", "invoices 6\nrefunds 3\n"),
    "quotas.yaml": _written("quotas.yaml", _QUOTAS),
    "alice.secret": _written("alice.secret", "the password of alice\n"),
    "sizes.txt": _sizes,
    "snapshots": _snapshots("snapshots"),
    "history": _snapshots("history"),
    "trace-": _trace,
    **{name: _written(name, _PLAIN) for name in ("admin.properties", "billing.properties", "client.properties")},
}
"""Example files. Each is written if a command names it."""
