"""The page on adding an engine, followed to the letter."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance.offline.conftest import Sounds
from tests.conformance.offline.offline_runs import harness, list_of

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "add-an-engine.md"


def test_the_engine_of_the_page_is_installed_and_evaluated(
    tmp_path: Path, sounds: Sounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = PAGE.read_text(encoding="utf-8")
    package, site = tmp_path / "acme", tmp_path / "site"
    package.mkdir()
    for name, language in (("pyproject.toml", "toml"), ("acme_engine.py", "python")):
        (block,) = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
        (package / name).write_text(block, encoding="utf-8")
    install = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-build-isolation", "--target", str(site)]
    subprocess.run([*install, str(package)], check=True, capture_output=True, timeout=100)
    monkeypatch.setenv("PYTHONPATH", str(site))
    monkeypatch.syspath_prepend(site)
    loud, quiet = sounds("loud.wav", 2.0, [1.2]), sounds("quiet.wav", 3.0)

    listing = harness("engines", "acme")
    assert "acme-engine 1.0" in listing.output
    lists = ("-i", list_of(tmp_path / "inv.txt", [loud]), "--oov", list_of(tmp_path / "oov.txt", [quiet]))
    page = tmp_path / "page.html"  # its pictures of scores need the cache, which keeps them by fingerprint
    result = harness("evaluate", "-t", "acme:boom", *lists, "-l", tmp_path / "acme.log", "--html", page)
    assert result.exit_code == 0, result.output
    assert "2 files" in result.output
    assert "1 TA" in result.output
    assert "acme:boom" in page.read_text("utf-8")
