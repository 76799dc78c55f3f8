"""Decoding a long JSON text part by part: the same values and errors as the standard decoder, in bounded memory."""

from __future__ import annotations

import contextlib
import gc
import json
import tracemalloc
from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota import bounded, counted_json
from kquota.counted_json import TooMuchMemory, decode
from kquota.errors import Invalid
from kquota.reassign import plan, strict_json

PLENTY: Final = 10**9

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)
layouts = st.fixed_dictionaries(
    {
        "indent": st.sampled_from((None, 0, 2)),
        "separators": st.sampled_from((None, (",", ":"), (" ,\t", "\n:\r"))),
        "ensure_ascii": st.booleans(),
    }
)


@pytest.fixture(params=[3, 50, 1_000])
def short_parts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts that are short, so that a short text has parts of every kind, and every text is long."""
    monkeypatch.setattr(counted_json, "_LONGEST_PART", request.param)
    monkeypatch.setattr(counted_json, "_SMALL", 0)


def outcome(text: str, decoder: json.JSONDecoder, *, whole: bool) -> object:
    try:
        return decoder.decode(text) if whole else decode(text, decoder, PLENTY)
    except json.JSONDecodeError as error:
        # Python 3.13 has words of its own for a comma before the end.
        return error.pos if "trailing comma" not in error.msg else "an error"


@pytest.mark.usefixtures("short_parts")
@given(values, layouts)
def test_every_value_is_decoded_as_by_the_standard_library(value: object, layout: dict[str, Any]) -> None:
    text = json.dumps(value, **layout)
    assert decode(text, json.JSONDecoder(), PLENTY) == json.loads(text)


@pytest.mark.usefixtures("short_parts")
@given(values, layouts, st.data())
def test_every_damage_is_found_at_the_same_position(value: object, layout: dict[str, Any], data: st.DataObject) -> None:
    text = json.dumps(value, **layout)
    at = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.sampled_from(("", '"', ",", ":", "[", "]", "{", "}", "\\", " ", "1", "x")))
    damaged = text[:at] + other + text[at + 1 :]
    expected = outcome(damaged, json.JSONDecoder(), whole=True)
    assert expected == "an error" or outcome(damaged, json.JSONDecoder(), whole=False) == expected


@pytest.mark.usefixtures("short_parts")
@given(values)
def test_hooks_see_the_same_objects_in_the_same_order(value: object) -> None:
    def seen(whole: bool) -> tuple[object, list[str]]:
        found: list[str] = []

        def hook(item: object) -> object:
            found.append(str(item))
            return len(found)

        text = json.dumps(value)
        of_object, of_pairs = json.JSONDecoder(object_hook=hook), json.JSONDecoder(object_pairs_hook=hook)
        return [
            decoder.decode(text) if whole else decode(text, decoder, PLENTY) for decoder in (of_object, of_pairs)
        ], found

    assert seen(True) == seen(False)


READ: Final[dict[str, Callable[[str], object]]] = {
    "JSON of any kind": bounded.json_value,
    "JSON of operators": lambda text: strict_json.load(text, "a document", "{}", lambda found: found, "root"),
}


@pytest.mark.parametrize("read", READ.values(), ids=READ)
def test_the_memory_of_a_text_is_counted_from_one_size_on(read: Callable[[str], object]) -> None:
    items = ",".join(["[]"] * (2**20 // 8))
    read(f"[{items}]".ljust(2**20))
    with pytest.raises((Invalid, ValueError), match=r"bytes of memory|too many values that are not valid entries"):
        read(f"[{items}]".ljust(2**20 + 1))


def test_values_that_need_more_memory_than_the_limit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted_json, "_SMALL", 0)
    text = json.dumps([f"n{number}" for number in range(1_000)])
    assert len(decode(text, json.JSONDecoder(), 80_000)) == 1_000
    with pytest.raises(TooMuchMemory, match="more than 50,000 bytes"):
        decode(text, json.JSONDecoder(), 50_000)


def test_values_of_an_object_that_a_hook_replaces_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted_json, "_SMALL", 0)
    text = json.dumps([{"a": list(range(300))}] * 20)
    decoder = json.JSONDecoder(object_hook=lambda _: 1.5)
    assert decode(text, decoder, 20_000) == [1.5] * 20


def long(item: str, length: int = 300_000) -> str:
    return f"[{','.join([item] * (length // (len(item) + 1)))}]"


JUNK: Final = {
    "short strings": long('"ab"'),
    "numbers": long("1000"),
    "empty lists": long("[]"),
    "empty objects": long("{}"),
    "objects with a key each": long('{"aaaaa":1}'),
    "different keys": "[" + ",".join(map('{{"k{}":1}}'.format, range(25_000))) + "]",
    "one object of short strings": "{" + ",".join(map('"{}":"ab"'.format, range(25_000))) + "}",
    "lists of lists": long('[["ab"],["cd"]]'),
    "strings between entries": '{"partitions":[' + long('"ab"')[1:-1] + ',{"topic":"t","partition":0,"replicas":[1]}]}',
    "entries with an invalid log dir": long('{"topic":"t","partition":0,"replicas":[1],"log_dirs":["a"]}'),
    "a wide character": long('"abc"')[:-1] + ',"\N{GRINNING FACE}"]',
    "deep lists": "[" + '["ab",' * 900 + long('"ab"') + "]" * 901,
}


@pytest.mark.parametrize("text", JUNK.values(), ids=JUNK)
def test_junk_is_refused_before_it_takes_much_more_memory_than_its_text(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counted_json, "_LONGEST_PART", 2**10)
    for module in (bounded, counted_json):
        monkeypatch.setattr(module, "_SMALL", 2**10)
    size = len(text.encode())
    for read in (lambda: plan.parse(text, "a plan"), lambda: bounded.json_value(text)):
        gc.collect()
        tracemalloc.start()
        with contextlib.suppress(Invalid, ValueError):
            read()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak <= 8 * size - len(text) + 50_000  # the text itself was there before
