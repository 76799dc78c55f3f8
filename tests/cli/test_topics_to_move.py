"""The topics-to-move JSON is read as strictly as a plan: each error names its position."""

from __future__ import annotations

from pathlib import Path

import pytest

from kquota.cli.reassign_partitions.generation import parse_topics, topics_to_move
from kquota.errors import Invalid

RIGHT = {
    "as Kafka documents it": ('{"topics":[{"topic":"foo"},{"topic":"bar"}],"version":1}', ("bar", "foo")),
    "without a version": ('{"topics": [{"topic": "foo"}]}', ("foo",)),
    "with what Kafka passes over": ('{"topics":[{"topic":"foo","partition":1}],"version":1,"x":2}', ("foo",)),
}
WRONG = {
    "empty": ("", "is empty"),
    # Python 3.13 names the comma, older ones the character after it.
    "malformed": ('{"topics":[\n{"topic":"foo"},]}', "line 2 column 1"),
    "a list": ('[{"topic":"foo"}]', "the document: must be an object, but is a list"),
    "no topics": ('{"version":1}', "field 'topics' is missing"),
    "topics by name": ('{"topics":["foo"]}', "topics[0]: must be an object, but is a string"),
    "one topic": ('{"topics":{"topic":"foo"}}', "topics: must be a list, but is an object"),
    "none": ('{"topics":[]}', "topics: contains no topic"),
    "without its name": ('{"topics":[{"topic":"foo"},{"name":"bar"}]}', "topics[1]: field 'topic' is missing"),
    "a number": ('{"topics":[{"topic":7}]}', "topics[0].topic: must be a string, but is a number"),
    "no topic's name": ('{"topics":[{"topic":"a/b"}]}', 'topics[0].topic: "a/b" is not a valid topic name'),
    "..": ('{"topics":[{"topic":".."}]}', 'topics[0].topic: ".." is not a valid topic name'),
    "escape codes": ('{"topics":[{"topic":"\\u001b[2J"}]}', 'topics[0].topic: "\\u001b[2J" is not a valid topic name'),
    "a topic twice": ('{"topics":[{"topic":"a"},{"topic":"a"}]}', "contains duplicate entries: [a]"),
    "a key twice": ('{"topics":[],"topics":[]}', 'key "topics" occurs twice'),
    "another version": ('{"topics":[{"topic":"a"}],"version":2}', "version: Not supported version field value 2"),
    "a plan": ('{"version":1,"partitions":[]}', "field 'topics' is missing"),
}


@pytest.mark.parametrize(("text", "topics"), RIGHT.values(), ids=RIGHT)
def test_valid_topics_to_move(text: str, topics: tuple[str, ...]) -> None:
    assert parse_topics(text, "topics.json") == topics


@pytest.mark.parametrize(("text", "complaint"), WRONG.values(), ids=WRONG)
def test_errors_name_their_position(text: str, complaint: str) -> None:
    with pytest.raises(Invalid) as raised:
        parse_topics(text, "topics.json")
    assert str(raised.value).startswith("topics.json: ")
    assert complaint in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match=r"cannot be read: No such file or directory\. Give a topics-to-move JSON file"):
        topics_to_move(tmp_path / "absent.json")
