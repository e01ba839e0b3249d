"""Whatever comes, in whatever order: a trial ends, once; a log that ends anywhere is gone on with."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.devices.in_process.driver import InProcessOptions
from harness.model.bench import ObservationKind
from harness.model.effect import EffectCheck, StateWanted
from harness.model.observation import (
    DeviceState,
    Earcon,
    Intent,
    LinkBack,
    LinkLost,
    Observation,
    OperatorAnswer,
    Overrun,
    SpeechEnded,
    SpeechStarted,
    StateTold,
    Status,
    StimulusEnded,
    StimulusHeard,
    StimulusStarted,
    Transcript,
    Wake,
)
from harness.model.record import (
    AttemptFinished,
    AttemptStarted,
    EndReason,
    EngineStarted,
    Entry,
    Observed,
    RerunAsked,
    SessionFinished,
    TrialFinished,
    TrialStarted,
)
from harness.model.scenario import CloseDialogue, Evidence, RepeatUntil, RepromptRule
from harness.model.time import Stamp
from harness.model.trial import Outcome, Recognition
from harness.model.understanding import ExpectedFrame, Slot
from harness.session.query_trial import TrialMachine
from harness.session.resumption import Resumption, read_takes
from harness.session.take import Action, FreezeResponse, SayClosing, cause_code
from tests.known import known
from tests.unit.session.figures.rows import Rows, planned
from tests.unit.session.house import House, assert_whole, house
from tests.unit.session.material import TIMING, trial
from tests.written_sessions import written

pytestmark = pytest.mark.usefixtures("simulated_time")

SOURCES = st.sampled_from(["speaker", "mic", "dut_link", "other"])
PLAYS = st.sampled_from(["t1.r1.t1.a1", "t1.r1.t1.a2", "t1.r1.t1.a3", "t1.r1.t1.c1.1", "t1.r1.t1.c2.2", "unknown"])
STAMPS = st.builds(Stamp, st.floats(-20, 120), st.floats(0, 0.1))
TEXTS = st.sampled_from(["what time is it", "alexa what time is it", "nonsense", ""])
OBSERVATIONS: st.SearchStrategy[Observation] = st.one_of(
    st.builds(StimulusStarted, SOURCES, STAMPS, PLAYS),
    st.builds(StimulusEnded, SOURCES, STAMPS, PLAYS, st.booleans()),
    st.builds(StimulusHeard, SOURCES, STAMPS, PLAYS, st.just(0.9)),
    st.builds(SpeechStarted, SOURCES, STAMPS, st.just(-30.0)),
    st.builds(SpeechEnded, SOURCES, STAMPS),
    st.builds(Earcon, SOURCES, STAMPS, STAMPS, st.just(-30.0)),
    st.builds(Wake, SOURCES, STAMPS),
    st.builds(Transcript, SOURCES, STAMPS, TEXTS, st.booleans()),
    st.builds(Status, SOURCES, STAMPS, st.sampled_from(DeviceState)),
    st.builds(OperatorAnswer, SOURCES, STAMPS, st.sampled_from([True, False, None]), TEXTS),
    st.builds(LinkLost, SOURCES, STAMPS, st.just("gone")),
    st.builds(LinkBack, SOURCES, STAMPS),
    st.builds(StateTold, SOURCES, STAMPS, st.just("timer"), st.sampled_from(["", "10 minutes"])),
    st.builds(Intent, SOURCES, STAMPS, st.sampled_from(["", "a", "a#b"]), st.sampled_from([(), (("c", "1"),)])),
    st.builds(Overrun, SOURCES, STAMPS, st.just(3)),
)
TRIALS = st.builds(
    lambda evidence, close, attempts, until, effect, expects, responds: trial(
        evidence=evidence,
        close_dialogue=close,
        reprompt=RepromptRule(max_attempts=attempts, until=until),
        effect=effect,
        reports=(ObservationKind.TRANSCRIPT, ObservationKind.STATE, ObservationKind.INTENT),
        expects=expects,
        responds=responds or expects is None,
    ),
    st.sampled_from([Evidence.DEVICE, Evidence.OPERATOR, Evidence.NONE]),
    st.sampled_from([None, CloseDialogue(), CloseDialogue(say="never mind")]),
    st.integers(1, 4),
    st.sampled_from([None, RepeatUntil.RECOGNISED]),
    st.sampled_from(
        [
            None,
            EffectCheck("a timer", (StateWanted("timer"),)),
            EffectCheck("a timer", (StateWanted("timer", ""),), question="and?"),
            EffectCheck("a timer", question="and?"),
        ]
    ),
    st.sampled_from([None, ExpectedFrame(("a",)), ExpectedFrame(("a", "b"), (Slot("c", "1"),))]),
    st.booleans(),
)
STEPS = st.lists(st.tuples(st.floats(0, 4), st.one_of(OBSERVATIONS, st.none())), max_size=40)


@given(trial=TRIALS, steps=STEPS, attended=st.booleans(), obliging=st.booleans(), stores=st.booleans())
def test_a_trial_always_ends_once(trial, steps, attended, obliging, stores) -> None:  # type: ignore[no-untyped-def]
    machine = TrialMachine(trial, 1, TIMING, attended=attended, link_wait_s=30.0)
    now_s = 0.0
    actions: list[Action] = []

    def act(new: list[Action]) -> None:
        for action in new:
            actions.append(action)
            if isinstance(action, FreezeResponse) and stores:
                act(machine.response_frozen(now_s, transcribing=attended))
            elif isinstance(action, AttemptStarted) and obliging:
                act(machine.feed(StimulusStarted("speaker", Stamp(now_s), action.play_id), now_s))
                act(machine.feed(StimulusEnded("speaker", Stamp(now_s + 2.5), action.play_id), now_s))
            elif isinstance(action, SayClosing) and obliging:
                act(machine.feed(StimulusStarted("speaker", Stamp(now_s), action.play_id), now_s))
                act(machine.feed(StimulusEnded("speaker", Stamp(now_s), action.play_id), now_s))

    act(machine.begin(now_s))
    for later_s, observation in steps:
        now_s += later_s
        act(machine.tick(now_s) if observation is None else machine.feed(observation, now_s))
        assert machine.state.since_s <= now_s
    for _ in range(200):
        if machine.finished:
            break
        deadline_s = known(machine.deadline_s)
        now_s = max(now_s, deadline_s)
        act(machine.tick(now_s))
    assert machine.finished, machine.phase
    assert now_s < 6000

    verdicts: list[TrialFinished] = [action for action in actions if isinstance(action, TrialFinished)]
    started = [action.attempt for action in actions if isinstance(action, AttemptStarted)]
    rows: dict[int, AttemptFinished] = {
        action.attempt: action for action in actions if isinstance(action, AttemptFinished)
    }
    assert len(verdicts) == 1
    assert isinstance([action for action in actions if not isinstance(action, Observed)][-1], TrialFinished)
    assert started == list(range(1, len(started) + 1))
    assert sorted(rows) == started
    assert verdicts[0].attempts == len(started)
    counted = [row for row in rows.values() if row.outcome is not Outcome.INTERRUPTED]
    assert len(counted) <= trial.reprompt.max_attempts
    if verdicts[0].deciding_attempt is not None:
        deciding = rows[verdicts[0].deciding_attempt]
        assert deciding.outcome is verdicts[0].outcome
    for row in rows.values():
        assert row.outcome is not Outcome.RESPONDED or row.recognition in (Recognition.YES, Recognition.NOT_ASSESSED)
        assert (row.latency is None) == (row.length is None) or not row.outcome.answered


@pytest.fixture(scope="module")
def played() -> House:
    return house(4, options=InProcessOptions(mishear_share=0.4), speed=60.0).played()


@pytest.mark.parametrize("cut", [x / 12 for x in range(12)])
def test_a_log_cut_off_anywhere_is_completed(played: House, cut: float) -> None:
    rows = played.log.rows[: round(cut * (len(played.log.rows) - 1))]
    resumption = Resumption.of(rows)
    resumed = house(4, speed=60.0)
    resumed.log.rows.extend(rows)
    resumed.log.clips.update(played.log.clips)
    second = House(resumed.trials, resumed.log, resumed.clock)
    second.played()
    assert second.reason is EndReason.COMPLETED
    assert_whole(resumed.log, resumed.trials)
    engine_ended = [row for row in resumed.log.of(AttemptFinished) if cause_code(row.cause) == "engine_ended"]
    assert len(engine_ended) == len(resumption.interrupted_attempts())
    assert all(row.outcome is Outcome.INTERRUPTED for row in engine_ended)
    for take, verdict in resumption.finished.items():
        assert [row for row in resumed.log.of(TrialFinished) if (row.trial_id, row.take) == take] == [verdict]


def test_the_context_wait_is_respected_after_a_crash(played: House) -> None:
    start = next(n for n, entry in enumerate(played.log.rows) if isinstance(entry.record, AttemptStarted))
    resumed = house(4, speed=60.0)
    clock = resumed.clock
    resumed.log.rows.extend(
        Entry(e.seq, 1, clock.now_s(), clock.wall_s(), e.record) for e in played.log.rows[: start + 1]
    )
    second = House(resumed.trials, resumed.log, clock)
    crashed_s = clock.now_s()
    second.played()
    second_attempt = next(entry for entry in resumed.log.rows[start + 1 :] if isinstance(entry.record, AttemptStarted))
    assert second_attempt.record.attempt == 2
    assert second_attempt.at_s - crashed_s >= 4.5


@pytest.mark.parametrize(("boot_id", "since_s"), [("this boot", 100.0), ("another", 130.0)])
def test_the_wait_goes_by_the_monotonic_clock_and_begins_anew_after_a_boot(boot_id: str, since_s: float) -> None:
    sound = AttemptStarted("t", 1, 1, "p", "", 0.0, 0.0, 0.0, None)
    standing = Resumption.of(
        [Entry(1, 1, 90.0, 5000.0, EngineStarted(1, 1, "this boot", 1.0)), Entry(2, 1, 100.0, 0.0, sound)]
    )
    standing.start_clock(EngineStarted(2, 2, boot_id, 1.0), 130.0)
    assert standing.last_sound_s == since_s
    assert Resumption().last_sound_s is None


def test_started_take_is_resumed_first_and_reruns_last() -> None:
    standing = Resumption(takes=dict.fromkeys([("a", 1), ("b", 1), ("a", 2)]), begun={("b", 1)})
    assert standing.pending() == (("b", 1), ("a", 1), ("a", 2))
    assert standing.next_take("a") == 3
    assert standing.is_in_play("b")


def test_rows_of_takes_alone_say_what_is_left(tmp_path: Path) -> None:
    rows = Rows.of(planned(1), planned(2))
    rows.trial("time-1")
    rows.add(TrialStarted("time-2", 1))
    rows.add(RerunAsked("time-1", 2, "ann"))
    rows.add(SessionFinished(EndReason.STOPPED))
    standing, whole = read_takes(written(tmp_path / "session", rows)), Resumption.of(rows.entries)
    assert standing.pending() == whole.pending() == (("time-2", 1), ("time-1", 2))
    assert (standing.begun, standing.finished, standing.ended) == (whole.begun, whole.finished, EndReason.STOPPED)
