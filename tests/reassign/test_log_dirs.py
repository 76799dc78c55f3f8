"""The target log dirs of replicas and their progress: states, Kafka's sentences, requests, refusals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.errors import Invalid, Refused
from kquota.measure import ByteRate
from kquota.reassign import log_dirs
from kquota.reassign.log_dirs import NOWHERE, LogDirReading, LogDirState, ReplicaLogDirs
from kquota.reassign.moves import PartitionReplicas
from kquota.reassign.plan import Plan
from kquota.reassign.progress import Progress
from kquota.terms import BrokerId, ReplicaId, TopicPartition

ONE, TWO, THREE = map(BrokerId, (1, 2, 3))
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
A, B, C = "/data/a", "/data/b", "/data/c"
HERE = PartitionReplicas(replicas=(ONE, TWO))
DONE, GOING, ELSEWHERE = Progress.DONE, Progress.IN_PROGRESS, Progress.ELSEWHERE


def reading(place: ReplicaLogDirs = NOWHERE, silent: bool = False) -> LogDirReading:
    """A reading of replica t-0 on broker 1, whose target is B."""
    if silent:
        return LogDirReading(silent={ONE: "it is dead"})
    return LogDirReading(dirs={ONE: {A: None, B: None}}, places={} if place == NOWHERE else {(T0, ONE): place})


STATES = {
    "there": (
        reading(ReplicaLogDirs(current=B)),
        LogDirState.COMPLETED,
        DONE,
        "Reassignment of replica t-0-1 completed successfully.",
    ),
    "on its way": (
        reading(ReplicaLogDirs(current=A, future=B, lag=9)),
        LogDirState.ACTIVE,
        GOING,
        "Reassignment of replica t-0-1 is still in progress.",
    ),
    "on its way elsewhere": (
        reading(ReplicaLogDirs(current=A, future=C, lag=9)),
        LogDirState.ACTIVE,
        GOING,
        "Partition t-0 on broker 1 is being moved to log dir /data/c instead of /data/b.",
    ),
    "there, and on its way away": (
        reading(ReplicaLogDirs(current=B, future=A, lag=9)),
        LogDirState.ACTIVE,
        GOING,
        "Partition t-0 on broker 1 is being moved to log dir /data/a instead of /data/b.",
    ),
    "at rest elsewhere": (
        reading(ReplicaLogDirs(current=A)),
        LogDirState.CANCELLED,
        ELSEWHERE,
        "Partition t-0 on broker 1 is not being moved from log dir /data/a to /data/b.",
    ),
    "not there": (
        reading(),
        LogDirState.MISSING,
        ELSEWHERE,
        "Partition t-0 is not found in any live log dir on broker 1. "
        "There is likely an offline log directory on the broker.",
    ),
    "not known": (
        reading(silent=True),
        LogDirState.SILENT,
        GOING,
        "Partition t-0 cannot be found in any live log directory on broker 1.",
    ),
}


@pytest.mark.parametrize(("found", "state", "progress", "line"), STATES.values(), ids=STATES)
def test_a_replica_of_a_partition_at_rest(
    found: LogDirReading, state: LogDirState, progress: Progress, line: str
) -> None:
    status = log_dirs.statuses({(T0, ONE): B}, found, {T0: HERE}, ())
    assert [(s.state, s.progress) for s in status] == [(state, progress)]
    assert log_dirs.status_lines(status) == line


@pytest.mark.parametrize(("found", "state", "progress", "line"), STATES.values(), ids=STATES)
def test_no_replica_has_ended_while_its_partition_moves(
    found: LogDirReading, state: LogDirState, progress: Progress, line: str
) -> None:
    status = log_dirs.statuses({(T0, ONE): B}, found, {T0: HERE}, {T0})
    assert [s.state for s in status] == [state]
    assert {s.progress for s in status} == {DONE if progress is DONE else GOING}


@pytest.mark.parametrize(
    "now", [{}, {T0: PartitionReplicas(replicas=(TWO,))}], ids=["topic deleted", "moved elsewhere"]
)
@pytest.mark.parametrize("silent", [True, False])
def test_a_replica_removed_from_its_partition_never_arrives(
    now: dict[TopicPartition, PartitionReplicas], silent: bool
) -> None:
    (status,) = log_dirs.statuses({(T0, ONE): B}, reading(silent=silent), now, ())
    assert status.progress is ELSEWHERE


def test_lines_are_sorted_like_kafka_by_broker_topic_partition() -> None:
    u0, t10 = TopicPartition("u", 0), TopicPartition("t", 10)
    wanted = dict.fromkeys([(T0, TWO), (u0, ONE), (t10, ONE), (T1, ONE)], A)
    order = [(T1, ONE), (t10, ONE), (u0, ONE), (T0, TWO)]
    found = log_dirs.statuses(wanted, LogDirReading(), {}, ())
    assert [(s.partition, s.broker) for s in found] == order
    assert log_dirs.started_lines(wanted).splitlines() == [
        f"Successfully started moving log directory to /data/a for replica {name} with broker {broker} "
        for name, broker in order
    ]
    assert log_dirs.timed_out(wanted) == (
        "Timed out before log directory moves could be started for: t-1-1,t-10-1,u-0-1,t-0-2"
    )
    assert log_dirs.timed_out([(T0, TWO)]) == "Timed out before log directory move could be started for: t-0-2"
    assert log_dirs.failed({(T0, TWO): "no", (T1, ONE): "why"}) == (
        "Failed to alter dir for t-1-1: why; Failed to alter dir for t-0-2: no"
    )
    assert log_dirs.throttle_set(ByteRate(1000)) == "The replica-alter-dir throttle limit was set to 1000 B/s"


def test_the_dirs_of_a_plan_are_written_as_brokers_write_them() -> None:
    plan = Plan(
        targets={T0: (ONE, TWO), T1: (ONE, TWO)},
        log_dirs={(T1, ONE): "/data/b/", (T0, ONE): "/data/a", (T0, TWO): "/"},
    )
    assert log_dirs.of(plan) == {(T0, ONE): A, (T0, TWO): "/", (T1, ONE): B}
    assert log_dirs.replicas(plan) == ((T0, ONE), (T0, TWO), (T1, ONE), (T1, TWO))


def test_the_plan_back_names_the_current_log_dirs() -> None:
    plan = Plan(targets={T0: (ONE, TWO), T1: (THREE,)})
    found = LogDirReading(places={(T0, ONE): ReplicaLogDirs(current=A, future=B, lag=1)}, silent={THREE: "it is dead"})
    assert log_dirs.with_dirs(plan, found).log_dirs == {(T0, ONE): A}
    assert log_dirs.with_dirs(plan, found).targets == plan.targets


def test_a_plan_over_zookeeper_cannot_name_log_dirs() -> None:
    log_dirs.must_have_brokers(Plan(targets={T0: (ONE,)}))
    with pytest.raises(Invalid) as caught:
        log_dirs.must_have_brokers(Plan(targets={T0: (ONE,)}, log_dirs={(T0, ONE): A}))
    assert str(caught.value) == (
        "bootstrap-server needs to be provided when replica reassignments are present. The plan names log dir "
        '/data/a on broker 1 for t-0. Give bootstrap_server, or write "any" for every log dir'
    )


REFUSED = {
    "no such dir": ({A: None}, "t-0: broker 1 has no log dir /data/b (it has: /data/a). Use one of them"),
    "no dir at all": ({}, 't-0: broker 1 has no log dir /data/b (it has: none). Use "any". Nothing was written'),
    "an offline dir": (
        {A: None, B: "KafkaStorage (56)"},
        "t-0: log dir /data/b of broker 1 accepts no replica (KafkaStorage (56)). Use another",
    ),
}


@pytest.mark.parametrize(("here", "why"), REFUSED.values(), ids=REFUSED)
def test_a_log_dir_that_cannot_be_moved_into_is_refused(here: dict[str, str | None], why: str) -> None:
    with pytest.raises(Refused) as caught:
        log_dirs.check({(T0, ONE): B}, LogDirReading(dirs={ONE: here}, places={(T0, ONE): ReplicaLogDirs(current=A)}))
    assert str(caught.value).startswith(why)
    assert str(caught.value).endswith("Nothing was written")


def test_the_current_dir_of_a_replica_may_be_offline_for_others() -> None:
    log_dirs.check(
        {(T0, ONE): B}, LogDirReading(dirs={ONE: {B: "it is cordoned"}}, places={(T0, ONE): ReplicaLogDirs(current=B)})
    )


PATHS = st.sampled_from([A, B, C])
PLACES = st.builds(ReplicaLogDirs, current=st.none() | PATHS, future=st.none() | PATHS)
REPLICAS = st.dictionaries(st.tuples(st.sampled_from([T0, T1]), st.sampled_from([ONE, TWO])), PLACES)


@given(REPLICAS, st.dictionaries(st.tuples(st.sampled_from([T0, T1]), st.sampled_from([ONE, TWO])), PATHS))
def test_requested_copies_are_not_done_and_cancelled_ones_are_in_progress(
    places: dict[ReplicaId, ReplicaLogDirs], wanted: dict[ReplicaId, str]
) -> None:
    found = LogDirReading(places=places)
    unsettled = log_dirs.unsettled(wanted, found)
    assert log_dirs.unasked(wanted, found).items() <= unsettled.items()
    done = {(s.partition, s.broker) for s in log_dirs.statuses(wanted, found, {}, ()) if s.progress is DONE}
    assert done == wanted.keys() - unsettled.keys()
    back = log_dirs.back(wanted, found)
    assert back.keys() <= unsettled.keys() | {r for r in wanted if found.place(r).future is not None}
    assert all(found.place(replica).current == path for replica, path in back.items())
