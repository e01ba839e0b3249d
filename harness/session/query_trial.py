"""The query trial: a machine without I/O and without a clock, which is fed observations and times.

READY → PLAYING → LISTENING → RESPONDING → FREEZING → CHECKING (→ ASKING) (→ LOOKING → ASKING_EFFECT) → CLOSING →
WAITING → PLAYING … → DONE; a lost link leads to LINK and from there to WAITING. docs/trials.md draws it and defines
every time.
"""

from __future__ import annotations

from collections.abc import Iterable

from harness.model.observation import (
    DeviceState,
    Earcon,
    Intent,
    LinkBack,
    LinkLost,
    LogLine,
    Observation,
    OperatorAnswer,
    Overrun,
    ResponseText,
    SpeechEnded,
    SpeechStarted,
    StateTold,
    Status,
    StimulusEnded,
    StimulusHeard,
    StimulusStarted,
    Transcript,
    Unread,
    Wake,
)
from harness.model.record import AttemptFinished
from harness.model.trial import Outcome, Recognition
from harness.session.actions import Action, Credit, FinishAttempt, StopStimulus
from harness.session.attempt import Attempt
from harness.session.first_response import Span
from harness.session.take import Phase
from harness.session.trial_steps import THE_DEVICE, TRANSCRIBE_LIMIT_S, UNDER_WAY, TrialSteps
from harness.session.verdict import Verdict, trial_verdict


class TrialMachine(TrialSteps):
    """One take of one trial, from its first sound to its verdict.

    Every method takes the time at which it is called (session seconds, never going back) and returns what to do, in
    order. before: rows of attempts that an earlier run of the session made of this take. attended: somebody is there to
    answer; may be set at any time. link_wait_s: how long a lost link is waited for before the trial is given up.
    """

    # What is asked of the machine

    def begin(
        self,
        now_s: float,
        *,
        not_before_s: float | None = None,
        lost: Iterable[str] = (),
        last_sound_s: float | None = None,
    ) -> list[Action]:
        """Begins the take; no sound before `not_before_s`. lost: sources whose link is down at this moment."""
        self._tell(now_s)
        self._not_before_s = now_s if not_before_s is None else not_before_s
        self._lost = set(lost) & self._needed()
        self._quiet.last_sound_s = last_sound_s
        remembers = self.trial.memory is not None and self.trial.memory.primed_by
        self._enter(Phase.WAITING, "before the follow-up" if remembers else "")
        return self._advance()

    def feed(self, observation: Observation, now_s: float) -> list[Action]:
        """Takes in what a driver saw; the first action credits it to an attempt."""
        self._tell(now_s)
        if self._phase is Phase.DONE:
            return [Credit(observation, None)]
        owner = self._owner(observation)
        self._actions.append(Credit(observation, owner.number if owner else None))
        self._take_in(observation, owner)
        return self._advance()

    def response_frozen(self, now_s: float, *, transcribing: bool) -> list[Action]:
        """The response is stored. transcribing: sound waits for `transcribed`, though not for long."""
        self._tell(now_s)
        if transcribing:
            self._transcribing_until_s = self._now_s + TRANSCRIBE_LIMIT_S
        if self._phase is Phase.FREEZING:
            self._enter(Phase.CHECKING, "")
        return self._advance()

    def response_lost(self, now_s: float, why: str) -> list[Action]:
        """The response could not be stored, so the attempt has nothing that a rater could judge."""
        self._tell(now_s)
        if self._phase is Phase.FREEZING and self._current is not None:
            self._current.frozen = None
            self._interrupt(f"clip_lost: {why}")
        return self._advance()

    def transcribed(self, now_s: float) -> list[Action]:
        """Our own transcription is done."""
        self._tell(now_s)
        self._transcribing_until_s = None
        return self._advance()

    def interrupt(self, now_s: float, cause: str) -> list[Action]:
        """Something outside ended the attempt that is under way (a full disk, a driver that refuses)."""
        self._tell(now_s)
        if self._phase in UNDER_WAY:
            self._interrupt(cause)
        return self._advance()

    def play_refused(self, now_s: float, play_id: str, why: str) -> list[Action]:
        """A sound that the machine asked for cannot be played."""
        self._tell(now_s)
        if self._closing_id and play_id == self._closing_id:
            self._closing_done = True
        elif self._phase is Phase.PLAYING:
            self._interrupt(f"sound_refused: {why}")
        return self._advance()

    def stop(self, now_s: float, cause: str) -> list[Action]:
        """The engine ends and will be resumed: an attempt under way is interrupted, the trial stays open."""
        self._tell(now_s)
        if self._phase in UNDER_WAY or self._phase is Phase.ASKING:
            self._interrupt(cause)
        elif self._phase is Phase.CLOSING:
            self._actions.append(StopStimulus())
        self._enter(Phase.DONE, "stopped")
        return self._taken()

    @property
    def last_sound_s(self) -> float | None:
        """When the device or we were heard last, as far as this machine knows."""
        return self._quiet.last_sound_s

    def takes_answer(self, attempt: int) -> bool:
        """True when the operator was asked about that attempt and the trial is not over."""
        current = self._current
        return current is not None and current.number == attempt and current.asked and not self.finished

    def effect_answered(self, now_s: float, attempt: int) -> list[Action]:
        """Somebody has said what became of that attempt's effect; the row is theirs who were told so."""
        self._tell(now_s)
        if self._current is not None and self._current.number == attempt:
            self._current.effect_answered = True
        return self._advance()

    def _end(self, now_s: float, outcome: Outcome, reason: str) -> list[Action]:
        self._tell(now_s)
        if self._phase is Phase.DONE:
            return []
        if self._phase in (Phase.PLAYING, Phase.CLOSING):
            self._actions.append(StopStimulus())
        verdict = trial_verdict(self._rule, self._rows)
        if verdict is None:
            cause = f"operator: {reason}" if reason else "operator"
            if self._current is not None and self._current.number not in self._rows:
                ended = self._current.verdict()
                row = AttemptFinished(
                    self.trial.id, self.take, ended.attempt, outcome, Recognition.UNKNOWN, ended.evidence, cause=cause
                )
                self._rows[row.attempt] = row
                self._actions.append(FinishAttempt(row))
            verdict = Verdict(outcome, None, cause)
        self._finish(verdict)
        return self._taken()

    # Observations

    def _needed(self) -> set[str]:
        return {self.trial.loudspeaker, self.trial.microphone, self.trial.connection} - {""}

    def _of_device(self, source: str) -> bool:
        return source == (self.trial.connection or self.trial.device)

    def _owner(self, observation: Observation) -> Attempt | None:
        """The attempt that an observation belongs to, by its time."""
        current, previous = self._current, self._previous
        match observation:
            case StimulusStarted(play_id=play_id) | StimulusEnded(play_id=play_id) | StimulusHeard(play_id=play_id):
                return next((each for each in (current, previous) if each and each.play_id == play_id), None)
            case LinkLost() | LinkBack():
                return None
            case Wake() | Transcript() | Intent() | ResponseText() | Status() | StateTold() | LogLine() | Unread() if (
                not self._of_device(observation.source)
            ):
                return None
            case Transcript() | Intent() if current is not None and not current.may_have_heard(observation):
                return previous if previous is not None and not previous.interruption else None
            case _ if current is None or previous is None:
                return current
            case _ if not current.before_answering(observation) and not self._still_at(previous, observation):
                return current
            case SpeechStarted() if previous.awaits(observation.at.at_s) and current.is_open:
                return previous
            case Transcript() | ResponseText() if not previous.interruption and not previous.transcripts:
                return previous
            case Intent() if not previous.interruption and not previous.intents:
                return previous
            case Wake() if observation.at.at_s < (current.origin.at_s if current.origin else self._now_s):
                return previous
            case _:
                return current

    def _still_at(self, previous: Attempt, observation: Observation) -> bool:
        """True while the device, which says when it wakes, woke to the attempt before and has not woken to this one.

        It is not when it was idle before this one began, or has told something of this one.
        """
        current = self._current
        if current is None or current.told_s is not None or current.place_s(observation) is not None:
            return False
        return current.missed_wake and previous.wake is not None and not self._began_idle

    def _take_in(self, observation: Observation, owner: Attempt | None) -> None:
        match observation:
            case StimulusStarted() | StimulusEnded() | StimulusHeard():
                self._take_in_own_sound(observation, owner)
            case SpeechStarted(at=at):
                span = self._quiet.speech_started(at)
                if span is not None and owner is not None and self.trial.responds:
                    self._take_in_speech(span, owner)
            case SpeechEnded(at=at):
                self._quiet.speech_ended(at)
            case Earcon(ends=ends):
                self._quiet.sounded(ends.at_s)
            case Wake(at=at) if owner is not None:
                if owner.wake is None:
                    owner.wake, owner.wake_place_s = at, owner.place_s(observation)
                self._revise(owner)
            case Transcript(final=True, text=text) if owner is not None:
                owner.transcripts.append(text)
                owner.told_s = self._now_s
                self._revise(owner)
            case Intent() if owner is not None:
                owner.intents.append(observation)
                owner.told_s = self._now_s
                self._revise(owner)
            case StateTold() if owner is not None:
                owner.told.append(observation)
            case Overrun(source=source, at=at) if owner is not None and source == self.trial.microphone:
                owner.gaps_s.append(at.at_s)
            case Overrun(source=source, at=at) if owner is not None and source == self.trial.loudspeaker:
                owner.late_sound_s.append(at.at_s)
            case Unread(what=what) if owner is not None:
                owner.unread = owner.unread or what
                self._revise(owner)
            case OperatorAnswer() if owner is not None and owner.asked:
                owner.answer = observation
                self._revise(owner)
            case Status(state=state, source=source) if self._of_device(source):
                self._device_state = state
                if state is DeviceState.GONE:
                    self._lose(THE_DEVICE, "it has said that it is gone")
                else:
                    self._lost.discard(THE_DEVICE)
                if state is DeviceState.STARTED and self._phase in UNDER_WAY:
                    self._interrupt("device_restarted")
            case LinkLost(source=source, what=what) if source in self._needed():
                self._lose(source, what)
            case LinkBack(source=source):
                self._lost.discard(source)
            case _:
                pass

    def _take_in_own_sound(
        self, observation: StimulusStarted | StimulusEnded | StimulusHeard, owner: Attempt | None
    ) -> None:
        closing = bool(self._closing_id) and observation.play_id == self._closing_id
        self._quiet.sounded(observation.at.at_s)
        match observation:
            case StimulusHeard(at=at) if owner is not None:
                owner.heard = at
            case StimulusStarted(at=at, audio_s=audio_s) if owner is not None:
                owner.started, owner.started_audio_s = at, audio_s
            case StimulusStarted(at=at) if closing and self._current is not None:
                self._current.closed_s = at.at_s
            case StimulusEnded() if closing:
                self._closing_done = True
            case StimulusEnded(at=at, complete=complete) if owner is self._current and self._phase is Phase.PLAYING:
                if owner is None:
                    return
                if complete:
                    owner.ended = at
                else:
                    self._interrupt(f"stimulus_cut: {observation.source}: {observation.why or 'it was stopped'}")
            case _:
                pass

    def _take_in_speech(self, span: Span, owner: Attempt) -> None:
        if owner is self._previous and self._phase in (Phase.PLAYING, Phase.LISTENING):
            self._interrupt(f"late_answer: of attempt {owner.number}")
            self._current, self._previous = owner, None
        owner.spans.append(span)
        late = self._phase in (Phase.CLOSING, Phase.WAITING) and owner is self._current
        if late and owner.awaits(span.starts.at_s):
            if self._phase is Phase.CLOSING and self._closing_id:
                self._actions.append(StopStimulus())
            self._enter(Phase.RESPONDING, "a late answer")

    def _revise(self, owner: Attempt) -> None:
        """Evidence that came after an attempt's verdict changes it; the later row stands.

        A frame that makes the attempt under way needless stops it, and its answer is waited for.
        """
        if owner.number not in self._rows or owner.interruption:
            return
        self._write(owner)
        decided = owner is self._previous and trial_verdict(self._rule, self._rows) is not None
        if decided and self.trial.until_understood and self._phase in (Phase.PLAYING, Phase.LISTENING):
            self._interrupt(f"late_word: of attempt {owner.number}")
            self._current, self._previous = owner, None
            self._late_window = not self._lost and self._may_answer_late()

    def _lose(self, source: str, what: str) -> None:
        self._lost.add(source)
        if self._phase is Phase.CLOSING:
            self._closing_done = True
        elif self._phase is Phase.CHECKING and source != self.trial.connection:
            return  # the response is stored, and the evidence comes another way
        elif self._phase in UNDER_WAY and self._phase is not Phase.FREEZING:
            self._interrupt(f"device_gone: {what}" if source == THE_DEVICE else f"link_lost: {source}: {what}")
