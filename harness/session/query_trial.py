"""The query trial: a machine without I/O and without a clock, driven by observations and times.

    READY → PLAYING → LISTENING → RESPONDING → FREEZING → CHECKING (→ ASKING)

    (→ CHECKING_EFFECT → ASKING_EFFECT) → CLOSING → WAITING → PLAYING … → DONE

A lost link leads to LINK_LOST and from there to WAITING. docs/explanation/trials.md defines all phases and times.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Unpack

from harness.model.observation import (
    PRESENCE,
    DeviceState,
    Earcon,
    LinkBack,
    LinkLost,
    Observation,
    SpeechEnded,
    SpeechStarted,
    Status,
    StimulusEnded,
    StimulusHeard,
    StimulusStarted,
)
from harness.model.record import AttemptFinished, OperatorAsked, Question
from harness.model.scenario import Evidence
from harness.model.trial import Outcome, Recognition, Trial
from harness.session.attempt import Attempt, conclusion_due_s, effect_question, frame_question, state_deadline_s
from harness.session.attribution import is_from_device, owner_of
from harness.session.device_speech import DETECTION_LAG_S, Activity, Quiet, Response, Span
from harness.session.take import (
    SOUND_GUARD_S,
    UNDER_WAY,
    Action,
    BenchState,
    FreezeResponse,
    Phase,
    SayClosing,
    StimulusTiming,
    StopStimulus,
    Take,
    TakeOptions,
    Verdict,
)

FREEZE_GUARD_S = 5.0
"""Longest wait for the clip of a response. Normally it is stored before the action that requests it returns."""
TRANSCRIBE_LIMIT_S = 5.0
"""How long the next sound waits, at most, for the harness's transcription of a response."""
QUIET_AFTER_CLOSING_S = 3.0
"""Quiet after the closing words that ends a dialogue, because a device may answer them."""
QUIET_IF_IDLE_S = 0.3
"""The same, if the device reports that it is idle."""
THE_DEVICE = "the device"
"""Stands for the device itself among the lost sources: the device, or its last will, reported that it is gone."""
DEVICE_BACK_S = 60.0
"""How long the next attempt waits for the device. Then it starts anyway: a last will may arrive after a restart."""
QUESTION = "Did the device understand the query? (y / n, and what it heard)"
"""The question to the operator if the words decide."""
_BUSY = (DeviceState.THINKING, DeviceState.SPEAKING)


class TrialMachine(Take):
    """One take of one trial, from its first sound to its verdict.

    Methods take the time of the call (session seconds, never going back), and return what to do, in order.
    """

    def __init__(self, trial: Trial, take_number: int, timing: StimulusTiming, **options: Unpack[TakeOptions]) -> None:
        super().__init__(trial, take_number, timing, **options)
        self._current: Attempt | None = None
        self._previous: Attempt | None = None
        self._lost_sources: set[str] = set()
        self._quiet = Quiet(self._rule.response_max_s)
        self._transcribing_until_s: float | None = None
        self._closing_id = ""
        """Play id of the present closing words; "" before they are said."""
        self._closing_count = 0
        self._closing_done = False
        self._owes_closing = False
        """Whether a dialogue is still to be closed, since the device was busy when it was due."""
        self._in_late_window = False
        """Whether the machine waits for a late answer, although the trial is decided."""
        self._device = Activity()
        self._was_idle_at_start = False

    # Requests to the machine

    def begin(
        self,
        now_s: float,
        *,
        not_before_s: float | None = None,
        bench_state: BenchState | None = None,
        last_sound_s: float | None = None,
        query_cut_s: float | None = None,
    ) -> list[Action]:
        """Begins the take; no sound before `not_before_s`. bench_state: the state of devices and links at this moment.

        last_sound_s: when the bench last made a sound. query_cut_s: the attribute of the previous take.
        """
        self._set_time(now_s)
        self.query_cut_s = query_cut_s
        self._earliest_sound_s = now_s if not_before_s is None else not_before_s
        if bench_state is not None:
            if not self.trial.is_follow_up:  # the answer to its prime is over, whatever the device reported about it
                self._device = bench_state.activity_of(self.trial.sources, _BUSY)
            self._lost_sources = bench_state.down_links & self._needed_sources()
            if bench_state.gone_devices & set(self.trial.sources):
                self._lost_sources.add(THE_DEVICE)
        self._quiet.last_sound_s = last_sound_s
        self._enter(Phase.WAITING, "before the follow-up" if self.trial.is_follow_up else "")
        return self._advance()

    def response_frozen(self, now_s: float, *, transcribing: bool) -> list[Action]:
        """The response is stored. transcribing: the next sound waits for `transcribed`, up to TRANSCRIBE_LIMIT_S."""
        self._set_time(now_s)
        if transcribing:
            self._transcribing_until_s = self._now_s + TRANSCRIBE_LIMIT_S
        if self._phase is Phase.FREEZING:
            self._enter(Phase.CHECKING, "")
        return self._advance()

    def response_lost(self, now_s: float, why: str) -> list[Action]:
        """Interrupts the attempt whose response could not be stored, since raters cannot judge it."""
        self._set_time(now_s)
        if self._phase is Phase.FREEZING and self._current is not None:
            self._current.frozen = None
            self._interrupt(f"clip_lost: {why}")
        return self._advance()

    def transcribed(self, now_s: float) -> list[Action]:
        self._transcribing_until_s = None
        return self.tick(now_s)

    def play_refused(self, now_s: float, play_id: str, why: str, sounding: Iterable[str] = ()) -> list[Action]:
        """Handles a requested sound that cannot be played. sounding: players that have begun, which are stopped."""
        self._set_time(now_s)
        if self._closing_id and play_id == self._closing_id:
            self._closing_done = True
        elif self._phase is Phase.PLAYING:
            self._interrupt(f"sound_refused: {why}")
        return self._advance()

    def set_spoken_timing(self, timing: StimulusTiming) -> None:
        super().set_spoken_timing(timing)
        if self._current is not None:
            self._current.timing = timing

    @property
    def last_sound_s(self) -> float | None:
        """The last known sound of the device or the harness."""
        return self._quiet.last_sound_s

    def accepts_answer(self, attempt: int) -> bool:
        current = self._current
        return current is not None and current.number == attempt and current.asked and not self.finished

    def effect_answered(self, now_s: float, attempt: int) -> list[Action]:
        if self._current is not None and self._current.number == attempt:
            self._current.effect_answered = True
        return self.tick(now_s)

    def _end(self, now_s: float, outcome: Outcome, cause: str) -> list[Action]:
        self._set_time(now_s)
        if self._phase is Phase.DONE:
            return []
        self._cut_query()
        if self._may_answer_late():
            self.query_cut_s = self._now_s
        if self._phase is Phase.CLOSING:
            self._actions.append(StopStimulus())
        verdict = self._verdict()
        if verdict is None:
            if self._current is not None and self._current.number not in self._rows:
                ended = self._current.verdict()
                row = AttemptFinished(
                    self.trial.id,
                    self.take_number,
                    ended.attempt,
                    outcome=outcome,
                    recognition=Recognition.UNKNOWN,
                    evidence=ended.evidence,
                    cause=cause,
                    disturbed=ended.disturbed,
                )
                self._write_row(row)
            verdict = Verdict(outcome, None, cause)
        self._finish(verdict)
        return self._drain_actions()

    # Observations

    def _needed_sources(self) -> set[str]:
        return {*self.trial.players, *self.trial.noise_players, self.trial.microphone, *self.trial.sources} - {""}

    def _apply(self, observation: Observation) -> None:
        owner = owner_of(observation, self.trial, self._current, self._previous, began_idle=self._was_idle_at_start)
        self._credit(observation, owner.number if owner else None)
        if is_from_device(self.trial, observation.source) or observation.source == self.trial.microphone:
            self._device.observe(observation)
        if owner is not None and owner.add(observation, self._now_s):
            self._revise(owner)
        if isinstance(observation, PRESENCE) and is_from_device(self.trial, observation.source):
            self._lost_sources.discard(THE_DEVICE)
        match observation:
            case StimulusStarted() | StimulusEnded() | StimulusHeard():
                self._apply_own_sound(observation, owner)
            case SpeechStarted(at=at):
                span = self._quiet.start_speech(at)
                if span is not None and owner is not None and self.trial.responds:
                    self._apply_speech(span, owner)
            case SpeechEnded(at=at):
                self._quiet.end_speech(at)
            case Earcon(ends=ends):
                self._quiet.note_sound(ends.at_s)
            case Status(state=state, source=source) if is_from_device(self.trial, source):
                if state is DeviceState.GONE:
                    self._handle_loss(THE_DEVICE, "it reported that it is gone")
                else:
                    self._lost_sources.discard(THE_DEVICE)
                if state is DeviceState.STARTED and self._phase in UNDER_WAY:
                    self._interrupt("device_restarted")
            case LinkLost(source=source, at=at, what=problem):
                if source == self.trial.microphone and self._quiet.span is not None:
                    self._quiet.end_speech(at)  # nobody will hear its end
                if source in self._needed_sources():
                    self._handle_loss(source, problem)
            case LinkBack(source=source):
                self._lost_sources.discard(source)
            case _:
                pass

    def _apply_own_sound(
        self, observation: StimulusStarted | StimulusEnded | StimulusHeard, owner: Attempt | None
    ) -> None:
        closing = bool(self._closing_id) and observation.play_id == self._closing_id
        self._quiet.note_sound(observation.at.at_s)
        match observation:
            case StimulusHeard(at=at) if owner is not None:
                owner.recorded = at
            case StimulusStarted(at=at, audio_s=audio_s) if owner is not None:
                owner.started, owner.started_audio_s = at, audio_s
            case StimulusStarted(at=at) if closing and self._current is not None:
                self._current.closed_s = at.at_s
            case StimulusEnded() if closing:
                self._closing_done = True
            case StimulusEnded(at=at, complete=complete) if owner is self._current and self._phase is Phase.PLAYING:
                if complete and owner is not None:
                    owner.ended = at
                elif owner is not None:
                    self._interrupt(f"stimulus_cut: {observation.source}: {observation.why or 'it was stopped'}")
            case _:
                pass

    def _apply_speech(self, span: Span, owner: Attempt) -> None:
        """Adds speech to its attempt. A late answer to the previous attempt stops the current one."""
        if owner is self._previous and self._phase in (Phase.PLAYING, Phase.LISTENING):
            self._interrupt(f"late_answer: of attempt {owner.number}")
            if self._current is not None:  # a stall or a gap concerns the answer, whichever query it answers
                owner.host.add(self._current.host)
            self._current, self._previous = owner, None
        owner.spans.append(span)
        late = self._phase in (Phase.CLOSING, Phase.WAITING) and owner is self._current
        if late and owner.expects_response_at(span.starts.at_s):
            if self._phase is Phase.CLOSING and self._closing_id:
                self._actions.append(StopStimulus())
            self._enter(Phase.RESPONDING, "a late answer")

    def _revise(self, owner: Attempt) -> None:
        """Changes an attempt's verdict by evidence that came after it; the later row counts. If the device turns out
        to have understood, the current attempt stops, and the machine waits for the answer."""
        if owner.number not in self._rows or owner.interruption:
            return
        self._write_row(owner.verdict())
        decided = owner is self._previous and self._verdict() is not None
        if decided and self.trial.until_understood and self._phase in (Phase.PLAYING, Phase.LISTENING):
            self._interrupt(f"late_word: of attempt {owner.number}")
            self._current, self._previous = owner, None
            # After the interruption, since every change of phase ends the window.
            self._in_late_window = not self._lost_sources and self._may_answer_late()

    def _handle_loss(self, source: str, problem: str) -> None:
        """Records a loss, and interrupts the attempt if it needs what was lost. source: may be THE_DEVICE."""
        self._lost_sources.add(source)
        hears_a_person = bool(self.trial.talker) and source == self.trial.microphone
        if self._phase is Phase.CLOSING and self._closing_id and (hears_a_person or source in self.trial.players):
            self._closing_done = True  # the end of the words may never be reported now
            self._actions.append(StopStimulus())
        elif self._phase is Phase.CHECKING and source not in {THE_DEVICE, *self.trial.sources}:
            return  # the response is stored, and the evidence arrives separately
        elif self._phase in UNDER_WAY and self._phase is not Phase.FREEZING:  # there, the whole response was heard
            self._interrupt(f"device_gone: {problem}" if source == THE_DEVICE else f"link_lost: {source}: {problem}")

    # Time

    def _enter(self, phase: Phase, reason: str) -> None:
        self._in_late_window = False
        super()._enter(phase, reason)

    def _fingerprint(self) -> tuple[object, ...]:
        return self._phase, self._last_number, self._closing_count  # closing words are said within one phase

    def _phase_end_s(self) -> float | None:
        attempt = self._current
        match self._phase:
            case Phase.PLAYING if attempt:
                return self._limit_once_spoken(attempt.begun_s + self._timing.duration_s + SOUND_GUARD_S)
            case Phase.LISTENING if attempt:
                return self._listens_until_s(attempt)
            case Phase.RESPONDING if attempt:
                response = attempt.response(self._now_s)
                return response.closes_s if response else self._now_s
            case Phase.FREEZING:
                return self._since_s + FREEZE_GUARD_S
            case Phase.CHECKING if attempt:
                wait_s = self._rule.evidence_wait_s if self.trial.evidence is Evidence.DEVICE else 0.0
                return conclusion_due_s(attempt, self._since_s, self._since_s + wait_s)
            case Phase.CHECKING_EFFECT if attempt:
                return state_deadline_s(attempt) or self._since_s
            case Phase.ASKING | Phase.ASKING_EFFECT:
                return self._since_s + self._rule.operator_wait_s
            case Phase.CLOSING:
                return self._closing_until_s()
            case Phase.WAITING:
                return self._waiting_until_s()
            case Phase.LINK_LOST:
                return self._since_s + (DEVICE_BACK_S if self._lost_sources == {THE_DEVICE} else self._link_wait_s)
            case _:
                return None

    def _listens_until_s(self, attempt: Attempt) -> float:
        """Latest moment of a response. Without a voice: until a report comes, or not at all if only people answer."""
        end = attempt.query_end
        until_s = (end.at_s if end else self._since_s) + self._rule.response_timeout_s + DETECTION_LAG_S
        if self.trial.responds:
            return until_s
        by_reports = self.trial.evidence is Evidence.DEVICE
        return conclusion_due_s(attempt, self._since_s, until_s) if by_reports else self._since_s

    def _waiting_until_s(self) -> float:
        """When the next attempt may begin, or the trial ends, if nothing more is heard."""
        until_s = max(self._earliest_sound_s, self._transcribing_until_s or 0.0)
        part = self.trial.memory
        if part is not None and part.primed_by and self._current is None:  # the wait that this probe is about
            until_s = max(until_s, self._quiet.until_s(part.wait_s, self._since_s))
        elif self._last_number and (self._in_late_window or self._verdict() is None):
            until_s = max(until_s, self._quiet.until_s(self._rule.context_wait_s, self._since_s))
        if self._in_late_window:
            until_s = max(until_s, self._since_s + self._rule.context_wait_s)
        if self._talks_on():
            until_s = max(until_s, self._since_s + self._rule.response_max_s)
        if self.query_cut_s is not None:
            wait_s = self._rule.context_wait_s
            until_s = max(until_s, self.query_cut_s + wait_s, self._quiet.until_s(wait_s, self._since_s))
        return max(until_s, self._busy_until_s())

    def _busy_until_s(self) -> float:
        """Until when the device counts as busy: an earlier query would cut off its answer, which may still come."""
        if self._device.state not in _BUSY:
            return 0.0
        return self._device.until_s(self._rule.context_wait_s, self._since_s + self._rule.response_max_s)

    def _talks_on(self) -> bool:
        """Whether the answer was longer than `response_max_s` and still goes on: the device would not hear a query."""
        frozen = self._current.frozen if self._current is not None else None
        return frozen is not None and frozen.truncated and self._quiet.span is not None

    def _display_reason(self) -> str:
        if self._phase is Phase.WAITING:
            busy_until_s = self._busy_until_s()
            if self._now_s < busy_until_s and self._waiting_until_s() == busy_until_s:  # nothing else lasts longer
                return self._device.in_words("the device")
        return self._reason

    def _closing_until_s(self) -> float:
        close = self.trial.close_dialogue
        assert close is not None
        if close.say is None:
            return max(self._quiet.until_s(close.wait_s, self._since_s), self._since_s + close.wait_s)
        if not self._closing_id:  # at once, but no sound while a response is being transcribed
            return self._transcribing_until_s or self._now_s
        if not self._closing_done:
            return self._since_s + SOUND_GUARD_S + (self._rule.speak_within_s or 0.0)  # a person may take longer
        quiet_s = QUIET_IF_IDLE_S if self._device.state is DeviceState.IDLE else QUIET_AFTER_CLOSING_S
        return self._quiet.until_s(quiet_s, self._since_s)

    # Steps

    def _step(self) -> None:
        until_s = self._phase_end_s()
        due = until_s is not None and self._now_s >= until_s
        attempt = self._current
        match self._phase:
            case Phase.PLAYING if attempt:
                if attempt.ended is not None:
                    self._enter(Phase.LISTENING, "")
                elif due:
                    self._interrupt("sound_lost: the stimulus did not finish")
            case Phase.LISTENING if attempt:
                if attempt.response(self._now_s) is not None:
                    self._enter(Phase.RESPONDING, "")
                elif due and not self.trial.responds and self.trial.evidence is Evidence.OPERATOR:
                    self._ask_operator(attempt)
                elif due:
                    self._conclude(attempt)
            case Phase.RESPONDING if attempt:
                self._respond(attempt, attempt.response(self._now_s))
            case Phase.FREEZING if due:
                self._interrupt("clip_lost: it was not stored in time")
            case Phase.CHECKING if attempt and due:
                if attempt.has_evidence:
                    self._conclude(attempt)
                else:
                    self._ask_operator(attempt)
            case Phase.ASKING if attempt and (due or attempt.answer or attempt.has_evidence):
                self._conclude(attempt)
            # A late report can turn the verdict: then there is no answer whose effect could be judged.
            case Phase.CHECKING_EFFECT if attempt and (
                due or self._lost_sources & set(self.trial.sources) or not self._answered()
            ):
                self._ask_about_effect(attempt)
            case Phase.ASKING_EFFECT if due or not attempt or attempt.effect_answered or not effect_question(attempt):
                self._finish_checking()
            case Phase.CLOSING if due:
                self._close()
            case Phase.WAITING if due and not self._paused:
                self._end_wait()
            case Phase.LINK_LOST:
                self._await_link(due)
            case _:
                pass

    def _await_link(self, due: bool) -> None:
        """Ends the wait for what was lost: once all of it is back, or by ending the trial when it is due."""
        if due and self._lost_sources == {THE_DEVICE}:
            self._lost_sources.clear()
        if not self._lost_sources:
            if self.query_cut_s is not None:
                self.query_cut_s = self._now_s  # its answer could not be heard meanwhile
            self._enter(Phase.WAITING, "")
        elif due:
            lost = ", ".join(sorted(self._lost_sources))
            self._finish(Verdict(Outcome.INTERRUPTED, None, f"link_lost: {lost} did not come back"))

    def _respond(self, attempt: Attempt, response: Response | None) -> None:
        """Has the response stored once it is complete. A doubtful one interrupts the attempt."""
        if response is None:  # the end of the query moved when the stimulus was found on the recording
            self._enter(Phase.LISTENING, "")
        elif response.complete and (why := attempt.doubt_about(response)):
            self._rows.pop(attempt.number, None)  # after a late answer, its verdict as a silent attempt is void
            self._interrupt(f"stream_gap: {why}")
        elif response.complete:
            attempt.frozen = response
            self._enter(Phase.FREEZING, "")
            self._actions.append(FreezeResponse(attempt.number, response.starts, response.ends, response.truncated))

    def _ask_operator(self, attempt: Attempt) -> None:
        """Asks about recognition. Without an operator, the attempt is concluded with the evidence so far."""
        if not self.attended:
            self._conclude(attempt)
            return
        attempt.asked = True
        question_text = frame_question(self.trial) or QUESTION
        self._enter(Phase.ASKING, question_text)
        self._actions.append(OperatorAsked(self.trial.id, self.take_number, attempt.number, question_text))

    def _conclude(self, attempt: Attempt) -> None:
        """Writes the verdict on the attempt, then checks the effect, if there is one to check."""
        self._write_row(attempt.verdict())
        if self._answered() and (state_deadline_s(attempt) is not None or effect_question(attempt)):
            assert self.trial.effect is not None
            self._enter(Phase.CHECKING_EFFECT, f"the effect: {self.trial.effect.wanted}")
        else:
            self._finish_checking()

    def _answered(self) -> bool:
        """Whether the current attempt has its verdict, with an answer to judge."""
        row = self._rows.get(self._current.number) if self._current is not None else None
        return row is not None and row.outcome.answered

    def _ask_about_effect(self, attempt: Attempt) -> None:
        """Asks about the effect before the dialogue is closed, because closing words might undo it."""
        question_text = effect_question(attempt) if self._answered() and self.attended else ""
        if not question_text:
            self._finish_checking()
            return
        self._enter(Phase.ASKING_EFFECT, question_text)
        row = OperatorAsked(self.trial.id, self.take_number, attempt.number, question_text, Question.EFFECT)
        self._actions.append(row)

    def _finish_checking(self) -> None:
        """Goes on to close the dialogue, or, if it is not open, to the end of the attempt."""
        is_open = self._dialogue_may_be_open()
        self._owes_closing = not is_open and self.trial.close_dialogue is not None and self._device.state in _BUSY
        self._enter(Phase.CLOSING if is_open else Phase.WAITING, self._wait_reason())
        self._closing_id, self._closing_done = "", False
        if self._phase is Phase.WAITING:
            self._finish_closing()

    def _dialogue_may_be_open(self) -> bool:
        """Whether a dialogue is to be closed: the trial says how, and the device has not reported that it is idle."""
        if self.trial.close_dialogue is None or self._device.state is DeviceState.IDLE:
            return False
        # Not while the first answer may still come or is not over: closing words would cut it off.
        answered = self._current is not None and self._current.frozen is not None
        return answered or self._device.state not in _BUSY

    def _wait_reason(self) -> str:
        if self._talks_on():
            return "until the device has stopped speaking"
        if self._verdict() is None:
            return "until the device has forgotten the dialogue"
        return "for a late answer" if self._may_answer_late() else ""

    def _close(self) -> None:
        """Says the closing words when it is due, or ends their phase."""
        close = self.trial.close_dialogue
        assert close is not None
        if not self._closing_id and not self._dialogue_may_be_open():  # it has become idle in the meantime
            self._finish_closing()
            return
        if close.say is not None and not self._closing_id and not self._lost_sources:
            self._closing_count += 1
            self._closing_id = f"{self.trial.id}.t{self.take_number}.c{self._last_number}.{self._closing_count}"
            self._enter(Phase.CLOSING, f"says {close.say!r}")
            self._actions.append(SayClosing(close.say, self._closing_id))
            return
        if close.say is not None and self._closing_id and not self._closing_done:
            self._actions.append(StopStimulus())
        self._finish_closing()

    def _finish_closing(self) -> None:
        """Ends the trial if it is decided; after silence it waits for a late answer first."""
        verdict = self._verdict()
        late_answer_possible = self._may_answer_late()
        nothing_awaited = not late_answer_possible and self.query_cut_s is None and not self._talks_on()
        if verdict is not None and nothing_awaited and self._transcribing_until_s is None:
            self._finish(verdict)
        else:
            self._enter(Phase.WAITING, self._wait_reason())
            # Keeps a late answer apart from the next trial.
            self._in_late_window = verdict is not None and late_answer_possible

    def _may_answer_late(self) -> bool:
        """Whether a first response may still come; from a device without a voice, a report of what it understood."""
        attempt = self._current
        return attempt is not None and attempt.is_open and (self.trial.responds or not attempt.has_evidence)

    def _end_wait(self) -> None:
        """Ends the wait: closes a dialogue that is still open, ends the trial, or begins the next attempt."""
        self.query_cut_s = None
        if self._owes_closing and not self._lost_sources and self._dialogue_may_be_open():
            self._owes_closing = False
            self._enter(Phase.CLOSING, self._wait_reason())
            return
        verdict = self._verdict()
        if verdict is not None:
            self._finish(verdict)
        elif self._lost_sources:
            self._enter(Phase.LINK_LOST, f"waiting for {', '.join(sorted(self._lost_sources))}")
        else:
            self._start()

    def _start(self) -> None:
        if self._current is None and self._device.state in _BUSY:
            self._device = Activity()  # it does not report the end of what it did in the trial before
        self._next_attempt()
        self._previous = self._current
        self._was_idle_at_start = self._device.state is DeviceState.IDLE
        play_id = self._play_id(self._last_number)
        self._current = Attempt(self.trial, self.take_number, self._last_number, play_id, self._timing, self._now_s)
        # It talks over the query; if it goes on, that is its response.
        if self._quiet.span is not None and self.trial.responds:
            self._current.spans.append(self._quiet.span)
        self._enter(Phase.PLAYING, "")
        self._start_attempt(self._quiet.since_s(self._now_s))

    def _cut_query(self) -> None:
        """Ends the current query before its answer has ended."""
        if self._phase is Phase.PLAYING:
            self._actions.append(StopStimulus())
            self._quiet.note_sound(self._now_s)  # until now; the report of its end may come after what is decided next
        if self._phase in (Phase.PLAYING, Phase.LISTENING, Phase.RESPONDING):
            self.query_cut_s = self._now_s

    def _interrupt(self, cause: str) -> None:
        """Ends the current attempt. A verdict that it already has, while a late answer was awaited, stays."""
        attempt = self._current
        assert attempt is not None
        self._cut_query()
        attempt.interruption = cause
        if attempt.number not in self._rows:
            self._write_row(attempt.verdict())
        self._enter(Phase.LINK_LOST if self._lost_sources else Phase.WAITING, cause)
