"""The conductor over the in-process sound path: real threads, real driver, a fast clock."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from harness.base.clocks import HostClock, ScaledClock
from harness.devices.in_process.driver import InProcessOptions
from harness.model.effect import EffectCheck, EffectWord
from harness.model.errors import VoiceError
from harness.model.feed import (
    Abort,
    AnswerEffect,
    AnswerOperator,
    Judge,
    Pause,
    Replay,
    Rerun,
    Resume,
    SetMark,
    Skip,
    StateWord,
    WriteNote,
)
from harness.model.judgment import Category, Judgment, JudgmentStatus
from harness.model.observation import StimulusEnded
from harness.model.record import (
    AttemptFinished,
    AttemptStarted,
    EffectAnswered,
    EndReason,
    FaultMet,
    JudgmentGiven,
    MarkSet,
    NoteWritten,
    Observed,
    OperatorAsked,
    Paused,
    Question,
    RerunAsked,
    ResponseFrozen,
    ResponseTranscribed,
    Resumed,
    SessionFinished,
    TrialFinished,
)
from harness.model.scenario import CloseDialogue, Defaults
from harness.model.stimulus import RenderedStimulus, StimulusRecipe, Waveform
from harness.model.trial import Outcome
from harness.session.plan import plan
from tests.unit.session.house import House, assert_whole, house
from tests.unit.session.material import Bursts, MemoryLog, bench, scenario


def test_a_plan_is_played_from_its_first_trial_to_its_last() -> None:
    with house().running() as run:
        pass
    assert run.reason is EndReason.COMPLETED
    assert [row.outcome for row in run.log.of(TrialFinished)] == [Outcome.RESPONDED] * 4
    assert run.log.rows[-1].record == SessionFinished(EndReason.COMPLETED)
    assert_whole(run.log, run.trials)
    for row in run.log.of(ResponseFrozen):
        clip = run.log.clips[row.clip.name]
        assert clip.duration_s == pytest.approx(row.ends.at_s - row.starts.at_s + 0.4, abs=0.01)
        assert float(abs(clip.samples).max()) > 0.05
    for word in (StateWord.PLAYING, StateWord.LISTENING, StateWord.RESPONSE, StateWord.FINISHED):
        assert run.saw(word)


def test_a_bad_device_is_asked_again() -> None:
    options = InProcessOptions(wake_miss_share=0.1, mishear_share=0.5, silent_share=0.1, late_share=0.1)
    with house(10, options=options).running() as run:
        pass
    assert_whole(run.log, run.trials)
    assert len(run.log.of(AttemptStarted)) > 10
    assert {row.outcome for row in run.log.of(AttemptFinished)} >= {Outcome.RESPONDED, Outcome.MISHEARD}


def test_dialogues_are_closed_with_words_of_ours() -> None:
    clock = ScaledClock(8.0, HostClock())
    closing = scenario(2, defaults=Defaults(close_dialogue=CloseDialogue(say="never mind")))
    with House(plan(closing, bench()), MemoryLog(clock), clock).running() as run:
        pass
    assert_whole(run.log, run.trials)
    said = [row.observation for row in run.log.of(Observed) if isinstance(row.observation, StimulusEnded)]
    assert [each.play_id.split(".")[-2][0] for each in said] == ["t", "c", "t", "c"]
    assert all(each.complete for each in said)
    assert run.saw(StateWord.CLOSING)


def test_notes_marks_reruns_and_judgments_are_answered_after_their_row() -> None:
    lingering = threading.Event()
    with house(1, linger=lambda: not lingering.is_set()).running() as run:
        run.until(lambda: run.log.of(TrialFinished))
        (frozen,) = run.log.of(ResponseFrozen)
        trial_id = run.trials[0].id

        def judge(id: str, **changes: Any) -> Judge:
            plain: dict[str, Any] = {"trial_id": trial_id, "attempt": 1, "clip_sha256": frozen.clip.sha256}
            judgment = Judgment(
                id=id, rater="ann", status=JudgmentStatus.SUBMITTED, category=Category.CORRECT, **{**plain, **changes}
            )
            return Judge(f"{id}{changes}", "ann", judgment)

        assert run.ask(WriteNote("n1", "ann", "a lorry outside")) == (True, "")
        assert run.ask(WriteNote("n2", "ann", " "))[0] is False
        assert run.ask(SetMark("m1", "ann", "here")) == (True, "")
        assert run.ask(judge("j1")) == (True, "")
        assert run.ask(judge("j2", attempt=7))[0] is False
        assert run.ask(judge("j3", clip_sha256="0" * 64))[0] is False
        assert run.ask(judge("j4", replaces="none"))[0] is False
        assert run.ask(judge("j5", replaces="j1")) == (True, "")
        run.answers.clear()
        assert run.ask(judge("j1")) == (True, "")
        assert run.ask(Rerun("r0", "ann", "unknown"))[0] is False
        assert run.ask(Resume("p0", "ann")) == (False, "the run is not paused")
        assert run.ask(Skip("s0", "ann", "why"))[0] is False
        assert run.ask(Replay("y0", "ann", "x.flac"))[0] is False
        assert run.ask(AnswerOperator("a0", "ann", trial_id, 1, True))[0] is False
        assert run.ask(Rerun("r1", "ann", trial_id)) == (True, "")
        run.until(lambda: len(run.log.of(TrialFinished)) == 2)
        lingering.set()
    assert [row.judgment.id for row in run.log.of(JudgmentGiven)] == ["j1", "j5"]
    assert len(run.log.of(NoteWritten)) == len(run.log.of(MarkSet)) == len(run.log.of(RerunAsked)) == 1
    assert [row.take for row in run.log.of(TrialFinished)] == [1, 2]


def test_pause_holds_before_the_next_attempt() -> None:
    with house(2, speed=10.0).running() as run:
        run.until(lambda: run.saw(StateWord.PLAYING))
        assert run.ask(Pause("p1", "ann", "tea")) == (True, "")
        assert run.ask(Pause("p2", "ann"))[0] is False
        run.until(lambda: run.saw(StateWord.PAUSED))
        assert run.states[-1].reason == "tea"
        assert len(run.log.of(AttemptStarted)) == 1
        assert run.ask(Resume("p3", "bob")) == (True, "")
    assert run.log.of(Paused) == [Paused("tea", "ann")]
    assert run.log.of(Resumed) == [Resumed("bob")]
    assert_whole(run.log, run.trials)


def test_skip_ends_a_trial_and_abort_the_session() -> None:
    with house(4, speed=5.0).running() as run:
        run.until(lambda: run.saw(StateWord.PLAYING))
        assert run.ask(Skip("s1", "ann", "")) == (False, "a skip needs a reason")
        assert run.ask(Skip("s2", "ann", "wrong one")) == (True, "")
        run.until(lambda: len(run.log.of(AttemptStarted)) == 2)
        assert run.ask(Abort("x", "ann")) == (True, "")
    assert run.reason is EndReason.ABORTED
    assert [row.outcome for row in run.log.of(TrialFinished)] == [Outcome.SKIPPED, Outcome.ABORTED]
    assert run.log.rows[-1].record == SessionFinished(EndReason.ABORTED)


def test_a_black_box_is_the_operators_to_judge() -> None:
    with house(2, profile=None, attended=lambda: True).running() as run:
        for count in (1, 2):
            run.until(lambda count=count: len(run.log.of(OperatorAsked)) == count)
            asked = run.log.of(OperatorAsked)[-1]
            assert run.ask(AnswerOperator(f"a{count}", "ann", asked.trial_id, asked.attempt, True)) == (True, "")
    assert [row.outcome for row in run.log.of(TrialFinished)] == [Outcome.RESPONDED] * 2


def test_a_voice_that_fails_skips_its_trial_only() -> None:
    broken = Bursts("set an alarm for one", VoiceError("no such voice"))
    with house(4, renders=broken).running() as run:
        pass
    outcomes = [row.outcome for row in run.log.of(TrialFinished)]
    assert outcomes == [Outcome.RESPONDED, Outcome.SKIPPED, Outcome.RESPONDED, Outcome.RESPONDED]
    assert len(run.log.of(FaultMet)) == 1


class SlowVoice(Bursts):
    """Speaks when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.may = threading.Event()

    def render(self, recipe: StimulusRecipe) -> RenderedStimulus:
        assert self.may.wait(30)
        return super().render(recipe)


def test_an_abort_while_a_stimulus_is_made_ends_the_trial_that_was_begun() -> None:
    voice = SlowVoice()
    with house(3, renders=voice).running() as run:
        run.until(lambda: run.saw(StateWord.PREPARING))
        run.conductor.inbox(Abort("a1", "ann"))
        run.until(lambda: run.log.of(TrialFinished))
        voice.may.set()
    (ended,) = run.log.of(TrialFinished)
    assert (ended.outcome, ended.attempts, ended.cause) == (Outcome.ABORTED, 0, "operator: by ann")
    assert not run.log.of(AttemptStarted)
    assert run.reason is EndReason.ABORTED


def test_a_lost_link_interrupts_the_attempt_and_the_run_goes_on() -> None:
    with house(2, speed=10.0).running() as run:
        run.until(lambda: run.saw(StateWord.PLAYING))
        run.speaker.lose_link("the server is gone")
        run.until(lambda: run.saw(StateWord.INTERRUPTED))
        run.speaker.mend_link()
    assert_whole(run.log, run.trials)
    first = run.log.of(AttemptFinished)[0]
    assert first.outcome is Outcome.INTERRUPTED
    assert [row.outcome for row in run.log.of(TrialFinished)] == [Outcome.RESPONDED] * 2


def test_responses_are_transcribed_for_people() -> None:
    def transcribe(waveform: Waveform, told: Callable[[str], None]) -> None:
        threading.Thread(target=told, args=(f"{waveform.duration_s:.1f} s of words",)).start()

    with house(2, transcribe=transcribe, recogniser_name="ours").running() as run:
        pass
    rows = run.log.of(ResponseTranscribed)
    assert len(rows) == 2
    assert {row.recogniser for row in rows} == {"ours"}


@pytest.mark.parametrize("stops_after", [1, 3, 6, 9, 13, 20])
def test_a_stopped_run_is_resumed_where_it_stood(stops_after: int) -> None:
    first = house(4)
    with first.running():
        first.until(lambda: len(first.log.rows) >= stops_after)
        first.conductor.stop()
    assert first.reason is EndReason.STOPPED
    second = House(first.trials, first.log, first.clock)
    with second.running():
        pass
    assert second.reason is EndReason.COMPLETED
    assert_whole(first.log, first.trials)
    assert all(row.outcome is Outcome.RESPONDED for row in first.log.of(TrialFinished))


def test_effects_are_asked_for_and_answers_are_rows() -> None:
    def asked_of_effect(run: House) -> list[Any]:
        return [row for row in run.log.of(OperatorAsked) if row.about is Question.EFFECT]

    lingering = threading.Event()
    clock = ScaledClock(10.0, HostClock())
    check = EffectCheck("it is done", question="was it done?")
    one, other = plan(scenario(2), bench())
    asked = (replace(one, effect=check), other)
    whole = House(asked, MemoryLog(clock), clock, attended=lambda: True, linger=lambda: not lingering.is_set())
    with whole.running() as run:
        first, second = (trial.id for trial in asked)
        run.until(lambda: asked_of_effect(run))
        run.until(lambda: run.states[-1].asks is Question.EFFECT)
        assert run.ask(AnswerEffect("e0", "ann", "unknown", 1, EffectWord.RIGHT))[0] is False
        assert run.ask(AnswerEffect("e1", "ann", first, 7, EffectWord.RIGHT))[0] is False
        assert run.ask(AnswerEffect("e2", "ann", first, 1, EffectWord.WRONG, take=4))[0] is False
        assert run.ask(AnswerEffect("e3", "ann", first, 1, EffectWord.PARTIAL, "half")) == (True, "")
        run.until(lambda: len(run.log.of(TrialFinished)) == 2)
        assert run.ask(AnswerEffect("e4", "bob", second, 1, EffectWord.UNKNOWN)) == (True, "")
        lingering.set()
    assert len(asked_of_effect(run)) == 1
    assert run.log.of(EffectAnswered) == [
        EffectAnswered(first, 1, 1, EffectWord.PARTIAL, "ann", "half"),
        EffectAnswered(second, 1, 1, EffectWord.UNKNOWN, "bob"),
    ]
    kinds = [row.record.kind for row in run.log.rows]
    assert kinds.index("attempt_finished") < kinds.index("operator_asked") < kinds.index("effect_answered")
    assert_whole(run.log, run.trials)
