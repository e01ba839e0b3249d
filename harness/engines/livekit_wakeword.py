"""Wake models of livekit-wakeword: the user's classifier on the package's features.

https://github.com/livekit/livekit-wakeword. The package scores 2 s of sound every 80 ms, each anew.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from harness.base.plugins import installed
from harness.engines.framed import Framed, Pcm, sha256_of
from harness.engines.offline_loading import fingerprint
from harness.engines.settings import LEAD_IN, OF_SCORES, number, operating_points, spot_rule
from harness.model.errors import EngineError, InputError
from harness.model.offline import EngineFacts, EngineKind, OfflineModel, ScoreTrack, Setting

RATE_HZ = 16000
FRAME_SAMPLES = 1280
WINDOW_FRAMES = 25
"""2 s: `CHUNK_FRAMES` of the package's listener."""
OWN_THRESHOLD = 0.5


class LivekitWakeword:
    """Scores a wake phrase. model: a classifier in an ONNX file, named for its phrase.

    PluginError without the package, InputError for another file, EngineError if the package does not take it.
    """

    kind: ClassVar[EngineKind] = EngineKind.WAKE
    settings: ClassVar[tuple[Setting, ...]] = OF_SCORES

    def __init__(self, model: str, settings: Mapping[str, str]) -> None:
        package = _package()
        file = Path(model)
        if file.suffix != ".onnx" or not file.is_file():
            what = f"{model!r} is not an ONNX file" if model else "livekit needs a model"
            raise InputError(what, remedy="Name your classifier: -t livekit:hey_house.onnx")
        try:
            self._model: Any = package.WakeWordModel(models=[str(file)])
            self._model.predict(np.zeros(WINDOW_FRAMES * FRAME_SAMPLES, np.int16))
        except Exception as error:  # of onnxruntime, whose classes differ by version
            raise EngineError(f"livekit-wakeword cannot use {file.name}: {str(error).splitlines()[0]}") from error
        self._phrase = file.stem
        rule, point = spot_rule(settings, OWN_THRESHOLD, RATE_HZ)
        installed_version = version("livekit-wakeword")
        self.facts = EngineFacts(
            EngineKind.WAKE,
            f"livekit-wakeword {installed_version}",
            RATE_HZ,
            (self._phrase,),
            fingerprint(LivekitWakeword, installed_version, sha256_of(file), settings),
            licence="Apache-2.0; the model's own",
            lead_in_ms=number(settings, LEAD_IN),
            rule=rule,
            operating_point=point,
            operating_points=operating_points(OWN_THRESHOLD),
            settings=tuple(sorted(settings.items())),
        )

    @classmethod
    def models(cls) -> tuple[OfflineModel, ...]:
        _package()
        return (OfflineModel("FILE.onnx", (), "the model's own", "a classifier that you trained"),)

    def begin(self) -> _Windows:
        return _Windows(self._model, self._phrase)

    def close(self) -> None:
        """Nothing outlives a file."""


class _Windows:
    def __init__(self, model: Any, phrase: str) -> None:
        self._model, self._phrase = model, phrase
        self._frames, self._held = Framed(FRAME_SAMPLES), deque[Pcm](maxlen=WINDOW_FRAMES)
        self._scores: list[float] = []
        self._told = 0

    def feed(self, samples: Pcm) -> None:
        for frame in self._frames.cut(samples):
            self._held.append(frame)
            if len(self._held) == WINDOW_FRAMES:
                self._scores.append(self._model.predict(np.concatenate(self._held))[self._phrase])

    def take(self, *, flush: bool) -> tuple[ScoreTrack, ...]:
        first_end = (WINDOW_FRAMES + self._told) * FRAME_SAMPLES
        scores, self._scores = np.array(self._scores, np.float32), []
        self._told += len(scores)
        return (ScoreTrack(self._phrase, scores, first_end, FRAME_SAMPLES),)


def _package() -> Any:
    return installed("livekit.wakeword", "the engine livekit", "livekit")
