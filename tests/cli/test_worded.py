"""Lower rooms name a person's choices in neutral words. The command line names its option or command instead."""

from __future__ import annotations

import json

import pytest

from kquota.cli.contract import worded
from kquota.cli.log_dirs.run import sizes
from kquota.cli.sandbox.demo import COMMANDS
from kquota.cli.sandbox.demo import _line as demo_line
from kquota.errors import Incomplete, NextStep, Parameter, Refused, StepFor, Unreachable
from kquota.sandbox.demo import DemoCommand
from kquota.sizes.replica import LogDir
from kquota.terms import BrokerId

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
