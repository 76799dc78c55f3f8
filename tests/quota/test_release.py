"""Quotas that are too new for the brokers are refused. If the release is unknown, kquota warns."""

from __future__ import annotations

import pytest

from kquota.errors import Refused
from kquota.quota import actions
from kquota.quota.entity import Entity
from kquota.quota.limits import QuotaChange
from kquota.terms import CONNECTION_CREATION_RATE, CONTROLLER_MUTATION_RATE, PRODUCER_BYTE_RATE
from tests.quota.fake import MemoryPrincipals


class Brokers(MemoryPrincipals):
    """The fake with brokers of some release."""

    def __init__(self, told: tuple[int, ...] | None) -> None:
        super().__init__()
        self._told = told

    def release(self) -> tuple[int, ...] | None:
        return self._told


CHANGES = {
    CONTROLLER_MUTATION_RATE: QuotaChange(entity=Entity(user="u"), add={CONTROLLER_MUTATION_RATE: 5.0}),
    CONNECTION_CREATION_RATE: QuotaChange(entity=Entity(ip="10.0.0.1"), add={CONNECTION_CREATION_RATE: 5.0}),
}


@pytest.mark.parametrize("key", CHANGES)
def test_a_quota_that_older_brokers_ignore_is_refused(key: str) -> None:
    with pytest.raises(Refused, match=rf"{key} needs Kafka 2\.7, and the brokers run 2\.6\. Nothing was written"):
        actions.must_take_effect(Brokers((2, 6)), CHANGES[key])


@pytest.mark.parametrize("key", CHANGES)
def test_for_an_unknown_release_a_warning_names_the_minimum_release(key: str) -> None:
    (warning,) = actions.must_take_effect(Brokers(None), CHANGES[key])
    assert f"{key} needs Kafka 2.7" in warning


@pytest.mark.parametrize("release", [(2, 7), (2, 8, 2), (3, 9), (4, 3)])
@pytest.mark.parametrize("key", CHANGES)
def test_newer_brokers_accept_the_quota(key: str, release: tuple[int, ...]) -> None:
    assert actions.must_take_effect(Brokers(release), CHANGES[key]) == ()


@pytest.mark.parametrize(
    "change",
    [
        QuotaChange(entity=Entity(user="u"), add={PRODUCER_BYTE_RATE: 5.0}),
        QuotaChange(entity=Entity(user="u"), delete=(CONTROLLER_MUTATION_RATE,)),
    ],
    ids=["an old quota", "a new one deleted"],
)
def test_quotas_that_every_release_accepts(change: QuotaChange) -> None:
    assert actions.must_take_effect(Brokers((2, 6)), change) == ()
