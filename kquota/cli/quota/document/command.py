"""`kquota quota export`, `diff` and `apply`: the quotas of a whole cluster as one reviewed document."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from kquota import text_file
from kquota.cli import confirmation, world
from kquota.cli.connection import Connection, connected
from kquota.cli.contract import DONE, NOT_YET, say
from kquota.cli.hosts import is_ip_or_host
from kquota.cli.options import Output, OutputFormat, TableFormat, Yes
from kquota.errors import Incomplete, Invalid, Refused
from kquota.measure import counted
from kquota.several import few
from kquota.terms import SEEN_SECONDS, WIRE_DEFAULT

if TYPE_CHECKING:
    from kquota.config.port import Configs
    from kquota.quota.difference import Difference
    from kquota.quota.document import Document
    from kquota.quota.entity import Entity
    from kquota.quota.port import Principals
    from kquota.quota.throttled import Throttled

EXPORT_EPILOG: Final = """YAML unless --output says json; export, apply and export again give the same bytes.

Examples:
  kquota quota export --bootstrap-server localhost:9092 > quotas.yaml
  kquota quota export --zookeeper localhost:2181 --output json"""

DIFF_EPILOG: Final = """Exit codes: 0 nothing would change, 8 something would.

Examples:
  kquota quota diff --bootstrap-server localhost:9092 quotas.yaml
  kquota quota diff --zookeeper localhost:2181 quotas.yaml --prune --output tsv"""

APPLY_EPILOG: Final = """On a terminal it shows the change and asks; elsewhere give --yes, or --change with the hash
that was reviewed. Exit codes: 0 done, or nothing to change; 1 refused, or some entities are undone, which are named.

Examples:
  kquota quota apply --bootstrap-server localhost:9092 quotas.yaml --yes
  kquota quota apply --bootstrap-server localhost:9092 quotas.yaml --prune --change sha256:1f0e9c2b7a6d5e43"""

_HASH: Final = re.compile(r"sha256:[0-9a-f]{16}")
_SHOWN: Final = 5
_SECONDS_PER_ENTITY: Final = 0.001

File: TypeAlias = Annotated[Path, typer.Argument(metavar="FILE", help="The document; - is stdin.")]
Prune: TypeAlias = Annotated[
    bool,
    typer.Option("--prune", help="Also remove the limits of all that `owns:` covers and the document does not name."),
]


@connected()
def export(
    connection: Connection,
    replication_throttles: Annotated[
        bool, typer.Option("--replication-throttles", help="Also the replication throttles of brokers and topics.")
    ] = False,
    output: OutputFormat = Output.text,
) -> int:
    """Print all client quotas of the cluster as one document: YAML, or the same as JSON."""
    from kquota.cli.quota.document import throttles
    from kquota.quota.document import Document, as_json, text, unfit

    with _opened(connection, replication_throttles) as cluster:
        standing = {} if cluster.configs is None else throttles.every(cluster.configs)
        document = Document(limits=cluster.quotas.everything(), throttles=standing)
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
    with _opened(connection, bool(document.throttles)) as cluster:
        found = _difference(cluster, document, prune)
    from kquota.cli.quota.document import printed

    if output is Output.json:
        print(printed.document(found))
    elif output is Output.tsv:
        print(printed.rows(found), end="")
    elif found.changes:
        print(f"{printed.text(found.changes)}\nchange: {found.hash}")
    say(_summary(found))
    return NOT_YET if found.changes else DONE


@connected()
def apply(
    connection: Connection,
    file: File,
    prune: Prune = False,
    yes: Yes = False,
    change: Annotated[
        str | None,
        typer.Option(
            "--change",
            metavar="HASH",
            help="Do not ask, and make no other change than the one that `quota diff` gave this hash.",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be sent, and send nothing.")] = False,
    output: OutputFormat = Output.text,
) -> int:
    """Make the cluster's quotas what the document says; done again it changes nothing."""
    if change is not None and not _HASH.fullmatch(change):
        raise Invalid(f"--change {change!r}: write it as `kquota quota diff` prints it, sha256: and 16 digits")
    asks = not (yes or dry_run or change is not None)
    if asks:
        confirmation.must_have_terminal("give --yes, or --change with the hash of `kquota quota diff`")
    document = _document(file, prune)
    with _opened(connection, bool(document.throttles)) as cluster:
        found = _difference(cluster, document, prune)
        if found.changes and change not in (None, found.hash):
            raise Refused(
                f"this would now be the change {found.hash}, not {change}: the document or the quotas are not what was "
                "reviewed. Nothing was written; look with `kquota quota diff`"
            )
        if dry_run or not found.changes:
            _print_sent(found, output)
            say(_summary(found))
            return DONE
        if asks:
            _ask(found, lambda: _difference(cluster, document, prune))
        undone = _apply(cluster, found)
    return _end(found, undone, output)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cluster:
    """The quotas of one cluster and, where they are asked for, the configs of its topics and brokers."""

    quotas: Principals
    configs: Configs | None


@contextmanager
def _opened(connection: Connection, with_configs: bool) -> Iterator[_Cluster]:
    at = world.where(connection)
    with world.quotas(at) as quotas, world.configs(at) if with_configs else nullcontext() as configs:
        yield _Cluster(quotas=quotas, configs=configs)


def _document(file: Path, prune: bool) -> Document:
    """The document in a file, looked at before anything is contacted."""
    from kquota.cli.quota.document import throttles
    from kquota.quota.difference import owned
    from kquota.quota.document import read

    text, name = text_file.read(file, "a document of quotas")
    document = read(text, name, throttles.check)
    if prune:
        owned(document)
    for entity, limits in document.limits.items():
        if isinstance(entity.ip, str) and limits and not is_ip_or_host(entity.ip):
            raise Invalid(
                f"{name}: {entity}: neither an IP nor a host that resolves; brokers that cannot may not start"
            )
    if any(of == WIRE_DEFAULT for entity in document.limits for _, of in entity.parts()):
        named = "default-user, default-client, default-ip"
        say(f"warning: {WIRE_DEFAULT} is a name like any other here; defaults are {named}")
    return document


def _difference(cluster: _Cluster, document: Document, prune: bool) -> Difference:
    """What would change, and warnings about what of it may not be meant."""
    from kquota.cli.quota.document import throttles
    from kquota.quota.difference import difference

    cluster.quotas.must_carry(document.limits)
    standing = {} if cluster.configs is None else throttles.of(cluster.configs, document.throttles)
    found = difference(document, cluster.quotas.everything(), prune=prune, throttles=standing)
    told = [] if cluster.configs is None else throttles.warnings(cluster.configs, found.throttlings)
    for line in (*_warnings(cluster.quotas, found), *told):
        say(f"warning: {line}")
    return found


def _warnings(quotas: Principals, found: Difference) -> Iterator[str]:
    """Asks once for each key that is set whether these brokers know it."""
    from kquota.quota import actions
    from kquota.quota.change import Change

    asked: dict[str, Change] = {}
    for replacement in found.replacements:
        for key, _, new in replacement.differing():
            if new is not None and key not in asked:
                asked[key] = Change(entity=replacement.entity, add={key: new})
    for change in asked.values():
        yield from actions.must_take_effect(quotas, change)


def _summary(found: Difference) -> str:
    """One line a person needs; what was left alone although pruning would have removed it comes first."""
    if found.kept:
        say(f"warning: protected, so not pruned: {few(found.kept, _SHOWN)}")
    if not found.changes:
        return "nothing to change"
    keys = sum(1 for change in found.changes for _ in change.differing())
    return f"{counted(keys, 'limit')} of {counted(len(found.changes), 'entity')} would change: {found.hash}"


def _print_sent(found: Difference, output: Output) -> None:
    from kquota.cli.quota.document import printed

    if output is Output.json:
        print(printed.document(found))
    elif found.changes:
        print(printed.sent(found.changes))


def _ask(found: Difference, again: Callable[[], Difference]) -> None:
    """One confirmation. Raises Refused without it, Conflict when the quotas changed while the operator thought."""
    from kquota.cli.quota.document import printed

    print(printed.text(found.changes[: confirmation.MOST_SHOWN]), file=sys.stderr)
    if (more := len(found.changes) - confirmation.MOST_SHOWN) > 0:
        say(f"... and {counted(more, 'entity')} more: `kquota quota diff` shows them all")
    say(_summary(found))
    confirmation.must_agree("change them?")
    confirmation.must_still_be(found.hash, again().hash, "the quotas")


def _apply(cluster: _Cluster, found: Difference) -> dict[Entity | Throttled, str]:
    """Make the change, quotas first; why each was not made, or is not known to be, of those that were not."""
    from kquota.cli.progress import sending
    from kquota.cli.quota.document import throttles
    from kquota.quota.apply import apply

    count = len(found.replacements)
    with sending(count) as told:
        seconds = SEEN_SECONDS + count * _SECONDS_PER_ENTITY
        outcome = apply(cluster.quotas, found, world.until_seen(seconds), told)
    undone: dict[Entity | Throttled, str] = dict(outcome.undone.items())
    if cluster.configs is not None:
        undone.update(throttles.write(cluster.configs, found.throttlings).items())
    return undone


def _end(found: Difference, undone: Mapping[Entity | Throttled, str], output: Output) -> int:
    """Print what was changed. Raises Incomplete where that is not all of it."""
    from kquota.cli.quota.document import printed

    done = [change for change in found.changes if change.entity not in undone]
    if output is Output.json:
        print(printed.outcome(found, undone))
    elif done:
        print(printed.text(done))
    if undone:
        told = [f"{entity} ({why})" for entity, why in undone.items()]
        raise Incomplete(
            f"{len(undone)} of {counted(len(found.changes), 'entity')} not changed, or not known to be: "
            f"{few(told, _SHOWN)}; the others are. Apply again: it goes on from what stands",
            [str(change.entity) for change in done],
            told,
        )
    say(f"{counted(len(done), 'entity')} changed, and seen so: {found.hash}")
    return DONE
