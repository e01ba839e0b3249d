"""Every file of broken/ is refused, in the right line, with a remedy.

Its first lines say what is expected: `# line | part of what is wrong | part of the remedy`, one for each problem.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
from click.testing import CliRunner

from harness.cli.validate import command

BROKEN = Path(__file__).parent / "broken"
FILES = sorted(path.stem for path in BROKEN.glob("*.yaml"))


def expected(path: Path) -> list[tuple[int, str, str]]:
    rows: list[tuple[int, str, str]] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("# ") or line.count(" | ") != 2:
            break
        number, what, remedy = line.removeprefix("# ").split(" | ")
        rows.append((int(number), what, remedy))
    return rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """broken/ beside a few sounds, and a file outside that nobody may reach."""
    root = tmp_path_factory.mktemp("library")
    folder = root / "broken"
    shutil.copytree(BROKEN, folder)
    sounds = folder / "sounds"
    sounds.mkdir()
    soundfile.write(sounds / "tone.wav", np.full(800, 0.1, np.float32), 16000)
    soundfile.write(root / "outside.wav", np.full(800, 0.1, np.float32), 16000)
    (root / "test_broken.py").write_text("outside\n", encoding="utf-8")
    (sounds / "words.wav").write_text("no sound\n", encoding="utf-8")
    (sounds / "escape.wav").symlink_to(root / "outside.wav")
    return folder


def test_there_are_many() -> None:
    assert len(FILES) >= 40


@pytest.mark.parametrize("name", FILES)
def test_is_refused_with_place_and_remedy(name: str, folder: Path) -> None:
    path = folder / f"{name}.yaml"
    wanted = expected(path)
    assert wanted

    plain = CliRunner().invoke(command, [str(path)])
    assert plain.exit_code == 2
    assert isinstance(plain.exception, SystemExit)
    assert "Traceback" not in plain.output
    assert str(path) in plain.stderr

    found = json.loads(CliRunner().invoke(command, ["--json", str(path)]).stdout)["problems"]
    for line, what, remedy in wanted:
        fitting = [one for one in found if one["line"] == line and what in one["what"] and remedy in one["remedy"]]
        assert fitting, (line, what, remedy, found)
        assert all(one["file"] == str(path) and one["column"] for one in fitting)
    assert len(found) == len(wanted), found
    assert all(one["remedy"] for one in found)
    places = [(one["file"], one["line"], one["column"]) for one in found]
    assert places == sorted(places)


@pytest.mark.parametrize("name", ["key_unknown", "syntax_alias", "recording_is_no_sound"])
def test_the_command_itself_ends_with_2_and_no_traceback(name: str, folder: Path) -> None:
    harness = [sys.executable, "-c", "from harness.cli import main; main()", "validate", str(folder / f"{name}.yaml")]
    done = subprocess.run(harness, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert f"{name}.yaml:" in done.stderr
    assert "Traceback" not in done.stderr
    assert not done.stdout
