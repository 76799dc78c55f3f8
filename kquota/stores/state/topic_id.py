"""Topic ids as Kafka prints them: 16 bytes in URL-safe base64 without padding, as ZooKeeper holds them."""

from __future__ import annotations

import base64
import uuid
from typing import Final

_UUID_LENGTH: Final = 36


def printed(topic_id: uuid.UUID | None) -> str | None:
    """A topic id of the wire, None for all zeros, which a broker before 2.8 sends.

    >>> printed(uuid.UUID("69b28804-fcac-4fac-b2eb-0da8b64e2ada"))
    'abKIBPysT6yy6w2otk4q2g'
    """
    if topic_id is None or not topic_id.int:
        return None
    return base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def canonical(text: str) -> str:
    """A topic id on record in either spelling; other text as it is. kquota 0.1 recorded UUIDs of moves over brokers.

    >>> canonical("69b28804-fcac-4fac-b2eb-0da8b64e2ada"), canonical("abKIBPysT6yy6w2otk4q2g")
    ('abKIBPysT6yy6w2otk4q2g', 'abKIBPysT6yy6w2otk4q2g')
    """
    if len(text) != _UUID_LENGTH:
        return text
    try:
        return printed(uuid.UUID(text)) or text
    except ValueError:
        return text
