"""kquota's folders, as the XDG base directory specification defines them."""

from __future__ import annotations

import pwd
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from kquota import folders
from kquota.errors import Invalid

EACH = {
    "config": (folders.config, "XDG_CONFIG_HOME", ".config"),
    "state": (folders.state, "XDG_STATE_HOME", ".local/state"),
    "cache": (folders.cache, "XDG_CACHE_HOME", ".cache"),
}


@pytest.mark.parametrize(("folder", "variable", "otherwise"), EACH.values(), ids=EACH)
def test_the_variable_names_the_folder_if_it_is_an_absolute_path(
    folder: Callable[[Mapping[str, str]], Path], variable: str, otherwise: str
) -> None:
    assert folder({variable: "/x"}) == Path("/x/kquota")
    for environment in ({}, {variable: ""}, {variable: "relative"}):
        assert folder(environment) == Path.home() / otherwise / "kquota"


@pytest.mark.parametrize(("folder", "variable", "otherwise"), EACH.values(), ids=EACH)
def test_a_user_without_a_home_folder(
    folder: Callable[[Mapping[str, str]], Path], variable: str, otherwise: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container that runs with a user id of no account and without HOME."""

    def no_account(number: int) -> None:
        raise KeyError(number)

    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", no_account)
    with pytest.raises(Invalid, match=rf"^the home folder of this user is unknown\. Set HOME or {variable}$"):
        folder({})
    assert folder({variable: "/x"}) == Path("/x/kquota")
