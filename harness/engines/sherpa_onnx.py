"""Keyword spotting by sherpa-onnx, with the user's model. https://k2-fsa.github.io/sherpa/onnx/kws/index.html"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from harness.base.plugins import import_extra
from harness.engines.framed import FrameSpotStream, Pcm, model_folder, sha256_of
from harness.engines.offline_loading import fingerprint
from harness.engines.settings import LEAD_IN, SPOT_DURATION, number
from harness.model.errors import EngineError, InputError, Place
from harness.model.offline import EngineFacts, EngineKind, OfflineModel, Setting, SettingKind

RATE_HZ = 16000
FRAME_SAMPLES = 1600
"""Number of samples in a frame: 100 ms, as in the package's own microphone loop."""
TAIL_SAMPLES = 10560
"""Number of samples of silence after a file: 0.66 s, as in the package's example."""
KEYWORDS = Setting(
    "keywords", SettingKind.FILE, "", "file of keywords in the model's tokens (default: keywords.txt in the folder)"
)
THRESHOLD = Setting("keywords-threshold", SettingKind.NUMBER, "0.25", "minimum probability of a keyword", low=0, high=1)
SCORE = Setting("keywords-score", SettingKind.NUMBER, "1", "boost of keywords in the search", low=0, high=100)
_PARTS = ("encoder", "decoder", "joiner")


class SherpaOnnx:
    """Finds the keywords of a file. model: the folder of a transducer, with tokens.txt.

    PluginError without the package. Raises InputError for a folder without a model, and for a missing list of keywords.
    """

    kind: ClassVar[EngineKind] = EngineKind.WAKE
    settings: ClassVar[tuple[Setting, ...]] = (KEYWORDS, THRESHOLD, SCORE, LEAD_IN, SPOT_DURATION)

    def __init__(self, model: str, settings: Mapping[str, str]) -> None:
        package = _package()
        folder = model_folder(model, "sherpa_onnx", ["tokens.txt", *(f"{part}*.onnx" for part in _PARTS)])
        networks = {part: _network(folder, part) for part in _PARTS}
        keywords = Path(settings.get(KEYWORDS.name, folder / "keywords.txt"))
        phrases = tuple(_phrases(keywords))
        model_sha256 = sha256_of(folder / "tokens.txt", keywords, *networks.values())
        try:
            self._spotter: Any = package.KeywordSpotter(
                tokens=str(folder / "tokens.txt"),
                keywords_file=str(keywords),
                num_threads=1,
                keywords_threshold=number(settings, THRESHOLD),
                keywords_score=number(settings, SCORE),
                **{part: str(path) for part, path in networks.items()},
            )
        except (RuntimeError, ValueError) as error:
            raise EngineError(f"sherpa-onnx cannot load the model: {error}") from error
        self._spot_samples = round(number(settings, SPOT_DURATION) / 1000 * RATE_HZ)
        installed_version = version("sherpa-onnx")
        self.facts = EngineFacts(
            EngineKind.WAKE,
            f"sherpa-onnx {installed_version}",
            RATE_HZ,
            phrases,
            fingerprint(SherpaOnnx, installed_version, model_sha256, settings),
            licence="Apache-2.0; the model's own",
            lead_in_ms=number(settings, LEAD_IN),
            settings=tuple(sorted(settings.items())),
        )

    @classmethod
    def models(cls) -> tuple[OfflineModel, ...]:
        _package()
        return (OfflineModel("FOLDER", (), "the model's own", "a keyword-spotting transducer that you downloaded"),)

    def listen(self) -> FrameSpotStream:
        """Begins a file with a fresh stream."""
        stream = self._spotter.create_stream()

        def phrases_in(samples: Pcm) -> Iterator[str]:
            stream.accept_waveform(RATE_HZ, samples.astype(np.float32) / np.float32(32768))
            while self._spotter.is_ready(stream):
                self._spotter.decode_stream(stream)
                phrase = self._spotter.get_result(stream)
                if phrase:
                    self._spotter.reset_stream(stream)  # else the same phrase is reported again
                    yield phrase

        def phrases_at_end(rest: Pcm) -> Iterator[str]:
            yield from phrases_in(rest)
            stream.accept_waveform(RATE_HZ, np.zeros(TAIL_SAMPLES, np.float32))
            stream.input_finished()
            yield from phrases_in(np.zeros(0, np.int16))

        return FrameSpotStream(FRAME_SAMPLES, self._spot_samples, phrases_in, phrases_at_end)

    def close(self) -> None:
        """Does nothing, since there is no state after a file."""


def _package() -> Any:
    return import_extra("sherpa_onnx", "the engine sherpa_onnx", "sherpa")


def _network(folder: Path, part: str) -> Path:
    """The file of a part of the transducer; a smaller, quantised one only if there is no other."""
    return min(folder.glob(f"{part}*.onnx"), key=lambda path: (".int8" in path.name, path.name))


def _phrases(path: Path) -> Iterator[str]:
    """The keywords of a file: `▁HE Y ▁JA R VIS :1.5 #0.3 @hey jarvis`. The text after @ names it, else its tokens."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"the keywords cannot be read: {error}",
            place=Place(str(path)),
            remedy="Convert the keywords with `sherpa-onnx-cli text2token`, and add -f keywords FILE",
        ) from error
    for line in filter(str.strip, lines):
        tokens, separator, name = line.partition("@")
        text = "".join(token for token in tokens.split() if token[0] not in ":#").replace("▁", " ").strip()
        yield name.strip() if separator else text
