"""`kquota quota probe`: a real client on a topic of its own, and whether it gets what `explain` says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kquota.cli import world
from kquota.cli.actions import given_options
from kquota.cli.connection import Connection, connected
from kquota.cli.contract import DONE, FAILED, NOT_YET, say
from kquota.cli.probe_options import Given, asked
from kquota.errors import Invalid

if TYPE_CHECKING:
    from kquota.cli.probe_stage import Logins, Stage
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
    from kquota.cli import probe_run, probed
    from kquota.cli.probe_stage import logins
    from kquota.probe.preparation import prepared

    who = logins(at, given.client_config)
    if given.clean_up:
        return probe_run.clean_up(who)
    user, client_id = _user(who, given.user), given.client_id or who.client_id
    with who.stage() as stage:
        explained = _explained(stage, user, client_id)
        if wanted.kind is None:
            from kquota.cli import probe_limit

            return probe_limit.find(who, stage, explained, client_id, given)
        load = prepared(
            wanted.kind,
            explained,
            stage.brokers,
            rate=wanted.rate,
            seconds=wanted.seconds,
            brokers=wanted.brokers,
            most_bytes=wanted.most_bytes,
        )
        if given.dry_run:
            print(probed.plan(load, explained, given.output))
            return DONE
        probe_run.remove_older(stage)
    made = probe_run.Made()
    readings = probe_run.readings(who, client_id, load, made)
    found = probed.Probed(load=load, explained=explained, readings=readings)
    print(probed.WRITE[given.output](found))
    return FAILED if made.left else DONE if found.good else NOT_YET


def _user(who: Logins, said: str | None) -> str:
    """Whom brokers take the client for. Raises Invalid for a user that its login is not."""
    if who.user is None:
        if said is None:
            raise Invalid(
                "--user is missing: with this login only the brokers know who the client is; name the principal that"
                " they make of its certificate, token or ticket"
            )
        return said
    if said not in (None, who.user):
        raise Invalid(
            f"--user {said}: no client can choose its user, and this login is {who.user}; give {said}'s own login with"
            " --client-config"
        )
    return who.user


def _explained(stage: Stage, user: str, client_id: str) -> Explanation:
    from kquota.library import cluster_of
    from kquota.quota.explain import explain
    from kquota.quota.precedence import Client

    quotas = stage.quotas.everything()
    cluster = cluster_of(stage.configs, stage.quotas.release())
    if cluster.callback is not None:
        say(f"warning: client.quota.callback.class={cluster.callback} decides on the brokers, and may decide otherwise")
    return explain(quotas, cluster, client=Client(user=user, client_id=client_id))
