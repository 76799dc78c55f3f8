"""The draft keeps exactly the copies that its replicas need, in any order of moves."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kquota.placement.draft import MoveReason, PlacementDraft
from kquota.terms import BrokerId
from tests.placement.clusters import goal, small

MOVES = st.lists(st.tuples(st.integers(0, 1), st.integers(1, 4)), max_size=6)


@given(MOVES)
def test_each_new_replica_has_one_source_and_each_source_loses_its_replica(moves: list[tuple[int, int]]) -> None:
    """Also if a replica moves to a broker whose own replica was to move."""
    cluster = small([[1, 2]], brokers=(1, 2, 3, 4))
    draft = PlacementDraft(cluster, goal(cluster))
    for place, to in moves:
        if BrokerId(to) not in draft.replicas[0]:
            draft.move(0, draft.replicas[0][place], BrokerId(to), MoveReason.BALANCE)
    before, after = set(draft.now[0].replicas), set(draft.replicas[0])
    copies = draft.copies.get(0, {})
    assert copies.keys() == after - before
    assert {source for source, _ in copies.values()} == before - after
    assert draft.incoming == {broker: 100 * (broker in after - before) for broker in draft.incoming}
