"""SCRAM credentials: their keys as Kafka derives them, and what is refused."""

from __future__ import annotations

import base64
import hashlib

import pytest

from kquota.errors import Invalid
from kquota.quota.scram import MECHANISMS, ScramChange, ScramKeys, must_be_iterations, scram_keys
from tests.quota.fake import MemoryPrincipals
from tests.quota.scram_contract import SHA_256, SHA_512, ScramContract

BY_KAFKA = (
    "salt=ZXJ3dXJoZDB2YmQ0bjhzbjV6cmJsdDd6ag==,"
    "stored_key=Rfw3NkTjllbKVUok58KdO1Vr/D0dclDYjJjNAY20MGivgvxR0y0xrWZQWnR2hQvAb8tqnAwe88jC1cemff+JSw==,"
    "server_key=d7xNptDtDM8bgU2duL237N89lg6qHsZwI3DwKIKovUXH1BfHkjm8Nk/yocOIgHycumH1PXxmYCXfPQ61tUrIBA==,"
    "iterations=4096"
)
"""The credential of the password `a` that kafka-configs 3.9.1 wrote to a ZooKeeper."""


class TestFake(ScramContract):
    @pytest.fixture
    def principals(self) -> MemoryPrincipals:
        return MemoryPrincipals()


def test_the_keys_are_those_of_kafkas_tool() -> None:
    salt = base64.b64decode("ZXJ3dXJoZDB2YmQ0bjhzbjV6cmJsdDd6ag==")
    salted = hashlib.pbkdf2_hmac("sha512", b"a", salt, 4096)
    keys = ScramKeys(mechanism=SHA_512, iterations=4096, salt=salt, salted_password=salted)
    assert keys.stored() == BY_KAFKA


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_password_is_salted_with_the_mechanism(mechanism: str) -> None:
    keys = scram_keys(mechanism, 5000, "pässword")
    salted = hashlib.pbkdf2_hmac(MECHANISMS[mechanism].algorithm, "pässword".encode(), keys.salt, 5000)
    assert (keys.salted_password, keys.iterations) == (salted, 5000)
    assert len(keys.salt) >= 16
    assert scram_keys(mechanism, 5000, "pässword").salt != keys.salt


def test_no_repr_shows_a_key() -> None:
    keys = scram_keys(SHA_256, 4096, "secret")
    shown = repr(ScramChange(user="alice", add=(keys,)))
    assert shown == (
        "ScramChange(user='alice', add=(ScramKeys(mechanism='SCRAM-SHA-256', iterations=4096),), delete=())"
    )


@pytest.mark.parametrize(("password", "words"), [("", "empty"), ("a\udcffb", "not valid UTF-8")])
def test_passwords_that_brokers_refuse(password: str, words: str) -> None:
    with pytest.raises(Invalid, match=words) as refused:
        scram_keys(SHA_256, 4096, password)
    assert refused.value.__cause__ is None
    assert "udcff" not in str(refused.value)


@pytest.mark.parametrize(("iterations", "words"), [(4095, "less than the minimum 4096"), (16385, "maximum 16384")])
def test_iterations_that_brokers_refuse(iterations: int, words: str) -> None:
    with pytest.raises(Invalid, match=words):
        must_be_iterations(SHA_256, iterations)


@pytest.mark.parametrize("iterations", [4096, 16384])
def test_iterations_that_brokers_accept(iterations: int) -> None:
    must_be_iterations(SHA_512, iterations)


@pytest.mark.parametrize(
    ("found", "seen"),
    [
        ({}, False),
        ({SHA_256: 4096}, False),
        ({SHA_256: 8192}, True),
        ({SHA_256: None}, True),
        ({SHA_256: 8192, SHA_512: 1}, False),
    ],
)
def test_a_change_is_seen_only_when_all_of_it_is_visible(found: dict[str, int | None], seen: bool) -> None:
    change = ScramChange(user="a", add=(scram_keys(SHA_256, 8192, "secret"),), delete=(SHA_512,))
    assert change.seen(found) is seen
