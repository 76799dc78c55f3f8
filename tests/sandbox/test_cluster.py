"""The sandbox on real servers: it comes up, it is broken on purpose, and it always goes down."""

from __future__ import annotations

import subprocess

from kquota.sandbox import cluster as sandbox
from kquota.sandbox.cluster import Cluster


def test_every_server_runs_and_kafkas_own_tool_sees_three_brokers(cluster: Cluster) -> None:
    assert cluster.running
    tool = sandbox.kafka_tool(
        cluster,
        "kafka.admin.ConfigCommand",
        "--bootstrap-server",
        cluster.bootstrap,
        "--describe",
        "--entity-type",
        "brokers",
    )
    answer = subprocess.run(tool, capture_output=True, text=True, check=True)
    assert [f"broker {n} are" in answer.stdout for n in (1, 2, 3)] == [True] * 3, answer.stdout


def test_a_zookeeper_alone_needs_no_kafka(zookeeper: Cluster) -> None:
    assert (zookeeper.running, zookeeper.kafka, zookeeper.bootstrap) == (True, None, "")
