"""`kquota throttle show`: throttles, the runs that set them, and the throughput of their brokers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from kquota.cli.connection import Recorded
from kquota.cli.options import Output, StateDir, TableFormat, flag, value

EPILOG: Final = """Exit codes: 0 if shown; 8 if shown, but a rate or a list is unknown. kquota measures throughput
from log end offsets. Over --zookeeper it is shown as unknown, because ZooKeeper does not store offsets.

Examples:
  kquota throttle show --bootstrap-server localhost:9092
  kquota throttle show --bootstrap-server localhost:9092 --topic orders --sample 0 --output json"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowOptions:
    """Show throttled brokers and topics, the runs that set the throttles, and the throughput."""

    connection: Recorded
    topic: Annotated[list[str] | None, value("topic", "T,…", "Show only these topics.")] = None
    broker: Annotated[list[str] | None, value("broker", "ID,…", "Show only these brokers, by id.")] = None
    sample: Annotated[str, value("sample", "TIME", "Time to measure throughput. 0: show only configs.")] = "3s"
    no_sample: Annotated[bool, flag("no-sample", "The same as --sample 0.")] = False
    state_dir: StateDir = None
    output: TableFormat = Output.text
