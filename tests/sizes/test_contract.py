"""The fake passes the contract."""

from __future__ import annotations

import pytest

from tests.sizes.contract import LogDirsContract, TieredContract
from tests.sizes.fake import FakeLogDirs


class TestFakeLogDirs(LogDirsContract):
    @pytest.fixture
    def stage(self) -> FakeLogDirs:
        return FakeLogDirs()


class TestFakeTieredLogDirs(TieredContract):
    @pytest.fixture
    def stage(self) -> FakeLogDirs:
        return FakeLogDirs()
