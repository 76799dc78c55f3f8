"""The level that binds each client: a table, and an independent model of Kafka's broker that must agree on any set."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.quota.entity import Entity, Name
from kquota.quota.limits import Limits
from kquota.quota.precedence import (
    LEVELS,
    Client,
    LevelState,
    Per,
    applicability,
    bucket,
    by_level,
    exceptions,
    level_of,
    limiting,
    per,
    rungs,
    winner,
)
from kquota.quota_keys import quotas_of
from kquota.terms import DEFAULT, PRODUCER_BYTE_RATE, REQUEST_PERCENTAGE, USERS

CLIENT_QUOTAS = quotas_of([USERS])
ALL_LEVELS = (
    Entity(user="u", client_id="c"),
    Entity(user="u", client_id=DEFAULT),
    Entity(user="u"),
    Entity(user=DEFAULT, client_id="c"),
    Entity(user=DEFAULT, client_id=DEFAULT),
    Entity(user=DEFAULT),
    Entity(client_id="c"),
    Entity(client_id=DEFAULT),
)
NAMED = Client(user="u", client_id="c")


def limited(*entities: Entity) -> dict[Entity, Limits]:
    return {entity: {PRODUCER_BYTE_RATE: 1.0} for entity in entities}


def bound(quotas: Mapping[Entity, Limits], client: Client, key: str = PRODUCER_BYTE_RATE) -> Entity | None:
    won = winner(rungs(quotas, client, key))
    return None if won is None else won.entity


@pytest.mark.parametrize("key", CLIENT_QUOTAS)
@pytest.mark.parametrize("first", range(8), ids=[f"level {level}" for level in range(1, 9)])
def test_a_level_takes_precedence_over_all_below_it(key: str, first: int) -> None:
    quotas = {entity: {key: float(level)} for level, entity in enumerate(ALL_LEVELS, 1) if level > first}
    found = rungs(quotas, NAMED, key)
    assert [rung.entity for rung in found] == list(ALL_LEVELS)
    assert [rung.state for rung in found] == [LevelState.UNSET] * first + [LevelState.WINS] + [LevelState.SHADOWED] * (
        7 - first
    )
    won = winner(found)
    assert won is not None
    assert (won.level, won.value, level_of(ALL_LEVELS[first])) == (first + 1, first + 1.0, first + 1)


def test_each_key_is_looked_up_by_itself() -> None:
    quotas = {Entity(user="u", client_id="c"): {PRODUCER_BYTE_RATE: 1.0}, Entity(user="u"): {REQUEST_PERCENTAGE: 2.0}}
    assert bound(quotas, NAMED, PRODUCER_BYTE_RATE) == Entity(user="u", client_id="c")
    assert bound(quotas, NAMED, REQUEST_PERCENTAGE) == Entity(user="u")
    assert bound({}, NAMED) is None


WHO = {
    "another client-id of the user": (Client(user="u", client_id="d"), Entity(user="u", client_id=DEFAULT)),
    "an unnamed client-id of the user": (Client(user="u", client_id=None), Entity(user="u", client_id=DEFAULT)),
    "no client-id": (Client(user="u", client_id=""), Entity(user="u")),
    "another user's same client-id": (Client(user="v", client_id="c"), Entity(user=DEFAULT, client_id="c")),
    "an unnamed user's same client-id": (Client(user=None, client_id="c"), Entity(user=DEFAULT, client_id="c")),
    "unknown client": (Client(user=None, client_id=None), Entity(user=DEFAULT, client_id=DEFAULT)),
    "unknown user, no client-id": (Client(user=None, client_id=""), Entity(user=DEFAULT)),
}


@pytest.mark.parametrize(("client", "expected"), WHO.values(), ids=WHO)
def test_with_every_level_set(client: Client, expected: Entity) -> None:
    assert bound(limited(*ALL_LEVELS), client) == expected


def test_a_client_id_level_never_binds_a_client_without_one() -> None:
    quotas = limited(Entity(client_id=DEFAULT), Entity(user="u", client_id=DEFAULT))
    found = rungs(quotas, Client(user="u", client_id=""), PRODUCER_BYTE_RATE)
    assert winner(found) is None
    assert [rung.value for rung in found if rung.state is LevelState.INAPPLICABLE] == [None, 1.0, None, None, None, 1.0]


HIDDEN = {
    "a client-id under the default user": (6, [5], 5, False),
    "the default client-id under the default user": (7, [5], 5, False),
    "a client-id under the default user's same": (6, [3], 3, False),
    "the default client-id under both defaults": (7, [4], 4, False),
    "a user under its default client-id": (2, [1], 1, True),
    "the default user under both defaults": (5, [4], 4, True),
    "a user beside one of its client-ids": (2, [0], None, False),
    "a user and client-id under all others": (0, range(1, 8), None, False),
    "the default user beside a user": (5, [2], None, False),
    "a client-id beside a user": (6, [2], None, False),
}


@pytest.mark.parametrize(("which", "others", "by", "nameless"), HIDDEN.values(), ids=HIDDEN)
def test_quotas_that_no_client_reaches(which: int, others: range | list[int], by: int | None, nameless: bool) -> None:
    quotas = limited(*(ALL_LEVELS[index] for index in (which, *others)))
    found = applicability(quotas, ALL_LEVELS[which], PRODUCER_BYTE_RATE)
    assert (found.hidden_by, found.nameless) == (None if by is None else ALL_LEVELS[by], nameless)


# The broker, read in ClientQuotaManager and its DefaultQuotaCallback. It works in two steps: which bucket counts a
# request, as a pair of tags, and then which limit that bucket has. It remembers which kinds of quota it ever saw, and
# looks no further where it saw one kind only.
def broker_bucket(quotas: Mapping[Entity, Limits], user: str, client_id: str, seen: frozenset[str]) -> tuple[str, str]:
    if seen <= {"client"}:
        return "", client_id
    if seen == {"user"}:
        return user, ""
    if seen == {"both"}:
        return user, client_id
    if client_id and Entity(user=user, client_id=client_id) in quotas:
        return user, client_id
    if Entity(user=user, client_id=DEFAULT) in quotas:
        return user, client_id
    if Entity(user=user) in quotas:
        return user, ""
    if client_id and Entity(user=DEFAULT, client_id=client_id) in quotas:
        return user, client_id
    if Entity(user=DEFAULT, client_id=DEFAULT) in quotas:
        return user, client_id
    if Entity(user=DEFAULT) in quotas:
        return user, ""
    return "", client_id


def broker_limit(quotas: Mapping[Entity, Limits], tags: tuple[str, str]) -> Entity | None:
    user, client_id = tags
    candidates: list[tuple[Name | None, Name | None]] = []
    if user and client_id:
        candidates = [(user, client_id), (user, DEFAULT), (DEFAULT, client_id), (DEFAULT, DEFAULT)]
    elif user:
        candidates = [(user, None), (DEFAULT, None)]
    elif client_id:
        candidates = [(None, client_id), (None, DEFAULT)]
    entities = [Entity(user=u, client_id=c) for u, c in candidates]
    return next((entity for entity in entities if entity in quotas), None)


def kinds(quotas: Mapping[Entity, Limits]) -> frozenset[str]:
    return frozenset("both" if e.user and e.client_id else "user" if e.user else "client" for e in quotas)


names = st.one_of(st.none(), st.just(DEFAULT), st.sampled_from("abc"))
entities = st.tuples(names, names).filter(any).map(lambda pair: Entity(user=pair[0], client_id=pair[1]))
sets = st.sets(entities, max_size=12).map(lambda found: limited(*found))
users = st.sampled_from(["a", "b", "c", "z"])
clients = st.builds(Client, user=users, client_id=st.sampled_from(["a", "b", "c", "z", ""]))


@given(sets, clients, st.sets(st.sampled_from(["user", "client", "both"])))
def test_brokers_agree(quotas: Mapping[Entity, Limits], client: Client, once: set[str]) -> None:
    """Some of the brokers have had quotas of other types before."""
    assert client.user is not None
    assert client.client_id is not None
    seen = kinds(quotas) | once
    tags = broker_bucket(quotas, client.user, client.client_id, frozenset(seen))
    won = winner(rungs(quotas, client, PRODUCER_BYTE_RATE))
    assert (None if won is None else won.entity) == broker_limit(quotas, tags)
    if won is not None:
        assert bucket(won.level, client) == tags


@given(sets, st.sampled_from(ALL_LEVELS))
def test_all_clients_without_a_quota_are_equivalent(quotas: Mapping[Entity, Limits], like: Entity) -> None:
    user, client_id = (name if isinstance(name, str) else None for name in (like.user, like.client_id))
    opened = bound(quotas, Client(user=user, client_id=client_id))
    assert opened == bound(quotas, Client(user=user or "fresh", client_id=client_id or "fresh"))


@given(sets)
def test_every_quota_is_reached_or_hidden(quotas: Mapping[Entity, Limits]) -> None:
    everybody = [Client(user=u, client_id=c) for u, c in itertools.product("abcz", ["a", "b", "c", "z", ""])]
    binds = {client: bound(quotas, client) for client in everybody}
    for entity in quotas:
        found = applicability(quotas, entity, PRODUCER_BYTE_RATE)
        whom = [client for client in everybody if binds[client] == entity]
        assert (found.hidden_by is None) == any(client.client_id for client in whom)
        assert found.nameless == bool(whom and not any(client.client_id for client in whom))


@given(sets, st.sampled_from([None, *"abz"]), st.sampled_from([None, *"abz", ""]))
def test_clients_with_another_binding_quota_are_listed_as_exceptions(
    quotas: Mapping[Entity, Limits], user: str | None, client_id: str | None
) -> None:
    opened = Client(user=user, client_id=client_id)
    named = exceptions(quotas, opened, PRODUCER_BYTE_RATE)
    won = winner(rungs(quotas, opened, PRODUCER_BYTE_RATE))
    assert all(level_of(entity) < (len(LEVELS) + 1 if won is None else won.level) for entity in named)
    reached = set[Entity | None]()
    for u, c in itertools.product("abcz" if user is None else [user], "abcz" if client_id is None else [client_id]):
        first = bound(quotas, Client(user=u, client_id=c))
        assert first in (*named, None if won is None else won.entity)
        reached |= {first, bound(quotas, Client(user=u, client_id=""))} if client_id is None else {first}
    assert reached.issuperset(named), "each of them takes precedence for a client"


@given(sets, st.builds(Client, user=st.none() | users, client_id=st.none() | st.sampled_from(["a", "z", ""])))
def test_the_index_of_names_finds_the_first_level_of_a_bucket(quotas: Mapping[Entity, Limits], client: Client) -> None:
    for by in Per:
        applicable = (
            one for one in rungs(quotas, client, PRODUCER_BYTE_RATE) if one.state is not LevelState.INAPPLICABLE
        )
        first = next((one for one in applicable if per(one.level) is by and one.value is not None), None)
        found = None if first is None else (first.level, first.entity, first.value)
        assert limiting(by_level(quotas), client, PRODUCER_BYTE_RATE, by) == found
