"""The changes of a document, the entities that it may change, and its hash, as properties of every type of entity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.errors import Invalid, KquotaError, Refused, Unknown, Unreachable
from kquota.quota import actions
from kquota.quota.actions import Outcome, apply
from kquota.quota.difference import Difference, difference
from kquota.quota.document import NO_ENTITY, Document, Scope
from kquota.quota.entity import Entity
from kquota.quota.limits import Limits, QuotaChange, Replacement
from kquota.settings.resource import Resource
from kquota.terms import DEFAULT, LEADER_RATE, LEADER_REPLICAS, PRODUCER_BYTE_RATE
from tests.quota.documents import entities, limits_of, states
from tests.quota.fake import FakeQuotas
from tests.quota.replace_contract import ConditionalContract

RATE = {PRODUCER_BYTE_RATE: 1.0}


def scope(*patterns: str) -> Scope:
    return Scope(patterns=patterns)


@st.composite
def documents(draw: st.DrawFn, current: Mapping[Entity, Limits]) -> Document:
    """A document that keeps part of the current state, changes part of it and adds to it."""
    drawn = {entity: draw(limits_of(entity)) for entity in draw(st.lists(entities, max_size=5, unique=True))}
    kept = {entity: limits for entity, limits in current.items() if draw(st.booleans())}
    owns = draw(st.sampled_from([scope("*"), scope("a*", "default-user"), scope("user:*"), scope()]))
    protect = draw(st.sampled_from([NO_ENTITY, NO_ENTITY, scope("b"), scope("default-user", "client:a")]))
    return Document(limits=kept | drawn, owns=owns, protect=protect)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Document, dict[Entity, dict[str, float]], bool]:
    current = draw(states())
    return draw(documents(current)), current, draw(st.booleans())


def applied(found: Difference, current: Mapping[Entity, Limits]) -> FakeQuotas:
    quotas = FakeQuotas()
    quotas.held = {entity: dict(limits) for entity, limits in current.items()}
    outcome = apply(quotas, found.replacements, iter(range(2)), lambda _: None)
    assert outcome == Outcome(done=tuple(r.entity for r in found.replacements))
    return quotas


@given(cases())
def test_applying_a_document_leads_to_its_state(
    case: tuple[Document, dict[Entity, dict[str, float]], bool],
) -> None:
    document, current, prune = case
    try:
        found = difference(document, current, prune=prune)
    except Refused:
        # Only for a protected entity that the document names and that differs.
        assert any(
            document.protect.touches(entity) and current.get(entity, {}) != limits
            for entity, limits in document.limits.items()
        )
        return
    now = applied(found, current).everything()
    for entity in {*current, *document.limits}:
        before, after = current.get(entity, {}), now.get(entity, {})
        if entity in document.limits:
            assert after == document.limits[entity]
        elif prune and document.owns and document.owns.owns(entity) and not document.protect.touches(entity):
            assert after == {}
        else:
            assert after == before
        if document.protect.touches(entity):
            assert after == before
    again = difference(document, now, prune=prune)
    assert again.replacements == ()
    assert set(again.kept) == set(found.kept)


def canonical(found: Difference) -> list[tuple[object, ...]]:
    return [(replacement.entity, *replacement.differing()) for replacement in found.replacements]


@given(cases(), cases())
def test_hashes_differ_exactly_when_changes_differ(
    one: tuple[Document, dict[Entity, dict[str, float]], bool],
    other: tuple[Document, dict[Entity, dict[str, float]], bool],
) -> None:
    found = []
    for document, current, prune in (one, other, one):
        try:
            found.append(difference(document, current, prune=prune))
        except Refused:
            return
    first, second, first_again = found
    assert first.hash == first_again.hash
    assert (first.hash == second.hash) == (canonical(first) == canonical(second))


def test_the_hash_includes_the_replaced_values() -> None:
    """A reviewer saw 5 become 7. If the value is 6 now, the change is a different one."""
    document = Document(limits={Entity(user="u"): {PRODUCER_BYTE_RATE: 7.0}})
    hashes = {difference(document, {Entity(user="u"): {PRODUCER_BYTE_RATE: n}}, prune=False).hash for n in (5.0, 6.0)}
    assert len(hashes) == 2
    assert all(len(name) == len("sha256:") + 16 for name in hashes)


def test_the_default_and_a_user_of_that_name_have_different_hashes() -> None:
    every = (Entity(user=DEFAULT), Entity(user="<default>"), Entity(user="default"), Entity(client_id=DEFAULT))
    assert len({difference(Document(limits={entity: RATE}), {}, prune=False).hash for entity in every}) == len(every)


OWNS = {
    "a user by pattern": ("user:team-*", Entity(user="team-a"), True),
    "and that user's clients": ("user:team-*", Entity(user="team-a", client_id="x"), True),
    "and default client": ("user:team-*", Entity(user="team-a", client_id=DEFAULT), True),
    "not a client-id of that name": ("user:team-*", Entity(client_id="team-a"), False),
    "a bare pattern is any kind of name": ("team-*", Entity(client_id="team-a"), True),
    "not another user's client of that name": ("team-*", Entity(user="x", client_id="team-a"), False),
    "an IP by pattern": ("ip:10.1.*", Entity(ip="10.1.2.3"), True),
    "not the next network": ("ip:10.1.*", Entity(ip="10.10.2.3"), False),
    "no default by a pattern": ("*", Entity(user=DEFAULT), False),
    "no default's client by a pattern": ("*", Entity(user=DEFAULT, client_id="team-a"), False),
    "a default by its word": ("default-user", Entity(user=DEFAULT), True),
    "and its clients": ("default-user", Entity(user=DEFAULT, client_id="x"), True),
    "not a user of that name": ("default-user", Entity(user="default-user"), False),
    "a user that is called so": ("user:default-user", Entity(user="default-user"), True),
    "letter by letter": ("team-a", Entity(user="Team-A"), False),
    "the whole name": ("team-a", Entity(user="team-a\nb"), False),
    "a name with a line end": ("team-*", Entity(user="team-a\nb"), True),
    "as an ACL writes it": ("User:admin", Entity(user="admin"), True),
}


@pytest.mark.parametrize(("pattern", "entity", "owned"), OWNS.values(), ids=OWNS)
def test_the_entities_that_a_pattern_owns(pattern: str, entity: Entity, owned: bool) -> None:
    assert scope(pattern).owns(entity) is owned


def test_a_protection_is_wider_than_what_is_owned() -> None:
    assert scope("client:app").touches(Entity(user="u", client_id="app"))
    assert not scope("client:app").owns(Entity(user="u", client_id="app"))


def test_pruning_requires_a_pattern_of_owned_entities() -> None:
    with pytest.raises(Invalid, match="owns"):
        difference(Document(limits={}), {Entity(user="u"): RATE}, prune=True)
    assert difference(Document(limits={}, owns=scope()), {Entity(user="u"): RATE}, prune=True).replacements == ()


def test_a_named_protected_entity_is_refused_unless_unchanged() -> None:
    document = Document(limits={Entity(user="admin"): RATE}, protect=scope("User:admin"))
    assert difference(document, {Entity(user="admin"): RATE}, prune=False).replacements == ()
    with pytest.raises(Refused, match="user 'admin'"):
        difference(document, {}, prune=False)


def test_an_unnamed_protected_entity_is_kept_and_reported() -> None:
    current = {Entity(user="admin"): RATE, Entity(user="old"): RATE}
    found = difference(Document(limits={}, owns=scope("*"), protect=scope("admin")), current, prune=True)
    assert [replacement.entity for replacement in found.replacements] == [Entity(user="old")]
    assert found.kept == (Entity(user="admin"),)


def test_throttles_of_named_resources_are_replaced_and_hashed() -> None:
    one, other = Resource(kind="topics", name="t"), Resource(kind="brokers", name="1")
    document = Document(limits={}, owns=scope("*"), throttles={one: {LEADER_REPLICAS: "0:1,0:2"}, other: {}})
    current = {one: {LEADER_REPLICAS: "0:2, 0:1,"}, other: {LEADER_RATE: "5"}, Resource(kind="topics", name="x"): {}}
    found = difference(document, {}, prune=True, throttles=current)
    assert [(t.entity, list(t.differing())) for t in found.changes] == [(other, [(LEADER_RATE, "5", None)])]
    assert found.hash != difference(document, {}, prune=True, throttles={other: {LEADER_RATE: "6"}}).hash
    after = difference(document, {}, prune=True, throttles=current | {other: {}})
    assert after.changes == ()


class TestFakeQuotas(ConditionalContract):
    @pytest.fixture
    def quotas(self) -> FakeQuotas:
        return FakeQuotas()


MANY = [Entity(user=f"u{n:05}") for n in range(2_500)]


class Recorded(FakeQuotas):
    """Records every batch, refuses some entities, and can lose its connection. Implements the port with the fake."""

    def __init__(
        self, refused: Sequence[Entity] = (), lost_after: int | None = None, error: KquotaError | None = None
    ) -> None:
        super().__init__()
        self.error = error or Unreachable("gone")
        self.batches: list[int] = []
        self.refused = set(refused)
        self.lost_after = lost_after

    def replace(self, batch: Sequence[Replacement]) -> Mapping[Entity, str]:
        self.batches.append(len(batch))
        if self.lost_after is not None and len(self.batches) > self.lost_after:
            raise self.error
        undone = {r.entity: "no" for r in batch if r.entity in self.refused}
        return {**undone, **super().replace([r for r in batch if r.entity not in undone])}


def all_of(quotas: FakeQuotas) -> tuple[Replacement, ...]:
    return difference(Document(limits=dict.fromkeys(MANY, RATE)), quotas.everything(), prune=False).replacements


def test_batches_and_progress() -> None:
    quotas, told = Recorded(), list[int]()
    assert apply(quotas, all_of(quotas), iter(range(2)), told.append).done == tuple(MANY)
    assert quotas.batches == told == [1000, 1000, 500]
    assert actions.BATCH == 1_000
    assert apply(quotas, all_of(quotas), iter(range(2)), told.append) == Outcome(done=())
    assert len(quotas.batches) == 3


def test_a_name_that_the_connection_cannot_carry_is_refused_before_the_first_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def must_carry(entities: Iterable[Entity]) -> None:
        if MANY[2_000] in entities:
            raise Invalid("no")

    quotas = Recorded()
    monkeypatch.setattr(quotas, "must_carry", must_carry)
    with pytest.raises(Invalid):
        apply(quotas, all_of(quotas), iter(range(2)), lambda _: None)
    assert quotas.batches == []


def test_a_refused_entity_does_not_affect_the_others() -> None:
    quotas = Recorded(refused=[MANY[7], MANY[2_000]])
    outcome = apply(quotas, all_of(quotas), iter(range(2)), lambda _: None)
    assert outcome.undone == {MANY[7]: "no", MANY[2_000]: "no"}
    assert set(outcome.done) == set(MANY) - {MANY[7], MANY[2_000]} == set(quotas.everything())


def test_a_lost_connection_ends_apply_and_every_entity_is_reported() -> None:
    quotas = Recorded(lost_after=1)
    outcome = apply(quotas, all_of(quotas), iter(range(2)), lambda _: None)
    assert outcome.done == tuple(MANY[:1_000])
    assert [outcome.undone[entity] for entity in (MANY[1_000], MANY[2_000])] == ["unknown: gone", "not sent"]
    quotas.lost_after = None
    assert apply(quotas, all_of(quotas), iter(range(2)), lambda _: None).done == tuple(MANY[1_000:])


STOPPED: dict[str, tuple[KquotaError, str]] = {
    "refused": (Refused("not allowed"), "not allowed"),
    "unknown": (Unknown("not confirmed"), "unknown: not confirmed"),
}


@pytest.mark.parametrize(("error", "why"), STOPPED.values(), ids=STOPPED)
def test_an_error_of_a_later_batch_does_not_hide_the_written_batches(error: KquotaError, why: str) -> None:
    quotas = Recorded(lost_after=1, error=error)
    outcome = apply(quotas, all_of(quotas), iter(range(2)), lambda _: None)
    assert outcome.done == tuple(MANY[:1_000])
    assert [outcome.undone[entity] for entity in (MANY[1_000], MANY[2_000])] == [why, "not sent"]


def test_a_refused_first_batch_raises_its_error() -> None:
    quotas = Recorded(lost_after=0, error=Refused("not allowed"))
    with pytest.raises(Refused, match="not allowed"):
        apply(quotas, all_of(quotas), iter(range(2)), lambda _: None)
    assert quotas.batches == [1_000]


def test_an_entity_that_changed_in_between_is_skipped_and_reported() -> None:
    quotas = FakeQuotas()
    found = difference(Document(limits={MANY[0]: RATE, MANY[1]: RATE}), {}, prune=False)
    quotas.alter([QuotaChange(entity=MANY[1], add={PRODUCER_BYTE_RATE: 9.0})])
    outcome = apply(quotas, found.replacements, iter(range(2)), lambda _: None)
    assert outcome == Outcome(done=(MANY[0],), undone={MANY[1]: "changed meanwhile"})
    assert quotas.everything() == {MANY[0]: RATE, MANY[1]: {PRODUCER_BYTE_RATE: 9.0}}


def test_a_write_that_is_never_visible_is_not_reported_as_done() -> None:
    class Deaf(FakeQuotas):
        def replace(self, batch: object) -> Mapping[Entity, str]:
            return {}

    outcome = apply(Deaf(), all_of(Deaf()), iter(range(3)), lambda _: None)
    assert outcome.done == ()
    assert set(outcome.undone.values()) == {"accepted, but the cluster does not show it yet"}
