"""The contract of SCRAM credentials in a Principals port. The fake and each real store on each real Kafka pass it."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from kquota.quota import actions
from kquota.quota.entity import EVERY, Entity
from kquota.quota.limits import QuotaChange
from kquota.quota.port import Principals
from kquota.quota.scram import MECHANISMS, ScramChange, scram_keys
from kquota.terms import PRODUCER_BYTE_RATE
from tests.waiting import attempts

SHA_256, SHA_512 = MECHANISMS


class ScramContract:
    """Subclass it with a `principals` fixture."""

    @pytest.fixture
    def principals(self) -> Any:
        raise NotImplementedError

    @pytest.fixture
    def user(self) -> str:
        return f"CN=s {uuid.uuid4().hex[:8]},O=ü"

    def change(self, principals: Principals, user: str, *delete: str, **iterations: int) -> tuple[str, ...]:
        add = [scram_keys(name.replace("_", "-"), count, "secret") for name, count in iterations.items()]
        return actions.alter_credentials(principals, ScramChange(user=user, add=tuple(add), delete=delete), attempts())

    def must_show(self, principals: Principals, user: str, *mechanisms: str, iterations: int = 4096) -> None:
        """Wait until the user has these credentials, because another broker may learn of a change later."""
        wanted: list[dict[str, int | None]] = [dict.fromkeys(mechanisms, count) for count in (iterations, None)]
        shown = (principals.users(user)[1].get(user, {}) for _ in attempts())
        assert next((found for found in shown if found in wanted), None) is not None

    def test_credentials_are_set_changed_and_deleted(self, principals: Principals, user: str) -> None:
        for iterations in (8192, 4096):
            assert self.change(principals, user, SCRAM_SHA_512=iterations) == ()
            self.must_show(principals, user, SHA_512, iterations=iterations)
        assert self.change(principals, user, SHA_512) == ()
        self.must_show(principals, user)

    def test_all_users_with_credentials_are_shown(self, principals: Principals) -> None:
        """The name needs no encoding in a znode, because 2.8.2 does not show all users with a name that needs it."""
        user = f"s-{uuid.uuid4().hex[:8]}"
        self.change(principals, user, SCRAM_SHA_512=4096)
        assert any(user in principals.users(EVERY)[1] for _ in attempts())
        self.change(principals, user, SHA_512)

    def test_both_mechanisms_change_at_once(self, principals: Principals, user: str) -> None:
        self.change(principals, user, SCRAM_SHA_256=4096, SCRAM_SHA_512=4096)
        self.must_show(principals, user, SHA_256, SHA_512)
        self.change(principals, user, SHA_256, SCRAM_SHA_512=8192)
        self.must_show(principals, user, SHA_512, iterations=8192)
        self.change(principals, user, SHA_512)

    def test_deleting_an_unset_credential_succeeds_and_is_reported(self, principals: Principals, user: str) -> None:
        assert self.change(principals, user, SHA_256) == (SHA_256,)
        self.change(principals, user, SCRAM_SHA_256=4096)
        assert self.change(principals, user, SHA_512, SHA_256) == (SHA_512,)
        self.must_show(principals, user)

    def test_quotas_of_the_user_do_not_change(self, principals: Principals, user: str) -> None:
        entity = Entity(user=user)
        actions.alter(principals, QuotaChange(entity=entity, add={PRODUCER_BYTE_RATE: 5.0}), attempts())
        self.change(principals, user, SCRAM_SHA_256=4096)
        self.change(principals, user, SHA_256)
        assert any(principals.users(user)[0] == {entity: {PRODUCER_BYTE_RATE: 5.0}} for _ in attempts())
        actions.alter(principals, QuotaChange(entity=entity, delete=(PRODUCER_BYTE_RATE,)), attempts())
