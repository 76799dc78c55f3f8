"""Each mutant still applies: its old text is in its file once, and the new text is valid Python."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.mutants.table import MUTANTS, Mutant

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_a_mutant_applies(mutant: Mutant) -> None:
    source = (ROOT / "kquota" / mutant.file).read_text(encoding="utf-8")
    assert source.count(mutant.old) == 1, f"tests/mutants/table.py: update {mutant.name!r}"
    assert mutant.new != mutant.old
    ast.parse(source.replace(mutant.old, mutant.new))
    assert [test for test in mutant.tests if not (ROOT / test.partition("::")[0]).is_file()] == []
    assert mutant.tests


def test_there_are_enough_mutants_with_names_of_their_own() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 25
