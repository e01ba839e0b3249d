"""The in-process sound path: an air with timed events, and the driver of the equipment in it."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
import soxr

from harness.base import threads
from harness.base.ports import Clock, Sink, Surroundings
from harness.devices.in_process.device import (
    RATE_HZ,
    WAKES_AFTER_S,
    DeviceReaction,
    InProcessOptions,
    ScriptedPhrase,
    SimpleDevice,
    WakeAt,
    detect_phrases,
    draw_wakes,
    reported_intent,
    synthetic_speech,
    waveform_sha256,
)
from harness.model.bench import ObservationKind
from harness.model.errors import DeviceError
from harness.model.numbers import fixed
from harness.model.observation import (
    DeviceState,
    LinkBack,
    LinkLost,
    ListeningProved,
    Observation,
    Proof,
    ResponseText,
    SpeechEnded,
    SpeechStarted,
    Status,
    StimulusEnded,
    StimulusHeard,
    StimulusStarted,
    Transcript,
    Wake,
)
from harness.model.stimulus import RenderedStimulus, Role, Samples, Waveform
from harness.model.time import Stamp
from harness.model.trial import Trial
from harness.model.understanding import ExpectedFrame

KEPT_S = 600.0
FLOOR_DBFS = -72.0
"""Level of the air's own noise."""


@dataclass(slots=True)
class AirSound:
    """A sound in the air: samples at RATE_HZ, of which the first is at starts_s. tag: names its source."""

    tag: str
    starts_s: float
    samples: Samples

    @property
    def ends_s(self) -> float:
        return self.starts_s + len(self.samples) / RATE_HZ


class _DueCall(NamedTuple):
    """A call at due_s. Calls of one time come in the `order` of scheduling. tag: under which it can be cancelled."""

    due_s: float
    order: int
    tag: str
    action: Callable[[], None]


class Air:
    """The air: sounds and timed events. Callbacks run in the air's thread, one at a time, never early."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._changed = threads.condition()
        self._due_calls: list[_DueCall] = []  # a heap
        self._order = itertools.count()
        self._sounds: list[AirSound] = []
        self._is_open = True
        self._thread = threads.thread(self._run, name="in-process-air")
        self._thread.start()

    def close(self) -> None:
        """Ends the thread; calls that are not due yet are dropped."""
        with self._changed:
            self._is_open = False
            self._changed.notify_all()
        if threads.current_thread() is not self._thread:
            self._thread.join(1.0)

    def schedule(self, due_s: float, tag: str, action: Callable[[], None]) -> None:
        """Schedules a call, unless its tag is cancelled first."""
        with self._changed:
            heapq.heappush(self._due_calls, _DueCall(due_s, next(self._order), tag, action))
            self._changed.notify_all()

    def cancel(self, tag: str) -> None:
        """Cancels the calls scheduled under that tag."""
        with self._changed:
            self._due_calls = [call for call in self._due_calls if call.tag != tag]
            heapq.heapify(self._due_calls)

    def add_sound(self, tag: str, starts_s: float, waveform: Waveform) -> AirSound:
        """Adds a sound; returns it at the air's rate."""
        samples = waveform.samples
        if waveform.rate_hz != RATE_HZ:
            samples = np.asarray(soxr.resample(samples, waveform.rate_hz, RATE_HZ), dtype=np.float32)
        air_sound = AirSound(tag, starts_s, samples)
        with self._changed:
            oldest_s = self._clock.now_s() - KEPT_S
            self._sounds = [sound for sound in self._sounds if sound.ends_s > oldest_s]
            self._sounds.append(air_sound)
        return air_sound

    def hush(self, tag: str, at_s: float) -> None:
        """Ends the sounds of that tag at that time, if they were still playing."""
        with self._changed:
            for sound in self._sounds:
                if sound.tag == tag and sound.ends_s > at_s:
                    sound.samples = sound.samples[: max(0, round((at_s - sound.starts_s) * RATE_HZ))]

    def cut(self, start_s: float, end_s: float, tags: Callable[[str], bool] = lambda _: True) -> Waveform:
        """The sound heard in [start_s, end_s): all sounds and the air's own noise, always the same for a span.

        tags: selects the sources that are heard.

        Waits until end_s has passed, at most one real second. Raises DeviceError when it is later or too long ago.
        """
        wait_s = self._clock.real_s(end_s - self._clock.now_s())
        if wait_s > 1.0 or start_s < self._clock.now_s() - KEPT_S or not start_s < end_s:
            raise DeviceError(
                f"the sound from {fixed(start_s, 2)} to {fixed(end_s, 2)} s is not available",
                remedy="Use a span from the last few minutes",
            )
        if wait_s > 0:
            with self._changed:
                self._changed.wait_for(lambda: not self._is_open or self._clock.now_s() >= end_s, wait_s)
        count = round((end_s - start_s) * RATE_HZ)
        noise = np.random.default_rng(round(start_s * 1000)).standard_normal(count) * 10 ** (FLOOR_DBFS / 20)
        mixed = noise.astype(np.float32)
        with self._changed:
            for sound in self._sounds:
                first = round((sound.starts_s - start_s) * RATE_HZ)
                low, high = max(0, first), min(count, first + len(sound.samples))
                if tags(sound.tag) and low < high:
                    mixed[low:high] += sound.samples[low - first : high - first]
        return Waveform(np.clip(mixed, -1, 1), RATE_HZ)

    def level_dbfs(self, tags: Callable[[str], bool] = lambda _: True) -> float | None:
        """RMS level of the last 100 ms; None before the clock has reached 100 ms."""
        now_s = self._clock.now_s()
        with contextlib.suppress(DeviceError):
            samples = self.cut(now_s - 0.1, now_s, tags).samples
            return float(10 * np.log10(np.mean(np.square(samples, dtype=np.float64)) + 1e-12))
        return None

    def _run(self) -> None:
        """Runs the calls when they are due, until the air is closed."""
        while True:
            with self._changed:
                while self._is_open and not (self._due_calls and self._due_calls[0].due_s <= self._clock.now_s()):
                    wait_s = None
                    if self._due_calls:
                        wait_s = max(0.0, self._clock.real_s(self._due_calls[0].due_s - self._clock.now_s()))
                    self._changed.wait(wait_s)
                if not self._is_open:
                    return
                call = heapq.heappop(self._due_calls)
            call.action()


LEAD_S = 0.02
"""Time from `play` to the first sample, in seconds."""
MICROPHONE_DELAY_S = 0.05
"""Delay from the start or end of a sound to the microphone's report, in seconds."""
PROOF_EVERY_S = 5.0
"""Interval of the device's proofs of listening, in seconds of sound."""
REPORT_DELAY_S = 0.25


class _Room:
    """An air with its open equipment and its one device."""

    def __init__(self, clock: Clock) -> None:
        self.air = Air(clock)
        self.members: list[InProcess] = []
        self.device: SimpleDevice | None = None

    @property
    def connection(self) -> InProcess:
        """The connection whose options the device uses: the one with a profile, else the first that opened."""
        return next(
            (connection for connection in self.members if connection.surroundings.profile is not None), self.members[0]
        )

    @property
    def microphone(self) -> InProcess:
        """The equipment that reports speech: the last that opened and is not a device's connection, a microphone."""
        return next(
            (connection for connection in reversed(self.members) if connection.surroundings.profile is None),
            self.members[0],
        )


class _PlayingSound(NamedTuple):
    """A sound that plays, and when its first sample and its end are due."""

    play_id: str
    starts_s: float
    ends_s: float


_ROOMS: dict[tuple[str, int], _Room] = {}
_ROOMS_LOCK = threading.Lock()


class InProcess:
    """Serves as loudspeaker, microphone or device connection of one in-process air.

    The session's sound path marks it in the log. It carries samples, not sound: its results describe the harness, not
    a device. StimulusHeard has correlation 1, and times are exact.
    """

    simulated: ClassVar[bool] = True
    Options: ClassVar[type] = InProcessOptions

    def __init__(self, id: str, options: InProcessOptions, surroundings: Surroundings) -> None:
        self.id = id
        self.options = options
        self.surroundings = surroundings
        self._clock = surroundings.clock
        self._sink: Sink | None = None
        self._room: _Room | None = None
        self._playing: _PlayingSound | None = None
        self._lock = threads.rlock()
        self._link_is_lost = False
        self._texts: dict[str, tuple[str, ExpectedFrame | None]] = {}
        self._phrases: dict[str, ScriptedPhrase] = {}
        self._audio_line_s = 0.0

    @property
    def _key(self) -> tuple[str, int]:
        return self.options.air, id(self._clock)

    def open(self, sink: Sink) -> None:
        """Joins the air of its options; the first equipment in it creates it."""
        self._sink = sink
        with _ROOMS_LOCK:
            room = _ROOMS.get(self._key)
            if room is None:
                room = _ROOMS[self._key] = _Room(self._clock)
            room.members.append(self)
            self._room = room

    def close(self) -> None:
        """Leaves the air, which ends with its last equipment."""
        with _ROOMS_LOCK:
            room, self._room = self._room, None
            if room is None:
                return
            room.members.remove(self)
            others_remain = bool(room.members)
            if not others_remain:
                del _ROOMS[self._key]
        if not others_remain:
            room.air.close()
        self._sink = None
        with self._lock:
            self._playing = None

    def _open_room(self) -> _Room:
        if self._room is None or self._link_is_lost:
            raise DeviceError(f"{self.id} is not open", remedy="Open the device, or wait until its connection is back")
        return self._room

    def _emit(self, observation: Observation) -> None:
        sink = self._sink
        if sink is not None:
            sink(observation)

    # A loudspeaker

    def play(self, play_id: str, waveform: Waveform) -> None:
        """Returns at once. Raises DeviceError while a sound is playing."""
        room = self._open_room()
        if self.options.injection and self.surroundings.profile is not None:
            self._inject(room, play_id, waveform)
            return
        with self._lock:
            if self._playing is not None:
                raise DeviceError(
                    f"{self.id} is already playing {self._playing.play_id}", remedy="Stop the current sound first"
                )
            starts_s = self._clock.now_s() + LEAD_S
            sound = room.air.add_sound(self.id, starts_s, waveform)
            self._playing = _PlayingSound(play_id, starts_s, sound.ends_s)
        tag = f"{self.id}:{play_id}"
        room.air.schedule(starts_s, tag, lambda: self._emit(StimulusStarted(self.id, Stamp(starts_s), play_id)))
        room.air.schedule(sound.ends_s, tag, lambda: self._end(play_id, sound.ends_s, complete=True))
        microphone = room.microphone
        stimulus_heard = StimulusHeard(microphone.id, Stamp(starts_s), play_id, 1.0)
        room.air.schedule(sound.ends_s + MICROPHONE_DELAY_S, tag, lambda: microphone._emit(stimulus_heard))
        sha = waveform_sha256(waveform)
        for connection in room.members:
            if connection.surroundings.profile is not None and not connection.options.injection:
                connection._schedule_wakes(
                    room,
                    tag=tag,
                    play_id=play_id,
                    waveform_sha=sha,
                    starts_s=starts_s,
                    duration_s=waveform.duration_s,
                    speed=1.0,
                    wired=False,
                )
        self._address_device(room, play_id, starts_s, sha, sound.samples)

    def stop(self) -> None:
        """Ends the sound that is playing; StimulusEnded(complete=False) follows."""
        with self._lock:
            playing = self._playing
        room = self._room
        if playing is None or room is None:
            return
        play_id, starts_s, ends_s = playing
        now_s = self._clock.now_s()
        room.air.cancel(f"{self.id}:{play_id}")
        room.air.cancel(f"device:{play_id}:hears")
        room.air.hush(self.id, now_s)
        sent_s = (min(max(now_s, starts_s), ends_s) - starts_s) * self.options.injection_speed
        self._end(play_id, now_s, complete=False, sent_s=sent_s)

    def _end(self, play_id: str, at_s: float, *, complete: bool, sent_s: float | None = None) -> None:
        with self._lock:
            if self._playing is None or self._playing.play_id != play_id:
                return
            self._playing = None
            if self.options.injection:
                self._audio_line_s += sent_s or 0.0
        audio_line_s = self._audio_line_s if self.options.injection else None
        if self.options.injection:
            self._emit(ListeningProved(self.id, Stamp(at_s), Proof.ACKNOWLEDGED, audio_line_s))
        self._emit(StimulusEnded(self.id, Stamp(at_s), play_id, complete, audio_line_s))

    # A connection that injects sound

    def _inject(self, room: _Room, play_id: str, waveform: Waveform) -> None:
        """Sends a sound to the device past the air, at `injection_speed`."""
        speed, duration_s = self.options.injection_speed, waveform.duration_s
        with self._lock:
            if self._playing is not None:
                raise DeviceError(
                    f"{self.id} is already playing {self._playing.play_id}", remedy="Stop the current sound first"
                )
            starts_s = self._clock.now_s()
            ends_s = starts_s + duration_s / speed
            self._playing = _PlayingSound(play_id, starts_s, ends_s)
            audio_line_s = self._audio_line_s
        tag = f"{self.id}:{play_id}"
        stimulus_started = StimulusStarted(self.id, Stamp(starts_s), play_id, audio_line_s)
        room.air.schedule(starts_s, tag, lambda: self._emit(stimulus_started))
        self._schedule_wakes(
            room,
            tag=tag,
            play_id=play_id,
            waveform_sha=waveform_sha256(waveform),
            starts_s=starts_s,
            duration_s=duration_s,
            speed=speed,
            wired=True,
        )
        room.air.schedule(ends_s, tag, lambda: self._end(play_id, ends_s, complete=True, sent_s=duration_s))

    def _schedule_wakes(
        self,
        room: _Room,
        tag: str,
        play_id: str,
        waveform_sha: str,
        starts_s: float,
        duration_s: float,
        speed: float,
        *,
        wired: bool,
    ) -> None:
        """Schedules the wake events of this connection's device in a sound, and proofs of listening every 5 s."""
        phrase = next(
            (connection._phrases[waveform_sha] for connection in room.members if waveform_sha in connection._phrases),
            None,
        )
        options = self.options
        if phrase is None and not options.false_accepts_per_hour and not wired:
            return
        seed = f"{self.surroundings.seed}:{self.id}:{play_id}"
        first_s = self._audio_line_s

        def schedule_report(
            position_s: float, create: Callable[[Stamp, float | None], Observation], kind: ObservationKind | None
        ) -> None:
            stamp = Stamp(starts_s + position_s / speed, 0.0 if wired else 0.01)
            observation = create(stamp, first_s + position_s if wired else None)
            room.air.schedule(
                stamp.at_s, tag, lambda: self._emit(observation) if kind is None else self._report(kind, observation)
            )

        def listening_proof(stamp: Stamp, audio_s: float | None) -> Observation:
            return ListeningProved(self.id, stamp, Proof.ACKNOWLEDGED if wired else Proof.HEARTBEAT, audio_s)

        if phrase is not None and phrase.sounds_s is not None and not wired:
            at_s, ends_s = phrase.sounds_s
            while at_s < ends_s:
                at_s = room.air.add_sound("device", starts_s + at_s, synthetic_speech(0)).ends_s - starts_s
        for step in range(int(duration_s / PROOF_EVERY_S) + 1):
            schedule_report(step * PROOF_EVERY_S, listening_proof, None)
        if not wired:
            schedule_report(duration_s, listening_proof, None)
        for wake in draw_wakes(
            duration_s,
            phrase,
            miss_share=options.wake_miss_share,
            false_per_hour=options.false_accepts_per_hour,
            seed=seed,
        ):

            def wake_event(stamp: Stamp, audio_s: float | None, wake: WakeAt = wake) -> Observation:
                return Wake(self.id, stamp, wake.phrase, wake.score, audio_s)

            schedule_report(min(wake.at_s, duration_s), wake_event, ObservationKind.WAKE)
            if phrase is not None and phrase.command and wake.at_s == phrase.wakes_s:

                def transcript(stamp: Stamp, audio_s: float | None, text: str = phrase.command) -> Observation:
                    return Transcript(self.id, stamp, text, True, audio_s)

                schedule_report(
                    min(phrase.command_ends_s + REPORT_DELAY_S, duration_s), transcript, ObservationKind.TRANSCRIPT
                )

    # A microphone

    def own_sound(self, play_id: str, waveform: Waveform, starts_at_s: float) -> None:
        """Nothing to do: the air knows the source of each sound."""

    def cut(self, start_s: float, end_s: float) -> tuple[Waveform, float]:
        return self._open_room().air.cut(start_s, end_s), start_s

    def level_dbfs(self) -> float | None:
        room = self._room
        return None if room is None else room.air.level_dbfs(lambda tag: tag == self.id or self is room.microphone)

    def noise_floor_dbfs(self) -> float | None:
        return None if self._room is None else FLOOR_DBFS

    # The device

    def script(self, waveform_sha: str, text: str, frame: ExpectedFrame | None = None) -> None:
        """Gives the device the words of a waveform (`waveform_sha256`) and their meaning, as a shortcut.

        A sound without a script wakes nothing. Call it at any time, on any equipment of the air.
        """
        self._texts[waveform_sha] = text, frame

    def expect(self, waveform_sha: str, phrase: ScriptedPhrase) -> None:
        """Gives the device the position of the wake phrase in a waveform, as a shortcut."""
        self._phrases[waveform_sha] = phrase

    def prompt(self, trial: Trial, stimulus: RenderedStimulus) -> None:
        """Calls `script` or `expect`, depending on the trial."""
        sha = waveform_sha256(stimulus.waveform)
        if trial.listening is None:
            self.script(sha, trial.reference, trial.expects)
        elif trial.listening.phrase:
            last = stimulus.span_s(Role.QUERY) or (0.0, stimulus.waveform.duration_s)
            wake = stimulus.span_s(Role.WAKE_PHRASE)
            phrase, opening = trial.listening.phrase, trial.recipe.opening
            scripted_phrase = (
                ScriptedPhrase(phrase, wake[1], trial.reference, last[1]) if wake else ScriptedPhrase(phrase, last[1])
            )
            other_spans = [span for role in (Role.OPENING, Role.CLOSING) if (span := stimulus.span_s(role))]
            if opening is not None:
                begins_s = (wake or last)[0]
                sounds_s = (begins_s - opening.pause_s, begins_s) if opening.sounds else None
                scripted_phrase = replace(
                    scripted_phrase, also_ends_s=tuple(ends_s for _, ends_s in other_spans), sounds_s=sounds_s
                )
            self.expect(sha, scripted_phrase)

    def _address_device(self, room: _Room, play_id: str, starts_s: float, waveform_sha: str, samples: Samples) -> None:
        """Schedules what the device of the air does about a sound: it wakes, understands and answers."""
        connection, microphone = room.connection, room.microphone
        options = connection.options
        if room.device is None:
            room.device = SimpleDevice(options, connection.surroundings.seed)
        hearing = detect_phrases(samples)
        for member in room.members:
            if waveform_sha in member._texts:
                room.device.script(waveform_sha, *member._texts[waveform_sha])
        if hearing is None:
            return
        tag = f"device:{play_id}:hears"
        wake_end_s = starts_s + (hearing.query_end_s if hearing.wake_end_s is None else hearing.wake_end_s)
        query_end_s = starts_s + hearing.query_end_s
        device = room.device

        def wake_up() -> None:
            reaction = device.react(waveform_sha)
            if reaction is None or reaction.transcript is None:
                return
            called_s = wake_end_s + WAKES_AFTER_S
            connection._report(ObservationKind.WAKE, Wake(connection.id, Stamp(called_s, 0.01)))
            remembers = device.remembers(called_s)
            room.air.schedule(query_end_s, tag, lambda: understand(reaction, remembers))

        def understand(reaction: DeviceReaction, remembers: bool) -> None:
            report_s = query_end_s + REPORT_DELAY_S
            transcript = Transcript(connection.id, Stamp(report_s, 0.01), reaction.transcript or "")
            room.air.schedule(report_s, "device", lambda: connection._report(ObservationKind.TRANSCRIPT, transcript))
            if reaction.frame is not None:
                intent = reported_intent(connection.id, Stamp(report_s, 0.01), reaction.frame)
                room.air.schedule(report_s, "device", lambda: connection._report(ObservationKind.INTENT, intent))
            if reaction.answers_after_s is not None:
                room.air.schedule(
                    query_end_s + reaction.answers_after_s, "device", lambda: give_answer(reaction, remembers)
                )

        def give_answer(reaction: DeviceReaction, remembers: bool) -> None:
            begins_s = query_end_s + (reaction.answers_after_s or 0.0)
            ends_s = room.air.add_sound("device", begins_s, synthetic_speech(reaction.phrase)).ends_s
            device.note_answer_end(ends_s)
            response = ResponseText(connection.id, Stamp(begins_s, 0.01), device.answer(reaction, remembers))
            connection._report(ObservationKind.RESPONSE, response)
            speech_started = SpeechStarted(microphone.id, Stamp(begins_s, 0.01), -26.0)
            room.air.schedule(begins_s + MICROPHONE_DELAY_S, "device", lambda: microphone._emit(speech_started))
            speech_ended = SpeechEnded(microphone.id, Stamp(ends_s, 0.01))
            room.air.schedule(ends_s + MICROPHONE_DELAY_S, "device", lambda: microphone._emit(speech_ended))

        room.air.schedule(min(wake_end_s + WAKES_AFTER_S, query_end_s), tag, wake_up)

    def _report(self, kind: ObservationKind, observation: Observation) -> None:
        """Reports an observation of the device, if its profile lists this kind and its link is not lost."""
        profile = self.surroundings.profile
        kinds = {ObservationKind.WAKE, ObservationKind.TRANSCRIPT} if profile is None else profile.reports
        if self.options.reports and kind in kinds and not self._link_is_lost:
            self._emit(observation)

    # Faults, to test how a session handles them

    def lose_link(self, reason: str) -> None:
        """Simulates a lost device: the sound ends, LinkLost follows, and `play` and `cut` refuse."""
        self.stop()
        self._link_is_lost = True
        self._emit(LinkLost(self.id, Stamp(self._clock.now_s()), reason))

    def mend_link(self) -> None:
        """Ends `lose_link`."""
        self._link_is_lost = False
        self._emit(LinkBack(self.id, Stamp(self._clock.now_s())))

    def restart(self) -> None:
        """Simulates a reset: the sound is cut off, and the device reports that it has started."""
        self.stop()
        self._emit(Status(self.id, Stamp(self._clock.now_s()), DeviceState.STARTED))
