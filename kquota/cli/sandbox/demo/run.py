"""`kquota sandbox demo`: print the demo while it runs."""

from __future__ import annotations

from kquota.cli.contract import DONE, NOT_YET, worded
from kquota.cli.output import Lines
from kquota.cli.progress import downloading
from kquota.cli.sandbox.demo.command import DemoOptions
from kquota.errors import KquotaError
from kquota.sandbox.demo import Story, demo


def run(options: DemoOptions) -> Lines:  # noqa: ARG001 - it has none
    """Exit code 8 if Kafka cannot be downloaded."""
    with downloading() as tell:
        whole = demo(Story(line=_line, progress=tell))
    return Lines(lines=(), code=DONE if whole else NOT_YET)


def _line(*parts: str | KquotaError) -> None:
    print(worded(KquotaError(*parts)), flush=True)
