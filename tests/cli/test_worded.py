"""Lower rooms name a person's choices in neutral words. The command line names its option or command instead."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from kquota.cli.contract import worded
from kquota.cli.log_dirs.run import sizes
from kquota.cli.reassign_partitions import remarks
from kquota.cli.sandbox.demo import COMMANDS
from kquota.cli.sandbox.demo import _line as demo_line
from kquota.cli.topics import results
from kquota.cli.topics.command import TopicsOptions
from kquota.cli.watching.answer import MovesWatched
from kquota.errors import Incomplete, NextStep, Parameter, QuotaViolatedException, Refused, StepFor, Unreachable
from kquota.mutation.actions import Fate, TopicOutcome
from kquota.mutation.topic import Deletion
from kquota.reassign.progress import PartitionStatus, Progress
from kquota.reassign.verification import Verification
from kquota.sandbox.demo import DemoCommand
from kquota.sizes.replica import LogDir
from kquota.terms import BrokerId, TopicPartition
from tests.cli.test_live_table import reading

pytestmark = pytest.mark.unit


def test_each_next_step_has_a_command() -> None:
    assert all("kquota " in worded(Refused(step)) for step in NextStep)


def test_an_error_and_its_cause_name_options() -> None:
    inner = Refused("t-0 is moving: wait, or give ", Parameter("force"))
    outer = Incomplete((inner, "; ", StepFor(NextStep.RESUME_RUN, "r"), " continues it"), done=[], undone=[])
    assert str(outer) == "t-0 is moving: wait, or give force; resuming run r continues it"
    resume = "`kquota move resume --bootstrap-server HOST:PORT --run r`"
    assert worded(outer) == f"t-0 is moving: wait, or give --force; {resume} continues it"


def test_a_step_of_a_sandbox_follows_a_colon() -> None:
    error = Refused(StepFor(NextStep.USE_SANDBOX, "zk"), ", or ", StepFor(NextStep.STOP_SANDBOX, "zk"))
    assert str(error) == "Use sandbox zk, or stop sandbox zk"
    assert worded(error) == 'Use it with: eval "$(kquota sandbox env zk)", or stop it with: kquota sandbox down zk'


def test_the_demo_names_options_in_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    demo_line("no Kafka: ", Unreachable("not in the cache; use ", Parameter("zookeeper_only")))
    assert capsys.readouterr().out == "no Kafka: not in the cache; use --zookeeper-only\n"


def test_the_json_line_of_log_dirs_stays_json_and_shows_no_control_character() -> None:
    path = "/data/\u00a0\u200b\U000e0001ü"
    found = LogDir(
        broker=BrokerId(1), rack=None, path=path, error=None, volume_total=None, volume_usable=None, replicas=()
    )
    *_, line = sizes([BrokerId(1)], [found]).text()
    assert line.isprintable()
    assert json.loads(line)["brokers"][0]["logDirs"][0]["logDir"] == path


def test_the_demo_has_a_command_line_for_each_command() -> None:
    assert COMMANDS.keys() == set(DemoCommand)


def _in_place() -> Iterator[str]:
    one = PartitionStatus(partition=TopicPartition("t", 0), progress=Progress.DONE, replicas=(), target=())
    found = Verification(statuses=(one,) * 1_500, verdict=Progress.DONE)
    yield remarks.in_place(found, undoing=False)


def _rejected() -> Iterator[str]:
    error = QuotaViolatedException(1_000, "rejected")
    outcome = TopicOutcome(mutation=Deletion(topic="t", partitions=1), fate=Fate.REJECTED, error=error)
    return results.complaints([outcome] * 1_500, TopicsOptions(connection=None, delete=True))  # type: ignore[arg-type]


def _watched(*, lines: bool) -> Iterator[str]:
    found: MovesWatched = reading()
    [move] = found.moves
    lane = replace(move.destinations[0], copies=3_000, done=1_500)
    move = replace(move, partitions=9_000, elsewhere=1_500, waiting=2_500, destinations=(lane,))
    return replace(found, moves=(move,), lines=lines).text()


COUNTS = {
    "partitions in place": (_in_place(), "1,500 of 1,500 partitions have"),
    "rejected topics": (_rejected(), "rejects 1,500 of 1,500 topics"),
    "a move in a log": (_watched(lines=True), "1,500 ended elsewhere, 2,500 not submitted yet"),
    "copies in a table": (_watched(lines=False), " 1,500/3,000 "),
}


@pytest.mark.parametrize(("lines", "shown"), COUNTS.values(), ids=COUNTS)
def test_counts_have_thousands_separators(lines: Iterator[str], shown: str) -> None:
    assert shown in "\n".join(lines)
