"""Named clusters: `config.toml` has options for each cluster, such as its address and the paths of its login files, but
no secrets.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kquota import bounded, folders
from kquota.errors import Invalid, Parameter

ADDRESSES: Final = ("bootstrap-server", "zookeeper")
FILES: Final = ("command-config", "zk-tls-config-file", "zk-sasl-config-file")
RECORD: Final = "record"
METRICS: Final = ("metrics", "prometheus")
CONFIRM: Final = "confirm"
_KEYS: Final = (*ADDRESSES, *FILES, RECORD, *METRICS, CONFIRM)
_CLUSTER: Final = Parameter("cluster")
_MOST_DOTS: Final = 300
"""The maximum number of dots in a line. Python's TOML parser needs minutes for a key of 30,000 parts."""
_SECRET: Final = re.compile(r"pass|secret|token|jaas|credential|key(?!tab)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedCluster:
    """The table `[clusters.NAME]` of one cluster."""

    options: Mapping[str, str]
    """The values of options, by the name of the option without leading dashes."""
    confirm: bool
    """True if every command must ask before it writes to this cluster, unless `--yes` is given. The default is
    False.
    """


def cluster(name: str, environment: Mapping[str, str]) -> NamedCluster:
    """Return the table `[clusters.NAME]`.

    Relative paths of login files start at the folder of `config.toml`. Raises Invalid if the file is missing, cannot be
    read or has no such table. Also raises Invalid if the file or any of its tables is not valid, or if a path needs a
    home folder that is unknown.
    """
    path = folders.config(environment) / "config.toml"
    clusters = _clusters(path)
    if name not in clusters:
        known = f"The file defines {', '.join(sorted(clusters))}" if clusters else "The file defines no cluster"
        raise Invalid(_CLUSTER, f" {name}: {path} has no table [clusters.{name}]. {known}")
    for other, entry in clusters.items():
        _check(entry, f"{path}: [clusters.{other}]")
    found = dict(clusters[name])
    confirm = found.pop(CONFIRM, False)
    options = {key: _placed(key, value, path.parent, f"{path}: [clusters.{name}]") for key, value in found.items()}
    return NamedCluster(options=options, confirm=confirm)


def _clusters(path: Path) -> dict[str, Any]:
    try:
        text = bounded.file_text(path, bounded.SETTINGS)
        if any(line.count(".") > _MOST_DOTS for line in text.split("\n")):
            raise Invalid(f"{path}: a line has more than {_MOST_DOTS} dots. Shorten it")
        document = tomllib.loads(text)
    except FileNotFoundError:
        raise Invalid(_CLUSTER, f": {path} does not exist. Create it with a table [clusters.NAME]") from None
    except OSError as error:
        step = "Check the path and its permissions"
        raise Invalid(_CLUSTER, f": cannot read {path}: {error.strerror or error}. {step}") from None
    except UnicodeDecodeError:
        raise Invalid(f"{path}: the file is not UTF-8. Save it as UTF-8") from None
    except RecursionError:
        raise Invalid(f"{path}: the values are nested too deeply. Write only tables [clusters.NAME]") from None
    except tomllib.TOMLDecodeError as error:
        raise Invalid(f"{path} is not TOML: {error}. Correct the file") from None
    except ValueError:
        # tomllib raises ValueError for a very long number, because Python refuses to convert it.
        raise Invalid(f"{path}: a number is too long. Values must be strings") from None
    for key in document:
        if key != "clusters":
            raise Invalid(f"{path}: {key!r} is not a valid key. Write each cluster as a table [clusters.NAME]")
    clusters = document.get("clusters", {})
    if not isinstance(clusters, dict):
        raise Invalid(f"{path}: 'clusters' must be a table. Write each cluster as a table [clusters.NAME]")
    return clusters


def _check(entry: object, where: str) -> None:
    if not isinstance(entry, dict):
        raise Invalid(f"{where} is not a table. Write each cluster as a table [clusters.NAME]")
    for key, value in entry.items():
        if key not in _KEYS:
            if _SECRET.search(key):
                raise Invalid(
                    f"{where}: {key!r}: this file must not hold secrets. "
                    f"Put them into a login file ({', '.join(FILES)}), and run chmod 600 on it"
                )
            raise Invalid(f"{where}: {key!r} is not a valid key. Valid keys: {', '.join(_KEYS)}")
        if key == CONFIRM:
            if not isinstance(value, bool):
                raise Invalid(f"{where}: {key} must be true or false, without quotes")
            continue
        if not isinstance(value, str) or not value:
            raise Invalid(f"{where}: {key} must be a non-empty string in quotes")
    if len(entry.keys() & set(ADDRESSES)) != 1:
        raise Invalid(f"{where} needs either bootstrap-server or zookeeper. To use both, define two clusters")
    if entry.keys() >= set(METRICS):
        raise Invalid(f"{where}: {' and '.join(METRICS)} are two sources of the same metrics. Keep one of them")
    for key in entry:
        if key.startswith("zk-") and "zookeeper" not in entry:
            raise Invalid(f"{where}: {key} is valid only with zookeeper. Remove {key}")


def _placed(key: str, value: str, folder: Path, where: str) -> str:
    if key not in FILES:
        return value
    try:
        return str(folder / Path(value).expanduser())
    except RuntimeError:
        user = value.partition("/")[0]
        raise Invalid(f"{where}: {key}: the home folder {user} is unknown. Write an absolute path") from None
