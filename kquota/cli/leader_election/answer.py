"""The answer of `kquota leader-election`, in the words of Kafka 4.3.1's kafka-leader-election."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final

from kquota.cli.output import Answer, JsonObject, hidden, key, plain
from kquota.election.actions import ElectionResults
from kquota.election.port import ElectionType
from kquota.list_text import few
from kquota.measure import agreeing, human_duration
from kquota.mutation.port import Failure
from kquota.terms import TopicPartition

_SHOWN: Final = 10


def _partitions(results: Mapping[TopicPartition, tuple[str, str | None]]) -> list[JsonObject]:
    return [{**plain(name), "result": result, "error": error} for name, (result, error) in sorted(results.items())]


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionAnswer(Answer):
    """The result for each partition, sorted: `elected`, `not needed`, `failed`, `unknown`, `not sent` or `would elect`.

    `results` has the result of each partition, with the reason for `failed`, otherwise None. `lines` are the text
    output.
    """

    election_type: str
    results: Mapping[TopicPartition, tuple[str, str | None]] = key("partitions", _partitions)
    lines: tuple[str, ...] = hidden()

    def text(self) -> Iterable[str]:
        return self.lines


def answered(
    kind: ElectionType, results: ElectionResults, *, closing_notes: tuple[str, ...], code: int
) -> ElectionAnswer:
    """Return the answer so far. Only JSON and notes contain refused, unknown and unsent partitions."""
    names = {
        "elected": results.elected,
        "not needed": results.not_needed,
        "unknown": results.unknown,
        "not sent": results.left,
    }
    found: dict[TopicPartition, tuple[str, str | None]] = {
        name: (result, None) for result, those in names.items() for name in those
    }
    reasons = {name: failure.reason for name, failure in results.failed.items()} | dict(results.refused)
    found |= {name: ("failed", reason) for name, reason in reasons.items()}
    return ElectionAnswer(
        election_type=kind.name.lower(),
        results=found,
        lines=tuple(_lines(kind, results.elected, results.not_needed, results.failed)),
        closing_notes=closing_notes,
        code=code,
    )


def planned(
    kind: ElectionType, given: Sequence[TopicPartition], needing: Set[TopicPartition], notes: tuple[str, ...]
) -> ElectionAnswer:
    """Return the answer to a dry run. kquota would elect the leaders of the given partitions that are in `needing`. The
    other given partitions need no election.
    """
    names = [name for name in given if name in needing]
    others = [name for name in given if name not in needing]
    would = f"Would elect leaders ({kind.name}) for partitions {', '.join(map(str, sorted(names)))}"
    return ElectionAnswer(
        election_type=kind.name.lower(),
        results={name: ("would elect" if name in needing else "not needed", None) for name in given},
        lines=(*([would] if names else []), *_lines(kind, (), others, {})),
        notes=notes,
    )


def still_unhealthy(unsettled: Sequence[TopicPartition], settle: float) -> str:
    """Return why kquota stopped between two batches: partitions that were not healthy again after `settle` seconds."""
    return (
        f"{agreeing(len(unsettled), 'partition', 'is', 'are')} still unhealthy {human_duration(settle)} after a batch, "
        f"without a new leader or with an out-of-sync replica ({few(unsettled, _SHOWN)})"
    )


def _lines(
    kind: ElectionType,
    elected: Iterable[TopicPartition],
    not_needed: Iterable[TopicPartition],
    failed: Mapping[TopicPartition, Failure],
) -> Iterator[str]:
    if names := ", ".join(map(str, sorted(elected))):
        yield f"Successfully completed leader election ({kind.name}) for partitions {names}"
    if names := ", ".join(map(str, sorted(not_needed))):
        yield f"Valid replica already elected for partitions {names}"
    for name, failure in sorted(failed.items()):
        yield f"Error completing leader election ({kind.name}) for partition: {name}: {failure.reason}"
