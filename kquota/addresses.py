"""Hosts and ports as operators write them, checked before they are used."""

from __future__ import annotations

import re
import socket


def is_host(text: str) -> bool:
    """Return True if a socket accepts the text as the name or the address of a host. The host need not exist.

    Check a host before you connect, because for text such as `.example.com`, a socket raises UnicodeError, not OSError.

    >>> is_host("kafka.example.com"), is_host("::1"), is_host(""), is_host(".example.com")
    (True, True, False, False)
    """
    try:
        text.encode("idna")
    except UnicodeError:
        return False
    return bool(text)


def is_port(text: str) -> bool:
    """Return True if the text is a number from 1 to 65,535. Check a port before you connect, because
    `socket.create_connection` uses a larger number modulo 65,536.

    >>> is_port("9092"), is_port("0"), is_port("65536"), is_port("\\u00b2")
    (True, False, False, False)
    """
    return re.fullmatch(r"[0-9]{1,5}", text) is not None and 0 < int(text) < 2**16


def host_and_port(host: str, port: int) -> str:
    """Return the address as operators write it, with an IPv6 address in brackets.

    >>> host_and_port("kafka", 9092), host_and_port("::1", 9092)
    ('kafka:9092', '[::1]:9092')
    """
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_ip_or_host(name: str) -> bool:
    """True for an IP address, and for a name that this machine can resolve. Waits for the answer of the name server.

    A broker of a ZooKeeper cluster fails to start if it cannot resolve the name of an IP entity.
    """
    try:
        return bool(socket.getaddrinfo(name, None))
    except (OSError, UnicodeError):
        return False
