"""Lists of names and broker ids in options (separated by commas, repeated, or both), and topics in a file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Final, TypeAlias

from kquota import text_file
from kquota.errors import Invalid
from kquota.terms import BrokerId, is_id

Line: TypeAlias = tuple[str, int | None, int | None]
"""A line of a file: a topic, its number of partitions and its replication factor. A missing number is None."""
MOST_TOPICS: Final = 100_000
"""The maximum number of topics in a file. In practice, a cluster has fewer."""


def names(texts: Sequence[str] | None, option: str) -> tuple[str, ...]:
    """Return each name once, in the given order. Without the option (None), return no names. Raises Invalid for an
    empty name.
    """
    found = [name.strip() for text in texts or () for name in text.split(",")]
    if "" in found:
        raise Invalid(
            f"{option} {','.join(texts or ())!r}: a name is empty. Write names joined by commas, for example a,b"
        )
    return tuple(dict.fromkeys(found))


def broker_ids(texts: Sequence[str] | None, option: str) -> tuple[BrokerId, ...]:
    """Return each id once, in the given order. Without the option (None), return no ids. Raises Invalid for an invalid
    id.
    """
    return tuple(dict.fromkeys(every_broker_id(texts or (), option)))


def every_broker_id(texts: Sequence[str], option: str) -> list[BrokerId]:
    """Return the ids like `broker_ids`, but keep repeated ids."""
    found = [text.strip() for given in texts for text in given.split(",")]
    if not all(map(is_id, found)):
        raise Invalid(
            f"{option} {','.join(texts)!r}: not a list of broker ids. Write broker ids joined by commas, for example "
            "1,2,3"
        )
    return [BrokerId(int(text)) for text in found]


def topics_in(path: Path) -> list[Line]:
    """Return all topics of the file of `--from-file`, in the order of the file.

    Raises Invalid for an unreadable file, an invalid line, a file without topics, and more than `MOST_TOPICS` topics.
    """
    from kquota.mutation import naming  # imported here, because only a topic file needs it

    text, name = text_file.read(path, "a file of topics (--from-file)")
    where = f"--from-file {name}"
    # A list of short lines would need many times the memory of the text, so the lines are read one by one.
    lines = (line[0] for line in re.finditer(r".*\n|.+", text))
    found = list(islice(naming.lines(lines, where), MOST_TOPICS + 1))
    if not found:
        raise Invalid(f"{where}: lists no topic. Write one topic on each line")
    if len(found) > MOST_TOPICS:
        raise Invalid(f"{where}: lists more than {MOST_TOPICS:,} topics. Split the file")
    return found
