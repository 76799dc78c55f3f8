"""`kquota quota simulate` for operators and scripts."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli.run import Ran, kquota, run

SEVEN = """Quota        5 mutations per second; up to 55 at once, which is the quota for 11 s (shipped model)
Load         7 topics x 80 partitions = 560 mutations
Done         85 s after the first request, 7 requests
Afterwards   the next request waits 16 s

  after    topics    mutations    then waits
    0 s         1           80           5 s
    5 s         1           80          16 s
   21 s         1           80          16 s
   37 s         1           80          16 s
   53 s         1           80          16 s
   69 s         1           80          16 s
   85 s         1           80

mutations/s, at most 40; one cell is 2 s
|█ █       █       █       █       █       █|
"""


def simulate(*words: str) -> Ran:
    return kquota("quota", "simulate", *words)


def test_how_long_seven_topics_of_80_partitions_take_at_rate_5() -> None:
    ran = simulate("--controller-mutation-rate", "5", "--topics", "7", "--partitions", "80")
    assert (ran.code, ran.out, ran.err) == (0, SEVEN, "")


@pytest.mark.parametrize("rate", ["0.01", "0.5", "1000000"])
@pytest.mark.parametrize("load", [("7", "80"), ("1", "1"), ("300", "1")])
def test_a_plot_of_any_deploy(rate: str, load: tuple[str, str]) -> None:
    ran = simulate("--controller-mutation-rate", rate, "--topics", load[0], "--partitions", load[1])
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.endswith("|\n")


def test_the_rate_at_which_a_deploy_ends_in_time() -> None:
    words = ("--topics", "2000", "--partitions", "12", "--output", "json")
    found = json.loads(simulate(*words, "--within", "10m").out)
    assert (found["controller_mutation_rate"], found["mutations"]) == (40, 24_000)
    assert found["ms"] <= 600_000
    slower = json.loads(simulate(*words, "--controller-mutation-rate", "39").out)
    assert slower["ms"] > 600_000


@pytest.mark.parametrize(
    ("words", "steady", "by"),
    [
        (("--producer-byte-rate", "10MB/s", "--load", "25MB/s", "--request-size", "1MB"), 10e6, ["byte rate"]),
        (("--consumer-byte-rate", "30MB/s", "--load", "25MB/s", "--request-size", "1MB"), 25e6, []),
        (
            ("--producer-byte-rate", "10MB/s", "--request-percentage", "1", "--load", "25MB/s", "--thread-time", "1ms"),
            1e6,
            ["byte rate", "request percentage"],
        ),
    ],
    ids=["above the quota", "below it", "the most constraining wins"],
)
def test_the_long_run_rate_of_a_client(words: tuple[str, ...], steady: float, by: list[str]) -> None:
    told = json.loads(simulate(*words, "--output", "json").out)
    assert told["steady_bytes_per_second"] == pytest.approx(steady, rel=0.1)
    assert set(told["delayed_by"]) <= set(by)


@pytest.mark.parametrize("model", ["shipped", "draft-even", "draft-front"])
def test_the_example_of_kip_599_at_the_shell(model: str) -> None:
    """560 mutations at R = 5 and B = 500 pass at once, and the next one waits (560 - 500) / 5 = 12 s."""
    words = ("--controller-mutation-rate", "5", "--window-num", "100", "--topics", "7", "--partitions", "80")
    told = json.loads(simulate(*words, "--model", model, "--output", "json").out)
    assert (told["mutations"], told["requests"], told["ms"], told["next_wait_ms"]) == (560, 1, 0, 12_000)
    old = json.loads(simulate(*words, "--model", model, "--permissive", "--output", "json").out)
    assert (old["requests"], old["rounds"][0]["wait_ms"]) == (1, 12_000)


@pytest.mark.parametrize("model", ["shipped", "draft-even", "draft-front"])
def test_the_rate_at_which_seven_topics_end_in_a_minute(model: str) -> None:
    words = ("--topics", "7", "--partitions", "80", "--model", model, "--output", "json")
    found = json.loads(simulate(*words, "--within", "1m").out)
    rate = found["controller_mutation_rate"]
    slower = json.loads(simulate(*words, "--controller-mutation-rate", str(rate - 1)).out)
    assert found["ms"] <= 60_000 < slower["ms"]


def test_a_deploy_file_has_the_format_of_topics(tmp_path: Path) -> None:
    (tmp_path / "topics.txt").write_text("a 80\nb 80 3 # three replicas\nc\n")
    words = ("--controller-mutation-rate", "5", "--from-file", str(tmp_path / "topics.txt"), "--output", "json")
    told = json.loads(simulate(*words).out)
    assert (told["topics"], told["mutations"], told["ms"]) == (3, 161, 21_000)


TRACE = "ms,bytes,user\n0,50000000,a\n10,1000,a\n70000,1000,a\n5,1,b\n5,x,b\n"


def test_a_trace(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TRACE)
    ran = simulate("--producer-byte-rate", "1MB/s", "--trace", str(tmp_path / "t.csv"), "--output", "json")
    a, b = json.loads(ran.out)["streams"]
    assert (a["user"], a["admitted"], a["delayed"], a["worst_wait_ms"], a["worst_wait_at_ms"]) == ("a", 3, 1, 40_000, 0)
    assert (b["user"], b["admitted"], b["delayed"]) == ("b", 1, 0)
    rule = "rows left out: 1, for example in"
    why = "A row is left out if it has the wrong format, a missing or invalid number, or both bytes and mutations"
    assert ran.err == f"kquota: {rule} {tmp_path}/t.csv: '5,x,b'. {why}\n"


TRACED = """Quota        1 MB/s on a broker
Load         2 clients, 4 requests, done in 70 s
Throttled    1 client; 1 wait, 40 s in total

client      requests    delayed    total    worst    after    long run         by
a                  3          1     40 s     40 s      0 s      33 B/s  byte rate

bytes/s, at most 25,000,000; one cell is 2 s
|█                   ▁              ▁|
"""


def test_the_text_of_a_trace(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TRACE)
    ran = simulate("--producer-byte-rate", "1MB/s", "--trace", str(tmp_path / "t.csv"))
    assert (ran.code, ran.out) == (0, TRACED)


@pytest.mark.parametrize(
    ("quota", "column"),
    [(("--producer-byte-rate", "1MB/s"), "bytes"), (("--request-percentage", "5"), "thread_ms")],
    ids=["bytes", "thread time"],
)
def test_a_quota_that_no_row_can_meet_is_reported(quota: tuple[str, str], column: str, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('{"ms": 0, "mutations": 5}\n{"ms": 9, "mutations": 5}\n')
    words = (*quota, "--controller-mutation-rate", "5", "--trace", str(tmp_path / "t.json"), "--output", "json")
    ran = simulate(*words)
    assert ran.err == f"kquota: warning: {quota[0]} has no effect: no row has {column}\n"
    assert json.loads(ran.out)["streams"][0]["mutations"] == 10


WRONG = {
    "an old client, and no quota on mutations": (
        ("--permissive", "--producer-byte-rate", "1MB/s", "--trace", "x"),
        "--permissive has no effect without --controller-mutation-rate. Leave out --permissive\n",
    ),
    "topics of an old client, and no quota": (
        ("--permissive", "--topics", "3"),
        "--permissive has no effect without --controller-mutation-rate or --within. Leave out --permissive\n",
    ),
    "byte rates of topics": (("--topics", "3", "--producer-byte-rate", "1MB/s"), "Leave out the byte rate"),
    "no quota": (
        ("--load", "1MB/s"),
        "no quota is given. Give --producer-byte-rate, --consumer-byte-rate or --request-percentage\n",
    ),
    "no quota of a trace": (
        ("--trace", "x"),
        "no quota is given. Give --controller-mutation-rate, --producer-byte-rate",
    ),
    "no load": (("--producer-byte-rate", "1MB/s"), "no load is given. Give --topics N, --from-file FILE, --load"),
    "two sides": (("--producer-byte-rate", "1MB/s", "--consumer-byte-rate", "1MB/s"), "produces or consumes"),
    "no rate and no time": (("--topics", "3"), "a rate with --controller-mutation-rate N, or find one with"),
    "both": (("--topics", "3", "--controller-mutation-rate", "5", "--within", "9s"), "TIME, but not both"),
    "topics beyond memory": (("--topics", "9" * 20, "--controller-mutation-rate", "5"), "not in the range"),
    "partitions that no broker counts": (("--topics", "1", "--partitions", "9" * 10, "--within", "9s"), "the range"),
    "a window beyond memory": (("--topics", "3", "--within", "9s", "--window-num", "99999"), "not in the range"),
    "a time beyond all": (("--topics", "3", "--within", "1e999"), "--within '1e999': must be at most 36500d"),
    "no wait that ends": (("--topics", "1", "--controller-mutation-rate", "1e-9"), "waits more than 30 days"),
    "the lowest rate": (("--topics", "1", "--controller-mutation-rate", "1e-320"), "waits more than 30 days"),
    "the lowest rate for many": (("--topics", "3", "--controller-mutation-rate", "1e-320"), "take more than 30 days"),
    "no number": (("--topics", "3", "--controller-mutation-rate", "0"), "must be more than 0"),
    "no trace": (("--producer-byte-rate", "1MB/s", "--trace", "/no/such"), "--trace /no/such: the file does not exist"),
    "two loads": (("--topics", "3", "--load", "1MB/s"), "--topics and --load are different loads"),
    "Spark for what takes no time": (
        ("--topics", "3", "--within", "9s", "--spark-master", "spark://h:7077"),
        "--spark-master has no effect with --topics",
    ),
    "no use": (("--topics", "3", "--controller-mutation-rate", "5", "--closed-loop"), "has no effect with --topics"),
    "the size of a topic": (("--topics", "3", "--within", "9s", "--request-size", "1"), "--request-size has no effect"),
    "the time of a deploy": (("--topics", "3", "--within", "9s", "--for", "1m"), "--for has no effect with --topics"),
    "partitions of bytes": (("--load", "1MB/s", "--partitions", "1"), "--partitions has no effect with --load"),
    "a cost without its quota": (("--load", "1MB/s", "--thread-time", "1ms"), "no effect without --request-percentage"),
    "less than a request": (
        ("--producer-byte-rate", "1MB/s", "--load", "1"),
        "--load 1 for 60s is less than one request of 100kB",
    ),
    "a draft of bytes": (("--load", "1MB/s", "--model", "draft-even"), "--model has no effect with --load"),
    "no cost": (("--request-percentage", "1", "--load", "1MB/s"), "Give --thread-time TIME"),
    "a rate without its unit": (
        ("--producer-byte-rate", "10", "--load", "25MB/s"),
        "throttling makes the load last more than 30 days",
    ),
    "months of waiting": (
        ("--topics", "900000", "--partitions", "9", "--controller-mutation-rate", "1"),
        "under this quota, the mutations take more than 30 days",
    ),
    "too many": (
        ("--producer-byte-rate", "1MB/s", "--load", "9GB/s", "--request-size", "1"),
        "Give a larger --request-size or a shorter --for",
    ),
}


@pytest.mark.parametrize(("words", "complaint"), WRONG.values(), ids=WRONG)
def test_wrong_input_prints_one_line_and_exits_2(words: tuple[str, ...], complaint: str) -> None:
    ran = simulate(*words)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert complaint in ran.err


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a,b\n", "the first line must name the column ms and at least one of bytes, thread_ms and mutations"),
        ("", "contains no row"),
        ("ms,bytes\n5,x\n", "contains no valid row"),
        ("ms,mutations\n5,1\n", "--producer-byte-rate has no effect: --trace"),
        ('{"ms": ' + "[" * 100_000 + "\n", "a line has more than 100,000 characters"),
    ],
)
def test_invalid_traces(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    ran = simulate("--producer-byte-rate", "1MB/s", "--trace", str(tmp_path / "t.csv"))
    assert (ran.code, ran.out) == (2, "")
    assert complaint in ran.err


def test_one_is_printed_as_singular() -> None:
    ran = simulate("--topics", "1", "--controller-mutation-rate", "1")
    assert ran.out.startswith("Quota        1 mutation per second; ")
    ran = simulate("--producer-byte-rate", "1MB/s", "--load", "1MB/s", "--request-size", "60MB")
    assert "Throttled    1 time by the byte rate, first for 50,000 ms" in ran.out


def test_a_topic_that_is_listed_in_a_file_twice(tmp_path: Path) -> None:
    (tmp_path / "topics.txt").write_text("a 1\na 2\n")
    ran = simulate("--from-file", str(tmp_path / "topics.txt"), "--controller-mutation-rate", "1")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.endswith("topics.txt: topic a is listed twice. Keep one of its lines\n")


@pytest.mark.parametrize(
    "text", ["\ufeffms,bytes,user\r\n0,60000000,ü\r\n", '\ufeff{"ms": 0, "bytes": 60000000, "user": "ü"}\r\n']
)
def test_a_trace_from_windows_and_from_stdin(text: str, tmp_path: Path) -> None:
    """The result is the same in every locale."""
    (tmp_path / "t").write_bytes(text.encode())
    words = (sys.executable, "-m", "kquota", "quota", "simulate", "--producer-byte-rate", "1MB/s", "--output", "json")
    filed = run(
        [*words, "--trace", str(tmp_path / "t")], {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    )
    assert (filed.code, filed.err) == (0, "")
    (stream,) = json.loads(filed.out)["streams"]
    assert (stream["user"], stream["worst_wait_ms"]) == ("ü", 50_000)
    assert run([*words, "--trace", "-"], stdin=text) == filed


def test_a_pipe_gets_utf_8_in_every_locale(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("ms,bytes,user\n0,60000000,ü\n", encoding="utf-8")
    words = (sys.executable, "-m", "kquota", "quota", "simulate", "--producer-byte-rate", "1MB/s")
    ran = run(
        [*words, "--trace", str(tmp_path / "t.csv")],
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    )
    assert (ran.code, "ü" in ran.out, "\\xfc" in ran.out) == (0, True, False)


def test_topics_from_stdin() -> None:
    words = ("--from-file", "-", "--controller-mutation-rate", "5", "--output", "json")
    ran = run([sys.executable, "-m", "kquota", "quota", "simulate", *words], stdin="a 80\nb 80\n")
    assert (ran.code, json.loads(ran.out)["ms"]) == (0, 5_000)


def test_a_clients_name_is_escaped_on_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("ms,bytes,user\n0,60000000,\x1b[31mred\n")
    ran = simulate("--producer-byte-rate", "1MB/s", "--trace", str(tmp_path / "t.csv"))
    assert (ran.code, "\x1b" in ran.out, "\\x1b[31mred" in ran.out) == (0, False, True)
