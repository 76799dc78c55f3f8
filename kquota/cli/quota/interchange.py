"""The formats of `--format`: the writers for `quota export`, and the readers for `quota diff` and `quota apply`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kquota.cli.contract import DONE, NOT_YET
from kquota.cli.output import Lines
from kquota.cli.quota.command import QuotaFormat
from kquota.errors import Invalid
from kquota.quota import document_text, rpk, strimzi, terraform
from kquota.quota.document import Document
from kquota.quota.foreign import ForeignText

WRITERS: Final[Mapping[QuotaFormat, Callable[[Document], ForeignText]]] = {
    QuotaFormat.strimzi: strimzi.write,
    QuotaFormat.terraform: terraform.write,
    QuotaFormat.rpk: rpk.write,
}
READERS: Final[Mapping[QuotaFormat, Callable[[str, str], Document]]] = {
    QuotaFormat.kquota: document_text.read,
    QuotaFormat.strimzi: strimzi.read,
    QuotaFormat.rpk: rpk.read,
}


def exported(document: Document, form: QuotaFormat) -> Lines:
    """Return the document in the format of another tool.

    Each quota that the format cannot hold, or that kquota could not read, causes a warning and exit code 8.
    """
    found = WRITERS[form](document)
    return Lines(
        lines=tuple(found.text.split("\n")[:-1]),
        notes=tuple(f"warning: the {form} document does not contain {loss.what}: {loss.why}" for loss in found.losses),
        code=NOT_YET if found.losses else DONE,
    )


def reader(form: QuotaFormat) -> Callable[[str, str], Document]:
    """Return the parser of a format, which takes the text and the name of a document. Raises Invalid for a format that
    kquota only writes.
    """
    if form not in READERS:
        raise Invalid(
            f"--format {form}: kquota writes this format but does not read it, because only Terraform can evaluate it. "
            "Compare it with `terraform plan`"
        )
    return READERS[form]
