"""The exclusive lock of an open file.

The operating system releases the lock when the file is closed, also because its process ends for any reason. A child
process that inherits the open file keeps the lock.
"""

from __future__ import annotations

import errno
import fcntl
from typing import Final, Protocol

_HELD: Final = (errno.EWOULDBLOCK, errno.EACCES)
"""The error numbers of a lock that another process holds. EACCES is that of some network file systems."""


class OpenFile(Protocol):
    """A file that is open, as text or as bytes."""

    def fileno(self) -> int:
        """Return the file descriptor."""


def take(file: OpenFile) -> bool:
    """Take the lock without waiting. Return False if another process holds the lock.

    Raises OSError if the file cannot be locked, for example because its file system has no locks.
    """
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _HELD:
            return False
        raise
    return True


def wait_for(file: OpenFile) -> None:
    """Take the lock, and wait until it is free. Raises OSError if the file cannot be locked."""
    fcntl.flock(file.fileno(), fcntl.LOCK_EX)
