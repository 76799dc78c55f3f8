"""Where kquota keeps things, as the XDG base directory specification has it."""

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
def test_a_folder_is_where_the_variable_says_unless_that_is_no_place(
    folder: Callable[[Mapping[str, str]], Path], variable: str, otherwise: str
) -> None:
    assert folder({variable: "/x"}) == Path("/x/kquota")
    for environment in ({}, {variable: ""}, {variable: "relative"}):
        assert folder(environment) == Path.home() / otherwise / "kquota"
