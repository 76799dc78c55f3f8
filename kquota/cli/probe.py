"""`kquota quota probe`: a real client on a topic of its own, and whether it gets what `explain` says."""

from __future__ import annotations

import math
import secrets
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from kquota.cli import world
from kquota.cli.actions import given_options
from kquota.cli.connection import Connection, connected
from kquota.cli.contract import DONE, FAILED, NOT_YET, say
from kquota.cli.probe_options import Asked, Given, asked
from kquota.errors import Invalid, Refused

if TYPE_CHECKING:
    from kquota.cli.probe_stage import Logins, Stage
    from kquota.probe.load import Kind, Load
    from kquota.quota.explain import Answer, Explanation
    from kquota.terms import BrokerId

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

    who = logins(at, given.client_config)
    if given.clean_up:
        return probe_run.clean_up(who)
    user, client_id = _user(who, given.user), given.client_id or who.client_id
    with who.stage() as stage:
        explained = _explained(stage, user, client_id)
        if wanted.kind is None:
            from kquota.cli import probe_limit

            return probe_limit.find(who, stage, explained, client_id, given)
        load = _load(wanted.kind, wanted, stage, explained)
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
    from kquota.cli.explain import cluster_of
    from kquota.quota.explain import explain
    from kquota.quota.precedence import Client

    quotas = stage.quotas.everything()
    cluster = cluster_of(stage.configs, stage.quotas.release())
    if cluster.callback is not None:
        say(f"warning: client.quota.callback.class={cluster.callback} decides on the brokers, and may decide otherwise")
    return explain(quotas, cluster, client=Client(user=user, client_id=client_id))


def _load(kind: Kind, wanted: Asked, stage: Stage, explained: Explanation) -> Load:
    """The load, bounded. Raises Refused for what a probe does not do."""
    from kquota.probe import load, scratch
    from kquota.probe.load import KEYS, Kind, Load

    limit = _limit(next(one for one in explained.answers if one.key == KEYS[kind]), explained)
    brokers = _brokers(stage, wanted.brokers)
    warm = load.warm(_window(kind, explained))
    seconds = warm if wanted.seconds is None else wanted.seconds
    rate = {
        Kind.PRODUCE: (wanted.rate or 0.0) / len(brokers),
        Kind.CONSUME: load.pushing(limit, len(brokers)),
        Kind.REQUESTS: load.connections(limit),
        Kind.CREATE_TOPICS: load.mutating(limit),
    }[kind]
    topic = scratch.name(datetime.now(UTC), warm + seconds, secrets.token_hex(4))
    leaders = dict(enumerate(brokers))
    return load.bounded(
        Load(
            kind=kind,
            topic=topic,
            leaders=leaders,
            rate=rate,
            limit=limit,
            warm=warm,
            seconds=seconds,
            most_bytes=wanted.most_bytes,
        )
    )


def _limit(answer: Answer, explained: Explanation) -> float | None:
    """The quota, None without one. Raises Refused for what is no rate: nobody is held to it as to one."""
    if answer.limit is None or explained.cluster.ignores(answer.key):
        return None
    if not (math.isfinite(answer.limit) and answer.limit > 0):
        raise Refused(f"{answer.key} is {answer.limit:g} for this client, which is no rate; set one, or remove it")
    return answer.limit


def _window(kind: Kind, explained: Explanation) -> int | None:
    from kquota.probe.load import Kind

    cluster = explained.cluster
    window = cluster.mutation_window if kind is Kind.CREATE_TOPICS else cluster.window
    return None if window is None else window.bucket_seconds


def _brokers(stage: Stage, wanted: tuple[BrokerId, ...] | None) -> tuple[BrokerId, ...]:
    if wanted is None:
        return stage.brokers
    if missing := [broker for broker in wanted if broker not in stage.brokers]:
        raise Refused(f"--broker-list: broker {missing[0]} is not alive")
    return wanted
