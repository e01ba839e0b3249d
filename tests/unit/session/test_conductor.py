"""The conductor over the in-process sound path: real threads, real driver, a fast clock."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from harness.base import threads
from harness.base.clocks import HostClock, ScaledClock
from harness.base.simulated_threads import SimulatedThreads
from harness.devices.in_process.driver import InProcessOptions
from harness.model.effect import EffectCheck, EffectOutcome
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
from harness.model.observation import HostStalled, LinkBack, LinkLost, SpeechEnded, SpeechStarted, StimulusEnded
from harness.model.record import (
    AttemptFinished,
    AttemptStarted,
    DecisionReached,
    EffectAnswered,
    EndReason,
    EngineStarted,
    Entry,
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
    TrialStarted,
)
from harness.model.row_times import SteadyWall
from harness.model.scenario import CloseDialogue, Defaults, RepromptRule
from harness.model.stimulus import RenderedStimulus, StimulusRecipe, Waveform
from harness.model.time import Stamp
from harness.model.trial import Outcome
from harness.session.figures.memory import MemoryFigures, MemoryPoint, find_memories
from harness.session.figures.progress import SessionFigures
from harness.session.plan import plan
from harness.session.query_trial import TrialMachine
from harness.session.take import Action
from tests.known import known
from tests.unit.session.house import House, assert_whole, house
from tests.unit.session.material import TELLS, TIMING, Bursts, MemoryLog, bench, probe, scenario

pytestmark = pytest.mark.usefixtures("simulated_time")


def test_a_plan_is_played_from_its_first_trial_to_its_last() -> None:
    run = house().played()
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


def test_a_stall_is_known_before_what_it_has_delayed_is_judged() -> None:
    delays: list[HostStalled] = []

    def stalls() -> list[HostStalled]:
        """One stall, which is over when the time for the first response is."""
        started = run.log.of(AttemptStarted)
        listens_s = started[0].duration_s + 3.0 if started else 0.0
        if delays or not started or run.clock.now_s() < started_s() + listens_s:
            return []
        delays.append(HostStalled("host", Stamp(run.clock.now_s() - 2.0), 2.0, 4.0, 0.1))
        return delays

    def started_s() -> float:
        return next(row.at_s for row in run.log.rows if isinstance(row.record, AttemptStarted))

    run = house(1, options=InProcessOptions(silent_share=1.0), new_stalls=stalls)
    run.played()
    first, second, *_ = run.log.of(AttemptFinished)
    assert first.outcome is Outcome.INTERRUPTED
    assert first.cause == "host_disturbed: the host stalled for 2.00 s"
    assert (second.outcome, second.disturbed) == (Outcome.NO_RESPONSE, "")
    (stall_row,) = [row for row in run.log.of(Observed) if isinstance(row.observation, HostStalled)]
    assert (stall_row.trial_id, stall_row.attempt) == (first.trial_id, 1)


def test_a_query_is_repeated_if_the_device_fails() -> None:
    options = InProcessOptions(wake_miss_share=0.1, mishear_share=0.5, silent_share=0.1, late_share=0.1)
    run = house(10, options=options).played()
    assert_whole(run.log, run.trials)
    assert len(run.log.of(AttemptStarted)) > 10
    assert {row.outcome for row in run.log.of(AttemptFinished)} >= {Outcome.RESPONDED, Outcome.MISHEARD}


def test_dialogues_are_closed_with_words_of_ours() -> None:
    clock = ScaledClock(8.0, HostClock())
    closing = scenario(2, defaults=Defaults(close_dialogue=CloseDialogue(say="never mind")))
    run = House(plan(closing, bench()), MemoryLog(clock), clock).played()
    assert_whole(run.log, run.trials)
    endings = [row.observation for row in run.log.of(Observed) if isinstance(row.observation, StimulusEnded)]
    assert [ending.play_id.split(".")[-2][0] for ending in endings] == ["t", "c", "t", "c"]
    assert all(ending.complete for ending in endings)
    assert run.saw(StateWord.CLOSING)


def test_notes_marks_reruns_and_judgments_are_answered_after_their_row() -> None:
    lingering = threads.event()
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


@pytest.mark.parametrize(("by_s", "jumped"), [(7200.0, "7200 s ahead: it was set"), (-7200.0, "7200 s back")])
def test_a_wall_clock_that_jumps_leaves_one_row_and_no_duration_takes_it_in(by_s: float, jumped: str) -> None:
    world = threads.current()
    assert isinstance(world, SimulatedThreads)
    with house(3, speed=10.0).running() as run:
        run.until(lambda: run.saw(StateWord.PLAYING))
        world.set_wall(1.5)  # as a time server may do
        run.until(lambda: len(run.log.of(AttemptStarted)) == 2)
        world.set_wall(by_s)
    (jump,) = [row for row in run.log.of(FaultMet) if row.source == "clock"]
    assert jump.what.startswith(f"the clock of this host jumped {jumped}")
    wall, figures = SteadyWall(), SessionFigures()
    started = Entry(0, 1, run.log.rows[0].at_s, run.log.rows[0].wall_s, EngineStarted(1, 1, "b", 10.0))
    rows = [started, *run.log.rows]
    steady_s = [wall.wall_s_of(entry) for entry in rows]
    assert steady_s[-1] - steady_s[0] == pytest.approx((rows[-1].at_s - rows[0].at_s) / 10, abs=2.0)
    assert abs(rows[-1].wall_s - rows[0].wall_s) > 7000.0
    for entry in rows:
        figures.add(entry)
    assert 0.1 < known(figures.snapshot().pace_s) < 10.0


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


def test_a_skipped_query_keeps_the_context_wait_for_what_its_device_still_says() -> None:
    with house(2, speed=5.0).running() as run:
        run.until(lambda: run.saw(StateWord.LISTENING))
        assert run.ask(Skip("s", "ann", "wrong one")) == (True, "")
    skipped = next(entry.at_s for entry in run.log.rows if isinstance(entry.record, TrialFinished))
    _, begun_s = (entry.at_s for entry in run.log.rows if isinstance(entry.record, AttemptStarted))
    assert begun_s - skipped >= RepromptRule().context_wait_s
    assert [row.outcome for row in run.log.of(TrialFinished)] == [Outcome.SKIPPED, Outcome.RESPONDED]


def test_a_stopped_query_keeps_the_context_wait_when_the_session_resumes() -> None:
    with house(1, speed=5.0).running() as run:
        run.until(lambda: run.saw(StateWord.PLAYING))
        played_s = run.clock.now_s()
        run.until(lambda: run.saw(StateWord.LISTENING) and run.clock.now_s() > played_s + 2.0)
        run.conductor.stop()
    resumed = House(run.trials, run.log, run.clock).played()
    stopped_s = next(entry.at_s for entry in resumed.log.rows if isinstance(entry.record, AttemptFinished))
    _, begun_s = (entry.at_s for entry in resumed.log.rows if isinstance(entry.record, AttemptStarted))
    assert begun_s - stopped_s >= RepromptRule().context_wait_s


def test_a_decision_that_a_killed_run_did_not_write_is_written_first() -> None:
    decision = DecisionReached("dut", "false_rejects", True)
    due = [(decision,)]
    run = house(1, decisions=lambda: due.pop() if due else ()).played()
    kinds = [type(entry.record) for entry in run.log.rows]
    assert kinds.index(DecisionReached) < kinds.index(TrialStarted)


def test_operator_judges_a_black_box() -> None:
    with house(2, profile=None, attended=lambda: True).running() as run:
        for count in (1, 2):
            run.until(lambda count=count: len(run.log.of(OperatorAsked)) == count)
            question = run.log.of(OperatorAsked)[-1]
            assert run.ask(AnswerOperator(f"a{count}", "ann", question.trial_id, question.attempt, True)) == (True, "")
    assert [row.outcome for row in run.log.of(TrialFinished)] == [Outcome.RESPONDED] * 2


def test_a_voice_that_fails_skips_its_trial_only() -> None:
    broken = Bursts("set an alarm for one", VoiceError("no such voice"))
    run = house(4, renders=broken).played()
    outcomes = [row.outcome for row in run.log.of(TrialFinished)]
    assert outcomes == [Outcome.RESPONDED, Outcome.SKIPPED, Outcome.RESPONDED, Outcome.RESPONDED]
    assert len(run.log.of(FaultMet)) == 1


class SlowVoice(Bursts):
    """Speaks when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.may = threads.event()

    def render(self, recipe: StimulusRecipe) -> RenderedStimulus:
        assert self.may.wait(30)
        return super().render(recipe)


def test_an_abort_while_a_stimulus_is_made_ends_the_trial_that_was_begun() -> None:
    voice = SlowVoice()
    with house(3, renders=voice).running() as run:
        run.until(lambda: run.saw(StateWord.PREPARING))
        run.conductor.enqueue(Abort("a1", "ann"))
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
    def transcribe(waveform: Waveform, report: Callable[[str], None]) -> None:
        threads.thread(report, f"{waveform.duration_s:.1f} s of words").start()

    run = house(2, transcribe=transcribe, recogniser_name="ours").played()
    rows = run.log.of(ResponseTranscribed)
    assert len(rows) == 2
    assert {row.recogniser for row in rows} == {"ours"}


@pytest.mark.parametrize("stops_after", [1, 3, 6, 9, 13, 20, 40])
def test_a_stopped_run_is_resumed_where_it_stood(stops_after: int) -> None:
    first = house(4, transcribe=lambda waveform, report: None)  # it is too slow
    with first.running():
        first.until(lambda: len(first.log.rows) >= stops_after)
        first.conductor.stop()
    assert first.reason is EndReason.STOPPED
    second = House(first.trials, first.log, first.clock, transcribe=lambda waveform, report: report("words")).played()
    assert second.reason is EndReason.COMPLETED
    assert_whole(first.log, first.trials)
    assert all(row.outcome is Outcome.RESPONDED for row in first.log.of(TrialFinished))
    assert len(first.log.of(ResponseTranscribed)) == len(first.log.of(ResponseFrozen))


def test_effects_are_asked_for_and_answers_are_rows() -> None:
    def asked_of_effect(run: House) -> list[Any]:
        return [row for row in run.log.of(OperatorAsked) if row.about is Question.EFFECT]

    lingering = threads.event()
    clock = ScaledClock(10.0, HostClock())
    check = EffectCheck("it is done", question="was it done?")
    asked_trial, other = plan(scenario(2), bench())
    trials = (replace(asked_trial, effect=check), other)
    whole = House(trials, MemoryLog(clock), clock, attended=lambda: True, linger=lambda: not lingering.is_set())
    with whole.running() as run:
        first, second = (trial.id for trial in trials)
        run.until(lambda: asked_of_effect(run))
        run.until(lambda: run.states[-1].asks is Question.EFFECT)
        assert run.ask(AnswerEffect("e0", "ann", "unknown", 1, EffectOutcome.RIGHT))[0] is False
        assert run.ask(AnswerEffect("e1", "ann", first, 7, EffectOutcome.RIGHT))[0] is False
        assert run.ask(AnswerEffect("e2", "ann", first, 1, EffectOutcome.WRONG, take=4))[0] is False
        assert run.ask(AnswerEffect("e3", "ann", first, 1, EffectOutcome.PARTIAL, "half")) == (True, "")
        run.until(lambda: len(run.log.of(TrialFinished)) == 2)
        assert run.ask(AnswerEffect("e4", "bob", second, 1, EffectOutcome.UNKNOWN)) == (True, "")
        lingering.set()
    assert len(asked_of_effect(run)) == 1
    assert run.log.of(EffectAnswered) == [
        EffectAnswered(first, 1, 1, EffectOutcome.PARTIAL, "ann", "half"),
        EffectAnswered(second, 1, 1, EffectOutcome.UNKNOWN, "bob"),
    ]
    kinds = [row.record.kind for row in run.log.rows]
    assert kinds.index("attempt_finished") < kinds.index("operator_asked") < kinds.index("effect_answered")
    assert_whole(run.log, run.trials)


SPEED = 20.0
MEMORY_S = 40.0
LATE_S = 36.0
"""How much longer than planned a wait may be here: 1.8 real seconds, for a machine that is busy."""


def probing(*waits_s: float, repeat: int = 1, log: MemoryLog | None = None, **changes: Any) -> House:
    clock = ScaledClock(changes.pop("speed", SPEED), HostClock()) if log is None else changes.pop("clock")
    options = changes.pop("options", InProcessOptions(memory_s=MEMORY_S))
    return House(
        plan(probe(*waits_s, repeat=repeat), bench(TELLS)), log or MemoryLog(clock), clock, profile=TELLS,
        options=options, **changes,
    )  # fmt: skip


def points(run: House) -> tuple[MemoryPoint, ...]:
    return MemoryFigures.of(run.log.rows, run.trials).points()


def starts(run: House, trial_id: str) -> list[AttemptStarted]:
    return [row for row in run.log.of(AttemptStarted) if row.trial_id == trial_id]


def outcomes(run: House) -> dict[tuple[str, int], Outcome]:
    return {(row.trial_id, row.take): row.outcome for row in run.log.of(TrialFinished)}


def last_speech_before(run: House, started: AttemptStarted) -> tuple[float, float]:
    """The end of the last speech before an attempt's row, and the moment of that row."""
    index = next(n for n, entry in enumerate(run.log.rows) if entry.record == started)
    ends = [
        entry.record.observation.at.at_s
        for entry in run.log.rows[:index]
        if isinstance(entry.record, Observed) and isinstance(entry.record.observation, SpeechEnded)
    ]
    return ends[-1], run.log.rows[index].at_s


def test_the_follow_up_begins_after_its_wait_and_the_device_remembers_for_as_long_as_it_does() -> None:
    def transcribe(waveform: object, report: Any) -> None:  # not of primes, which it would delay
        def slowly() -> None:
            threads.sleep(0.2)
            report("words")

        threads.thread(slowly).start()

    run = probing(1.0, 60.0, transcribe=transcribe).played()
    assert run.reason is EndReason.COMPLETED
    memory_points = points(run)
    assert {point.planned_s: point.shown for point in memory_points} == {1.0: True, 60.0: False}
    for point in memory_points:
        (started,) = starts(run, point.trial.id)
        assert point.waited_s == started.waited_s
        assert point.planned_s <= point.waited_s <= point.planned_s + LATE_S
        speech_s, begun_s = last_speech_before(run, started)
        assert begun_s - speech_s == pytest.approx(point.waited_s, abs=LATE_S)
    assert {row.trial_id for row in run.log.of(ResponseTranscribed)} == {point.trial.id for point in memory_points}
    for trial in run.trials[2::2]:  # primes but the first
        assert (starts(run, trial.id)[0].waited_s or 0.0) >= 3.0


def test_without_an_answer_to_the_prime_there_is_no_follow_up() -> None:
    run = probing(1.0, 2.0, options=InProcessOptions(silent_share=1.0, memory_s=5.0), speed=40.0).played()
    assert [(row.outcome, row.cause) for row in run.log.of(TrialFinished) if not row.trial_id.endswith("prime")] == [
        (Outcome.SKIPPED, f"not_primed: {trial.id} ended as no_response") for trial in run.trials[::2]
    ]
    assert {point.shown for point in points(run)} == {None}


@pytest.mark.parametrize("killed", [False, True])
def test_follow_up_separated_from_its_prime_is_primed_again(killed: bool) -> None:
    with probing(2.0, 2.2).running() as run:
        prime, follow_up = (trial.id for trial in run.trials[:2])
        run.until(lambda: (prime, 1) in outcomes(run))
        run.conductor.stop()
    assert (run.reason, starts(run, follow_up)) == (EndReason.STOPPED, [])
    if killed:
        kill_after(run, run.log.of(AttemptFinished)[0])
    resumed = probing(2.0, 2.2, log=run.log, clock=run.clock).played()
    assert (resumed.reason, len(resumed.log.of(RerunAsked))) == (EndReason.COMPLETED, 1)
    assert outcomes(resumed)[(prime, 2)] is Outcome.RESPONDED
    assert list(outcomes(resumed))[:3] == [(prime, 1), (prime, 2), (follow_up, 1)]
    for point in points(resumed):
        assert point.shown is True
        assert point.waited_s is not None
        assert point.planned_s <= point.waited_s <= point.planned_s + LATE_S


def kill_after(run: House, row: AttemptStarted | AttemptFinished) -> None:
    """Leaves the log as a kill does after that row."""
    cut = next(n for n, entry in enumerate(run.log.rows) if entry.record == row)
    del run.log.rows[cut + 1 :]


def test_a_follow_up_that_was_cut_off_is_primed_again_before_its_next_attempt() -> None:
    with probing(2.0, 2.2).running() as run:
        prime, follow_up = run.trials[0].id, run.trials[1].id
        run.until(lambda: starts(run, follow_up))
        run.conductor.stop()
    kill_after(run, starts(run, follow_up)[0])
    resumed = probing(2.0, 2.2, log=run.log, clock=run.clock).played()
    assert outcomes(resumed)[(prime, 2)] is Outcome.RESPONDED
    first, second = starts(resumed, follow_up)
    assert (first.attempt, second.attempt) == (1, 2)
    point = next(point for point in points(resumed) if point.trial.id == follow_up)
    assert point.waited_s == second.waited_s
    assert second.waited_s == pytest.approx(point.planned_s, abs=LATE_S)
    assert point.shown is True


def test_an_abort_while_a_prime_is_repeated_ends_its_follow_up_too() -> None:
    with probing(2.0).running() as run:
        prime, follow_up = run.trials[0].id, run.trials[1].id
        run.until(lambda: starts(run, follow_up))
        run.conductor.stop()
    kill_after(run, starts(run, follow_up)[0])
    with probing(2.0, log=run.log, clock=run.clock).running() as resumed:
        resumed.until(lambda: len(starts(resumed, prime)) == 2)
        resumed.conductor.enqueue(Abort("a1", "ann"))
    assert resumed.reason is EndReason.ABORTED
    assert outcomes(resumed) == {
        (prime, 1): Outcome.RESPONDED, (prime, 2): Outcome.ABORTED, (follow_up, 1): Outcome.ABORTED
    }  # fmt: skip


def test_rerunning_a_follow_up_repeats_its_prime() -> None:
    lingering = threads.event()
    with probing(1.0, 2.0, linger=lambda: not lingering.is_set()).running() as run:
        run.until(lambda: run.saw(StateWord.FINISHED))
        prime, follow_up = run.trials[0].id, run.trials[1].id
        assert run.ask(Rerun("r", "ann", follow_up)) == (True, "")
        run.until(lambda: (follow_up, 2) in outcomes(run))
        lingering.set()
    assert [(row.trial_id, row.take, row.by) for row in run.log.of(RerunAsked)] == [
        (follow_up, 2, "ann"),
        (prime, 2, "the memory probe"),
    ]
    assert [(row.trial_id, row.take) for row in run.log.of(TrialStarted)][-2:] == [(prime, 2), (follow_up, 2)]


def test_a_prime_that_was_skipped_by_hand_leaves_nothing_to_ask() -> None:
    with probing(1.0, 2.0).running() as run:
        run.until(lambda: run.saw(StateWord.PLAYING))
        assert run.ask(Skip("s", "ann", "wrong one")) == (True, "")
    follow_up = run.trials[1].id
    assert outcomes(run)[(follow_up, 1)] is Outcome.SKIPPED
    assert outcomes(run)[(run.trials[3].id, 1)] is Outcome.RESPONDED


def follow_up() -> TrialMachine:
    """The one of two seconds, as a machine without I/O."""
    trial = next(trial for trial in plan(probe(2.0, 9.0), bench(TELLS)) if trial.id == "memory.w2.r1")
    return TrialMachine(trial, 1, TIMING)


def begun(actions: list[Action]) -> list[AttemptStarted]:
    return [action for action in actions if isinstance(action, AttemptStarted)]


def test_a_device_that_speaks_again_begins_the_wait_anew() -> None:
    machine = follow_up()
    assert not begun(machine.begin(11.0, not_before_s=12.0, last_sound_s=10.0))
    assert machine.deadline_s == 12.0
    machine.feed(SpeechStarted("mic", Stamp(11.5), -30.0), 11.6)
    assert not begun(machine.tick(12.5))
    machine.feed(SpeechEnded("mic", Stamp(13.0)), 13.1)
    assert not begun(machine.tick(14.9))
    (row,) = begun(machine.tick(15.0))
    assert row.waited_s == pytest.approx(2.0)


def test_a_follow_up_that_was_interrupted_is_not_said_again() -> None:
    machine = follow_up()
    machine.begin(11.0, not_before_s=12.0, last_sound_s=10.0)
    assert len(begun(machine.tick(12.0))) == 1
    machine.feed(LinkLost("speaker", Stamp(12.5), "unplugged"), 12.5)
    actions = machine.feed(LinkBack("speaker", Stamp(20.0)), 20.0)
    for at_s in range(21, 60):
        actions += machine.tick(float(at_s))
    assert not begun(actions)
    (ended,) = [action for action in actions if isinstance(action, TrialFinished)]
    assert (ended.outcome, ended.attempts) == (Outcome.INTERRUPTED, 1)
    assert machine.finished


def test_a_session_finds_the_memory_of_a_device_that_forgets_by_chance_within_its_interval() -> None:
    options = InProcessOptions(memory_s=5.0, memory_spread=0.3)
    run = probing(1.5, 3.0, 6.0, 12.0, repeat=3, options=options, speed=30.0).played()
    (finding,) = find_memories(points(run))
    assert finding.counted >= 9
    low, high = known(finding.to_wake).interval
    assert low <= 5.0
    assert high is not None
    assert high >= 5.0
    assert known(finding.forgotten).wait_s >= 4.0


def test_a_full_disk_interrupts_pauses_and_loses_nothing() -> None:
    full = threads.event()
    with house(3, lambda: not full.is_set(), speed=10.0).running() as run:
        run.until(lambda: len(run.log.of(AttemptStarted)) == 1)
        full.set()
        run.until(lambda: run.saw(StateWord.PAUSED))
        assert run.ask(WriteNote("n1", "ann", "hello"))[0] is False
        full.clear()
        assert run.ask(Resume("r1", "ann")) == (True, "")
    assert_whole(run.log, run.trials)
    assert "disk_full" in [row.cause for row in run.log.of(AttemptFinished)]
    assert all(row.outcome is Outcome.RESPONDED for row in run.log.of(TrialFinished))
    assert run.log.of(Paused)[0].reason.startswith("disk full")


def test_delayed_rows_are_written_once_when_the_disk_refills() -> None:
    full, rooms = threads.event(), deque[bool]()
    with house(1, lambda: not full.is_set() and (not rooms or rooms.popleft()), speed=10.0).running() as run:
        run.until(lambda: len(run.log.of(AttemptStarted)) == 1)
        full.set()
        run.until(lambda: run.saw(StateWord.PAUSED))
        rooms.extend((True, False))  # there is room for what had to wait, and none to say that it had
        full.clear()
        for command in (Resume("r1", "ann"), Resume("r2", "bob")):
            run.conductor.enqueue(command)
        run.until(lambda: len(run.answers) == 2)
    rows = [repr(entry.record) for entry in run.log.rows if not isinstance(entry.record, Paused | Resumed)]
    assert len(rows) == len(set(rows))
    assert not rooms
    assert_whole(run.log, run.trials)


def test_text_of_a_person_is_stored_unchanged_or_refused() -> None:
    with house(1, speed=10.0).running() as run:
        run.until(lambda: len(run.log.of(AttemptStarted)) == 1)
        for command in (
            WriteNote("n1", "ann", "Jo\u0308rg:\r\n\tmore"),
            SetMark("m1", "ann", "x" * 10_001),
            Skip("s1", "ann", "\u3000"),
        ):
            run.conductor.enqueue(command)
        run.until(lambda: len(run.answers) == 3)
    assert [row.text for row in run.log.of(NoteWritten)] == ["Jörg:\n\tmore"]
    assert not run.log.of(MarkSet)
    assert run.answers["n1"] == (True, "")
    assert run.answers["m1"] == (False, "the label has 10,001 characters; the limit is 10,000. Shorten the text")
    assert run.answers["s1"] == (False, "a skip needs a reason")
