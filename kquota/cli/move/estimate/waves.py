"""How `move estimate` is to cut a move into waves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from kquota.errors import Invalid
from kquota.measure import byte_size

if TYPE_CHECKING:
    from kquota.pace.split import Split

Waves: TypeAlias = Annotated[
    int | None, typer.Option("--waves", metavar="N", help="Cut the move into so many waves of about the same bytes.")
]
MaxInFlight: TypeAlias = Annotated[
    str | None, typer.Option("--max-in-flight", metavar="SIZE", help="The most that one wave may copy: 500GB.")
]


def split(waves: int | None, max_in_flight: str | None) -> Split | None:
    """None where nobody asked. Raises Invalid for both, for less than one wave, and for what is no size."""
    from kquota.pace.split import Split

    if waves is not None and max_in_flight is not None:
        raise Invalid("give --waves or --max-in-flight, not both")
    if waves is not None:
        if waves < 1:
            raise Invalid(f"--waves {waves}: must be 1 or more")
        return Split(waves=waves)
    return None if max_in_flight is None else Split(in_flight=byte_size(max_in_flight, "--max-in-flight"))
