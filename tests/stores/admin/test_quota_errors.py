"""Errors of single entities in an answer to AlterClientQuotas: refused, or maybe written."""

from __future__ import annotations

from typing import Any

import pytest
from kafka.protocol.admin.client_quotas import AlterClientQuotasRequest

from kquota.errors import Incomplete, KquotaError, NotSent, Refused, Unknown, Unreachable
from kquota.quota.entity import Entity
from kquota.quota.limits import QuotaChange, Replacement
from kquota.stores.admin.quotas import WireQuotas
from kquota.terms import PRODUCER_BYTE_RATE
from tests.stores.admin.quota_broker import QuotaBroker

pytestmark = pytest.mark.unit

NAMES = ("a", "b", "c")
LIMITS = {PRODUCER_BYTE_RATE: 1_000.0}
TIMED_OUT, FAILED, DENIED = (7, None), (-1, "failed"), (31, None)
NEEDED = ". This user needs AlterConfigs on the cluster"
CHECK = "Check with showing all quotas"
CASES: dict[str, tuple[dict[str, tuple[int, str | None]], type[KquotaError], str]] = {
    # the errors of the broker, and the error of kquota
    "timed out": ({"b": TIMED_OUT}, Unknown, f"the change may have been written for user 'b' (%s (7)). {CHECK}"),
    "failed": ({"b": FAILED}, Unknown, f"the change may have been written for user 'b' (%s (-1): failed). {CHECK}"),
    "refused": ({"b": DENIED}, Incomplete, f"the broker refused user 'b' (%s (31){NEEDED})"),
    "both": (
        {"b": DENIED, "c": TIMED_OUT},
        Incomplete,
        f"the broker refused user 'b' (%s (31){NEEDED}); "
        f"the change may have been written for user 'c' (%s (7)). {CHECK}",
    ),
}
KAFKA = {7: "RequestTimedOut", -1: "Unknown", 31: "ClusterAuthorizationFailed"}


def failing(errors: dict[str, tuple[int, str | None]]) -> tuple[QuotaBroker, WireQuotas]:
    broker: Any = QuotaBroker()
    broker.errors = {frozenset({("user", name)}): error for name, error in errors.items()}
    return broker, WireQuotas(broker)


@pytest.mark.parametrize(("errors", "kind", "words"), CASES.values(), ids=CASES)
def test_a_change_that_may_have_been_written_is_not_reported_as_refused(
    errors: dict[str, tuple[int, str | None]], kind: type[KquotaError], words: str
) -> None:
    broker, quotas = failing(errors)
    with pytest.raises(KquotaError) as raised:
        quotas.alter([QuotaChange(entity=Entity(user=name), add=LIMITS) for name in NAMES])
    assert type(raised.value) is kind
    assert str(raised.value) == words % tuple(KAFKA[code] for code, _ in errors.values())
    assert {name for parts in broker.held for _, name in parts} == set(NAMES) - errors.keys()


def test_a_replacement_that_may_have_been_made_is_reported_as_unknown() -> None:
    _, quotas = failing({"b": DENIED, "c": TIMED_OUT})
    batch = [Replacement(entity=Entity(user=name), before={}, after=LIMITS) for name in NAMES]
    assert quotas.replace(batch) == {
        Entity(user="b"): f"ClusterAuthorizationFailed (31){NEEDED}",
        Entity(user="c"): "unknown: RequestTimedOut (7)",
    }


LOST: dict[str, tuple[bool, bool, type[KquotaError]]] = {
    # whether there is an active controller, whether the request was sent, and the error of kquota
    "no active controller": (False, False, Refused),
    "not sent": (True, False, Refused),
    "sent": (True, True, Unreachable),
}


@pytest.mark.parametrize(("has_controller", "sent", "kind"), LOST.values(), ids=LOST)
def test_only_a_request_that_was_sent_makes_a_batch_unknown(
    has_controller: bool, sent: bool, kind: type[KquotaError]
) -> None:
    class Silent(QuotaBroker):
        def ask(self, request: Any, *_: object) -> Any:
            if sent and isinstance(request, AlterClientQuotasRequest):
                request.with_header()
            raise Unreachable("no answer")

    broker: Any = Silent()
    broker.has_controller = has_controller
    with pytest.raises(KquotaError) as raised:
        WireQuotas(broker).replace([Replacement(entity=Entity(user="a"), before={}, after=LIMITS)])
    assert type(raised.value) is kind
    assert isinstance(raised.value.__cause__, NotSent) == (not has_controller)
