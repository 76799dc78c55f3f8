"""The answer of Prometheus to a query, saved as JSON: the broker of each series, and its values."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kquota.errors import Invalid

_LABELS: Final = (
    *("broker_id", "kafka_broker_id", "brokerid", "node_id", "broker", "id"),
    *("pod", "kubernetes_pod_name", "instance", "host", "hostname", "nodename"),
)
"""The labels that can name the broker of a series. The first of them whose value contains a broker id counts."""
_TOPIC: Final = "topic"
_HIGHEST: Final = 2.0**63
"""The maximum valid rate, in bytes per second. The sum of higher rates could exceed the range of a float."""
_SAVE: Final = "Save the answer of /api/v1/query or /api/v1/query_range"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Series:
    """One series of an answer. `values` has its values by time, without NaN."""

    broker: int
    labels: Mapping[str, str]
    values: Mapping[float, float]


def is_answer(found: object) -> bool:
    """Return True if a JSON document has the form of an answer from Prometheus, or of the `data` of such an answer."""
    return isinstance(found, dict) and (found.keys() >= {"status"} or found.keys() >= {"resultType", "result"})


def values(answer: Mapping[str, Any], where: str) -> dict[int, list[float]]:
    """Return the values of each broker in order of time. The list is empty if all values are NaN.

    If a broker has several series, they must differ in `topic`, and in no other label. The series without a topic is
    the total of the broker. If there is no total, the result is the sum of the topics.

    Raises Invalid for an error of Prometheus, for an answer that is not a valid vector or matrix, and for series of a
    broker that break the rule above. Also raises Invalid for a counter, for an invalid rate, and for a series whose
    labels name no broker. The message begins with `where`.
    """
    if answer.get("status", "success") != "success":
        why = answer.get("error") or answer["status"]
        raise Invalid(f"{where}: Prometheus answered: {why}. Correct the query, or run it again")
    data = answer.get("data", answer)
    kind = data.get("resultType") if isinstance(data, dict) else None
    if kind not in ("vector", "matrix"):
        raise Invalid(f"{where}: contains neither a vector nor a matrix (resultType: {kind or 'missing'}). {_SAVE}")
    try:
        series = [_series(each, kind, where) for each in data["result"]]
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise Invalid(f"{where}: is not a valid Prometheus answer. {_SAVE}") from error
    of_broker: defaultdict[int, list[_Series]] = defaultdict(list)
    for each in series:
        of_broker[each.broker].append(each)
    return {broker: _summed(_checked(found, where)) for broker, found in sorted(of_broker.items())}


def _series(found: Mapping[str, Any], kind: str, where: str) -> _Series:
    labels = {str(key): str(value) for key, value in found["metric"].items()}
    if labels.get("__name__", "").endswith(("_total", "_count")):
        raise Invalid(f"{where}: {labels['__name__']} is a counter, not a rate. Query rate({labels['__name__']}[5m])")
    pairs = [found["value"]] if kind == "vector" else found["values"]
    samples = {float(time): float(value) for time, value in pairs}
    broker = _broker(labels, where)
    if wrong := [value for value in samples.values() if value < 0 or value > _HIGHEST]:
        raise Invalid(f"{where}: broker {broker}: {wrong[0]:g} is not a valid rate. Check the query")
    return _Series(
        broker=broker, labels=labels, values={at: value for at, value in samples.items() if not math.isnan(value)}
    )


def _broker(labels: Mapping[str, str], where: str) -> int:
    for label in _LABELS:
        if (number := _only_number(labels.get(label, ""))) is not None:
            return number
    shown = ", ".join(f'{key}="{value}"' for key, value in sorted(labels.items()))
    raise Invalid(f"{where}: no label names the broker ({{{shown}}}). Add the label broker_id with label_replace()")


def _only_number(name: str) -> int | None:
    """Return the number in `3`, `kafka-3` or `kafka-3.kafka.svc:9404`. None for an IP address, and unless there is
    exactly one number before the first dot, with at most 10 digits.
    """
    host = re.sub(r":[0-9]+$", "", name)
    if re.fullmatch(r"[0-9.]+\.[0-9.]+|.*:.*", host):
        return None
    numbers = re.findall(r"[0-9]+", host.split(".")[0])
    return int(numbers[0]) if len(numbers) == 1 and len(numbers[0]) <= 10 else None


def _checked(series: list[_Series], where: str) -> list[_Series]:
    differing = sorted(
        label
        for label in {label for each in series for label in each.labels}
        if label != _TOPIC and len({each.labels.get(label) for each in series}) > 1
    )
    whole = [each for each in series if not each.labels.get(_TOPIC)]
    topics = [each.labels.get(_TOPIC) for each in series]
    if differing or len(set(topics)) < len(topics):
        by = f" that differ in {', '.join(differing)}" if differing else ""
        raise Invalid(f"{where}: broker {series[0].broker} has {len(series)} series{by}. Query one series per broker")
    return whole or series


def _summed(series: Iterable[_Series]) -> list[float]:
    sums: defaultdict[float, float] = defaultdict(float)
    for each in series:
        for at, value in each.values.items():
            sums[at] += value
    return [value for _, value in sorted(sums.items())]
