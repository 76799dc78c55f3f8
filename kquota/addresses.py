"""Hosts and ports as a person writes them: what no socket could make anything of is found here."""

from __future__ import annotations

import re


def is_host(text: str) -> bool:
    """Whether a resolver can be asked for it; of what DNS has no form for a socket raises no OSError.

    >>> is_host("kafka.example.com"), is_host("::1"), is_host(""), is_host(".example.com")
    (True, True, False, False)
    """
    try:
        text.encode("idna")
    except UnicodeError:
        return False
    return bool(text)


def is_port(text: str) -> bool:
    """Whether it is a number from 1 to 65,535; a socket would take a larger one modulo 65,536.

    >>> is_port("9092"), is_port("0"), is_port("65536"), is_port("\\u00b2")
    (True, False, False, False)
    """
    return re.fullmatch(r"[0-9]{1,5}", text) is not None and 0 < int(text) < 2**16
