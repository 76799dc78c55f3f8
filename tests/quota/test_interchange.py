"""Documents of other tools: what is written can be read again, except for the losses that are named."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kquota.errors import Invalid
from kquota.quota import rpk, strimzi, terraform
from kquota.quota.document import Document
from kquota.quota.entity import Entity
from kquota.quota.foreign import ForeignText
from kquota.quota.limits import Limits
from kquota.settings.resource import BROKERS, Resource
from kquota.terms import (
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    DEFAULT,
    LEADER_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
)
from tests.quota.documents import states
from tests.quota.hcl import entities_in, ids_in

pytestmark = pytest.mark.unit

Writer = Callable[[Document], ForeignText]
WRITERS: Mapping[str, Writer] = {"strimzi": strimzi.write, "terraform": terraform.write, "rpk": rpk.write}
READERS: Mapping[str, Callable[[str, str], Document]] = {"strimzi": strimzi.read, "rpk": rpk.read}
ODD = [
    "CN=a",
    "a",
    "a.b-c",
    "A",
    "-a",
    "a|b",
    "a:b",
    "entity-default",
    "${x}",
    "$${x}",
    "%{if}",
    "e\u0301",
    "<default>",
]
odd_entities = st.one_of(
    st.sampled_from(ODD).map(lambda name: Entity(user=name)),
    st.sampled_from(ODD).map(lambda name: Entity(client_id=name)),
    st.tuples(st.sampled_from(ODD), st.sampled_from(ODD)).map(lambda pair: Entity(user=pair[0], client_id=pair[1])),
)
valid = st.one_of(
    st.floats(1e-9, 1e18).map(lambda x: {REQUEST_PERCENTAGE: x}),
    st.integers(1, 2**63 - 1).map(lambda x: {PRODUCER_BYTE_RATE: float(x), CONSUMER_BYTE_RATE: 1.0}),
    st.floats(1e-9, 1e9).map(lambda x: {CONTROLLER_MUTATION_RATE: x, REQUEST_PERCENTAGE: 55.0}),
)
odd_documents = st.dictionaries(odd_entities, valid, max_size=6).map(lambda limits: Document(limits=limits))
every_document = st.one_of(states().map(lambda limits: Document(limits=limits)), odd_documents)


def kept(document: Document, found: ForeignText) -> dict[Entity, Limits]:
    lost = {loss.what for loss in found.losses}
    return {entity: dict(limits) for entity, limits in document.limits.items() if str(entity) not in lost}


@pytest.mark.parametrize("form", READERS)
@given(document=every_document)
def test_what_is_written_is_read_again_except_for_the_losses(form: str, document: Document) -> None:
    found = WRITERS[form](document)
    assert READERS[form](found.text, "f").limits == kept(document, found)


@given(document=every_document)
def test_terraform_has_every_quota_except_for_the_losses(document: Document) -> None:
    found = terraform.write(document)
    assert entities_in(found.text) == kept(document, found)
    assert len(ids_in(found.text)) == len(kept(document, found))


@pytest.mark.parametrize("form", WRITERS)
@given(document=every_document)
def test_the_same_quotas_are_written_in_the_same_order(form: str, document: Document) -> None:
    turned = Document(limits=dict(reversed(list(document.limits.items()))), owns=document.owns)
    assert WRITERS[form](turned).text == WRITERS[form](document).text


EVERYTHING = Document(
    limits={
        Entity(user="alice"): {
            PRODUCER_BYTE_RATE: 1048576.0,
            CONSUMER_BYTE_RATE: 2097152.0,
            REQUEST_PERCENTAGE: 55.0,
            CONTROLLER_MUTATION_RATE: 2.5,
        },
        Entity(user="CN=bob"): {REQUEST_PERCENTAGE: 10.0},
        Entity(user=DEFAULT): {PRODUCER_BYTE_RATE: 5e6},
        Entity(user="alice", client_id="etl"): {CONSUMER_BYTE_RATE: 1e6},
        Entity(user=DEFAULT, client_id="etl"): {CONSUMER_BYTE_RATE: 1e6},
        Entity(client_id="etl"): {CONTROLLER_MUTATION_RATE: 10.0},
        Entity(ip="10.0.0.7"): {CONNECTION_CREATION_RATE: 20.0},
    }
)
STRIMZI = """\
---
apiVersion: kafka.strimzi.io/v1
kind: KafkaUser
metadata:
  name: bob
spec:
  authentication:
    type: tls-external
  quotas:
    requestPercentage: 10
---
apiVersion: kafka.strimzi.io/v1
kind: KafkaUser
metadata:
  name: alice
spec:
  quotas:
    producerByteRate: 1048576
    consumerByteRate: 2097152
    requestPercentage: 55
    controllerMutationRate: 2.5
"""


def test_strimzi_holds_users_with_a_name() -> None:
    found = strimzi.write(EVERYTHING)
    assert found.text == STRIMZI
    why = "a KafkaUser can hold only the quotas of one named user"
    assert {(loss.what, loss.why) for loss in found.losses} == {
        (str(entity), why)
        for entity in EVERYTHING.limits
        if entity not in (Entity(user="alice"), Entity(user="CN=bob"))
    }


def test_rpk_holds_every_entity_without_a_default_in_the_shape_of_its_describe_command() -> None:
    """`rpk cluster quotas import` reads <default> as a name, and removes the limits of the default."""
    found = rpk.write(EVERYTHING)
    why = "`rpk cluster quotas import` reads <default> as a name, so it cannot restore a default"
    assert [(loss.what, loss.why) for loss in found.losses] == [
        ("user default", why),
        ("user default client 'etl'", why),
    ]
    quotas = yaml.safe_load(found.text)["quotas"]
    assert len(quotas) == len(EVERYTHING.limits) - len(found.losses)
    assert quotas[0] == {
        "entity": [{"name": "10.0.0.7", "type": "ip"}],
        "values": [{"key": "connection_creation_rate", "values": "20"}],
    }
    assert {
        "entity": [{"name": "etl", "type": "client-id"}, {"name": "alice", "type": "user"}],
        "values": [{"key": "consumer_byte_rate", "values": "1000000"}],
    } in quotas


def test_terraform_has_a_resource_and_an_import_block_for_each_quota() -> None:
    found = terraform.write(EVERYTHING)
    assert found.losses == ()
    assert found.text.startswith(
        'resource "kafka_quota" "ip_10_0_0_7" {\n'
        '  entity_type = "ip"\n'
        '  entity_name = "10.0.0.7"\n'
        "  config = {\n"
        '    "connection_creation_rate" = 20\n'
        "  }\n"
        "}\n\n"
        "import {\n"
        "  to = kafka_quota.ip_10_0_0_7\n"
        '  id = "10.0.0.7|ip"\n'
        "}\n\n"
    )
    assert ids_in(found.text)["kafka_quota_composite.user_client-id_alice_etl"] == "client-id:etl|user:alice"
    assert ids_in(found.text)["kafka_quota_composite.user_client-id_default_etl"] == "client-id:etl|user:entity-default"
    assert ids_in(found.text)["kafka_quota.user_default"] == "entity-default|user"


ONE = {REQUEST_PERCENTAGE: 1.0}


def test_labels_are_unique_also_for_names_that_look_like_numbered_labels() -> None:
    names = ["ä", "ö", "2", "_2", "", "ß"]
    limits = {Entity(user=f"a{name}"): {REQUEST_PERCENTAGE: 5.0} for name in names}
    assert len(ids_in(terraform.write(Document(limits=limits)).text)) == len(names)


LOST: dict[str, tuple[str, Entity, Limits, str]] = {
    "a fraction": ("strimzi", Entity(user="a"), {REQUEST_PERCENTAGE: 12.5}, "requestPercentage must be a whole number"),
    "too large": ("strimzi", Entity(user="a"), {PRODUCER_BYTE_RATE: 2.0**31}, "at most 2147483647, and the limit is "),
    "a name with capitals": ("strimzi", Entity(user="Alice"), {}, "not a valid Kubernetes resource name"),
    "a long name": ("strimzi", Entity(user="x" * 254), {}, "not a valid Kubernetes resource name"),
    "a client-id": ("strimzi", Entity(client_id="a"), {}, "only the quotas of one named user"),
    "no limits": ("terraform", Entity(user="a"), {}, "cannot create a quota without a limit"),
    "a separator": ("terraform", Entity(user="a|b"), {REQUEST_PERCENTAGE: 1.0}, "cannot contain a name with |"),
    "NUL": ("terraform", Entity(user="a\0b"), {REQUEST_PERCENTAGE: 1.0}, "does not accept the character NUL"),
    "another form of Unicode": ("terraform", Entity(user="e\u0301"), {REQUEST_PERCENTAGE: 1.0}, "form NFC"),
    "the name of the default": (
        "terraform",
        Entity(user="entity-default"),
        {REQUEST_PERCENTAGE: 1.0},
        "as the default",
    ),
    "the default of rpk": ("rpk", Entity(client_id=DEFAULT), {REQUEST_PERCENTAGE: 1.0}, "cannot restore a default"),
    "rpk's word for the default": (
        "rpk",
        Entity(user="<default>"),
        {REQUEST_PERCENTAGE: 1.0},
        "no name can be <default>",
    ),
    "NaN": (
        "rpk",
        Entity(user="a"),
        {REQUEST_PERCENTAGE: float("nan")},
        "request_percentage is nan, which is not a valid limit",
    ),
}


@pytest.mark.parametrize(("form", "entity", "limits", "why"), LOST.values(), ids=LOST)
def test_each_loss_is_named(form: str, entity: Entity, limits: Limits, why: str) -> None:
    """The other entities are written."""
    other = Entity(user="other")
    found = WRITERS[form](Document(limits={entity: limits, other: {REQUEST_PERCENTAGE: 5.0}}))
    (loss,) = found.losses
    assert loss.what == str(entity)
    assert why in loss.why
    assert "other" in found.text


def test_two_users_of_one_kafkauser_are_both_named() -> None:
    limits = {REQUEST_PERCENTAGE: 5.0}
    found = strimzi.write(Document(limits={Entity(user="a"): limits, Entity(user="CN=a"): limits}))
    assert [loss.what for loss in found.losses] == ["user 'CN=a'", "user 'a'"]
    assert yaml.safe_load(found.text)["items"] == []


@pytest.mark.parametrize("form", WRITERS)
def test_throttles_and_unreadable_quotas_are_losses(form: str) -> None:
    throttles = {Resource(kind=BROKERS, name="1"): {LEADER_RATE: "5"}}
    found = WRITERS[form](Document(limits={}, throttles=throttles, unreadable=("client-id-prefix 'a': x=1",)))
    throttle, unread = found.losses
    assert throttle.what == "broker '1'"
    assert (unread.what, unread.why) == ("a quota that kquota could not read", "client-id-prefix 'a': x=1")


KAFKA_USERS = """\
# Users of one cluster, as an operator keeps them.
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaUser
metadata:
  name: billing
  namespace: streams
  labels:
    strimzi.io/cluster: payments
  annotations: {}
spec:
  authentication:
    type: tls
  authorization:
    type: simple
    acls:
      - resource: {type: topic, name: invoices, patternType: literal}
        operations: [Read, Describe]
        host: "*"
  quotas:
    producerByteRate: 1048576
    consumerByteRate: 2097152
    requestPercentage: 55
    controllerMutationRate: 10
  template:
    secret: {metadata: {labels: {team: billing}}}
status:
  username: CN=billing
---
apiVersion: kafka.strimzi.io/v1
kind: KafkaUser
metadata: {name: "007"}
spec:
  authentication: {type: scram-sha-512, password: {valueFrom: {secretKeyRef: {name: s, key: k}}}}
  quotas: {controllerMutationRate: 0.5}
---
apiVersion: kafka.strimzi.io/v1
kind: KafkaUser
metadata: {name: without-quotas}
spec: {authentication: {type: tls}}
---
apiVersion: kafka.strimzi.io/v1
kind: KafkaTopic
metadata: {name: invoices}
spec: {partitions: 3}
---
"""


def test_kafkauser_resources_with_every_field() -> None:
    found = strimzi.read(KAFKA_USERS, "f")
    assert found.limits == {
        Entity(user="CN=billing"): {
            PRODUCER_BYTE_RATE: 1048576,
            CONSUMER_BYTE_RATE: 2097152,
            REQUEST_PERCENTAGE: 55,
            CONTROLLER_MUTATION_RATE: 10,
        },
        Entity(user="007"): {CONTROLLER_MUTATION_RATE: 0.5},
    }
    assert found.unreadable == ("a resource of kind KafkaTopic (kafka.strimzi.io/v1)",)


def test_a_list_of_kubectl() -> None:
    listed = [one for one in yaml.safe_load_all(KAFKA_USERS) if one]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": listed, "metadata": {"resourceVersion": ""}})
    assert strimzi.read(text, "f") == strimzi.read(KAFKA_USERS, "f")
    nested = {"apiVersion": "v1", "kind": "List", "items": [json.loads(text)]}
    assert strimzi.read(json.dumps(nested), "f").limits == strimzi.read(KAFKA_USERS, "f").limits


RPK = """\
quotas:
    - entity:
        - name: mobile-
          type: client-id-prefix
      values:
        - key: producer_byte_rate
          values: "140000"
    - entity:
        - name: <default>
          type: client-id
      values:
        - key: consumer_byte_rate
          values: "1048576.0"
        - key: producer_byte_rate
          values: 2e+06
    - entity:
        - name: etl
          type: client-id
        - name: alice
          type: user
      values:
        - key: controller_mutation_rate
          values: "2.5"
"""


def test_the_output_of_rpk_with_every_field() -> None:
    found = rpk.read(RPK, "f")
    assert found.limits == {
        Entity(client_id=DEFAULT): {CONSUMER_BYTE_RATE: 1048576, PRODUCER_BYTE_RATE: 2e6},
        Entity(user="alice", client_id="etl"): {CONTROLLER_MUTATION_RATE: 2.5},
    }
    assert found.unreadable == ("client-id-prefix 'mobile-': Kafka does not have this entity type",)
    assert rpk.read(json.dumps(yaml.safe_load(RPK)), "f") == found


@pytest.mark.parametrize("text", ["{}\n", "quotas: []\n"], ids=["of rpk", "of an operator"])
def test_the_output_of_rpk_without_quotas(text: str) -> None:
    """rpk leaves out the key `quotas` if it has no items (`omitempty` in describe.go)."""
    assert rpk.read(text, "f") == Document(limits={})


USER = "apiVersion: kafka.strimzi.io/v1\nkind: KafkaUser\nmetadata: {name: a}\nspec:\n  "
QUOTA = "quotas:\n- entity: [{name: a, type: user}]\n  values: [{key: "
WRONG: dict[str, tuple[str, str, str]] = {
    "no name": ("strimzi", USER.replace("{name: a}", "{}"), "f:3:11: name is missing"),
    "an empty name": (
        "strimzi",
        f"{USER}quotas: {{}}".replace("{name: a}", '{name: ""}'),
        "f:1:1: users: the name must not be empty",
    ),
    "an empty name with a certificate": (
        "strimzi",
        f"{USER}authentication: {{type: tls}}\n  quotas: {{}}".replace("{name: a}", '{name: ""}'),
        "f:1:1: users: the name must not be empty",
    ),
    "a long name": (
        "strimzi",
        f"{USER}quotas: {{}}".replace("{name: a}", f"{{name: {'x' * 40_000}}}"),
        "f:1:1: users: the name 'xxxxxxxxxxxxxxxxxxxx'",
    ),
    "no kind": ("strimzi", "a: b", "f:1:1: kind is missing"),
    "a list": ("strimzi", "[a]", "f:1:1: a resource: must be a mapping"),
    "nothing": ("strimzi", "---\n---\n", "the document is empty"),
    "an unknown quota": ("strimzi", f"{USER}quotas: {{producerRate: 1}}", "f:5:26: KafkaUser 'a': unknown key"),
    "a unit": ("strimzi", f"{USER}quotas: {{producerByteRate: 1MB/s}}", "producer_byte_rate=1MB/s: not a number"),
    "0": ("strimzi", f"{USER}quotas: {{requestPercentage: 0}}", "must be more than 0"),
    "a fraction of a byte": ("strimzi", f"{USER}quotas: {{producerByteRate: 1.5}}", "f:5:30: KafkaUser 'a': "),
    "twice": ("strimzi", f"{USER}quotas: {{}}\n---\n{USER}quotas: {{}}", "user 'a' is listed twice"),
    "twice in a mapping": ("strimzi", "kind: a\nkind: b", "f:2:1: 'kind' is listed twice"),
    "quotas that are not a mapping": ("strimzi", f"{USER}quotas: 5", "must be a mapping"),
    "an anchor": ("strimzi", "a: &b c", "anchors and aliases are not supported"),
    "too deep": ("strimzi", "[" * 60 + "]" * 60, "the document has more than 50 levels of nesting"),
    "no number": ("strimzi", f"{USER}quotas: {{requestPercentage: null}}", "must be a single value"),
    "an endless number": ("rpk", f"{QUOTA}request_percentage, values: {'9' * 500}}}]", "not a number"),
    "another key": ("rpk", "quota: []", "f:1:8: unknown key 'quota'. Valid keys: quotas"),
    "two documents": (
        "rpk",
        "quotas: []\n---\nquotas: []",
        "a second document begins here, but a file can contain only one document",
    ),
    "a misspelt field": ("rpk", "quotas: [{entities: [], values: []}]", "must have exactly the keys"),
    "no entity": ("rpk", "quotas: [{entity: [], values: []}]", "a quota entity needs a user"),
    "an unknown quota key": (
        "rpk",
        f'{QUOTA}connection_creation_rate, values: "5"}}]',
        "unknown key 'connection_creation",
    ),
    "a key twice": (
        "rpk",
        f"{QUOTA}request_percentage, values: 5}}, {{key: request_percentage, values: 6}}]",
        "user 'a': request_percentage is listed twice",
    ),
    "an entity twice": ("rpk", "quotas: [Q, Q]".replace("Q", "{entity: [{name: a, type: ip}], values: []}"), "twice"),
    "two users": (
        "rpk",
        "quotas: [{entity: [{name: a, type: user}, {name: b, type: user}], values: []}]",
        "entity: has two names of type user",
    ),
    "an ip with a user": (
        "rpk",
        "quotas: [{entity: [{name: a, type: user}, {name: b, type: ip}], values: []}]",
        "cannot have a user or a client-id",
    ),
}


@pytest.mark.parametrize(("form", "text", "why"), WRONG.values(), ids=WRONG)
def test_a_document_that_is_not_understood_exactly_is_refused(form: str, text: str, why: str) -> None:
    with pytest.raises(Invalid, match=re.escape(why)):
        READERS[form](text, "f")
