"""The examples in docstrings return the values that they show."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SHOWN = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in (ROOT / "kquota").rglob("*.py")
    if ">>> " in path.read_text()
)


@pytest.mark.parametrize("module", SHOWN)
def test_an_example_of_a_docstring(module: str) -> None:
    assert doctest.testmod(importlib.import_module(module)).failed == 0
