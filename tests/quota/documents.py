"""Entities and limits of every type, for properties of documents."""

from __future__ import annotations

from hypothesis import strategies as st

from kquota.quota.entity import Entity, Name
from kquota.terms import (
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    DEFAULT,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
)

AWKWARD = [
    *("<default>", "default", "default-user", "default-client", "clients", "users", "version", "producer_byte_rate"),
    *(
        "yes",
        "No",
        "null",
        "~",
        "true",
        "007",
        "1e3",
        "0x1F",
        "1_000",
        ".inf",
        "2026-11-21",
        "12:30:45",
        "1.5",
        "-",
        "?",
    ),
    *(
        "<<",
        "=",
        "*",
        "&a",
        "!!str x",
        "|",
        ">",
        "%TAG",
        "@x",
        "`x",
        "#no",
        "a #b",
        "a: b",
        "a:",
        ":a",
        "- a",
        "[a]",
        "{a}",
    ),
    *(
        " ",
        " a",
        "a ",
        "\t",
        "a\nb",
        "\n",
        "\r\n",
        "nul\0byte",
        "\x1b[31mred",
        "\x7f",
        "\x85",
        "\xa0",
        "\u2028",
        "\ufeff",
    ),
    *("🦊", "ü", "\u202eabc", "\ufffe", "\U000e0001", '"', "'", "\\", '\\"', "'\"", "../../x", "%3Cdefault%3E"),
    *("x" * 250, "x" * 999, "x" * 1_000, "ü\n" * 600, "CN=a b,O=x/ü", "..", "."),
]

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
names: st.SearchStrategy[Name] = st.one_of(st.just(DEFAULT), st.sampled_from(AWKWARD), texts, st.sampled_from("abc"))

entities = st.one_of(
    names.map(lambda name: Entity(user=name)),
    names.map(lambda name: Entity(client_id=name)),
    names.map(lambda name: Entity(ip=name)),
    st.tuples(names, names).map(lambda pair: Entity(user=pair[0], client_id=pair[1])),
)

_whole = st.one_of(
    st.integers(1, 2**53),
    st.integers(1, 9_999).flatmap(
        lambda n: st.sampled_from([n * u for u in (10**3, 10**6, 10**9, 2**10, 2**20, 2**30)])
    ),
    st.just(2**63),
).map(float)
_part = st.floats(min_value=1e-300, max_value=1e300, allow_nan=False)

client_limits = st.fixed_dictionaries(
    {},
    optional={
        PRODUCER_BYTE_RATE: _whole,
        CONSUMER_BYTE_RATE: _whole,
        REQUEST_PERCENTAGE: _part,
        CONTROLLER_MUTATION_RATE: _part,
    },
)
ip_limits = st.fixed_dictionaries({}, optional={CONNECTION_CREATION_RATE: st.integers(1, 2**31 - 1).map(float)})


def limits_of(entity: Entity) -> st.SearchStrategy[dict[str, float]]:
    """Return a strategy for limits that this entity may have, including none."""
    return client_limits if entity.ip is None else ip_limits


@st.composite
def states(draw: st.DrawFn) -> dict[Entity, dict[str, float]]:
    """Draw a state of a cluster: entities with at least one limit."""
    drawn = {entity: draw(limits_of(entity)) for entity in draw(st.lists(entities, max_size=8, unique=True))}
    return {entity: limits for entity, limits in drawn.items() if limits}
