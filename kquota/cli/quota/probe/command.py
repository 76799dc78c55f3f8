"""`kquota quota probe`: a real client on a topic of its own, and whether it gets what `explain` says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kquota.cli import world
from kquota.cli.actions import given_options
from kquota.cli.connection import Connection, connected
from kquota.cli.contract import DONE, FAILED, NOT_YET, say
from kquota.cli.quota.probe.options import Given, asked

if TYPE_CHECKING:
    from kquota.library import Cluster
    from kquota.quota.explain import Explanation

EPILOG: Final = """The client loads a topic of its own, kquota-probe-..., one partition on each broker, and removes
it, also when it is interrupted. What a killed one leaves is removed by the next, or by --clean-up, once its time is
over.

Exit codes: 0 the client got what `kquota quota explain` says, within 10 %; 8 it got something else, or --clean-up
left a topic that may be in use.

Examples:
  kquota quota probe --bootstrap-server localhost:9092 --client-id billing --produce 20MB/s --dry-run
  kquota quota probe --bootstrap-server localhost:9092 --clean-up"""


@connected(zookeeper=False)
@given_options(Given)
def probe(connection: Connection, given: Given) -> int:
    """Load a topic of its own for some seconds as a real client, and compare what it gets with its quota."""
    wanted = asked(given)
    at = world.where(connection)
    from kquota.cli.quota.probe import printed, run
    from kquota.probe import preparation

    who = world.logins(at, given.client_config)
    if given.clean_up:
        return run.clean_up(who, given.output, dry_run=given.dry_run)
    user, client_id = preparation.user(who.user, given.user), given.client_id or who.client_id
    with who.stage() as stage:
        explained = _explained(stage, user, client_id)
        if wanted.kind is None:
            from kquota.cli.quota.probe import limit

            return limit.find(who, stage, explained, client_id, given)
        load = preparation.prepared(
            wanted.kind,
            explained,
            stage.brokers,
            rate=wanted.rate,
            seconds=wanted.seconds,
            brokers=wanted.brokers,
            most_bytes=wanted.most_bytes,
        )
        if given.dry_run:
            print(printed.plan(load, explained, given.output))
            return DONE
        run.remove_older(stage)
    made = run.Made()
    readings = run.readings(who, client_id, load, made)
    found = printed.Probed(load=load, explained=explained, readings=readings)
    print(printed.WRITE[given.output](found))
    return FAILED if made.left else DONE if found.good else NOT_YET


def _explained(stage: Cluster, user: str, client_id: str) -> Explanation:
    found = stage.explained(user, client_id)
    if found.cluster.callback is not None:
        decides = f"client.quota.callback.class={found.cluster.callback} decides on the brokers"
        say(f"warning: {decides}, and may decide otherwise")
    return found
