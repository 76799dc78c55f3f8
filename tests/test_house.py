"""The house is as its map says, and every library of others has its place in the import contract."""

from __future__ import annotations

import ast
import re
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


def test_the_map_names_every_module() -> None:
    """Those of `cli` go by its commands, and the map says how."""
    pages = (ROOT / "CONTRIBUTING.md").read_text().split("```")
    named = set(re.findall(r"\w+", pages[1]))
    modules = {path for path in (ROOT / "kquota").rglob("*.py") if path.parent.name != "cli" and path.stem[0] != "_"}
    assert sorted(str(path) for path in modules if path.stem not in named) == []
