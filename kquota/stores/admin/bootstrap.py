"""The first connection to a cluster: attempts until the deadline, and errors that explain the failure."""

from __future__ import annotations

import ssl
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import kafka.errors as kafka_errors
from kafka.net.selector import NetworkSelector

from kquota.errors import KquotaError, Refused, Unreachable
from kquota.measure import human_duration
from kquota.stores.admin.client import CLOSED, OUT_OF_TIME, Manager, is_closed
from kquota.stores.login import listening
from kquota.stores.login.arguments import ArgumentNames
from kquota.stores.login.listening import addresses

_LOGIN: Final = (
    kafka_errors.SaslAuthenticationFailedError,
    kafka_errors.UnsupportedSaslMechanismError,
    kafka_errors.IllegalSaslStateError,
    ValueError,
)
"""Errors of a failed login. With SCRAM, kafka-python raises ValueError if a broker does not prove its identity."""


def first(
    net: NetworkSelector,
    servers: Sequence[str],
    settings: Mapping[str, Any],
    give_up: float,
    kind: type[Manager],
) -> tuple[Manager, BaseException | None]:
    """Connect to the first of `servers` (at least one) that answers. Return its manager and None.

    If no server answers, return the last manager and the error of the first server. After an error that is probably
    the same on every server, for example a refused login, kquota tries no other server and returns this error. Each
    server gets a share of the time until `give_up` (`time.monotonic`).
    """
    failures: list[BaseException] = []
    while True:
        manager = kind(net, bootstrap_servers=[servers[len(failures)]], **settings)
        left = max(1.0, give_up - time.monotonic())
        failure = _started(net, manager, left / (len(servers) - len(failures)))
        if failure is None or _is_final(failure):
            return manager, failure
        failures.append(failure)
        if len(failures) == len(servers):
            return manager, failures[0]
        manager.close()


def _started(net: NetworkSelector, manager: Manager, seconds: float) -> BaseException | None:
    """Wait at most `seconds` until the server reports the brokers or controllers. Return None, or the error that
    prevented this.
    """

    async def started() -> None:
        done = manager.bootstrap_async(int(seconds * 1000))
        done.add_callback(manager.ended.success)
        done.add_errback(lambda error: manager.ended.is_done or manager.ended.failure(error))
        # kafka-python has no timeout for a handshake that gets no answer.
        await manager.wait_for(manager.ended, int(seconds * 1000))

    try:
        net.run(started)
    except (kafka_errors.KafkaError, KquotaError, ValueError, OSError) as error:
        return manager.failure or error
    finally:
        if not manager.ended.is_done:
            manager.ended.success(None)
    return None


def _is_final(error: BaseException) -> bool:
    """Return True if every other server of the cluster would probably fail in the same way."""
    cause = listening.cause(error)
    return isinstance(error, (KquotaError, *_LOGIN)) or (isinstance(cause, ssl.SSLError) and not is_closed(error))


def failed(
    error: BaseException, bootstrap_server: str, protocol: str, seconds: float, names: ArgumentNames
) -> KquotaError:
    """Return an error that explains why the bootstrap failed and, if known, what the operator must check."""
    option = names.command_config
    where = f"Kafka at {bootstrap_server}"
    if isinstance(error, KquotaError):
        return type(error)(f"{where}: {error}") if isinstance(error, (Refused, Unreachable)) else error
    if isinstance(error, _LOGIN):
        return Refused(f"{where}: {_refused(error, option)}")
    if is_closed(error):
        return Unreachable(f"{where}: {_closed(bootstrap_server, protocol, names)}")
    cause = listening.cause(error)
    if protocol.endswith("SSL") and cause is not None:
        also = "" if isinstance(cause, ssl.SSLCertVerificationError) else "the port, and security.protocol and "
        if words := listening.explained(cause, f"Check {also}the ssl.* properties in {option}"):
            return Unreachable(f"{where}: {words}")
    server = names.server
    if isinstance(error, OUT_OF_TIME):
        return Unreachable(
            f"{where}: no {server} answered within {human_duration(seconds)}. Check that this is the port of a {server}"
        )
    return Unreachable(
        f"{where}: no {server} answered within {human_duration(seconds)} ({phrase(error)}). "
        f"Check {names.bootstrap_server}"
    )


def _closed(bootstrap_server: str, protocol: str, names: ArgumentNames) -> str:
    option = names.command_config
    servers = addresses(bootstrap_server, names.bootstrap_server, option)
    if not protocol.endswith("SSL") and listening.speaks_tls(servers):
        wanted = "SASL_SSL" if protocol.startswith("SASL") else "SSL or SASL_SSL"
        return f"the port speaks TLS, so set security.protocol={wanted} in {option}"
    return f"{CLOSED}. Check the port, and security.protocol ({protocol}) in {option}"


def _refused(error: BaseException, option: str) -> str:
    if isinstance(error, kafka_errors.UnsupportedSaslMechanismError):
        return f"the port does not support this sasl.mechanism. Check the port, and sasl.mechanism in {option}"
    if isinstance(error, kafka_errors.IllegalSaslStateError):
        return f"the port does not accept a login. Check the port, and security.protocol in {option}"
    reason = _message(error).removeprefix("SaslAuthenticationFailedError: ")
    return f"the login was refused ({reason}). Check the sasl.* properties in {option}"


def phrase(error: BaseException) -> str:
    """Return a library's error as one phrase: the name of its class without `Error`, and its message, if any."""
    return f"{type(error).__name__.removesuffix('Error')}{': ' + reason if (reason := _message(error)) else ''}"


def _message(error: BaseException) -> str:
    return ": ".join(str(argument) for argument in error.args)
