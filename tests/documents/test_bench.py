"""The figures in documents match the stored results of `make bench`."""

from __future__ import annotations

from bench.quoted import KEPT, TEXT, documents, quotes, tables


def test_every_table_is_quoted_exactly() -> None:
    kept = tables((KEPT / TEXT).read_text())
    quoted = {name: table for page in documents() for name, table in quotes(page.read_text())}
    assert quoted == kept
