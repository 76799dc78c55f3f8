"""The exceptions: shown commands that no test runs, and help examples that do not exit with 0. Each has a reason.

An exception for a command that no document shows fails a test.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_CI: Final = ".ci/run is this very command"
_PROBE: Final = "tests/cli/test_probe.py probes; a probe takes the better part of a minute"
_TOP: Final = "tests/cli/test_quota_top.py has brokers with exporters"
_ADVISE: Final = "tests/cli/test_quota_advise.py has the use of two days"
_ENGINES: Final = "tests/spark/test_engines.py has the job done by such servers; there are none of these names"
_KRAFT: Final = "tests/cli/test_entity_types.py runs them on KRaft; the page's cluster is on ZooKeeper"
_SANDBOX: Final = "tests/sandbox starts these servers"

NOT_RUN: Final[Mapping[str, str]] = {
    "make demo": _CI,
    "make test": _CI,
    "pip install kquota": "nothing is published yet; tests/packaging installs the wheel",
    "kquota quota probe --bootstrap-server localhost:9092 --client-id billing --produce 20MB/s": _PROBE,
    "kquota quota probe --bootstrap-server localhost:9092 --command-config admin.properties"
    " --client-config billing.properties --consume": _PROBE,
    "kquota quota probe --bootstrap-server localhost:9092 --client-id deploy --create-topics --output json": _PROBE,
    "kquota quota probe --bootstrap-server localhost:9092 --find-limit --tenants 10 --overcommit 2": _PROBE,
    "kquota quota probe --bootstrap-server localhost:9092 --client-command "
    "'my-producer {bootstrap} {topic}'": "the client is an example",
    "kquota quota top --bootstrap-server localhost:9092"
    " --metrics http://broker1:7071/metrics,http://broker2:7071/metrics": _TOP,
    "kquota quota advise --bootstrap-server localhost:9092 --usage usage/ --network 1.25GB/s > quotas.yaml": _ADVISE,
    "kquota move estimate --spark-master spark://spark.example.com:7077 --conf spark.executor.memory=4g"
    " --log-dirs 'sizes/*.gz' --reassignment-json-file plan.json --throttle 50MB/s": _ENGINES,
    "kquota move estimate --spark-remote sc://spark.example.com:15002"
    " --log-dirs 'sizes/*.gz' --reassignment-json-file plan.json --throttle 50MB/s": _ENGINES,
    "kquota configs --bootstrap-server localhost:9092 --alter --add-config consumer.session.timeout.ms=50000"
    " --group billing": _KRAFT,
    "kquota configs --bootstrap-server localhost:9092 --describe --entity-type groups": _KRAFT,
    "kquota configs --bootstrap-server localhost:9092 --alter"
    " --add-config 'interval.ms=60000,match=[client_id=billing]' --client-metrics slow": _KRAFT,
    "kquota configs --bootstrap-server localhost:9092 --alter --add-config root=INFO --broker-logger 1": _KRAFT,
    "kquota sandbox up": _SANDBOX,
    "kquota move status": "the sandbox before it is not started",
    "kquota sandbox up old --kafka 2.8.2": _SANDBOX,
}
"""Maps a command of a document, without its comment, to the reason."""

EXAMPLES_NOT_RUN: Final[Mapping[str, str]] = {
    "kquota sandbox demo": "a minute and a half; .ci/run does it as `make demo`",
    "kquota sandbox demo 2> progress.txt": "as above",
    "kquota quota top --bootstrap-server localhost:9092 --metrics http://localhost:7071/metrics": _TOP,
    "kquota quota top --cluster prod --prometheus 'http://prometheus:9090?job=kafka' --snapshot usage/"
    " --output tsv": _TOP,
    "kquota quota advise --bootstrap-server localhost:9092 --usage usage/ --network 1.25GB/s > quotas.yaml": _ADVISE,
    "kquota quota advise --cluster prod --usage usage/ --brokers 6 --output tsv": _ADVISE,
}
"""Maps an example of a help text to the reason."""

ENDS: Final[Mapping[str, tuple[str, str]]] = {
    "kquota quota diff --bootstrap-server localhost:9092 quotas.yaml": ("exit 8", "the file is not applied yet"),
    "kquota quota diff --zookeeper localhost:2181 quotas.yaml --prune --output tsv": ("exit 8", "as above"),
    "kquota reassign-partitions --bootstrap-server localhost:9092 --verify --all-runs --quiet": (
        "exit 8 until",
        "the move that the example before it has started is done",
    ),
    "kquota move status --bootstrap-server localhost:9092": ("exit 8", "a run is open"),
    "kquota move status --cluster prod --output json": ("exit 8", "the same run"),
    "kquota move watch --bootstrap-server localhost:9092": ("exit 8", "the move has ended, its throttle is still set"),
    "kquota move watch --cluster prod --once --output json": ("exit 8", "the same run"),
    "kquota move adjust --cluster prod --deadline 2h --max-rate 200MB/s": ("exit 8", "the same run"),
    "kquota move resume --cluster prod --reassignment-json-file plan.json": ("exit 8 until", "the move is done"),
    "kquota move abort --cluster prod --reassignment-json-file plan.json": ("exit 8 until", "all is copied back"),
}
"""Maps an example of a help text to its exit, in the words of a document's comments, and to the reason."""

_MOVE: Final = (
    "kquota reassign-partitions --bootstrap-server localhost:9092 --execute --reassignment-json-file plan.json "
    "--throttle 50MB/s"
)
BEFORE: Final[Mapping[str, tuple[str, ...]]] = {
    "move status": (
        "kquota move plan --bootstrap-server localhost:9092 --drain 3 --topics orders > back.json",
        "kquota move run back.json --bootstrap-server localhost:9092 --throttle 50MB/s",
        _MOVE,
    ),
    "move abort": (
        "kquota move plan --bootstrap-server localhost:9092 --drain 3 --topics orders > plan.json",
        _MOVE,
    ),
}
"""Maps a command to the steps before its examples. `move resume` uses those of `move status`."""
