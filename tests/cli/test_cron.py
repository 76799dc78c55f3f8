"""The jobs of cron on real brokers: from the start of a move to its end, and after it was undone."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kquota.cli.metrics_file import EXIT_CODE
from tests.cli.run import Ran, kquota
from tests.cli.test_reassign_partitions import FAST, LASTING, SLOW, Desk, rates
from tests.stores.moves_stage import OtherHand
from tests.waiting import until

pytestmark = pytest.mark.kafka


@pytest.fixture(params=["4.3.1 Admin API", "3.9.1 ZooKeeper"])
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def desk(hand: OtherHand, connection: tuple[str, str], tmp_path: Path) -> Desk:
    return Desk(hand, connection, tmp_path)


def job(desk: Desk, *command: str) -> tuple[Ran, dict[str, float]]:
    """A command as cron runs it, and its metrics."""
    file = desk.folder / "kquota.prom"
    where = (*desk.connection, "--state-dir", str(desk.folder / "state"))
    ran = kquota(*command, *where, "--quiet", "--timeout", "2m", "--textfile", str(file))
    families = text_string_to_metric_families(file.read_text())
    return ran, {family.name: family.samples[0].value for family in families}


ALL_RUNS = ("reassign-partitions", "--verify", "--all-runs")


def test_the_jobs_follow_a_move_and_report_that_it_was_taken_back(desk: Desk) -> None:
    topic = desk.hand.topic({0: (1, 2)}, size=LASTING)
    there, back = desk.plan({(topic, 0): (1, 3)}), desk.plan({(topic, 0): (1, 2)})
    assert desk.run("--execute", there, "--throttle", SLOW).code == 0
    until(lambda: rates(SLOW).items() <= desk.standing(topic).items(), "the throttle is set")
    for command in (ALL_RUNS, ("move", "status")):
        ran, found = job(desk, *command)
        assert ran == Ran(8, "", "")
        assert (found["kquota_moves_running"], found["kquota_throttled_brokers"], found[EXIT_CODE]) == (1, 3, 8)
        assert ("kquota_bytes_left" in found) == ("--bootstrap-server" in desk.connection)
        assert found.get("kquota_bytes_left", 1) > 0
        assert found.get("kquota_seconds_left", 1) > 0
    assert desk.run("--execute", there, "--throttle", FAST).code == 0
    desk.moved(topic, (1, 3))
    until(lambda: job(desk, *ALL_RUNS)[0] == Ran(0, "", ""), "the run has ended")
    until(lambda: desk.standing(topic) == {}, "everything is restored")
    _, found = job(desk, "move", "status")
    assert (found["kquota_moves_running"], found[EXIT_CODE]) == (0, 0)
    assert desk.run("--execute", back, "--throttle", FAST).code == 0
    desk.moved(topic, (1, 2))
    until(lambda: job(desk, *ALL_RUNS)[0] == Ran(0, "", ""), "the rollback run has ended")
    until(lambda: desk.standing(topic) == {}, "everything is restored")
    stale = desk.run("--verify", there)
    told = "was done, but a later move has moved partitions back"
    assert (stale.code, told in stale.err, "xecute the plan again" in stale.err) == (1, True, False), stale
