"""The page of `move estimate --report`: its content, that it is safe to open, and that it needs no other file."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kquota.cli.connection import Connection
from kquota.cli.formats import document
from kquota.cli.move.estimate.report import commands
from kquota.cli.move.estimate.report.page import knowing, page, wanted
from kquota.cli.move.estimate.report.sections import Wanted
from kquota.errors import Refused
from kquota.pace.past_moves import ErrorBand
from kquota.pace.work import Link
from kquota.reassign.plan import Plan
from kquota.sizes.bytes_in import BytesIn
from kquota.spark.files import NOTHING
from kquota.spark.plan_files import PlanFiles
from tests.cli.pages import MB, Case, shown, ticket
from tests.cli.run import kquota, run

PLOTS = [
    "Bytes stored on each broker, before and after the move",
    "Bytes that each broker sends and receives",
    "Use of each broker's throttle",
    "Expected time against the throttle",
]
SECTIONS = [
    "Topics to move",
    "Brokers before and after",
    "Bytes that each broker copies",
    "Time against throttle",
    "Limits of the throttle",
    "KIP-73's own estimate",
    "Sources of the numbers",
    "Commands in order",
]
FLEET = tuple(
    Link(leader=1001 + n, destination=1001 + (n * 7 + 3) % 90, copies=2, bytes=n * MB, writes=1.0) for n in range(90)
)
MIXED = (
    Link(leader=1, destination=3, copies=1, bytes=91 * MB, writes=3.0 * MB),
    Link(leader=2, destination=4, copies=1, bytes=9 * MB, writes=None),
)
"""Under 5 MB/s, broker 1 can never finish. The write rates of the other link are unknown."""
CASES = {
    "a move that finishes": (Case(deadline="3m", nic="1Gbit/s", impact="10%"), SECTIONS, PLOTS),
    "never": (Case(throttle="5MB/s"), SECTIONS, PLOTS),
    "never, and some writes are unknown": (Case(throttle="5MB/s", links=MIXED), SECTIONS, PLOTS),
    "unknown writes": (Case(writes=None), SECTIONS, [PLOTS[0], PLOTS[1], PLOTS[3]]),
    "no writes": (Case(writes=0.0), SECTIONS, PLOTS),
    "the throttle of a deadline": (Case(throttle=None, deadline="10m"), SECTIONS, PLOTS),
    "more brokers than a picture holds": (Case(links=FLEET, throttle="1MB/s"), SECTIONS, PLOTS),
    "nothing to move": (Case(links=()), [SECTIONS[n] for n in (1, 5, 6)], PLOTS[:1]),
}


@pytest.mark.parametrize(("case", "sections", "plots"), CASES.values(), ids=CASES)
def test_a_page_is_complete_and_needs_no_other_file(case: Case, sections: list[str], plots: list[str]) -> None:
    told = shown(case)
    assert told.sections == sections
    assert told.plots == plots
    tags = {tag for tag, _ in told.elements}
    assert not tags & {"script", "link", "img", "iframe", "object", "embed", "image", "form", "base"}
    assert not re.search(r"https?:|//[a-z]|@import|url\((?!#)", told.source)
    ids = [given["id"] for _, given in told.elements if "id" in given]
    assert len(ids) == len(set(ids))
    links = [given["href"] or "" for _, given in told.elements if "href" in given]
    assert {link.removeprefix("#") for link in [*links, *re.findall(r"url\((#[^)]+)\)", told.source)]} <= set(ids)


@pytest.mark.parametrize("case", [case for case, _, _ in CASES.values()], ids=CASES)
def test_the_numbers_match_the_json_document(case: Case) -> None:
    told, answer = shown(case), json.loads(document(ticket(case).answer))
    everywhere = {value for values in told.values.values() for value in values}
    assert {answer["throttle"], *numbers(answer["kip73"])} <= everywhere
    if answer["copies"]:
        also = ("bytes_to_copy", "expected_seconds", "throttle_must_exceed", "throttles")
        assert numbers([answer[key] for key in also]) <= everywhere
        window = [bound["rate"] for side in ("above", "below") for bound in answer["window"][side]]
        assert told.values["Limits of the throttle"] == [rate for rate in window if rate is not None]
    if len(answer["shares"]) <= 20:
        told_of = ("copies", "bytes", "left_for_copies", "writes", "ends_after_seconds")
        assert numbers([[share[key] for key in told_of] for share in answer["shares"]]) <= everywhere


def numbers(found: object) -> set[float]:
    """Every number of a JSON document."""
    if isinstance(found, dict):
        return numbers(list(found.values()))
    if isinstance(found, list):
        return {number for one in found for number in numbers(one)}
    return {float(found)} if isinstance(found, int | float) and not isinstance(found, bool) else set()


def test_the_summary_of_the_page() -> None:
    told = shown(Case(deadline="3m")).text[""]
    assert "Expected time: about 43 s. The move can finish." in told
    assert told.index("Expected time") < told.index("The bottleneck is") < told.index("Sizes as of")
    assert "The bottleneck is broker 1, which sends 91 MB." in told
    never = shown(Case(throttle="5MB/s"))
    assert "The move can never finish." in never.text[""]
    assert (
        never.commands,
        "None, because the move cannot be done as asked" in never.text["Commands in order"],
    ) == ([], True)
    unknown = shown(Case(writes=None)).text[""]
    assert "The expected time is unknown" in unknown
    assert "kquota did not check whether the move can finish" in unknown
    impossible = shown(Case(throttle="8MB/s", nic="50MB/s", impact="10%"))
    assert (
        "Do not start this move: no throttle is within the limits: the throttle must be at most 5 MB/s"
        in impossible.text[""]
    )
    assert impossible.commands == []
    assert "Nothing to copy" in shown(Case(links=())).text[""]


def test_a_throttle_of_unknown_use_is_not_in_the_plot() -> None:
    told = shown(Case(throttle="5MB/s", links=MIXED)).text["Bytes that each broker copies"]
    assert [name for name in ("1 out", "2 out", "3 in", "4 in") if name in told] == ["1 out", "3 in"]
    assert "The plot leaves out 2 sides (out or in) of brokers, because write rates are unknown." in told


def test_disk_sizes_are_in_the_plot_or_next_to_it() -> None:
    stored = "Brokers before and after"
    assert "disk size" in shown(Case(disk=200 * MB)).text[stored]
    far = shown(Case(disk=10**12)).text[stored]
    assert ("disk size" in far, "Disk sizes, 1 TB and more, are outside the plot." in far) == (False, True)
    assert "The disk sizes are unknown." in shown(Case()).text[stored]


def test_uncertainty_and_disk_space() -> None:
    alone = shown(Case(throttle="20MB/s", disk=200 * MB))
    assert "(only the error of the model, because" in alone.text[""]
    assert "90% band" in alone.text["Time against throttle"]
    busy = shown(Case(throttle="20MB/s", traffic=BytesIn(mean=3 * MB, low=MB, high=6 * MB, peak=12 * MB)))
    assert "(error of the model, and write rates from their 5th to their 95th percentile)" in busy.text[""]
    assert "Warning: broker 1: at the peak of its write rate (p99)" in busy.text[""]
    learned = shown(Case(writes=0.0), ErrorBand(low=0.9, high=1.3, moves=6))
    assert "(only the errors of 6 past moves of this cluster, because" in learned.text[""]
    untold = "Disks are not checked on broker 3, because the source of sizes has no disk sizes."
    assert untold in busy.text["Brokers before and after"]
    full = shown(Case(throttle="20MB/s", disk=50 * MB))
    assert "Do not start this move: the copies do not fit: broker 3 gets 91 MB (50 MB usable)" in full.text[""]
    assert full.commands == []
    assert {50 * MB, 91 * MB} <= set(full.values["Brokers before and after"])


def test_the_waves_and_their_sum() -> None:
    told = shown(Case(throttle="20MB/s", waves=25))
    assert told.sections.index("Waves, one after the other") == SECTIONS.index("Limits of the throttle") + 1
    assert "25 waves, one after the other." in told.text[""]
    assert "my-topic-19" in told.text["Waves, one after the other"]
    assert "my-topic-20" not in told.text["Waves, one after the other"]
    waves = json.loads(document(ticket(Case(throttle="20MB/s", waves=25)).answer))
    assert told.values["Waves, one after the other"][-3:] == [25, 25 * 91 * MB, waves["waves_seconds"]]


def test_a_plan_in_a_format_of_estimate_only_is_named_as_such(tmp_path: Path) -> None:
    asked = Wanted(path=tmp_path / "move.html", plan="PLAN.json", cluster=())
    lines = PlanFiles(name="plans/", parquet=False, files=NOTHING)
    assert knowing(asked, lines) == replace(asked, plan="plans/", runnable=False)
    assert knowing(asked, Plan(targets={})) is asked


def test_commands_are_shown_only_if_they_do_what_the_page_says() -> None:
    lines = shown(Case(runnable=False, plan="plan.jsonl"))
    assert lines.commands == []
    assert "kquota reassign-partitions does not accept" in lines.text["Commands in order"]
    waves = shown(Case(throttle="20MB/s", waves=3))
    assert len(waves.commands) == 7
    assert "These commands move the whole plan at once." in waves.text["Commands in order"]


HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</title></style><b>&amp;",
    "a\x1b[31m\u202eb",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_escaped_in_html(name: str) -> None:
    hostile = Case(topic=name, plan=name, cluster=name, options=("--bootstrap-server", name), remarks=(name,))
    told, tame = shown(hostile), shown(Case(remarks=("r",)))
    assert [tag for tag, _ in told.elements] == [tag for tag, _ in tame.elements]
    seen = name.replace("\x1b", "\\x1b").replace("\u202e", "\\u202e")
    assert seen in told.text[""] and seen in told.text["Topics to move"]
    assert seen in told.text["Sources of the numbers"]
    assert "\x1b" not in told.source and "\u202e" not in told.source


def test_the_same_ticket_makes_the_same_bytes_with_any_matplotlib_settings() -> None:
    import matplotlib

    before = page(ticket(Case(deadline="3m")))
    with matplotlib.rc_context({"font.size": 20, "axes.grid": False, "svg.fonttype": "path"}):
        assert page(ticket(Case(deadline="3m"))) == before


def test_every_plot_names_its_axes_with_their_units() -> None:
    text = "".join(shown(Case(deadline="3m", nic="1Gbit/s", impact="10%")).text.values())
    axes = ("bytes stored (MB)", "bytes to copy (MB)", "rate (MB/s)", "throttle (MB/s)", "expected time", "broker")
    marks = ("never finishes: at or below 6 MB/s", "throttle, 8 MB/s", "deadline, 3 min", "--max-impact, 10% of --nic")
    assert [name for name in (*axes, *marks) if name not in text] == []


def test_the_commands_are_valid_for_a_shell_and_for_kquota() -> None:
    options = ("--bootstrap-server", "b1:9092", "--command-config", "my $HOME/it's.properties")
    told = shown(Case(plan="a b/$(id)`id`.json", options=options))
    ran = [run(["sh", "-c", f"kquota() {{ printf '%s\\n' \"$@\"; }}\n{command}"]) for command in told.commands]
    assert all(one.code == 0 and one.err == "" for one in ran)
    words = [one.out.splitlines() for one in ran]
    assert words[1] == [
        "reassign-partitions",
        *options,
        *("--reassignment-json-file", "a b/$(id)`id`.json", "--execute", "--throttle", "8MB/s"),
    ]
    assert [line[: 2 if line[0] in ("move", "throttle") else 1] for line in words] == [
        *[["reassign-partitions"]] * 2,
        ["move", "status"],
        ["throttle", "set"],
        ["reassign-partitions"],
        ["move", "resume"],
        ["move", "abort"],
    ]
    for line in words[1:]:
        known = kquota(*line[: 2 if line[0] in ("move", "throttle") else 1], "--help").out
        assert [word for word in line if word.startswith("--") and word not in known] == []


NAMED = {
    "by an option": (Connection(bootstrap_server="b:1"), {}, ("--bootstrap-server", "b:1")),
    "by a variable": (Connection(), {"KQUOTA_BOOTSTRAP_SERVER": "b:1"}, ("--bootstrap-server", "b:1")),
    "with a login": (
        Connection(bootstrap_server="b:1", command_config=Path("c")),
        {},
        ("--bootstrap-server", "b:1", "--command-config", "c"),
    ),
    "by ZooKeeper's variable": (Connection(), {"KQUOTA_ZOOKEEPER": "z:1"}, commands.ADDRESS_PLACEHOLDER),
    "not at all": (Connection(), {}, commands.ADDRESS_PLACEHOLDER),
}


@pytest.mark.parametrize(("connection", "environment", "options"), NAMED.values(), ids=NAMED)
def test_the_cluster_of_the_commands(
    connection: Connection, environment: dict[str, str], options: tuple[str, ...]
) -> None:
    assert commands.cluster(connection, environment) == options


@pytest.mark.parametrize("library", ["jinja2", "matplotlib"])
def test_a_missing_library_is_reported_at_once_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, library: str
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(Refused, match=rf"--report: cannot import {library}\. Run: pip install 'kquota\[report\]'"):
        wanted(tmp_path / "move.html", Path("plan.json"), Connection())


def test_an_unwritable_report_path_is_reported_before_spark_starts(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text('{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,3]}]}')
    words = ("--reassignment-json-file", str(plan), "--log-dirs", str(plan), "--throttle", "8MB/s")
    ran = kquota("move", "estimate", *words, "--report", str(plan))
    assert (ran.code, ran.out) == (2, "")
    assert (
        ran.err == f"kquota: error: --report {plan}: already exists and is not a kquota report. Choose another file\n"
    )
