"""How answers are printed: the JSON form of each value, and which stream receives it."""

from __future__ import annotations

import errno
import json
import sys
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import pytest

from kquota.cli import contract
from kquota.cli.formats import WRITE, document
from kquota.cli.options import Output
from kquota.cli.output import Answer, Part, Row, hidden, key, plain, show, spread
from kquota.quota.entity import Entity
from kquota.settings.change import Change
from kquota.settings.resource import BROKERS, Resource, Setting
from kquota.terms import DEFAULT, BrokerId, TopicPartition

pytestmark = pytest.mark.unit

LIST = Setting.of_topic("t", "leader.replication.throttled.replicas")


class Color(Enum):
    RED = "red"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place(Part):
    rack: str
    setting: Setting | None = spread(default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen(Answer):
    HEADER = ("what", "count")

    what: str
    count: int | None = key("how.many")
    rate: float = key(form=round, default=1.6)
    place: Place | None = spread(default=None)
    secret: object = hidden(default=None)

    def text(self) -> Iterator[str]:
        if self.what:
            yield f"{self.what}: {self.count}"

    def rows(self) -> Iterator[Row]:
        yield [self.what, None if self.count is None else str(self.count)]


FORMS: Mapping[str, tuple[object, object]] = {
    "null": (None, None),
    "a broker": (BrokerId(3), 3),
    "not a number": (float("nan"), "nan"),
    "infinite": ([float("inf"), -1.5], ["inf", -1.5]),
    "a time": (datetime(2026, 3, 1, 12, 30, tzinfo=UTC), "2026-03-01T12:30:00+00:00"),
    "a word": (Color.RED, "red"),
    "the default of all brokers": (DEFAULT, None),
    "an entity": (Entity(user=DEFAULT, client_id="c"), {"user": None, "client": "c"}),
    "a broker by its id": (Resource(kind=BROKERS, name="1"), {"broker": "1"}),
    "partitions": ((TopicPartition("t", 0),), [{"topic": "t", "partition": 0}]),
    "a change": (
        Change(setting=LIST, before=None, after="*"),
        {"kind": "topic", "name": "t", "key": LIST.key, "from": None, "to": "*"},
    ),
    "keys of a part among others": (Place(rack="r", setting=LIST), {"rack": "r", **plain(LIST)}),
    "no keys of what is not there": (Place(rack="r"), {"rack": "r"}),
}


@pytest.mark.parametrize(("value", "written"), FORMS.values(), ids=FORMS)
def test_each_kind_of_value_has_one_form(value: object, written: object) -> None:
    assert plain({"value": value}) == {"value": written}


@dataclass(frozen=True, slots=True, kw_only=True)
class Internal:
    password: str


@pytest.mark.parametrize("value", [Internal(password="p"), {1: "a"}, {TopicPartition("t", 0): 1}, {1, 2}, object()])
def test_a_value_without_a_printed_form_is_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        plain({"value": [value]})


def test_fields_become_keys_in_order_after_the_version() -> None:
    seen = Seen(what="é", count=None, place=Place(rack="r"), secret=object(), notes=("n",), code=8)
    assert document(seen) == '{"version": 1, "what": "é", "how.many": null, "rate": 2, "rack": "r"}\n'


def test_each_format_of_the_option_is_written() -> None:
    assert set(WRITE) == set(Output)


UNUSUAL = {
    "U+007F": ("\x7f", "\\u007f"),
    "a terminal command (U+009B)": ("\x9b2J", "\\u009b2J"),
    "text from right to left (U+202E)": ("\u202etxt", "\\u202etxt"),
    "a line separator (U+2028)": ("a\u2028b", "a\\u2028b"),
    "half of a pair": ("\ud800", "\\ud800"),
    "an invisible character above U+FFFF": ("\U000e0001", "\\udb40\\udc01"),
    "letters": ("größe 日本 😀", "größe 日本 😀"),
    "a quote and a backslash": ('"\\', '\\"\\\\'),
}


@pytest.mark.parametrize(("name", "written"), UNUSUAL.values(), ids=UNUSUAL.keys())
def test_json_escapes_what_text_escapes(name: str, written: str) -> None:
    printed = document(Seen(what=name, count=1))
    assert printed == f'{{"version": 1, "what": "{written}", "how.many": 1, "rate": 2}}\n'
    assert json.loads(printed)["what"] == name


PRINTED = {
    Output.text: "a\\x1bb: 1\n",
    Output.json: '{"version": 1, "what": "a\\u001bb", "how.many": 1, "rate": 2}\n',
    Output.tsv: "what\tcount\na\\x1bb\t1\n",
}


@pytest.mark.parametrize(("output", "printed"), PRINTED.items())
def test_control_characters_never_reach_the_terminal(
    output: Output, printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = Seen(what="a\x1bb", count=1, notes=("first\n",), closing_notes=("last",), code=8)
    assert show(seen, output) == 8
    assert tuple(capsys.readouterr()) == (printed, "kquota: first\\n\nkquota: last\n")


def test_an_answer_without_a_line_leaves_stdout_empty(capsys: pytest.CaptureFixture[str]) -> None:
    assert show(Seen(what="", count=1), Output.text) == 0
    assert capsys.readouterr().out == ""


def looks() -> Generator[Seen]:
    yield Seen(what="a", count=1, interim=True, code=8)
    yield Seen(what="b", count=2, notes=("done",))


def test_text_shows_every_check_and_json_the_last_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert show(looks(), Output.text) == 0
    assert capsys.readouterr().out == "a: 1\nb: 2\n"
    assert show(looks(), Output.json) == 0
    assert json.loads(capsys.readouterr().out)["what"] == "b"
    assert show(looks(), Output.text, quiet=True) == 0
    assert capsys.readouterr().out == ""


def test_a_full_disk_changes_no_exit_code_inside_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The metrics of --textfile have the exit code of the command itself, and only the process ends with 1."""

    def full(text: str, *_: object, file: object = None, **__: object) -> None:
        if file is None:
            raise OSError(errno.ENOSPC, "No space left on device")
        sys.stderr.write(f"{text}\n")

    monkeypatch.setattr("builtins.print", full)
    monkeypatch.setattr(contract, "drop_stdout", lambda: None)
    monkeypatch.setattr(contract, "_lost", [False])
    assert show(Seen(what="a", count=1, code=8, closing_notes=("done",)), Output.text) == 8
    assert contract.is_output_lost()
    error = "stdout cannot be written: No space left on device. The command itself ended with exit code 8"
    assert capsys.readouterr().err == f"kquota: error: {error}\nkquota: done\n"


@pytest.mark.parametrize("output", Output)
def test_a_generator_continues_when_its_reader_closes_the_pipe_of_the_last_answer(
    output: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For example `move estimate --report`, which writes the report after the estimate."""
    written = []

    def estimated() -> Generator[Seen]:
        yield Seen(what="a", count=1, code=8)
        written.append("the report")

    def closed_pipe(*_: object, **__: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("builtins.print", closed_pipe)
    monkeypatch.setattr("kquota.cli.output.drop_stdout", lambda: None)
    assert show(estimated(), output) == 8
    assert written == ["the report"]


def test_a_watching_command_ends_when_its_reader_closes_the_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = []

    def followed() -> Generator[Seen]:
        try:
            yield Seen(what="a", count=1, is_continued=True)
        except GeneratorExit:
            closed.append("named the next step")
            raise

    def closed_pipe(*_: object, **__: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("builtins.print", closed_pipe)
    with pytest.raises(BrokenPipeError):
        show(followed(), Output.text)
    assert closed == ["named the next step"]
