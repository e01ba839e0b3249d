"""The errors of an evaluation of files, each with its sound, spectrogram and the scores around it."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import soundfile

from harness.base.foreign import plain_text
from harness.devices.active_play import to_pcm
from harness.model.errors import HarnessError
from harness.model.frozen import frozen
from harness.model.numbers import exact, fixed, moment
from harness.model.offline import FileOutcome, LabelledPhrase, OfflineSpot, ScoreTrack
from harness.offline.evaluation_results import score_cache_of, sound_path
from harness.offline.figures.counts import MISSED, SUBSTITUTED, LogKey, judge_file
from harness.offline.figures.engines import EvaluatedEngine
from harness.offline.figures.phrase_matching import comparable_phrase
from harness.offline.journal import JournalFile
from harness.offline.score_cache import ScoreCache
from harness.report.charts import PICTURE_COLUMNS
from harness.report.session_cases import MAX_LISTED, Cases, HeardSound, ListedCase, PageSounds, SoundStorage
from harness.sound.sound_files import UnusableSound, open_sound
from harness.sound.stimuli.renderer import Renderer

MAX_LINES = 2000
"""Most errors of a kind that are listed without sound, as lines."""
SECONDS_BEFORE, SECONDS_AFTER = 2.5, 1.0
"""Length of the sound of a false accept, before and after its detection."""
MAX_CLIP_S = 6.0
"""Longest sound of a missed file. Of a longer file, the part with the highest score is shown."""


@frozen
class FileError:
    """An error in a file.

    - listed: name of the file in the list.
    - outcome: what the engine did with the file.
    - spot: the detection of a false accept; else None.
    - label: the label of a phrase that was missed in a long recording; else None.
    - score: the score of the detection. For a miss, the highest score; None if it is not known.
    - said: what the engine understood instead of the reference.
    """

    listed: str
    outcome: FileOutcome
    spot: OfflineSpot | None = None
    label: LabelledPhrase | None = None
    score: float | None = None
    said: str = ""

    def details(self) -> Iterator[str]:
        """Lines about the error, escaped."""
        if self.spot is not None:
            rate_hz = self.outcome.engine_rate_hz
            yield f"“{plain_text(self.spot.phrase, 80)}” at {moment(self.spot.end / rate_hz)}"
        if self.label is not None:
            traits = "".join(f", {plain_text(name, 40)} {plain_text(value, 80)}" for name, value in self.label.traits)
            yield f"“{plain_text(self.label.phrase, 80)}” at {moment(self.label.start_s)}{traits}"
        if self.outcome.reference:
            yield f"said: {plain_text(self.outcome.reference, 300)}"
            yield f"heard: {plain_text(self.said, 300) or 'nothing'}"
        if self.score is not None:
            yield f"{'' if self.spot is not None else 'highest '}score {fixed(self.score, 3)}"

    @property
    def line(self) -> str:
        return ", ".join([plain_text(self.listed, 200), *self.details()])


def errors_of(journal: JournalFile) -> tuple[list[FileError], list[FileError], list[FileError]]:
    """Three lists: misses, false accepts (the highest score first), and files whose words were not understood."""
    counting, missed, accepted, mistaken = journal.header.counting, list[FileError](), list[FileError](), []
    for entry in journal.outcomes():
        outcome = entry.outcome
        for fact in judge_file(outcome, counting).facts:
            spot = fact.spot
            if fact.key is LogKey.OOVFA or (fact.key is LogKey.INVFA and counting.count_in_vocabulary):
                accepted.append(FileError(entry.listed, outcome, spot, score=None if spot is None else spot.score))
            elif fact.key in MISSED:
                missed.append(FileError(entry.listed, outcome, label=fact.label))
            elif fact.key in SUBSTITUTED:
                mistaken.append(FileError(entry.listed, outcome, said=spot.phrase if spot else ""))
    accepted.sort(key=_sort_score, reverse=True)
    return missed, accepted, mistaken


def _sort_score(error: FileError) -> float:
    return -1.0 if error.score is None else error.score


def nearest_first(missed: Sequence[FileError], journal: JournalFile, scores: ScoreCache | None) -> list[FileError]:
    """Misses with their highest scores, as far as these are stored; the highest first. If there are more than
    MAX_LINES, the list is unchanged."""
    if len(missed) > MAX_LINES:
        return list(missed)
    return sorted((_with_highest(error, journal, scores) for error in missed), key=_sort_score, reverse=True)


def _with_highest(error: FileError, journal: JournalFile, scores: ScoreCache | None) -> FileError:
    track = _score_track(error, journal, scores)
    if track is None:
        return error
    rate_hz = journal.header.facts.rate_hz
    first, last = 0, len(track.scores)
    if error.label is not None:
        end_s = error.label.end_s + journal.header.counting.tolerance_s
        first = int((error.label.start_s * rate_hz - track.first_end) // track.step) + 1
        last = int((end_s * rate_hz - track.first_end) // track.step) + 1
    return replace(error, score=float(track.scores[max(0, first) : max(0, last)].max(initial=0.0)))


def _score_track(error: FileError, journal: JournalFile, scores: ScoreCache | None) -> ScoreTrack | None:
    """The scores of the phrase that was detected. For a miss, those of the phrase with the highest score. None if
    scores are not stored."""
    if scores is None or not error.outcome.sha256:
        return None
    tracks = scores.tracks(journal.header.facts, error.outcome.sha256) or ()
    phrase_source = error.spot if error.spot is not None else error.label
    phrase = "" if phrase_source is None else phrase_source.phrase
    of_phrase = [track for track in tracks if comparable_phrase(track.phrase) == comparable_phrase(phrase)]
    return max(of_phrase or tracks, key=lambda track: float(track.scores.max(initial=0.0)), default=None)


class EvaluationCases:
    """The cases of one evaluation.

    - number: place of the evaluation on the page.
    - max_listed: of each kind.
    """

    def __init__(self, engine: EvaluatedEngine, number: int, sounds: PageSounds, max_listed: int = MAX_LISTED) -> None:
        self._engine, self._number, self._sounds, self._max_listed = engine, number, sounds, max_listed
        self._scores: ScoreCache | None = score_cache_of(engine.journal, lambda line: None) if engine.sweep else None
        self._renderer = Renderer(None)

    def listed(self) -> Iterator[Cases]:
        titles = (("missed", "False rejects"), ("accepted", "False accepts"), ("mistaken", "Misunderstood"))
        missed, *other_errors = errors_of(self._engine.journal)
        missed = nearest_first(missed, self._engine.journal, self._scores)
        for (id, title), errors in zip(titles, (missed, *other_errors), strict=True):
            shown = tuple(self._listed_case(index, id, error) for index, error in enumerate(errors[: self._max_listed]))
            rest = tuple(error.line for error in errors[self._max_listed : self._max_listed + MAX_LINES])
            yield Cases(f"{id}-{self._number}", title, shown, len(errors), rest)

    def _listed_case(self, index: int, kind: str, error: FileError) -> ListedCase:
        title, lines = plain_text(error.listed, 200), tuple(error.details())
        header = self._engine.journal.header
        rate_hz, rule = header.facts.rate_hz, header.facts.rule
        track = _score_track(error, self._engine.journal, self._scores)
        first, last = _clip_window(error, track, rate_hz)
        threshold = rule.threshold if rule else 0.0
        curve = None if track is None else _score_curve(track, first, last, rate_hz, threshold)
        if self._sounds.storage is SoundStorage.NONE:
            return ListedCase(title, lines, HeardSound("", title, None), curve)
        try:
            condition = header.evaluation.condition(error.outcome.number)
            path = sound_path(error.listed, header.bases, condition)
            if condition is None:
                samples = _read_samples(path, rate_hz, first, last, resample=header.evaluation.resample)
            else:
                recipe = condition.recipe(path, rate_hz)
                samples = to_pcm(self._renderer.render(recipe).waveform, rate_hz)[first:last]
        except (UnusableSound, OSError, HarnessError):
            self._sounds.unreadable += 1
            return ListedCase(title, lines, HeardSound("", title, None), curve)
        flac = io.BytesIO()
        soundfile.write(flac, samples, rate_hz, format="FLAC", subtype="PCM_16")
        span = f"{moment(first / rate_hz)} to {moment((first + len(samples)) / rate_hz)}"
        name = f"{kind}-{self._number}-{index + 1}.flac"
        sound = self._sounds.place_sound(span, name, flac.getvalue(), (samples / 32768).astype(np.float32), rate_hz)
        return ListedCase(title, lines, sound, curve)


def _clip_window(error: FileError, track: ScoreTrack | None, rate_hz: int) -> tuple[int, int]:
    """First and last sample of the clip, at the engine's rate."""
    outcome = error.outcome
    length = outcome.samples * rate_hz // outcome.rate_hz
    if error.label is not None:
        start = round((error.label.start_s - SECONDS_BEFORE / 2) * rate_hz)
        end = round((error.label.end_s + SECONDS_AFTER) * rate_hz)
        return max(0, start), min(length, max(end, start + rate_hz))  # at least a second
    if error.spot is not None:
        return max(0, error.spot.end - round(SECONDS_BEFORE * rate_hz)), min(
            length, error.spot.end + round(SECONDS_AFTER * rate_hz)
        )
    longest = round(MAX_CLIP_S * rate_hz)
    if length <= longest:
        return 0, length
    peak = longest if track is None else track.first_end + int(np.argmax(track.scores)) * track.step
    first = min(max(0, peak - longest * 2 // 3), length - longest)
    return first, first + longest


def _read_samples(path: str, rate_hz: int, first: int, last: int, *, resample: bool) -> npt.NDArray[np.int16]:
    pieces, position = [], 0
    with open_sound(path, rate_hz, resample=resample) as sound:
        for block in sound.blocks():
            pieces.append(block[max(0, first - position) : max(0, last - position)].copy())
            position += len(block)
            if position >= last:
                break
    return np.concatenate([*pieces, np.zeros(0, np.int16)])


def _score_curve(track: ScoreTrack, first: int, last: int, rate_hz: int, threshold: float) -> dict[str, Any] | None:
    """A detector's scores over the length of a clip, as an SVG path in a box of 300 × 40. Then the y coordinate of the
    threshold. None without scores. first, last: the samples of the clip.

    There are at most PICTURE_COLUMNS points, each with the highest score of its stretch.
    """
    low = max(0, -(-(first - track.first_end) // track.step))
    scores = track.scores[low : max(low, (last - track.first_end) // track.step + 1)]
    if not len(scores):
        return None
    edges = np.unique(np.linspace(0, len(scores), min(len(scores), PICTURE_COLUMNS) + 1).astype(int))
    highest = np.maximum.reduceat(scores, edges[:-1])
    places = (track.first_end + (low + edges[:-1]) * track.step - first) * PICTURE_COLUMNS / max(1, last - first)
    points: Sequence[str] = [
        f"{fixed(x, 1)} {fixed(_svg_y(float(y)), 1)}" for x, y in zip(places, highest, strict=True)
    ]
    words = f"score of “{plain_text(track.phrase, 80)}”, 0 to 1; dashed: threshold {exact(threshold)}"
    return {"line": f"M{'L'.join(points)}", "threshold": _svg_y(threshold), "words": words}


def _svg_y(score: float) -> float:
    return 39 - 38 * min(max(score, 0.0), 1.0)
