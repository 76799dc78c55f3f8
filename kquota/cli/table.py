"""Tables for people: plain text, with columns separated by blanks. `kquota.cli.tsv` has those for scripts."""

from __future__ import annotations

from collections.abc import Container, Sequence


def aligned(rows: Sequence[Sequence[object]], heads: Sequence[str], left: Container[int] = ()) -> str:
    """Rows below their headings, without a final newline; columns are right-aligned, those in `left` left-aligned.

    >>> print(aligned([("a", 1), ("bc", 20)], ("name", "size"), left=[0]))
    name      size
    a            1
    bc          20
    """
    from tabulate import tabulate

    sides = ["left" if column in left else "right" for column in range(len(heads))]
    return str(tabulate(rows, heads, tablefmt="plain", disable_numparse=True, colalign=sides))
