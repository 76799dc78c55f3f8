"""The job of `quota advise`: a million clients with a reading each hour of a week, compacted.

`python -m bench.advice` prints its time. It is not a part of `make bench`.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tabulate import tabulate

from bench.engines import processor
from bench.race import say

CLIENTS, DAYS, HOURS = 1_000_000, 7, 24
SECONDS: Final = 60.0
_FREE: Final = 6_000_000_000
_FIRST: Final = 20_000
"""The first day, in days since 1970-01-01."""


def main() -> None:
    """Print the seconds of the job. It calculates the percentile of every client, and the throttle time of each client
    that the proposed quota throttles."""
    with tempfile.TemporaryDirectory(prefix="kquota-bench-") as folder:
        if shutil.disk_usage(folder).free < _FREE:
            sys.exit(f"the use takes {_FREE // 10**9} GB in {folder}; TMPDIR names another folder")
        say(f"writing the use of {CLIENTS:,} clients in {DAYS} days ...")
        _generate(Path(folder) / "v1")
        took, used, throttled = _advised(Path(folder) / "v1")
    row = [f"{took:.1f}", f"{used:.1f}", f"{throttled:,}", "kept" if took <= SECONDS else "BROKEN"]
    headers = ["seconds", "of processor", "clients throttled", f"{SECONDS:g} s"]
    print(tabulate([row], headers=headers, disable_numparse=True))


def _advised(folder: Path) -> tuple[float, float, int]:
    """Return the seconds of the job on a running Spark, its CPU seconds, and the number of throttled clients."""
    from kquota.quota.advice import ProposalRules, proposals
    from kquota.simulate.steady import throttled_time
    from kquota.sizes.history import Listing, SnapshotKey
    from kquota.spark.files import NOTHING
    from kquota.spark.session import session, starting
    from kquota.terms import PRODUCER_BYTE_RATE

    size = sum(file.stat().st_size for file in folder.rglob("*.parquet"))
    say(f"{size / 1e9:.1f} GB")
    taken = SnapshotKey("bench", datetime.fromtimestamp((_FIRST + DAYS) * 86_400, UTC))
    listing = Listing(rolled=(str(folder),), held=frozenset({taken}), waiting={})
    with (
        tempfile.TemporaryDirectory(prefix="kquota-") as scratch,
        starting(Path(scratch), size) as start,
        session(Path(scratch), NOTHING, say=lambda _: None, start=start) as spark,
    ):
        from kquota.spark import usage
        from kquota.spark.reader import Reader

        began, used = time.perf_counter(), processor()
        job = usage.opened(Reader(spark=spark, scratch=Path(scratch)), listing, NOTHING, "1970-01-01")
        uses = job.statistics(0.99, [PRODUCER_BYTE_RATE])
        say(f"{len(uses):,} percentiles after {time.perf_counter() - began:.1f} s")
        assert len(uses) == CLIENTS
        found = proposals(uses, {}, ProposalRules(head_room=1.5))
        limits = {one.use.bucket: one for one in found if one.throttles}
        pieces = job.pieces({bucket: one.use.broker for bucket, one in limits.items()})
        waits = [throttled_time(every, limits[bucket].limit) for bucket, every in pieces]
        assert len(waits) == len(limits)
        assert all(one.seconds > 0 for one in waits)
        return time.perf_counter() - began, processor() - used, len(waits)


def _generate(folder: Path) -> None:
    """Write compacted days as `quota advise --compact` does. One client in 200 has an hour with 20 times its use."""
    from kquota.spark.files import MUCH, Files
    from kquota.spark.session import session

    class Large(Files):
        def size(self) -> int:
            return MUCH

    with tempfile.TemporaryDirectory(prefix="kquota-") as scratch:
        with session(Path(scratch), Large(folder=Path(scratch), names={}), say=lambda _: None) as spark:
            from kquota.spark.usage import USAGE, write

            rows = spark.range(0, DAYS * CLIENTS, 1, 4 * DAYS)
            for columns in _COLUMNS:
                rows = rows.selectExpr("*", *(f"{value} as {name}" for name, value in columns.items()))
            days = rows.selectExpr(*(f"cast({name} as {kind}) as {name}" for name, kind in USAGE.items()))
            write(days, Path(scratch) / "usage")
        for number, file in enumerate(sorted((Path(scratch) / "usage").glob("*/*/*.parquet"))):
            place = folder / "batch=bench" / file.parent.relative_to(Path(scratch) / "usage")
            place.mkdir(parents=True, exist_ok=True)
            shutil.move(file, place / f"usage-{number}.parquet")


# Each step uses the columns of the previous step.
_COLUMNS: Final = (
    {"day": f"id div {CLIENTS}", "client": f"id % {CLIENTS}"},
    {
        "usual": "pow(10, 3 + 4 * (abs(hash(client)) % 1000) / 1000)",
        "burst": "client % 200 = 0 and day = 3",
        "date": f"date_from_unix_date({_FIRST} + day)",
    },
    {
        "used": f"transform(sequence(0, {HOURS - 1}), h -> cast(usual * (1 + 0.5 * sin(h / 3.82)) * "
        f"(0.9 + 0.2 * (abs(hash(id, h)) % 1000) / 1000) * if(burst and h = 12, 20, 1) as float))",
    },
    {
        "version": "1",
        "key": "'producer_byte_rate'",
        "user": "null",
        "client_id": "concat('client-', client)",
        "broker": "cast(client % 3 + 1 as string)",
        "begin": f"timestamp_seconds(({_FIRST} + day) * 86400)",
        "seconds": str(HOURS * 3_600),
        "throttled": "0",
        "most": "array_max(used)",
        "levels": "sort_array(transform(used, u -> shiftleft(bigint(ceil(ln(u / 0.01) / ln(1.02))), 32) + 3600))",
        "lasting": f"array_repeat(3600, {HOURS})",
        "cluster": "'bench'",
    },
)


if __name__ == "__main__":
    main()
