"""The grammar of kafka-configs for --add-config, --add-config-file and --delete-config."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.cli.configs.pairs import keys, pairs, pairs_in
from kquota.errors import Invalid

UNDERSTOOD = {
    "a=1": {"a": "1"},
    "a=1,b=2": {"a": "1", "b": "2"},
    " a = 1 , b = 2 ": {"a": "1", "b": "2"},
    "a=[x,y],b=2": {"a": "x,y", "b": "2"},
    "a=[x=y,z=w],b=[1]": {"a": "x=y,z=w", "b": "1"},
    "a=,b=": {"a": "", "b": ""},
    "a=[]": {"a": ""},
    "a=1,": {"a": "1"},
    "a=[x, y]": {"a": "x, y"},
    "listener.name.x.ssl-y_z=$1": {"listener.name.x.ssl-y_z": "$1"},
}
REFUSED = {
    "": "The list is empty",
    ",": "The list is empty",
    "a": "Pair 1 does not match",
    "a=1,b": "Pair 2 does not match",
    "a=1,,b=2": "Pair 2 does not match",
    "a=b=c": "Pair 1 does not match",
    "a=x,y": "Pair 2 does not match",
    "=1": "A key is empty",
    "a b=1": "Invalid character found for config key: a b",
    "a=1,a=2": "a is given twice",
    "a=1, a =1": "a is given twice",
}


@pytest.mark.parametrize(("text", "meant"), UNDERSTOOD.items(), ids=UNDERSTOOD)
def test_valid_pairs(text: str, meant: dict[str, str]) -> None:
    assert pairs(text) == meant


@pytest.mark.parametrize(("text", "reason"), REFUSED.items(), ids=[repr(text) for text in REFUSED])
def test_invalid_pairs(text: str, reason: str) -> None:
    with pytest.raises(Invalid, match=re.escape(reason)):
        pairs(text)


@pytest.mark.parametrize("text", ["a=CANARY=x", "a=CANARY,CANARY", "ok=1,password=x=CANARY"])
def test_no_error_contains_a_value(text: str) -> None:
    with pytest.raises(Invalid) as caught:
        pairs(text)
    assert "CANARY" not in str(caught.value)


_VALUE = st.text(st.characters(codec="utf-8", exclude_characters="[]"), max_size=20)


@given(st.dictionaries(st.from_regex(r"[a-zA-Z0-9._-]{1,8}", fullmatch=True), _VALUE, min_size=1, max_size=4))
def test_brackets_can_quote_every_value_without_brackets(wanted: dict[str, str]) -> None:
    text = ",".join(f"{key}=[{value}]" for key, value in wanted.items())
    java_trims = "".join(map(chr, range(33)))
    assert pairs(text) == {key: value.strip(java_trims) for key, value in wanted.items()}


def _kafkas(text: str) -> dict[str, str] | None:
    """The rule as Kafka's own regular expressions define it; None where it refuses."""
    outside = r"(?=[^\]]*(?:\[|$))"
    parts = re.split("," + outside, text)
    while parts and not parts[-1]:
        parts.pop()
    split = [re.split(r"[ \t]*=[ \t]*" + outside, part) for part in parts]
    if not split or any(len(sides) != 2 for sides in split):
        return None
    return {key.strip(): re.sub(r"\[?\]?", "", value).strip() for key, value in split}


@given(st.text("ab=,[] ", max_size=14))
def test_the_grammar_matches_kafka(text: str) -> None:
    wanted = _kafkas(text)
    try:
        found = pairs(text)
    except Invalid as error:
        stricter = ("twice", "A key is empty", "Invalid character")
        assert wanted is None or any(reason in str(error) for reason in stricter), (text, wanted)
    else:
        assert found == wanted


def test_a_config_file_has_the_format_of_java_properties(tmp_path: Path) -> None:
    path = tmp_path / "add.properties"
    path.write_text("# quotas\nproducer_byte_rate = 10MB/s\nrequest_percentage:12.5\n")
    assert pairs_in(path) == {"producer_byte_rate": "10MB/s", "request_percentage": "12.5"}


def test_an_invalid_file_is_reported_with_its_option(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("# nothing\n")
    (tmp_path / "twice").write_text("request_percentage=5\nrequest_percentage=50\n")
    for path in (tmp_path / "none", tmp_path / "empty", tmp_path, tmp_path / "twice"):
        with pytest.raises(Invalid, match="--add-config-file"):
            pairs_in(path)


KEYS = {
    "one": (["a"], ("a",)),
    "several": (["a, b ,c"], ("a", "b", "c")),
    "several options": (["a", "b,c"], ("a", "b", "c")),
    "as Java splits": (["a,"], ("a",)),
    "none": ([], ()),
}


@pytest.mark.parametrize(("texts", "meant"), KEYS.values(), ids=KEYS)
def test_valid_keys(texts: list[str], meant: tuple[str, ...]) -> None:
    assert keys(texts) == meant


@pytest.mark.parametrize("texts", [[""], [",a"], ["a,,b"], ["a,a"], ["a", "a"], ["a=1"]])
def test_invalid_keys(texts: list[str]) -> None:
    with pytest.raises(Invalid, match="--delete-config"):
        keys(texts)
