"""Named clusters: `config.toml` says where each one is and which files hold its security; never a secret itself."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from kquota import folders
from kquota.errors import Invalid, Parameter

ADDRESSES: Final = ("bootstrap-server", "zookeeper")
FILES: Final = ("command-config", "zk-tls-config-file", "zk-sasl-config-file")
RECORD: Final = "record"
_CLUSTER: Final = Parameter("cluster")
_SECRET: Final = re.compile(r"pass|secret|token|jaas|credential|key(?!tab)", re.IGNORECASE)


def config_file(environment: Mapping[str, str]) -> Path:
    """Where they are: config.toml in kquota's own folder of `environment`."""
    return folders.config(environment) / "config.toml"


def cluster(name: str, environment: Mapping[str, str]) -> dict[str, str]:
    """What `[clusters.NAME]` says: the options' names without their dashes in front, and their values.

    A file stands relative to config.toml. Raises Invalid, naming the file and what is wrong, for anything that is not
    one of `ADDRESSES` and `FILES`, in any cluster, and for a cluster that is not there.
    """
    path = config_file(environment)
    clusters = _clusters(path)
    if name not in clusters:
        known = f"it has {', '.join(sorted(clusters))}" if clusters else "it has none"
        raise Invalid(_CLUSTER, f" {name}: there is no [clusters.{name}] in {path}; {known}")
    for other, entry in clusters.items():
        _check(entry, f"{path}: [clusters.{other}]")
    return {key: _placed(key, value, path.parent) for key, value in clusters[name].items()}


def _clusters(path: Path) -> dict[str, Any]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise Invalid(_CLUSTER, f" needs {path}, which is not there; write [clusters.NAME] into it") from None
    except OSError as error:
        raise Invalid(_CLUSTER, f": cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise Invalid(f"{path} is not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise Invalid(f"{path} is not TOML: {error}") from None
    for key in document:
        if key != "clusters":
            raise Invalid(f"{path}: {key!r} is not known here; write [clusters.NAME]")
    clusters = document.get("clusters", {})
    if not isinstance(clusters, dict):
        raise Invalid(f"{path}: clusters must be tables: [clusters.NAME]")
    return clusters


def _check(entry: object, where: str) -> None:
    if not isinstance(entry, dict):
        raise Invalid(f"{where} must be a table")
    for key, value in entry.items():
        if key not in (*ADDRESSES, *FILES, RECORD):
            if _SECRET.search(key):
                raise Invalid(f"{where}: {key!r}: no secrets here; put them into the file of command-config, chmod 600")
            raise Invalid(f"{where}: {key!r} is not one of {', '.join((*ADDRESSES, *FILES, RECORD))}")
        if not isinstance(value, str) or not value:
            raise Invalid(f"{where}: {key} must be a text that is not empty")
    if len(entry.keys() & set(ADDRESSES)) != 1:
        raise Invalid(f"{where} needs either bootstrap-server or zookeeper; write two clusters for the two ways")
    for key in entry:
        if key.startswith("zk-") and "zookeeper" not in entry:
            raise Invalid(f"{where}: {key} goes with zookeeper")


def _placed(key: str, value: str, folder: Path) -> str:
    return str(folder / Path(value).expanduser()) if key in FILES else value
