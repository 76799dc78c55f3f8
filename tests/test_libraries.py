"""Whatever kquota imports of others stands in the import contract: a new library without a room of its own fails."""

from __future__ import annotations

import ast
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def of_others(source: str) -> set[str]:
    """The libraries that a module imports anywhere in it, in a function or for types only, too."""
    nodes = list(ast.walk(ast.parse(source)))
    modules = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    modules += [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level]
    return {module.partition(".")[0] for module in modules} - sys.stdlib_module_names - {"kquota"}


def test_every_library_of_others_has_its_place_in_the_import_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    [held] = [set(contract["forbidden_modules"]) for contract in contracts if contract["type"] == "forbidden"]
    imported = {name for path in (ROOT / "kquota").rglob("*.py") for name in of_others(path.read_text())}
    assert imported - held == set()
