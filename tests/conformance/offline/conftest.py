"""A third party's plug-in, and sounds for it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tests.conformance.offline.loudness import MARK, RATE_HZ, Wrong

Sounds = Callable[..., Path]


@pytest.fixture
def loudness_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Installs the plug-in for this test's process and those that it starts."""
    site = tmp_path / "site"
    metadata = site / "loudness-1.0.dist-info"
    metadata.mkdir(parents=True)
    shutil.copy(Path(__file__).with_name("loudness.py"), site / "loudness_plugin.py")
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: loudness\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[harness.offline_engines]\n"
        "loudness = loudness_plugin:LoudnessScores\n"
        "loudness_spots = loudness_plugin:LoudnessSpots\n"
        "loudness_words = loudness_plugin:LoudnessWords\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(site), prepend=os.pathsep)
    monkeypatch.syspath_prepend(site)
    return site


@pytest.fixture
def sounds(tmp_path: Path) -> Sounds:
    """Writes a sound: quiet noise of so many seconds with loud places of 0.2 s at these seconds."""
    folder = tmp_path / "sounds"
    folder.mkdir()

    def write(
        name: str,
        seconds: float,
        loud_at_s: Sequence[float] = (),
        *,
        wrong: Wrong | None = None,
        rate_hz: int = RATE_HZ,
    ) -> Path:
        count = round(seconds * rate_hz)
        samples = np.random.default_rng(len(name)).normal(0, 100, count).astype(np.int16)
        for at_s in loud_at_s:
            first, length = round(at_s * rate_hz), round(0.2 * rate_hz)
            end = min(count, first + length)
            samples[first:end] = np.where(np.arange(end - first) % 40 < 20, 20000, -20000)
        if wrong is not None:
            samples[:4] = (*MARK, wrong)
        path = folder / name
        soundfile.write(path, samples, rate_hz, subtype="PCM_16")
        return path

    return write
