"""The place where a job runs: the JVM of this command, a cluster with the driver on this machine, or a Spark Connect
server.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from kquota.errors import Invalid, Parameter

EMBEDDED_MASTER: Final = "local[*]"
MEMORY: Final = "spark.driver.memory"
_MASTER: Final = Parameter("spark_master")
_REMOTE: Final = Parameter("spark_remote")
_CONF: Final = Parameter("conf")
_OURS: Final = {
    "spark.master": ("Use ", _MASTER),
    "spark.remote": ("Use ", _REMOTE),
    "spark.submit.deployMode": ("The driver always runs on this machine",),
    "spark.driver.extraClassPath": ("Use spark.jars or spark.jars.packages",),
    "spark.driver.extraJavaOptions": ("kquota starts the JVM itself. Set JDK_JAVA_OPTIONS in the environment",),
    "spark.local.dir": ("kquota uses a temporary folder for each command. Set TMPDIR to use another place",),
}
_FIXED_ON_A_SERVER: Final = (
    *("spark.driver.", "spark.executor.", "spark.jars", "spark.local.", "spark.hadoop."),
    *("spark.master", "spark.submit."),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """The place where a job runs. If `master` and `remote` are None, the job runs in the JVM of this command."""

    master: str | None = None
    """The master in Spark's format, for example `spark://HOST:PORT`."""
    remote: str | None = None
    """The address of a Spark Connect server (`sc://HOST:PORT`)."""
    conf: Mapping[str, str] = field(default_factory=dict)
    """The Spark settings that the operator gave."""
    rehearsal: tuple[str, ...] = ()
    """The arguments, given by `cli`, of the kquota command that `archive` may run after the job to create the archive
    of Spark's classes. Empty if there is no such command.
    """

    @property
    def local(self) -> bool:
        """True if the work runs on this machine, in the JVM of this command."""
        return self.remote is None and (self.master or EMBEDDED_MASTER).partition("[")[0] == "local"

    @property
    def name(self) -> str:
        """The name for messages, without the parameters after a server's address, because they can contain a token."""
        return self.master or EMBEDDED_MASTER if self.remote is None else self.remote.partition(";")[0].rstrip("/")


EMBEDDED: Final = Engine()


def engine(master: str | None, remote: str | None, conf: Iterable[str]) -> Engine:
    """Return the engine that the options name.

    Raises Invalid for two engines, an invalid engine, and a setting that is invalid, repeated or fixed.
    """
    if master is not None and remote is not None:
        raise Invalid("give ", _MASTER, " or ", _REMOTE, ", not both")
    if master not in (None, "yarn", "local") and not master.startswith(("spark://", "k8s://", "local[")):
        raise Invalid(_MASTER, f" {master!r}: not a Spark master. Write spark://HOST:PORT, yarn, k8s://URL or local[N]")
    if remote is not None and not remote.startswith("sc://"):
        raise Invalid(_REMOTE, f" {remote!r}: not a Spark Connect server. Write sc://HOST:PORT")
    settings: dict[str, str] = {}
    for text in conf:
        key, equals, value = (part.strip() for part in text.partition("="))
        _check(text, key, equals, remote)
        if key in settings:
            raise Invalid(_CONF, f" {text!r}: {key} is given twice. Give each key once")
        settings[key] = value
    return Engine(master=master, remote=remote, conf=settings)


def _check(text: str, key: str, equals: str, remote: str | None) -> None:
    if not equals or not key.startswith("spark."):
        raise Invalid(
            _CONF, f" {text!r}: not a valid Spark setting. Write KEY=VALUE, for example spark.sql.shuffle.partitions=64"
        )
    # The advice in `_OURS` is about the JVM of this machine, so the check for a server comes first.
    if remote is not None and key.startswith(_FIXED_ON_A_SERVER):
        raise Invalid(_CONF, f" {key}: is fixed when a Spark Connect server starts. Set it on the server")
    if key in _OURS:
        raise Invalid(_CONF, f" {key}: cannot be set. ", *_OURS[key])
