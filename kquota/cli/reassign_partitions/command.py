"""`kquota reassign-partitions`: kafka-reassign-partitions, which gives back what was there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from kquota.cli import rates, world
from kquota.cli.actions import given_options
from kquota.cli.connection import Connection, connected
from kquota.cli.contract import say
from kquota.cli.reassign_partitions.options import (
    CANCEL,
    EXECUTE,
    GENERATE,
    LIST,
    Given,
    action,
    must_work_through_zookeeper,
)
from kquota.errors import Invalid
from kquota.measure import ByteRate, duration, human_rate

if TYPE_CHECKING:
    from kquota.reassign.plan import Plan

EPILOG: Final = """Exit codes of --verify: 0 done, and the throttle given back; 8 still moving: ask again; 1 replicas
ended elsewhere.

Examples:
  kquota reassign-partitions --bootstrap-server localhost:9092 --execute --reassignment-json-file plan.json \
--throttle 50MB/s
  kquota reassign-partitions --bootstrap-server localhost:9092 --verify --reassignment-json-file plan.json"""

_TIMEOUT: Final = "10000"
_LONGEST: Final = 15
"""Digits: more milliseconds than there will be operators."""


@connected()
@given_options(Given)
def reassign_partitions(connection: Connection, given: Given) -> int:
    """Move partitions under a throttle, and put every throttle back exactly as it was."""
    asked = action(given)
    at = world.where(connection)
    if at.zookeeper is not None:
        must_work_through_zookeeper(given, asked)
    if asked == LIST:
        from kquota.cli.reassign_partitions import listing

        return listing.show(at, given.output)
    if asked == GENERATE:
        from kquota.cli.reassign_partitions import generation

        return generation.propose(at, given)
    if asked == EXECUTE:
        return _execute(at, given)
    return _cancel(at, given) if asked == CANCEL else _verify(at, given)


def _execute(at: world.Where, given: Given) -> int:
    throttle = _throttle(given)
    log_dir_throttle = rates.any_throttle(given.replica_alter_log_dirs_throttle, "--replica-alter-log-dirs-throttle")
    if log_dir_throttle is not None:
        say(f"log dirs throttle: {_told(log_dir_throttle)} between the log dirs of every broker that takes part")
    timeout, plan = _seconds(given.timeout or _TIMEOUT), _plan(at, given)
    from kquota.cli.reassign_partitions import execution
    from kquota.reassign.preparation import Asked

    asked = Asked(
        throttle=throttle,
        log_dir_throttle=log_dir_throttle,
        additional=given.additional,
        same_replication_factor=given.disallow_replication_factor_change,
        whole_topics=given.throttle_whole_topics,
        force=given.force,
    )
    return execution.execute(at, plan, asked, given.state_dir, given.output, timeout=timeout, dry_run=given.dry_run)


def _verify(at: world.Where, given: Given) -> int:
    if given.preserve_throttles and given.clear_all:
        raise Invalid("--preserve-throttles gives nothing back and --clear-all takes everything away: give one of them")
    plan = _plan(at, given)
    from kquota.cli.reassign_partitions import execution

    return execution.verify(
        at, plan, given.state_dir, given.output, preserve=given.preserve_throttles, clear_all=given.clear_all
    )


def _cancel(at: world.Where, given: Given) -> int:
    timeout, plan = _seconds(given.timeout or _TIMEOUT), _plan(at, given)
    from kquota.cli.reassign_partitions import execution

    return execution.cancel(
        at,
        plan,
        given.state_dir,
        given.output,
        preserve=given.preserve_throttles,
        force=given.force,
        timeout=timeout,
        dry_run=given.dry_run,
    )


def _throttle(given: Given) -> ByteRate | None:
    text, option = given.throttle, "--throttle"
    if given.replication_quota is not None:
        if text is not None:
            raise Invalid("--replication-quota is KIP-73's name of --throttle: give one of them")
        text, option = given.replication_quota, "--replication-quota"
        say("note: --replication-quota is KIP-73's name; Kafka shipped it as --throttle")
    rate = rates.any_throttle(text, option)
    if rate is not None:
        say(f"throttle: {_told(rate)} into and out of every broker that takes part")
    return rate


def _told(rate: ByteRate) -> str:
    return f"{rate} bytes per second ({human_rate(rate)})"


def _seconds(text: str) -> float:
    """A bare number is Kafka's, of milliseconds."""
    if text.isascii() and text.isdigit() and len(text) <= _LONGEST:
        return int(text) / 1000
    if not text[-1:].isalpha():
        raise Invalid(f"--timeout {text!r}: write whole milliseconds, or a time with its unit, as 10000 or 10s")
    return duration(text, "--timeout")


def _plan(at: world.Where, given: Given) -> Plan:
    from kquota.reassign import log_dirs, plan

    # `action` refuses every action that needs a plan and has none.
    found = plan.read(given.reassignment_json_file or Path(), lambda line: say(f"warning: {line}"))
    if at.zookeeper is not None:
        log_dirs.must_have_brokers(found)
    return found
