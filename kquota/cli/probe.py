"""`kquota quota probe`: a real client on a topic of its own, and whether it gets what `explain` says."""

from __future__ import annotations

import math
import secrets
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from kquota.cli import world
from kquota.cli.actions import given_options
from kquota.cli.connection import Connection, connected
from kquota.cli.contract import DONE, NOT_YET, say
from kquota.cli.probe_options import Given, broker_ids, kind
from kquota.errors import Invalid, Refused
from kquota.measure import byte_rate, byte_size

if TYPE_CHECKING:
    from kquota.cli.probe_stage import Logins, Stage
    from kquota.probe.load import Kind, Load
    from kquota.quota.explain import Answer, Explanation
    from kquota.terms import BrokerId

EPILOG: Final = """Examples:

kquota quota probe --bootstrap-server localhost:9092 --client-id billing --produce 20MB/s

kquota quota probe --bootstrap-server localhost:9092 --find-limit --tenants 10 --overcommit 2

Exit code 0 when the client got what `kquota quota explain` says, within 10 %; 8 when it got something else. The client
loads a topic of its own, kquota-probe-…, one partition on each broker, and removes it, also when it is interrupted.
What a killed one leaves is removed by the next, or by --clean-up, once its time is over."""


@connected(zookeeper=False)
@given_options(Given)
def probe(connection: Connection, given: Given) -> int:
    """Load a topic of its own for some seconds as a real client, and compare what it gets with its quota."""
    from kquota.cli import probe_run, probed
    from kquota.cli.probe_stage import logins

    asked = kind(given)
    who = logins(world.where(connection), given.client_config)
    if given.clean_up:
        return probe_run.clean_up(who)
    client_id = given.client_id or who.client_id
    with who.stage() as stage:
        explained = _explained(stage, _user(who, given.user), client_id)
        if given.find_limit or asked is None:
            from kquota.cli import probe_limit

            return probe_limit.find(who, stage, explained, client_id, given)
        load = _load(asked, given, stage, explained)
        if given.dry_run:
            print(probed.plan(load, explained, given.output))
            return DONE
        probe_run.remove_older(stage)
    found = probed.Probed(load=load, explained=explained, readings=probe_run.readings(who, client_id, load))
    print(probed.WRITE[given.output](found))
    return DONE if found.good else NOT_YET


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


def _load(asked: Kind, given: Given, stage: Stage, explained: Explanation) -> Load:
    """The load, bounded. Raises Invalid and Refused for what a probe does not do."""
    from kquota.probe import load, scratch
    from kquota.probe.load import KEYS, Kind, Load

    answer = next(one for one in explained.answers if one.key == KEYS[asked])
    limit = limit_of(answer, explained)
    brokers = _brokers(stage, given.broker_list)
    warm = load.warm(_window(asked, explained))
    seconds = load.seconds(given.seconds, warm)
    match asked:
        case Kind.PRODUCE:
            rate = byte_rate(given.produce or "", "--produce") / len(brokers)
        case Kind.CONSUME:
            rate = load.pushing(limit, len(brokers))
        case Kind.REQUESTS:
            rate = load.connections(limit)
        case Kind.CREATE_TOPICS:
            rate = load.mutating(limit)
    return load.bounded(
        Load(
            kind=asked,
            topic=scratch.name(datetime.now(UTC), warm + seconds, secrets.token_hex(4)),
            leaders=dict(enumerate(brokers)),
            rate=rate,
            limit=limit,
            warm=warm,
            seconds=seconds,
        ),
        byte_size(given.most_bytes, "--most-bytes"),
    )


def limit_of(answer: Answer, explained: Explanation) -> float | None:
    """The quota, None without one. Raises Refused for what is no rate: nobody is held to it as to one."""
    if answer.limit is None or explained.cluster.ignores(answer.key):
        return None
    if not (math.isfinite(answer.limit) and answer.limit > 0):
        raise Refused(f"{answer.key} is {answer.limit:g} for this client, which is no rate; set one, or remove it")
    return answer.limit


def _window(asked: Kind, explained: Explanation) -> int | None:
    from kquota.probe.load import Kind

    cluster = explained.cluster
    window = cluster.mutation_window if asked is Kind.CREATE_TOPICS else cluster.window
    return None if window is None else window.bucket_seconds


def _brokers(stage: Stage, text: str | None) -> tuple[BrokerId, ...]:
    wanted = broker_ids(text)
    if wanted is None:
        return stage.brokers
    if missing := [broker for broker in wanted if broker not in stage.brokers]:
        raise Refused(f"--broker-list: broker {missing[0]} is not alive")
    return wanted
