"""Plans that only Spark reads: their format, and the first entry that breaks a rule of `reassign.plan`."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kquota.errors import Invalid, Refused
from kquota.reassign.plan import Plan
from kquota.spark import files, plan_files
from kquota.spark.plan_files import PlanFiles
from kquota.spark.reader import Reader
from kquota.terms import TopicPartition
from tests.cli.run import run
from tests.spark.rows import log_dirs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kquota.spark.estimate import Measured

REPOSITORY = Path(__file__).parents[2]
ENTRY = '{"topic":"t","partition":0,"replicas":[1,3]}'
KAFKAS = f'{{"version":1,"partitions":[{ENTRY}]}}'


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (KAFKAS.encode(), "kafka's"),
        (json.dumps(json.loads(KAFKAS), indent=1).encode(), "kafka's"),
        (f"\n{ENTRY}\n{ENTRY}\n".encode(), "lines"),
        (gzip.compress(ENTRY.encode()), "lines"),
        (b"PAR1 and more", "parquet"),
    ],
    ids=["Kafka's, one line", "Kafka's, many lines", "JSON lines", "JSON lines, packed", "Parquet"],
)
def test_the_content_determines_the_format(tmp_path: Path, content: bytes, kind: str) -> None:
    (tmp_path / "plan").write_bytes(content)
    found = plan_files.opened(str(tmp_path / "plan"), tmp_path)
    if kind == "kafka's":
        assert found == Plan(targets={TopicPartition("t", 0): (1, 3)})  # type: ignore[dict-item]
    else:
        assert isinstance(found, PlanFiles)
        assert found.parquet is (kind == "parquet")


def test_a_remote_plan_is_recognized_by_its_name(tmp_path: Path) -> None:
    lines, parquet = (plan_files.opened(f"s3a://b/{name}", tmp_path) for name in ("plan.jsonl.gz", "plan"))
    assert isinstance(lines, PlanFiles) and isinstance(parquet, PlanFiles)
    assert (lines.parquet, parquet.parquet, parquet.files.elsewhere) == (False, True, ("s3a://b/plan",))


def test_a_name_that_is_too_long(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match=r"^xxx.*: cannot be read: File name too long"):
        plan_files.opened("x" * 300, tmp_path)


def test_a_plan_that_is_nested_too_deeply(tmp_path: Path) -> None:
    (tmp_path / "plan").write_text("[" * 5_000)
    with pytest.raises(Invalid, match=r"/plan: .*nested"):
        plan_files.opened(str(tmp_path / "plan"), tmp_path)


def test_a_folder_of_two_formats_and_an_empty_folder(tmp_path: Path) -> None:
    folder = tmp_path / "plan"
    folder.mkdir()
    with pytest.raises(Invalid, match="/plan: the folder contains no file of a plan"):
        plan_files.opened(str(folder), tmp_path)
    (folder / "a").write_bytes(b"PAR1")
    (folder / "b").write_text(ENTRY)
    with pytest.raises(Invalid, match=r"/plan: the folder contains Parquet and other files. Keep only one kind"):
        plan_files.opened(str(folder), tmp_path)


def of_plan(spark: SparkSession, plan: Path, scratch: Path, **more: Any) -> Measured:
    """The sums of a stored plan, on one partition t-0 on brokers 1 and 2."""
    from kquota.spark.estimate import Writes, measure
    from kquota.spark.plans import stored
    from kquota.spark.sizes import from_log_dirs

    found = plan_files.opened(str(plan), scratch)
    assert isinstance(found, PlanFiles)
    (scratch / "printed").write_text(log_dirs((1, {"t-0": 91}), (2, {"t-0": 91})))
    sizes = files.log_dirs([str(scratch / "printed")], scratch)
    reader = Reader(spark=spark, scratch=scratch)
    return measure(from_log_dirs(reader, sizes), sizes, stored(reader, found), Writes(by_broker={}), reader, **more)


@pytest.mark.spark
def test_packed_lines_and_parquet_are_the_same_plan(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "plan.jsonl.gz").write_bytes(gzip.compress(f"{ENTRY}\n\n".encode()))
    spark.createDataFrame([("t", 0, [1, 3])], "topic string, p int, r array<int>").toDF(
        "topic", "partition", "replicas"
    ).coalesce(1).write.parquet(str(tmp_path / "plan.parquet"))
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    lines = of_plan(spark, tmp_path / "plan.jsonl.gz", tmp_path / "a")
    assert [(link.leader, link.destination, link.bytes) for link in lines.work.links] == [(1, 3, 91)]
    assert of_plan(spark, tmp_path / "plan.parquet", tmp_path / "b") == lines


WRONG = {
    "no JSON": ("topic t", "topic t: is not a valid entry of a plan"),
    "cut off": (ENTRY[:30], "is not a valid entry of a plan"),
    "no topic": ('{"partition":0,"replicas":[1]}', "an entry has no topic"),
    "no topic's name": ('{"topic":"a b","partition":0,"replicas":[1]}', "a b: is not a valid topic name"),
    "no partition": ('{"topic":"t","replicas":[1]}', "t: an entry has no partition number"),
    "negative": ('{"topic":"t","partition":-1,"replicas":[1]}', "t--1: partition must be from 0 to 2147483647"),
    "no replicas": ('{"topic":"t","partition":1}', "t-1: the entry has no replicas"),
    "empty replicas": ('{"topic":"t","partition":1,"replicas":[]}', "t-1: Partition replica list cannot be empty"),
    "a null broker": ('{"topic":"t","partition":1,"replicas":[1,null]}', "t-1: broker ids must be from 0 to"),
    "a broker twice": ('{"topic":"t","partition":1,"replicas":[1,1]}', "duplicate entries: t-1 has [1, 1]"),
    "a partition twice": (ENTRY, "Partition reassignment contains duplicate topic partitions: t-0"),
}


@pytest.mark.spark
def test_the_first_entry_that_breaks_a_rule_is_reported(spark: SparkSession, tmp_path: Path) -> None:
    later = '{"topic":"z","partition":-9,"replicas":[]}'
    for number, (entry, complaint) in enumerate(WRONG.values()):
        scratch = tmp_path / str(number)
        scratch.mkdir()
        plan = scratch / "plan.jsonl"
        # A duplicate entry is found only if every single entry is valid.
        plan.write_text("\n".join([ENTRY, entry] if entry == ENTRY else [ENTRY, entry, later]))
        with pytest.raises(Invalid) as raised:
            of_plan(spark, plan, scratch)
        assert str(raised.value).startswith(f"{plan}: ")
        assert complaint in str(raised.value)


@pytest.mark.spark
def test_parquet_that_is_not_a_plan(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(3).coalesce(1).write.parquet(str(tmp_path / "ids"))
    with pytest.raises(
        Invalid,
        match=r"/ids: these columns are missing: topic, partition, replicas \(found: id\). Write the plan again",
    ):
        of_plan(spark, tmp_path / "ids", tmp_path)
    damaged, scratch = tmp_path / "damaged", tmp_path / "s"
    damaged.write_bytes(b"PAR1 and what is no table at all PAR1")
    scratch.mkdir()
    with pytest.raises(Invalid, match="/damaged: cannot be read as Parquet: "):
        of_plan(spark, damaged, scratch)
    mixed, more = tmp_path / "mixed", tmp_path / "m"
    spark.sql("select 't' topic, 0 partition, array(1) replicas").write.parquet(str(mixed))
    spark.sql("select 't' topic, 'x' partition, array(1) replicas").write.mode("append").parquet(str(mixed))
    more.mkdir()
    with pytest.raises(Invalid, match=r"/mixed: cannot be read as Parquet: .*merge"):
        of_plan(spark, mixed, more)


def test_parquet_that_must_be_sent_needs_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only Spark Connect's client installs it. A local driver may not have it."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "plan").write_bytes(b"PAR1")
    found = plan_files.opened(str(tmp_path / "plan"), tmp_path)
    assert isinstance(found, PlanFiles)
    reader: Any = Reader(spark=None, scratch=tmp_path, uploads=True)  # type: ignore[arg-type]
    with pytest.raises(Refused, match=f"{tmp_path}/plan: local Parquet .* is not installed. Run pip install pyarrow"):
        reader.parquet(found.files, found.name)


SENT = """
import pathlib, sys
import pyarrow
from pyarrow import parquet
from kquota.errors import Invalid
from kquota.spark import plan_files
from kquota.spark.reader import Reader

plan, what = pathlib.Path(sys.argv[1]), sys.argv[2]
plan.mkdir()
for name, number in (("a", 0), ("b", "x" if what == "mixed" else 1)):
    table = pyarrow.table({"topic": ["t"], "partition": [number], "replicas": [[1]]})
    parquet.write_table(table, plan / name)
if what == "corrupt":
    whole = (plan / "b").read_bytes()
    (plan / "b").write_bytes(whole[:40] + bytes(len(whole) - 40))
class Spark:
    def createDataFrame(self, table):
        return table.num_rows
try:
    (scratch := plan.with_name("scratch")).mkdir()
    found = plan_files.opened(str(plan), scratch)
    print(Reader(spark=Spark(), scratch=scratch, uploads=True).parquet(found.files, found.name))
except Invalid as error:
    print(error)
"""
SENDINGS = {
    "good": ("", "2\n"),
    "corrupt": ("plan: cannot be read as Parquet: ", None),
    "mixed": ("plan: cannot be read as Parquet: ", None),
}


@pytest.mark.spark
@pytest.mark.parametrize(("told", "whole"), SENDINGS.values(), ids=SENDINGS.keys())
def test_parquet_that_is_read_locally_and_sent(
    tmp_path: Path, small_client: str, request: pytest.FixtureRequest, told: str, whole: str | None
) -> None:
    what = request.node.callspec.id
    ran = run([small_client, "-c", SENT, str(tmp_path / "plan"), what], {"PYTHONPATH": str(REPOSITORY)})
    assert (ran.code, ran.err, ran.out.count("\n")) == (0, "", 1)
    assert told in ran.out
    assert whole is None or ran.out == whole
