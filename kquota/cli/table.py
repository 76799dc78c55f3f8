"""Tables for people: plain text, columns set apart by blanks. Those for scripts are `kquota.cli.tsv`'s."""

from __future__ import annotations

from collections.abc import Container, Sequence


def aligned(rows: Sequence[Sequence[object]], heads: Sequence[str], left: Container[int] = ()) -> str:
    """Rows below their heads, without a newline at the end; columns end on one line, those in `left` begin on one.

    >>> print(aligned([("a", 1), ("bc", 20)], ("name", "size"), left=[0]))
    name      size
    a            1
    bc          20
    """
    from tabulate import tabulate

    sides = ["left" if column in left else "right" for column in range(len(heads))]
    return str(tabulate(rows, heads, tablefmt="plain", disable_numparse=True, colalign=sides))
