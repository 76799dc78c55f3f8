"""`kquota record share`: create the topic, and on a cluster with ZooKeeper the znode that names it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kquota.cli import world
from kquota.cli.output import Answer, Part
from kquota.cli.record.share.command import ShareOptions

if TYPE_CHECKING:
    from kquota.cli.world import SharingPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedTopic(Part):
    """The setup of the topic."""

    partitions: int
    replicas: int
    configs: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordShared(Answer):
    """The topic. `create` is its setup, or None if it exists already. `marker`: the znode is written as well."""

    ASCII = True

    dry_run: bool
    topic: str
    create: CreatedTopic | None
    marker: bool

    def text(self) -> Iterator[str]:
        if self.create is None:
            yield f"topic {self.topic} exists and can hold the record"
        else:
            yield f"{'would create' if self.dry_run else 'created'} topic {self.topic}"
            yield f"  partitions {self.create.partitions}, replicas {self.create.replicas}"
            for key, value in self.create.configs.items():
                yield f"  {key}={value}"
        if self.marker:
            yield f"{'would write' if self.dry_run else 'wrote'} znode /kquota/record, which names the topic"


def run(options: ShareOptions) -> RecordShared:
    """Create the record. Raises Refused if the cluster cannot have one."""
    with world.record(options.connection, options.state_dir) as at:
        wanted = at.plan()
        if not options.dry_run:
            at.share(wanted)
    used = f"from now on, every kquota that may read topic {at.topic} uses it"
    return RecordShared(
        dry_run=options.dry_run,
        topic=at.topic,
        create=_created(wanted),
        marker=wanted.marker,
        closing_notes=() if options.dry_run else (used,),
    )


def _created(wanted: SharingPlan) -> CreatedTopic | None:
    if (setup := wanted.setup) is None:
        return None
    return CreatedTopic(partitions=setup.partitions, replicas=setup.replicas, configs=setup.configs)
