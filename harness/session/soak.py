"""Ambient sound: a long soak that is cut into segments, and the probes between them."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from harness.model.calibration import Calibration
from harness.model.frozen import frozen
from harness.model.scenario import AmbientSource, AmbientSpec, TrialKind
from harness.model.stimulus import Ambience, RecordingPiece, Saying, VoiceSpec
from harness.model.trial import Trial

T = TypeVar("T")

MIN_PIECE_S = 0.001
"""A remainder of a recording that is shorter does not become a separate piece."""
LETTERS_PER_S = 15.0
PAUSE_S = 0.9
"""A text is assumed to take letters / LETTERS_PER_S + PAUSE_S when texts are assigned to segments. If the texts are
shorter, the speaker starts over."""


def segments(spec: AmbientSpec, seed: str, calibration: Calibration | None = None) -> Iterator[tuple[str, Ambience]]:
    """The segments of a soak: the id of the source, and the sound of one ambient trial. A seed always gives the same.

    Each segment has one source. Each source gets its share of the segments, in an order drawn with the seed. The
    recordings of a source are shuffled in every loop, and each segment continues where the last one ended. With a
    calibration, a sound level meter shows the level of noise by its weighting.
    """
    total_s = spec.hours * 3600
    order = _apportion(spec.sources, spec.segments)
    random.Random(f"{seed}:order").shuffle(order)
    streams = {source.id: _Stream(source, f"{seed}:{source.id}") for source in spec.sources}
    left_s = total_s
    for source in order:
        duration_s = round(min(spec.segment_s, left_s), 6)
        left_s -= duration_s
        ambience = streams[source.id].next(duration_s)
        if calibration is not None and calibration.weighting == "A" and ambience.noise is not None:
            ambience = replace(ambience, a_weighting_db=calibration.weighting_db)
        yield source.id, ambience


def _apportion(sources: tuple[AmbientSource, ...], count: int) -> list[AmbientSource]:
    """The sources, each repeated by its share of `count`. The rest goes to those with the largest remainders."""
    total_share = sum(source.share for source in sources)
    exact_counts = [count * source.share / total_share for source in sources]
    counts = [math.floor(exact_count) for exact_count in exact_counts]
    by_remainder = sorted(range(len(sources)), key=lambda index: (counts[index] - exact_counts[index], index))
    for index in by_remainder[: count - sum(counts)]:
        counts[index] += 1
    return [source for source, times in zip(sources, counts, strict=True) for _ in range(times)]


@frozen
class _PlayedRecording:
    """A recording that is being played. offset_s: how much of it was played so far."""

    path: str
    length_s: float
    offset_s: float


class _Stream:
    """The endless sound of one source, cut into segments."""

    def __init__(self, source: AmbientSource, seed: str) -> None:
        self._source = source
        self._seed = seed
        self._chance = random.Random(f"{seed}:draws")
        self._recordings = self._shuffle(tuple(zip(source.recordings, source.durations_s, strict=True)))
        self._sayings = self._shuffle(source.texts)
        self._playing: _PlayedRecording | None = None

    def next(self, duration_s: float) -> Ambience:
        """The next `duration_s` seconds."""
        seed = self._chance.getrandbits(32)
        if self._source.noise is not None:
            return Ambience(duration_s, seed, noise=self._source.noise)
        if self._source.texts:
            return Ambience(duration_s, seed, sayings=tuple(self._draw_sayings(duration_s)))
        return Ambience(duration_s, seed, pieces=tuple(self._pieces(duration_s)))

    def _pieces(self, duration_s: float) -> Iterator[RecordingPiece]:
        """Parts of recordings, one after another, that fill the time. The next call continues where they end."""
        left_s = duration_s
        while left_s > 1e-6:  # lengths are rounded to µs
            if self._playing is None:
                path, length_s = next(self._recordings)
                self._playing = _PlayedRecording(path, length_s, 0.0)
            playing = self._playing
            piece_s = min(left_s, playing.length_s - playing.offset_s)
            yield RecordingPiece(playing.path, round(playing.offset_s, 6), round(piece_s, 6))
            left_s -= piece_s
            offset_s = playing.offset_s + piece_s
            self._playing = None if offset_s >= playing.length_s - MIN_PIECE_S else replace(playing, offset_s=offset_s)

    def _draw_sayings(self, duration_s: float) -> Iterator[Saying]:
        """Texts that take about that long to say, each with a random voice."""
        left_s = duration_s
        voices = self._source.voices or (VoiceSpec(),)
        while left_s > 0:
            text = next(self._sayings)
            left_s -= len(text) / LETTERS_PER_S + PAUSE_S
            yield Saying(text, self._chance.choice(voices))

    def _shuffle(self, items: tuple[T, ...]) -> Iterator[T]:
        """Yields the items endlessly, in a new random order in every loop."""
        for loop in itertools.count():
            order = list(items)
            random.Random(f"{self._seed}:{loop}").shuffle(order)
            yield from order


OTHER_TRIAL_S = 10.0
"""Assumed duration of a trial that is not ambient."""


@dataclass(slots=True)
class _Stretch:
    """The state of a soak since its last probe.

    - segments_left: number of its segments that are not played yet.
    - every_s: longest time between two probes.
    - length_s: length of everything played since the last probe; None before the first.
    - has_ambient: whether a segment was played since.
    - probe_count: number of its probes.
    """

    segments_left: int
    every_s: float
    length_s: float | None = None
    has_ambient: bool = False
    probe_count: int = 0


def with_probes(trials: Sequence[Trial], probe_makers: Mapping[str, Callable[[int], Trial]]) -> Iterator[Trial]:
    """The trials in their order, with probes between them.

    probe_makers: id of a template of ambient trials → a function that makes its probe with a number, from 1.
    Each such soak has a probe before its first segment and after its last. Further probes follow at most
    `probe_every_s` apart.
    """
    stretches = {name: _Stretch(0, 0.0) for name in probe_makers}
    for trial in trials:
        if (soak_stretch := stretches.get(_soak_id(trial))) is not None:
            soak_stretch.segments_left += 1
            soak_stretch.every_s = trial.listening.probe_every_s if trial.listening else 0.0
    follow_up_s = {part.primed_by: part.wait_s + OTHER_TRIAL_S for trial in trials if (part := trial.memory)}
    # A probe precedes a trial with which the time since the last probe would become too long. It is needed only if
    # ambient sound was played since then, or is this trial.
    for trial in trials:
        if trial.is_follow_up:  # nothing comes between it and its prime
            yield trial
            continue
        sound = trial.recipe.query
        soak = _soak_id(trial)
        lasts_s = sound.duration_s if isinstance(sound, Ambience) else OTHER_TRIAL_S
        lasts_s += follow_up_s.get(trial.id, 0.0)
        for name, stretch in stretches.items():
            is_due = stretch.length_s is None or stretch.length_s + lasts_s > stretch.every_s
            if is_due and (name == soak or stretch.has_ambient):
                yield _next_probe(stretch, probe_makers[name])
            if stretch.length_s is not None:
                stretch.length_s += lasts_s
        yield trial
        if (own_stretch := stretches.get(soak)) is not None:
            own_stretch.has_ambient = True
            own_stretch.segments_left -= 1
            if not own_stretch.segments_left:
                yield _next_probe(own_stretch, probe_makers[soak])


def _next_probe(stretch: _Stretch, make_probe: Callable[[int], Trial]) -> Trial:
    """Makes the next probe of a soak, with which a new stretch begins."""
    stretch.probe_count += 1
    stretch.length_s, stretch.has_ambient = 0.0, False
    return make_probe(stretch.probe_count)


def _soak_id(trial: Trial) -> str:
    """The id of the template of an ambient trial; "" for other trials."""
    ambient = trial.listening is not None and trial.listening.kind is TrialKind.AMBIENT
    return trial.template if ambient else ""
