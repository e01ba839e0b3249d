"""Rendered stimuli on the disk: a float WAV and a JSON file each, under the hash of what they were made from."""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import asdict
from pathlib import Path

import numpy as np
import soundfile

from harness.base.whole_file import whole_stream
from harness.model.stimulus import Part, RenderedStimulus, Role, Waveform

logger = logging.getLogger(__name__)


def content_hash(key: str, waveform: Waveform, parts: tuple[Part, ...]) -> str:
    """Hex SHA-256 over the recipe's key, the parts and the samples (little-endian float32)."""
    digest = hashlib.sha256(key.encode())
    digest.update(json.dumps([asdict(part) for part in parts], sort_keys=True).encode())
    digest.update(f"|{waveform.rate_hz}|".encode())
    digest.update(waveform.samples.astype("<f4").tobytes())
    return digest.hexdigest()


class RenderCache:
    """A folder that threads and processes may share; it is made when the first stimulus is put.

    A file appears whole or not at all. What does not match its hash is as good as absent, and is written again.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, key: str) -> RenderedStimulus | None:
        """The stimulus under that key, checked against its hash; None when it is absent or damaged."""
        try:
            found = json.loads(self._path(key, "json").read_text(encoding="utf-8"))
            parts = tuple(
                Part(Role(p["role"]), int(p["start_sample"]), int(p["end_sample"]), str(p["text"]))
                for p in found["parts"]
            )
            samples, rate_hz = soundfile.read(self._path(key, "wav"), dtype="float32")
            waveform = Waveform(np.asarray(samples, dtype=np.float32), int(rate_hz))
            if content_hash(key, waveform, parts) == found["sha256"]:
                return RenderedStimulus(waveform, parts, found["sha256"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, soundfile.LibsndfileError) as error:
            if not self._path(key, "wav").exists():
                return None
            logger.warning("the cached stimulus %s is damaged and is made again: %s", self._path(key, "wav"), error)
            return None
        logger.warning("the cached stimulus %s is damaged and is made again: wrong hash", self._path(key, "wav"))
        return None

    def put(self, key: str, rendered: RenderedStimulus) -> None:
        """Keeps a stimulus; a disk that is full or read-only is logged, for the stimulus itself is unharmed."""

        waveform = rendered.waveform
        record = {"sha256": rendered.sha256, "parts": [asdict(part) for part in rendered.parts]}
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with whole_stream(self._path(key, "wav")) as file:
                soundfile.write(file, waveform.samples, waveform.rate_hz, format="WAV", subtype="FLOAT")
            # The record comes last: where it is, the sound is.
            with whole_stream(self._path(key, "json")) as file:
                file.write(json.dumps(record).encode())
        except (OSError, soundfile.LibsndfileError) as error:
            logger.warning("a rendered stimulus could not be kept in %s: %s", self._folder, error)

    def _path(self, key: str, suffix: str) -> Path:
        return self._folder / f"{key}.{suffix}"
