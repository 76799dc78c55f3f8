"""Counts what rounds have reached, and names what they have not, which is usually a gap in the generator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields

from tests.hosts.commands import COMMANDS
from tests.hosts.process import AT, Fault, Process, Step
from tests.hosts.stage import FOREIGN_WRITES, Stage, State

OPERATORS = tuple(COMMANDS)
FAULTS = tuple(fault.name for fault in Fault)
NONE = "none"
ENOUGH = 1000
"""The number of rounds in which every command meets every fault."""


@dataclass
class Met:
    """The faults, states and commands that the rounds have covered. All counters are sums over rounds."""

    faults: Counter[tuple[str, str]] = field(default_factory=Counter)
    states: Counter[tuple[str, str]] = field(default_factory=Counter)
    cells: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    steps: Counter[tuple[str, str]] = field(default_factory=Counter)
    hosts: Counter[str] = field(default_factory=Counter)
    records: Counter[str] = field(default_factory=Counter)
    results: Counter[tuple[str, str]] = field(default_factory=Counter)
    foreign: Counter[str] = field(default_factory=Counter)

    def add(self, stage: Stage, processes: Sequence[Process]) -> None:
        """Add one round."""
        for process in processes:
            self.faults[process.doing, NONE] += not process.reached
            self.hosts[process.host.name] += 1
            self.results[process.doing, process.result] += 1
            if process.reached and process.fate is not None:
                fault = process.fate.fault.name
                self.faults[process.doing, fault] += 1
                self.steps[process.fate.step.name, fault] += 1
                for state in process.reached:
                    self.states[state.value, fault] += 1
                    self.cells[state.value, fault, process.doing] += 1
        self.records[stage.kind] += 1
        self.foreign += stage.seen

    def join(self, other: Met) -> None:
        """Add the counts of another process."""
        for one in fields(self):
            getattr(self, one.name).update(getattr(other, one.name))

    def table(self) -> str:
        """Return all counts, as tables with the faults as columns."""
        columns = [NONE, *FAULTS]
        blocks = [
            _table("operators x faults", OPERATORS, columns, self.faults),
            _table("states x faults", [state.value for state in State], FAULTS, self.states),
            _table("steps x faults", [step.name for step in Step], FAULTS, self.steps),
            _table("operators x ends", OPERATORS, sorted({word for _, word in self.results}), self.results),
            "\n".join(f"{name}: {_counts(of)}" for name, of in self._simple()),
        ]
        return "\n\n".join(blocks)

    def _simple(self) -> Iterator[tuple[str, Counter[str]]]:
        yield "hosts", self.hosts
        yield "records", self.records
        yield "other tools and brokers", self.foreign

    def never(self) -> dict[str, list[str]]:
        """Return the possible cells of each table that were never reached."""
        possible = {(step.name, fault.name) for fault in Fault for step in AT.get(fault, tuple(Step))}
        everything = [(s.value, fault, who) for s in State for fault in FAULTS for who in OPERATORS]
        return {
            "operators x faults": [
                f"{who} / {fault}" for who in OPERATORS for fault in (NONE, *FAULTS) if not self.faults[who, fault]
            ],
            "states x faults": [
                f"{s.value} / {fault}" for s in State for fault in FAULTS if not self.states[s.value, fault]
            ],
            "steps x faults": sorted(f"{step} / {fault}" for step, fault in possible if not self.steps[step, fault]),
            "other tools and brokers": [what for what in FOREIGN_WRITES if not self.foreign[what]],
            "states x faults x operators": [" / ".join(cell) for cell in everything if not self.cells[cell]],
        }

    def must_be_whole(self, rounds: int) -> None:
        """Check that each fault and each command occurred on each host.

        If there are at least `ENOUGH` rounds, each fault must also have occurred in each command and in each state.
        """
        columns = [NONE, *FAULTS]
        assert [c for c in columns if not any(self.faults[name, c] for name in OPERATORS)] == []
        assert [name for name in OPERATORS if not any(self.faults[name, c] for c in FAULTS)] == []
        assert min(self.hosts.values()) > rounds
        if rounds >= ENOUGH:
            found = self.never()
            assert {name: found[name] for name in ("operators x faults", "states x faults")} == {
                "operators x faults": [],
                "states x faults": [],
            }


def _table(title: str, rows: Sequence[str], columns: Sequence[str], counts: Counter[tuple[str, str]]) -> str:
    widths = [max(len(column), 6) for column in columns]
    first = max(len(title), *map(len, rows))
    lines = [" ".join([f"{title:{first}}", *(f"{c:>{w}}" for c, w in zip(columns, widths, strict=True))])]
    for row in rows:
        cells = [f"{counts[row, c]:>{w}}" for c, w in zip(columns, widths, strict=True)]
        lines.append(" ".join([f"{row:{first}}", *cells]))
    return "\n".join(lines)


def _counts(of: Counter[str]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(of.items()))
