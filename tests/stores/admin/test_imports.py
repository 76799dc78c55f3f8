"""kquota imports little of kafka-python. A program that uses kquota can still import all of it."""

import subprocess
import sys
from pathlib import Path

import pytest

from kquota.stores import admin

FOLDER = Path(admin.__file__).parent
UNUSED = {"kafka.producer", "kafka.admin", "kafka.protocol.admin.acl"}
FIRST = "from kquota.stores.admin.quotas import WireQuotas"


@pytest.mark.parametrize(
    "program",
    [
        f"{FIRST}; from kafka import KafkaProducer; from kafka.admin import KafkaAdminClient",
        f"{FIRST}; import kafka; kafka.KafkaProducer",
        f"{FIRST}; from kafka.protocol.admin import *; AlterUserScramCredentialsRequest; ListGroupsRequest",
        f"{FIRST}; from kafka.protocol.consumer import FetchRequest, OffsetFetchRequest",
        f"from kafka import KafkaProducer; {FIRST}; from kafka.protocol.admin import ListGroupsRequest",
    ],
)
def test_a_program_can_import_all_of_kafka_python(program: str) -> None:
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("first", sorted(path.stem for path in FOLDER.glob("[a-z]*.py")))
def test_kquota_executes_no_package_that_it_does_not_use(first: str) -> None:
    """Whichever module a command imports first."""
    program = f"import kquota.stores.admin.{first}, sys; print(*({UNUSED!r} & sys.modules.keys()))"
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "\n"
