"""A document has one exact meaning in both directions. Text without an exact meaning is refused with its position."""

from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kquota.errors import Invalid
from kquota.quota import document_text, yaml_source
from kquota.quota.document import NO_ENTITY, Document, Scope
from kquota.quota.document_text import as_json, read, text, unfit, written
from kquota.quota.entity import Entity
from kquota.quota.limits import Limits, value
from kquota.quota_keys import quotas_of
from kquota.settings.resource import Resource
from kquota.terms import (
    DEFAULT,
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    USERS,
)
from tests.quota.documents import AWKWARD, limits_of, names, states, texts

CLIENT_QUOTAS = quotas_of([USERS])


def has(document: Document) -> dict[Entity, Limits]:
    return {entity: limits for entity, limits in document.limits.items() if limits}


@given(states())
def test_an_exported_document_is_read_back_unchanged(state: dict[Entity, Limits]) -> None:
    exported = text(Document(limits=state))
    assert has(read(exported, "x")) == state
    assert text(Document(limits=has(read(exported, "x")))) == exported


@given(states())
def test_the_json_form_has_the_same_content(state: dict[Entity, Limits]) -> None:
    exported = as_json(Document(limits=state))
    json.loads(exported)
    # YAML cannot write names of more than 1,024 characters in JSON's form.
    if all(len(str(name)) < 900 for entity in state for _, name in entity.parts()):
        assert has(read(exported, "x")) == state


patterns = st.one_of(
    texts.filter(lambda t: ":" not in t),
    texts.map(lambda t: f"user:{t}"),
    texts.map(lambda t: f"ip:{t}"),
    st.sampled_from(["default-user", "default-client", "default-ip", "*", "User:admin"]),
)
scopes = st.lists(patterns, min_size=1, max_size=4).map(lambda some: Scope(patterns=tuple(some)))


@given(st.data(), states(), st.none() | st.just(NO_ENTITY) | scopes, st.just(NO_ENTITY) | scopes)
def test_a_complete_document_is_read_back_unchanged(
    data: st.DataObject, state: dict[Entity, Limits], owns: Scope | None, protect: Scope
) -> None:
    """The document includes named entities without limits."""
    some = data.draw(st.lists(names, max_size=3))
    limits: dict[Entity, Limits] = {Entity(user=name): {} for name in some} | state
    # A user whose client is named is also named.
    limits = {Entity(user=entity.user): {} for entity in state if entity.user is not None} | limits
    document = Document(limits=limits, owns=owns, protect=protect)
    assert read(text(document), "x") == document
    assert text(read(text(document), "x")) == text(document)


@pytest.mark.parametrize("name", AWKWARD, ids=ascii)
def test_every_other_reader_of_yaml_sees_the_same_name(name: str) -> None:
    exported = text(Document(limits={Entity(user=name, client_id=name): {PRODUCER_BYTE_RATE: 1.0}}))
    assert yaml.safe_load(exported) == {"version": 1, "users": {name: {"clients": {name: {PRODUCER_BYTE_RATE: 1}}}}}


@given(st.sampled_from([*CLIENT_QUOTAS, "connection_creation_rate"]), st.data())
def test_a_written_limit_is_read_back_unchanged(key: str, data: st.DataObject) -> None:
    entity = Entity(ip="i") if key == "connection_creation_rate" else Entity(user="u")
    limit = data.draw(limits_of(entity).filter(lambda limits: key in limits))[key]
    assert value(key, written(key, limit)) == limit


@pytest.mark.parametrize(
    ("rate", "shown"),
    {
        1.0: "1",
        999.0: "999",
        1_000.0: "1kB/s",
        1_024.0: "1KiB/s",
        1_500_000.0: "1500kB/s",
        50e6: "50MB/s",
        52_428_800.0: "50MiB/s",
        123_456_789.0: "123456789",
        float(2**63): "9223372036854775807",
    }.items(),
)
def test_a_byte_rate_gets_the_unit_that_leaves_the_fewest_digits(rate: float, shown: str) -> None:
    assert written(PRODUCER_BYTE_RATE, rate) == shown


READ_AS_WRITTEN = {
    "plain text is text": (
        "clients: {007: {}, yes: {}, 1e3: {}, null: {}, ~: {}, 2026-11-21: {}}",
        ["007", "yes", "1e3", "null", "~", "2026-11-21"],
    ),
    "quotes are YAML's": (
        r"""clients: {'it''s': {}, "a\tb": {}, "\u00fc": {}, a b: {}}""",
        ["it's", "a\tb", "ü", "a b"],
    ),
    "an empty mapping is an entity without limits": ("clients:\n  a: {}\n", ["a"]),
    "comments": ("# x\nclients: # y\n  # z\n  a: {} # w\n", ["a"]),
    "Windows' line ends": ("clients:\r\n  a:\r\n    producer_byte_rate: 5\r\n", ["a"]),
    "a key that is longer than YAML's own": (f"clients:\n  ? {'x' * 2000}\n  : {{}}\n", ["x" * 2000]),
}


@pytest.mark.parametrize(("body", "clients"), READ_AS_WRITTEN.values(), ids=READ_AS_WRITTEN)
def test_valid_documents(body: str, clients: list[str]) -> None:
    assert list(read(f"version: 1\n{body}", "x").limits) == [Entity(client_id=name) for name in clients]


def test_units_in_a_whole_document() -> None:
    document = read(
        """
        version: 1
        owns: ["team-*", default-user]
        default-user: {request_percentage: 12.5}
        users:
          alice:
            producer_byte_rate: 50MB/s
            default-client: {consumer_byte_rate: 400Mbit/s}
            clients: {app: {controller_mutation_rate: 2.5}}
          <default>: {request_percentage: 1e2}
        default-ip: {connection_creation_rate: 5}
        """,
        "x",
    )
    assert document.limits == {
        Entity(user=DEFAULT): {"request_percentage": 12.5},
        Entity(user="alice"): {"producer_byte_rate": 50e6},
        Entity(user="alice", client_id=DEFAULT): {"consumer_byte_rate": 50e6},
        Entity(user="alice", client_id="app"): {"controller_mutation_rate": 2.5},
        Entity(user="<default>"): {"request_percentage": 100.0},
        Entity(ip=DEFAULT): {"connection_creation_rate": 5.0},
    }


THROTTLES = {
    Resource(kind="brokers", name=DEFAULT): {LEADER_RATE: "5000000", FOLLOWER_RATE: "9223372036854775807"},
    Resource(kind="brokers", name="10"): {LEADER_RATE: "123"},
    Resource(kind="brokers", name="9"): {},
    Resource(kind="topics", name="yes"): {LEADER_REPLICAS: "*", FOLLOWER_REPLICAS: "0:1,0:2"},
}


def test_replication_throttles_are_read_back_unchanged() -> None:
    document = Document(limits={Entity(user="u"): {PRODUCER_BYTE_RATE: 5.0}}, throttles=THROTTLES)
    assert read(text(document), "x") == read(as_json(document), "x") == document
    assert text(document).endswith(
        "replication-throttles:\n"
        "  default-broker:\n"
        "    follower.replication.throttled.rate: 9223372036854775807\n"
        "    leader.replication.throttled.rate: 5MB/s\n"
        "  brokers:\n"
        '    "9": {}\n'
        '    "10":\n'
        "      leader.replication.throttled.rate: 123\n"
        "  topics:\n"
        '    "yes":\n'
        '      follower.replication.throttled.replicas: "0:1,0:2"\n'
        '      leader.replication.throttled.replicas: "*"\n'
    )


REFUSED_THROTTLES = {
    "an unknown section": ("{default-topic: {}}", "2:25: replication-throttles: unknown key 'default-topic'"),
    "a broker's key on a topic": (f"{{topics: {{t: {{{LEADER_RATE}: 5}}}}}}", "2:38: topic 't': unknown key"),
    "a topic's key on a broker": (f"{{brokers: {{1: {{{LEADER_REPLICAS}: 5}}}}}}", "2:39: broker '1': unknown key"),
    "what no broker should be given": (
        f"{{brokers: {{1: {{{LEADER_RATE}: wrong}}}}}}",
        "2:74: broker '1': leader.replication",
    ),
    "a name that no broker can have": ("{brokers: {one: {}}}", "2:35: The entity name for brokers must be a valid"),
    "a name that no topic can have": ("{topics: {a b: {}}}", "2:34: 'a b' is not a valid topic name"),
    "no value": (
        f"{{brokers: {{1: {{{LEADER_RATE}: }}}}}}",
        "broker '1': leader.replication.throttled.rate has no value",
    ),
}


@given(st.lists(st.text(min_size=1), max_size=3))
def test_sentences_about_unreadable_quotas_are_read_back_unchanged(lines: list[str]) -> None:
    document = Document(limits={}, unreadable=tuple(lines))
    assert read(text(document), "d") == document == read(as_json(document), "d")


@pytest.mark.parametrize(("section", "reason"), REFUSED_THROTTLES.values(), ids=REFUSED_THROTTLES)
def test_invalid_replication_throttles(section: str, reason: str) -> None:
    with pytest.raises(Invalid) as refused:
        read(f"version: 1\nreplication-throttles: {section}", "x")
    assert reason in str(refused.value)


@pytest.mark.parametrize("name", ["\N{GRINNING FACE}", "a\\\N{GRINNING FACE}", "\\ud83d\\ude00", "\\\\ud83d\\ude00"])
def test_json_from_other_programs_is_read(name: str) -> None:
    """Python's own `json.dumps` writes two escapes for each character above U+FFFF."""
    document = json.dumps({"version": 1, "users": {name: {"request_percentage": 5}}})
    assert read(document, "x").limits == {Entity(user=name): {REQUEST_PERCENTAGE: 5.0}}


EXPLODING = "a: &a [x, x]\n" + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True))
REFUSED = {
    "nothing": ("", "1:1: the document is empty"),
    "only a comment": ("# x\n", "the document is empty"),
    "no version": ("users: {}", "1:1: the version is missing"),
    "a later version": ("version: 2", "1:10: version '2' is not supported. This kquota reads version 1"),
    "a list": ("- version: 1", "1:1: the document: must be a mapping"),
    "one word": ("version", "1:1: the document: must be a mapping"),
    "an unknown section": ("version: 1\nuser: {}", "2:1: unknown key 'user'. Valid keys: version, owns, protect, "),
    "an unknown limit": (
        "version: 1\nusers:\n  a:\n    byte_rate: 5",
        "4:5: user 'a': unknown key 'byte_rate'. Valid keys here: producer_byte_rate, ",
    ),
    "an IP's limit for a user": (
        "version: 1\nusers: {a: {connection_creation_rate: 5}}",
        "2:13: user 'a': unknown key",
    ),
    "a user's limit for an IP": ("version: 1\nips: {a: {producer_byte_rate: 5}}", "2:11: ip 'a': unknown key"),
    "clients of a client": ("version: 1\nclients: {a: {clients: {}}}", "2:15: client 'a': unknown key 'clients'"),
    "the default client of a client": (
        "version: 1\nusers: {a: {clients: {b: {default-client: {}}}}}",
        "2:27: user 'a' client 'b': unknown key 'default-client'",
    ),
    "a name twice": ("version: 1\nusers:\n  a: {}\n  'a': {}", "4:3: users: 'a' is listed twice, first on line 3"),
    "a user's client twice": (
        "version: 1\nusers:\n  a:\n    clients:\n      b: {}\n      c: {}\n      b: {}",
        "7:7: user 'a': clients: 'b' is listed twice, first on line 5",
    ),
    "a name twice, with the limits of clients": (
        "version: 1\ndefault-user: {}\nusers:\n  a:\n    clients: {b: {}}\n  c: {}\n  a: {}",
        "7:3: users: 'a' is listed twice, first on line 4",
    ),
    "a limit twice": (
        "version: 1\nusers: {a: {producer_byte_rate: 5, producer_byte_rate: 6}}",
        "2:36: user 'a': 'producer_byte_rate' is listed twice, first on line 2",
    ),
    "a section twice": ("version: 1\nusers: {}\nusers: {}", "3:1: the document: 'users' is listed twice"),
    "an empty name": ("version: 1\nusers: {'': {}}", "2:9: users: the name must not be empty"),
    "a name that is a mapping": ("version: 1\nusers: {{a: b}: {}}", "2:9: users: a key must be text"),
    "a value with the wrong unit": (
        "version: 1\nusers: {a: {producer_byte_rate: 5Mb/s}}",
        "2:33: user 'a': producer_byte_rate '5Mb/s': unknown unit 'Mb'",
    ),
    "parts of a byte": ("version: 1\nusers: {a: {producer_byte_rate: 1.5}}", "2:33: user 'a': producer_byte_rate"),
    "0": ("version: 1\nusers: {a: {producer_byte_rate: 0}}", "at least 1 byte per second"),
    "negative": ("version: 1\nusers: {a: {request_percentage: -1}}", "must be more than 0"),
    "NaN": (
        "version: 1\nusers: {a: {request_percentage: .nan}}",
        "2:33: user 'a': request_percentage=.nan: not a number",
    ),
    "Python's NaN": ("version: 1\nusers: {a: {request_percentage: nan}}", "more than 0 and finite"),
    "infinity": ("version: 1\nusers: {a: {controller_mutation_rate: inf}}", "more than 0 and finite"),
    "no value": (
        "version: 1\nusers:\n  a:\n    producer_byte_rate:\n",
        "4:24: user 'a': producer_byte_rate has no value",
    ),
    "a list as a value": (
        "version: 1\nusers: {a: {producer_byte_rate: [5]}}",
        "2:33: user 'a': producer_byte_rate: must be a single value",
    ),
    "a name without a mapping": (
        "version: 1\nusers:\n  a:\n",
        "3:5: user 'a': must be a mapping (key: value). For an empty mapping",
    ),
    "an anchor": ("version: 1\nusers: &x {}", "2:8: anchors and aliases are not supported"),
    "an alias": ("version: 1\nusers: {a: {}, b: *a}", "2:19: anchors and aliases are not supported"),
    "anchors that explode": (f"version: 1\n{EXPLODING}", "2:1: unknown key 'a'"),
    "anchors that explode among the users": ("version: 1\nusers: &a {a: {}}\nips: {a: *a}", "2:8: anchors and"),
    "a tag": ("version: 1\nusers: {a: {producer_byte_rate: !!int 5}}", "2:33: the tag 'tag:yaml.org,2002:int' is not"),
    "code in a tag": ("version: 1\nusers: !!python/object/apply:os.system [x]", "2:8: the tag"),
    "a merge key": ("version: 1\nusers: {<<: {}}", "2:9: merge keys are not supported"),
    "two documents": ("version: 1\n---\nversion: 1\n", "2:1: a second document begins"),
    "no YAML": ("version: 1\nusers: {a: {}", "3:1: not YAML: did not find expected ',' or '}'"),
    "a tab as indentation": (
        "version: 1\nusers:\n\ta: {}",
        "3:1: not YAML: found character that cannot start any token",
    ),
    "a control character": ("version: 1\n# \x1b[31m\n", r"2:3: the character '\x1b' must be written as an escape"),
    "a pattern of an unknown kind": (
        "version: 1\nowns: ['group:x']",
        "2:8: owns: 'group:x': unknown kind before the colon",
    ),
    "an empty pattern": ("version: 1\nprotect: ['user:']", "2:11: protect: 'user:': the pattern is empty"),
    "too many patterns": (f"version: 1\nowns: [{'a,' * 10_001}]", "2:20008: owns: has more than 10,000 patterns"),
    "too many patterns with a wildcard": (
        f"version: 1\nowns: [{'a*,' * 1_001}]",
        "2:1: owns: has more than 10,000 patterns, or",
    ),
    "patterns that are not a list": ("version: 1\nowns: team-*", "2:7: owns: must be a list"),
    "too long a list of throttled replicas": (
        f"version: 1\nreplication-throttles: {{topics: {{t: {{{LEADER_REPLICAS}: '{'0:1,' * 10_000}'}}}}}}",
        "2:77: topic 't': leader.replication.throttled.replicas: the value is 40,000 bytes long",
    ),
    "a thousand brackets": ("version: 1\nusers: " + "[" * 1000, "2:8: users: must be a mapping"),
}


TOO_MANY = {
    "users": ("version: 1\nusers: {a: {}, b: {}, c: {}}", "2:23: "),
    "a user and its clients": ("version: 1\nusers: {a: {clients: {b: {}, c: {}}}}", "2:30: "),
    "a topic and users": (
        "version: 1\nreplication-throttles: {topics: {t: {}}}\ndefault-user: {}\nusers: {a: {}}",
        "4:9: ",
    ),
    "unreadable quotas": ("version: 1\nunreadable: [a, b, c]", "2:20: "),
}


@pytest.mark.parametrize(("document", "place"), TOO_MANY.values(), ids=TOO_MANY)
def test_a_document_has_a_largest_number_of_entries(document: str, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_text, "_MOST_ENTRIES", 2)
    alone = "If it has `owns`, give each part an `owns` that covers none of the entities of the other parts"
    with pytest.raises(Invalid, match=f"{place}the document has more than 2 entries. Split it. {alone}$"):
        read(document, "x")


@pytest.mark.parametrize(("document", "reason"), REFUSED.values(), ids=REFUSED)
def test_invalid_documents_are_refused_with_the_position(document: str, reason: str) -> None:
    with pytest.raises(Invalid) as refused:
        read(document, "quotas.yaml")
    assert str(refused.value).startswith("quotas.yaml:")
    assert reason in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_document_that_is_too_large_is_not_parsed() -> None:
    with pytest.raises(Invalid, match=r"more than 16 MiB, which is too large .*\. Split it\. If it has `owns`, give"):
        read("#" * (yaml_source.LARGEST + 1), "x")


@given(st.text(max_size=80) | st.text("{}[]:-?&*!|>'\"%@`#,\n\t ab1<", max_size=60))
def test_no_text_breaks_the_reader(anything: str) -> None:
    for document in (anything, f"version: 1\nusers: {anything}", f"version: 1\nusers:\n  a:\n    {anything}"):
        try:
            read(document, "x")
        except Invalid as refused:
            assert str(refused).startswith("x:")


def test_values_that_no_document_may_set_are_exported_and_then_refused() -> None:
    """Such a value is exported, so that an operator sees it, and is never applied by accident."""
    standing = {
        Entity(user="u"): {"request_percentage": float("nan"), PRODUCER_BYTE_RATE: 5.0},
        Entity(ip="i"): {"connection_creation_rate": 0.0},
    }
    assert [str(entity) + key for entity, key in unfit(standing)] == [
        "ip 'i'connection_creation_rate",
        "user 'u'request_percentage",
    ]
    for exported in (text(Document(limits=standing)), as_json(Document(limits=standing))):
        with pytest.raises(Invalid, match=r"x:[0-9]+:[0-9]+: "):
            read(exported, "x")
    json.loads(
        as_json(Document(limits=standing)), parse_constant=lambda constant: pytest.fail(f"{constant} is no JSON")
    )
