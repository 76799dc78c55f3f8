"""Which cluster, and how to log in there: real listeners, right and wrong; no secret in what anybody can see."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.cli.run import Ran, kquota
from tests.logins import RIGHT, WRONG, located
from tests.secured import CANARY, Secured


def describe(secured: Secured, listener: str, properties: Mapping[str, str], env: dict[str, str] | None = None) -> Ran:
    """`kquota configs --describe` through that listener; stores are named by their files in the folder."""
    config = secured.config("client.properties", located(properties, secured.folder))
    where = ("--bootstrap-server", secured.at[listener], "--command-config", str(config))
    return kquota("log-dirs", "--describe", "--topic-list", "none", *where, env=env)


@pytest.mark.parametrize(("listener", "properties"), RIGHT.values(), ids=RIGHT)
def test_a_right_config_gets_in(secured: Secured, listener: str, properties: Mapping[str, str]) -> None:
    ran = describe(secured, listener, properties)
    assert (ran.code, ran.err) == (0, "")


@pytest.mark.parametrize(("listener", "properties", "reason"), WRONG.values(), ids=WRONG)
def test_a_wrong_config_is_one_line(
    secured: Secured, listener: str, properties: Mapping[str, str], reason: str
) -> None:
    ran = describe(secured, listener, properties)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("kquota: error: Kafka at ")
    assert ran.err.count("\n") == 1
    assert reason in ran.err
    assert CANARY not in ran.err
