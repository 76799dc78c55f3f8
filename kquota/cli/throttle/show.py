"""`kquota throttle show`: what is throttled, by whom, since when, and what flows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kquota.cli import world
from kquota.cli.connection import Connection, connected
from kquota.cli.contract import DONE, say
from kquota.cli.listed import broker_ids, names
from kquota.cli.options import Output, StateDir, TableFormat
from kquota.cli.throttle import options
from kquota.errors import Unreachable
from kquota.measure import human_rate
from kquota.several import joined

if TYPE_CHECKING:
    from kquota.throttle.flow import Flow
    from kquota.throttle.port import Ports
    from kquota.throttle.standing import Standing

EPILOG: Final = """What flows is measured from the ends of the logs. Through ZooKeeper it is unknown: nobody tells it
there.

Examples:
  kquota throttle show --bootstrap-server localhost:9092
  kquota throttle show --bootstrap-server localhost:9092 --topic orders --sample 0 --output json"""


@connected()
def show(
    connection: Connection,
    topic: options.Topics = None,
    broker: options.Brokers = None,
    sample: Annotated[
        str, typer.Option("--sample", metavar="TIME", help="How long to measure what flows; 0: configs only.")
    ] = "3s",
    no_sample: Annotated[bool, typer.Option("--no-sample", help="The same as --sample 0.")] = False,
    state_dir: StateDir = None,
    output: TableFormat = Output.text,
) -> int:
    """Show which brokers and topics are throttled, by which run, since when, and what flows there."""
    topics, brokers = names(topic, "--topic"), broker_ids(broker, "--broker")
    seconds = 0.0 if no_sample else options.seconds_of(sample)
    at = world.where(connection)
    from kquota.cli.throttle import show_printed
    from kquota.throttle import actions

    with world.throttling(at, state_dir) as ports:
        standing = actions.read(ports)
        options.must_exist(standing, topics, brokers)
        flow = flowing(ports, standing, seconds)
    for line in (*warnings(standing), *starving(standing, flow)):
        say(f"warning: {line}")
    shown = show_printed.Shown(standing=standing, flow=flow, topics=topics, brokers=brokers)
    writes = {Output.text: show_printed.text, Output.json: show_printed.document, Output.tsv: show_printed.table}
    print(writes[output](shown), end="")
    return DONE


def flowing(ports: Ports, standing: Standing, seconds: float) -> Flow | None:
    """What flows through what is listed, or None and why on stderr; nothing is measured for 0 seconds."""
    from kquota.throttle import actions

    if not standing.lists or not seconds:
        return None
    if ports.log_dirs is None:
        say("note: through ZooKeeper nobody tells what flows: it is unknown; ask with --bootstrap-server")
        return None
    say(f"measuring what flows for {seconds:g} s ...")
    try:
        return actions.sample(ports, standing, seconds, world.SystemClock())
    except Unreachable as error:
        say(f"warning: what flows is unknown: {error}")
        return None


def warnings(standing: Standing) -> Iterator[str]:
    """What could not be read, so that nobody takes it for unset."""
    if unread := standing.unread:
        yield f"broker {joined(unread)} did not tell its rates: they are unknown; is it alive?"


def starving(standing: Standing, flow: Flow | None) -> Iterator[str]:
    """Where followers in sync use a leader's throttle up (KIP-73: IN < T)."""
    from kquota.throttle.flow import starved

    for one in () if flow is None else starved(standing, flow):
        yield (
            f"broker {one.broker}: followers in sync take {human_rate(one.keep_up)} of its leader rate of "
            f"{human_rate(one.rate)}; they are counted and not delayed (KIP-73: IN < T). "
            + (
                f"What is behind is written to at {human_rate(one.behind)} and can never catch up: "
                if one.hopeless and one.behind
                else f"{'Nothing' if one.hopeless else 'Little'} is left for what falls behind: "
            )
            + "raise the rate, or list only what must catch up"
        )
