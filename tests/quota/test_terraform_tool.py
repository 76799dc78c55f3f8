"""Terraform itself reads what `quota export --format terraform` writes. The tests need the program `terraform`."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from kquota.quota import terraform
from tests.quota.test_interchange import EVERYTHING, ODD

PROGRAM = shutil.which("terraform")
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="Terraform is not installed")


def ran(folder: Path, *arguments: str, given: str = "") -> str:
    assert PROGRAM is not None
    # Without a configuration of its own, Terraform warns about that of this machine.
    environment = {**os.environ, "TF_CLI_CONFIG_FILE": str(folder / "terraformrc"), "CHECKPOINT_DISABLE": "1"}
    (folder / "terraformrc").touch()
    done = subprocess.run(
        [PROGRAM, *arguments], cwd=folder, input=given, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_export_is_in_the_form_of_terraform_fmt(tmp_path: Path) -> None:
    (tmp_path / "quotas.tf").write_text(terraform.write(EVERYTHING).text)
    assert ran(tmp_path, "fmt", "-check", "-diff") == ""


def test_terraform_reads_each_name_as_it_is(tmp_path: Path) -> None:
    names = [*ODD, 'a"b', "a\\b", "a\nb\tc", "\x01", "\U0001f600", "$%{", "%%{x}", "ß"]
    (tmp_path / "names.tf").write_text(f"locals {{\n  names = [{', '.join(map(terraform.string, names))}]\n}}\n")
    # The console prints the JSON text as a quoted string.
    found = ran(tmp_path, "console", given="base64encode(jsonencode(local.names))\n")
    read = json.loads(base64.b64decode(found.strip().strip('"')))
    # Terraform stores names in Unicode form NFC, so `terraform.write` leaves out a name in another form.
    assert read == [name if name != "e\u0301" else "\u00e9" for name in names]
