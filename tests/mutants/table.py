"""Deliberate bugs. Each replaces one text in a file, and the tests must find it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """`old` occurs once in `file`, below kquota. `tests` are the unit tests that are likely to find the bug.

    Random rounds of `tests.hosts` try to find every mutant that is not `unplayed`.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    unplayed: bool = False


_ACTIONS: Final = "tests/reassign/test_actions.py"
_KILL: Final = "tests/reassign/test_kill.py"
_LAGGING: Final = f"{_KILL}::test_a_lagging_broker_does_not_lose_a_prior_value"
_HOLDERS: Final = "tests/reassign/test_two_holders.py"
_RULES: Final = "tests/reassign/test_restoring.py"
_TREE: Final = "tests/hosts/test_tree.py"
_WAVES: Final = "tests/reassign/test_waves.py"
_RECORD: Final = "tests/stores/record/test_topic_record.py"
_JOINED: Final = "tests/stores/record/test_joined.py"
_HELD: Final = "tests/throttle/test_set_and_clear.py"
_PROTECTION: Final = "tests/pace/test_protection.py"
_METRICS: Final = "tests/stores/metrics/test_exporters.py"
_ANSWERS: Final = "tests/stores/metrics/test_answers.py"
_JOURNAL: Final = "tests/stores/state/test_runs.py"
_TURNS: Final = "tests/reassign/test_turns.py"
_ADVICE: Final = "tests/quota/test_advice.py"
_USAGE: Final = "tests/quota/test_usage.py"
_SCRAM: Final = "tests/quota/test_scram.py"
_CONFIRMED: Final = "tests/cli/test_target_cluster.py"
_BOUNDS: Final = "tests/test_bounded_readers.py"

MUTANTS: Final = (
    Mutant(
        name="no notification: brokers never apply the config",
        file="stores/zookeeper/znodes.py",
        old="writes += [config_written(path, nodes[path], after), notification(entity_path)]",
        new="writes += [config_written(path, nodes[path], after)]",
        tests=(_TREE,),
    ),
    Mutant(
        name="no compare-and-set: a config is written whatever its version",
        file="stores/zookeeper/znode.py",
        old="SetData(path=path, data=data, version=node.version)\n\n\ndef size",
        new="SetData(path=path, data=data, version=-1)\n\n\ndef size",
        tests=(_TREE,),
    ),
    Mutant(
        name="a transaction without its fence",
        file="stores/zookeeper/znodes.py",
        old="self.commit([*also(), *writes])",
        new="self.commit(writes)",
        tests=(_TREE,),
    ),
    Mutant(
        name="errors of a transaction are ignored",
        file="stores/zookeeper/znodes.py",
        old="        errors = [result for result in results if isinstance(result, Exception)]",
        new="        errors: list[Exception] = []",
        tests=(_TREE,),
    ),
    Mutant(
        name="a write is repeated in the next session",
        file="stores/zookeeper/znodes.py",
        old="with contextlib.suppress(*_CONFLICTS):\n                self.commit",
        new="with contextlib.suppress(*_CONFLICTS, Unreachable):\n                self.commit",
        tests=(_TREE,),
    ),
    Mutant(
        name="the version of a run's znode is not checked",
        file="stores/record/znodes.py",
        old="        if node is not None and node.version != held:",
        new="        held = None if node is None else node.version\n        if False:",
        tests=(_TREE,),
    ),
    Mutant(
        name="the lock's znode is not ephemeral",
        file="stores/record/znodes.py",
        old="Create(path=LOCK, data=data, ephemeral=True)",
        new="Create(path=LOCK, data=data)",
        tests=(_TREE,),
    ),
    Mutant(
        name="line counts in place of versions",
        file="stores/record/runs.py",
        old="self._write(run, version_of(self._latest.get(run.id)) + 1)",
        new="self._write(run, sum(map(len, self._files.every()[run.id].shared.values())) + 1"
        " if run.id in self._files.every() else 2)",
        tests=(_RECORD, _HOLDERS),
    ),
    Mutant(
        name="a throttle is restored while its moves run",
        file="reassign/verification.py",
        old="    if moving:\n        restoration, run",
        new="    if not moving:\n        restoration, run",
        tests=(_ACTIONS,),
    ),
    Mutant(
        name="errors of single settings are ignored",
        file="reassign/throttle_writes.py",
        old="            if not isinstance(error, Conflict):\n                raise error\n        if not errors",
        new="            if False:\n                raise error\n        if not errors",
        tests=(_ACTIONS,),
    ),
    Mutant(
        name="refusals of single partitions are ignored",
        file="reassign/execution.py",
        old="        refused = ports.cluster.submit(todo)\n    except",
        new="        ports.cluster.submit(todo)\n    except",
        tests=(_ACTIONS,),
    ),
    Mutant(
        name="entries of other tools are removed",
        file="reassign/restoring.py",
        old="return without(now, removed, taken.prior) if touched else now",
        new="return taken.prior if touched else now",
        tests=(_RULES, _ACTIONS),
    ),
    Mutant(
        name="a rate that another tool has changed is restored",
        file="reassign/restoring.py",
        old="return taken.prior if now in taken.ours and not held else now",
        new="return taken.prior if not held else now",
        tests=(_RULES, _ACTIONS),
    ),
    Mutant(
        name="a rate that another run holds is restored",
        file="reassign/restoring.py",
        old="taken.prior if now in taken.ours and not held else now",
        new="taken.prior if now in taken.ours else now",
        tests=(_RULES, _ACTIONS),
    ),
    Mutant(
        name="the rate of another run counts as the previous one",
        file="reassign/restoring.py",
        old="    prior = holders[0].prior if holders else _of_other_clients(now, every)\n",
        new="    prior = now\n",
        tests=(_RULES, _ACTIONS),
    ),
    Mutant(
        name="the last run does not learn the previous values",
        file="reassign/throttle_writes.py",
        old="later = tuple(passing_on(part, now, other, others) for other in others)",
        new="later = tuple(others)",
        tests=(_RULES, _ACTIONS),
    ),
    Mutant(
        name="a run that receives values is not written again",
        file="reassign/throttle_writes.py",
        old="        if other.held.keys() & part.taken.keys():\n",
        new="        if other not in others:\n",
        tests=(_HOLDERS,),
    ),
    Mutant(
        name="a stale read proves that nothing is set",
        file="reassign/throttle_writes.py",
        old="everything = changes if certain else (*changes, *repeat_changes(part, now, others))",
        new="everything = changes",
        tests=(_LAGGING,),
    ),
    Mutant(
        name="a run is closed while values are pending",
        file="reassign/throttle_writes.py",
        old="    if close and not restoration.pending:\n",
        new="    if close:\n",
        tests=(_ACTIONS,),
    ),
    Mutant(
        name="late writes of the previous holder are not awaited",
        file="reassign/throttle_writes.py",
        old="    if ports.runs.late_seconds > 0:\n",
        new="    if False:\n",
        tests=(_HOLDERS,),
    ),
    Mutant(
        name="the holder does not look at the lock before it writes",
        file="stores/record/topic.py",
        old="        self._must_be(self._mine)\n        self.keep_alive()\n",
        new="        self.keep_alive()\n",
        tests=(_HOLDERS,),
    ),
    Mutant(
        name="off by one lease: a holder writes after its lease has ended",
        file="stores/record/topic.py",
        old="        if self._clock.seconds() - self._sent > WRITE_SECONDS:\n",
        new="        if self._clock.seconds() - self._sent > WRITE_SECONDS + LEASE_SECONDS:\n",
        tests=(_RECORD,),
    ),
    Mutant(
        name="a lock is free as soon as it is seen",
        file="stores/record/topic.py",
        old="left = LEASE_SECONDS - self._seen.unchanged(",
        new="left = 0.0 - self._seen.unchanged(",
        tests=(_RECORD,),
    ),
    Mutant(
        name="an ended run of the record begins again from a journal",
        file="stores/record/shared.py",
        old="        if there.finished is not None or version >= known:",
        new="        if version >= known:",
        tests=(_JOINED,),
    ),
    Mutant(
        name="the cluster is written before the record",
        file="reassign/execution.py",
        old="    if prepared.known is None:\n        ports.runs.begin(run)\n",
        new="    if prepared.known is None:\n"
        "        ports.cluster.change(prepared.changes)\n        ports.runs.begin(run)\n",
        tests=(_KILL,),
    ),
    Mutant(
        name="a torn line of a journal hides the next one",
        file="stores/state/runs.py",
        old="        file.truncate(whole)",
        new="        pass",
        tests=(_JOURNAL,),
    ),
    Mutant(
        name="a second wave starts without its list entries",
        file="reassign/execution.py",
        old="        run = enforce(ports, run, entries, now)\n    return _handed_over",
        new="        pass\n    return _handed_over",
        tests=(_WAVES,),
    ),
    Mutant(
        name="doctor removes values that a run holds",
        file="throttle/cluster_throttles.py",
        old="        held = {value for taken in held_by(self.runs, setting) for value in taken.ours}\n"
        "        if setting.is_list:",
        new="        held: set[str] = set()\n        if setting.is_list:",
        tests=("tests/throttle/test_fixes.py",),
    ),
    Mutant(
        name="a later holder's lock in ZooKeeper counts as the own one",
        file="stores/record/znodes.py",
        old="        return Check(path=LOCK, version=0), Check(path=ROOT, version=self._term)",
        new="        return (Check(path=LOCK, version=0),)",
        tests=(_TREE,),
    ),
    Mutant(
        name="a write is not fenced while no run is on record",
        file="stores/record/znodes.py",
        old="        if not self._lock.held:\n            return ()\n        paths",
        new="        if not self._lock.held or not names:\n            return ()\n        paths",
        tests=(_TREE,),
    ),
    Mutant(
        name="restoring a dead broker discards what the last run must restore on live ones",
        file="reassign/throttle_writes.py",
        old="_overwritten(ports, part, unread, later)",
        new="_overwritten(ports, part, unread, others)",
        tests=(_ACTIONS,),
    ),
    Mutant(
        name="a plan proves its entries although another run has recorded them",
        file="reassign/verification.py",
        old="    known = {name for run in unfinished for name in run.plan.targets}\n",
        new="    known: set[TopicPartition] = set()\n",
        tests=(_ACTIONS,),
    ),
    Mutant(
        name="a rate that stays the same is set without a new version of its run",
        file="throttle/set_and_clear.py",
        old="    runs.update(adjusted)\n",
        new="    record(ports, run, adjusted)\n",
        tests=(_HOLDERS,),
    ),
    Mutant(
        name="a topic that is created again between waves is moved",
        file="reassign/execution.py",
        old="    again = recreated(run, found.topic_ids)\n",
        new="    again: tuple[str, ...] = ()\n",
        tests=(_WAVES,),
    ),
    Mutant(
        name="an open run continues with the id of a deleted topic",
        file="reassign/preparation.py",
        old="        known = _with_new_topics(known, found.topic_ids, back)\n",
        new="",
        tests=(_ACTIONS,),
    ),
    Mutant(
        name="off by one window: a rate covers one sample more",
        file="simulate/rate.py",
        old="        age = self.samples * self.sample_ms\n        # Add",
        new="        age = (self.samples + 1) * self.sample_ms\n        # Add",
        tests=("tests/simulate/test_examples.py", "tests/simulate/test_rate.py"),
        unplayed=True,
    ),
    Mutant(
        name="-2 in place of -4: the size of a tiered log counts its remote part",
        file="stores/admin/offsets.py",
        old="LATEST, EARLIEST, EARLIEST_LOCAL, PENDING = -1, -2, -4, -6",
        new="LATEST, EARLIEST, EARLIEST_LOCAL, PENDING = -1, -2, -2, -6",
        tests=("tests/stores/admin/test_local_offsets.py",),
        unplayed=True,
    ),
    Mutant(
        name="a topic that has changed is taken from the last answer",
        file="stores/admin/wire_format.py",
        old="if same is None or not data.startswith(same[0], at):",
        new="if same is None:",
        tests=("tests/stores/admin/test_wire_format.py",),
        unplayed=True,
    ),
    Mutant(
        name="the journal of a command that waits is not read again",
        file="stores/state/runs.py",
        old="if run_id in self._known and path.stat().st_size == self._known[run_id][1]:",
        new="if run_id in self._known:\n"
        "            return self._known[run_id][0], path.stat().st_size\n        if False:",
        tests=(_JOURNAL,),
    ),
    Mutant(
        name="entries of an open run help to prove those of a plan",
        file="reassign/verification.py",
        old=" for topic in plan.topics if topic not in in_use for key in THROTTLE_LISTS]",
        new=" for topic in plan.topics for key in THROTTLE_LISTS]",
        tests=(_ACTIONS,),
    ),
    Mutant(
        name="a process continues a run without a version of its own",
        file="stores/record/runs.py",
        old="if latest != run or anothers or elsewhere or not self._files.has(run):",
        new="if latest != run or elsewhere or not self._files.has(run):",
        tests=(_RECORD,),
    ),
    Mutant(
        name="the last rate that a run took is assumed on a dead broker",
        file="reassign/restoring.py",
        old="next((value for value in reversed(taken.ours) if value != taken.prior), taken.prior)",
        new="taken.ours[-1]",
        tests=(_ACTIONS,),
    ),
    Mutant(
        name="a pause also lowers the leader rates",
        file="reassign/run.py",
        old="        if self.paused and setting.key == FOLLOWER_RATE:\n",
        new="        if self.paused:\n",
        tests=(_HELD,),
    ),
    Mutant(
        name="a new rate does not end a pause",
        file="reassign/run.py",
        old="return replace(run, rate=rate, broker_rates={}, paused=False)",
        new="return replace(run, rate=rate, broker_rates={})",
        tests=(_HELD,),
    ),
    Mutant(
        name="an abort of a paused run stays paused",
        file="reassign/recovery.py",
        old="replace(run, aborting=True, paused=False, handed_over=frozenset())",
        new="replace(run, aborting=True, handed_over=frozenset())",
        tests=(_ACTIONS, _HELD),
    ),
    Mutant(
        name="move adjust sets rates that are not on record",
        file="throttle/set_and_clear.py",
        old="    runs.update(adjusted)\n    changes = needed(wanted, now)\n",
        new="    changes = needed(wanted, now)\n",
        tests=(_HELD, _HOLDERS),
    ),
    Mutant(
        name="a protected move exceeds the highest throttle",
        file="pace/protection.py",
        old="return ByteRate(max(self.low, min(self.high, int(rate))))",
        new="return ByteRate(max(self.low, int(rate)))",
        tests=(_PROTECTION,),
        unplayed=True,
    ),
    Mutant(
        name="unknown latencies of clients increase the throttle",
        file="pace/protection.py",
        old="            return replace(kept, pressure=Pressure.UNKNOWN, unreported=window.unreported)\n",
        new="            return kept\n",
        tests=(_PROTECTION,),
        unplayed=True,
    ),
    Mutant(
        name="a client-id with a carriage return hides the metrics of its broker",
        file="stores/metrics/exporters.py",
        old="BytesIO(text[:end])",
        new="text[:end].splitlines()",
        tests=(_METRICS,),
        unplayed=True,
    ),
    Mutant(
        name="half of an exporter's answer counts as all of it",
        file="stores/metrics/answers.py",
        old="            if not watch.over and answer.length:\n",
        new="            if False:\n",
        tests=(_ANSWERS,),
        unplayed=True,
    ),
    Mutant(
        name="move run keeps the lock between its waves",
        file="reassign/turns.py",
        old="            self._held.close()\n        yield\n",
        new="            pass\n        yield\n        return\n",
        tests=(_TURNS,),
    ),
    Mutant(
        name="a write to a cluster with confirm = true does not ask",
        file="cli/confirmation.py",
        old="    if at.confirm and not (command.agreed or command.options.asks):\n",
        new="    if False:\n",
        tests=(_CONFIRMED,),
        unplayed=True,
    ),
    Mutant(
        name="a proposed quota ignores the number of brokers later",
        file="quota/advice.py",
        old="wanted = max(use.percentile * rules.head_room * factor, ",
        new="wanted = max(use.percentile * rules.head_room, ",
        tests=(_ADVICE,),
        unplayed=True,
    ),
    Mutant(
        name="a bucket gets the limit of a level that brokers count by other tags",
        file="quota/precedence.py",
        old="_first(quotas, client, key, _LEVELS_OF[by])",
        new="_first(quotas, client, key, range(1, 9))",
        tests=(_USAGE,),
        unplayed=True,
    ),
    Mutant(
        name="a SCRAM password is salted with other iterations than the credential has",
        file="quota/scram.py",
        old="password.encode(), salt, iterations)",
        new="password.encode(), salt, DEFAULT_ITERATIONS)",
        tests=(_SCRAM,),
        unplayed=True,
    ),
    Mutant(
        name="a protected move does not lower its throttle when writes are slow",
        file="pace/protection.py",
        old="rate = self._clamped(self.rate * factor)",
        new="rate = self._clamped(self.rate)",
        tests=(_PROTECTION,),
        unplayed=True,
    ),
    Mutant(
        name="the list of a document is in memory as a whole",
        file="quota/yaml_source.py",
        old="                else:\n                    each(item)\n",
        new="                else:\n                    items.append(item)\n                    each(item)\n",
        tests=(_BOUNDS,),
        unplayed=True,
    ),
)
