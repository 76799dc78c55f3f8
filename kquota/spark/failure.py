"""A failure of Spark in one line: problem, cause and next step. The stack trace of the JVM is kept in `__cause__`."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Final

from kquota.errors import KquotaError, Refused, Unreachable
from kquota.spark.engine import Engine
from kquota.spark.jvm import MORE_MEMORY, Jvm

_ROOM: Final = (
    "Spark's temporary files are in TMPDIR (default /tmp), or on the workers of a Spark cluster. "
    "Set TMPDIR to a folder with more space, or free space on the workers",
)
_LIMIT: Final = (
    "Spark's temporary files, in TMPDIR (default /tmp), exceed the maximum file size. "
    "Raise this limit with `ulimit -f unlimited`",
)
_VERSIONS: Final = (
    "The cluster's Spark and the local PySpark have different versions. Install the cluster's version locally",
)
_ADVICE: Final[Mapping[str, tuple[str, ...]]] = {
    "No space left on device": _ROOM,
    "File too large": _LIMIT,
    "Disk quota exceeded": _ROOM,
    "OutOfMemoryError": MORE_MEMORY,
    "SparkOutOfMemoryError": MORE_MEMORY,
    "serialVersionUID": _VERSIONS,
    "InvalidClassException": _VERSIONS,
}
_ROOM_ON_A_SERVER: Final = (
    "The temporary files are on the machines of the Spark Connect server. Free space there, or change spark.local.dir "
    "of the server",
)
_LIMIT_ON_A_SERVER: Final = (
    "The temporary files of the Spark Connect server exceed the maximum file size. Start the server with a higher "
    "`ulimit -f`",
)
_MEMORY_OF_A_SERVER: Final = (
    "Start the Spark Connect server with more memory (spark.driver.memory, spark.executor.memory)",
)
_ADVICE_FOR_A_SERVER: Final[Mapping[str, tuple[str, ...]]] = {
    **_ADVICE,
    "No space left on device": _ROOM_ON_A_SERVER,
    "File too large": _LIMIT_ON_A_SERVER,
    "Disk quota exceeded": _ROOM_ON_A_SERVER,
    "OutOfMemoryError": _MEMORY_OF_A_SERVER,
    "SparkOutOfMemoryError": _MEMORY_OF_A_SERVER,
}
"""The advice for Spark Connect. This machine has neither the memory nor the temporary files of the job."""


@contextlib.contextmanager
def in_one_line(jvm: Jvm | None, engine: Engine) -> Iterator[None]:
    """Translate the errors of a failed Spark job into Refused, or into Unreachable if the server no longer answers.

    An error caused by Ctrl-C becomes KeyboardInterrupt.
    """
    try:
        yield
    except Exception as error:
        # `_errors` imports PySpark late, because the circular imports of PySpark fail if two threads run them at once.
        if isinstance(error, KquotaError) or not isinstance(error, _errors()):
            raise
        if _interrupted(error):
            raise KeyboardInterrupt from error
        raise _as_kquota_error(error, jvm, engine) from error


def _interrupted(error: BaseException | None) -> bool:
    """Return True if Ctrl-C caused the error. After Ctrl-C, an answer of the JVM is left unread, so the next request
    fails.
    """
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _as_kquota_error(error: Exception, jvm: Jvm | None, engine: Engine) -> KquotaError:
    from pyspark.errors import PySparkException

    text = str(error)
    ending = jvm.ended() if jvm is not None and not isinstance(error, PySparkException) else None
    if ending is not None:
        return Refused("Spark's JVM ended: ", *ending, ". Nothing was written")
    if engine.remote is not None and "UNAVAILABLE" in text:
        return Unreachable(f"the Spark Connect server {engine.name} no longer answers. Nothing was written")
    known = _ADVICE if engine.remote is None else _ADVICE_FOR_A_SERVER
    advice = next(((". ", *advice) for mark, advice in known.items() if mark in text), ())
    return Refused(f"Spark could not finish: {cause(_details(error) or text)}", *advice, ". Nothing was written")


def _details(error: Exception) -> str | None:
    """Return the message of the Spark Connect server in a gRPC error. None for another error."""
    details = getattr(error, "details", None)
    text = details() if callable(details) else None
    return text if isinstance(text, str) else None


def answered() -> tuple[type[Exception], ...]:
    """Return the types of exceptions that Spark raises if it rejects a request."""
    from pyspark.errors import PySparkException

    with contextlib.suppress(ImportError):
        from py4j.protocol import Py4JJavaError

        return PySparkException, Py4JJavaError
    return (PySparkException,)


def _errors() -> tuple[type[Exception], ...]:
    from pyspark.errors import PySparkException

    found: list[type[Exception]] = [PySparkException, ConnectionError]
    for module, name in (("py4j.protocol", "Py4JError"), ("grpc", "RpcError")):
        with contextlib.suppress(ImportError):
            found.append(getattr(importlib.import_module(module), name))
    return tuple(found)


def cause(text: str) -> str:
    """Return the error of a Python worker, otherwise the innermost "Caused by" of a stack trace, otherwise the first
    line. For blank text, return `no reason was reported`.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    if (python := _python(lines)) is not None:
        return python
    return (causes or lines or ["no reason was reported"])[-1 if causes else 0]


def _python(lines: Sequence[str]) -> str | None:
    """Return the last line of the last Python traceback, before the SQLSTATE and Java's frames. None without a
    traceback.
    """
    begins = [number for number, line in enumerate(lines) if line.endswith("Traceback (most recent call last):")]
    after = lines[begins[-1] + 1 :] if begins else ()
    raised = list(takewhile(lambda line: not line.startswith(("SQLSTATE:", "at ")), after))
    return raised[-1] if raised else None
