"""`kquota topics`: check the options, then list, describe or change topics."""

from __future__ import annotations

from collections.abc import Generator

from kquota.cli import actions, world
from kquota.cli.output import Answer
from kquota.cli.topics import listing, mutations
from kquota.cli.topics.command import ACTIONS, CREATE, DESCRIBE, READS, REPORTS, WRITES, TopicsOptions
from kquota.errors import Invalid


def run(options: TopicsOptions) -> Answer | Generator[Answer]:
    """Raises Invalid, in Kafka's words where Kafka has them, for options that cannot be combined."""
    asked = _action(options)
    at = world.where(options.connection)
    if asked in READS:
        return listing.listed(at, options, describe=asked == DESCRIBE)
    return mutations.mutate(at, options, asked)


def _action(options: TopicsOptions) -> str:
    if options.zookeeper is not None:
        raise Invalid(
            "--zookeeper: not supported, because topics in ZooKeeper bypass the controller mutation quota (KIP-599)."
            " Use --bootstrap-server"
        )
    asked = actions.action(options, ACTIONS, tables=READS)
    if asked in WRITES and not options.topic and options.from_file is None:
        raise Invalid('Missing required argument "[topic]"')
    if options.replica_assignment is not None and (
        options.replication_factor is not None or options.from_file is not None
    ):
        raise Invalid(
            "--replica-assignment describes one topic completely. Leave out --replication-factor and --from-file"
        )
    for option in REPORTS if options.topics_with_overrides else ():
        if actions.is_given(options, option):
            raise Invalid(f'Option "[{option.replace("_", "-")}]" can\'t be used with option "[topics-with-overrides]"')
    if options.topic_id is not None and options.topic:
        raise Invalid('Option "[topic-id]" can\'t be used with option "[topic]"')
    if options.dry_run and options.validate_only:
        raise Invalid("--dry-run sends nothing, and --validate-only asks the controller. Give only one of them")
    if asked == CREATE and options.replica_assignment is not None and options.partitions is not None:
        raise Invalid('Option "[replica-assignment]" can\'t be used with option "[partitions]"')
    return asked
