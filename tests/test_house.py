"""The modules match the map in docs/house.md, and the import contract covers every third-party library."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import Any

from man.command import every, root
from tests.source import nodes, strings

ROOT = Path(__file__).parents[1]
HOUSE = ROOT / "kquota"
COMMANDS = HOUSE / "cli"
# Rooms below `cli` whose strings name options all the same, and why.
NAMES_OPTIONS = {
    "placement/generate.py",  # a sentence of Kafka's own tool
    "reassign/words.py",  # sentences of Kafka's own tool
}


def of_others(path: Path) -> set[str]:
    """The third-party libraries that a module imports anywhere, including in functions and only for types."""
    found = nodes(path)
    modules = [alias.name for node in found if isinstance(node, ast.Import) for alias in node.names]
    modules += [node.module for node in found if isinstance(node, ast.ImportFrom) and node.module and not node.level]
    return {module.partition(".")[0] for module in modules} - sys.stdlib_module_names - {"kquota"}


def contracts() -> list[dict[str, Any]]:
    """The import contracts of pyproject.toml."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    found: list[dict[str, Any]] = tools["importlinter"]["contracts"]
    return found


def test_the_import_contract_covers_every_third_party_library() -> None:
    [held] = [set(contract["forbidden_modules"]) for contract in contracts() if contract["type"] == "forbidden"]
    imported = {name for path in HOUSE.rglob("*.py") for name in of_others(path)}
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


def test_the_map_shows_the_layers_of_the_import_contract() -> None:
    [layers] = [contract["layers"] for contract in contracts() if contract.get("containers") == ["kquota"]]
    shown = (ROOT / "docs" / "house.md").read_text().split("```text\n")[1].split("```")[0]
    assert shown.splitlines() == layers


def test_the_name_of_a_class_or_a_type_alias_has_one_meaning() -> None:
    """No two of them share a name, so that a search for a name finds one definition."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(HOUSE.rglob("*.py")):
        for node in nodes(path):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(path.relative_to(HOUSE)))
            if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias":
                places[ast.unparse(node.target)].append(str(path.relative_to(HOUSE)))
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


# Words that have named several things each, so that no reader could guess which.
RIDDLES = {"mute", "reach", "robbed", "said", "several", "standing", "stands", "told", "wish", "wishes"}


def test_no_name_is_a_riddle() -> None:
    """A function, class, parameter or variable says what it is: `repeated` commits, not `several`."""
    named: defaultdict[str, set[str]] = defaultdict(set)
    for path in sorted(HOUSE.rglob("*.py")):
        for node in nodes(path):
            match node:
                case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                    named[name.strip("_").lower()].add(str(path.relative_to(HOUSE)))
                case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                    named[name.strip("_").lower()].add(str(path.relative_to(HOUSE)))
    assert {name: paths for name, paths in named.items() if name in RIDDLES} == {}


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
        for string in strings(path)
        if named.search(string)
    }
    assert names == NAMES_OPTIONS


def test_a_format_of_output_is_compared_only_where_it_is_defined() -> None:
    """A command asks `Output.for_people`, or gives its answer notes, so that a new format needs no change in it."""
    compared = {
        path.relative_to(COMMANDS).as_posix()
        for path in COMMANDS.rglob("*.py")
        for node in nodes(path)
        if isinstance(node, ast.Compare) and re.search(r"\bOutput\.", ast.unparse(node))
    }
    assert compared == {"formats.py"}


LONGEST = 45


def test_a_function_does_one_thing() -> None:
    """No function has more lines than this, without its docstring."""
    lengths = {
        f"{path.relative_to(HOUSE)}: {node.name}": (node.end_lineno or 0) - node.body[_described(node)].lineno + 1
        for path in HOUSE.rglob("*.py")
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef) and len(node.body) > _described(node)
    }
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST} == {}


def _described(node: ast.FunctionDef) -> int:
    return int(ast.get_docstring(node) is not None)


# Libraries that take longer to import than a short command takes, or that only an extra installs.
LATE = {
    *("confluent_kafka", "cryptography", "grpc", "jinja2", "matplotlib", "py4j", "pyarrow", "pyspark", "rich"),
    "tabulate",
}
# These modules connect the ports of a command to stores, and a command needs only some stores.
CONNECTING = {"cli/move_stores.py", "cli/world.py", "library.py", "stores/record/choose.py"}


def test_an_import_in_a_function_has_its_reason() -> None:
    """It is a library of `LATE`, Spark, or a store of a connecting module; otherwise its line gives the reason."""
    without = []
    for path in sorted(HOUSE.rglob("*.py")):
        lines, module = path.read_text().splitlines(), path.relative_to(HOUSE).as_posix()
        for function in nodes(path):
            for node in ast.walk(function) if isinstance(function, ast.FunctionDef) else ():
                if not isinstance(node, ast.Import | ast.ImportFrom) or module in CONNECTING:
                    continue
                name = node.names[0].name if isinstance(node, ast.Import) else f"{node.module}."
                if name.partition(".")[0] in LATE or name.startswith("kquota.spark."):
                    continue
                if "  # " not in lines[node.lineno - 1]:
                    without.append(f"{module}:{node.lineno} {lines[node.lineno - 1].strip()}")
    assert without == []


def test_an_ignored_type_has_its_reason() -> None:
    """It is a class of a library without types; otherwise its line gives the reason."""
    without = [
        f"{path.relative_to(HOUSE)}: {line.strip()}"
        for path in sorted(HOUSE.rglob("*.py"))
        for line in path.read_text().splitlines()
        if re.search(r"# type: ignore\[[\w-]+\](?!  # )", line) and not re.search(r"^class .*ignore\[misc\]$", line)
    ]
    assert without == []


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
