"""Effect checks of a query trial, each case in simulated time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from harness.model.bench import ObservationKind
from harness.model.effect import EffectCheck, StateWanted
from harness.model.feed import StateWord
from harness.model.observation import StateTold
from harness.model.record import OperatorAsked, Question, TrialFinished
from harness.model.scenario import CloseDialogue, RepromptRule
from harness.model.time import Stamp
from harness.model.trial import Outcome
from harness.session.query_trial import TrialMachine
from harness.session.take import Action, Phase, SayClosing
from tests.unit.session.material import TIMING, trial
from tests.unit.session.rehearsal import Later, Rehearsal, loses, says, speech, wake

GOOD: list[Later] = [wake(), says("what time is it"), *speech(3.0, 4.5)]
BAD: list[Later] = [wake(), says("what dime is it"), *speech(3.0, 4.5)]
STATE = EffectCheck("a timer runs", (StateWanted("timer", "10 minutes"),), within_s=8.0)
ASKED = EffectCheck("a timer runs", question="does it run?")
BOTH = replace(STATE, question="does it run?")
REPORTS = (ObservationKind.WAKE, ObservationKind.TRANSCRIPT, ObservationKind.STATE)


def tells(at_s: float, value: str = "10 Minutes", source: str = "dut_link") -> Later:
    return at_s, StateTold(source, Stamp(at_s, 0.01), "timer", value)


def machine(check: EffectCheck, attended: bool = False, **changes: Any) -> TrialMachine:
    return TrialMachine(trial(effect=check, **{"reports": REPORTS, **changes}), 1, TIMING, attended=attended)


def rehearse(check: EffectCheck, *after: list[Later], attended: bool = False, **changes: Any) -> Rehearsal:
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
        ([*GOOD, tells(2.5)], False),
        ([*GOOD, tells(1.5)], True),  # before the query has ended
        ([*GOOD, tells(2.5, "5 minutes")], True),
        ([*GOOD, tells(2.5, "5 minutes"), tells(2.9)], False),
        ([*GOOD, tells(2.5, source="another")], True),
    ],
)
def test_the_device_has_its_time_to_tell_its_state(after: list[Later], waits: bool) -> None:
    rehearsal = rehearse(STATE, after)
    assert rehearsal.verdict.outcome is Outcome.RESPONDED
    if waits:
        assert ends_after_query_s(rehearsal) >= STATE.within_s
    else:
        assert ends_after_query_s(rehearsal) < 5.0
    assert not questions(rehearsal)


def test_a_slow_device_has_until_its_response_has_ended() -> None:
    slow = [wake(), says("what time is it"), *speech(9.5, 19.5)]  # ends 17.5 s after the query
    assert not questions(rehearse(BOTH, [*slow, tells(19.4)], attended=True))
    assert len(questions(rehearse(BOTH, slow, attended=True))) == 1


def test_what_is_told_ends_the_wait_at_once() -> None:
    assert ends_after_query_s(rehearse(STATE, [*GOOD, tells(6.5)])) == pytest.approx(4.5)


def test_a_device_that_tells_no_state_is_not_waited_for() -> None:
    assert ends_after_query_s(rehearse(STATE, GOOD, reports=REPORTS[:2])) < 5.0


def test_nobody_looks_at_what_a_misheard_query_brings_about() -> None:
    rehearsal = rehearse(BOTH, BAD, BAD, BAD, attended=True)
    assert rehearsal.verdict.outcome is Outcome.MISHEARD
    assert not questions(rehearsal)


@pytest.mark.parametrize(
    ("check", "after", "attended", "asked"),
    [
        (ASKED, GOOD, True, True),
        (ASKED, GOOD, False, False),
        (BOTH, [*GOOD, tells(2.5)], True, False),
        (BOTH, GOOD, True, True),
        (replace(ASKED, at="01:00"), GOOD, True, False),
        (replace(ASKED, after_s=60.0), GOOD, True, False),
        (STATE, GOOD, True, False),
    ],
)
def test_who_is_asked(check: EffectCheck, after: list[Later], attended: bool, asked: bool) -> None:
    found = questions(rehearse(check, after, attended=attended))
    assert found == ([OperatorAsked("t1.r1", 1, 1, "does it run?", Question.EFFECT)] if asked else [])


def test_an_answer_that_came_into_the_next_attempt_has_an_effect_too() -> None:
    late = [wake(), says("what time is it"), *speech(11.0, 12.0)]
    rehearsal = rehearse(ASKED, late, attended=True)
    assert [row.outcome for _, row in sorted(rehearsal.standing().items())] == [Outcome.LATE, Outcome.INTERRUPTED]
    assert questions(rehearsal) == [OperatorAsked("t1.r1", 1, 1, "does it run?", Question.EFFECT)]


def test_an_operator_who_stays_silent_leaves_it_open() -> None:
    rehearsal = rehearse(ASKED, GOOD, attended=True, reprompt=RepromptRule(operator_wait_s=20.0))
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
    rehearsal.then = lambda one, now_s: one.effect_answered(now_s, 1)
    rehearsal.run()
    ((asked_s, _),) = rehearsal.of(OperatorAsked)
    ((closed_s, _),) = rehearsal.of(SayClosing)
    assert closed_s == pytest.approx(asked_s + 2.0)


def test_what_the_device_tells_meanwhile_answers_the_question() -> None:
    rehearsal = Looking(machine(replace(BOTH, within_s=3.0), True), GOOD)
    rehearsal.then = lambda one, now_s: one.feed(StateTold("dut_link", Stamp(now_s), "timer", "10 minutes"), now_s)
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
    [
        (Phase.LOOKING, StateWord.CHECKING, None),
        (Phase.ASKING_EFFECT, StateWord.ASKING, Question.EFFECT),
    ],
)
def test_a_stop_while_somebody_looks_keeps_the_verdict(phase: Phase, word: StateWord, asks: Question | None) -> None:
    rehearsal = Stopped(machine(BOTH, True), GOOD)
    rehearsal.phase = phase
    with pytest.raises(ValueError, match="unpack"):  # a machine that was stopped says nothing of its trial
        rehearsal.run()
    assert (rehearsal.shown.word, rehearsal.shown.asks) == (word, asks)
    assert [row.outcome for row in rehearsal.rows()] == [Outcome.RESPONDED]
    assert not isinstance(rehearsal.actions[-1][1], TrialFinished)


def test_a_lost_link_ends_the_look() -> None:
    rehearsal = rehearse(STATE, [*GOOD, *loses("dut_link", 6.2, 30.0)])
    assert rehearsal.verdict.outcome is Outcome.RESPONDED
    assert ends_after_query_s(rehearsal) < STATE.within_s
