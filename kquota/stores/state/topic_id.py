"""Topic ids as Kafka prints them: 16 bytes in URL-safe base64 without padding, as in ZooKeeper."""

from __future__ import annotations

import base64
import uuid


def printed(topic_id: uuid.UUID | None) -> str | None:
    """Return a topic id as Kafka prints it, or None if the id is None or all zeros. Brokers before 2.8 send zeros.

    >>> printed(uuid.UUID("69b28804-fcac-4fac-b2eb-0da8b64e2ada"))
    'abKIBPysT6yy6w2otk4q2g'
    """
    if topic_id is None or not topic_id.int:
        return None
    return base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")
