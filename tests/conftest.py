"""Shared by all tests: servers, separate folders in place of the user's, and a last line that names omitted tests."""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests import canary
from tests.profiles import QUICK
from tests.secured import secured, secured_zookeeper
from tests.servers import (
    NEEDS,
    WAYS,
    cluster,
    documents_391,
    documents_431,
    forget_changes,
    kafka_282,
    kafka_391,
    kafka_431,
    on_zookeeper,
    zookeeper,
)
from tests.stores.moves_stage import OtherHand
from tests.thorough import has_unit_tests, is_exhaustive, is_slow, is_thorough, is_timed, is_unit

__all__ = [
    "cluster",
    "documents_391",
    "documents_431",
    "kafka_282",
    "kafka_391",
    "kafka_431",
    "secured",
    "secured_zookeeper",
    "zookeeper",
]

# A property is about results. The duration of one example on a busy machine is irrelevant.
settings.register_profile("kquota", deadline=None)
settings.register_profile("quick", deadline=None, max_examples=QUICK)
# CI and `make test` use the same examples each time. `make unit` and `make test-all` look for new examples.
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.register_profile("repeatable-quick", deadline=None, derandomize=True, max_examples=15)
settings.load_profile("kquota")

# The tests keep millions of objects. With the default of 700, Python looks for garbage among them all the time.
gc.set_threshold(100_000, 10, 10)

_SECOND = "-again"
_SECOND_HALF = "tests/cli/test_m"
"""The name that divides the tests of kafka_431 into two halves, which take equally long."""

_SKIPPED = pytest.StashKey[Counter[str]]()
_LEFT_OUT = pytest.StashKey[Counter[str]]()
_NOT_IMPORTED = pytest.StashKey[set[Path]]()


@pytest.fixture(scope="session", autouse=True)
def folders_of_our_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """State and configuration belong to this run. The cache of jars is shared. No setting of the user applies."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        for key in [key for key in os.environ if key.startswith("KQUOTA_")]:
            if key not in ("KQUOTA_OFFLINE", "KQUOTA_JAVA"):
                patch.delenv(key)
        yield


@pytest.fixture(scope="session", autouse=True)
def no_secret_on_a_command_line() -> Iterator[None]:
    """No process of this run has a secret in its arguments, and no folder of Spark contains one."""
    lookout = canary.Lookout()
    yield
    assert lookout.stop() == []


@pytest.fixture(autouse=True)
def no_secret_in_a_file(request: pytest.FixtureRequest) -> Iterator[None]:
    """No file of a test contains a secret: journals, records of runs, reports, outputs."""
    yield
    if (folder := getattr(request.node, "funcargs", {}).get("tmp_path")) is not None:
        assert canary.files_with_canary(folder) == []


@pytest.fixture(scope="module", autouse=True)
def quick_brokers() -> None:
    """Remove old notifications before each module, so that its tests do not wait for changes of the previous module."""
    forget_changes()
    for servers in on_zookeeper():
        OtherHand(servers).controlled()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_SKIPPED] = Counter()
    config.stash[_LEFT_OUT] = Counter()
    config.stash[_NOT_IMPORTED] = set()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore modules without a unit test for `-m "unit and ..."`, because their import takes seconds."""
    if not config.option.markexpr.startswith("unit and ") or has_unit_tests(collection_path, config.rootpath):
        return None
    config.stash[_NOT_IMPORTED].add(collection_path)
    return True


# This hook runs first, so that `-m` and the workers see the marks.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        servers = sorted(_servers(item))
        for server in servers:
            item.add_marker(NEEDS[server])
        if is_thorough(item.nodeid):
            item.add_marker(pytest.mark.thorough)
        if is_exhaustive(item.nodeid):
            item.add_marker(pytest.mark.exhaustive)
        if is_timed(item.nodeid):
            item.add_marker(pytest.mark.timed)
        if is_unit(item.nodeid) and not servers:
            item.add_marker(pytest.mark.unit)
        if is_slow(item.nodeid):
            item.add_marker(pytest.mark.slow)
        elif item.get_closest_marker("unit") and not has_unit_tests(item.path, item.config.rootpath):
            raise pytest.UsageError(
                f"{item.nodeid}: `make unit` would not find it. Write pytest.mark.unit in its module"
            )
        # All tests that need a server run in one worker, one after the other, so each server is started once.
        if item.get_closest_marker("xdist_group") is None:
            if servers:
                item.add_marker(pytest.mark.xdist_group(_worker_of(servers[0], item.nodeid)))
            elif {mark.name for mark in item.iter_markers()} & {"zookeeper", "kafka", "spark"}:
                # The test starts its servers itself, and may share them with its module.
                item.add_marker(pytest.mark.xdist_group(item.path.stem))
    items.sort(key=_begins)


def _begins(item: pytest.Item) -> int:
    """Return the sort key of a test. The longest groups begin first, because each keeps one worker busy to the end."""
    group = item.get_closest_marker("xdist_group")
    if group is None:
        return 2
    return 0 if group.args[0].removesuffix(_SECOND) in NEEDS else 1


def _worker_of(server: str, test: str) -> str:
    """Return the group of a test that needs this server. Half of the tests need kafka_431, so two workers start it."""
    return f"{server}{_SECOND}" if server == "kafka_431" and test >= _SECOND_HALF else server


def _servers(item: pytest.Item) -> Iterator[str]:
    """Yield the fixtures of the servers that a test requests, directly or through a parameter."""
    params = item.callspec.params.values() if hasattr(item, "callspec") else ()
    for name in (*getattr(item, "fixturenames", ()), *(value for value in params if isinstance(value, str))):
        if name in WAYS:
            yield WAYS[name][0]
        elif name in NEEDS:
            yield name


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    if report.skipped:  # type: ignore[attr-defined]
        why = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr  # type: ignore[attr-defined]
        item.config.stash[_SKIPPED][str(why).removeprefix("Skipped: ")] += 1
    return report


def pytest_deselected(items: list[pytest.Item]) -> None:
    for item in items:
        marks = sorted(
            {mark.name for mark in item.iter_markers()}
            & {"zookeeper", "kafka", "spark", "thorough", "timed", "exhaustive"}
        )
        item.config.stash[_LEFT_OUT][f"left out of this run ({', '.join(marks) or 'not asked for'})"] += 1


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        counts = session.config.stash[_SKIPPED], session.config.stash[_LEFT_OUT]
        session.config.workeroutput["not run"] = [dict(count) for count in counts]
        session.config.workeroutput["not imported"] = [str(path) for path in session.config.stash[_NOT_IMPORTED]]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Collect what a worker omitted and skipped. Each worker omits the same tests, but skips only some of its own. A
    worker that died has reported nothing."""
    told: list[dict[str, int]] = getattr(node, "workeroutput", {}).get("not run", [{}, {}])
    skipped, left_out = map(Counter, told)
    stash: pytest.Stash = node.config.stash
    stash[_SKIPPED] += skipped
    stash[_LEFT_OUT] = stash[_LEFT_OUT] | left_out
    stash[_NOT_IMPORTED].update(map(Path, getattr(node, "workeroutput", {}).get("not imported", ())))


def pytest_unconfigure(config: pytest.Config) -> None:
    """Print the omitted tests in the last lines of a run, so that a partial run does not look like a full one."""
    if hasattr(config, "workerinput") or config.option.collectonly or config.option.help:
        return
    not_run = config.stash[_SKIPPED] + config.stash[_LEFT_OUT]
    not_imported = config.stash[_NOT_IMPORTED]
    if not not_run and not not_imported:
        print("not run: nothing")
    if not_imported:
        print(f"not run: {len(not_imported)} module(s) without a unit test")
    for why, count in sorted(not_run.items()):
        print(f"not run: {count} test(s): {why}")
