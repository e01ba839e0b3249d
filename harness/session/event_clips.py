"""Clips of wake events: which events need one, and how it is cut once the sound after the event has been recorded.

    wake event ──► wanted ──► due: the sound after it was recorded ──► explained: no clip
                                                                  └──► cut and stored ──► ClipResult

Threads: the conductor's thread decides, and cuts the sound that a device was sent over a wire, since it knows what was
played. The clips' thread cuts the microphone's recording and stores clips, which both take long.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from harness.base import threads
from harness.base.ports import Clock, Hears, SessionLog
from harness.model.errors import DeviceError, LogError
from harness.model.frozen import frozen
from harness.model.observation import StimulusEnded, StimulusStarted, Wake
from harness.model.record import Clip, Entry, Observed
from harness.model.scenario import WakeSettings
from harness.model.stimulus import Waveform
from harness.model.trial import ListeningSpec, Trial

ARRIVAL_S = 0.3
"""How late a sound may reach the recording, in seconds."""


@frozen
class ClipResult:
    """The sound around a wake event is stored, or is not available (clip None, with the reason in `why`).

    event_seq: `seq` of the event's row.
    """

    event_seq: int
    clip: Clip | None
    why: str = ""


@dataclass(slots=True)
class _Sound:
    """A stimulus as one player plays it.

    starts_s, ends_s: positions in the audio sent to a device, if it is injected; else times on the host's clock.
    """

    waveform: Waveform
    starts_s: float
    ends_s: float


@frozen
class _WantedClip:
    """A clip to cut.

    - seq: number of the event's row. player: id of what played the sound.
    - at_s: time of the event on the host's clock.
    - line_s: position of the event in the audio sent to the device, or its time if that has no positions. None if the
      sound went through the air.
    - since_s: when the clip was requested.
    """

    seq: int
    player: str
    at_s: float
    line_s: float | None
    settings: WakeSettings
    since_s: float


class EventClips:
    """Decides which wake events need a clip, and cuts it once the sound after the event has been recorded.

    An event needs one unless, when its clip is due, a stimulus or an earlier event explains it. Through the air, the
    clip is from the microphone; over a wire, it is the sound that the device was sent. Cutting and storing have a
    thread of their own; everything else happens in the conductor's thread.
    """

    def __init__(
        self,
        log: SessionLog,
        microphone: Hears | None,
        clock: Clock,
        on_result: Callable[[ClipResult], None],
        is_explained: Callable[[int], bool | None],
    ) -> None:
        """on_result: called on the clips' thread. is_explained: as in `ConductorContext`."""
        self._log = log
        self._microphone = microphone
        self._clock = clock
        self._on_result = on_result
        self._is_explained = is_explained
        self._pool = threads.pool("event-clips")
        self._plays: dict[str, tuple[ListeningSpec, Waveform]] = {}
        self._sounds_by_player: dict[str, list[_Sound]] = {}  # in the order of playing
        self._listening: ListeningSpec | None = None
        self._pending_clips: list[_WantedClip] = []
        self._saving: set[int] = set()

    @property
    def pending(self) -> bool:
        """Whether a clip is unfinished, or not yet named by a row."""
        return bool(self._saving) or not all(self._is_explained(clip.seq) for clip in self._pending_clips)

    @property
    def longest_s(self) -> float:
        """The longest time after an event for which a pending clip may wait for sound."""
        return max((clip.settings.clip_after_s for clip in self._pending_clips), default=0.0) + ARRIVAL_S

    def announce_stimulus(self, trial: Trial, play_id: str, waveform: Waveform) -> None:
        """Announces a listening trial's stimulus before it is played."""
        if trial.listening is not None:
            self._listening = trial.listening
            self._plays = {play_id: (trial.listening, waveform)}

    def add_row(self, entry: Entry) -> None:
        """Adds a committed row; call it in the order of the log."""
        match entry.record:
            case Observed(observation=StimulusStarted() as started) if started.play_id in self._plays:
                self._on_start(started)
            case Observed(observation=StimulusEnded(complete=False) as ended) if ended.play_id in self._plays:
                self._shorten_sound(ended)
            case Observed(observation=Wake() as wake):
                self._request_clip(wake, entry.seq)
            case _:
                pass

    def tick(self, now_s: float, *, hurry: bool = False) -> None:
        """Has the clips cut that are due. hurry: cut with the sound so far, because no more will arrive."""
        waiting_clips = []
        for clip in self._pending_clips:
            needless = self._is_explained(clip.seq) if hurry or self._is_due(clip, now_s) else None
            if needless is None and not hurry:  # not due, or its row is not counted yet
                waiting_clips.append(clip)
            elif not needless:
                self._saving.add(clip.seq)
                self._pool.submit(self._save, clip, self._cutter(clip, now_s))
        self._pending_clips = waiting_clips

    def clip_finished(self, seq: int) -> None:
        """Records that the result for that event's clip has arrived."""
        self._saving.discard(seq)

    def close(self) -> None:
        """Waits for the clip that is being stored."""
        self._pool.shutdown(cancel_futures=True)

    # What was played

    def _on_start(self, started: StimulusStarted) -> None:
        listening, waveform = self._plays[started.play_id]
        starts_s = started.at.at_s if started.audio_s is None else started.audio_s
        sound = _Sound(waveform, starts_s, starts_s + waveform.duration_s)
        played = self._sounds_by_player.get(started.source, [])
        oldest_s = starts_s - 2 * (listening.settings.clip_before_s + listening.settings.clip_after_s)
        self._sounds_by_player[started.source] = [earlier for earlier in played if earlier.ends_s > oldest_s] + [sound]

    def _shorten_sound(self, ended: StimulusEnded) -> None:
        played = self._sounds_by_player.get(ended.source)
        if played:
            ends_s = ended.at.at_s if ended.audio_s is None else ended.audio_s
            played[-1].ends_s = min(played[-1].ends_s, max(ends_s, played[-1].starts_s))

    # What woke

    def _request_clip(self, wake: Wake, seq: int) -> None:
        """Plans the clip of an event in a listening trial, unless there is no sound to cut it from."""
        listening = self._listening
        if listening is None:
            return
        target = next((candidate for candidate in listening.targets if wake.source in candidate.sources), None)
        if target is None or (self._microphone is None and not target.injected):
            return
        since_s = self._clock.now_s()
        line_s = None
        if target.injected:  # a connection without positions plays on the host's clock
            line_s = wake.at.at_s if wake.audio_s is None else wake.audio_s
        self._pending_clips.append(_WantedClip(seq, target.player, wake.at.at_s, line_s, listening.settings, since_s))

    # Cutting

    def _is_due(self, clip: _WantedClip, now_s: float) -> bool:
        after_s = clip.settings.clip_after_s
        if clip.line_s is None:
            return now_s >= clip.at_s + after_s + ARRIVAL_S
        played = self._sounds_by_player.get(clip.player)
        # Over a wire, nothing may follow the last sound. Then the clip ends with it.
        return now_s >= clip.since_s + after_s or bool(played and played[-1].ends_s >= clip.line_s + after_s)

    def _cutter(self, request: _WantedClip, now_s: float) -> Callable[[], tuple[Waveform, float] | None]:
        """A function for the clips' thread: it returns the sound and its start, or None if that is not in memory.

        The sound sent over a wire is cut here already, because only the conductor's thread may read what was played.
        """
        before_s, after_s = request.settings.clip_before_s, request.settings.clip_after_s
        if request.line_s is not None:
            played = self._sounds_by_player.get(request.player, [])
            excerpt = _played_excerpt(played, request.line_s - before_s, request.line_s + after_s)
            if excerpt is None:
                return lambda: None
            # The clip's time line is the host's, with the event where it was stamped.
            waveform, starts_s = excerpt
            clip = waveform, request.at_s - request.line_s + starts_s
            return lambda: clip
        microphone = self._microphone
        if microphone is None:
            return lambda: None
        return lambda: microphone.cut(request.at_s - before_s, min(request.at_s + after_s, now_s))

    def _save(self, request: _WantedClip, cut: Callable[[], tuple[Waveform, float] | None]) -> None:
        """Cuts and stores a clip, and reports the result. Runs in the clips' thread."""
        clip: Clip | None = None
        why = "the sound around it is no longer kept"
        try:
            excerpt = cut()
            if excerpt is not None and len(excerpt[0].samples):
                clip = self._log.save_clip(*excerpt)
        except (DeviceError, LogError) as error:
            why = str(error)
        self._on_result(ClipResult(request.seq, clip, "" if clip else why))


def _played_excerpt(played: list[_Sound], from_s: float, until_s: float) -> tuple[Waveform, float] | None:
    """Part of the audio sent to a device, and the position where it begins; None if it is no longer in memory."""
    within = [sound for sound in played if sound.ends_s > from_s and sound.starts_s < until_s]
    if not within:
        return None
    rate_hz = within[-1].waveform.rate_hz
    starts_s = max(from_s, within[0].starts_s)
    count = round((min(until_s, within[-1].ends_s) - starts_s) * rate_hz)
    samples = np.zeros(max(0, count), dtype=np.float32)
    for sound in within:
        if sound.waveform.rate_hz != rate_hz:
            continue  # sounds of another rate stay silent in the clip
        first = round((sound.starts_s - starts_s) * rate_hz)
        heard = sound.waveform.samples[: round((sound.ends_s - sound.starts_s) * rate_hz)]
        low, high = max(0, first), min(count, first + len(heard))
        if low < high:
            samples[low:high] = heard[low - first : high - first]
    return Waveform(samples, rate_hz), starts_s
