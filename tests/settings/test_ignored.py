"""Tables of stored texts, refused values and warnings."""

from __future__ import annotations

import contextlib
import re
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.entity_types import CLIENT_METRICS
from kquota.errors import Invalid, Refused
from kquota.settings.actions import must_exist
from kquota.settings.change import ConfigChange
from kquota.settings.ignored import must_take_effect, value
from kquota.settings.rates import in_force, stored_rates
from kquota.settings.resource import BROKERS, TOPICS, Entry, Resource, ResourceKind, Synonym
from kquota.settings.throttled_lists import throttled_replicas
from kquota.settings.zookeeper_values import is_password, must_be_sound
from kquota.terms import (
    DEFAULT,
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    LOG_DIR_RATE,
    REMOTE_RATES,
    Default,
)

TOPIC = Resource(kind=TOPICS, name="t")
BROKER = Resource(kind=BROKERS, name="1")
DEFAULT_BROKER = Resource(kind=BROKERS, name=DEFAULT)

STORED = {
    "a rate with a unit": (BROKER, LEADER_RATE, "10MB/s", "10000000"),
    "a bare rate is Kafka's bytes per second": (BROKER, FOLLOWER_RATE, "10000", "10000"),
    "a rate to remote storage": (DEFAULT_BROKER, REMOTE_RATES[0], "20MB/s", "20000000"),
    "a rate from remote storage": (BROKER, REMOTE_RATES[1], "1Gbit/s", "125000000"),
    "bits": (DEFAULT_BROKER, LOG_DIR_RATE, "400Mbit/s", "50000000"),
    "no throttle at all": (BROKER, LEADER_RATE, "9223372036854775807", "9223372036854775807"),
    "a list": (TOPIC, LEADER_REPLICAS, "0:1,1:2", "0:1,1:2"),
    "a list with blanks": (TOPIC, FOLLOWER_REPLICAS, " 0:1 , 1:2", "0:1,1:2"),
    "a comma at the end, as Kafka takes it": (TOPIC, LEADER_REPLICAS, "0:1,", "0:1"),
    "empty entries": (TOPIC, LEADER_REPLICAS, ",0:1,,1:2,", "0:1,1:2"),
    "every replica": (TOPIC, LEADER_REPLICAS, " * ", "*"),
    "every other value is the broker's to judge": (TOPIC, "cleanup.policy", " compact, delete", " compact, delete"),
    "also an empty one": (TOPIC, "cleanup.policy", "", ""),
    "and an unknown key": (BROKER, "nobody.knows", "-1", "-1"),
}


@pytest.mark.parametrize(("resource", "key", "text", "stored"), STORED.values(), ids=STORED.keys())
def test_stored(resource: Resource, key: str, text: str, stored: str) -> None:
    assert value(resource, key, text) == stored


REFUSED = {
    "a list on a broker": (BROKER, LEADER_REPLICAS, "0:1", "a topic config"),
    "a list on the default of all brokers": (DEFAULT_BROKER, FOLLOWER_REPLICAS, "*", "a topic config"),
    "a rate on a topic": (TOPIC, LEADER_RATE, "5", "a broker config"),
    "the log dirs' rate on a topic": (TOPIC, LOG_DIR_RATE, "5", "a broker config"),
    "a rate to remote storage on a topic": (TOPIC, REMOTE_RATES[0], "5MB/s", "a broker config"),
    "a rate to remote storage in an unknown unit": (BROKER, REMOTE_RATES[0], "10Mb/s", "bit or byte"),
    "KIP-73's draft": (TOPIC, LEADER_REPLICAS, "0:1,0-2", "'0-2' has the form of KIP-73's draft.*0:2"),
    "no broker": (TOPIC, LEADER_REPLICAS, "0:", "'0:' is not partition:broker"),
    "a name": (TOPIC, LEADER_REPLICAS, "all", "'all' is not partition:broker"),
    "nothing but commas": (TOPIC, LEADER_REPLICAS, " ,,", "is empty"),
    "a negative broker": (TOPIC, LEADER_REPLICAS, "0:-1", "'0:-1' is not partition:broker"),
    "more than a broker's id": (TOPIC, LEADER_REPLICAS, "0:2147483648", "with numbers up to"),
    "more digits than Python reads": (TOPIC, LEADER_REPLICAS, "1" * 5_000 + ":1", "not partition:broker"),
    "digits of another script": (TOPIC, LEADER_REPLICAS, "٠:١", "not partition:broker"),
    "an empty list": (TOPIC, LEADER_REPLICAS, "", "is empty"),
    "every replica and more": (TOPIC, LEADER_REPLICAS, "*,0:1", "must be the only entry"),
    "an entry twice": (TOPIC, LEADER_REPLICAS, "0:1,0:2,0:1", "0:1 is listed twice"),
    "a list that no broker can hold": (TOPIC, LEADER_REPLICAS, ",".join(f"{i}:1" for i in range(6_000)), "32,767"),
    "any value that no broker can hold": (TOPIC, "cleanup.policy", "ü" * 16_384, "32,768 bytes.*32,767"),
    "what a shell of another locale hands over": (
        TOPIC,
        "retention.ms",
        "\udcff",
        "not valid UTF-8. Check the shell's",
    ),
    "a rate of 0": (BROKER, LEADER_RATE, "0", "at least 1"),
    "a negative rate": (BROKER, LEADER_RATE, "-5", "not a positive number"),
    "part of a byte": (BROKER, LEADER_RATE, "1.5", "not a whole number"),
    "NaN": (BROKER, LEADER_RATE, "NaN", "not a positive number"),
    "infinity": (BROKER, LEADER_RATE, "Infinity", "not a positive number"),
    "an unknown unit": (BROKER, LEADER_RATE, "10Mb/s", "bit or byte"),
    "more than a long": (BROKER, LEADER_RATE, "9223372036854775808", r"must be at most 2\^63 - 1 bytes per second"),
    "an empty rate": (BROKER, LEADER_RATE, "", "not a positive number"),
}


@pytest.mark.parametrize(("resource", "key", "text", "why"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(resource: Resource, key: str, text: str, why: str) -> None:
    with pytest.raises(Invalid, match=why) as told:
        value(resource, key, text)
    assert key in str(told.value)


def test_a_long_list_with_a_repeated_entry_takes_linear_time() -> None:
    text = ",".join([*(f"{number}:1" for number in range(100_000)), "99999:1"])
    begun = time.process_time()
    with pytest.raises(Invalid, match="99999:1 is listed twice"):
        throttled_replicas(LEADER_REPLICAS, text)
    assert time.process_time() - begun < 5


@given(st.lists(st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1)), min_size=1, unique=True))
def test_a_valid_list_is_stored_unchanged(replicas: list[tuple[int, int]]) -> None:
    text = ",".join(f"{partition}:{broker}" for partition, broker in replicas)
    assert throttled_replicas(LEADER_REPLICAS, text) == text
    assert throttled_replicas(LEADER_REPLICAS, text.replace(",", " , ")) == text


EFFECT = {
    "the default's rate before 3.9": (DEFAULT_BROKER, LEADER_RATE, "5", (3, 8), Refused),
    "long before": (DEFAULT_BROKER, LOG_DIR_RATE, "5", (2, 8), Refused),
    "from 3.9": (DEFAULT_BROKER, LEADER_RATE, "5", (3, 9), None),
    "in 4": (DEFAULT_BROKER, LEADER_RATE, "5", (4, 3), None),
    "a broker's own rate": (BROKER, LEADER_RATE, "5", (2, 8), None),
    "where the release is not known": (DEFAULT_BROKER, FOLLOWER_RATE, "5", None, "10190.*is unknown. Set.*each broker"),
    "another config of the default": (DEFAULT_BROKER, "log.cleaner.threads", "5", (2, 8), None),
    "the remote rates of the default": (DEFAULT_BROKER, REMOTE_RATES[1], "5", (3, 9), None),
    "every replica": (TOPIC, FOLLOWER_REPLICAS, "*", (4, 3), "every replica.*out-of-sync"),
    "some replicas": (TOPIC, FOLLOWER_REPLICAS, "0:1", (4, 3), None),
}


def test_remote_rates_need_kafka_39() -> None:
    with pytest.raises(Refused, match=r"no effect before Kafka 3.9 \(KIP-956\), and the brokers run 3.8. N"):
        must_take_effect(ConfigChange(resource=BROKER, add={REMOTE_RATES[0]: "5"}), (3, 8))


@pytest.mark.parametrize(("resource", "key", "text", "release", "outcome"), EFFECT.values(), ids=EFFECT.keys())
def test_values_without_effect_cause_a_warning(
    resource: Resource, key: str, text: str, release: tuple[int, ...] | None, outcome: type[Refused] | str | None
) -> None:
    change = ConfigChange(resource=resource, add={key: text})
    if outcome is Refused:
        with pytest.raises(Refused, match=r"KAFKA-10190.*Nothing was written"):
            must_take_effect(change, release)
    elif outcome is None:
        assert must_take_effect(change, release) == ()
    else:
        (warning,) = must_take_effect(change, release)
        assert isinstance(outcome, str)
        assert re.search(outcome, warning)


@pytest.mark.parametrize("release", [(2, 8), (3, 9), None])
def test_deleting_a_value_is_never_refused(release: tuple[int, ...] | None) -> None:
    assert must_take_effect(ConfigChange(resource=DEFAULT_BROKER, delete=(LEADER_RATE,)), release) == ()


def test_a_deleted_rate_that_a_broker_keeps_causes_a_warning() -> None:
    change = ConfigChange(resource=BROKER, delete=(LEADER_RATE, "log.cleaner.threads"))
    (warning,) = must_take_effect(change, (2, 4))
    assert f"set {LEADER_RATE}=9223372036854775807, and then delete it" in warning
    assert must_take_effect(change, (2, 5)) == ()


@pytest.mark.parametrize(
    ("key", "source", "release", "expected"),
    [
        (LEADER_RATE, "DYNAMIC_DEFAULT_BROKER_CONFIG", (2, 8), False),
        (LEADER_RATE, "DYNAMIC_DEFAULT_BROKER_CONFIG", (3, 9), True),
        (LEADER_RATE, "DYNAMIC_DEFAULT_BROKER_CONFIG", None, False),
        (LEADER_RATE, "DYNAMIC_BROKER_CONFIG", (2, 8), True),
        (LEADER_RATE, "STATIC_BROKER_CONFIG", (4, 3), False),
        ("num.io.threads", "STATIC_BROKER_CONFIG", (2, 8), True),
        ("log.cleaner.threads", "DYNAMIC_DEFAULT_BROKER_CONFIG", (2, 8), True),
    ],
)
def test_a_reported_value_is_in_force(key: str, source: str, release: tuple[int, ...] | None, expected: bool) -> None:
    assert in_force(Entry(key=key, value="5", source=source, dynamic=False), release) is expected


def test_only_rates_with_a_value_and_a_source_are_stored_rates() -> None:
    """Kafka 4.3.1 still reports a deleted rate of a broker, without synonyms."""
    source = (Synonym(source="DYNAMIC_BROKER_CONFIG", key=LEADER_RATE, value="5"),)
    stored = Entry(key=LEADER_RATE, value="5", source="DYNAMIC_BROKER_CONFIG", dynamic=True, synonyms=source)
    deleted = replace(stored, key=FOLLOWER_RATE, synonyms=())
    others = replace(stored, key="log.cleaner.threads"), replace(stored, key=LOG_DIR_RATE, value=None)
    assert stored_rates([stored, deleted, *others], None).keys() == {LEADER_RATE}


@pytest.mark.parametrize(
    ("kind", "release", "exists"),
    [
        (CLIENT_METRICS, (3, 6), False),
        (CLIENT_METRICS, (3, 7), True),
        (CLIENT_METRICS, (4, 3), True),
        (CLIENT_METRICS, None, True),
        (TOPICS, (2, 0), True),
    ],
)
def test_a_kind_of_resource_needs_a_release(kind: ResourceKind, release: tuple[int, ...] | None, exists: bool) -> None:
    with contextlib.nullcontext() if exists else pytest.raises(Refused):
        must_exist(kind, release)


NAMES = {
    "a topic": (TOPICS, "a.b_c-D9", True),
    "249 characters": (TOPICS, "x" * 249, True),
    "250 characters": (TOPICS, "x" * 250, False),
    "a path": (TOPICS, "../x", False),
    "here": (TOPICS, ".", False),
    "above": (TOPICS, "..", False),
    "nothing": (TOPICS, "", False),
    "an escape": (TOPICS, "a\x1b[31m", False),
    "a newline at the end": (TOPICS, "a\n", False),
    "the default topic": (TOPICS, DEFAULT, False),
    "a broker": (BROKERS, "0", True),
    "the largest id": (BROKERS, "2147483647", True),
    "one more": (BROKERS, "2147483648", False),
    "a zero in front": (BROKERS, "01", False),
    "a sign": (BROKERS, "-1", False),
    "a word": (BROKERS, "one", False),
    "the wire's word for the default": (BROKERS, "<default>", False),
    "no broker": (BROKERS, "", False),
    "the default broker": (BROKERS, DEFAULT, True),
}


@pytest.mark.parametrize(("kind", "name", "legal"), NAMES.values(), ids=NAMES.keys())
def test_names(kind: ResourceKind, name: str | Default, legal: bool) -> None:
    if legal:
        assert Resource(kind=kind, name=name).name == name
    else:
        with pytest.raises(Invalid):
            Resource(kind=kind, name=name)


UNCHECKED = {
    "a broker's rate": (BROKER, LEADER_RATE, "5", None),
    "with a unit, which no broker knows": (BROKER, LEADER_RATE, "5MB/s", "not in the form that Kafka stores"),
    "a broker's other config": (BROKER, "log.cleaner.threads", "5", "a running broker must check"),
    "a topic's config": (TOPIC, "retention.ms", "-1", None),
    "no number": (TOPIC, "retention.ms", "x", "is not a valid value"),
    "too small": (TOPIC, "retention.ms", "-2", "is not a valid value"),
    "too large": (TOPIC, "segment.bytes", "2147483648", "is not a valid value"),
    "a part": (TOPIC, "segment.ms", "1.5", "is not a valid value"),
    "a list": (TOPIC, "cleanup.policy", "compact, delete", None),
    "no policy": (TOPIC, "cleanup.policy", "shred", "is not a valid value"),
    "a ratio": (TOPIC, "min.cleanable.dirty.ratio", "0.5", None),
    "more than all": (TOPIC, "min.cleanable.dirty.ratio", "1.5", "is not a valid value"),
    "not a number": (TOPIC, "min.cleanable.dirty.ratio", "NaN", "is not a valid value"),
    "a word": (TOPIC, "preallocate", "yes", "is not a valid value"),
    "of some releases only": (TOPIC, "remote.storage.enable", "true", "not a topic config of every Kafka release"),
    "a slip": (TOPIC, "retention.mss", "5", "not a topic config of every Kafka release"),
    "a throttled list": (TOPIC, LEADER_REPLICAS, "0:1", None),
    "KIP-73's draft": (TOPIC, LEADER_REPLICAS, "0-1", "draft"),
}


@pytest.mark.parametrize(("resource", "key", "text", "why"), UNCHECKED.values(), ids=UNCHECKED.keys())
def test_values_that_zookeeper_would_accept(resource: Resource, key: str, text: str, why: str | None) -> None:
    change = ConfigChange(resource=resource, add={key: text})
    if why is None:
        must_be_sound(change)
    else:
        with pytest.raises(Invalid, match=why):
            must_be_sound(change)


@pytest.mark.parametrize("key", ["log.cleaner.threads", LEADER_RATE, "num.io.threads", "ssl.keystore.location"])
def test_no_secret(key: str) -> None:
    assert not is_password(key)


# As a real 3.9.1 broker reports them.
@pytest.mark.parametrize(
    "key",
    [
        "delegation.token.secret.key",
        "password.encoder.secret",
        "listener.name.external.sasl.jaas.config",
        "listener.name.external.scram-sha-256.sasl.jaas.config",
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.truststore.certificates",
        "listener.name.internal.ssl.truststore.password",
    ],
)
def test_secrets(key: str) -> None:
    assert is_password(key)
