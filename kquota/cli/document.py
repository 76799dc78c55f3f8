"""`kquota quota export`, `diff` and `apply`: the quotas of a whole cluster as one reviewed document."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from kquota.cli import world
from kquota.cli.connection import Connection, connected
from kquota.cli.contract import DONE, NOT_YET, say
from kquota.cli.options import Output, OutputFormat, TableFormat
from kquota.errors import Conflict, Incomplete, Invalid, Refused

if TYPE_CHECKING:
    from kquota.quota.apply import Outcome
    from kquota.quota.difference import Difference
    from kquota.quota.document import Document
    from kquota.quota.port import Principals

EXPORT_EPILOG: Final = """Examples:

kquota quota export --bootstrap-server localhost:9092 > quotas.yaml

kquota quota export --zookeeper localhost:2181 --output json"""

DIFF_EPILOG: Final = """Exit codes: 0 nothing would change, 8 something would.

Examples:

kquota quota diff --bootstrap-server localhost:9092 quotas.yaml

kquota quota diff --zookeeper localhost:2181 quotas.yaml --prune --output tsv"""

APPLY_EPILOG: Final = """Examples:

kquota quota apply --bootstrap-server localhost:9092 quotas.yaml

kquota quota apply --bootstrap-server localhost:9092 quotas.yaml --prune --change sha256:1f0e9c2b7a6d5e43"""

_HASH: Final = re.compile(r"sha256:[0-9a-f]{16}")
_SHOWN: Final = 5
_SECONDS_PER_ENTITY: Final = 0.001

File: TypeAlias = Annotated[Path, typer.Argument(metavar="FILE", help="The document; - is stdin.")]
Prune: TypeAlias = Annotated[
    bool, typer.Option("--prune", help="Also remove the limits of those in owns: that the document does not name.")
]


@connected()
def export(connection: Connection, output: OutputFormat = Output.text) -> int:
    """Print all client quotas of the cluster as one document: YAML, or the same as JSON."""
    from kquota.quota.document import Document, as_json, text, unfit

    with world.quotas(world.where(connection)) as quotas:
        document = Document(limits=quotas.everything())
    for entity, key in unfit(document.limits):
        say(
            f"warning: {entity}: {key} is {document.limits[entity][key]!r}, which no document may ask for; "
            "correct it in the document before you apply it"
        )
    print(as_json(document) if output is Output.json else text(document), end="\n" if output is Output.json else "")
    return DONE


@connected()
def diff(connection: Connection, file: File, prune: Prune = False, output: TableFormat = Output.text) -> int:
    """Show what `apply` would change, key by key, and a hash that names exactly this change."""
    document = _document(file, prune)
    with world.quotas(world.where(connection)) as quotas:
        found = _difference(quotas, document, prune)
    from kquota.cli import difference as written

    if output is Output.json:
        print(written.document(found))
    elif output is Output.tsv:
        print(written.rows(found), end="")
    elif found.replacements:
        print(f"{written.text(found.replacements)}\nchange: {found.hash}")
    say(_summary(found))
    return NOT_YET if found.replacements else DONE


@connected()
def apply(
    connection: Connection,
    file: File,
    prune: Prune = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    change: Annotated[
        str | None,
        typer.Option("--change", metavar="HASH", help="Do not ask, and change nothing but what `diff` gave this hash."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be sent, and send nothing.")] = False,
    output: OutputFormat = Output.text,
) -> int:
    """Make the cluster's quotas what the document says; done again it changes nothing."""
    if change is not None and not _HASH.fullmatch(change):
        raise Invalid(f"--change {change!r}: write it as `kquota quota diff` prints it, sha256: and 16 digits")
    asks = not (yes or dry_run or change is not None)
    if asks and not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Invalid("there is no terminal to ask on: give --yes, or --change with the hash of `kquota quota diff`")
    document = _document(file, prune)
    with world.quotas(world.where(connection)) as quotas:
        found = _difference(quotas, document, prune)
        if found.replacements and change not in (None, found.hash):
            raise Refused(
                f"this would now be the change {found.hash}, not {change}: the document or the quotas are not what was "
                "reviewed. Nothing was written; look with `kquota quota diff`"
            )
        if dry_run or not found.replacements:
            _print_sent(found, output)
            say(_summary(found))
            return DONE
        if asks:
            _ask(found, lambda: _difference(quotas, document, prune))
        became = _apply(quotas, found)
    return _end(found, became, output)


def _document(file: Path, prune: bool) -> Document:
    """The document in a file, looked at before anything is contacted."""
    from kquota.quota.difference import owned
    from kquota.quota.document import read

    name = "stdin" if str(file) == "-" else str(file)
    try:
        text = (sys.stdin.buffer.read() if name == "stdin" else file.read_bytes()).decode("utf-8-sig")
    except OSError as error:
        raise Invalid(f"{name}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise Invalid(f"{name}: not UTF-8 (byte {error.start})") from error
    document = read(text, name)
    if prune:
        owned(document)
    if any(of == "<default>" for entity in document.limits for _, of in entity.parts()):
        say("warning: <default> is a name like any other here; defaults are default-user, default-client, default-ip")
    return document


def _difference(quotas: Principals, document: Document, prune: bool) -> Difference:
    from kquota.quota.difference import difference

    quotas.must_carry(document.limits)
    found = difference(document, quotas.everything(), prune=prune)
    _must_take_effect(quotas, found)
    return found


def _must_take_effect(quotas: Principals, found: Difference) -> None:
    """Ask once for each key that is set whether these brokers know it."""
    from kquota.quota import actions
    from kquota.quota.change import Change

    asked: dict[str, Change] = {}
    for replacement in found.replacements:
        for key, _, new in replacement.differing():
            if new is not None and key not in asked:
                asked[key] = Change(entity=replacement.entity, add={key: new})
    for change in asked.values():
        for line in actions.must_take_effect(quotas, change):
            say(f"warning: {line}")


def _summary(found: Difference) -> str:
    """One line a person needs; what was left alone although pruning would have removed it comes first."""
    if found.kept:
        say(f"warning: protected, so not pruned: {_few([str(entity) for entity in found.kept])}")
    if not found.replacements:
        return "nothing to change"
    keys = sum(1 for replacement in found.replacements for _ in replacement.differing())
    return f"{_count(keys, 'limit')} of {_count(len(found.replacements), 'entity')} would change: {found.hash}"


def _print_sent(found: Difference, output: Output) -> None:
    from kquota.cli import difference as written

    if output is Output.json:
        print(written.document(found))
    elif found.replacements:
        print(written.sent(found.replacements))


def _ask(found: Difference, again: Callable[[], Difference]) -> None:
    """One confirmation. Raises Refused without it, Conflict when the quotas changed while the operator thought."""
    from kquota.cli import difference as written

    print(written.text(found.replacements), file=sys.stderr)
    say(_summary(found))
    # typer's own question leaves a blank on stdout.
    print("kquota: change them? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Refused("not confirmed; nothing was written")
    if again().hash != found.hash:
        raise Conflict(
            "the quotas changed while you were asked. Nothing was written; start again to see them as they are"
        )


def _apply(quotas: Principals, found: Difference) -> Outcome:
    from kquota.quota.apply import apply

    count = len(found.replacements)
    with _progress(count) as told:
        return apply(quotas, found, world.until_seen(world.SEEN_SECONDS + count * _SECONDS_PER_ENTITY), told)


@contextmanager
def _progress(count: int) -> Iterator[Callable[[int], None]]:
    """A bar on stderr where that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("entities", total=count)
        yield lambda more: progress.advance(task, more)


def _end(found: Difference, became: Outcome, output: Output) -> int:
    """Print what was changed. Raises Incomplete where that is not all of it."""
    from kquota.cli import difference as written

    if output is Output.json:
        print(written.outcome(found, became))
    elif became.done:
        done = set(became.done)
        print(written.text([replacement for replacement in found.replacements if replacement.entity in done]))
    if became.undone:
        undone = [f"{entity} ({why})" for entity, why in became.undone.items()]
        raise Incomplete(
            f"{len(undone)} of {_count(len(found.replacements), 'entity')} not changed, or not known to be: "
            f"{_few(undone)}; the others are. Apply again: it goes on from what stands",
            [str(entity) for entity in became.done],
            undone,
        )
    say(f"{_count(len(became.done), 'entity')} changed, and seen so: {found.hash}")
    return DONE


def _few(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _count(number: int, of: str) -> str:
    return f"{number} {of}" if number == 1 else f"{number} {of[:-1] + 'ies' if of.endswith('y') else of + 's'}"
