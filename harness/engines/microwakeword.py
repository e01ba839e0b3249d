"""The wake engine microWakeWord: streaming detection of one phrase, with the models of its package."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from harness.base.plugins import import_extra
from harness.engines.framed import FrameCutter
from harness.model.errors import PluginError, did_you_mean
from harness.model.frozen import frozen

RATE_HZ = 16000
_FRAME_SAMPLES = 160
"""10 ms, by which the windows of the features advance."""


@frozen
class Hit:
    """One wake event.

    - sample: number of the sample, from the last reset.
    - score: mean probability there (0–1).
    """

    phrase: str
    sample: int
    score: float


class MicroWakeWord:
    """Detects one of the four phrases of pymicro-wakeword; 16 kHz, 10 ms frames.

    - phrase: alexa, hey_jarvis, hey_mycroft or okay_nabu (or with spaces).
    - refractory_s: a hit within this time of the last one belongs to the same utterance.
    - threshold: 0–1; None is the model's own.

    Raises PluginError if the package is missing or lacks the phrase.
    """

    rate_hz: ClassVar[int] = RATE_HZ

    def __init__(self, phrase: str = "alexa", *, refractory_s: float = 1.0, threshold: float | None = None) -> None:
        pymicro_wakeword = import_extra("pymicro_wakeword", "the wake engine microwakeword", "lab")
        if not (math.isfinite(refractory_s) and refractory_s >= 0):
            raise ValueError(f"refractory_s must be finite and not negative, not {refractory_s}")
        key = phrase.strip().lower().replace(" ", "_")
        models = {model.value: model for model in pymicro_wakeword.Model}
        if key not in models:
            raise PluginError(
                f"microWakeWord has no model for the phrase {phrase!r}",
                remedy=f"{did_you_mean(phrase, models)}Use one of: {', '.join(sorted(models))}",
            )
        self._phrase = key.replace("_", " ")
        self._refractory_samples = round(refractory_s * RATE_HZ)
        self._make_features = pymicro_wakeword.MicroWakeWordFeatures
        self._model: Any = pymicro_wakeword.MicroWakeWord.from_builtin(models[key])
        self._threshold = self._model.probability_cutoff if threshold is None else threshold
        self._start()

    def phrases(self) -> tuple[str, ...]:
        """The one phrase, in words."""
        return (self._phrase,)

    def feed(self, samples: npt.NDArray[np.int16]) -> tuple[Hit, ...]:
        """Hits in these samples, shape (n,): one per utterance of the phrase, when its score first crosses the
        threshold."""
        hits: list[Hit] = []
        for frame in self._frames.cut(samples):
            for features in self._features.process_streaming(frame.tobytes()):
                hit = self._judge(self._model.process_streaming_prob(features))
                if hit is not None:
                    hits.append(hit)
        return tuple(hits)

    def reset(self) -> None:
        """Clears the state; sample indices start at 0 again."""
        self._model.reset()
        self._start()

    def _start(self) -> None:
        self._features: Any = self._make_features()
        self._frames = FrameCutter(_FRAME_SAMPLES)
        self._last_above: int | None = None

    def _judge(self, score: float | None) -> Hit | None:
        """The hit at the current frame, if the score begins one. score: None while the package has too few frames."""
        if score is None or score <= self._threshold:
            return None
        position = self._frames.taken
        is_new = self._last_above is None or position - self._last_above >= max(self._refractory_samples, 1)
        self._last_above = position
        return Hit(self._phrase, position, float(score)) if is_new else None
