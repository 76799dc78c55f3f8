"""Which topics --generate is asked to move: kafka-reassign-partitions' --topics-to-move-json-file."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kquota import text_file
from kquota.reassign import document
from kquota.reassign.document import Value, brief
from kquota.terms import wrong_topic_name

_EXAMPLE: Final = '{"topics":[{"topic":"foo"},{"topic":"bar"}],"version":1}'


def read(path: Path) -> tuple[str, ...]:
    """The topics in a file, a pipe or stdin (`-`), sorted. Raises Invalid."""
    return parse(*text_file.read(path, "a topics-to-move JSON file"))


def parse(text: str, where: str) -> tuple[str, ...]:
    """The topics in Kafka's JSON, sorted; a missing version is 1, as for Kafka.

    Raises Invalid beginning with `where` (a file's name), then line and column or the JSON path of what is wrong.
    """
    value = document.load(text, where, _EXAMPLE)
    if (version := value.field("version", 1)).number() != 1:
        raise version.wrong(f"Not supported version field value {version.value}; kquota reads version 1")
    entries = value.field("topics")
    topics = [_topic(entry.field("topic")) for entry in entries.items()]
    if not topics:
        raise entries.wrong(f"names no topic; write for example {_EXAMPLE}")
    if twice := document.repeated(topics):
        raise entries.wrong(f"List of topics to reassign contains duplicate entries: [{', '.join(twice)}]")
    return tuple(sorted(topics))


def _topic(value: Value) -> str:
    name = value.text()
    if why := wrong_topic_name(name):
        raise value.wrong(f"{brief(name)} {why}")
    return name
