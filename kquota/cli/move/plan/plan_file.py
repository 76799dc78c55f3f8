"""The file that receives the plan from stdout of `move plan`. Messages name it in the commands that they suggest."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from kquota.cli.options import Output

UNSAVED: Final = "plan.json"
"""The file name in suggested commands if `plan_file` returns None."""
_STDOUT: Final = 1


def plan_file(output: Output) -> str | None:
    """Return the path of the file that receives the plan from stdout. For a file below the current folder, the path is
    relative to this folder.

    Return None if stdout is not a regular file, if the system does not show the path of the file, or if `output` is a
    format that contains more than the plan.
    """
    if not output.for_people:
        return None
    try:
        if not stat.S_ISREG(os.fstat(_STDOUT).st_mode):
            return None
        path = Path(f"/proc/self/fd/{_STDOUT}").readlink()
        if not path.samefile(f"/proc/self/fd/{_STDOUT}"):
            return None
        return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
    except OSError:
        return None


def saving(file: str | None) -> str:
    """Return the words that tell the operator to save the plan, or empty text if `file` already has the plan."""
    return f"save the plan in {UNSAVED}, then " if file is None else ""
