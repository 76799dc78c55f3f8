"""The modules match the map in docs/house.md, and the import contract covers every third-party library."""

from __future__ import annotations

import ast
import functools
import re
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

from man.command import every, root

ROOT = Path(__file__).parents[1]
HOUSE = ROOT / "kquota"
COMMANDS = HOUSE / "cli"
# Rooms below `cli` whose strings name options all the same, and why.
NAMES_OPTIONS = {
    "placement/generate.py",  # a sentence of Kafka's own tool
    "reassign/words.py",  # sentences of Kafka's own tool
    "sandbox/cluster.py",  # says how to use and to stop a sandbox
    "spark/archive.py",  # runs kquota itself, as the rehearsal of a JVM
}


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def of_others(module: ast.Module) -> set[str]:
    """The third-party libraries that a module imports anywhere, including in functions and only for types."""
    nodes = list(ast.walk(module))
    modules = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    modules += [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level]
    return {module.partition(".")[0] for module in modules} - sys.stdlib_module_names - {"kquota"}


def test_the_import_contract_covers_every_third_party_library() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    [held] = [set(contract["forbidden_modules"]) for contract in contracts if contract["type"] == "forbidden"]
    imported = {name for path in HOUSE.rglob("*.py") for name in of_others(tree(path))}
    assert imported - held == set()


def the_map() -> dict[str, str]:
    """The modules of each room on the map. The empty name has the modules outside of rooms."""
    told: defaultdict[str, str] = defaultdict(str)
    room = ""
    for line in (ROOT / "docs" / "house.md").read_text().split("```")[1].splitlines():
        if begins := re.match(r" {0,2}(\w+)(/|\.py)", line):
            room = begins[1] if begins[2] == "/" else ""
        told[room] += f"{line}\n"
    return told


def test_the_map_names_every_module_in_its_room() -> None:
    """A command's folder has the name of the command, and the map describes such a folder."""
    named = {room: set(re.findall(r"\w+", said)) for room, said in the_map().items()}
    of_a_command = {path for path in COMMANDS.rglob("*.py") if path.parent != COMMANDS}
    modules = [path.relative_to(HOUSE) for path in {*HOUSE.rglob("*.py")} - of_a_command if path.stem[0] != "_"]
    rooms = {path: path.parts[0] if len(path.parts) > 1 else "" for path in modules}
    assert sorted(str(path) for path, room in rooms.items() if path.stem not in named.get(room, set())) == []


def test_a_class_name_has_one_meaning() -> None:
    """No two classes of the house share a name, so that a search for a name finds one definition."""
    trees = {path: tree(path) for path in HOUSE.rglob("*.py")}
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path, parsed in sorted(trees.items()):
        for node in ast.walk(parsed):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(path.relative_to(HOUSE)))
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def strings(tree: ast.Module) -> list[str]:
    """The strings of a module that a program can print: neither docstrings nor those that document a constant."""
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    constants = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in documentation]
    return [node.value for node in constants if isinstance(node.value, str)]


def test_only_cli_knows_options_and_commands() -> None:
    """Other rooms name parameters and next steps (decision 41): a program that calls them has no command line."""
    found = list(every(root()))
    spelled = [name for command in found for parameter in command.context.command.params for name in parameter.opts]
    options = {name for name in spelled if name.startswith("--")}
    commands = {command.context.command_path for command in found} - {"kquota"}
    named = re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, sorted(options | commands)))})(?![\w-])")
    names = {
        path.relative_to(HOUSE).as_posix()
        for path in HOUSE.rglob("*.py")
        if not path.is_relative_to(COMMANDS)
        for string in strings(tree(path))
        if named.search(string)
    }
    assert names == NAMES_OPTIONS


def test_a_folder_of_cli_is_a_command_or_is_on_the_map() -> None:
    typed = {command.context.command_path.replace("-", "_").split(" ", 1)[-1] for command in every(root())}
    folders = {path.parent.relative_to(COMMANDS).as_posix() for path in COMMANDS.rglob("*/__init__.py")} - {"."}
    strange = {folder for folder in folders if folder.replace("/", " ") not in typed}
    assert sorted(folder for folder in strange if f"{folder}/" not in the_map()["cli"]) == []


def test_contributing_has_a_line_for_every_room() -> None:
    rooms = {path.parent.name for path in HOUSE.glob("*/__init__.py")}
    shown = set(re.findall(r"^  (\w+)/ ", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE))
    assert rooms - shown == set()


def test_contributing_is_short_and_names_only_files_that_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    named = re.findall(r"`((?:kquota|tests|man|completions|docs|bench)/[\w./-]+)`", text)
    assert [path for path in named if not (ROOT / path).exists()] == []
    assert len(text.splitlines()) <= 80


def test_the_index_of_decisions_links_every_record() -> None:
    folder = ROOT / "docs" / "decisions"
    linked = re.findall(r"\]\((\d{4}-[\w-]+\.md)\)", (folder / "README.md").read_text())
    assert linked == sorted(path.name for path in folder.glob("[0-9]*.md"))
