"""Errors of single SCRAM credentials: the message names exactly the credentials that were written."""

from __future__ import annotations

from typing import Any

import pytest

from kquota.errors import Incomplete, KquotaError, Refused
from kquota.quota.scram import MECHANISMS, ScramChange, scram_keys
from kquota.stores.admin.quotas import WireQuotas
from tests.stores.admin.quota_broker import QuotaBroker

pytestmark = pytest.mark.unit

SHA_256, SHA_512 = MECHANISMS
_DENIED = 31
DENIED = (
    f"{SHA_512} of user 'a': the broker answered ClusterAuthorizationFailed ({_DENIED}). "
    "This user needs Alter on the cluster"
)
CASES: dict[str, tuple[ScramChange, type[KquotaError], str]] = {
    "after a credential that was written": (
        ScramChange(user="a", add=(scram_keys(SHA_256, 4096, "secret"),), delete=(SHA_512,)),
        Incomplete,
        f"{DENIED}. Already written: {SHA_256}",
    ),
    "after a credential that was not set": (
        ScramChange(user="a", delete=(SHA_256, SHA_512)),
        Refused,
        DENIED,
    ),
}


@pytest.mark.parametrize(("change", "kind", "words"), CASES.values(), ids=CASES)
def test_an_error_names_only_credentials_that_were_written(
    change: ScramChange, kind: type[KquotaError], words: str
) -> None:
    broker: Any = QuotaBroker()
    broker.scram_errors = {MECHANISMS[SHA_512].code: _DENIED}
    with pytest.raises(KquotaError) as raised:
        WireQuotas(broker).alter_credentials(change)
    assert (type(raised.value), str(raised.value)) == (kind, words)
