"""Timing cases of an understand trial, each one in simulated time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from harness.model.bench import ObservationKind
from harness.model.effect import EffectCheck, StateWanted
from harness.model.feed import StateWord
from harness.model.observation import (
    DeviceState,
    Intent,
    Observation,
    OperatorAnswer,
    SpeechStarted,
    StateTold,
    Status,
    StimulusEnded,
    StimulusStarted,
    Wake,
)
from harness.model.record import (
    AttemptFinished,
    AttemptStarted,
    OperatorAsked,
    Question,
    TrialFinished,
    UnderstandingResult,
)
from harness.model.scenario import CloseDialogue, Evidence, RepeatUntil, RepromptRule
from harness.model.time import Stamp
from harness.model.trial import EvidenceSource, Outcome, Recognition
from harness.model.understanding import ExpectedFrame, Slot
from harness.session.attempt import FURTHER_REPORTS_S, Attempt
from harness.session.query_trial import TrialMachine
from harness.session.take import Action, FreezeResponse, Phase, SayClosing, cause_code
from tests.known import known
from tests.unit.session.material import TIMING, trial
from tests.unit.session.rehearsal import Later, Rehearsal, loses, says, speech, wake
from tests.unit.session.test_query_trial import outcomes

EXPECTED = ExpectedFrame(("greet", "set_timer"), (Slot("duration", "ten minutes"),))
REPORTS = (ObservationKind.WAKE, ObservationKind.INTENT)
RULE = RepromptRule()


def tells(name: str, *slots: tuple[str, str], at_s: float = 2.4) -> Later:
    return at_s, Intent("dut_link", Stamp(at_s, 0.01), name, slots)


TEN = ("duration", "10 minutes")
RIGHT, WRONG = tells("greet#set_timer", TEN), tells("greet#set_timer", ("duration", "two minutes"))
ANSWER = speech(3.0, 4.5)
TALK: Later = (2.6, SpeechStarted("mic", Stamp(2.5), -30.0))


def idles(at_s: float) -> Later:
    return at_s, Status("dut_link", Stamp(at_s), DeviceState.IDLE)


def rehearse(
    *after: list[Later],
    voice: bool = True,
    attended: bool = False,
    before: tuple[AttemptFinished, ...] = (),
    changes: dict[str, Any] | None = None,
    **more: Any,
) -> Rehearsal:
    plain = trial(expects=EXPECTED, reports=REPORTS, responds=voice, microphone="mic" if voice else "")
    machine = TrialMachine(
        replace(plain, **(changes or {})), 1, TIMING, earlier_attempts=before, attended=attended, link_wait_s=60.0
    )
    rehearsal = Rehearsal(machine, *after, **more)
    rehearsal.run()
    return rehearsal


def frame(rehearsal: Rehearsal, attempt: int) -> UnderstandingResult:
    return known(rehearsal.standing()[attempt].understood)


VOICE: list[tuple[str, list[list[Later]], list[tuple[int, str]], str]] = [
    ("at once", [[wake(), RIGHT, *ANSWER]], [(1, "responded")], "responded"),
    ("after the answer", [[*ANSWER, tells("greet#set_timer", TEN, at_s=6.0)]], [(1, "responded")], "responded"),
    ("wrong slot, then right", [[WRONG, *ANSWER], [RIGHT, *ANSWER]], [(1, "misheard"), (2, "responded")], "responded"),
    ("nothing understood", [[tells(""), *ANSWER], [RIGHT, *ANSWER]], [(1, "misheard"), (2, "responded")], "responded"),
    ("understood, and silent", [[wake(), RIGHT]], [(1, "understood")], "understood"),
    ("understood, and late", [[wake(), RIGHT, *speech(11.0, 12.0)]], [(1, "late")], "late"),
    ("answered, and told nothing", [[wake(), *ANSWER]], [(1, "inconclusive")], "inconclusive"),
    ("no wake", [[], [wake(), RIGHT, *ANSWER]], [(1, "no_wake"), (2, "responded")], "responded"),
    ("silent", [[wake()], [wake(), RIGHT, *ANSWER]], [(1, "no_response"), (2, "responded")], "responded"),
    ("another's", [[(2.4, replace(RIGHT[1], source="other")), *ANSWER]], [(1, "inconclusive")], "inconclusive"),
]
MUTE: list[tuple[str, list[list[Later]], list[tuple[int, str]], str]] = [
    ("at once", [[wake(), RIGHT]], [(1, "understood")], "understood"),
    ("before the query ended", [[wake(), tells("greet#set_timer", TEN, at_s=1.6)]], [(1, "understood")], "understood"),
    (
        "one after another",
        [[tells("greet", at_s=2.1), tells("set_timer", TEN, at_s=3.4)]],
        [(1, "understood")],
        "understood",
    ),
    ("near the limit", [[tells("greet#set_timer", TEN, at_s=9.9)]], [(1, "understood")], "understood"),
    ("one too many", [[RIGHT, tells("stop", at_s=2.6)], [RIGHT]], [(1, "misheard"), (2, "understood")], "understood"),
    ("nothing, thrice", [[tells("")]] * 3, [(n, "misheard") for n in (1, 2, 3)], "misheard"),
    ("told nothing", [[wake()], [wake(), RIGHT]], [(1, "no_response"), (2, "understood")], "understood"),
    ("no wake", [[]] * 3, [(n, "no_wake") for n in (1, 2, 3)], "no_wake"),
    ("somebody talks", [[wake(), TALK, tells("greet#set_timer", TEN, at_s=4.0)]], [(1, "understood")], "understood"),
    ("link lost", [loses("dut_link", 1.5, 9.0), [RIGHT]], [(1, "interrupted"), (2, "understood")], "understood"),
]


@pytest.mark.parametrize(("after", "attempts", "verdict"), [row[1:] for row in VOICE], ids=[row[0] for row in VOICE])
def test_each_course_with_a_speaking_device_has_its_outcome(
    after: list[list[Later]], attempts: list[tuple[int, str]], verdict: str
) -> None:
    rehearsal = rehearse(*after)
    assert outcomes(rehearsal) == attempts
    assert rehearsal.verdict.outcome.value == verdict


@pytest.mark.parametrize(("after", "attempts", "verdict"), [row[1:] for row in MUTE], ids=[row[0] for row in MUTE])
def test_each_course_with_a_silent_device_has_its_outcome(
    after: list[list[Later]], attempts: list[tuple[int, str]], verdict: str
) -> None:
    rehearsal = rehearse(*after, voice=False)
    assert outcomes(rehearsal) == attempts
    assert rehearsal.verdict.outcome.value == verdict


def test_a_board_without_a_voice_is_waited_for_no_longer_than_its_word_takes() -> None:
    rehearsal = rehearse([wake(), RIGHT], voice=False)
    ended_s, _ = rehearsal.actions[-1]
    assert ended_s - rehearsal.starts[1] == pytest.approx(2.4 + FURTHER_REPORTS_S)
    early = rehearse([wake(), tells("greet#set_timer", TEN, at_s=1.5)], voice=False)
    assert early.actions[-1][0] - early.starts[1] == pytest.approx(TIMING.query_end_s + FURTHER_REPORTS_S)


def test_a_wrong_frame_is_given_time_to_become_a_right_one() -> None:
    first = rehearse([tells("greet", at_s=2.1)], [RIGHT], voice=False)
    at_s = next(action_s for action_s, action in first.actions if getattr(action, "outcome", None))
    assert at_s - first.starts[1] == pytest.approx(2.1 + RULE.evidence_wait_s)
    # … also after its verdict, while the device is to forget
    late = rehearse([tells("greet", at_s=2.1), tells("set_timer", TEN, at_s=6.0)], voice=False)
    assert [row.outcome for row in late.rows()] == [Outcome.MISHEARD, Outcome.UNDERSTOOD]
    assert (late.verdict.outcome, late.verdict.attempts) == (Outcome.UNDERSTOOD, 1)
    assert frame(late, 1).intents == ("greet", "set_timer")


def test_intent_before_the_next_query_belongs_to_the_previous_attempt() -> None:
    # Nothing came after the first attempt; its word comes while the lead-in of the second one plays.
    begins_s = TIMING.query_end_s + RULE.response_timeout_s + 0.3
    rehearsal = rehearse([wake(), tells("greet#set_timer", TEN, at_s=begins_s + 0.6)], [], voice=False)
    assert outcomes(rehearsal) == [(1, "understood"), (2, "interrupted")]
    assert rehearsal.standing()[2].cause == "late_word: of attempt 1"
    assert frame(rehearsal, 1).right
    assert rehearsal.standing()[1].outcome is Outcome.UNDERSTOOD
    assert (rehearsal.verdict.outcome, rehearsal.verdict.deciding_attempt) == (Outcome.UNDERSTOOD, 1)


def test_intent_from_an_earlier_trial_belongs_to_no_attempt() -> None:
    stale: Later = (0.1, Intent("dut_link", Stamp(-3.0, 0.01), "greet#set_timer", (TEN,)))
    rehearsal = rehearse([stale, wake(), WRONG], voice=False, changes={"reprompt": RepromptRule(max_attempts=1)})
    assert frame(rehearsal, 1).right is False


def test_understood_frame_is_stored_in_the_row() -> None:
    row = rehearse([wake(), says("hello ten minutes", 2.3), WRONG, *ANSWER], [RIGHT, *ANSWER]).standing()[1]
    slots = (Slot("duration", "two minutes"),)
    assert row.understood == UnderstandingResult(("greet", "set_timer"), slots, True, False, EvidenceSource.DEVICE)
    assert row.cause == "slots_differ"
    assert (row.recognition, row.heard) == (Recognition.NO, "hello ten minutes"), (
        "words are kept beside, and decide nothing"
    )
    other = rehearse([tells("stop"), *ANSWER], [RIGHT, *ANSWER]).standing()
    assert other[1].cause == "intents_differ: stop instead of greet#set_timer"
    hostile = rehearse([tells("\x1b[2J" + "x" * 100_000), *ANSWER], [RIGHT, *ANSWER]).standing()[1].cause
    assert "\x1b" not in hostile
    assert len(hostile) < 500
    assert (other[2].recognition, other[2].evidence) == (Recognition.NOT_ASSESSED, EvidenceSource.NONE)
    assert rehearse([tells(""), *ANSWER], [RIGHT, *ANSWER]).standing()[1].cause == "nothing_understood"


def test_transcripts_do_not_decide_an_understand_trial() -> None:
    good, bad = says("what time is it"), says("what dime is it")
    assert outcomes(rehearse([good, WRONG, *ANSWER], [bad, RIGHT, *ANSWER])) == [(1, "misheard"), (2, "responded")]


def test_until_recognised_the_words_decide_and_the_frame_is_kept() -> None:
    rule = {"reprompt": RepromptRule(until=RepeatUntil.RECOGNISED), "reports": (*REPORTS, ObservationKind.TRANSCRIPT)}
    good, bad = says("what time is it"), says("what dime is it")
    rehearsal = rehearse([bad, RIGHT, *ANSWER], [good, WRONG, *ANSWER], changes=rule)
    assert outcomes(rehearsal) == [(1, "misheard"), (2, "responded")]
    assert [frame(rehearsal, n).right for n in (1, 2)] == [True, False]
    mute = rehearse([good, tells("greet#set_timer", ("duration", "two"), at_s=3.1)], voice=False, changes=rule)
    assert outcomes(mute) == [(1, "understood")]
    assert cause_code(mute.verdict.cause) == "words_only"
    assert frame(mute, 1).right is False, "the frame that came after the words is waited for"


def yes_or_no(says: bool | None) -> Any:
    def answer(attempt: int, now_s: float) -> list[tuple[float, Observation]]:
        return [(now_s + 2.0, OperatorAnswer("operator", Stamp(now_s + 2.0), says))]

    return answer


@pytest.mark.parametrize(
    ("says", "outcome", "right"), [(True, "responded", True), (False, "misheard", False), (None, "inconclusive", None)]
)
def test_without_evidence_the_operator_is_asked_about_the_frame(says: Any, outcome: str, right: bool | None) -> None:
    single = {"reprompt": RepromptRule(max_attempts=1)}
    rehearsal = rehearse([wake(), *ANSWER], attended=True, operator=yes_or_no(says), changes=single)
    assert outcomes(rehearsal) == [(1, outcome)]
    ((_, question),) = rehearsal.of(OperatorAsked)
    assert isinstance(question, OperatorAsked)
    assert question.question == "Did the device understand greet#set_timer (duration: ten minutes)? (y / n)"
    assert frame(rehearsal, 1).right is right
    source = EvidenceSource.NONE if says is None else EvidenceSource.OPERATOR
    assert (frame(rehearsal, 1).source, frame(rehearsal, 1).intents) == (source, None)


def test_operator_is_asked_at_once_about_a_silent_board() -> None:
    changes = {"evidence": Evidence.OPERATOR, "reports": ()}
    rehearsal = rehearse([], voice=False, attended=True, operator=yes_or_no(True), changes=changes)
    assert outcomes(rehearsal) == [(1, "understood")]
    ((at_s, _),) = rehearsal.of(OperatorAsked)
    assert at_s - rehearsal.starts[1] < TIMING.duration_s + 0.5
    nobody = rehearse([], voice=False, changes=changes)
    assert [(row.outcome, row.cause) for row in nobody.rows()] == [(Outcome.INCONCLUSIVE, "nobody_to_ask")]


def test_a_word_that_comes_while_the_operator_is_asked_counts() -> None:
    late = tells("greet#set_timer", TEN, at_s=9.0)
    rehearsal = rehearse([wake(), *ANSWER, late], attended=True, operator=lambda *_: [])
    assert outcomes(rehearsal) == [(1, "responded")]
    assert frame(rehearsal, 1).source is EvidenceSource.DEVICE


def test_a_resumed_trial_goes_on_after_what_was_understood_before() -> None:
    before = AttemptFinished("t1.r1", 1, 1, Outcome.MISHEARD, Recognition.NOT_ASSESSED, EvidenceSource.NONE)
    rehearsal = rehearse([], [RIGHT], voice=False, before=(before,))
    assert [row.attempt for row in rehearsal.rows()] == [2]
    assert [action.attempt for _, action in rehearsal.of(AttemptStarted) if isinstance(action, AttemptStarted)] == [2]
    assert (rehearsal.verdict.outcome, rehearsal.verdict.attempts) == (Outcome.UNDERSTOOD, 2)


def test_an_open_dialogue_is_closed_before_the_query_is_repeated() -> None:
    close = {"close_dialogue": CloseDialogue(say="never mind")}
    rehearsal = rehearse([WRONG, *ANSWER], [RIGHT, *ANSWER], changes=close)
    assert outcomes(rehearsal) == [(1, "misheard"), (2, "responded")]


def over_the_wire(*observations: Observation, feeding_s: float) -> Attempt:
    """An attempt whose sound of 2.5 s the board took in `feeding_s`; what it told came on the way, place by place."""
    machine = TrialMachine(
        trial(expects=EXPECTED, reports=REPORTS, responds=False, loudspeaker="dut_link", microphone=""), 1, TIMING
    )
    (start,) = [action for action in machine.begin(100.0) if isinstance(action, AttemptStarted)]
    machine.feed(StimulusStarted("dut_link", Stamp(100.0), start.play_id, audio_s=40.0), 100.0)
    for observation in observations:
        machine.feed(observation, observation.at.at_s)
    machine.feed(StimulusEnded("dut_link", Stamp(100.0 + feeding_s), start.play_id, audio_s=42.5), 100.0 + feeding_s)
    return known(machine._current)


@pytest.mark.parametrize(("place_s", "mine"), [(-0.5, False), (0.8, False), (1.2, True), (2.2, True)])
def test_audio_position_assigns_an_intent_to_its_attempt(place_s: float, mine: bool) -> None:
    # 2.5 s of sound in 0.25 s: by the host's clock all of this came before the query begins at 1.0 s.
    woke = Wake("dut_link", Stamp(100.08), audio_s=40.8)
    word = Intent("dut_link", Stamp(100.2), "greet", audio_s=40.0 + place_s)
    attempt = over_the_wire(woke, word, feeding_s=0.25)
    assert bool(attempt.intents) is mine


def test_over_a_wire_times_go_by_how_fast_the_sound_was_given() -> None:
    attempt = over_the_wire(Wake("dut_link", Stamp(100.09), audio_s=40.85), feeding_s=0.25)
    assert known(attempt.query_end).at_s == pytest.approx(100.2)
    delay = known(attempt.verdict().wake_delay)
    assert delay.value_s == pytest.approx(0.1), "of the audio, not of the host's clock"


def test_intent_during_the_next_query_belongs_to_the_unanswered_attempt() -> None:
    begins_s = TIMING.query_end_s + RULE.response_timeout_s + 0.3
    no_wakes = {"reports": (ObservationKind.INTENT,)}
    late = tells("greet#set_timer", TEN, at_s=begins_s + 1.5)
    assert outcomes(rehearse([late], [], voice=False, changes=no_wakes)) == [(1, "understood"), (2, "interrupted")]
    rehearsal = rehearse([tells("stop"), tells("greet#set_timer", TEN, at_s=9.0)], [], voice=False, changes=no_wakes)
    assert frame(rehearsal, 1).intents == ("stop",), "attempt 1 has its word: what comes in the next query is of that"
    assert frame(rehearsal, 2).right


RIGHT_SECOND = [(1, "no_response"), (2, "responded")]
RIGHT_LATE = [(1, "late"), (2, "interrupted")]
WITHIN_THE_NEXT = [tells("greet#set_timer", TEN, at_s=1.5), *speech(1.7, 3.2)]
AFTER_THE_NEXT = [tells("greet#set_timer", TEN, at_s=2.2), *speech(2.3, 4.0)]


@pytest.mark.parametrize(
    ("first", "second", "attempts"),
    [
        ([wake()], WITHIN_THE_NEXT, RIGHT_LATE),
        ([wake()], AFTER_THE_NEXT, RIGHT_LATE),
        ([wake()], [idles(0.5), *AFTER_THE_NEXT], RIGHT_LATE),  # its microphone is back, and it goes on
        ([wake()], speech(2.3, 4.0), [(1, "inconclusive"), (2, "interrupted")]),  # an answer without a word
        ([wake()], [wake(), *AFTER_THE_NEXT], RIGHT_SECOND),
        ([wake(), idles(5.0)], AFTER_THE_NEXT, RIGHT_SECOND),  # it was done with the first: a wake event was lost
    ],
)
def test_device_without_a_new_wake_belongs_to_the_previous_attempt(
    first: list[Later], second: list[Later], attempts: list[tuple[int, str]]
) -> None:
    rehearsal = rehearse(first, second)
    assert outcomes(rehearsal) == attempts
    answered = next(row for row in rehearsal.standing().values() if row.latency is not None)
    assert (known(answered.latency).value_s > RULE.response_timeout_s) is (answered.attempt == 1)


def test_the_answer_behind_a_late_word_is_kept_and_not_left_to_the_next_trial() -> None:
    rehearsal = rehearse([wake()], [tells("greet#set_timer", TEN, at_s=1.5), *speech(4.0, 5.0)])
    assert outcomes(rehearsal) == RIGHT_LATE
    assert len(rehearsal.of(FreezeResponse)) == 1
    silent = rehearse([wake()], [tells("greet#set_timer", TEN, at_s=1.5)])
    assert outcomes(silent) == [(1, "understood"), (2, "interrupted")]
    waits_s = silent.actions[-1][0] - (silent.starts[2] + 1.5)
    assert waits_s == pytest.approx(RULE.context_wait_s, abs=0.05), "a late answer is waited for as after silence"


GOOD: list[Later] = [wake(), says("what time is it"), *speech(3.0, 4.5)]
BAD: list[Later] = [wake(), says("what dime is it"), *speech(3.0, 4.5)]
STATE = EffectCheck("a timer runs", (StateWanted("timer", "10 minutes"),), within_s=8.0)
ASKED = EffectCheck("a timer runs", question="does it run?")
BOTH = replace(STATE, question="does it run?")
WITH_STATE = (ObservationKind.WAKE, ObservationKind.TRANSCRIPT, ObservationKind.STATE)


def tells_state(at_s: float, value: str = "10 Minutes", source: str = "dut_link") -> Later:
    return at_s, StateTold(source, Stamp(at_s, 0.01), "timer", value)


def machine(check: EffectCheck, attended: bool = False, **changes: Any) -> TrialMachine:
    return TrialMachine(trial(effect=check, **{"reports": WITH_STATE, **changes}), 1, TIMING, attended=attended)


def look(check: EffectCheck, *after: list[Later], attended: bool = False, **changes: Any) -> Rehearsal:
    rehearsal = Rehearsal(machine(check, attended, **changes), *after)
    rehearsal.run()
    return rehearsal


def ends_after_query_s(rehearsal: Rehearsal) -> float:
    return rehearsal.actions[-1][0] - max(rehearsal.starts.values()) - TIMING.query_end_s


def questions(rehearsal: Rehearsal) -> list[OperatorAsked]:
    return [action for _, action in rehearsal.of(OperatorAsked) if isinstance(action, OperatorAsked)]


@pytest.mark.parametrize(
    ("after", "waits"),
    [
        ([*GOOD], True),
        ([*GOOD, tells_state(2.5)], False),
        ([*GOOD, tells_state(1.5)], True),  # before the query has ended
        ([*GOOD, tells_state(2.5, "5 minutes")], True),
        ([*GOOD, tells_state(2.5, "5 minutes"), tells_state(2.9)], False),
        ([*GOOD, tells_state(2.5, source="another")], True),
    ],
)
def test_the_device_has_time_to_report_its_state(after: list[Later], waits: bool) -> None:
    rehearsal = look(STATE, after)
    assert rehearsal.verdict.outcome is Outcome.RESPONDED
    if waits:
        assert ends_after_query_s(rehearsal) >= STATE.within_s
    else:
        assert ends_after_query_s(rehearsal) < 5.0
    assert not questions(rehearsal)


def test_a_slow_device_has_until_its_response_has_ended() -> None:
    slow = [wake(), says("what time is it"), *speech(9.5, 19.5)]  # ends 17.5 s after the query
    assert not questions(look(BOTH, [*slow, tells_state(19.4)], attended=True))
    assert len(questions(look(BOTH, slow, attended=True))) == 1


def test_a_device_that_tells_no_state_is_not_waited_for() -> None:
    assert ends_after_query_s(look(STATE, GOOD, reports=WITH_STATE[:2])) < 5.0


def test_effects_of_a_misheard_query_are_not_checked() -> None:
    rehearsal = look(BOTH, BAD, BAD, BAD, attended=True)
    assert rehearsal.verdict.outcome is Outcome.MISHEARD
    assert not questions(rehearsal)


@pytest.mark.parametrize(
    ("check", "after", "attended", "question"),
    [
        (ASKED, GOOD, True, True),
        (ASKED, GOOD, False, False),
        (BOTH, [*GOOD, tells_state(2.5)], True, False),
        (BOTH, GOOD, True, True),
        (replace(ASKED, at="01:00"), GOOD, True, False),
        (replace(ASKED, after_s=60.0), GOOD, True, False),
        (STATE, GOOD, True, False),
    ],
)
def test_operator_is_asked_about_effects_only_when_needed(
    check: EffectCheck, after: list[Later], attended: bool, question: bool
) -> None:
    question_rows = questions(look(check, after, attended=attended))
    assert question_rows == ([OperatorAsked("t1.r1", 1, 1, "does it run?", Question.EFFECT)] if question else [])


def test_an_answer_that_came_into_the_next_attempt_has_an_effect_too() -> None:
    late = [wake(), says("what time is it"), *speech(11.0, 12.0)]
    rehearsal = look(ASKED, late, attended=True)
    assert [row.outcome for _, row in sorted(rehearsal.standing().items())] == [Outcome.LATE, Outcome.INTERRUPTED]
    assert questions(rehearsal) == [OperatorAsked("t1.r1", 1, 1, "does it run?", Question.EFFECT)]


def test_an_effect_stays_open_if_the_operator_is_silent() -> None:
    rehearsal = look(ASKED, GOOD, attended=True, reprompt=RepromptRule(operator_wait_s=20.0))
    ((asked_s, _),) = rehearsal.of(OperatorAsked)
    assert rehearsal.actions[-1][0] == pytest.approx(asked_s + 20.0)
    assert rehearsal.verdict.outcome is Outcome.RESPONDED


class Looking(Rehearsal):
    """Does something as soon as the operator is asked."""

    then: Callable[[TrialMachine, float], list[Action]]

    def _act(self, now_s: float, actions: list[Action]) -> None:
        super()._act(now_s, actions)
        if any(isinstance(action, OperatorAsked) for action in actions):
            super()._act(now_s + 2.0, self.then(self.machine, now_s + 2.0))


def test_the_answer_leads_on_and_the_dialogue_is_closed_only_then() -> None:
    rehearsal = Looking(machine(ASKED, True, close_dialogue=CloseDialogue(say="cancel")), GOOD)
    rehearsal.then = lambda trial, now_s: trial.effect_answered(now_s, 1)
    rehearsal.run()
    ((asked_s, _),) = rehearsal.of(OperatorAsked)
    ((closed_s, _),) = rehearsal.of(SayClosing)
    assert closed_s == pytest.approx(asked_s + 2.0)


def test_device_report_answers_the_pending_effect_question() -> None:
    rehearsal = Looking(machine(replace(BOTH, within_s=3.0), True), GOOD)
    rehearsal.then = lambda trial, now_s: trial.feed(StateTold("dut_link", Stamp(now_s), "timer", "10 minutes"), now_s)
    rehearsal.run()
    ((asked_s, _),) = rehearsal.of(OperatorAsked)
    assert rehearsal.actions[-1][0] == pytest.approx(asked_s + 2.0)


class Stopped(Rehearsal):
    """Is asked to stop as soon as it is in a phase."""

    phase: Phase

    def _act(self, now_s: float, actions: list[Action]) -> None:
        super()._act(now_s, actions)
        if self.machine.phase is self.phase:
            self.shown = self.machine.state
            self.actions += [(now_s, action) for action in self.machine.stop(now_s, "stopped")]


@pytest.mark.parametrize(
    ("phase", "word", "asks"),
    [(Phase.CHECKING_EFFECT, StateWord.CHECKING, None), (Phase.ASKING_EFFECT, StateWord.ASKING, Question.EFFECT)],
)
def test_a_stop_while_somebody_looks_keeps_the_verdict(phase: Phase, word: StateWord, asks: Question | None) -> None:
    rehearsal = Stopped(machine(BOTH, True), GOOD)
    rehearsal.phase = phase
    with pytest.raises(ValueError, match="unpack"):  # a machine that was stopped says nothing of its trial
        rehearsal.run()
    assert (rehearsal.shown.word, rehearsal.shown.asks) == (word, asks)
    assert [row.outcome for row in rehearsal.rows()] == [Outcome.RESPONDED]
    assert not isinstance(rehearsal.actions[-1][1], TrialFinished)


def test_lost_link_ends_the_effect_check() -> None:
    rehearsal = look(STATE, [*GOOD, *loses("dut_link", 6.2, 30.0)])
    assert rehearsal.verdict.outcome is Outcome.RESPONDED
    assert ends_after_query_s(rehearsal) < STATE.within_s
