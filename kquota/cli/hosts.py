"""Host names as operators type them."""

from __future__ import annotations


def is_ip_or_host(name: str) -> bool:
    """True if this machine can resolve the name. On ZooKeeper, a broker that cannot resolve it does not start."""
    import socket

    try:
        return bool(socket.getaddrinfo(name, None))
    except (OSError, UnicodeError):
        return False
