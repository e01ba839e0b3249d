"""The assistant as a device: one loop for ears, dialogue and mouth, driven by sound, results and time.

    IDLE ──wake──► LISTENING ──query──► THINKING ──reply──► SPEAKING ──► IDLE
      ▲                │                    │                  │
      └─ nothing said ─┴── nothing to say ──┘                  └─ open reply ──► DIALOGUE_OPEN ──query──► THINKING

Sound, recognised words and the ends of its own sounds are calls in one queue, so that only the loop changes the state.
A wake event stops its speech and starts a new query. Queries are numbered, so that a late result of an earlier one is
ignored. A timer that is due rings from IDLE: SPEAKING and DIALOGUE_OPEN alternate until a word ends it, or all rings
are over.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime

import numpy as np
import numpy.typing as npt
import soxr

from harness.base.ports import Recogniser
from harness.lab.assistant.dialogue import Dialogue, Reply
from harness.lab.assistant.ears import Ears, NoRequest, PhraseDetection, SpokenRequest
from harness.lab.assistant.faults import FaultEffect, Faults
from harness.lab.assistant.frame import Moment, frame, misunderstood, wrong_reply
from harness.lab.assistant.mouth import PAUSE_S, AssistantMouth, concatenate
from harness.lab.assistant.report import Reporter
from harness.lab.assistant.settings import AssistantSettings, FaultAction, ReportKind
from harness.lab.assistant.skills import PLAY_MUSIC
from harness.model.errors import HarnessError
from harness.model.frozen import frozen
from harness.model.observation import DeviceState
from harness.model.stimulus import Waveform
from harness.sound.playback import Playback

_log = logging.getLogger("assistant")
_TICK_S = 0.05
"""Interval at which the loop looks for what is due."""
_KEEP_TALKING_TIMES = 12
"""How often an assistant that keeps talking repeats its answer, so that it exceeds `response_max_s` by far."""
_BREATH_S = 0.3
"""Pause between its sentences when it keeps talking, in seconds: shorter than any sensible `end_silence_ms`."""
_RING_PAUSE_S = 2.0
"""Pause between two rings, in seconds, in which it listens for a word that ends them."""
HEARTBEAT_S = 5.0
"""Interval of its reports that it hears, in seconds."""
ODD_ANSWER = "Percent of the purple has been minuted."
"""The answer with the fault ODD_WORDS, whatever it did."""


@frozen
class _Utterance:
    """The assistant's current speech. open: whether it listens afterwards."""

    play_id: str
    open: bool


@frozen
class _PendingReply:
    """A reply that is not spoken yet. due_s: when to speak it, in monotonic seconds."""

    due_s: float
    reply: Reply
    effect: FaultEffect


@frozen
class _Announcement:
    """The announcement of a timer or alarm."""

    text: str
    rings_left: int


class AssistantDevice:
    """The assistant. `run` is its loop. Any thread may call `feed`, `note_microphone` and `end_play`.

    restart: set when a fault requires a restart.
    """

    def __init__(
        self,
        settings: AssistantSettings,
        ears: Ears,
        recogniser: Recogniser,
        mouth: AssistantMouth,
        speaker: Playback,
        reporter: Reporter,
        faults: Faults,
        on_state: Callable[[DeviceState], None],
    ) -> None:
        self._calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.restart = False
        self.wakes = 0
        self._settings = settings
        self._ears = ears
        self._recogniser = recogniser
        self._mouth = mouth
        self._speaker = speaker
        self._reporter = reporter
        self._faults = faults
        self._on_state = on_state
        self._dialogue = Dialogue(settings)
        self._reported_state: dict[str, str] = {}
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="recogniser")
        self._state = DeviceState.STARTED
        self._query_number = 0
        self._play_count = 0
        self._utterance: _Utterance | None = None
        self._ringing: _Announcement | None = None
        self._called_s = 0.0
        self._pending_reply: _PendingReply | None = None
        self._query_ended_s = 0.0
        self._heartbeat_s = -HEARTBEAT_S  # the first one is due at once

    def run(self, stop: threading.Event) -> None:
        """Runs until `stop` is set or a fault requires a restart."""
        self._enter(DeviceState.STARTED)
        self._enter(DeviceState.IDLE)
        while not stop.is_set() and not self.restart:
            with contextlib.suppress(queue.Empty):
                self._calls.get(timeout=_TICK_S)()
            self._handle_due()
            self._report_state()
        self._worker.shutdown(wait=False, cancel_futures=True)

    def feed(self, samples: npt.NDArray[np.int16]) -> None:
        """Takes the microphone's next samples, at 16 kHz, shape (n,)."""
        self._calls.put(lambda: self._process_samples(samples))

    def note_microphone(self, *, back: bool) -> None:
        """Handles that the microphone was lost, or (back) that it has returned."""
        self._calls.put(lambda: self._change_microphone(back))

    def end_play(self, play_id: str) -> None:
        """Handles the end of one of the assistant's own sounds."""
        self._calls.put(lambda: self._on_speech_ended(play_id))

    def _process_samples(self, samples: npt.NDArray[np.int16]) -> None:
        """Handles what the ears find in the samples, and sends a heartbeat if it is due."""
        previous_frames = self._ears.frames
        for event in self._ears.feed(samples):
            match event:
                case PhraseDetection():
                    self._on_call(event)
                case SpokenRequest():
                    self._recognise(event)
                case NoRequest():
                    self._on_no_request()
        if self._ears.frames > previous_frames:
            # Only if sound has just reached the wake engine: not while the assistant speaks or without a microphone.
            now_s = time.monotonic()
            if now_s - self._heartbeat_s >= HEARTBEAT_S:
                self._heartbeat_s = now_s
                self._reporter.publish_heartbeat()

    def _change_microphone(self, back: bool) -> None:
        _log.warning("the microphone is %s", "back" if back else "lost")
        self._ears.unmute()
        self._ringing = None
        self._enter(DeviceState.IDLE)

    def _on_call(self, detection: PhraseDetection) -> None:
        """Stops what it is doing, and listens, unless a fault makes it miss the call."""
        self.wakes += 1
        if self._faults.misses(self.wakes):
            _log.info("wake %d ignored (fault: miss_wake)", self.wakes)
            self._ears.wait_for_call()
            if self._state in (DeviceState.LISTENING, DeviceState.DIALOGUE_OPEN):
                self._on_no_request()  # else it would never leave that state: its ears have stopped listening
            return
        self._called_s = time.monotonic()
        self._query_number += 1
        self._pending_reply = None
        self._ringing = None
        if self._utterance is not None:
            self._utterance = None
            self._speaker.stop()
        score = None if detection.score is None else round(detection.score, 3)
        _log.info("wake %d, score %s", self.wakes, score)
        self._reporter.publish(ReportKind.WAKE, phrase=detection.phrase, score=score, number=self.wakes)
        self._enter(DeviceState.LISTENING)
        if self._settings.earcons:
            self._beep(880.0)

    def _recognise(self, request: SpokenRequest) -> None:
        """Has the request transcribed on the worker's thread; `_answer_query` gets the text."""
        self._query_ended_s = time.monotonic() - request.after_s
        self._query_number += 1
        query = self._query_number
        self._enter(DeviceState.THINKING)
        future = self._worker.submit(self._recogniser.transcribe, request.waveform)

        def pass_on(finished: Future[str]) -> None:
            if finished.cancelled():
                return
            error = finished.exception()
            if error is not None:
                _log.error("the recogniser failed: %s", error)
            text = "" if error is not None else finished.result()
            self._calls.put(lambda: self._answer_query(query, text))

        future.add_done_callback(pass_on)

    def _on_no_request(self) -> None:
        """Goes idle, or rings again, since nobody spoke."""
        if self._ringing is not None:
            self._ring(self._ringing)
            return
        _log.info("nothing was said")
        self._dialogue.close()
        self._enter(DeviceState.IDLE)
        if self._settings.earcons:
            self._beep(440.0, 330.0)

    def _answer_query(self, query: int, text: str) -> None:
        """Reports and answers the recogniser's text for the query with that number. The answer is spoken when due."""
        if query != self._query_number:  # the wake phrase has started another query since
            return
        text = without_call(text, self._settings.wake_phrase)
        if self._ringing is not None:
            self._answer_while_ringing(text, self._ringing)
            return
        effect = self._faults.degrade(self.wakes, text)
        _log.info("heard %r%s", text, "" if effect.text == text else f", replaced by {effect.text!r} (fault: mishear)")
        if effect.text:
            self._reporter.publish(ReportKind.TRANSCRIPT, text=effect.text, final=True)
        if FaultAction.RESTART in effect.actions:
            self.restart = True
            return
        reply = self._make_reply(effect)
        self._reporter.publish(ReportKind.INTENT, **reply.frame.as_sent())
        if FaultAction.ODD_WORDS in effect.actions and reply.text:
            reply = replace(reply, text=ODD_ANSWER)
        if not reply.text or FaultAction.SILENT in effect.actions:
            self._dialogue.close()
            self._enter(DeviceState.IDLE)
            return
        self._pending_reply = _PendingReply(time.monotonic() + effect.late_s, reply, effect)

    def _make_reply(self, effect: FaultEffect) -> Reply:
        """Carries out the query with its faults, and returns the reply."""
        saved_state = self._dialogue.user_state
        reply = self._dialogue.reply_to(effect.text, replace(self._moment(), called_s=self._called_s))
        heard_frame = misunderstood(reply.frame, effect.slips)
        if FaultAction.NO_EFFECT in effect.actions or heard_frame != reply.frame:
            self._dialogue.restore_state(saved_state)
        if heard_frame == reply.frame:
            return reply
        _log.info("understood %s (fault)", heard_frame.as_sent())
        self._dialogue.close()
        return Reply(wrong_reply(heard_frame), frame=heard_frame)

    def _answer_while_ringing(self, text: str, ringing: _Announcement) -> None:
        """Stops ringing if the words ask for it; otherwise ignores them, and rings again."""
        _log.info("heard %r while ringing", text)
        if not self._dialogue.ends_ringing(text):
            self._ring(ringing)
            return
        self._reporter.publish(ReportKind.TRANSCRIPT, text=text, final=True)
        self._reporter.publish(ReportKind.INTENT, **frame("cancel").as_sent())
        self._ringing = None
        self._enter(DeviceState.IDLE)

    def _handle_due(self) -> None:
        pending = self._pending_reply
        if pending is not None and time.monotonic() >= pending.due_s:
            self._pending_reply = None
            self._speak_reply(pending.reply, pending.effect)
        if self._state is DeviceState.IDLE and (announcements := self._dialogue.pop_due(self._moment())):
            self._ring(_Announcement(" ".join(announcements), self._settings.rings))

    def _report_state(self) -> None:
        """Reports changed state. At the start it reports everything, since a broker may keep an earlier run's state."""
        for name, value in self._dialogue.state.items():
            if self._reported_state.get(name) != value:
                self._reported_state[name] = value
                self._reporter.publish(ReportKind.STATE, name=name, value=value)

    def _ring(self, ringing: _Announcement) -> None:
        """Rings once, and says the announcement."""
        self._ringing = _Announcement(ringing.text, ringing.rings_left - 1)
        _log.info("rings: %s", ringing.text)
        self._reporter.publish(ReportKind.RESPONSE, text=ringing.text, alert=True)
        self._speak(ringing.text, self._mouth.alert(), opens=False, gap_s=0.2)

    def _speak_reply(self, reply: Reply, effect: FaultEffect) -> None:
        self._reporter.publish(ReportKind.RESPONSE, text=reply.text)
        if FaultAction.KEEP_TALKING in effect.actions:
            self._speak(reply.text, opens=reply.open, times=_KEEP_TALKING_TIMES)
        elif FaultAction.TWO_PART_ANSWER in effect.actions:
            self._speak(reply.text, self._mouth.synthesise("Let me see."), opens=reply.open, gap_s=PAUSE_S)
        else:
            music = self._mouth.music() if PLAY_MUSIC in reply.frame.intents else None
            self._speak(reply.text, opens=reply.open, last=music)
        _log.info("%.2f s after the end of the query: %s", time.monotonic() - self._query_ended_s, reply.text)

    def _speak(
        self,
        text: str,
        first: Waveform | None = None,
        *,
        opens: bool,
        gap_s: float = 0.0,
        times: int = 1,
        last: Waveform | None = None,
    ) -> None:
        """Starts to say a text. If that fails, it goes idle.

        - first, last: sounds before and after it. gap_s: silence after the first.
        - opens: whether it listens afterwards. times: how often it says the text.
        """
        try:
            sound = self._mouth.synthesise(text)
            if times > 1:
                sound = concatenate(*[sound] * times, gap_s=_BREATH_S)
            if last is not None:
                sound = concatenate(_resample_to_48k(sound), last, gap_s=_BREATH_S)
            if first is not None:
                sound = concatenate(_resample_to_48k(first), _resample_to_48k(sound), gap_s=gap_s)
            self._ears.mute()
            self._enter(DeviceState.SPEAKING, self._status_detail)
            self._play_count += 1
            self._utterance = _Utterance(f"reply-{self._play_count}", opens)
            self._speaker.play(self._utterance.play_id, sound)
        except HarnessError as error:
            _log.error("cannot speak: %s", error)
            self._utterance = self._ringing = None
            self._ears.unmute()
            self._enter(DeviceState.IDLE)

    @property
    def _status_detail(self) -> str:
        return "rings" if self._ringing is not None else ""

    def _beep(self, *tones_hz: float) -> None:
        try:
            self._speaker.play("signal", self._mouth.signal(*tones_hz))
        except HarnessError as error:
            _log.error("cannot beep: %s", error)

    def _on_speech_ended(self, play_id: str) -> None:
        """Handles the end of its speech: it listens for an answer or between rings, or goes idle."""
        utterance = self._utterance
        if utterance is None or play_id != utterance.play_id:
            return
        self._utterance = None
        self._ears.unmute()
        if self._ringing is not None and self._ringing.rings_left > 0:
            self._ears.listen_for_answer(_RING_PAUSE_S)
            self._enter(DeviceState.DIALOGUE_OPEN, self._status_detail)
            return
        if self._ringing is None:  # a ring is not an answer, and does not renew the memory
            self._dialogue.note_reply_spoken(self._moment())
        self._ringing = None
        if utterance.open:
            self._called_s = time.monotonic()
            self._ears.listen_for_answer()
            self._enter(DeviceState.DIALOGUE_OPEN)
        else:
            self._enter(DeviceState.IDLE)

    def _enter(self, state: DeviceState, detail: str = "") -> None:
        """Changes the state, and reports it."""
        self._state = state
        self._reporter.publish(ReportKind.STATUS, state=str(state), **({"detail": detail} if detail else {}))
        self._on_state(state)

    @staticmethod
    def _moment() -> Moment:
        return Moment(time.monotonic(), datetime.now().astimezone())


def without_call(text: str, wake_phrase: str) -> str:
    """The text without the wake phrase in front of it."""
    phrase = r"\W+".join(re.escape(word) for word in wake_phrase.replace("_", " ").split())
    return re.sub(rf"^(\W*{phrase}\b\W*)+", "", text, flags=re.IGNORECASE)


def _resample_to_48k(waveform: Waveform) -> Waveform:
    if waveform.rate_hz == 48000:
        return waveform
    return Waveform(soxr.resample(waveform.samples, waveform.rate_hz, 48000).astype(np.float32), 48000)
