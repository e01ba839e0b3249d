"""Vosk, with the user's model: a grammar of phrases as commands, or open speech. https://alphacephei.com/vosk/

Kaldi adds random noise (dither) to its features, so that borderline words differ from run to run. A line `--dither=0`
in conf/mfcc.conf of the model makes results repeatable.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from typing import Any, ClassVar

from harness.base.plugins import import_extra
from harness.engines.framed import FrameCutter, Pcm, model_folder, sha256_of
from harness.engines.offline_loading import fingerprint
from harness.model.errors import EngineError
from harness.model.offline import EngineFacts, EngineKind, OfflineModel, Said, Setting, SettingKind

RATE_HZ = 16000
BLOCK_SAMPLES = 4000
"""Number of samples in a block, as in the package's examples."""
PHRASES = Setting(
    "phrases", SettingKind.TEXT, "", "the phrases of a grammar, separated by commas (default: any words)", scores=True
)
UNKNOWN = "[unk]"
"""The word that a grammar gives for other speech."""


class VoskWords:
    """Understands the phrases of a grammar, or any words. model: the folder of a Vosk model.

    PluginError without the package. Raises InputError for a folder without a model.
    """

    settings: ClassVar[tuple[Setting, ...]] = (PHRASES,)

    def __init__(self, model: str, settings: Mapping[str, str]) -> None:
        package = _package()
        folder = model_folder(model, "vosk", ["conf/model.conf", "am/final.mdl"])
        package.SetLogLevel(-1)
        try:
            self._model: Any = package.Model(str(folder))
        except Exception as error:  # the package raises nothing more specific
            raise EngineError(f"vosk cannot load the model: {error}") from error
        self._package = package
        phrases = tuple(phrase.strip() for phrase in settings.get(PHRASES.name, "").split(",") if phrase.strip())
        self._grammar = json.dumps([*phrases, UNKNOWN], ensure_ascii=False) if phrases else ""
        model_sha256 = sha256_of(*sorted(path for path in folder.rglob("*") if path.is_file()))
        installed_version = version("vosk")
        self.facts = EngineFacts(
            EngineKind.COMMAND if phrases else EngineKind.TRANSCRIPT,
            f"vosk {installed_version}",
            RATE_HZ,
            phrases,
            fingerprint(VoskWords, installed_version, model_sha256, settings),
            licence="Apache-2.0; the model's own",
            settings=tuple(sorted(settings.items())),
        )

    @classmethod
    def models(cls) -> tuple[OfflineModel, ...]:
        _package()
        return (OfflineModel("FOLDER", (), "the model's own", "a Vosk model that you downloaded"),)

    def understand(self, samples: Pcm) -> Said | None:
        """All words of the file, from the first to the last; None without any. Words outside of a grammar do not
        count."""
        words = [word for word in self._words(samples) if word["word"] != UNKNOWN]
        if not words:
            return None
        start = min(len(samples), round(words[0]["start"] * RATE_HZ))
        end = min(len(samples), round(words[-1]["end"] * RATE_HZ))
        score = sum(word["conf"] for word in words) / len(words)
        return Said(" ".join(word["word"] for word in words), min(start, end), end, score)

    def close(self) -> None:
        """Does nothing, since there is no state after a file."""

    def _words(self, samples: Pcm) -> Iterator[dict[str, Any]]:
        """The recogniser's words: `word`, `start` and `end` in seconds, `conf` 0–1."""
        grammar = (self._grammar,) if self._grammar else ()
        recogniser = self._package.KaldiRecognizer(self._model, RATE_HZ, *grammar)
        recogniser.SetWords(True)
        frames = FrameCutter(BLOCK_SAMPLES)
        for block in frames.cut(samples):
            if recogniser.AcceptWaveform(block.tobytes()):
                yield from json.loads(recogniser.Result()).get("result", ())
        if len(frames.rest):
            recogniser.AcceptWaveform(frames.rest.tobytes())
        yield from json.loads(recogniser.FinalResult()).get("result", ())


def _package() -> Any:
    return import_extra("vosk", "the engine vosk", "vosk")
