"""The values that kquota writes to ZooKeeper: brokers remove only the blanks that Java's `String.trim` removes."""

from __future__ import annotations

import pytest

from kquota.errors import Invalid
from kquota.settings.change import ConfigChange
from kquota.settings.resource import TOPICS, Resource
from kquota.settings.zookeeper_values import must_be_sound


def change(key: str, value: str) -> ConfigChange:
    return ConfigChange(resource=Resource(kind=TOPICS, name="t"), add={key: value})


@pytest.mark.parametrize("blank", ["\u00a0", "\u2003", "\u3000", "\x85", "\u200b"])
@pytest.mark.parametrize(
    ("key", "value"), [("retention.ms", "{}5"), ("retention.ms", "5{}"), ("cleanup.policy", "compact,{}delete")]
)
def test_blanks_that_a_broker_keeps_are_refused(key: str, value: str, blank: str) -> None:
    with pytest.raises(Invalid, match="is not a valid value"):
        must_be_sound(change(key, value.format(blank)))


@pytest.mark.parametrize("blank", [" ", "\t", "\x00", "\x1f"])
def test_blanks_that_a_broker_removes_are_accepted(blank: str) -> None:
    must_be_sound(change("retention.ms", f"{blank}5{blank}"))
    must_be_sound(change("cleanup.policy", f"{blank}compact, delete{blank}"))


def test_around_a_comma_brokers_remove_only_white_space() -> None:
    must_be_sound(change("cleanup.policy", "compact\t,\v delete"))
    with pytest.raises(Invalid, match="is not a valid value"):
        must_be_sound(change("cleanup.policy", "compact,\x00delete"))
