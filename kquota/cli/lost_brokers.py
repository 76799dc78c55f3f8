"""`--gone`: brokers that will never come back. Without this option, a run stays open until kquota can restore the
settings of these brokers: through the controllers, or after the brokers return.
"""

from __future__ import annotations

from collections.abc import Sequence

from kquota.cli import world
from kquota.cli.contract import say
from kquota.cli.list_options import broker_ids
from kquota.errors import Invalid, Refused
from kquota.reassign.port import MoveCluster
from kquota.reassign.restoring import held_on, without_values
from kquota.reassign.run import Run
from kquota.terms import BrokerId


def asked(texts: Sequence[str] | None, at: world.Where) -> tuple[BrokerId, ...]:
    """Return the brokers of `--gone`. Raises Invalid for an invalid id, and for `--gone` over ZooKeeper, because
    restoring a throttle needs no broker there.
    """
    if texts and at.zookeeper is not None:
        raise Invalid(
            "--gone: not needed with --zookeeper, because kquota restores throttles in ZooKeeper without the broker. "
            "Leave out --gone"
        )
    return broker_ids(texts, "--gone")


def without(runs: Sequence[Run], brokers: Sequence[BrokerId], cluster: MoveCluster) -> list[Run]:
    """Return the runs, in the given order, without their settings on these brokers.

    Raises Refused for a broker that is alive, and Unreachable if the cluster does not answer.
    """
    if brokers and (alive := sorted(cluster.snapshot(()).alive.intersection(brokers))):
        raise Refused(
            f"--gone: broker {alive[0]} is alive, so its throttle can be restored. Nothing was written. "
            "Leave this broker out of --gone"
        )
    return [without_values(run, held_on(run, brokers)) for run in runs]


def warn(runs: Sequence[Run], brokers: Sequence[BrokerId]) -> None:
    """Print a warning for each setting that `without` leaves out of these runs. Call this after all checks."""
    for run in runs:
        for setting, taken in sorted(held_on(run, brokers).items()):
            value = " or ".join(taken.ours)
            say(
                f"warning: kquota does not restore {setting} of run {run.id}. If that broker comes back, it may still "
                f"have {value}"
            )
