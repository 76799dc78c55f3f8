"""The oldest release of a cluster, which decides what kquota asks of its brokers."""

from __future__ import annotations

import pytest

from kquota.sandbox.cluster import Sandbox
from kquota.stores.admin import connection
from kquota.stores.admin.connection import Wire


def test_the_oldest_release_is_known_from_the_metadata_version_or_from_each_broker(
    cluster: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """During an upgrade to 4.x, the metadata.version is older than 4.0, and brokers of 3.x may remain."""
    release = tuple(map(int, str(cluster.kafka).split(".")[:2]))
    with Wire(cluster.bootstrap, {}) as wire:
        assert wire.oldest() == min(release, (4, 0))
    monkeypatch.setattr(connection, "_METADATA_OF_KRAFT_ONLY", 1_000)
    with Wire(cluster.bootstrap, {}) as wire:
        assert wire.oldest() == release
