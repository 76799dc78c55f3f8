"""What it takes until a file survives a power cut."""

from __future__ import annotations

import os
from pathlib import Path


def sync(folder: Path) -> None:
    """A new name in a folder is only safe once the folder is. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
