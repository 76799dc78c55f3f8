"""`--gone`: brokers that never come back. A run would wait for them for ever, to give back what it set on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kquota.cli import world
from kquota.cli.contract import say
from kquota.cli.listed import broker_ids
from kquota.errors import Invalid

if TYPE_CHECKING:
    from kquota.reassign.port import Cluster
    from kquota.reassign.run import Run
    from kquota.terms import BrokerId


def asked(texts: Sequence[str] | None, at: world.Where) -> tuple[BrokerId, ...]:
    """Which. Raises Invalid for what is no broker's id, and where none is needed to give back."""
    if texts and at.zookeeper is not None:
        raise Invalid("--gone: through ZooKeeper everything is given back without its broker; leave it out")
    return broker_ids(texts, "--gone")


def without(runs: Sequence[Run], brokers: Sequence[BrokerId], cluster: Cluster) -> list[Run]:
    """The runs without what they hold on these brokers, which is named. Raises Refused for one that is alive."""
    from kquota.reassign.guard import check_gone
    from kquota.reassign.run import held_on, less

    if brokers:
        check_gone(brokers, cluster.snapshot(()))
    found = []
    for run in runs:
        left = held_on(run, brokers)
        for setting, taken in sorted(left.items()):
            value = ", ".join(taken.ours)
            say(f"warning: run {run.id} lets go of {setting}: should that broker ever come back, it has {value}")
        found.append(less(run, left))
    return found
