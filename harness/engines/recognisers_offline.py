"""Recognisers for files: faster-whisper and Moonshine, each on one core, with the same words for the same file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from harness.base.plugins import import_extra
from harness.base.ports import OfflineEngine
from harness.engines.faster_whisper import FasterWhisper, packaged_model
from harness.engines.offline_loading import fingerprint
from harness.engines.voice_activity import RATE_HZ, pause_spans, speech_span, speech_spans
from harness.model.errors import EngineError, InputError, PluginError, did_you_mean
from harness.model.offline import EngineFacts, EngineKind, OfflineModel, Said, Setting, SettingKind
from harness.model.stimulus import Waveform

_SCALE = np.float32(1 / 32768)
_WHISPER_MAX_S = 28.0
"""Longest piece for Whisper: it takes 30 s at a time, half a second of which is the silence around the sound."""
_MOONSHINE_MAX_S = 20.0
"""Longest piece for Moonshine. It repeats itself in 45 s of sound (measured: 38 times the last sentence), but not in
20 s."""
_LEAD_SAMPLES = round(0.3 * RATE_HZ)
"""Silence before a piece, as the lead-in of `faster_whisper`, without which first words are lost."""
_MOONSHINE_LICENCE = "MIT"
BEAM = Setting(
    "beam-size", SettingKind.WHOLE, "5", "number of hypotheses that the search keeps", low=1, high=20,
    scores=True,
)  # fmt: skip
LANGUAGE = Setting("language", SettingKind.TEXT, "en", "language code of the speech", scores=True)
ARCHITECTURE = Setting(
    "architecture",
    SettingKind.CHOICE,
    "tiny",
    "architecture of the model in your folder",
    choices=("tiny", "base"),
    scores=True,
)


class FasterWhisperOffline:
    """Words by faster-whisper: the packaged English tiny model (int8), or the folder of any converted model.

    Files longer than 28 s are cut at the quietest moment in the last third of each 28 s.
    """

    kind: ClassVar[EngineKind] = EngineKind.TRANSCRIPT
    settings: ClassVar[tuple[Setting, ...]] = (BEAM, LANGUAGE)

    def __init__(self, model: str, settings: Mapping[str, str]) -> None:
        folder = _folder(FasterWhisperOffline, "faster_whisper", model, "tiny.en", ("model.bin", "tokenizer.json"))
        # Otherwise the vocabulary's library and the arithmetic each start a thread per core.
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        self._recogniser = FasterWhisper(
            folder,
            beam_size=int(settings.get(BEAM.name, BEAM.default)),
            language=settings.get(LANGUAGE.name, LANGUAGE.default),
        )
        model_file = (folder or packaged_model()) / "model.bin"
        self.facts = _facts(FasterWhisperOffline, self._recogniser.name, (model_file,), settings, "MIT")

    @classmethod
    def models(cls) -> tuple[OfflineModel, ...]:
        """The packaged model. Raises PluginError if its package is not installed."""
        packaged_model()
        return (OfflineModel("tiny.en", (), "MIT", "English, 39 million weights; or a folder with a converted model"),)

    def understand(self, samples: npt.NDArray[np.int16]) -> Said | None:
        """All words of the file, from the start to the end of speech; None if there are none."""
        texts = [
            self._recogniser.transcribe(Waveform(samples[start:end].astype(np.float32) * _SCALE, RATE_HZ))
            for start, end in pause_spans(samples, _WHISPER_MAX_S)
        ]
        return _transcript(texts, samples)

    def close(self) -> None:
        """Does nothing, since there is no state after a file."""


class MoonshineOffline:
    """Words by Moonshine: the packaged English tiny model, or a model folder.

    Its own speech detector is off, since it remembers the previous file. The harness's detector selects the speech, in
    pieces of at most 20 s that are cut at pauses.
    """

    kind: ClassVar[EngineKind] = EngineKind.TRANSCRIPT
    settings: ClassVar[tuple[Setting, ...]] = (ARCHITECTURE,)

    def __init__(self, model: str, settings: Mapping[str, str]) -> None:
        package = _moonshine()
        files = ("encoder_model.ort", "decoder_model_merged.ort", "tokenizer.bin")
        folder = _folder(MoonshineOffline, "moonshine", model, "tiny-en", files)
        if folder is None:
            folder = _moonshine_folder()
        os.environ["MOONSHINE_ORT_SINGLE_THREAD"] = "1"
        architecture = package.ModelArch[settings.get(ARCHITECTURE.name, ARCHITECTURE.default).upper()]
        options = {"vad_threshold": "0", "vad_max_segment_duration": "60", "identify_speakers": "false",
                   "return_audio_data": "false"}  # fmt: skip
        self._error: type[Exception] = package.MoonshineError
        try:
            self._recogniser: Any = package.Transcriber(str(folder), architecture, options=options)
        except package.MoonshineError as error:
            raise InputError(f"moonshine cannot load the model in {folder}: {error}") from error
        try:
            self._words(np.zeros(_LEAD_SAMPLES, np.int16))  # a wrong architecture loads, and fails in use
        except EngineError as error:
            self.close()
            raise InputError(
                f"the model in {folder} does not have the architecture {architecture.name.lower()}",
                remedy="Use -s architecture=tiny or -s architecture=base",
            ) from error
        name = f"moonshine-voice {version('moonshine-voice')} {folder.name}"
        hashed_files = tuple(folder / file for file in files)
        self.facts = _facts(MoonshineOffline, name, hashed_files, settings, _MOONSHINE_LICENCE)

    @classmethod
    def models(cls) -> tuple[OfflineModel, ...]:
        """The packaged model. Raises PluginError if the package is not installed, or contains no model."""
        if not _moonshine_folder().is_dir():
            raise PluginError(
                "this version of moonshine-voice contains no model",
                remedy="Install the version with the model: pip install moonshine-voice==0.1.0",
            )
        return (OfflineModel("tiny-en", (), _MOONSHINE_LICENCE, "English, 27 million weights; or a model folder"),)

    def understand(self, samples: npt.NDArray[np.int16]) -> Said | None:
        """All words of the file, from the start to the end of speech; None if there are none."""
        return _transcript([self._words(samples[start:end]) for start, end in _speech_groups(samples)], samples)

    def close(self) -> None:
        """Frees the model."""
        self._recogniser.close()

    def _words(self, piece: npt.NDArray[np.int16]) -> str:
        """The words in a piece, with silence before it. Raises EngineError if the package fails."""
        sound = np.concatenate([np.zeros(_LEAD_SAMPLES, np.float32), piece.astype(np.float32) * _SCALE])
        try:
            transcript = self._recogniser.transcribe_without_streaming(sound.tolist(), RATE_HZ)
        except self._error as error:
            raise EngineError(f"moonshine failed: {error}") from error
        return " ".join(line.text.strip() for line in transcript.lines)


def _moonshine() -> Any:
    return import_extra("moonshine_voice", "the recogniser moonshine", "moonshine")


def _moonshine_folder() -> Path:
    """The folder of the packaged model, found without importing the package, which imports an HTTP client."""
    spec = find_spec("moonshine_voice")
    origin = None if spec is None else spec.origin
    if origin is None:
        origin = _moonshine().__file__  # raises PluginError if the package is missing
    return Path(origin).parent / "assets/tiny-en"


def _folder(engine: type[OfflineEngine], name: str, model: str, packaged: str, files: tuple[str, ...]) -> Path | None:
    """The folder of a model; None for the packaged one.

    Raises PluginError if that is not installed, InputError for anything but a folder with the files. packaged: name of
    the packaged model.
    """
    if model in ("", packaged):
        engine.models()
        return None
    folder = Path(model)
    if not folder.is_dir():
        models = [known_model.name for known_model in engine.models()]
        raise InputError(
            f"{model!r} is neither a model of {name} nor a folder",
            remedy=f"{did_you_mean(model, models)}Use one of: {', '.join(models)}; or pass a model folder",
        )
    missing = [file for file in files if not (folder / file).is_file()]
    if missing:
        raise InputError(f"{model} is not a model folder of {name}: it has no {', '.join(missing)}")
    return folder


def _facts(
    engine: type[OfflineEngine], name: str, hashed_files: tuple[Path, ...], settings: Mapping[str, str], licence: str
) -> EngineFacts:
    """The facts of a recogniser of words. hashed_files: the files that identify its model."""
    digest = hashlib.sha256()
    for path in hashed_files:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return EngineFacts(
        EngineKind.TRANSCRIPT,
        name,
        RATE_HZ,
        (),
        fingerprint(engine, name, digest.hexdigest(), settings),
        licence=licence,
        settings=tuple(sorted(settings.items())),
    )


def _transcript(texts: list[str], samples: npt.NDArray[np.int16]) -> Said | None:
    """The texts of successive pieces as one transcript of the file; None without words."""
    text = " ".join(text.strip() for text in texts if text.strip())
    if not text:
        return None
    # A recogniser may find words where the detector finds no speech. Their place in the file is then unknown.
    start, end = speech_span(samples) or (0, len(samples))
    return Said(text, start, end)


def _speech_groups(samples: npt.NDArray[np.int16]) -> Iterator[tuple[int, int]]:
    """Spans of at most _MOONSHINE_MAX_S: stretches of speech, joined while they fit, with up to 0.3 s of sound around
    them."""
    longest = round(_MOONSHINE_MAX_S * RATE_HZ)
    spans = [
        (max(0, start - _LEAD_SAMPLES), min(len(samples), end + _LEAD_SAMPLES)) for start, end in speech_spans(samples)
    ]
    while spans:
        start, end = spans.pop(0)
        while spans and spans[0][1] - start <= longest:
            end = max(end, spans.pop(0)[1])
        if spans:
            # The sound around two stretches may overlap; nothing is transcribed twice.
            spans[0] = (max(spans[0][0], end), max(spans[0][1], end))
        for first, last in pause_spans(samples[start:end], _MOONSHINE_MAX_S):
            yield start + first, start + last
