"""The offers of TAB: one table of lines for all three shells, and no Python for names that are known in advance."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from kquota.entity_types import ENTITIES
from kquota.stores.state.completion import FRESH_SECONDS, CompletionFile
from tests.completions.shells import COMPLETIONS, must_be_there, offers, type_into

SHELLS = ("bash", "zsh", "fish")

CONFIG = """
[clusters.prod]
bootstrap-server = "b1:9092"
 [ clusters."old-1" ] # on ZooKeeper
zookeeper = "zk:2181"
[clusters."two words"]
zookeeper = "zk:2181"
"""
NAMED = {
    ("b:9092",): ["topics orders", "topics payments.v2", "brokers 1", "brokers 2", "brokers 10"],
    ("b:9092", "", "", "c.properties"): ["topics secret"],
    ("", "z:1/kafka"): ["topics kept-by-zookeeper"],
    ("", "", "prod"): ["topics of-prod"],
    ("it's:9092",): ["topics quoted"],
    ("evil:9092",): ["topics $(touch evil)", "topics -x", "topics `id`", "topics a;b", "topics good", "brokers 1 2"],
}
"""The files of a cluster's cache, by everything that names the cluster: address, ZooKeeper, name, login."""
B = "--bootstrap-server b:9092"


@dataclass(frozen=True, slots=True)
class Offer:
    """The offers at the end of a line: exactly these words, or at least some words and none of others."""

    line: str
    exactly: tuple[str, ...] | None = None
    some: tuple[str, ...] = ()
    none: tuple[str, ...] = ()


CASES = {
    "commands": Offer("kquota ", some=("configs", "move", "log-dirs"), none=("complete", "--version")),
    "a command's beginning": Offer("kquota rea", exactly=("reassign-partitions",)),
    "no hidden command": Offer("kquota comp", exactly=()),
    "options of the whole": Offer("kquota --", exactly=("--version", "--help")),
    "a group's commands": Offer("kquota throttle ", exactly=("show", "set", "clear", "doctor")),
    "commands of the record": Offer("kquota record ", exactly=("share", "status", "unshare")),
    "the topic of the record": Offer(f"kquota move status {B} --record o", exactly=("orders",)),
    "no record where no run is read": Offer("kquota configs --rec", exactly=()),
    "options where nothing else can stand": Offer("kquota log-dirs ", some=("--describe", "--help")),
    "options": Offer("kquota configs --al", exactly=("--alter", "--all")),
    "options of a group's command": Offer("kquota quota apply --pr", exactly=("--prune",)),
    "no hidden option": Offer("kquota configs --forc", exactly=()),
    "an option once": Offer("kquota configs --alter --al", exactly=("--all",)),
    "with its value, too": Offer("kquota configs --zookeeper=z:1 --zo", exactly=()),
    "an option that can be repeated": Offer(
        "kquota configs --entity-type users --entity-t", exactly=("--entity-type",)
    ),
    "by its other name it is the same": Offer("kquota quota explain --client x --cli", exactly=()),
    "no option where a value belongs": Offer("kquota configs --user ", exactly=()),
    "a value that looks like a command": Offer("kquota move status --run plan --ou", exactly=("--output",)),
    "choices": Offer("kquota configs --output ", exactly=("text", "json", "tsv")),
    "choices of a command without tables": Offer("kquota move status --output ", exactly=("text", "json")),
    "choices after =": Offer("kquota configs --output=t", exactly=("--output=text", "--output=tsv")),
    "entity types": Offer("kquota configs --entity-type ", exactly=tuple(ENTITIES)),
    "keys of client metrics": Offer(
        "kquota configs --client-metrics m --add-config ", exactly=("interval.ms=", "match=", "metrics=")
    ),
    "keys of groups": Offer(
        "kquota configs --group g --delete-config consumer.s", exactly=("consumer.session.timeout.ms",)
    ),
    "users and clients together": Offer("kquota configs --entity-type users --entity-type ", exactly=("clients",)),
    "topics stand alone": Offer("kquota configs --entity-type topics --entity-type ", exactly=()),
    "keys of users": Offer("kquota configs --user x --add-config p", exactly=("producer_byte_rate=",)),
    "keys of ips": Offer("kquota configs --entity-type ips --add-config ", exactly=("connection_creation_rate=",)),
    "keys of brokers": Offer(
        "kquota configs --broker-defaults --add-config leader", exactly=("leader.replication.throttled.rate=",)
    ),
    "keys of topics": Offer(
        "kquota configs --topic t --add-config=ret",
        exactly=("--add-config=retention.bytes=", "--add-config=retention.ms="),
    ),
    "keys of whatever it is": Offer(
        "kquota configs --add-config ", some=("producer_byte_rate=", "retention.ms=", "connection_creation_rate=")
    ),
    "the next key": Offer(
        "kquota configs --client x --add-config producer_byte_rate=5MB/s,",
        some=("producer_byte_rate=5MB/s,consumer_byte_rate=",),
        none=("producer_byte_rate=5MB/s,producer_byte_rate=",),
    ),
    "the next key after a list": Offer(
        "kquota configs --topic t --add-config leader.replication.throttled.replicas=[0:1,1:2],preal",
        exactly=("leader.replication.throttled.replicas=[0:1,1:2],preallocate=",),
    ),
    "no key within a list": Offer(
        "kquota configs --topic t --add-config leader.replication.throttled.replicas=[0:1,", exactly=()
    ),
    "no value of a key": Offer("kquota configs --user x --add-config producer_byte_rate=", exactly=()),
    "keys to delete": Offer("kquota configs --ip ::1 --delete-config ", exactly=("connection_creation_rate",)),
    "the next key to delete": Offer(
        "kquota configs --user x --delete-config request_percentage,c",
        exactly=("request_percentage,consumer_byte_rate", "request_percentage,controller_mutation_rate"),
    ),
    "keys of a new topic": Offer("kquota topics --create --config min.ins", exactly=("min.insync.replicas=",)),
    "clusters": Offer("kquota topics --cluster ", exactly=("prod", "old-1")),
    "topics": Offer(f"kquota configs {B} --topic ", exactly=("orders", "payments.v2")),
    "topics of an entity type": Offer(f"kquota configs {B} --entity-type topics --entity-name o", exactly=("orders",)),
    "no names of users": Offer(f"kquota configs {B} --entity-type users --entity-name ", exactly=()),
    "a list of topics": Offer(f"kquota log-dirs {B} --topic-list orders,", exactly=("orders,payments.v2",)),
    "brokers": Offer(f"kquota throttle show {B} --broker 1", exactly=("1", "10")),
    "a list of brokers": Offer(f"kquota move plan {B} --drain=2,", exactly=("--drain=2,1", "--drain=2,10")),
    "replicas": Offer(f"kquota topics {B} --replica-assignment 1:", exactly=("1:1", "1:2", "1:10")),
    "another cluster's": Offer('kquota configs --bootstrap-server "it\'s:9092" --topic ', exactly=("quoted",)),
    "of another login": Offer(f"kquota configs {B} --command-config c.properties --topic ", exactly=("secret",)),
    "of a named cluster": Offer("kquota configs --cluster=prod --topic ", exactly=("of-prod",)),
    "of a ZooKeeper": Offer("kquota configs --zookeeper z:1/kafka --topic ", exactly=("kept-by-zookeeper",)),
    "nothing that a shell would run": Offer("kquota configs --bootstrap-server=evil:9092 --topic ", exactly=("good",)),
    "no cluster, no names": Offer("kquota configs --topic ", exactly=()),
    "releases": Offer("kquota sandbox up --kafka 4", exactly=("4.3.1",)),
    "no command's name for an argument": Offer("kquota quota diff a.yaml ", exactly=()),
    "an option of another program": Offer("kquota configs --nonsense=", exactly=()),
}
FILES = {
    "a plan": Offer("kquota reassign-partitions --reassignment-json-file ", some=("plan.json",)),
    "a plan after =": Offer(
        "kquota move estimate --reassignment-json-file=p", some=("--reassignment-json-file=plan.json",)
    ),
    "a document": Offer("kquota quota diff ", some=("plan.json",)),
    "a folder": Offer("kquota log-dirs --snapshot ", some=("sizes",), none=("plan.json",)),
}
"""bash completes these itself when a key is pressed."""


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder with clusters, cached names and two files, and a kquota that only leaves a mark."""
    root = tmp_path_factory.mktemp("stage")
    for folder in ("bin", "work/sizes", "config/kquota"):
        (root / folder).mkdir(parents=True)
    (root / "config/kquota/config.toml").write_text(CONFIG)
    (root / "work/plan.json").touch()
    kquota = root / "bin/kquota"
    kquota.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > "$MARKED.part"\nmv "$MARKED.part" "$MARKED"\n')
    kquota.chmod(0o755)
    return root


def environment(root: Path) -> dict[str, str]:
    """The environment of the stage, with names that were cached a moment ago."""
    for named, found in NAMED.items():
        _kept(root, *named).keep(found, FRESH_SECONDS)
    homes = {f"XDG_{name.upper()}_HOME": str(root / name) for name in ("config", "cache", "data")}
    path = f"{root / 'bin'}:{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(root), "MARKED": str(root / "mark"), "LANG": "C.UTF-8", **homes}


def _kept(root: Path, *named: str) -> CompletionFile:
    return CompletionFile(root / "cache/kquota/completion", [*named, *[""] * (6 - len(named))])


@pytest.fixture(scope="module")
def offered(stage: Path) -> Callable[[str], dict[str, list[str]]]:
    """All lines; each shell is asked once."""
    known: dict[str, dict[str, list[str]]] = {}

    def asked(shell: str) -> dict[str, list[str]]:
        if shell not in known:
            lines = [case.line for case in (*CASES.values(), *FILES.values())]
            known[shell] = offers(shell, lines, environment(stage), stage / "work")
        return known[shell]

    return asked


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_offered(shell: str, case: Offer, offered: Callable[[str], dict[str, list[str]]]) -> None:
    _must_fit(case, offered(shell)[case.line])


@pytest.mark.parametrize("shell", ["zsh", "fish"])
@pytest.mark.parametrize("case", FILES.values(), ids=FILES)
def test_files_and_folders(shell: str, case: Offer, offered: Callable[[str], dict[str, list[str]]]) -> None:
    _must_fit(case, offered(shell)[case.line])


def _must_fit(case: Offer, found: list[str]) -> None:
    if case.exactly is not None:
        assert sorted(found) == sorted(case.exactly)
    assert set(case.some) <= set(found)
    assert not set(case.none) & set(found)


@pytest.mark.parametrize("shell", SHELLS)
def test_no_python_process_starts(shell: str, stage: Path, offered: Callable[[str], dict[str, list[str]]]) -> None:
    assert offered(shell)
    assert not (stage / "mark").exists()
    assert not (stage / "work/evil").exists()


def test_the_completion_files_match_the_app(tmp_path: Path) -> None:
    """If it fails, run: python -m completions.generate."""
    subprocess.run([sys.executable, "-m", "completions.generate", tmp_path], cwd=COMPLETIONS.parent, check=True)
    made = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert made == {name: (COMPLETIONS / name).read_text() for name in ("kquota.bash", "_kquota", "kquota.fish")}


AWKS = ("mawk", "gawk --posix", "original-awk", "busybox awk")
"""The awk programs of Debian and Ubuntu, of Fedora, of macOS and the BSDs, and of Alpine."""


@pytest.mark.parametrize("awk", AWKS)
def test_every_awk_answers_alike(awk: str, stage: Path) -> None:
    must_be_there(awk.split()[0])
    text = (COMPLETIONS / "kquota.bash").read_text()
    program, table = re.findall(r"    local (?:program|table)='((?:[^']|'\\'')*)'\n", text)
    given = {**environment(stage), "LC_ALL": "C"}
    for case in CASES.values():
        words = [*shlex.split(case.line), *([""] if case.line.endswith(" ") else [])]
        parts = [part.replace("'\\''", "'") for part in (program, table)]
        answer = subprocess.check_output([*awk.split(), *parts, "read", *words], env=given, text=True)
        head, *lines = answer.splitlines()
        found = [head.partition("\t")[2] + line.partition("\t")[0] for line in lines]
        _must_fit(case, [word for word in found if word.startswith(words[-1])])


SET_UP = {
    "bash": "PS1='READY '; . $COMPLETIONS/kquota.bash",
    "bash before 4": "PS1='READY '; enable -n compopt; . $COMPLETIONS/kquota.bash",
    "zsh": "PS1='READY '; fpath=($COMPLETIONS $fpath); autoload -Uz compinit; compinit -u -D",
    "fish": "function fish_prompt; echo -n 'READY '; end; set -p fish_complete_path $COMPLETIONS",
}
PRESSED = {
    "words, a value, a file": (
        "kquota conf\t--user b --add-config prod\t5MB/s --outp\tj\t--add-config-file pl\t",
        "configs --user b --add-config producer_byte_rate=5MB/s --output json --add-config-file plan.json",
    ),
    "nothing that stands in quotes goes": (
        "kquota configs --user b --add-config 'producer_byte_rate=5,con\tsumer_byte_rate=6' --output=j\t",
        "configs --user b --add-config producer_byte_rate=5,consumer_byte_rate=6 --output=json",
    ),
}
"""Keys, and the words that the shell then runs."""


@pytest.mark.parametrize("shell", SET_UP)
@pytest.mark.parametrize("case", PRESSED)
def test_a_key_is_pressed(shell: str, case: str, stage: Path, tmp_path: Path) -> None:
    """No space after the = of a key, one space after a word, and the name of an existing file."""
    must_be_there(shell.split()[0])
    for name in (".zshrc", "rc", "fish/config.fish"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(SET_UP[shell])
    # Without this folder, fish reads all man pages of the machine in the background, for minutes.
    (tmp_path / "fish/generated_completions").mkdir()
    ours = {
        "ZDOTDIR": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path),
        "MARKED": str(tmp_path / "mark"),
    }
    options = {"bash": ["--noprofile", "--rcfile", str(tmp_path / "rc")], "zsh": ["-d"], "fish": []}
    program = shell.split()[0]
    command = [program, *options[program], "-i"]
    keys, run = PRESSED[case]
    type_into(command, f"{keys}\r", {**environment(stage), **ours}, stage / "work", done=(tmp_path / "mark").exists)
    assert (tmp_path / "mark").read_text().splitlines() == run.split()


@pytest.mark.parametrize("shell", SHELLS)
def test_kquota_is_started_for_a_cluster_without_a_cache(shell: str, stage: Path, tmp_path: Path) -> None:
    """kquota gets the address of the line, whatever it contains. No other part of the line is run."""
    line = "kquota configs --alter --bootstrap-server 'a$(touch evil)\"b`c`:1' --topic "
    (tmp_path / "work").mkdir()
    mark = tmp_path / "mark"
    offers(shell, [line], {**environment(stage), "MARKED": str(mark)}, tmp_path / "work")
    assert mark.read_text().splitlines() == ["complete", '--bootstrap-server=a$(touch evil)"b`c`:1']
    assert not (tmp_path / "work/evil").exists()


def test_the_bash_file_works_with_the_bash_of_macos() -> None:
    """No syntax that bash 3.2 does not have."""
    text = (COMPLETIONS / "source/kquota.bash").read_text()
    newer = (
        r"declare -A|local -[An]|mapfile|readarray|\$\{[^}]*(?:,,|\^\^|@[A-Z]\})|&>>|\|&|coproc|printf -v|\[-1\]|;;?&"
    )
    assert not re.findall(newer, text)
