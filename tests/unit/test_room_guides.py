"""The files that CONTRIBUTING.md and the rooms' READMEs name exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HARNESS = ROOT / "harness"
FILE = re.compile(r"`([\w/.-]+\.(?:py|toml))`")
ROOMS = [path.parent.name for path in sorted(HARNESS.glob("*/README.md"))]


def exists(name: str, room: Path) -> bool:
    return any((folder / name).exists() for folder in (room, HARNESS, ROOT)) or any(room.rglob(name))


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_names_files_that_exist(room: str) -> None:
    text = (HARNESS / room / "README.md").read_text(encoding="utf-8")
    names = FILE.findall(text)
    assert names
    assert [name for name in names if not exists(name, HARNESS / room)] == []


def test_contributing_names_files_that_exist() -> None:
    table = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("| to change |")[2].partition("\n\n")[0]
    names = FILE.findall(table)
    assert len(names) > 20
    assert [name for name in names if not (HARNESS / name).exists()] == []


def test_every_room_has_a_guide() -> None:
    rooms = {path.parent.name for path in HARNESS.glob("*/__init__.py")}
    assert rooms == set(ROOMS)
