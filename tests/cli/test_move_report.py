"""The page of `move report RUN --report`: its content, that it is safe to open, and that it needs no other file."""

from __future__ import annotations

import re
from pathlib import Path

from tests.cli.contracts.conftest import house as house
from tests.cli.contracts.conftest import session as session
from tests.cli.contracts.in_memory import InMemory
from tests.cli.contracts.sessions import BROKER
from tests.cli.contracts.test_move_report import copying as copying
from tests.cli.contracts.test_move_report import drain, newest, report
from tests.cli.contracts.transcript import Transcript
from tests.cli.run import kquota_here
from tests.watch.fake import CopyingCluster


def test_the_page_has_the_numbers_and_needs_no_other_file(
    house: InMemory, copying: CopyingCluster, session: Transcript, tmp_path: Path
) -> None:
    session.kquota(f"move run {drain(tmp_path)} {BROKER} --throttle 4MB/s --reason <b>CHG-7</b>")
    page = tmp_path / "page.html"
    assert report(newest(), f"--report {page}")["outcome"] == "done"
    source = page.read_text()
    assert "&lt;b&gt;CHG-7&lt;/b&gt;" in source
    assert "<b>" not in source
    assert source.count("<svg") == 2
    assert not re.search(r"<script|https?:|@import|url\((?!#)", source)
    page.write_text("a file that kquota did not write")
    assert kquota_here(*f"move report {newest()} {BROKER} --report {page}".split()).code == 2
    assert page.read_text() == "a file that kquota did not write"
