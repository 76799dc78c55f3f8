"""The source of kquota as syntax trees, for the tests of the house. Each module is parsed once."""

from __future__ import annotations

import ast
import functools
from pathlib import Path


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@functools.cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree(path)))


@functools.cache
def strings(path: Path) -> tuple[str, ...]:
    """Return the strings of a module that a program can print. Docstrings, also those of constants, are left out."""
    documentation = {id(node.value) for node in nodes(path) if isinstance(node, ast.Expr)}
    constants = [node for node in nodes(path) if isinstance(node, ast.Constant) and id(node) not in documentation]
    return tuple(node.value for node in constants if isinstance(node.value, str))
