"""The product as `pip install` gives it: built, installed outside the checkout, and used in an empty folder.

The interpreters are this one and the newest of HARNESS_PYTHONS (paths, separated by colons). Each needs setuptools and
the dependencies of the package, since nothing is downloaded here: `make packages PYTHON=python3.13` provides them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILT_FROM = ("harness", "devices", "scenarios", "pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE")
OTHERS = [path for path in os.environ.get("HARNESS_PYTHONS", "").split(":") if path]


def said(*command: str | Path, cwd: Path | None = None) -> str:
    result = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def newest() -> str:
    def version(python: str) -> tuple[int, ...]:
        return tuple(int(part) for part in said(python, "-c", "import sys; print(*sys.version_info[:2])").split())

    return max(OTHERS, key=version)


@dataclass(frozen=True, slots=True)
class Installed:
    """The `harness` of an environment outside the checkout, run in a folder of its own."""

    program: Path
    folder: Path

    def run(self, *arguments: str) -> str:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "HARNESS"))}
        environment["HARNESS_RUNTIME"] = str(self.folder / "r")
        result = subprocess.run(
            [self.program, *arguments],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert result.returncode == 0, (arguments, result.returncode, result.stdout, result.stderr)
        return result.stdout


@pytest.fixture(scope="module")
def tree() -> list[str]:
    """The files of the checkout that a build may take."""
    paths = said("git", "ls-files", "-co", "--exclude-standard", *BUILT_FROM, cwd=ROOT)
    return [name for name in paths.splitlines() if (ROOT / name).is_file()]


@pytest.fixture(scope="module")
def sdist(tree: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("tree")
    for name in tree:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copy / name)
    return built(sys.executable, copy, "sdist")


@pytest.fixture(scope="module", params=["this", "newest"] if OTHERS else ["this"])
def python(request: pytest.FixtureRequest) -> str:
    return sys.executable if request.param == "this" else newest()


@pytest.fixture(scope="module")
def wheel(python: str, sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made of what the sdist carries, as `pip install` of an sdist makes it."""
    unpacked = tmp_path_factory.mktemp("sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(unpacked, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    (source,) = unpacked.iterdir()
    return built(python, source, "wheel")


def built(python: str, source: Path, kind: str) -> Path:
    program = f"from setuptools import build_meta; print(build_meta.build_{kind}('out'))"
    return source / "out" / said(python, "-c", program, cwd=source).splitlines()[-1]


@pytest.fixture(scope="module")
def installed(python: str, wheel: Path) -> Iterator[Installed]:
    """In an environment that finds its dependencies where the interpreter does."""
    folder = Path(tempfile.mkdtemp(prefix="vh-", dir="/tmp"))  # a socket's path has 107 bytes at most
    try:
        said(python, "-m", "venv", "--without-pip", folder / "env")
        inside = folder / "env" / "bin" / "python"
        library = said(inside, "-c", "import sysconfig; print(sysconfig.get_path('purelib'), end='')")
        program = "import sys; print(*(path for path in sys.path if path.endswith('-packages')), sep='\\n')"
        (Path(library) / "dependencies.pth").write_text(said(python, "-c", program))
        quiet = ("--quiet", "--disable-pip-version-check", "--no-deps", "--no-index")
        said(sys.executable, "-m", "pip", "--python", inside, "install", *quiet, wheel)
        (folder / "w").mkdir()
        yield Installed(folder / "env" / "bin" / "harness", folder / "w")
    finally:
        shutil.rmtree(folder)


def test_all_data_of_the_tree_is_in_the_wheel(tree: list[str], wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        carried = set(archive.namelist())
    # C is compiled, and the rooms' READMEs are for those who have the tree.
    data = [name for name in tree if "/" in name and not name.endswith((".c", ".h", "/README.md"))]
    expected = {name if name.startswith("harness/") else f"harness/shipped/{name}" for name in data}
    assert len(expected) > 500
    assert expected - carried == set()


def test_profiles_starter_files_and_scenarios_are_found(installed: Installed) -> None:
    devices = json.loads(installed.run("devices", "list", "--json"))
    assert {path.stem for path in (ROOT / "devices").glob("*.yaml")} <= {device["id"] for device in devices}
    installed.run("init", "mine")
    installed.run("validate", "mine/scenario.yaml", "mine/bench.yaml")
    installed.run("validate", "scenarios/wake_demo.yaml", "scenarios/benches/virtual_lab.yaml")
    installed.run("validate", "scenarios", "devices")


@pytest.mark.sound
@pytest.mark.speech
def test_the_demonstration_runs(installed: Installed) -> None:
    installed.run("demo", "--short", "--plain")
    assert len(list(installed.folder.glob("sessions/*-demo_short"))) == 1
