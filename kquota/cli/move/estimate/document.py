"""The JSON document of `move estimate`: a contract with a version. Keys are added, never taken away."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kquota.cli.move.estimate import outlook
from kquota.cli.move.estimate.answer import Estimate
from kquota.cli.move.estimate.inputs import CLUSTER
from kquota.cli.move.estimate.printed import others
from kquota.cli.move.estimate.verdict import refusal
from kquota.measure import ByteRate
from kquota.pace.enforcement import Enforcement
from kquota.pace.fetch import Fetch
from kquota.pace.ratio import MoveTime
from kquota.pace.share import Share, Side
from kquota.pace.waves import Waves
from kquota.pace.window import Bound, Window

if TYPE_CHECKING:
    from kquota.cli.move.estimate.inputs import Source
    from kquota.spark.estimate import Measured

VERSION: Final = 1


def document(answer: Estimate) -> str:
    """The whole estimate as one line of JSON: bytes, bytes per second, seconds; null is unknown, never 0."""
    measured, pace, judged = answer.measured, answer.pace, answer.judged
    worst, ends = judged.bottleneck, pace.ends
    return json.dumps(
        {
            "version": VERSION,
            "throttle": answer.throttle,
            "sizes": _sizes(answer),
            "write_rates": _rates(answer.rates) | {"brokers_without_partitions": list(measured.unallotted)},
            "assumed": _assumed(measured, live=answer.source == CLUSTER),
            "followers_out_of_sync": measured.lagging,
            "kip73": _kip(answer.kip),
            "copies": pace.work.copies,
            "bytes_to_copy": pace.work.bytes,
            "shares": [_share(share, ends) for share in pace.shares],
            "bottleneck": None if worst is None else {"broker": worst.broker, "side": worst.side.value},
            "bottleneck_wave": judged.worst + 1 if isinstance(judged, Waves) else None,
            "feasible": judged.feasible,
            "throttle_must_exceed": judged.least_throttle,
            "expected_seconds": judged.seconds,
            "expected_seconds_without_writes": judged.seconds_without_writes,
            "least_seconds": judged.least_seconds,
            "followed": judged.followed,
            "deadline": None if answer.deadline is None else {"seconds": answer.deadline, "met": _not(answer.late)},
            "refused": refusal(answer),
            "window": _window(answer.window, answer.throttle),
            "fetch": _fetch(answer.fetch),
            "enforcement": _enforcement(pace.enforcement),
            "throttles": [
                {"throttle": other.throttle, "expected_seconds": other.seconds, "feasible": other.feasible}
                for other in others(judged)
            ],
        }
        | outlook.document(answer.outlook)
    )


def _sizes(answer: Estimate) -> dict[str, object]:
    health = answer.measured.health
    return {
        "source": answer.source,
        "names": list(answer.names),
        "cluster": health.cluster,
        "time": health.time,
        "brokers": list(health.brokers),
        "left_out": {"bad": health.bad, "duplicate": health.duplicate, "future": health.future},
        "log_dirs_offline": health.offline,
    }


def _assumed(measured: Measured, *, live: bool) -> dict[str, object]:
    return {
        "leaders": measured.leaders_assumed,
        "in_sync": measured.in_sync_assumed,
        "sizes": measured.assumed.partitions,
        "sizes_named": list(measured.assumed.named),
        # A live broker that holds nothing is known to.
        "empty_brokers": [] if live else list(measured.unseen),
    }


def _not(verdict: bool | None) -> bool | None:
    return None if verdict is None else not verdict


def _rates(rates: Sequence[Source]) -> dict[str, object]:
    kinds = dict.fromkeys(rate.kind for rate in rates)
    return {
        "source": "+".join(kinds) or None,
        "sources": [
            {"kind": rate.kind, "name": rate.name, "brokers": None if rate.brokers is None else list(rate.brokers)}
            for rate in rates
        ],
    }


def _window(window: Window, throttle: ByteRate) -> dict[str, object]:
    def told(bounds: tuple[Bound, ...]) -> list[dict[str, object]]:
        return [
            {"rate": bound.rate, "inclusive": bound.closed, "binds": bound.binds, "why": bound.why} for bound in bounds
        ]

    return {
        "above": told(window.above),
        "below": told(window.below),
        "empty": window.empty,
        "broken": [bound.why for bound in window.broken(throttle)],
    }


def _fetch(fetch: Fetch) -> dict[str, object]:
    return {
        "brokers": fetch.brokers,
        "response_max_bytes": fetch.response_max_bytes,
        "window_seconds": fetch.window_seconds,
        "network": fetch.network,
        "seconds": fetch.seconds,
        "holds": fetch.holds,
        "largest_response_max_bytes": fetch.largest,
    }


def _enforcement(found: Enforcement) -> dict[str, object]:
    return {
        "told": found.told,
        "replication.quota.window.num": found.window_num,
        "replication.quota.window.size.seconds": found.window_seconds,
        "replica.fetch.backoff.ms": found.fetch_backoff * 1000,
        "replica.fetch.wait.max.ms": found.fetch_wait * 1000,
        "replica.fetch.max.bytes": found.fetch_bytes,
        "replica.fetch.response.max.bytes": found.response_bytes,
    }


def _kip(kip: MoveTime) -> dict[str, object]:
    return {
        "move_ratio": kip.move_ratio,
        "partitions_to_be_moved": kip.partitions_to_be_moved,
        "total_partition_count": kip.total_partition_count,
        "total_log_size_per_broker": kip.log_size_per_broker,
        "brokers": kip.brokers,
        "replication_quota": kip.replication_quota,
        "max_bytes_in_per_sec": kip.max_bytes_in,
        "in_below_throttle": kip.in_below_throttle,
        "move_time_seconds": kip.seconds,
    }


def _share(share: Share, ends: Mapping[tuple[int, Side], float]) -> dict[str, object]:
    return {
        "broker": share.broker,
        "side": share.side.value,
        "copies": share.copies,
        "bytes": share.bytes,
        "keep_up": share.keep_up,
        "left_for_copies": share.left,
        "writes": share.writes,
        "finishes": share.finishes,
        "flows": share.flows,
        "seconds": share.seconds,
        "ends_after_seconds": ends.get((share.broker, share.side)),
        "least_seconds": share.least_seconds,
    }
