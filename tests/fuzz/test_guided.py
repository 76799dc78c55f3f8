"""A short run of fuzzing that is guided by coverage."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import pytest


@pytest.mark.skipif(find_spec("atheris") is None, reason="atheris is not installed: make .venv/fuzz.stamp")
def test_a_run_that_is_guided_by_coverage_finds_no_defect() -> None:
    command = [sys.executable, "-m", "tests.fuzz.guided", "--executions", "5000", "--seed", "1"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-3_000:]
    assert "5,000 executions" in ran.stdout
