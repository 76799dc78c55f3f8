"""Generates the completions of bash, zsh and fish from the app: `python -m completions.generate [FOLDER]`.

The file of each shell is its template in `source/`. The template contains the program that all three shells share
(`source/complete.awk`), and the table of all completions, which this module generates.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from typer import Context
from typer.main import get_command

from kquota.cli.main import COMMANDS, app, register
from kquota.entity_types import BROKER_LOGGERS, BROKERS, CLIENT_METRICS, GROUPS, TOPICS
from kquota.quota_keys import quotas_of
from kquota.sandbox.jars import RELEASES
from kquota.terms import ENTITY_TYPES, REMOTE_RATES, THROTTLE_LISTS, THROTTLE_RATES

HERE: Final = Path(__file__).parent
FILES: Final = ("kquota.bash", "_kquota", "kquota.fish")

OPTIONS: Final[Mapping[str, str]] = {
    "--cluster": "clusters",
    "--entity-type": "entity-types",
    "--entity-name": "entity-names",
    "--add-config": "pairs",
    "--delete-config": "keys,",
    "--config": "topic-pairs",
    "--record": "topics",
    "--topic": "topics",
    "--broker": "brokers",
    "--broker-logger": "brokers",
    "--kafka": "releases",
}
"""The kind of the value of each option whose metavar does not determine it. A comma at the end means a list."""
METAVARS: Final[Mapping[str, str]] = {
    "BROKER": "brokers",
    "BROKER=RATE|FILE": "files",
    "DIR": "folders",
    "FILE": "files",
    "GLOB,…": "topics,",
    "ID,…": "brokers,",
    "ID:ID,…": "brokers,",
    "PATH": "files",
    "T,…": "topics,",
}
"""The kind of the value of an option, by its metavar. For any other metavar, only the user knows the values."""

TOPIC_CONFIGS: Final = (
    *("cleanup.policy", "compression.gzip.level", "compression.lz4.level", "compression.type"),
    *("compression.zstd.level", "delete.retention.ms", "file.delete.delay.ms", "flush.messages", "flush.ms"),
    *("index.interval.bytes", "local.retention.bytes", "local.retention.ms", "max.compaction.lag.ms"),
    *("max.message.bytes", "message.timestamp.after.max.ms", "message.timestamp.before.max.ms"),
    *("message.timestamp.type", "min.cleanable.dirty.ratio", "min.compaction.lag.ms", "min.insync.replicas"),
    *("preallocate", "remote.log.copy.disable", "remote.log.delete.on.disable", "remote.storage.enable"),
    *("retention.bytes", "retention.ms", "segment.bytes", "segment.index.bytes", "segment.jitter.ms", "segment.ms"),
    "unclean.leader.election.enable",
)
"""All topic configs of Kafka 4.3, in addition to throttled replica lists."""
_OF_EVERY_GROUP: Final = ("assignment.interval", "heartbeat.interval", "session.timeout")
BROKER_CONFIGS: Final = (
    *REMOTE_RATES,
    *("log.cleaner.io.max.bytes.per.second", "max.connection.creation.rate", "max.connections"),
    *("max.connections.per.ip", "num.io.threads", "num.network.threads", "num.replica.fetchers"),
)
"""The limits of clients and replicas on a running broker, in addition to its throttles."""
GROUP_CONFIGS: Final = (
    *(f"{kind}.{key}.ms" for kind in ("consumer", "share", "streams") for key in _OF_EVERY_GROUP),
    *("share.auto.offset.reset", "share.delivery.count.limit", "share.isolation.level"),
    *("share.partition.max.record.locks", "share.record.lock.duration.ms", "share.renew.acknowledge.enable"),
    *("streams.initial.rebalance.delay.ms", "streams.num.standby.replicas"),
)
"""All group configs of Kafka 4.3."""
KEYS: Final[Mapping[str, Sequence[str]]] = {
    **{kind: quotas_of([kind]) for kind in ENTITY_TYPES},
    TOPICS: sorted((*THROTTLE_LISTS, *TOPIC_CONFIGS)),
    BROKERS: sorted((*THROTTLE_RATES, *BROKER_CONFIGS)),
    CLIENT_METRICS: ("interval.ms", "match", "metrics"),
    GROUPS: sorted(GROUP_CONFIGS),
    BROKER_LOGGERS: ("root",),
}
"""The config keys of each entity type. Of the loggers, only `root` exists on every broker."""


def texts() -> Mapping[str, str]:
    """Return the text of the file for each shell, by the name of the file."""
    program = (HERE / "source" / "complete.awk").read_text(encoding="utf-8")
    parts = {"@PROGRAM@": quoted(program), "@TABLE@": quoted("".join(f"{line}\n" for line in table()))}
    found = {}
    for name in FILES:
        text = (HERE / "source" / name).read_text(encoding="utf-8")
        found[name] = re.sub("|".join(parts), lambda mark: parts[mark[0]], text)
    return found


def quoted(text: str) -> str:
    """Return the text in quotes that bash, zsh and fish read in the same way.

    Raises ValueError for text with a backslash that fish would read differently.
    """
    if re.search(r"\\(?:\\|$)", text, re.MULTILINE):
        raise ValueError("two backslashes, or one at the end of a line: fish would read them as something else")
    return "'" + text.replace("'", r"'\''") + "'"


def table() -> Iterator[str]:
    """Yield the lines for `read_table` in complete.awk: commands with their options, and the values of options."""
    for name in COMMANDS:
        register(name)
    root = get_command(app)
    words: dict[str, Sequence[str]] = {"entity-types": list(KEYS), "releases": list(RELEASES)}
    words |= {f"keys of {entity_type}": keys for entity_type, keys in KEYS.items()}
    for path, command in _commands("kquota", root):
        yield _line("C", path, _first_sentence(command.help or ""))
        for parameter in command.get_params(Context(command)):
            kind, choices = _kind(parameter)
            if choices:
                words[kind] = choices
            if parameter.param_type_name == "argument":
                yield _line("A", path, kind)
            else:
                many = "many" if parameter.multiple else "once"
                told = "" if parameter.hidden else _first_sentence(parameter.help or "")
                yield _line("O", path, ",".join(parameter.opts), many, kind, told)
    for kind, each in words.items():
        for word in each:
            yield _line("V", kind, word)


def _commands(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    if not command.hidden:
        yield path, command
        for name, child in getattr(command, "commands", {}).items():
            yield from _commands(f"{path} {name}", child)


def _kind(parameter: Any) -> tuple[str, Sequence[str]]:
    """Return the kind of the parameter's value, and the possible values if the parameter lists them."""
    if getattr(parameter, "is_flag", False):
        return "flag", ()
    metavar = parameter.metavar or ""
    if choice := re.fullmatch(r"\[([a-z|]+)\]", metavar):
        return choice[1], choice[1].split("|")
    if choices := getattr(parameter.type, "choices", None):
        return "|".join(choices), choices
    if metavar in METAVARS:
        return METAVARS[metavar], ()
    return OPTIONS.get(parameter.opts[0], "free"), ()


def _first_sentence(text: str) -> str:
    return re.split(r"\.(?:\s|$)| +\[|\n\n", " ".join(text.split()), maxsplit=1)[0]


def _line(*fields: str) -> str:
    return "\t".join(fields)


def main() -> None:
    """Write the three files to the given folder, by default to the folder of this module."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    for name, text in texts().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
