"""Contracts of commands that cron runs: --quiet, --all-runs, --timeout, --textfile, and a stale --verify."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from kquota.cli import move_stores, unattended
from kquota.cli.metrics_file import EXIT_CODE, GAUGES, LAST_SUCCESS, exposition, previous
from kquota.errors import Unreachable
from kquota.reassign.moves import Replicas
from kquota.settings.resource import Setting
from kquota.stores.state.journal import line
from kquota.stores.state.process import me
from kquota.terms import HIGHEST_ID, LEADER_RATE, TopicPartition
from tests.cli.contracts.in_memory import CLUSTER_ID, InMemory
from tests.cli.contracts.sessions import BROKER, ELSEWHERE, ONE, START, THREE, ZOOKEEPER, plan, reassign
from tests.cli.contracts.transcript import Transcript
from tests.cli.run import Ran, kquota_here, python
from tests.stores.record.hosts import Team

pytestmark = pytest.mark.unit
ALL_RUNS = f"reassign-partitions {BROKER} --verify --all-runs"
ORDERS_0, ORDERS_1 = (TopicPartition("orders", number) for number in (0, 1))


def metrics(file: Path) -> dict[str, float]:
    """Return the values of a file, as Prometheus reads them. Check that each metric has a type, a help and the cluster
    id.
    """
    families = list(text_string_to_metric_families(file.read_text()))
    for family in families:
        assert (family.type, family.documentation) == ("gauge", GAUGES[family.name])
        assert [sample.labels for sample in family.samples] == [{"cluster": CLUSTER_ID}]
    return {family.name: family.samples[0].value for family in families}


def test_one_job_verifies_all_runs_from_start_to_end(house: InMemory, session: Transcript, tmp_path: Path) -> None:
    for form in ("text", "json"):
        session.kquota(f"{ALL_RUNS} --output {form}")
    session.kquota(f"{ALL_RUNS} --quiet")
    reassign(session, plan(tmp_path, ELSEWHERE), "--execute --throttle 5MB/s --force", ["text"])
    house.clock.sleep(60)
    session.note("a second run")
    reassign(session, plan(tmp_path, {("payments", 0): [2, 1]}), "--execute --additional --force", ["text"])
    for form in ("text", "json"):
        session.kquota(f"{ALL_RUNS} --output {form}")
    session.kquota(f"{ALL_RUNS} --quiet")
    for name in (ORDERS_0, ORDERS_1):
        house.cluster.finish(name)
    session.note("the first run has ended")
    session.kquota(f"{ALL_RUNS} --preserve-throttles")
    session.kquota(ALL_RUNS)
    house.cluster.cancel(TopicPartition("payments", 0))
    session.note("another tool has cancelled the second run")
    session.kquota(f"{ALL_RUNS} --quiet")
    session.kquota(f"{ALL_RUNS} --quiet")
    assert house.cluster.configs == {}
    for wrong in ("--clear-all", "--reassignment-json-file plan.json", "--timeout 0", "--timeout x"):
        session.kquota(f"{ALL_RUNS} {wrong}")
    session.kquota(f"reassign-partitions {BROKER} --cancel --all-runs --reassignment-json-file plan.json")
    session.kquota(f"reassign-partitions {ZOOKEEPER} --verify --all-runs --timeout 5s")
    session.must_be("contract-cron")


def test_a_run_that_cannot_be_read_does_not_hide_the_others(
    house: InMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for placement in (ELSEWHERE, {("payments", 0): [2, 1]}):
        more = ("--additional", "--force", "--throttle", "5MB/s")
        file = plan(tmp_path, placement)
        options = (*BROKER.split(), "--reassignment-json-file", file, *more)
        assert kquota_here("reassign-partitions", "--execute", *options).code == 0
        house.clock.sleep(60)
    snapshot = house.cluster.snapshot

    def unreachable(topics: object) -> object:
        if topics is not None and "orders" in topics:  # type: ignore[operator]
            raise Unreachable("broker 1 does not answer")
        return snapshot(topics)  # type: ignore[arg-type]

    monkeypatch.setattr(house.cluster, "snapshot", unreachable)
    ran = kquota_here(*ALL_RUNS.split(), "--quiet")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.count("\n") == 1
    assert "broker 1 does not answer" in ran.err
    assert "in progress: 0 of 1" in kquota_here(*ALL_RUNS.split()).out


def test_all_runs_are_read_while_another_kquota_writes(house: InMemory, tmp_path: Path) -> None:
    """A cron job beside `move run` must neither fail nor write."""
    file = plan(tmp_path, ELSEWHERE)
    options = (*BROKER.split(), "--reassignment-json-file", file, "--throttle", "5MB/s", "--force")
    assert kquota_here("reassign-partitions", "--execute", *options).code == 0
    for name in (ORDERS_0, ORDERS_1):
        house.cluster.finish(name)
    held = dict(house.cluster.configs)
    with house._runs().hold("move run", take_over=False):
        ran = kquota_here(*ALL_RUNS.split())
        assert (ran.code, house.cluster.configs) == (8, held)
        assert "done, but this check restored nothing" in ran.out
        assert "This check restored nothing" in ran.err
        assert kquota_here(*ALL_RUNS.split(), "--quiet") == Ran(8, "", "")
    assert kquota_here(*ALL_RUNS.split(), "--quiet") == Ran(0, "", "")
    assert house.cluster.configs == {}


CLOSED_STDERR = """
import os
import sys
from pathlib import Path

import pytest

from kquota.__main__ import main
from kquota.reassign.moves import PartitionReplicas
from tests.cli.contracts.in_memory import InMemory
from tests.cli.contracts.sessions import BROKER, ONE, TWO, plan
from tests.cli.contracts.test_cron import ORDERS_0
from tests.cli.run import kquota_here

folder, *arguments = sys.argv[1:]
house = InMemory(folder=Path(folder))
house.cluster.partitions[ORDERS_0] = PartitionReplicas(replicas=(ONE, TWO), leader=ONE, isr=(ONE, TWO))
house.stand_in(pytest.MonkeyPatch())
file = plan(house.folder, {("orders", 0): [1, 3]})
execute = ("reassign-partitions", "--execute", *BROKER.split(), "--reassignment-json-file", file, "--throttle", "5MB/s")
assert kquota_here(*execute, "--force").code == 0
reader, writer = os.pipe()
os.close(reader)
os.dup2(writer, 2)
sys.argv = ["kquota", *arguments]
main()
"""


def test_metrics_and_exit_code_are_those_of_the_command_without_a_reader_of_stderr(tmp_path: Path) -> None:
    """The first message is a warning about the damaged file of the previous command."""
    file = tmp_path / "kquota.prom"
    file.write_text("# HELP kquota_moves_running x\n{\n")
    job = python(CLOSED_STDERR, str(tmp_path), *ALL_RUNS.split(), "--textfile", str(file))
    out, err = job.communicate(timeout=60)
    assert (job.returncode, err) == (8, "")
    assert "in progress: 0 of 1 partition done" in out
    assert metrics(file)[EXIT_CODE] == 8


@pytest.mark.parametrize("back", ["abort", "cancel", "the rollback plan", "another tool", "another host"])
def test_a_stale_verify_says_that_the_run_was_undone(house: InMemory, tmp_path: Path, back: str) -> None:
    file = plan(tmp_path, ELSEWHERE)
    at = BROKER.split()
    verify = ("reassign-partitions", "--verify", *at, "--reassignment-json-file", file)
    execute = ("reassign-partitions", "--execute", *at, "--force", "--reassignment-json-file")
    assert kquota_here(*execute, file, "--throttle", "5MB/s").code == 0
    house.clock.sleep(60)
    if back == "abort":
        assert kquota_here("move", "abort", *at, "--force").code in (0, 8)
    elif back == "cancel":
        assert kquota_here("reassign-partitions", "--cancel", *at, "--force", *verify[-2:]).code == 0
    elif back == "the rollback plan":
        for name in (ORDERS_0, ORDERS_1):
            house.cluster.finish(name)
        assert kquota_here(*verify).code == 0
        before = {name: brokers for name, brokers in START.items() if name in ELSEWHERE}
        (tmp_path / "back").mkdir()
        assert kquota_here(*execute, plan(tmp_path / "back", before)).code == 0
        for name in (ORDERS_0, ORDERS_1):
            house.cluster.finish(name)
    else:
        for name in (ORDERS_0, ORDERS_1):
            house.cluster.cancel(name)
        if back == "another host":
            house.folder = tmp_path / "another host"
    told = {
        "another host": "No run of this plan is recorded here",
        "the rollback plan": "was done, but a later move has moved partitions back, so 0 of 2 partitions",
    }.get(back, "was undone, cancelled or refused")
    for _ in range(3):
        ran = kquota_here(*verify, "--quiet")
        assert (ran.code, ran.out) == (1, "")
        assert told in ran.err
        assert "xecute the plan again" not in ran.err
        assert "needs no further --verify" in ran.err


DELETED = {
    "every partition": (
        (ORDERS_0, ORDERS_1),
        "(2 partitions do not exist: orders-0, orders-1). If you have deleted them, nothing is left to move",
    ),
    "one partition": (
        (ORDERS_0,),
        "(1 partition does not exist: orders-0). Remove the missing partitions from the plan, and execute it again",
    ),
}


@pytest.mark.parametrize(("deleted", "words"), DELETED.values(), ids=DELETED)
def test_a_deleted_partition_gets_its_own_next_step(
    house: InMemory, tmp_path: Path, deleted: Sequence[TopicPartition], words: str
) -> None:
    file = plan(tmp_path, ELSEWHERE)
    options = (*BROKER.split(), "--reassignment-json-file", file)
    execute = ("reassign-partitions", "--execute", *options, "--throttle", "5MB/s", "--force")
    assert kquota_here(*execute).code == 0
    for name in (ORDERS_0, ORDERS_1):
        house.cluster.cancel(name)
    for name in deleted:
        del house.cluster.partitions[name]
    ended = f"the moves have ended, but 0 of 2 partitions have the replicas of the plan {words}\n"
    of_all, of_plan = kquota_here(*ALL_RUNS.split()), kquota_here("reassign-partitions", "--verify", *options)
    assert (of_all.code, of_plan.code) == (1, 1)
    assert re.fullmatch(rf"kquota: error: run \S+: {re.escape(ended)}", of_all.err)
    assert of_plan.err == f"kquota: error: {ended}"
    assert house.cluster.configs == {}


def test_a_verify_of_the_plan_does_not_end_an_abort(house: InMemory, tmp_path: Path) -> None:
    """The throttle stays until the replicas are copied back."""
    file = plan(tmp_path, ELSEWHERE)
    at = BROKER.split()
    verify = ("reassign-partitions", "--verify", *at, "--reassignment-json-file", file)
    assert kquota_here("reassign-partitions", "--execute", *verify[2:], "--throttle", "5MB/s", "--force").code == 0
    for name in (ORDERS_0, ORDERS_1):
        house.cluster.finish(name)
    assert kquota_here("move", "abort", *at, "--force").code == 8
    held = dict(house.cluster.configs)
    assert kquota_here(*verify).code == 8
    assert house.cluster.configs == held
    for name in (ORDERS_0, ORDERS_1):
        house.cluster.finish(name)
    ran = kquota_here(*verify)
    assert (ran.code, house.cluster.configs) == (1, {})
    assert "was undone, cancelled or refused" in ran.err
    assert kquota_here("move", "status", *at).code == 0


def test_cancel_names_partitions_that_do_not_exist(house: InMemory, tmp_path: Path) -> None:
    file = plan(tmp_path, {("orders", 0): [1, 3], ("order", 7): [1]})
    for more in ((), ("--dry-run",)):
        ran = kquota_here("reassign-partitions", *BROKER.split(), "--cancel", "--reassignment-json-file", file, *more)
        assert (ran.code, "warning: 1 partition does not exist (order-7)" in ran.err) == (0, True)


@pytest.mark.parametrize("command", ["move status", "move resume", "throttle doctor", ALL_RUNS])
def test_metrics_of_each_command(house: InMemory, tmp_path: Path, command: str) -> None:
    file = tmp_path / "kquota.prom"
    words = command.split() if command == ALL_RUNS else [*command.split(), *BROKER.split()]
    assert kquota_here(*words, "--quiet", "--textfile", str(file)).code == 0
    first = metrics(file)
    assert {name: value for name, value in first.items() if name != LAST_SUCCESS} == {
        **{name: 0.0 for name in GAUGES if name != LAST_SUCCESS}
    }
    house.cluster.configs[Setting.of_broker(ONE, LEADER_RATE)] = "7"
    house.cluster.submit({ORDERS_0: (ONE, THREE)})
    code = kquota_here(*words, "--quiet", "--textfile", str(file)).code
    found = metrics(file)
    assert found["kquota_moves_running"] == found["kquota_throttled_brokers"] == 1
    assert "kquota_bytes_left" not in found  # the logs of this cluster are unknown
    assert (found[EXIT_CODE], found[LAST_SUCCESS] >= first[LAST_SUCCESS]) == (code, True)
    assert file.stat().st_mode & 0o777 == 0o644


def test_a_failure_keeps_the_last_success_and_nothing_else(
    house: InMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "kquota.prom"
    words = ("move", "status", *BROKER.split(), "--textfile", str(file))
    assert kquota_here(*words).code == 0
    success = metrics(file)[LAST_SUCCESS]

    def dead(*_: object) -> object:
        raise Unreachable("no broker answers")

    monkeypatch.setattr(move_stores, "watching", dead)
    ran = kquota_here(*words)
    assert (ran.code, ran.out) == (1, "")
    assert metrics(file) == {LAST_SUCCESS: success, EXIT_CODE: 1.0}
    file.unlink()
    assert kquota_here(*words).code == 1
    assert not file.exists()


@pytest.mark.parametrize("more", [["throttle", "doctor", "--fix"], ["move", "resume", "--take-over"]])
def test_quiet_does_not_ask(house: InMemory, more: list[str]) -> None:
    ran = kquota_here(*more, *BROKER.split(), "--quiet")
    assert (ran.code, ran.out, "--quiet: this command asks for confirmation. Add --yes" in ran.err) == (2, "", True)


def test_quiet_shows_what_needs_a_person(house: InMemory) -> None:
    house.cluster.configs[Setting.of_broker(ONE, LEADER_RATE)] = "7"
    ran = kquota_here("throttle", "doctor", *BROKER.split(), "--quiet")
    assert (ran.code, ran.out) == (8, "")
    assert all(line.startswith("kquota: rates-") for line in ran.err.splitlines())
    assert "rates-without-lists: broker 1" in ran.err


OTHER_PROCESS: dict[str, tuple[str, str]] = {
    "on another host": (f'"host":"{me().host}"', '"host":"elsewhere"'),
    "that has ended": (f'"pid":{me().pid}', f'"pid":{HIGHEST_ID}'),
    "whose process id was used again": (f'"since":"{me().since:%Y}', '"since":"2021'),
}
"""A process that wrote a journal, by the value that distinguishes it from this process."""


@pytest.mark.parametrize(("mine", "others"), OTHER_PROCESS.values(), ids=OTHER_PROCESS)
def test_quiet_shows_a_run_that_may_be_interrupted(
    house: InMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mine: str, others: str
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(house.cluster, "submit", interrupted)
        options = (*BROKER.split(), "--reassignment-json-file", plan(tmp_path, ELSEWHERE), "--force")
        assert kquota_here("reassign-partitions", "--execute", *options, "--throttle", "5MB/s").code == 130
    # The process of this test is still alive, like a `move run` that waits for its next wave.
    assert kquota_here("move", "status", *BROKER.split(), "--quiet") == Ran(8, "", "")
    [journal] = house.folder.rglob("*.journal")
    texts = [text.partition(" ")[2] for text in journal.read_text().splitlines()]
    assert all(mine in text for text in texts)
    journal.write_bytes(b"".join(line(json.loads(text.replace(mine, others))) for text in texts))
    ran = kquota_here("move", "status", *BROKER.split(), "--quiet")
    assert (ran.code, ran.out, ran.err.count("\n")) == (8, "", 1)
    assert re.search(
        r"warning: run \S+: begun, not submitted\. If its command \(\S+@\S+, pid \d+\) is no longer running, "
        rf"`kquota move resume {BROKER} --run \S+` continues the run, and "
        rf"`kquota move abort {BROKER} --run \S+` undoes it",
        ran.err,
    )
    assert kquota_here("move", "status", *BROKER.split()).err == ran.err


@pytest.mark.parametrize(
    ("throttle", "state"), [("--throttle 5MB/s", "ended, but its throttle"), ("", "the move has ended, but the run")]
)
def test_quiet_shows_the_command_that_closes_an_ended_run(
    house: InMemory, tmp_path: Path, throttle: str, state: str
) -> None:
    options = (*BROKER.split(), "--reassignment-json-file", plan(tmp_path, ELSEWHERE), *throttle.split())
    assert kquota_here("reassign-partitions", "--execute", "--force", *options).code == 0
    for name in (ORDERS_0, ORDERS_1):
        house.cluster.finish(name)
    ran = kquota_here("move", "status", *BROKER.split(), "--quiet")
    assert (ran.code, ran.out, ran.err.count("\n")) == (8, "", 1)
    assert re.search(rf"warning: run \S+: {state} is still \w+\. `kquota {ALL_RUNS}`", ran.err)
    assert kquota_here("move", "status", *BROKER.split()).err == ran.err
    assert kquota_here(*ALL_RUNS.split()).code == 0
    assert kquota_here("move", "status", *BROKER.split(), "--quiet") == Ran(0, "", "")


def test_a_command_that_is_writing_is_not_an_interruption(
    house: InMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run is on record, and its moves are not submitted yet."""
    team, seen = Team(tmp_path / "team"), list[Ran]()
    monkeypatch.setattr(house, "_runs", lambda: team.process("a"))
    submit = house.cluster.submit

    def submitting(targets: Mapping[TopicPartition, Replicas | None]) -> Mapping[TopicPartition, str]:
        seen.append(kquota_here("move", "status", *BROKER.split(), "--quiet"))
        return submit(targets)

    monkeypatch.setattr(house.cluster, "submit", submitting)
    options = (*BROKER.split(), "--reassignment-json-file", plan(tmp_path, ELSEWHERE), "--force")
    assert kquota_here("reassign-partitions", "--execute", *options, "--throttle", "5MB/s").code == 0
    assert seen == [Ran(8, "", "")]


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_metrics_need_a_library_that_may_be_missing(
    house: InMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    monkeypatch.delitem(sys.modules, "kquota.cli.metrics_file")
    monkeypatch.setattr(move_stores, "staged", None)
    ran = kquota_here(*ALL_RUNS.split(), "--textfile", str(tmp_path / "kquota.prom"))
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert "pip install 'kquota[metrics]'" in ran.err


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("kquota.txt", None, "names end in .prom"),
        ("none/kquota.prom", None, "does not exist"),
        ("kquota.prom", b"node_load1 0.5\n", "contains no kquota metrics"),
        ("kquota.prom", b"# HELP kquota_" + b"x" * 70_000, "contains no kquota metrics"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused_before_the_cluster_is_asked(
    house: InMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: bytes | None, told: str
) -> None:
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)
    monkeypatch.setattr(move_stores, "staged", None)
    ran = kquota_here(*ALL_RUNS.split(), "--textfile", str(file))
    assert (ran.code, ran.out, ran.err.count("\n"), told in ran.err) == (2, "", 1, True)
    assert content is None or file.read_bytes() == content


def test_a_folder_that_is_not_writable_is_refused(
    house: InMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(move_stores, "staged", None)
    ran = kquota_here(*ALL_RUNS.split(), "--textfile", str(tmp_path / "a.prom"))
    assert (ran.code, "is not writable" in ran.err) == (2, True)


NOW = datetime(2026, 3, 1, tzinfo=UTC)
KEPT = exposition("c-1", {LAST_SUCCESS: 1e9, EXIT_CODE: 8})


@pytest.mark.parametrize(
    ("text", "cluster", "success"),
    [
        (KEPT, "c-1", 1e9),
        (KEPT.replace(b"e+09", b"e+10"), "c-1", None),
        (KEPT.replace(b" 1e+09", b" NaN"), "c-1", None),
        (KEPT.replace(b" 1e+09", b" -5"), "c-1", None),
        (KEPT.replace(b"c-1", b"a b"), None, None),
        (KEPT + b'kquota_bytes_left{cluster="c-2"} 1\n', None, None),
        (KEPT + b"other 1\n", None, None),
        (KEPT[:-9], None, None),
        (b"\xff\x00" + KEPT, None, None),
        (b"# HELP kquota_\n{{{", None, None),
        (b"", None, None),
    ],
)
def test_the_previous_file_is_validated(text: bytes, cluster: str | None, success: float | None) -> None:
    found = previous(text, NOW)
    assert (
        (cluster, success) == (None, None)
        if found is None
        else (found.cluster, found.last_success)
        == (
            cluster,
            success,
        )
    )


def test_a_command_ends_after_its_time(house: InMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This also holds if a library converts the exit into its own error."""

    def waiting(*_: object) -> object:
        time.sleep(60)
        raise AssertionError

    def swallowing(*_: object) -> object:
        try:
            time.sleep(60)
        except BaseException as error:
            raise Unreachable("swallowed") from error
        raise AssertionError

    # The end of this process would end the tests.
    monkeypatch.setattr(unattended, "GRACE_SECONDS", 1e6)
    handler = signal.getsignal(signal.SIGALRM)
    file = tmp_path / "kquota.prom"
    words = ("move", "status", *BROKER.split(), "--quiet", "--textfile", str(file))
    assert kquota_here(*words, "--timeout", "60s").code == 0
    for wait in (waiting, swallowing):
        monkeypatch.setattr(move_stores, "watching", wait)
        ran = kquota_here(*words, "--timeout", "50ms")
        assert (ran.code, ran.out, ran.err.count("\n")) == (75, "", 1)
        assert "--timeout 50ms: the command did not end in time" in ran.err
    assert metrics(file)[EXIT_CODE] == 75
    assert signal.getsignal(signal.SIGALRM) is handler


@pytest.mark.parametrize("document", ["README.md", "docs/scripts.md"])
def test_the_alert_rules_of_the_documents_are_rules_about_metrics_of_kquota(document: str) -> None:
    """A YAML parser reads the rules. Prometheus does not check the expressions."""
    page = (Path(__file__).parents[3] / document).read_text()
    [text] = re.findall(r"```yaml kquota-alerts\.yaml\n(.*?)```", page, re.DOTALL)
    [group] = yaml.safe_load(text)["groups"]
    assert [rule["alert"] for rule in group["rules"]] == ["KquotaLeftoverThrottles", "KquotaDoesNotSucceed"]
    for rule in group["rules"]:
        assert rule.keys() == {"alert", "expr", "for", "labels", "annotations"}
        assert set(re.findall(r"\bkquota_\w+", rule["expr"])) & GAUGES.keys()
        assert set(re.findall(r"\bkquota_\w+", rule["expr"])) <= GAUGES.keys()


def test_the_documents_list_every_metric() -> None:
    page = (Path(__file__).parents[3] / "docs" / "scripts.md").read_text()
    assert re.findall(r"^\| `(kquota_\w+)` \|", page, re.MULTILINE) == [*GAUGES]
