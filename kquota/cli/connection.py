"""The options that say which cluster, declared once and given to every command that asks for a `Connection`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Final

import typer


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """The options as the command line gave them; `world.where` says which cluster they mean."""

    bootstrap_server: str | None = None
    zookeeper: str | None = None
    command_config: Path | None = None


OPTIONS: Final[Mapping[str, Any]] = {
    "bootstrap_server": Annotated[
        str | None,
        typer.Option("--bootstrap-server", metavar="HOST:PORT,…", help="Kafka brokers. [env: KQUOTA_BOOTSTRAP_SERVER]"),
    ],
    "zookeeper": Annotated[
        str | None,
        typer.Option("--zookeeper", metavar="HOST:PORT,…[/CHROOT]", help="Kafka's ZooKeeper. [env: KQUOTA_ZOOKEEPER]"),
    ],
    "command_config": Annotated[
        Path | None,
        typer.Option("--command-config", metavar="FILE", help="Java properties with the client's security settings."),
    ],
}
_ON_ZOOKEEPER: Final = ("zookeeper",)


def connected(*, zookeeper: bool = True) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Put the connection options in the place of the command's parameter `connection`.

    Without `zookeeper` the command works through the brokers only, and has no option that speaks of ZooKeeper.
    """

    def decorated(command: Callable[..., int]) -> Callable[..., int]:
        names = [name for name in OPTIONS if zookeeper or name not in _ON_ZOOKEEPER]

        @functools.wraps(command)
        def called(**given: Any) -> int:
            connection = Connection(**{name: given.pop(name) for name in names})
            return command(connection=connection, **given)

        declared = inspect.signature(command, eval_str=True).parameters
        options = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=OPTIONS[name])
            for name in names
        ]
        others = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for n, p in declared.items() if n != "connection"]
        called.__signature__ = inspect.Signature([*options, *others])  # type: ignore[attr-defined]
        called.__annotations__ = {parameter.name: parameter.annotation for parameter in (*options, *others)}
        return called

    return decorated


assert set(OPTIONS) == {field.name for field in fields(Connection)}
