"""One Spark for the whole run, because its start takes seconds, and Spark servers outside this process."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from kquota.cli.engine_options import rehearsal
from kquota.errors import Refused
from kquota.spark import archive
from kquota.spark.files import Files
from kquota.spark.session import session
from tests.spark.engines import connect_server, master, small_client

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["connect_server", "master", "small_client"]


@pytest.fixture(scope="session")
def class_archive() -> None:
    """The archive is in the shared cache, as after a user's first command. The tests start about forty JVMs from it."""
    with contextlib.suppress(OSError, Refused):
        archive.build(rehearsal())


@pytest.fixture(autouse=True)
def quick_jvms(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("spark"):
        request.getfixturevalue("class_archive")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, class_archive: None) -> Iterator[SparkSession]:
    folder = tmp_path_factory.mktemp("spark")
    with session(folder, Files(folder=folder, names={}), say=lambda _: None) as started:
        yield started
