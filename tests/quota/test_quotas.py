"""The fake passes the contract, so that tests on it are valid for a cluster."""

from __future__ import annotations

import pytest

from kquota.errors import Unknown
from kquota.quota import actions
from kquota.quota.entity import Entity
from kquota.quota.limits import QuotaChange
from kquota.terms import PRODUCER_BYTE_RATE
from tests.quota.contract import QuotasContract
from tests.quota.fake import FakeQuotas


class TestFakeQuotas(QuotasContract):
    @pytest.fixture
    def quotas(self) -> FakeQuotas:
        return FakeQuotas()


def test_a_write_that_is_never_visible_is_unknown_not_done() -> None:
    class Deaf(FakeQuotas):
        def alter(self, changes: object) -> None:
            pass

    with pytest.raises(Unknown, match="does not show it"):
        actions.alter(Deaf(), QuotaChange(entity=Entity(user="u"), add={PRODUCER_BYTE_RATE: 1.0}), iter(range(3)))
