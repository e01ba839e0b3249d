"""Plug-ins are listed without being imported; everything but the dashboard works without Textual."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import harness
from harness.base.plugins import Group, load, names, pip_install
from harness.cli.doctor.checks import EXTRAS, plug_ins
from harness.devices.declared import host_checks
from harness.engines.offline_loading import catalogue
from harness.model.errors import Place, PluginError
from harness.session.engine.engine import installed_recogniser


def test_the_shipped_plugins_are_installed() -> None:
    assert {"loudspeaker", "microphone", "mqtt", "in_process"} <= set(names(Group.DRIVERS))
    assert {"espeak", "flite", "hibari"} <= set(names(Group.VOICES))


@pytest.mark.parametrize("group", list(Group))
def test_every_shipped_plugin_loads(group: Group) -> None:
    for name in names(group):
        assert callable(load(group, name))


def test_listing_imports_nothing() -> None:
    code = (
        "import sys; from harness.base.plugins import Group, names; [names(g) for g in Group];"
        "print([m for m in sys.modules if m.startswith('harness.drivers') or m == 'pyaudio'])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_a_wrong_name_is_answered_with_the_nearest_and_with_all() -> None:
    with pytest.raises(PluginError) as caught:
        load(Group.DRIVERS, "loudspeeker", place=Place("bench.yaml", 3, 5))
    text = str(caught.value)
    assert text.startswith("bench.yaml:3:5: ")
    assert "'loudspeaker'" in text
    assert "microphone" in text
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("code", ["", "import no_such_module", "def (", "raise RuntimeError('no licence')"])
def test_a_plugin_of_others_that_does_not_load_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    name = f"acme_{len(code)}"  # Python imports a name once
    (tmp_path / f"{name}.py").write_text(code, encoding="utf-8")
    installed = tmp_path / f"{name}-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    groups = "".join(f"[{group}]\n{name} = {name}:Acme\n" for group in Group)
    (installed / "entry_points.txt").write_text(groups, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    for group in Group:
        with pytest.raises(PluginError, match=f"'{name}' cannot be loaded: "):
            load(group, name)
    # What lists all plug-ins goes on with the others.
    assert name in {engine.name for engine in catalogue()}
    assert installed_recogniser() != name
    assert list(host_checks([]))
    assert name in next(plug_ins()).says


DRAWING = {"cli", "dashboard"}

HEADLESS = sorted(
    room.parent.name for room in Path(harness.__file__).parent.glob("*/__init__.py") if room.parent.name not in DRAWING
)

IMPORT_ALL = """
import importlib, pkgutil, sys
for name in sys.argv[1:]:
    package = importlib.import_module(name)
    for found in pkgutil.walk_packages(getattr(package, "__path__", []), package.__name__ + "."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)
    if "textual" in sys.modules:
        sys.exit(f"{name} imports textual")
"""


def test_only_drawing_packages_load_textual() -> None:
    packages = [f"harness.{name}" for name in HEADLESS]
    assert len(packages) > 10
    result = subprocess.run([sys.executable, "-c", IMPORT_ALL, *packages], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr


def test_docs_never_install_the_unregistered_package_name() -> None:
    """No index has it yet: a stranger may register it, and would run code on the machine of every reader."""
    root = Path(__file__).parents[2]
    sources = [*(root / "harness").rglob("*.py"), *(root / "docs").rglob("*.md"), root / "README.md"]
    by_name = re.compile(r"voice[-_]harness\[|install ['\"]?voice[-_]harness\b")
    assert [str(path) for path in sources if by_name.search(path.read_text("utf-8"))] == []


@pytest.mark.parametrize("extra", [*EXTRAS, "transformer", "demo", "all"])
def test_remedies_name_the_libraries_of_an_extra(extra: str) -> None:
    command = pip_install(extra)
    assert command.startswith("pip install ")
    assert "harness" not in command
    assert len(shlex.split(command)) > 2


def test_a_remedy_names_the_library_that_is_missing() -> None:
    assert shlex.split(pip_install("offline", "pocketsphinx"))[2:] == ["pocketsphinx==5.1.1"]
