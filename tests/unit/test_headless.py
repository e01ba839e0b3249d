"""Everything but the dashboard works without Textual."""

import subprocess
import sys
from pathlib import Path

import pytest

import harness

DRAWING = {"cli", "dashboard"}

HEADLESS = sorted(
    room.parent.name for room in Path(harness.__file__).parent.glob("*/__init__.py") if room.parent.name not in DRAWING
)

IMPORT_ALL = """
import importlib, pkgutil, sys
package = importlib.import_module(sys.argv[1])
for found in pkgutil.walk_packages(getattr(package, "__path__", []), package.__name__ + "."):
    if not found.name.endswith("__main__"):
        importlib.import_module(found.name)
sys.exit("textual is imported" if "textual" in sys.modules else 0)
"""


@pytest.mark.parametrize("name", HEADLESS)
def test_package_does_not_load_textual(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, f"harness.{name}"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
