"""Figures in documents are those that `make bench` found, which are kept beside them."""

from __future__ import annotations

from bench.quoted import KEPT, TEXT, documents, quotes, tables


def test_every_table_is_quoted_word_for_word_and_none_is_left_out() -> None:
    kept = tables((KEPT / TEXT).read_text())
    quoted = {name: table for page in documents() for name, table in quotes(page.read_text())}
    assert quoted == kept
