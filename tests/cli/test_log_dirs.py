"""The JSON of `log-dirs --describe`, including an offline log dir and a copy between two log dirs."""

from __future__ import annotations

from kquota.cli.formats import document
from kquota.cli.log_dirs.run import sizes
from tests.sizes.test_sizes import DIRS, ONE, TWO


def test_the_json_matches_kafka() -> None:
    assert document(sizes([TWO, ONE], DIRS)) == (
        '{"brokers":[{"broker":1,"logDirs":[{"partitions":['
        '{"partition":"t-x-0","size":5,"offsetLag":1,"isFuture":false},'
        '{"partition":"t-x-10","size":7,"offsetLag":0,"isFuture":true}],"error":null,"logDir":"/a"}]},'
        '{"broker":2,"logDirs":[{"partitions":[],"error":"KafkaStorage (56)","logDir":"/b"}]}],"version":1}\n'
    )
