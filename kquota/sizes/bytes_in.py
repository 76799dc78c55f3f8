"""Write rates of brokers (the bytes written to the partitions that a broker leads), and the files that contain them."""

from __future__ import annotations

import csv
import itertools
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kquota import bounded
from kquota.errors import Invalid, Parameter
from kquota.measure import byte_rate
from kquota.sizes import prometheus
from kquota.terms import BrokerId, is_id

LARGEST: Final = 8_000_000
"""The maximum size of a file in characters, enough for a Prometheus answer with a hundred brokers and a value every ten
minutes for two weeks.
"""
_MEMORY: Final = 12
"""The maximum number of bytes of memory for each byte of a file: the values of a short series of a topic take 11."""
ENOUGH: Final = 20
"""The minimum number of rates from which kquota calculates percentiles."""
_REST: Final = ("low", "high", "peak")
_CSV: Final = "Write a header broker,bytes_in and lines like 1,3MB/s"
_JSON: Final = 'Write {"1":"3MB/s"}, or [{"broker":1,"bytes_in":"3MB/s"}], or save a Prometheus query result'


@dataclass(frozen=True, slots=True, kw_only=True)
class BytesIn:
    """A broker's write rate in bytes per second: the mean, and the 5th (`low`), 95th (`high`) and 99th (`peak`)
    percentiles.

    None means unknown, never 0.
    """

    mean: float
    low: float | None = None
    high: float | None = None
    peak: float | None = None


def bytes_in(rates: Sequence[float]) -> BytesIn:
    """Return the mean and the percentiles of `rates`, of which there must be at least one.

    The percentiles of fewer than `ENOUGH` rates are unknown.
    """
    mean = statistics.fmean(rates)
    if len(rates) < ENOUGH:
        return BytesIn(mean=mean)
    hundredths = statistics.quantiles(rates, n=100, method="inclusive")
    return BytesIn(mean=mean, low=hundredths[4], high=hundredths[94], peak=hundredths[98])


def by_hand(texts: Iterable[str]) -> dict[BrokerId, BytesIn]:
    """Parse items like `3=12MB/s` into the rate of each broker.

    Raises Invalid for an item of another form, for an invalid rate, and for a broker that is given twice.
    """
    rates: dict[BrokerId, BytesIn] = {}
    for text in texts:
        broker, equals, rate = text.partition("=")
        if not equals or not is_id(broker):
            raise Invalid(Parameter("bytes_in"), f" {text!r}: is not a broker id with a rate. Example: 1=3MB/s")
        if BrokerId(int(broker)) in rates:
            raise Invalid(Parameter("bytes_in"), f" {text!r}: broker {int(broker)} already has a rate. Give one rate")
        try:
            rates[BrokerId(int(broker))] = BytesIn(mean=_rate(rate, broker))
        except Invalid as error:
            raise Invalid(Parameter("bytes_in"), f" {error}") from error
    return rates


def parse(text: str, where: str) -> dict[BrokerId, BytesIn]:
    """Return the rate of each broker from the text of a file, in bytes per second.

    The text has one of these formats:

    - CSV with a header
    - a JSON object with broker ids as keys
    - a JSON list of rows
    - an answer of Prometheus to `/api/v1/query`, with one value for each broker
    - an answer of Prometheus to `/api/v1/query_range`. The result has the mean and the percentiles of each broker's
      values.

    Raises Invalid if the text is too long, is in another format or contains no rate. Also raises Invalid for an invalid
    rate, for percentiles in the wrong order, and for a broker that is listed twice. The message begins with `where`,
    the name of the file.
    """
    if not text.strip():
        raise Invalid(f"{where}: is empty. {_CSV}")
    if len(text) > LARGEST:
        raise Invalid(
            f"{where}: has {len(text):,} characters, and kquota reads at most {LARGEST:,}. Query a shorter range"
        )
    rates = _from_json(text, where) if text.lstrip().startswith(("{", "[")) else _from_csv(text, where)
    if not rates:
        raise Invalid(f"{where}: contains no rate for any broker. Add a rate for each broker")
    return rates


def _from_csv(text: str, where: str) -> dict[BrokerId, BytesIn]:
    lines = [line for line in text.splitlines() if line.strip()]
    separator = next((mark for mark in ",;\t" if mark in lines[0]), ",")
    try:
        return _from_table(csv.DictReader(lines, delimiter=separator, skipinitialspace=True), where)
    except csv.Error as error:
        raise Invalid(f"{where}: is not CSV: {error}. {_CSV}") from error


def _from_table(table: csv.DictReader[str], where: str) -> dict[BrokerId, BytesIn]:
    names = [name.strip() for name in table.fieldnames or ()]
    if missing := [name for name in ("broker", "bytes_in") if name not in names]:
        raise Invalid(f"{where}: has no column {' or '.join(missing)}. {_CSV}")
    table.fieldnames = names
    # A missing cell (None) and an empty cell are both left out, because both mean unknown.
    rows = [{name: cell.strip() for name, cell in row.items() if name and cell and cell.strip()} for row in table]
    return _from_rows(rows, where, _CSV)


def _from_json(text: str, where: str) -> dict[BrokerId, BytesIn]:
    try:
        found = bounded.json_value(text, per_byte=_MEMORY)
    except ValueError as error:
        raise Invalid(f"{where}: is not JSON: {error}. {_JSON}") from error
    if prometheus.is_answer(found):
        values = prometheus.values(found, where)
        return {BrokerId(broker): bytes_in(rates) for broker, rates in values.items() if rates}
    if isinstance(found, dict):
        pairs = ((broker, row if isinstance(row, dict) else {"bytes_in": row}) for broker, row in found.items())
        return _from_rows([{**row, "broker": broker} for broker, row in pairs], where, _JSON)
    if not all(isinstance(row, dict) for row in found):
        raise Invalid(f"{where}: contains a list item that is not an object. {_JSON}")
    return _from_rows(found, where, _JSON)


def _from_rows(rows: Iterable[Mapping[str, object]], where: str, form: str) -> dict[BrokerId, BytesIn]:
    rates: dict[BrokerId, BytesIn] = {}
    for row in rows:
        broker = str(row.get("broker"))
        if isinstance(row.get("broker"), bool) or not is_id(broker):
            raise Invalid(f"{where}: {broker!r} is not a broker id. {form}")
        if BrokerId(int(broker)) in rates:
            raise Invalid(f"{where}: broker {int(broker)} is listed twice. Give one rate")
        if row.get("bytes_in") is None:
            raise Invalid(f"{where}: broker {int(broker)} has no bytes_in. Leave out brokers with an unknown rate")
        given = [name for name in _REST if row.get(name) not in (None, "")]
        rest = {name: _rate(row[name], f"{where}: broker {broker}, {name}") for name in given}
        rate = _rate(row["bytes_in"], f"{where}: broker {broker}")
        rates[BrokerId(int(broker))] = _in_order(BytesIn(mean=rate, **rest), f"{where}: broker {broker}")
    return rates


def _in_order(found: BytesIn, what: str) -> BytesIn:
    """Return `found`. Raises Invalid if `low` is not the lowest value or if `high` is above `peak`, because columns may
    be swapped. With rare bursts, the mean can be above each percentile.
    """
    percentiles = [("low", found.low), ("high", found.high), ("peak", found.peak)]
    known = [(name, rate) for name, rate in percentiles if rate is not None]
    pairs = [*itertools.pairwise(known), (("low", found.low or 0.0), ("bytes_in", found.mean))]
    for (name, rate), (above, most) in pairs:
        if rate > most:
            order = "low must not be above bytes_in, high or peak, and high must not be above peak"
            raise Invalid(f"{what}: {name} is above {above}. {order}")
    return found


def _rate(value: object, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise Invalid(f"{what}: {value!r} is not a valid rate. Write 3MB/s, for example")
    if isinstance(value, str):
        # Unlike a throttle, a write rate can be 0.
        return 0.0 if value.strip() == "0" else float(byte_rate(value, what))
    try:
        rate = float(value)
    except OverflowError:
        rate = math.inf
    if not math.isfinite(rate) or rate < 0:
        raise Invalid(f"{what}: {value if math.isfinite(rate) else rate} is not a valid rate. Write 0 or more")
    return rate
