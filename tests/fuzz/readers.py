"""Every reader of text that kquota did not write itself, with valid examples and the errors that it may raise."""

from __future__ import annotations

import atexit
import base64
import contextlib
import gzip
import hashlib
import json
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Final

from kquota import addresses, bounded, java_properties, measure, text_file
from kquota.cli.configs import pairs, scram
from kquota.cli.formats import printable
from kquota.cli.list_options import every_broker_id, names, topics_in
from kquota.cli.reassign_partitions.generation import parse_topics
from kquota.election import leaders
from kquota.errors import Invalid, KquotaError, Refused
from kquota.mutation import naming
from kquota.pace.landing import day_plan
from kquota.quota import document_text, explain, limits, rpk, strimzi
from kquota.quota.entity import EVERY, Filter
from kquota.quota_keys import QUOTA_KEYS
from kquota.reassign import plan
from kquota.reassign.run import Owner, Run, Stamp
from kquota.settings.change import meaning
from kquota.settings.resource import TOPICS, Resource, Setting
from kquota.settings.throttled_lists import entries, merge, throttled_replicas, without
from kquota.simulate import trace
from kquota.sizes import bytes_in, history, snapshot
from kquota.stores.admin import record_batch
from kquota.stores.login import jaas, oauth, security, tokens, zookeeper
from kquota.stores.metrics import exporters, prometheus
from kquota.stores.record import choose, lease, memory, sheet
from kquota.stores.record.znodes import ZnodeRecord
from kquota.stores.state import clusters, doctor_memory, journal, past_moves, process
from kquota.stores.state import history as history_files
from kquota.stores.zookeeper import znode
from kquota.stores.zookeeper.moves import ZooKeeperMoves
from kquota.stores.zookeeper.quotas import ZooKeeperQuotas
from kquota.stores.zookeeper.topics import SUBMITTED, cluster_id, endpoints
from kquota.terms import LEADER_REPLICAS, listed_replica, wrong_topic_name
from tests.stores.planted import planted
from tests.stores.record.hosts import RUN, TIME


@dataclass(frozen=True, slots=True, kw_only=True)
class FuzzedReader:
    """A reader: `read` returns a value or raises one of `errors`, which its docstring names."""

    read: Callable[[bytes], object]
    examples: tuple[bytes, ...]
    errors: tuple[type[Exception], ...] = (Invalid, Refused)
    is_argument: bool = False


@cache
def scratch(of: int) -> Path:
    """Return a folder in memory of the process `of`."""
    folder = Path(tempfile.mkdtemp(prefix=f"fuzz-{of}-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    (folder / "kquota").mkdir()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _in_file(read: Callable[[Path], object], data: bytes, name: str = "file") -> object:
    path = scratch(os.getpid()) / name
    path.write_bytes(data)
    path.chmod(0o600)
    return read(path)


def _file(read: Callable[[Path], object], *examples: bytes, name: str = "file") -> FuzzedReader:
    return FuzzedReader(read=partial(_in_file, read, name=name), examples=examples)


def _argument(read: Callable[[str], object], *examples: str) -> FuzzedReader:
    """Return the reader of an argument. Python gives bytes that are not UTF-8 as surrogates."""
    as_bytes = tuple(example.encode() for example in examples)
    return FuzzedReader(read=lambda data: read(os.fsdecode(data)), examples=as_bytes, is_argument=True)


def _bytes(
    read: Callable[[bytes], object], *examples: bytes, errors: tuple[type[Exception], ...] = (Invalid, Refused)
) -> FuzzedReader:
    return FuzzedReader(read=read, examples=examples, errors=errors)


def _quiet(_: object) -> None:
    pass


# Each of the tables below belongs to one test. The values that they share come first.

_STAMP: Final = Stamp(version=1, by=Owner(user="alice", host="h", pid=7, since=TIME), at=TIME)
_STAMPED: Final[Run] = replace(RUN, stamp=_STAMP)
_SHEET: Final = sheet.encode(_STAMPED, "c").sheet
_FIRST: Final = json.dumps(journal.first(RUN, _STAMP)).encode()
_CHANGE: Final = json.dumps(journal.change(RUN, replace(RUN, finished=TIME), _STAMP)).encode()
_HOLDER: Final = process.holder("verify").written()
_LOCK: Final = json.dumps({"format": 1, "cluster": "c", "term": 3, "beat": 9, "released": False, **_HOLDER}).encode()
_PLAN: Final = (
    b'{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1,2,3],"log_dirs":["any","/a","any"]},'
    b'{"topic":"t.1","partition":12,"replicas":[3,1]}]}'
)
_ROWS: Final = b"\n".join(
    json.dumps(
        {
            "version": 2,
            "cluster": "c",
            "time": "2026-03-01T12:30:00Z",
            "broker": 1,
            "rack": "a",
            "log_dir": "/d",
            "topic": "t",
            "partition": number,
            "size": 5,
            "start_offset": 0,
            "local_start_offset": None,
            "end_offset": 9,
            "future": False,
            "leader": True,
            "in_sync": True,
            "volume_total": 10,
            "volume_usable": None,
        }
    ).encode()
    for number in range(2)
)
_QUOTAS: Final = b"""version: 1
owns:
  - "user:*"
default-user:
  producer_byte_rate: 10MB/s
users:
  alice: {consumer_byte_rate: 1024, clients: {app: {request_percentage: 12.5}}, default-client: {}}
ips:
  10.0.0.1:
    connection_creation_rate: 5
replication-throttles:
  brokers:
    1: {leader.replication.throttled.rate: 1000}
  topics:
    t: {leader.replication.throttled.replicas: "0:1,0:2"}
"""
_KAFKA_USERS: Final = b"""apiVersion: kafka.strimzi.io/v1
kind: KafkaUser
metadata: {name: a}
spec: {authentication: {type: tls}, quotas: {producerByteRate: 1024, controllerMutationRate: 2.5}}
---
apiVersion: v1
kind: List
items:
  - {apiVersion: kafka.strimzi.io/v1beta2, kind: KafkaUser, metadata: {name: b}, spec: {quotas: {}}}
"""
_RPK: Final = b"""quotas:
  - entity: [{name: <default>, type: user}, {name: a, type: client-id}]
    values: [{key: request_percentage, values: "12.5"}]
  - entity: [{name: p, type: client-id-prefix}]
    values: []
"""
_TOML: Final = b"""[clusters.prod]
bootstrap-server = "a:9092,b:9092"  # both
command-config = "prod.properties"
confirm = true
[clusters.old]
zookeeper = "z:2181/kafka"
record = 'none'
"""
_PROPERTIES: Final = b"""# comment
security.protocol = SASL_SSL
sasl.mechanism: SCRAM-SHA-256
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\
  username="alice" password="a\\u00e9b";
ssl.endpoint.identification.algorithm=
request.timeout.ms=3000
"""
_TOKENS: Final = b"""security.protocol=SASL_PLAINTEXT
sasl.mechanism=OAUTHBEARER
sasl.oauthbearer.token.endpoint.url=https://h:443/token
sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required clientId="a" \
clientSecret="b" extension_x="y";
"""
_JAAS: Final = b"""Client {
  org.apache.zookeeper.server.auth.DigestLoginModule required
  username="a" password='b\\101' // end
  /* more */;
};
KafkaClient { a.b.PlainLoginModule required username=x password="y"; };
"""
_VECTOR: Final = b"""{"status":"success","data":{"resultType":"vector","result":[
 {"metric":{"instance":"kafka-1:9404","job":"k"},"value":[1700000000.1,"1000.5"]},
 {"metric":{"broker_id":"2"},"value":[1700000000,"NaN"]}]}}"""
_MATRIX: Final = json.dumps(
    {"resultType": "matrix", "result": [{"metric": {"pod": "k-1"}, "values": [[t, f"{t}.5"] for t in range(25)]}]}
).encode()
_TOPIC_NODE: Final = (
    b'{"version":3,"topic_id":"RXWn764lRD27K2w3HJofHQ","partitions":{"0":[1,2],"1":[2]},'
    b'"adding_replicas":{"0":[2]},"removing_replicas":{}}'
)
_CONFIG: Final = (
    b'{"version":1,"config":{"leader.replication.throttled.replicas":"0:1","producer_byte_rate":"1024.0",'
    b'"min.insync.replicas":"2"}}'
)
_BROKER_NODE: Final = b'{"endpoints":["PLAINTEXT://h:9092"],"rack":"a","version":5,"port":9092}'
_JWT: Final = b"e30." + base64.urlsafe_b64encode(b'{"exp":1700000000,"sub":"a"}').rstrip(b"=") + b".c2ln"
_CLUSTER: Final[Mapping[str, object]] = {
    "/brokers/ids/1": _BROKER_NODE,
    "/brokers/topics/t": _TOPIC_NODE,
    "/brokers/topics/t/partitions/0/state": b'{"leader":1,"isr":[1,2],"leader_epoch":4}',
}


def _snapshot_with(path: str) -> Callable[[bytes], object]:
    return lambda data: ZooKeeperMoves(planted({**_CLUSTER, path: data}), _quiet).snapshot(None)


def _topic_config(data: bytes) -> object:
    moves = ZooKeeperMoves(planted({**_CLUSTER, "/config/topics/t": data}), _quiet)
    found = moves.describe([Resource(kind=TOPICS, name="t")])
    moves.minimum_in_sync(["t"])
    return found, moves.values([Setting.of_topic("t", LEADER_REPLICAS)])


def _quota_config(data: bytes) -> object:
    quotas = ZooKeeperQuotas(planted({"/config/users/b": data, "/config/clients/c": data}), _quiet)
    quotas.users(EVERY)
    return quotas.everything()


def _quota_names(data: bytes) -> object:
    name = data.decode(errors="replace")
    tree = {f"/config/{kind}/{name}": _CONFIG for kind in ("users", "clients", "ips")}
    quotas = ZooKeeperQuotas(planted(tree), _quiet)
    return [quotas.describe(each) for each in (Filter(user=EVERY), Filter(client_id=EVERY), Filter(ip=EVERY))]


def _recorded(data: bytes) -> object:
    record = ZnodeRecord(planted({f"/kquota/runs/{RUN.id}": data, "/kquota/lock": _LOCK}), "c")
    return record.runs(), record.unreadable


def _part(data: bytes) -> object:
    """Read a run whose plan is in a part with the right hash."""
    digest = hashlib.sha256(data).hexdigest()[:32]
    document = json.loads(_SHEET)
    document["run"]["plan"] = {"part": digest}
    packed = gzip.compress(data, compresslevel=1)
    return sheet.decode(json.dumps(document).encode(), RUN.id, "c", lambda _: packed)


def _journal(data: bytes) -> object:
    documents, _ = journal.lines(data, "x.journal")
    return journal.replay(documents, "x.journal") if documents else None


def _checked_journal(data: bytes) -> object:
    """Read lines with a correct checksum."""
    crc = [b"%08x %s\n" % (zlib.crc32(text), text) for text in data.split(b"\n")]
    return _journal(b"".join(crc))


def _past(path: Path) -> object:
    root = path.parent
    kept = past_moves.PastMovesFile(root, "c")
    (root / "c").mkdir(exist_ok=True)
    for name in ("past_moves.json", "estimates.json"):
        (root / "c" / name).write_bytes(path.read_bytes())
    return kept.recall(), kept.estimates()


def _leftovers(path: Path) -> object:
    (path.parent / "c").mkdir(exist_ok=True)
    (path.parent / "c" / "leftovers.json").write_bytes(path.read_bytes())
    return doctor_memory.SightingsFile(path.parent, "c").recall()


def _sighting(path: Path) -> object:
    return lease.Sighting(path, lease.LeaseClock()).unchanged("3:9:False")


def _csv_trace(data: bytes) -> object:
    first, *rest = data.decode(errors="replace").split("\n")
    header = trace.header(first, "t.csv")
    rows = [row for line in rest if (row := trace.of_csv(line, header)) is not None]
    return [trace.request(row) for row in rows]


def _json_trace(data: bytes) -> object:
    row = trace.of_json(data.decode(errors="replace"))
    return None if row is None else trace.request(row)


def _rows(data: bytes) -> object:
    return snapshot.log_dirs(data.split(b"\n"), "x.jsonl")


def _stored_list(data: bytes) -> object:
    text = data.decode(errors="replace")
    found = entries(text)
    return merge(text, ["0:1"]), without(text, found[:1], None), [listed_replica(entry) for entry in found]


def _limits(text: str) -> object:
    for key in QUOTA_KEYS:
        with contextlib.suppress(Invalid):
            limits.value(key, text)
    return measure.whole_number(text), meaning(text)


def _login(path: Path) -> object:
    return security.security(path, {}, _quiet)


def _tls(path: Path) -> object:
    return zookeeper.access(path, None, {}, _quiet)


def _digest(path: Path) -> object:
    return zookeeper.access(None, path, {}, _quiet)


def _opts(text: str) -> object:
    return jaas.file_in(text)


def _token(path: Path) -> object:
    return tokens.token(oauth.TokenFile(path=path, extensions={}), lambda: sys.exit("no TLS"))


def _plain(text: str) -> object:
    return printable(text), addresses.is_host(text), addresses.is_port(text), explain.address(text)


_JSON_ERRORS: Final = (ValueError,)
_METRICS: Final = b"""kafka_server_app_info_StartTimeMs{id="1"} 1.7E12
kafka_server_Produce_byte_rate{client_id="both",user="ann%20b"} 79857.5
kafka_server_quota_throttle_time{resource="Fetch",clientId="\\"a:b\\""} 16195.0
kafka_controller_ControllerEventManager_99thPercentile{name="EventQueueTimeMs"} 69.0
"""
_PROMQL: Final = b"""{"status":"success","data":{"resultType":"vector","result":[{"metric":{
"__name__":"kafka_server_Produce_byte_rate","client_id":"a","instance":"h:7071"},"value":[1795526187.04,"1.5"]},
{"metric":{"__name__":"kafka_server_app_info_StartTimeMs","id":"1","instance":"h:7071"},"values":[[1,"NaN"]]}]}}"""

READERS: Final[dict[str, FuzzedReader]] = {
    # Files of operators.
    "a plan": _file(
        lambda path: plan.read(path).text().encode(), _PLAN, b"Current partition replica assignment\n" + _PLAN
    ),
    "topics to move": _file(
        lambda path: parse_topics(*text_file.read(path, "a file")),
        b'{"version":1,"topics":[{"topic":"a"},{"topic":"b.c"}]}',
    ),
    "an election": _file(leaders.read, b'{"partitions":[{"topic":"t","partition":0},{"topic":"u","partition":1}]}'),
    "topics of --from-file": _file(lambda path: topics_in(path), b"# all\norders 12 3\nt.1 4\nu\n"),
    "a document of quotas": _file(
        lambda path: document_text.text(document_text.read(*text_file.read(path, "a document"))).encode(),
        _QUOTAS,
        b'{"version":1,"users":{"a\\u00e9":{"producer_byte_rate":1024}},"owns":["user:a*"],"unreadable":["x"]}',
    ),
    "KafkaUser resources of Strimzi": _file(
        lambda path: rpk.write(strimzi.read(*text_file.read(path, "a document"))).text.encode(), _KAFKA_USERS
    ),
    "quotas of rpk": _file(
        lambda path: strimzi.write(rpk.read(*text_file.read(path, "a document"))).text.encode(), _RPK
    ),
    "properties": _file(lambda path: java_properties.entries(path, "--command-config"), _PROPERTIES),
    "configs of a file": _file(pairs.pairs_in, b"retention.ms=5\ncleanup.policy=compact,delete\n"),
    "a password": _file(scram.password_in, b"secret\r\n"),
    "a login": _file(_login, _PROPERTIES, _TOKENS),
    "TLS of ZooKeeper": _file(_tls, b"zookeeper.ssl.client.enable=true\nzookeeper.ssl.trustStore.location=/none\n"),
    "a JAAS file": _file(lambda path: jaas.section(path, "Client", "--zk-sasl-config-file"), _JAAS),
    "the user of ZooKeeper": _file(_digest, _JAAS),
    "a token": _file(_token, _JWT),
    "config.toml": _file(
        lambda path: clusters.cluster("prod", {"XDG_CONFIG_HOME": str(path.parent.parent)}),
        _TOML,
        name="kquota/config.toml",
    ),
    "write rates": _argument(
        lambda text: bytes_in.parse(text, "rates"),
        "broker,bytes_in,low,high,peak\n1,3MB/s,1MB/s,4MB/s,5MB/s\n2,7,,,\n",
        '{"1":"3MB/s","2":5}',
        '[{"broker":1,"bytes_in":"3MB/s"},{"broker":2,"bytes_in":1.5,"high":2}]',
        _VECTOR.decode(),
        _MATRIX.decode(),
    ),
    "a trace in CSV": _bytes(_csv_trace, b'ms,bytes,thread_ms,broker,user,client_id\n5,100,0.5,1,"a,b",c\n9,1,,,,\n'),
    "a trace in JSON": _bytes(_json_trace, b'{"ms":5,"bytes":100,"thread_ms":0.25,"user":"a"}'),
    "the files of a snapshot": _file(
        lambda path: history_files.check_snapshots([path]), gzip.compress(_ROWS, mtime=0), _ROWS
    ),
    "the rows of a snapshot": _bytes(_rows, _ROWS),
    "the first row of a snapshot": _bytes(lambda data: history.taken(data, "x.jsonl"), _ROWS.split(b"\n")[0]),
    "the manifest of a batch": _argument(
        lambda text: history.manifested(text, "_batch.json"),
        history.manifest([history.SnapshotKey("c", datetime(2026, 3, 1, tzinfo=UTC))]),
    ),
    # Files of this host.
    "a journal": _bytes(_journal, journal.line(json.loads(_FIRST)) + journal.line(json.loads(_CHANGE))),
    "the lines of a journal": _bytes(_checked_journal, _FIRST, _FIRST + b"\n" + _CHANGE),
    "past moves": _file(
        _past,
        b'{"version":1,"under_way":[{"run":"r","started":"2026-03-01T12:30:00+00:00","throttle":5,'
        b'"expected_seconds":60.5,"seen_moving":"2026-03-01T12:31:00+00:00"}],"ended":[{"run":"r","started":'
        b'"2026-03-01T12:30:00+00:00","throttle":5,"expected_seconds":60,"at_least_seconds":5,"at_most_seconds":9}],'
        b'"estimates":[{"plan":"p","throttle":5,"expected_seconds":60,"at":"2026-03-01T12:30:00+00:00"}]}',
        name="past",
    ),
    "leftovers": _file(
        _leftovers,
        b'{"version":2,"at":"2026-03-01T12:30:00+00:00","leftovers":[{"kind":"broker","key":'
        b'"leader.replication.throttled.rate","first_seen":"2026-03-01T12:30:00+00:00","values":["1 5"]}]}',
    ),
    "the known record": _file(
        lambda path: memory.recall(path.parent),
        b'{"version":1,"topic":"t","topic_id":"x"}',
        name="record.json",
    ),
    "a sighting": _file(_sighting, b'{"mark":"3:9:False","boot":"x","since":5.5}', name="sighting"),
    # The record of runs.
    "a sheet": _bytes(lambda data: sheet.decode(data, RUN.id, "c", lambda _: None), _SHEET, errors=(sheet.Unreadable,)),
    "a part of a sheet": _bytes(_part, json.dumps(json.loads(RUN.plan.text())).encode(), errors=(sheet.Unreadable,)),
    "runs in znodes": _bytes(_recorded, _SHEET),
    "a lock": _bytes(lambda data: lease.lock_of(data, "c"), _LOCK, errors=(ValueError, KeyError, TypeError)),
    "the marker of the record": _bytes(
        lambda data: choose.marker(planted({choose.MARKER: data})), b'{"version":1,"topic":"t","topic_id":"x"}'
    ),
    "batches of records": _bytes(
        lambda data: list(record_batch.decode(data)),
        record_batch.encode([("run/a", b"{}"), ("lock", None)], 3, b"nonce"),
    ),
    # Kafka's znodes.
    "a znode of a topic": _bytes(_snapshot_with("/brokers/topics/t"), _TOPIC_NODE),
    "a znode of a partition": _bytes(
        _snapshot_with("/brokers/topics/t/partitions/0/state"), b'{"leader":1,"isr":[1,2],"leader_epoch":4}'
    ),
    "a znode of a broker": _bytes(_snapshot_with("/brokers/ids/2"), _BROKER_NODE),
    "the addresses of brokers": _bytes(lambda data: endpoints(planted({"/brokers/ids/2": data})), _BROKER_NODE),
    "submitted moves": _bytes(_snapshot_with(SUBMITTED), _PLAN),
    "the cluster's id": _bytes(lambda data: cluster_id(planted({"/cluster/id": data})), b'{"version":"1","id":"abc"}'),
    "a config in a znode": _bytes(_topic_config, _CONFIG),
    "quotas in a znode": _bytes(_quota_config, _CONFIG),
    "the names of quotas": _bytes(_quota_names, b"a%20b", b"%C3%A9", b"<default>", b"10.0.0.1", b"a.b-c_d"),
    "percent codes": _argument(znode.decoded, "a%20b", "%C3%A9%2B"),
    # Arguments.
    "a throttled list": _argument(lambda text: throttled_replicas(LEADER_REPLICAS, text), "0:1, 0:2,3:1", "*"),
    "a stored throttled list": _bytes(_stored_list, b"0:1, 0:2,,3:1", b"*", b"x"),
    "a rate": _argument(measure.byte_rate, "400Mbit/s", "10MB/s", "1.5e3kB/s", "64MiB/s"),
    "a size": _argument(measure.byte_size, "1.5TB", "500GiB", "7"),
    "a duration": _argument(measure.duration, "90s", "1.5h", "250ms"),
    "a percentage": _argument(measure.percentage, "12.5%", "100%"),
    "a limit": _argument(_limits, "12.5", "10MB/s", "1024"),
    "a day plan": _argument(lambda text: day_plan(text, "--throttle-plan"), "22:00-06:00=200MB/s,else=40MB/s"),
    "configs": _argument(pairs.pairs, "a=1,b=[x,y=z],c=", "retention.ms=5"),
    "a SCRAM credential": _argument(
        lambda text: scram.credential("SCRAM-SHA-512", text, "--add-config"), "iterations=8192,password=secret"
    ),
    "keys": _argument(lambda text: pairs.keys([text]), "a.b,c"),
    "broker ids": _argument(lambda text: every_broker_id([text], "--brokers"), "1,2,3"),
    "names": _argument(lambda text: names([text], "--topics"), "a,b, c"),
    "a replica assignment": _argument(lambda text: naming.assignment(text, "--assignment"), "1:2,2:3"),
    "a topic's name": _argument(wrong_topic_name, "orders.v1"),
    "rates by hand": _argument(lambda text: bytes_in.by_hand([text]), "3=12MB/s"),
    "options of a JVM": _argument(_opts, "-Djava.security.auth.login.config=/a/b -Dx='y z'"),
    "a host, or a name that is shown": _argument(_plain, "kafka.example.com", "::1", "10.0.0.1", "a\u202eb"),
    "the holder of a lock": _bytes(
        lambda data: process.holder_of(bounded.json_object(data)), json.dumps(_HOLDER).encode(), errors=_JSON_ERRORS
    ),
    "the metrics of a broker": _bytes(lambda data: exporters.parsed([data], "h"), _METRICS, errors=(ValueError,)),
    "an answer of Prometheus": _bytes(
        lambda data: list(prometheus.parsed(data)), _PROMQL, errors=(ValueError, KeyError, TypeError, RecursionError)
    ),
    "gzip": _bytes(lambda data: bounded.expanded(data, 10**6), gzip.compress(_ROWS, mtime=0), errors=_JSON_ERRORS),
}
"""The readers by what they read. An unmutated example must be readable (`test_readers`)."""


def shown(error: Exception) -> str:
    """Return the message as a command prints it. It must be text that any terminal can encode."""
    text = printable(str(error))
    text.encode()
    return text


def outcome(reader: FuzzedReader, data: bytes) -> str | None:
    """Return None for a value, or the name of an error that the reader may raise. Raises any other exception."""
    try:
        reader.read(data)
    except reader.errors as error:
        if isinstance(error, KquotaError):
            shown(error)
        return type(error).__name__
    return None
