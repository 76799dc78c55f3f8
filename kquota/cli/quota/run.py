"""The work of `quota export`, `diff` and `apply`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from typing import Final

from kquota.cli import clock, confirmation
from kquota.cli.contract import say, to_stderr, worded
from kquota.cli.formats import printable
from kquota.cli.output import Answer
from kquota.cli.progress import sending
from kquota.cli.quota import interchange
from kquota.cli.quota.answer import (
    Exported,
    Reviewed,
    applied,
    change_lines,
    hash_line,
    reviewed,
    summary,
    unfit_notes,
    unsent,
)
from kquota.cli.quota.command import ApplyOptions, DiffOptions, ExportOptions, QuotaFormat
from kquota.cli.quota.comparison import QuotaCluster, compare, every_throttle, opened, read, warn_of, write_throttles
from kquota.cli.suggestion import suggested
from kquota.errors import Invalid, Refused
from kquota.measure import counted
from kquota.quota.actions import apply as apply_quotas
from kquota.quota.difference import Difference
from kquota.quota.document import Document
from kquota.quota.entity import Entity
from kquota.settings.resource import Resource
from kquota.terms import SEEN_SECONDS
from kquota.text_file import looking_at

_HASH: Final = re.compile(r"sha256:[0-9a-f]{16}")
_SECONDS_PER_ENTITY: Final = 0.001
_DOCUMENT_PLACEHOLDER: Final = "DOCUMENT"
"""The placeholder for a document from stdin or a pipe."""


def export(options: ExportOptions) -> Answer:
    """Export all quotas, with warnings about unreadable quotas and about quotas that the format cannot hold.

    The exit code is 8 if a document for another tool does not contain every quota, otherwise 0. Raises Invalid for
    options that do not apply to the format of another tool. Raises Unreachable if the cluster does not answer, and
    Refused if it refuses the login or the request.
    """
    foreign = options.form is not QuotaFormat.kquota
    if foreign and options.replication_throttles:
        raise Invalid(f"--format {options.form} cannot hold replication throttles. Leave out --replication-throttles")
    if foreign and not options.output.for_people:
        raise Invalid(f"--format {options.form} already sets the output format. Leave out --output {options.output}")
    unreadable: list[str] = []
    with opened(
        options.connection, with_configs=options.replication_throttles, unreadable=unreadable.append
    ) as cluster:
        throttles = {} if cluster.configs is None else every_throttle(cluster.configs)
        document = Document(
            limits=cluster.quotas.everything(), throttles=throttles, unreadable=tuple(sorted(set(unreadable)))
        )
    if foreign:
        return interchange.exported(document, options.form)
    unreadable = [f"warning: {line}" for line in document.unreadable]
    return Exported(quotas=document, notes=(*unreadable, *unfit_notes(document)))


def diff(options: DiffOptions) -> Reviewed:
    """Return the changes that the document makes. The exit code is 8 if something would change, otherwise 0.

    Raises the errors of `read`, `opened`, `compare` and `warn_of`.
    """
    document = read(options.file, prune=options.prune, form=options.form)
    with opened(options.connection, with_configs=bool(document.throttles)) as cluster:
        found = compare(cluster, document, prune=options.prune)
        warn_of(cluster, found)
        return reviewed(found)


def apply(options: ApplyOptions) -> Answer:
    """Apply the document, or only return the changes with `--dry-run`. The exit code is 1 if an entity was not changed
    or may not have been changed.

    Raises Refused if the change does not have the hash of `--change` or is not confirmed, and if the cluster refuses
    the first request to change quotas. Raises Invalid for an invalid hash, and if there is no terminal for the
    confirmation. Raises Conflict if the quotas changed before the confirmation. Also raises the errors of `read`,
    `opened`, `compare` and `warn_of`.
    """
    if options.change is not None and not _HASH.fullmatch(options.change):
        raise Invalid(
            f"--change {options.change!r}: not a change hash (sha256: and 16 hexadecimal digits). Copy the hash that "
            f"{_diff_command(options)} prints"
        )
    asks = not (options.yes or options.dry_run or options.change is not None)
    if asks:
        confirmation.must_have_terminal(f"Give --yes, or --change with the hash that {_diff_command(options)} prints")
    document = read(options.file, prune=options.prune, form=options.form)
    with opened(options.connection, with_configs=bool(document.throttles)) as cluster:
        found = compare(cluster, document, prune=options.prune)
        warn_of(cluster, found)
        if found.changes and options.change not in (None, found.hash):
            raise Refused(
                f"the change is now {found.hash}, not {options.change}: the document, the options or the quotas have "
                f"changed since the review. Nothing was written. Review the change again with {_diff_command(options)}"
            )
        if options.dry_run or not found.changes:
            return unsent(found)
        if asks:
            _ask(found, _diff_command(options), lambda: compare(cluster, document, prune=options.prune))
        # The hash of --change covers the whole change, so the same command would be refused.
        again = "Run the same command again to apply the rest"
        next_step = again if options.change is None else f"Review the rest with {_diff_command(options)}"
        return applied(found, _write(cluster, found, next_step), next_step, confirmed=asks)


def _diff_command(options: ApplyOptions) -> str:
    """Return the command that shows the same change. A document from a pipe gets a placeholder, because it can be read
    only once.
    """
    with looking_at(options.file):
        is_piped = str(options.file) == "-" or options.file.is_fifo()
    file = _DOCUMENT_PLACEHOLDER if is_piped else shlex.quote(str(options.file))
    more = (
        f" --format {options.form}" if options.form is not QuotaFormat.kquota else " --prune" if options.prune else ""
    )
    return suggested(f"quota diff {file}{more}")


def _ask(found: Difference, diff: str, again: Callable[[], Difference]) -> None:
    for one in found.changes[: confirmation.MOST_SHOWN]:
        for line in change_lines(one):
            to_stderr(printable(line))
    if (more := len(found.changes) - confirmation.MOST_SHOWN) > 0:
        say(f"... and {counted(more, 'more entity')}. {diff} shows all changes")
    for line in (*summary(found), hash_line(found.hash)):
        say(line)
    confirmation.must_agree("apply this change?")
    confirmation.must_still_be(found.hash, again().hash, "the quotas")


def _write(cluster: QuotaCluster, found: Difference, next_step: str) -> Mapping[Entity | Resource, str]:
    """Write the changes. Return the reason for each entity that was not changed or may not have been changed."""
    count = len(found.replacements)
    with sending(count, next_step) as sent:
        seconds = SEEN_SECONDS + count * _SECONDS_PER_ENTITY
        outcome = apply_quotas(cluster.quotas, found.replacements, clock.until_seen(seconds), sent)
    undone: dict[Entity | Resource, str] = {
        entity: why if isinstance(why, str) else worded(why) for entity, why in outcome.undone.items()
    }
    if cluster.configs is not None:
        undone.update(write_throttles(cluster.configs, found.throttlings).items())
    return undone
