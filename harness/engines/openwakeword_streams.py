"""The two ways of openWakeWord through a sound: the package's own, call by call, and the same sums over stretches.

A score is known once the 1760 samples of its call are there: the first at sample 480 (the package has filled its buffer
with zeros, and the call lies 1280 samples before the sound), then each 1280. The package that is fed 480 samples and
then 80 ms at a time tells each score at just that sample. Scores of the silence before the sound are not told.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from harness.engines.openwakeword_classifier import EMBEDDING_SIZE, Classifier, Listens
from harness.engines.openwakeword_features import CALL_SAMPLES, STEP_SAMPLES, Features, Tail
from harness.engines.openwakeword_onnx_run import Array
from harness.model.errors import EngineError
from harness.model.offline import ScoreTrack

FIRST_END = CALL_SAMPLES - STEP_SAMPLES
STRETCH_STEPS = 150
"""Steps that are worked out at once, 12 s: their convolutions fit into a core's cache."""
TOLERANCE_LOG_ODDS = 1e-3
"""How far apart the two ways' scores may lie, in log odds; more than ten times what was measured."""
_FEW_ULP = 3e-7
"""… and relative to the score: a float32 near 1 is no finer."""
_CALLS_BEFORE_AN_EMBEDDING = 9


class _Scores:
    """Scores that nobody has taken yet."""

    def __init__(self, phrase: str) -> None:
        self._phrase = phrase
        self._parts: list[Array] = []
        self._taken = 0

    def add(self, scores: Array) -> None:
        self._parts.append(scores)

    def take(self) -> tuple[ScoreTrack, ...]:
        scores = np.concatenate(self._parts) if self._parts else np.zeros(0, np.float32)
        track = ScoreTrack(self._phrase, scores, FIRST_END + self._taken * STEP_SAMPLES, STEP_SAMPLES)
        self._parts = []
        self._taken += len(scores)
        return (track,)


class StreamingScores:
    """A sound through the package, 80 ms at a time. features: the package's OpenWakeWordFeatures."""

    def __init__(self, phrase: str, features: Any, classifier: Listens) -> None:
        self._scores = _Scores(phrase)
        self._features, self._classifier = features, classifier
        features.reset()
        classifier.reset()
        self._rest = np.zeros(0, np.int16)
        self._wanted = FIRST_END

    def feed(self, samples: npt.NDArray[np.int16]) -> None:
        sound = np.concatenate([self._rest, samples])
        place = 0
        while len(sound) - place >= self._wanted:
            self._chunk(sound[place : place + self._wanted])
            place += self._wanted
            self._wanted = STEP_SAMPLES
        self._rest = sound[place:].copy()

    def take(self, *, flush: bool) -> tuple[ScoreTrack, ...]:
        """What is left of a chunk at the end completes no score; the package leaves it too."""
        return self._scores.take()

    def _chunk(self, samples: npt.NDArray[np.int16]) -> None:
        found = [
            score
            for embeddings in self._features.process_streaming(samples.tobytes())
            for score in self._classifier.process_streaming(embeddings)
        ]
        self._scores.add(np.asarray(found[-1:], np.float32))


class CallByCall:
    """Single scores as the package works them out, from the sound that they depend on alone."""

    def __init__(self, features: Any, classifier: Listens, windows: int) -> None:
        self._features, self._classifier = features, classifier
        self.calls = windows + _CALLS_BEFORE_AN_EMBEDDING
        """Calls of the mel model that a score depends on, with its own."""

    def score(self, samples: npt.NDArray[np.int16]) -> float:
        """The score of the last of `calls` calls. samples: shape (1280 · calls + 480,)."""
        self._features.reset()
        self._classifier.reset()
        self._features.new_audio_samples = 0  # what lies before, silence as well, is in the samples
        (score,) = (
            one
            for embeddings in self._features.process_streaming(samples.tobytes())
            for one in self._classifier.process_streaming(embeddings)
        )
        return score


class FastScores:
    """A sound in stretches that begin at the same samples however it is fed, so that the scores are the same.

    decisive: thresholds; a score so near one of them that the two ways could differ about it is asked of `exact`.
    """

    def __init__(
        self, phrase: str, features: Features, classifier: Classifier, exact: CallByCall, decisive: Array
    ) -> None:
        self._scores = _Scores(phrase)
        self._classifier = classifier
        self._exact, self._decisive = exact, decisive
        self._tail = Tail(features)
        # Before the sound lie zeros: the first call begins 1280 samples before it, and all of the windows before that
        # have the embedding of silence.
        self._history = (exact.calls - 1) * STEP_SAMPLES
        self._sound = np.zeros(self._history + STRETCH_STEPS * STEP_SAMPLES + FIRST_END, np.int16)
        self._filled = self._history + STEP_SAMPLES
        self._embeddings = np.repeat(features.silent_embedding, classifier.windows - 1, axis=0)

    def feed(self, samples: npt.NDArray[np.int16]) -> None:
        place = 0
        while place < len(samples):
            part = samples[place : place + len(self._sound) - self._filled]
            self._sound[self._filled : self._filled + len(part)] = part
            self._filled += len(part)
            place += len(part)
            if self._filled == len(self._sound):
                self._stretch(STRETCH_STEPS)

    def take(self, *, flush: bool) -> tuple[ScoreTrack, ...]:
        """Of sound that goes on, scores of whole stretches only."""
        steps = (self._filled - self._history - FIRST_END) // STEP_SAMPLES
        if flush and steps:
            self._stretch(steps)
        return self._scores.take()

    def _stretch(self, steps: int) -> None:
        end = self._history + steps * STEP_SAMPLES + FIRST_END
        samples = self._sound[self._history : end].astype(np.float32)
        embeddings = np.concatenate([self._embeddings, self._tail.embeddings(samples, steps)])
        self._embeddings = embeddings[steps:]
        shape = (self._classifier.windows, EMBEDDING_SIZE)
        windows = np.lib.stride_tricks.sliding_window_view(embeddings, shape)[:, 0]
        try:
            scores = self._classifier.scores(np.ascontiguousarray(windows))
        except ValueError as error:
            raise EngineError(f"openWakeWord's classifier failed: {error}") from error
        for index in undecided(scores, self._decisive):
            start = int(index) * STEP_SAMPLES
            context = self._sound[start : start + self._history + CALL_SAMPLES]
            scores[index] = self._exact.score(context)
        self._scores.add(scores)
        left = self._filled - steps * STEP_SAMPLES
        self._sound[:left] = self._sound[self._filled - left : self._filled]
        self._filled = left


def undecided(scores: Array, decisive: Array) -> npt.NDArray[np.intp]:
    """Indices of scores that lie within the two ways' tolerance of a threshold."""
    near = np.abs(scores[:, np.newaxis] - decisive) < margin(decisive)
    return np.flatnonzero(near.any(axis=1))


def margin(scores: Array) -> Array:
    """How far the other way's score may lie from each of these."""
    return scores * (_FEW_ULP + TOLERANCE_LOG_ODDS * (1 - scores))
