"""Errors below `cli`: a person reads options and commands, a program reads the names of parameters."""

from __future__ import annotations

import pytest

from kquota.cli.contract import not_installed, worded
from kquota.errors import Invalid, KquotaError, NextStep, Parameter, QuotaViolatedException

CASES: dict[str, tuple[KquotaError, str, str]] = {
    "a sentence": (Invalid("no such file"), "no such file", "no such file"),
    "a parameter": (
        Invalid(Parameter("spark_master"), " 'x': write HOST:PORT"),
        "spark_master 'x': write HOST:PORT",
        "--spark-master 'x': write HOST:PORT",
    ),
    "another error's parts": (
        Invalid("h: ", *Invalid("no snapshot. ", NextStep.TAKE_SNAPSHOT).args),
        "h: no snapshot. Take a snapshot",
        "h: no snapshot. Take one with `kquota log-dirs --bootstrap-server HOST:PORT --snapshot DIR` (replace DIR with "
        "the folder of the snapshots)",
    ),
    "an import that does not name its module": (
        not_installed("--metrics", None, "metrics"),
        "--metrics: cannot import a library. Run: pip install 'kquota[metrics]'",
        "--metrics: cannot import a library. Run: pip install 'kquota[metrics]'",
    ),
    "a violated quota": (QuotaViolatedException(100, "wait"), "wait", "wait"),
}


@pytest.mark.parametrize(("error", "program", "person"), CASES.values(), ids=CASES)
def test_errors_name_options_for_people_and_parameters_for_programs(
    error: KquotaError, program: str, person: str
) -> None:
    assert (str(error), worded(error)) == (program, person)


@pytest.mark.parametrize("step", NextStep)
def test_each_next_step_is_a_command_for_people(step: NextStep) -> None:
    assert "kquota " in worded(Invalid(step))
