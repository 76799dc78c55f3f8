"""The folders of kquota: one in each of the XDG base directories for config, state and cache.

An XDG variable with a relative path is ignored. Each function raises Invalid if neither its variable nor the home
folder is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kquota.errors import Invalid


def config(environment: Mapping[str, str]) -> Path:
    """Return the folder for files that a person writes: `$XDG_CONFIG_HOME/kquota`, otherwise `~/.config/kquota`."""
    return _own(environment, "XDG_CONFIG_HOME", ".config")


def state(environment: Mapping[str, str]) -> Path:
    """Return the folder for files that must be kept: `$XDG_STATE_HOME/kquota`, otherwise `~/.local/state/kquota`."""
    return _own(environment, "XDG_STATE_HOME", ".local/state")


def cache(environment: Mapping[str, str]) -> Path:
    """Return the folder for files that can be replaced: `$XDG_CACHE_HOME/kquota`, otherwise `~/.cache/kquota`."""
    return _own(environment, "XDG_CACHE_HOME", ".cache")


def _own(environment: Mapping[str, str], variable: str, otherwise: str) -> Path:
    # Ignore a relative path, because the XDG standard requires this.
    given = Path(environment.get(variable, ""))
    if given.is_absolute():
        return given / "kquota"
    try:
        return Path.home() / otherwise / "kquota"
    except RuntimeError:
        raise Invalid(f"the home folder of this user is unknown. Set HOME or {variable}") from None
