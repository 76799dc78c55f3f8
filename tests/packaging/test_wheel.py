"""The released files: an sdist with everything that git has, and a small wheel with man pages and completions."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from kquota import __version__
from man.generate import HERE as MAN
from tests.cli.run import Ran, run

# The environment is created once, in one worker.
pytestmark = pytest.mark.xdist_group("packaging")

REPOSITORY = Path(__file__).parents[2]
LARGEST = 1_300_000
MOST_PACKAGES = 20
SHELLS = (
    "share/bash-completion/completions/kquota",
    "share/zsh/site-functions/_kquota",
    "share/fish/vendor_completions.d/kquota.fish",
)


def done(*command: str, folder: Path | None = None) -> str:
    """The output of a command, which must succeed."""
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked sdist. From here on no file of the clone is used."""
    folder = tmp_path_factory.mktemp("sdist")
    done(sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", str(folder), folder=REPOSITORY)
    (archive,) = folder.iterdir()
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


@pytest.fixture(scope="module")
def wheel(source: Path) -> Path:
    done(sys.executable, "-m", "hatchling", "build", "--target", "wheel", folder=source)
    (built,) = (source / "dist").iterdir()
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and its dependencies, without even pip."""
    if os.environ.get("KQUOTA_OFFLINE") == "1":
        pytest.skip("KQUOTA_OFFLINE=1, and a wheel is installed with what it needs from the package index")
    place = tmp_path_factory.mktemp("installed") / "venv"
    done(sys.executable, "-m", "venv", "--without-pip", str(place))
    pinned = ("--constraint", str(REPOSITORY / "constraints.txt"))
    done(*_pip(place), "install", "--quiet", "--disable-pip-version-check", "--no-compile", *pinned, str(wheel))
    return place


def _pip(place: Path) -> tuple[str, ...]:
    return (sys.executable, "-m", "pip", "--python", str(place))


def kquota(place: Path, *arguments: str) -> Ran:
    return run([str(place / "bin" / "kquota"), *arguments])


def test_the_sdist_has_all_that_git_has(source: Path) -> None:
    if not (REPOSITORY / ".git").exists():
        pytest.skip("not a git clone, so the files in git are unknown")
    tracked = done("git", "ls-files", folder=REPOSITORY).splitlines()
    assert [path for path in tracked if (REPOSITORY / path).exists() and not (source / path).exists()] == []


def test_the_wheel_is_small(wheel: Path) -> None:
    assert wheel.stat().st_size < LARGEST


def test_the_wheel_has_the_files_next_to_the_code(wheel: Path, source: Path) -> None:
    """Templates and styles, like all other files of the package."""
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
    files = [path.relative_to(source) for path in (source / "kquota").rglob("*") if path.is_file()]
    assert [str(path) for path in files if "__pycache__" not in path.parts and str(path) not in names] == []


def test_the_wheel_has_few_dependencies(installed: Path) -> None:
    names = sorted(package["name"] for package in json.loads(done(*_pip(installed), "list", "--format", "json")))
    assert "kquota" in names
    assert len(names) <= MOST_PACKAGES, names


def test_the_wheel_includes_man_pages_and_completions(installed: Path) -> None:
    manuals = {path.name for path in installed.glob("share/man/man?/*")}
    assert manuals == {path.name for path in MAN.glob("man?/*")}
    assert [name for name in SHELLS if not (installed / name).is_file()] == []


def test_shells_find_the_completions_at_the_path_in_the_readme(installed: Path) -> None:
    told = re.findall(r"/opt/kquota/(share/[\w./-]+)", (REPOSITORY / "README.md").read_text())
    places = [installed / path for path in told]
    assert {path if path.is_file() else next(path.glob("*kquota*"), None) for path in places} == {
        installed / name for name in SHELLS
    }


def test_the_installed_kquota_runs(installed: Path) -> None:
    assert kquota(installed, "--version") == Ran(0, f"kquota {__version__}\n", "")
    helped = kquota(installed, "--help")
    assert (helped.code, helped.err) == (0, "")
    assert helped.out.startswith("Usage: kquota")


def test_a_missing_extra_is_named(installed: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text('{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2]}]}')
    sizes = tmp_path / "sizes.txt"
    sizes.write_text('{"version":1,"brokers":[{"broker":1,"logDirs":[]}]}')
    given = ("--log-dirs", str(sizes), "--reassignment-json-file", str(plan), "--throttle", "1MB/s")
    needs = "this command needs Spark, which is not installed. Run: pip install 'kquota[spark]'"
    assert kquota(installed, "move", "estimate", *given) == Ran(1, "", f"kquota: error: {needs}\n")
