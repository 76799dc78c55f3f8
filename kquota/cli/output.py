"""The answers of commands, their JSON documents, and how kquota prints them. `formats` has the values of `--output`.

An answer is a frozen dataclass. Its fields that are not `hidden`, in order, are the keys of its JSON document, which is
a contract.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from enum import Enum
from types import NoneType
from typing import Any, ClassVar, Final, TypeAlias

from kquota.cli.contract import DONE, NOT_WRITTEN, drop_stdout, report_lost_output, say
from kquota.cli.formats import WRITE, Output
from kquota.quota.entity import Entity
from kquota.settings.change import Change
from kquota.settings.resource import Resource, Setting
from kquota.terms import Default, TopicPartition

Form: TypeAlias = Callable[[Any], Any]
Row: TypeAlias = Sequence[str | None]
JsonObject: TypeAlias = dict[str, object]
"""The keys and values of an object in a JSON document. `plain` converts the values."""


class Part:
    """A frozen dataclass that can be written as JSON: an answer, or a part of one."""

    __slots__ = ()


def key(name: str | None = None, form: Form | None = None, **more: Any) -> Any:
    """Declare a field that has another `name` in JSON, or another `form`, for example rounded."""
    return field(metadata={"key": name, "form": form}, **more)


def rounded(digits: int) -> Form:
    """Return the form of a number that is rounded to this many decimal places in JSON. None becomes null."""
    return lambda value: None if value is None else round(value, digits)


def each(form: Form) -> Form:
    """Return the form of a sequence whose items have this form."""
    return lambda items: map(form, items)


def moment(time: datetime) -> str:
    """Return a date and time in UTC as text, for example `2026-01-31 12:00:00Z`."""
    return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def spread(form: Form | None = None, **more: Any) -> Any:
    """Declare a field with several keys, which are added to the keys of its answer or part. None adds no keys."""
    return field(metadata={"spread": True, "form": form}, **more)


def hidden(**more: Any) -> Any:
    """Declare a field that is not in JSON, but is needed for the text, the notes or the exit code."""
    return field(metadata={"hidden": True}, **more)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Part):
    """The result of a command. The fields of a subclass that are not `hidden` are the JSON document."""

    VERSION: ClassVar[int | None] = 1
    """The version of the JSON document, which is its first key. None if the document has no version."""
    HEADER: ClassVar[Sequence[str]] = ()
    """The columns of `rows`."""
    INDENT: ClassVar[int | None] = None
    SEPARATORS: ClassVar[tuple[str, str] | None] = None
    ASCII: ClassVar[bool] = False
    """True if the JSON document escapes all characters outside ASCII."""
    TABBED: ClassVar[bool] = False
    """True if tabs separate the columns of the text, as in some of Kafka's tools."""

    notes: tuple[str, ...] = hidden(default=())
    """Lines for stderr that are printed before stdout, for example warnings."""
    data_notes: tuple[str, ...] = hidden(default=())
    """Lines for stderr after `notes`, but only with JSON, TSV or `--quiet`, because the text already contains them."""
    closing_notes: tuple[str, ...] = hidden(default=())
    """Lines for stderr that are printed after stdout, for example a summary. `--quiet` omits them."""
    code: int = hidden(default=DONE)
    """The exit code."""
    interim: bool = hidden(default=False)
    """If True, only the text shows this answer. JSON and TSV omit it, for example because another answer follows."""
    is_continued: bool = hidden(default=False)
    """True if the command is still working, and prints another answer later. If this answer cannot be printed, the
    command ends.
    """

    def text(self) -> Iterable[str]:
        """Return the lines of stdout for people. Without lines, stdout is empty."""
        raise NotImplementedError

    def needs(self) -> Iterable[str]:
        """Return the lines that `--quiet` prints in addition to errors and warnings: messages that need action."""
        return ()

    def rows(self) -> Iterable[Row]:
        """Return the rows of `--output` tsv, for commands that have this format. In a row, None stands for null."""
        raise NotImplementedError

    def document(self) -> str:
        """Return stdout as JSON. An answer in one of kquota's file formats overrides this method with the codec of that
        format.
        """
        head = {} if self.VERSION is None else {"version": self.VERSION}
        # `plain` returns a tree, so there are no cycles to check.
        return json.dumps(
            head | plain(self),
            ensure_ascii=self.ASCII,
            indent=self.INDENT,
            separators=self.SEPARATORS,
            check_circular=False,
            allow_nan=False,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines(Answer):
    """Lines for a script, for example paths. Every `--output` writes them unchanged."""

    lines: tuple[str, ...]

    def text(self) -> Iterable[str]:
        """Return `lines` unchanged."""
        return self.lines


def show(returned: Answer | Generator[Answer], output: Output, *, quiet: bool = False) -> int:
    """Print the answer of a command, or each answer of a generator, and close the generator.

    Return the exit code of the last answer, or 0 without answers. With `quiet`, stdout is empty, and stderr has only
    messages that need action.
    """
    if isinstance(returned, Answer):
        return _needed(returned) if quiet else _shown(returned, output)
    code = DONE
    with closing(returned) as answers:
        for answer in answers:
            code = _needed(answer) if quiet else _shown(answer, output)
    return code


def _needed(answer: Answer) -> int:
    for line in (*answer.notes, *answer.data_notes):
        say(line)
    for line in answer.needs():
        say(line, needed=True)
    return answer.code


def _shown(answer: Answer, output: Output) -> int:
    """Print an answer. Raises OSError if it cannot be printed. For the last answer, a closed pipe and the errors in
    `NOT_WRITTEN` are not raised.
    """
    for line in answer.notes if output.for_people else (*answer.notes, *answer.data_notes):
        say(line)
    try:
        if output.for_people or not answer.interim:
            text = _written(answer, output)
            if answer.is_continued:
                print(text, end="", flush=True)
            else:
                _print_last(text, answer.code)
    finally:
        for line in answer.closing_notes:
            say(line)
    return answer.code


def _print_last(text: str, code: int) -> None:
    """Print the output of a command that has done its work. A closed pipe (`| head`) does not change its exit code."""
    try:
        print(text, end="", flush=bool(text))
    except BrokenPipeError:
        drop_stdout()
    except OSError as error:
        if error.errno not in NOT_WRITTEN:
            raise
        report_lost_output(error, code)


def _written(answer: Answer, output: Output) -> str:
    if isinstance(answer, Lines):
        return "".join(f"{line}\n" for line in answer.lines)
    return WRITE[output](answer)


def plain(value: object) -> Any:
    """Convert a value to its JSON form. A `Part`, a mapping, an enum and the types in `FORMS` have a form.

    Raises TypeError for any other type, and for a key of a mapping that is not text.
    """
    kind = type(value)
    form = _FORM_OF.get(kind)
    if form is None:
        form = _FORM_OF[kind] = _form(kind)
    return form(value)


def _number(value: float) -> float | str:
    """Return a number for JSON. NaN and infinity, which other tools may have stored, become text, because JSON does not
    have these numbers.
    """
    return value if math.isfinite(value) else str(value)


def _list(values: Iterable[Any]) -> list[Any]:
    return [plain(value) for value in values]


def _object(values: Mapping[Any, Any]) -> dict[str, Any]:
    found = {}
    for name, value in values.items():
        if not isinstance(name, str):
            raise TypeError(f"{name!r} cannot be a key of a JSON document")
        found[name] = plain(value)
    return found


def _part(kind: type[Any]) -> Form:
    columns = []
    for one in fields(kind):
        how = one.metadata
        if not how.get("hidden"):
            form: Form | None = how.get("form")
            written = None if how.get("spread") else how.get("key") or one.name
            columns.append((one.name, written, plain if form is None else _then_plain(form)))

    def write(part: object) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, written, form in columns:
            value = form(getattr(part, name))
            if written is not None:
                found[written] = value
            elif value is not None:
                found.update(value)
        return found

    return write


def _then_plain(form: Form) -> Form:
    return lambda value: plain(form(value))


def _as_it_is(value: Any) -> Any:
    return value


def named(entity: Entity | Resource) -> dict[str, str | None]:
    """Convert the entity of a quota, or the resource of a config, to its names by kind. None is the default entity."""
    return {kind[:-1]: None if isinstance(name, Default) else name for kind, name in entity.parts()}


def _partition(name: TopicPartition) -> dict[str, object]:
    return {"topic": name.topic, "partition": name.partition}


def _setting(of: Setting) -> dict[str, str]:
    return {"kind": of.kind, "name": of.name, "key": of.key}


def _change(made: Change) -> dict[str, str | None]:
    """Return the JSON of a change. null in `from` or `to` means that the setting is unset."""
    return {**_setting(made.setting), "from": made.before, "to": made.after}


FORMS: Final[Mapping[type[Any], Form]] = {
    str: _as_it_is,
    int: _as_it_is,
    bool: _as_it_is,
    NoneType: _as_it_is,
    float: _number,
    list: _list,
    tuple: _list,
    map: _list,  # `each` makes the items one by one, because a list of them would need as much memory as the document
    dict: _object,
    datetime: datetime.isoformat,
    Default: lambda _: None,  # null stands for the default entity, because a user can have any name
    Entity: named,
    Resource: named,
    TopicPartition: _partition,
    Setting: _setting,
    Change: _change,
}
"""One form for each kind of value, so that scripts always see a value in the same form."""


_FORM_OF: Final[dict[type[Any], Form]] = dict(FORMS)
"""A cache: `FORMS`, and the form of every other kind of value that has occurred."""


def _form(kind: type[Any]) -> Form:
    if issubclass(kind, Part):
        return _part(kind)
    if issubclass(kind, Mapping):
        return _object
    if issubclass(kind, Enum):
        return lambda member: member.value
    raise TypeError(f"{kind.__name__} has no form in a JSON document: make it a Part, or add it to FORMS")
