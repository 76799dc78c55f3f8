"""kquota's folders, as the XDG base directory specification defines them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from kquota import folders

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
