"""The input files of a job. kquota checks them and links them in one folder before Spark starts.

kquota chooses the names of the links, so special characters in the operator's file names have no effect.
"""

from __future__ import annotations

import contextlib
import glob
import gzip
import re
import shutil
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, cast

from kquota import bounded
from kquota.errors import Invalid, NextStep, Parameter
from kquota.sizes.history import Listing
from kquota.text_file import is_folder, looking_at

_GZIP: Final = b"\x1f\x8b"
_SCHEME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://")
MUCH: Final = 2**40
"""The assumed size of a file elsewhere, in bytes."""
USAGE_FILES: Final = "usage-*.parquet"
"""The name pattern of files of compacted days. Each file has at most one row for a quota bucket on a broker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """A folder with only the files that the job reads. `names` maps each link to the operator's file name.

    `elsewhere` are paths that Spark opens itself, such as `s3a://`. Their contents are unknown before Spark starts.
    """

    folder: Path
    names: Mapping[str, str]
    elsewhere: tuple[str, ...] = ()

    def name(self, link: str) -> str:
        """Return the path of the operator's file behind `link`. A path elsewhere is returned unchanged."""
        return self.names.get(link, link)

    def given_names(self) -> tuple[str, ...]:
        """Return the operator's name for each file."""
        return (*self.names.values(), *self.elsewhere)

    def size(self) -> int:
        """Return the stored size of the files in bytes. Files elsewhere are assumed to be large."""
        here = sum((self.folder / link).stat().st_size for link in self.names)
        return here + len(self.elsewhere) * MUCH


NOTHING: Final = Files(folder=Path(), names={})


def is_elsewhere(path: str) -> bool:
    """Return True if a path has a scheme, for example `s3a://`, `hdfs://` or `file://`, so that Spark must open it."""
    return _SCHEME.match(path) is not None


def log_dirs(patterns: Iterable[str], scratch: Path) -> Files:
    """Return the plain or gzipped files with the output of kafka-log-dirs, linked in a new folder in `scratch`.

    `patterns` are names or globs. Raises Invalid if a pattern matches no file, or if a local file cannot be read or
    contains no JSON line. Paths that Spark opens are not checked.
    """
    given = list(dict.fromkeys(patterns))
    paths = dict.fromkeys(
        path for pattern in given if not is_elsewhere(pattern) for path in matching(pattern, Parameter("log_dirs"))
    )
    files = laid_out(paths, scratch / "log-dirs", ".json", elsewhere=filter(is_elsewhere, given))
    for link, name in files.names.items():
        if not any(start.lstrip().startswith(b"{") for start in _starts(files.folder / link, name)):
            raise Invalid(f"{name}: contains no JSON line of kafka-log-dirs. ", NextStep.TAKE_SIZES)
    return files


SIZE_FILES: Final[Mapping[str, Callable[[Iterable[str], Path], Files]]] = {"log-dirs": log_dirs}
"""The files that an estimate can read sizes from, by the name of their source: the function that checks them and links
them in a folder of the scratch folder. `sizes.READERS` has the reader of each source.
"""


def matching(pattern: str, name: Parameter, what: str = "file") -> list[Path]:
    """Return the files or folders that match a name or a glob.

    Raises Invalid if nothing matches or the path cannot be accessed. The message begins with `name`, and calls a
    missing file `what`.
    """
    try:
        # The name of an existing file is not a glob, even if it looks like one.
        known = bool(pattern) and is_folder(Path(pattern)) is not None
    except Invalid as error:
        raise Invalid(name, f" {error}") from error
    paths = [Path(pattern)] if known else [Path(p) for p in sorted(glob.glob(pattern))]  # noqa: PTH207
    if not paths:
        raise Invalid(name, f" {pattern}: the {what} does not exist. Check the path")
    return paths


def _starts(path: Path, name: str) -> Iterator[bytes]:
    """Yield only the first piece of each line, because a line can be very long: it can contain all replicas of a
    cluster, and gzip can unpack to any length.
    """
    with unpacked(path, name) as file:
        is_start = True
        while piece := file.readline(bounded.LINE):
            if is_start:
                yield piece
            is_start = piece.endswith(b"\n")


@contextlib.contextmanager
def unpacked(path: Path, *name: str) -> Iterator[IO[bytes]]:
    """Open a plain or gzipped file. Raises Invalid, also in the block, if the file cannot be read, and if its text is
    not UTF-8. The message begins with `name`.
    """
    try:
        with gzip.open(path) if is_packed(path) else path.open("rb") as file:
            yield cast(IO[bytes], file)
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise Invalid(*name, f": cannot be read: {error}") from error


def of_days(listing: Listing) -> list[Path]:
    """Return the files of the compacted days in a listing."""
    return [file for folder in listing.rolled for file in Path(folder).rglob(USAGE_FILES)]


def is_packed(path: Path) -> bool:
    """Return True if a file begins with the two bytes that identify gzip. Raises OSError if it cannot be read."""
    with path.open("rb") as file:
        return file.read(len(_GZIP)) == _GZIP


def laid_out(paths: Iterable[Path], folder: Path, suffix: str, elsewhere: Iterable[str] = ()) -> Files:
    """Create `folder` with a link to each file. The links are named 000000`suffix`, 000001`suffix` and so on, with
    `.gz` after the suffix for a gzipped file. A pipe is copied.

    `elsewhere` are sources that Spark reads itself. Raises Invalid for a file that cannot be read.
    """
    folder.mkdir()
    names = {}
    for number, path in enumerate(paths):
        with looking_at(path):
            link = _laid(path, folder / f"{number:06d}{suffix}")
        names[link.name] = str(path)
    return Files(folder=folder, names=names, elsewhere=tuple(elsewhere))


def _laid(path: Path, place: Path) -> Path:
    """Link a file, or copy a pipe such as `<(zcat ...)`. Return the new path, which ends with `.gz` if the file is
    gzipped, because Spark recognizes gzip by this suffix.
    """
    if path.is_file():
        place.symlink_to(path.resolve())
    else:
        with path.open("rb") as source, place.open("wb") as copy:
            shutil.copyfileobj(source, copy)
    return place.rename(place.with_name(f"{place.name}.gz")) if is_packed(place) else place
