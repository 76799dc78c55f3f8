"""The tests that `make test` leaves to `make test-all`, with reasons. CI runs all of them.

`make test` keeps every room, every contract on 4.3.1 over brokers and on 3.9.1 over ZooKeeper, the main journeys, and a
kill of each command.
"""

from __future__ import annotations

from typing import Final

THOROUGH: Final = {
    "2.8.2": "a third generation of brokers; 3.9.1 stands for clusters with ZooKeeper",
    "3.9.1 Admin API": "the same store as on 4.3.1, against older brokers",
    "[3.9.1]": "the same store as on 4.3.1, against older brokers",
    "tests/packaging/": "builds and installs the wheel",
    "tests/spark/test_engines.py": "Spark on a cluster and over Spark Connect; local mode stands for them",
    "tests/spark/test_archive.py": "writes class archives of two Javas",
    "tests/spark/test_compact.py": "a history of many files",
    "tests/spark/test_trace.py": "the trace again inside Spark, against the walk in Python",
    "tests/cli/test_configs_random.py": "random command lines against Kafka's own tool",
    "tests/cli/test_resource_configs_random.py": "random command lines against Kafka's own tool",
    "tests/cli/test_reassign_peers.py": "differences to Kafka's own tool",
    "tests/cli/test_reassign_kill.py": "kquota killed at each of its steps on real brokers",
    "tests/cli/test_three_hosts.py": "random commands of three hosts on real brokers; the same rounds on fakes stay",
    "tests/stores/test_precedence_enforced.py": "the eight levels of quotas, measured on brokers",
    "tests/stores/test_ips_enforced.py": "connection limits, measured on brokers",
    "tests/simulate/test_kafka.py": "the simulation against Kafka's own classes, for each release",
    "tests/documents/": "every command of every document",
    "3.9.1 ZooKeeper-a topic": "the record in a topic over both connections; each alone stays",
    "test_a_download_that_is_killed": "a download of Kafka, killed and begun again",
    "tests/stores/record/test_lost_leader.py": "a broker of the record killed and stopped",
    "tests/stores/admin/test_closed_connections.py": "brokers with limits on connections",
    "tests/stores/admin/test_throttled.py": "brokers that throttle our own connection, for ten seconds a time",
    "test_the_sequence_outlives_every_record_of_its_batch": "a compaction of the record's topic",
    "test_a_quota_on_our_own_client_delays_an_append": "a quota on kquota's own client",
    "test_there_and_back_and_there_again": "three moves, one after the other",
    "tests/spark/test_history.py": "histories of several batches; an estimate from one snapshot stays",
    "tests/spark/test_move.py": "a whole estimate in a process of its own, with an operator's limits",
    "tests/stores/test_apply.py": "ten thousand quotas",
}
"""A part of a test's id, and the reason why it takes longer than a first run should."""
KEPT: Final = ("tests/documents/test_shown.py", "[README.md]", "tests/documents/test_bench.py")
"""Parts of ids that run in all cases."""
PROCESSES: Final = (
    "tests/cli/",
    "tests/completions/",
    "tests/documents/",
    "tests/man/",
    "tests/packaging/",
    "tests/sandbox/",
    "tests/spark/",
)
"""Rooms whose tests start processes. `make unit` omits them."""
SLOW: Final = ("tests/reassign/test_kill.py", "tests/simulate/test_trace.py", "tests/probe/test_load.py")
"""Slow rules. `make unit` also omits them."""


def is_thorough(test: str) -> bool:
    """Whether the test of this id is left to `make test-all`."""
    return any(part in test for part in THOROUGH) and not any(part in test for part in KEPT)


def is_unit(test: str) -> bool:
    """Whether the test of this id is a rule or a property without a server, a process or a wait."""
    return not any(test.startswith(room) for room in PROCESSES) and not any(part in test for part in SLOW)
