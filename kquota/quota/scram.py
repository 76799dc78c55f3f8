"""SCRAM credentials of users (KIP-554): the mechanisms, and the keys that Kafka stores instead of a password."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kquota.errors import Invalid


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramMechanism:
    """A mechanism: its code in Kafka's protocol, and its hash function."""

    code: int
    algorithm: str


MECHANISMS: Final[Mapping[str, ScramMechanism]] = {
    "SCRAM-SHA-256": ScramMechanism(code=1, algorithm="sha256"),
    "SCRAM-SHA-512": ScramMechanism(code=2, algorithm="sha512"),
}
DEFAULT_ITERATIONS: Final = 4096
"""The number of iterations if the operator gives none, as in kafka-configs."""
FEWEST_ITERATIONS: Final = 4096
MOST_ITERATIONS: Final = 16384
_SALT_BYTES: Final = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramKeys:
    """The keys of one credential. The password cannot be calculated from them, but a client can log in with them, so
    `repr` does not show them.
    """

    mechanism: str
    iterations: int
    salt: bytes = field(repr=False)
    salted_password: bytes = field(repr=False)

    def stored(self) -> str:
        """Return the credential as Kafka stores it in ZooKeeper (ScramCredentialUtils), with the keys of RFC 5802 that
        a broker needs for a login.
        """
        algorithm = MECHANISMS[self.mechanism].algorithm
        client_key = hmac.digest(self.salted_password, b"Client Key", algorithm)
        stored_key = hashlib.new(algorithm, client_key).digest()
        server_key = hmac.digest(self.salted_password, b"Server Key", algorithm)
        salt, stored, server = (base64.b64encode(part).decode() for part in (self.salt, stored_key, server_key))
        return f"salt={salt},stored_key={stored},server_key={server},iterations={self.iterations}"


def scram_keys(mechanism: str, iterations: int, password: str) -> ScramKeys:
    """Derive the keys of a credential from a password, with a new salt. Raises the errors of `must_be_a_password`."""
    must_be_a_password(password)
    salt = os.urandom(_SALT_BYTES)
    salted = hashlib.pbkdf2_hmac(MECHANISMS[mechanism].algorithm, password.encode(), salt, iterations)
    return ScramKeys(mechanism=mechanism, iterations=iterations, salt=salt, salted_password=salted)


def must_be_a_password(password: str) -> None:
    """Raise Invalid for a password that is empty or not valid UTF-8. The message does not contain the password."""
    if not password:
        raise Invalid("the password is empty. Give at least one character")
    try:
        password.encode()
    except UnicodeEncodeError:
        raise Invalid("the password is not valid UTF-8. Check the shell's locale") from None


def must_be_iterations(mechanism: str, iterations: int) -> None:
    """Raise Invalid for a number of iterations that brokers refuse, with Kafka's message if Kafka has one."""
    if iterations < FEWEST_ITERATIONS:
        raise Invalid(f"Iterations {iterations} is less than the minimum {FEWEST_ITERATIONS} required for {mechanism}")
    if iterations > MOST_ITERATIONS:
        raise Invalid(f"Iterations {iterations} is more than the maximum {MOST_ITERATIONS} that brokers accept")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramChange:
    """The credentials to set for one user, and the mechanisms whose credentials are deleted."""

    user: str
    add: tuple[ScramKeys, ...] = ()
    delete: tuple[str, ...] = ()

    def seen(self, found: Mapping[str, int | None]) -> bool:
        """Return True if `found` shows this change. `found` has the iterations of the user's credentials by mechanism.
        Unknown iterations (None) match any number.
        """
        return not set(self.delete) & found.keys() and all(
            keys.mechanism in found and found[keys.mechanism] in (None, keys.iterations) for keys in self.add
        )
