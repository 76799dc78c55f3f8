"""Steps of `quota export`, `diff` and `apply`: read the document and the cluster, compare them, and write throttles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from kquota import text_file
from kquota.addresses import is_ip_or_host
from kquota.cli import clock, world
from kquota.cli.connection import Connection
from kquota.cli.contract import worded
from kquota.cli.quota import interchange
from kquota.cli.quota.command import QuotaFormat
from kquota.errors import Invalid, KquotaError, NotSent, Unreachable
from kquota.quota import actions as quota_actions
from kquota.quota.difference import Difference, Throttling, difference
from kquota.quota.document import Document, Throttles
from kquota.quota.limits import QuotaChange
from kquota.quota.port import Principals
from kquota.settings import actions, ignored
from kquota.settings.port import Configs
from kquota.settings.resource import THROTTLE_KEYS, TOPICS, Entry, Resource
from kquota.terms import WIRE_DEFAULT


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaCluster:
    """The quotas of one cluster and, if requested, the configs of its topics and brokers."""

    quotas: Principals
    configs: Configs | None
    """None if the configs were not requested."""


@contextmanager
def opened(
    connection: Connection, *, with_configs: bool, unreadable: Callable[[str], None] | None = None
) -> Iterator[QuotaCluster]:
    """Open a connection to the cluster. Raises the errors of `world.where`, `world.quotas` and `world.configs`.

    `unreadable` receives a message for each quota that cannot be read. By default, kquota prints the message on stderr.
    """
    at = world.where(connection)
    with world.quotas(at, unreadable) as quotas, world.configs(at) if with_configs else nullcontext() as configs:
        yield QuotaCluster(quotas=quotas, configs=configs)


def read(file: Path, *, prune: bool, form: QuotaFormat = QuotaFormat.kquota) -> Document:
    """Read the document in a file. Print a warning for each entry of another tool's format that kquota cannot use, and
    for a name that is easily confused with a default.

    Raises Invalid for a format that kquota does not read, and for a document that cannot be read or is not valid.
    Raises Invalid for an IP entity that has limits and is neither an address nor a resolvable host. Raises Invalid for
    `prune` with the format of another tool or without `owns:` in the document.
    """
    if prune and form is not QuotaFormat.kquota:
        raise Invalid(
            f"--prune works only with kquota's own documents, because --format {form} has no `owns:`. Leave out --prune"
        )
    parse = interchange.reader(form)
    text, name = text_file.read(file, "a document of quotas")
    found = parse(text, name)
    if form is not QuotaFormat.kquota:
        for line in found.unreadable:
            world.warn(f"{name}: kquota ignores {line}")
    if prune and found.owns is None:
        raise Invalid(
            "--prune needs `owns: [patterns]` in the document. The patterns name the entities that kquota may prune"
        )
    for entity, limits in found.limits.items():
        if isinstance(entity.ip, str) and limits and not is_ip_or_host(entity.ip):
            raise Invalid(
                f"{name}: {entity}: neither an IP address nor a resolvable host. Correct the name, because a broker "
                "that cannot resolve it can fail to start"
            )
    if any(of == WIRE_DEFAULT for entity in found.limits for _, of in entity.parts()):
        world.warn(
            f"{WIRE_DEFAULT} is an ordinary name in a document. For defaults, write default-user, default-client or "
            "default-ip"
        )
    return found


def compare(cluster: QuotaCluster, wanted: Document, *, prune: bool) -> Difference:
    """Return the changes that the document makes.

    Raises Invalid for a name that this connection cannot carry. Raises Refused for a change of a protected entity, and
    for the throttles of a missing topic or a dead broker. Raises Unreachable if the cluster does not answer.
    """
    cluster.quotas.must_carry(wanted.limits)
    configs = cluster.configs
    held = {} if configs is None else {r: _throttles_of(r, actions.entries(configs, r)) for r in wanted.throttles}
    return difference(wanted, cluster.quotas.everything(), prune=prune, throttles=held)


def warn_of(cluster: QuotaCluster, found: Difference) -> None:
    """Print warnings about changes that may be mistakes. Raises Refused for a change that these brokers would store and
    ignore.
    """
    warnings = [*_warnings_of_quotas(cluster.quotas, found)]
    if cluster.configs is not None:
        release = cluster.configs.release()
        of_throttles = [ignored.must_take_effect(throttling.change, release) for throttling in found.throttlings]
        warnings += dict.fromkeys(chain.from_iterable(of_throttles))
    for line in warnings:
        world.warn(line)


def _warnings_of_quotas(port: Principals, found: Difference) -> Iterator[str]:
    first: dict[str, QuotaChange] = {}
    for replacement in found.replacements:
        for key, _, new in replacement.differing():
            if new is not None and key not in first:
                first[key] = QuotaChange(entity=replacement.entity, add={key: new})
    for change in first.values():
        yield from quota_actions.must_take_effect(port, change)


def every_throttle(configs: Configs) -> Throttles:
    """Return all throttles that are set. Raises Unreachable if a live broker does not answer, and the errors of
    `actions.describe_all`.
    """
    found: dict[Resource, Mapping[str, str]] = {}
    for kind in THROTTLE_KEYS:
        described, lost = actions.describe_all(configs, kind)
        if lost:
            raise next(iter(lost.values()))
        for resource, entries in described.items():
            if held := _throttles_of(resource, entries):
                found[resource] = held
    return found


def write_throttles(configs: Configs, throttlings: Sequence[Throttling]) -> dict[Resource, str]:
    """Write each change independently, and read it back.

    Return the reason for each resource that was not changed or may not have been changed. After Unreachable, kquota
    does not send the remaining changes.
    """
    undone: dict[Resource, str] = {}
    for place, throttling in enumerate(throttlings):
        try:
            actions.alter(configs, throttling.change, clock.until_seen())
        except Unreachable as error:
            undone[throttling.entity] = f"{'' if isinstance(error, NotSent) else 'unknown: '}{worded(error)}"
            return undone | {left.entity: "not sent" for left in throttlings[place + 1 :]}
        except KquotaError as error:
            undone[throttling.entity] = worded(error)
    return undone


def _throttles_of(resource: Resource, entries: Iterable[Entry]) -> dict[str, str]:
    """Return the throttles that are set on this resource itself. A broker's rate without a synonym is left out, because
    Kafka 4.3.1 still reports deleted rates in this form.
    """
    return {
        entry.key: entry.value
        for entry in entries
        if entry.key in THROTTLE_KEYS[resource.kind]
        and entry.dynamic
        and entry.value
        and (entry.synonyms or resource.kind == TOPICS)
    }
