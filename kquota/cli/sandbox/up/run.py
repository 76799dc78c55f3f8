"""`kquota sandbox up`: start the servers; JSON on stdout has their addresses, and stderr has them as text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kquota.cli.progress import downloading
from kquota.cli.sandbox.status.run import Sandboxes, addresses, shown
from kquota.cli.sandbox.up.command import UpOptions
from kquota.errors import Invalid
from kquota.sandbox import cluster, jars


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedSandbox(Sandboxes):
    """The sandbox that was started."""

    def text(self) -> Iterator[str]:
        yield from ()


def run(options: UpOptions) -> StartedSandbox:
    """Raises Invalid for options of Kafka together with --zookeeper-only."""
    if options.zookeeper_only and (options.kafka is not None or options.brokers is not None or options.properties):
        raise Invalid("--zookeeper-only starts no Kafka. Leave out --kafka, --brokers and --property")
    with downloading() as tell:
        started = cluster.up(
            name=options.name,
            kafka=None if options.zookeeper_only else (options.kafka or jars.NEWEST),
            brokers=cluster.BROKERS if options.brokers is None else options.brokers,
            properties=dict(map(_property, options.properties or [])),
            tell=tell,
        )
    use = f'use it with: eval "$(kquota sandbox env {options.name})"'
    return StartedSandbox(
        sandboxes=(shown(started),), notes=(f"sandbox {options.name} is up: {addresses(started)}; {use}",)
    )


def _property(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key.strip() or not equals or "\n" in text:
        raise Invalid(f"--property {text!r}: write KEY=VALUE")
    return key.strip(), value
