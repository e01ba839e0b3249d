"""The phases of a query trial and what leads from one to the next."""

from __future__ import annotations

from collections.abc import Sequence

from harness.model.observation import DeviceState
from harness.model.record import AttemptFinished, Question
from harness.model.scenario import Evidence
from harness.model.trial import Outcome, Recognition, Trial
from harness.session.actions import AskOperator, FinishAttempt, FreezeResponse, SayClosing, StimulusTiming, StopStimulus
from harness.session.attempt import Attempt
from harness.session.effect_look import looks_until_s, question
from harness.session.first_response import DETECTION_LAG_S, Response
from harness.session.frame_evidence import frame_question, settled_s
from harness.session.quiet import Quiet
from harness.session.take import Phase, Take
from harness.session.verdict import Verdict, trial_verdict

SOUND_GUARD_S = 30.0
"""A stimulus that has neither ended nor failed so long after it should have is lost (drivers say so much sooner)."""
FREEZE_GUARD_S = 5.0
TRANSCRIBE_LIMIT_S = 5.0
"""The next sound waits at most so long for our transcription of a response."""
SETTLE_S = 3.0
"""Quiet that ends a dialogue after the closing words: a device may have a word to say to them."""
SETTLE_IDLE_S = 0.3
"""… when the device itself says that it is idle."""
THE_DEVICE = "the device"
"""Among what is lost: the device itself, which said that it is gone, or whose last will did."""
DEVICE_BACK_S = 60.0
"""So long the next attempt waits for it. Then it is asked all the same: a last will may come after its new start."""
QUESTION = "Did the device understand the query? (y / n, and what it heard)"


_BUSY = (DeviceState.THINKING, DeviceState.SPEAKING)
UNDER_WAY = (Phase.PLAYING, Phase.LISTENING, Phase.RESPONDING, Phase.FREEZING, Phase.CHECKING)


class TrialSteps(Take):
    """The state of one take of one trial. `TrialMachine` is what others use."""

    def __init__(
        self,
        trial: Trial,
        take: int,
        timing: StimulusTiming,
        *,
        before: Sequence[AttemptFinished] = (),
        attended: bool = False,
        link_wait_s: float = 600.0,
    ) -> None:
        super().__init__(trial, take, timing, before=before, attended=attended, link_wait_s=link_wait_s)
        self._current: Attempt | None = None
        self._previous: Attempt | None = None
        self._lost: set[str] = set()
        self._quiet = Quiet(self._rule.response_max_s)
        self._transcribing_until_s: float | None = None
        self._closing_id = ""
        self._closings = 0
        self._closing_done = False
        self._late_window = False
        self._device_state: DeviceState | None = None
        self._began_idle = False  # what the device said of itself when the attempt under way began

    # Time

    def _enter(self, phase: Phase, reason: str) -> None:
        self._late_window = False
        super()._enter(phase, reason)

    def _standing(self) -> tuple[object, ...]:
        return self._phase, self._last_number, self._closings

    def _until(self) -> float | None:
        """When the present phase ends by itself."""
        attempt = self._current
        match self._phase:
            case Phase.PLAYING if attempt:
                return attempt.begun_s + self._timing.duration_s + SOUND_GUARD_S
            case Phase.LISTENING if attempt:
                return self._listens_until(attempt)
            case Phase.RESPONDING if attempt:
                response = attempt.response(self._now_s)
                return response.closes_s if response else self._now_s
            case Phase.FREEZING:
                return self._since_s + FREEZE_GUARD_S
            case Phase.CHECKING if attempt:
                wait_s = self._rule.evidence_wait_s if self.trial.evidence is Evidence.DEVICE else 0.0
                return self._settled_before(attempt, self._since_s + wait_s)
            case Phase.LOOKING if attempt:
                return looks_until_s(attempt) or self._since_s
            case Phase.ASKING | Phase.ASKING_EFFECT:
                return self._since_s + self._rule.operator_wait_s
            case Phase.CLOSING:
                return self._closing_until()
            case Phase.WAITING:
                return self._waiting_until()
            case Phase.LINK:
                return self._since_s + (DEVICE_BACK_S if self._lost == {THE_DEVICE} else self._link_wait_s)
            case _:
                return None

    def _listens_until(self, attempt: Attempt) -> float:
        """Where no response can be heard, as soon as its own word is there, or at once where only people have one."""
        end = attempt.query_end
        until_s = (end.at_s if end else self._since_s) + self._rule.response_timeout_s + DETECTION_LAG_S
        if self.trial.responds:
            return until_s
        return self._settled_before(attempt, until_s) if self.trial.evidence is Evidence.DEVICE else self._since_s

    def _settled_before(self, attempt: Attempt, until_s: float) -> float:
        found_s = settled_s(attempt, self._since_s)
        return until_s if found_s is None else min(until_s, found_s)

    def _waiting_until(self) -> float:
        until_s = max(self._not_before_s, self._transcribing_until_s or 0.0)
        part = self.trial.memory
        if part is not None and part.primed_by and self._current is None:
            until_s = max(until_s, self._quiet.until(part.wait_s, self._since_s))
        elif self._last_number and (self._late_window or trial_verdict(self._rule, self._rows) is None):
            until_s = max(until_s, self._quiet.until(self._rule.context_wait_s, self._since_s))
        if self._late_window:
            until_s = max(until_s, self._since_s + self._rule.context_wait_s)
        if self._device_state in _BUSY:  # a new query would drop its answer, which may still come
            until_s = max(until_s, self._since_s + self._rule.response_max_s)
        return until_s

    def _closing_until(self) -> float:
        close = self.trial.close_dialogue
        assert close is not None
        if close.say is None:
            return max(self._quiet.until(close.wait_s, self._since_s), self._since_s + close.wait_s)
        if not self._closing_id:
            return self._transcribing_until_s or self._now_s
        if not self._closing_done:
            return self._since_s + SOUND_GUARD_S
        settle_s = SETTLE_IDLE_S if self._device_state is DeviceState.IDLE else SETTLE_S
        return self._quiet.until(settle_s, self._since_s)

    # Steps

    def _step(self) -> None:
        until_s = self._until()
        due = until_s is not None and self._now_s >= until_s
        attempt = self._current
        match self._phase:
            case Phase.PLAYING if attempt:
                if attempt.ended is not None:
                    self._enter(Phase.LISTENING, "")
                elif due:
                    self._interrupt("sound_lost: the stimulus did not end")
            case Phase.LISTENING if attempt:
                if attempt.response(self._now_s) is not None:
                    self._enter(Phase.RESPONDING, "")
                elif due and not self.trial.responds and self.trial.evidence is Evidence.OPERATOR:
                    self._ask(attempt)
                elif due:
                    self._conclude(attempt)
            case Phase.RESPONDING if attempt:
                self._respond(attempt, attempt.response(self._now_s))
            case Phase.FREEZING if due:
                self._interrupt("clip_lost: it was not stored in time")
            case Phase.CHECKING if attempt and due:
                if self._known(attempt):
                    self._conclude(attempt)
                else:
                    self._ask(attempt)
            case Phase.ASKING if attempt and (due or attempt.answer or self._known(attempt)):
                self._conclude(attempt)
            case Phase.LOOKING if attempt and (due or self.trial.connection in self._lost or not self._answered()):
                self._ask_of_effect(attempt)
            case Phase.ASKING_EFFECT if due or not attempt or attempt.effect_answered or not question(attempt):
                self._after_looking()
            case Phase.CLOSING:
                self._close(due)
            case Phase.WAITING if due and not self._held:
                self._go_on()
            case Phase.LINK:
                if due and self._lost == {THE_DEVICE}:
                    self._lost.clear()
                if not self._lost:
                    self._enter(Phase.WAITING, "")
                elif due:
                    lost = ", ".join(sorted(self._lost))
                    self._finish(Verdict(Outcome.INTERRUPTED, None, f"link_lost: {lost} did not come back"))
            case _:
                pass

    def _known(self, attempt: Attempt) -> bool:
        return attempt.standing() is not Recognition.UNKNOWN

    def _respond(self, attempt: Attempt, response: Response | None) -> None:
        if response is None:  # the end of the query moved when the stimulus was found on the recording
            self._enter(Phase.LISTENING, "")
        elif response.complete and (why := attempt.doubtful(response)):
            self._interrupt(f"stream_gap: {why}")
        elif response.complete:
            attempt.frozen = response
            self._enter(Phase.FREEZING, "")
            self._actions.append(FreezeResponse(attempt.number, response.starts, response.ends, response.truncated))

    def _ask(self, attempt: Attempt) -> None:
        if not self.attended:
            self._conclude(attempt)
            return
        attempt.asked = True
        asked = frame_question(self.trial) or QUESTION
        self._enter(Phase.ASKING, asked)
        self._actions.append(AskOperator(attempt.number, asked))

    def _conclude(self, attempt: Attempt) -> None:
        self._write(attempt)
        if self._answered() and (looks_until_s(attempt) is not None or question(attempt)):
            assert self.trial.effect is not None
            self._enter(Phase.LOOKING, f"for what it does: {self.trial.effect.wanted}")
        else:
            self._after_looking()

    def _answered(self) -> bool:
        """Whether the attempt that goes on has its verdict, and that is an answer to judge."""
        row = self._rows.get(self._current.number) if self._current is not None else None
        return row is not None and row.outcome.answered

    def _ask_of_effect(self, attempt: Attempt) -> None:
        """Before a dialogue is closed: closing words might undo what is to be seen."""
        asked = question(attempt) if self._answered() and self.attended else ""
        if not asked:
            self._after_looking()
            return
        self._enter(Phase.ASKING_EFFECT, asked)
        self._actions.append(AskOperator(attempt.number, asked, Question.EFFECT))

    def _after_looking(self) -> None:
        self._enter(Phase.CLOSING if self._may_be_open() else Phase.WAITING, self._why_waiting())
        self._closing_id, self._closing_done = "", False
        if self._phase is Phase.WAITING:
            self._after_closing()

    def _may_be_open(self) -> bool:
        """Whether a dialogue is to be closed: the trial says how, and the device has not said otherwise.

        It is not when it is idle; nor while it still thinks about its first answer, which closing words would forbid.
        """
        if self.trial.close_dialogue is None or self._device_state is DeviceState.IDLE:
            return False
        answered = self._current is not None and self._current.frozen is not None
        return answered or self._device_state is not DeviceState.THINKING

    def _write(self, attempt: Attempt) -> None:
        """Writes the attempt's row, unless the same one stands already."""
        row = attempt.verdict()
        if self._rows.get(attempt.number) != row:
            self._rows[attempt.number] = row
            self._actions.append(FinishAttempt(row))

    def _why_waiting(self) -> str:
        if trial_verdict(self._rule, self._rows) is None:
            return "so that the device forgets"
        return "for a late answer" if self._may_answer_late() else ""

    def _close(self, due: bool) -> None:
        close = self.trial.close_dialogue
        assert close is not None
        if not due:
            return
        if not self._closing_id and not self._may_be_open():  # it has become idle by itself meanwhile
            self._after_closing()
            return
        if close.say is not None and not self._closing_id and not self._lost:
            self._closings += 1
            self._closing_id = f"{self.trial.id}.t{self.take}.c{self._last_number}.{self._closings}"
            self._enter(Phase.CLOSING, f"says {close.say!r}")
            self._actions.append(SayClosing(close.say, self._closing_id))
            return
        if close.say is not None and self._closing_id and not self._closing_done:
            self._actions.append(StopStimulus())
        self._after_closing()

    def _after_closing(self) -> None:
        """The trial ends here if it is decided; after silence a late answer is waited for first."""
        verdict = trial_verdict(self._rule, self._rows)
        late_answer_possible = self._may_answer_late()
        if verdict is not None and not late_answer_possible and self._transcribing_until_s is None:
            self._finish(verdict)
        else:
            self._enter(Phase.WAITING, self._why_waiting())
            self._late_window = (
                verdict is not None and late_answer_possible
            )  # so that a late answer is not taken for the next trial's

    def _may_answer_late(self) -> bool:
        """Whether a first response may still come; without a voice, its word on what it understood."""
        attempt = self._current
        return attempt is not None and attempt.is_open and (self.trial.responds or not self._known(attempt))

    def _go_on(self) -> None:
        verdict = trial_verdict(self._rule, self._rows)
        if verdict is not None:
            self._finish(verdict)
        elif self._lost:
            self._enter(Phase.LINK, f"waits for {', '.join(sorted(self._lost))}")
        else:
            self._start()

    def _start(self) -> None:
        self._last_number += 1
        quiet_since_s = self._quiet.since(self._now_s)
        self._previous = self._current
        self._began_idle = self._device_state is DeviceState.IDLE
        play_id = self._play_id(self._last_number)
        self._current = Attempt(self.trial, self.take, self._last_number, play_id, self._timing, self._now_s)
        # It talks over the query; if it goes on, that is its response.
        if self._quiet.span is not None and self.trial.responds:
            self._current.spans.append(self._quiet.span)
        self._enter(Phase.PLAYING, "")
        self._ask_for_sound(quiet_since_s)

    def _interrupt(self, cause: str) -> None:
        """Ends the attempt under way; one that has its verdict already (a late answer was coming) keeps it."""
        attempt = self._current
        assert attempt is not None
        if self._phase is Phase.PLAYING:
            self._actions.append(StopStimulus())
        attempt.interruption = cause
        if attempt.number not in self._rows:
            self._write(attempt)
        self._enter(Phase.LINK if self._lost else Phase.WAITING, cause)
