"""Names of hosts as they are typed."""

from __future__ import annotations


def is_ip_or_host(name: str) -> bool:
    """Whether this machine can resolve the name: a broker on ZooKeeper that cannot does not even start any more."""
    import socket

    try:
        return bool(socket.getaddrinfo(name, None))
    except (OSError, UnicodeError):
        return False
