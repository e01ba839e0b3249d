"""Timing cases of a query trial, each one in simulated time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.model.bench import ObservationKind
from harness.model.feed import StateWord
from harness.model.observation import (
    DeviceState,
    HostStalled,
    Intent,
    OperatorAnswer,
    Overrun,
    Status,
    Transcript,
    Unread,
)
from harness.model.record import AttemptFinished, AttemptStarted, Observed, OperatorAsked, TrialFinished
from harness.model.scenario import CloseDialogue, Evidence, RecognitionRule, RepromptRule
from harness.model.stimulus import NoiseKind, NoiseSpec
from harness.model.time import Stamp
from harness.model.trial import EvidenceSource, Outcome, Recognition
from harness.session.disturbance import BLOCK_S
from harness.session.query_trial import TrialMachine
from harness.session.take import FreezeResponse, SayClosing, StopStimulus, cause_code, trial_verdict
from harness.transcripts.words import word_counts
from tests.known import known
from tests.unit.session.material import TIMING, trial
from tests.unit.session.rehearsal import Later, Rehearsal, loses, restarts, says, speech, wake

RIGHT, WRONG = "What time is it?", "what dime is it"
GOOD: list[Later] = [wake(), says(RIGHT), *speech(3.0, 4.5)]
UNREAD: Later = (1.0, Unread("dut_link", Stamp(1.0), "the line is too long"))
OTHER: Later = (1.0, Unread("other", Stamp(1.0), "the line is too long"))
TAIL = [wake(), says(RIGHT), *speech(2.2, 2.27)]


def gap(source: str, at_s: float) -> Later:
    return at_s, Overrun(source, Stamp(at_s), 1)


def stall(at_s: float, lasted_s: float) -> Later:
    """As known when it is over."""
    return at_s + lasted_s, HostStalled("host", Stamp(at_s), lasted_s, 4.0, 0.1)


BAD: list[Later] = [wake(), says(WRONG), *speech(3.0, 4.5)]


def rehearse(
    *after: list[Later], attended: bool = False, changes: dict[str, Any] | None = None, **more: Any
) -> Rehearsal:
    machine = TrialMachine(trial(**(changes or {})), 1, TIMING, attended=attended, link_wait_s=60.0)
    rehearsal = Rehearsal(machine, *after, **more)
    rehearsal.run()
    return rehearsal


def outcomes(rehearsal: Rehearsal) -> list[tuple[int, str]]:
    return [(number, row.outcome.value) for number, row in sorted(rehearsal.standing().items())]


CASES: list[tuple[str, list[list[Later]], list[tuple[int, str]], str]] = [
    ("at once", [GOOD], [(1, "responded")], "responded"),
    ("second time", [BAD, GOOD], [(1, "misheard"), (2, "responded")], "responded"),
    ("never", [BAD, BAD, BAD], [(1, "misheard"), (2, "misheard"), (3, "misheard")], "misheard"),
    ("no wake", [[], [], []], [(1, "no_wake"), (2, "no_wake"), (3, "no_wake")], "no_wake"),
    ("woke, silent", [[wake()], GOOD], [(1, "no_response"), (2, "responded")], "responded"),
    ("recognised but silent", [[wake(), says(RIGHT)], GOOD], [(1, "no_response"), (2, "responded")], "responded"),
    ("misheard and silent", [[wake(), says(WRONG)], GOOD], [(1, "misheard"), (2, "responded")], "responded"),
    ("no transcript", [[wake(), *speech(3, 4)]], [(1, "inconclusive")], "inconclusive"),
    ("transcript after the answer", [[*speech(3, 4), says(RIGHT, 5.5)]], [(1, "responded")], "responded"),
    ("empty transcript, then the words", [[says("", 2.2), *GOOD]], [(1, "responded")], "responded"),
    ("empty transcript", [[says(""), *speech(3, 4)], GOOD], [(1, "misheard"), (2, "responded")], "responded"),
    ("late, while waiting", [[wake(), says(RIGHT), *speech(11.0, 12.0)]], [(1, "late"), (2, "interrupted")], "late"),
    ("a line was lost", [[UNREAD]], [(1, "inconclusive")], "inconclusive"),
    ("another's line was lost", [[OTHER], GOOD], [(1, "no_wake"), (2, "responded")], "responded"),
    ("a line was lost, and it answered", [[*GOOD, UNREAD]], [(1, "responded")], "responded"),
    ("a gap at its onset", [[*GOOD, gap("mic", 3.4)], GOOD], [(1, "interrupted"), (2, "responded")], "responded"),
    ("a gap elsewhere", [[*GOOD, gap("mic", 1.0)]], [(1, "responded")], "responded"),
    ("a gap of another's", [[*GOOD, gap("other", 3.0)]], [(1, "responded")], "responded"),
    ("our own tail", [[gap("speaker", 1.5), *TAIL], GOOD], [(1, "interrupted"), (2, "responded")], "responded"),
    ("late blocks, and an answer", [[gap("speaker", 1.5), *GOOD]], [(1, "responded")], "responded"),
    ("restart", [[wake(), restarts(1.5)], GOOD], [(1, "interrupted"), (2, "responded")], "responded"),
    ("sound lost", [loses("speaker", 1.0, 9.0), GOOD], [(1, "interrupted"), (2, "responded")], "responded"),
    ("ear lost", [loses("mic", 3.0, 9.0), GOOD], [(1, "interrupted"), (2, "responded")], "responded"),
    ("another's link", [[*GOOD, *loses("other", 1.0, 2.0)]], [(1, "responded")], "responded"),
    ("answer after the next query", [[wake(), says(RIGHT)], [wake(), says(RIGHT), *speech(2.5, 3.0)]],
     [(1, "no_response"), (2, "responded")], "responded"),
    ("a stall, and silent", [[wake(), stall(2.5, 0.8)], GOOD], [(1, "interrupted"), (2, "responded")], "responded"),
    ("a lost block, and silent", [[wake(), gap("mic", 3.0)], GOOD],
     [(1, "no_response"), (2, "responded")], "responded"),
    ("lost blocks, and silent", [[wake(), *(gap("mic", 3.0 + part / 10) for part in range(6))], GOOD],
     [(1, "interrupted"), (2, "responded")], "responded"),
    ("a stall, and late", [[wake(), says(RIGHT), stall(3.0, 0.5), *speech(11.0, 12.0)], [], GOOD],
     [(1, "interrupted"), (2, "interrupted"), (3, "responded")], "responded"),
    ("a stall after the last moment of an answer", [[wake(), stall(10.1, 0.5)], GOOD],
     [(1, "no_response"), (2, "responded")], "responded"),
    ("a stall, and misheard", [[*BAD, stall(2.5, 0.2)], GOOD], [(1, "misheard"), (2, "responded")], "responded"),
    ("a stall, and no wake", [[stall(2.5, 0.2)], GOOD], [(1, "no_wake"), (2, "responded")], "responded"),
    ("onset within the guard", [[wake(), says(RIGHT), *speech(1.95, 4)]], [(1, "responded")], "responded"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("after", "attempts", "verdict"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_each_course_of_a_query_trial_has_its_outcome(
    after: list[list[Later]], attempts: list[tuple[int, str]], verdict: str
) -> None:
    rehearsal = rehearse(*after)
    assert outcomes(rehearsal) == attempts
    assert rehearsal.verdict.outcome.value == verdict
    assert rehearsal.verdict.attempts == len(attempts)


@pytest.mark.parametrize("answers_after_s", [x / 20 for x in range(2, 158)])
def test_latency_is_from_the_end_of_the_query_to_the_first_speech(answers_after_s: float) -> None:
    start_s = TIMING.query_end_s + answers_after_s
    row = rehearse([wake(), says(RIGHT, 2.2), *speech(start_s, start_s + 1.25)]).standing()[1]
    assert row.outcome is Outcome.RESPONDED
    assert row.latency is not None
    assert row.length is not None
    assert row.latency.value_s == pytest.approx(answers_after_s)
    assert row.latency.error_s == pytest.approx(0.011)
    assert row.length.value_s == pytest.approx(1.25)
    assert row.length.error_s == pytest.approx(0.03)
    assert known(row.wake_delay).value_s == pytest.approx(0.15)


@pytest.mark.parametrize(
    ("at_s", "reason", "latency_error_s", "delay_error_s"),
    [
        (0.2, "the host stalled for 300 ms", 0.011, 0.012),  # before both
        (0.9, "the host stalled for 300 ms", 0.011, 0.312),
        (2.2, "the host stalled for 300 ms", 0.311, 0.012),
        (3.2, "", 0.011, 0.012),  # after the response has begun
    ],
)
def test_a_stall_widens_the_error_of_times_in_which_it_lies(
    at_s: float, reason: str, latency_error_s: float, delay_error_s: float
) -> None:
    row = rehearse([*GOOD, stall(at_s, 0.3)]).standing()[1]
    assert row.outcome is Outcome.RESPONDED
    assert row.disturbed == reason
    assert known(row.latency).error_s == pytest.approx(latency_error_s)
    assert known(row.wake_delay).error_s == pytest.approx(delay_error_s, abs=0.01)


def test_a_response_that_a_stall_may_have_put_after_the_query_is_asked_for_again() -> None:
    answer = [wake(), says(RIGHT), *speech(3.0, 4.0)]
    first, second = rehearse([*answer, stall(2.3, 2.0)], GOOD).standing().values()
    assert (first.outcome, first.cause) == (Outcome.INTERRUPTED, "host_disturbed: the host stalled for 2.00 s")
    assert (second.outcome, second.disturbed) == (Outcome.RESPONDED, "")


def test_late_blocks_widen_the_error_of_what_follows() -> None:
    speaker = [gap("speaker", 0.3 + part / 10) for part in range(5)]
    row = rehearse([*GOOD, *speaker, gap("mic", 2.5)]).standing()[1]
    assert row.disturbed == "5 blocks of speaker were late or lost; 1 block of mic was late or lost"
    assert known(row.latency).error_s == pytest.approx(0.011 + 6 * BLOCK_S)
    assert known(row.wake_delay).error_s < 0.02 + 5 * BLOCK_S
    assert rehearse([*GOOD, *speaker]).standing()[1].disturbed == ""  # so little spoils no time


def test_late_silence_after_the_stimulus_disturbs_nothing() -> None:
    row = rehearse([wake(), says(RIGHT), gap("speaker", 4.0), *speech(5.0, 6.0)]).standing()[1]
    assert row.disturbed == ""


def test_an_attempt_that_is_always_disturbed_is_given_up() -> None:
    rehearsal = rehearse(*[[wake(), stall(2.5, 0.8)]] * 20)
    assert rehearsal.verdict.outcome is Outcome.INTERRUPTED
    assert rehearsal.verdict.cause.endswith("host_disturbed: the host stalled for 800 ms")


def test_a_stimulus_found_on_the_recording_moves_every_time() -> None:
    row = rehearse(GOOD, heard=True).standing()[1]
    assert row.latency is not None
    assert row.latency.value_s == pytest.approx(1.0 - 0.03)
    assert row.latency.error_s == pytest.approx(0.012)


@pytest.mark.parametrize("pause_ms", range(50, 3000, 50))
def test_pauses_up_to_the_end_silence_belong_to_the_response(pause_ms: int) -> None:
    second_s = 4.0 + pause_ms / 1000
    row = rehearse([wake(), says(RIGHT), *speech(3.0, 4.0), *speech(second_s, second_s + 1)]).standing()[1]
    whole = pause_ms <= RepromptRule().end_silence_ms
    assert known(row.length).value_s == pytest.approx(second_s + 1 - 3.0 if whole else 1.0)


def test_speech_before_the_query_is_talked_over_and_no_response() -> None:
    rehearsal = rehearse([*speech(0.5, 1.2), *GOOD])
    row = rehearsal.standing()[1]
    assert known(row.latency).value_s == pytest.approx(1.0)


def test_speech_that_goes_on_past_the_query_is_the_response_with_negative_latency() -> None:
    row = rehearse([wake(), says(RIGHT), *speech(1.4, 3.5)]).standing()[1]
    assert row.outcome is Outcome.RESPONDED
    assert known(row.latency).value_s == pytest.approx(-0.6)
    assert cause_code(row.cause) == "talked_over"


def test_speech_from_before_the_call_is_no_response_however_long_it_goes_on() -> None:
    row = rehearse([wake(), says(RIGHT), *speech(0.2, 3.5)]).standing()[1]
    assert (row.outcome, row.latency) == (Outcome.NO_RESPONSE, None)


def test_speech_whose_end_nobody_heard_is_not_the_next_attempts_response() -> None:
    answer = [wake(), says(RIGHT), speech(3.0, 4.0)[0], *loses("mic", 3.5, 9.0)]
    rows = rehearse(answer, []).standing()
    assert (rows[1].outcome, rows[2].outcome, rows[2].latency) == (Outcome.INTERRUPTED, Outcome.NO_WAKE, None)


def test_a_response_without_an_end_is_cut() -> None:
    rehearsal = rehearse([wake(), says(RIGHT), speech(3.0, 999.0)[0]])
    (_, freeze), *_ = rehearsal.of(FreezeResponse)
    assert isinstance(freeze, FreezeResponse)
    assert freeze.truncated
    row = rehearsal.standing()[1]
    assert known(row.length).value_s == pytest.approx(30.0)
    assert cause_code(row.cause) == "truncated"


@pytest.mark.parametrize(("stops_s", "ends_s"), [(40.0, 40.0), (999.0, 63.02)])
def test_a_trial_waits_for_a_cut_answer_to_stop(stops_s: float, ends_s: float) -> None:
    """The next query would be played over it. The wait is limited by `response_max_s`."""
    rehearsal = rehearse([wake(), says(RIGHT), *speech(3.0, stops_s)])
    assert rehearsal.standing()[1].outcome is Outcome.RESPONDED
    ((finished_s, _),) = rehearsal.of(TrialFinished)
    assert finished_s - rehearsal.starts[1] == pytest.approx(ends_s, abs=0.2)


def test_the_context_wait_counts_from_the_last_sound() -> None:
    rehearsal = rehearse(BAD, [*BAD, *speech(7.0, 8.0)], GOOD, changes={"reprompt": RepromptRule(context_wait_s=12.0)})
    waits = [action.waited_s for _, action in rehearsal.of(AttemptStarted) if isinstance(action, AttemptStarted)]
    assert waits == [None, pytest.approx(12.0, abs=1e-6), pytest.approx(12.0, abs=1e-6)]
    assert rehearsal.starts[2] - rehearsal.starts[1] == pytest.approx(4.5 + 12.0 + 0.02)
    assert rehearsal.starts[3] - rehearsal.starts[2] == pytest.approx(8.0 + 12.0 + 0.02)


@pytest.mark.parametrize("begins_s", [8.1 + x / 10 for x in range(38)])
def test_a_late_answer_belongs_to_the_attempt_that_asked(begins_s: float) -> None:
    """From shortly before the time limit until the next attempt's query ends (attempt 2 starts 10.32 s after 1)."""
    rehearsal = rehearse([wake(), says(RIGHT), *speech(begins_s, begins_s + 1)], [])
    standing = rehearsal.standing()
    late = begins_s - TIMING.query_end_s > RepromptRule().response_timeout_s
    assert standing[1].outcome is (Outcome.LATE if late else Outcome.RESPONDED)
    assert known(standing[1].latency).value_s == pytest.approx(begins_s - TIMING.query_end_s)
    if 2 in standing:
        assert standing[2].outcome is Outcome.INTERRUPTED
        assert standing[2].cause == "late_answer: of attempt 1"
        assert rehearsal.of(StopStimulus)
    assert rehearsal.verdict.deciding_attempt == 1


@pytest.mark.parametrize(("at_s", "woken"), [(-5.0, False), (-0.01, False), (0.9, True)])
def test_a_wake_event_from_before_the_sound_is_not_its_own(at_s: float, woken: bool) -> None:
    # The device also wakes between the request for the sound and its start, which is reported after that.
    rehearsal = rehearse([(0.3, wake(at_s)[1])], changes={"reprompt": RepromptRule(max_attempts=1)})
    assert rehearsal.verdict.outcome is (Outcome.NO_RESPONSE if woken else Outcome.NO_WAKE)
    delay = rehearsal.standing()[1].wake_delay
    assert (delay is not None) is woken


@pytest.mark.parametrize("begins_s", [11.6, 16.5, 19.0])
def test_an_answer_to_an_interrupted_attempt_is_not_the_next_ones(begins_s: float) -> None:
    cut = [wake(), *loses("dut_link", 9.9, 10.6), *speech(begins_s, begins_s + 1.3)]
    rehearsal = rehearse(cut, [], GOOD)
    heard_in_wait = begins_s < 10.6 + RepromptRule().context_wait_s
    last_sound_s = rehearsal.starts[1] + begins_s + 1.3
    if heard_in_wait:
        assert rehearsal.starts[2] >= last_sound_s + RepromptRule().context_wait_s
    assert {number: row.outcome for number, row in rehearsal.standing().items()} == {
        1: Outcome.INTERRUPTED,
        2: Outcome.NO_WAKE if heard_in_wait else Outcome.INTERRUPTED,
        3: Outcome.RESPONDED,
    }


def test_a_late_answer_with_a_gap_at_its_onset_is_not_a_response() -> None:
    rehearsal = rehearse([wake(), says(RIGHT), gap("mic", 11.3), *speech(11.4, 12.4)], [], GOOD)
    assert {number: row.outcome for number, row in rehearsal.standing().items()} == {
        1: Outcome.INTERRUPTED,
        2: Outcome.INTERRUPTED,
        3: Outcome.RESPONDED,
    }


def test_after_a_query_was_cut_by_a_late_answer_the_trial_keeps_the_context_wait() -> None:
    rehearsal = rehearse([wake(), says(RIGHT), *speech(11.4, 12.4)], [wake()])
    assert rehearsal.verdict.outcome is Outcome.LATE
    ((ends_s, _),) = rehearsal.of(TrialFinished)
    assert ends_s >= rehearsal.starts[1] + 12.4 + RepromptRule().context_wait_s


def test_a_late_transcript_changes_the_row_of_its_attempt() -> None:
    rehearsal = rehearse([wake(), says(RIGHT, 10.4)], GOOD)
    assert [(row.attempt, row.recognition) for row in rehearsal.rows()] == [
        (1, Recognition.UNKNOWN),
        (1, Recognition.YES),
        (2, Recognition.YES),
    ]


@pytest.mark.parametrize(
    ("at_s", "woken", "credited"),
    [
        (0.3, None, None),  # of the trial before: no word of this query was said yet
        (0.85, 0.8, None),
        (1.5, None, None),  # the device has not woken to it
        (1.5, 0.8, 1),  # an early end of the query, as the device hears it
        (2.2, None, 1),  # its wake event may have been lost
    ],
)
def test_a_transcript_that_cannot_be_of_the_first_attempt(
    at_s: float, woken: float | None, credited: int | None
) -> None:
    late = says(RIGHT, at_s)
    rehearsal = rehearse(
        [*([wake(woken)] if woken else []), late, *speech(3, 4)], changes={"reprompt": RepromptRule(max_attempts=1)}
    )
    credits = [action for _, action in rehearsal.actions if isinstance(action, Observed)]
    assert [credit.attempt for credit in credits if isinstance(credit.observation, Transcript)] == [credited]
    assert (rehearsal.verdict.outcome is Outcome.RESPONDED) is (credited == 1)


@pytest.mark.parametrize("reports", [(ObservationKind.TRANSCRIPT,), (ObservationKind.WAKE, ObservationKind.TRANSCRIPT)])
def test_a_right_transcript_of_an_attempt_before_does_not_make_the_next_one_right(
    reports: tuple[ObservationKind, ...],
) -> None:
    rehearsal = rehearse(BAD, [says(RIGHT, 0.2), *BAD], changes={"reports": reports})
    assert [rehearsal.standing()[number].recognition for number in (1, 2)] == [Recognition.YES, Recognition.NO]
    assert rehearsal.verdict.deciding_attempt == 1


def test_a_transcript_from_before_the_previous_query_is_of_no_attempt() -> None:
    long_ago: Later = (0.1, Transcript("dut_link", Stamp(-40.0, 0.01), RIGHT))
    rehearsal = rehearse(BAD, [long_ago, *BAD], changes={"reprompt": RepromptRule(max_attempts=2)})
    credits = [row for _, row in rehearsal.actions if isinstance(row, Observed)]
    words = [row for row in credits if isinstance(row.observation, Transcript)]
    assert [row.attempt for row in words] == [1, None, 2]
    assert rehearsal.standing()[1].recognition is Recognition.NO


def test_a_transcript_before_the_inconclusive_trial_is_over_still_decides_it() -> None:
    changes = {"close_dialogue": CloseDialogue(wait_s=8.0)}
    rehearsal = rehearse([wake(), *speech(3, 4), says(RIGHT, 9.0)], changes=changes)
    assert [row.outcome for row in rehearsal.rows()] == [Outcome.INCONCLUSIVE, Outcome.RESPONDED]
    assert rehearsal.verdict.outcome is Outcome.RESPONDED


def test_interruptions_do_not_count_as_attempts_but_are_limited() -> None:
    some = rehearse([restarts(1.0)], [restarts(1.0)], BAD, BAD, GOOD)
    assert some.verdict.outcome is Outcome.RESPONDED
    assert some.verdict.attempts == 5
    rehearsal = rehearse(*[[restarts(1.0)]] * 9)
    assert rehearsal.verdict.outcome is Outcome.INTERRUPTED
    assert rehearsal.verdict.attempts == RepromptRule().max_interruptions + 1


def test_a_link_that_does_not_come_back_ends_the_trial() -> None:
    rehearsal = rehearse([loses("speaker", 1.0, 999.0)[0]])
    assert rehearsal.verdict.outcome is Outcome.INTERRUPTED
    assert cause_code(rehearsal.verdict.cause) == "link_lost"


@pytest.mark.parametrize(
    ("recognised", "heard", "outcome", "recognition"),
    [
        (True, "", Outcome.RESPONDED, Recognition.YES),
        (False, "", Outcome.MISHEARD, Recognition.NO),
        (None, "", Outcome.INCONCLUSIVE, Recognition.UNKNOWN),
        (None, "what time is it", Outcome.RESPONDED, Recognition.YES),
        (None, "something else", Outcome.MISHEARD, Recognition.NO),
    ],
)
def test_the_operator_is_asked_about_a_black_box(
    recognised: bool | None, heard: str, outcome: Outcome, recognition: Recognition
) -> None:
    def operator(attempt: int, now_s: float) -> list[tuple[float, Any]]:
        return [(now_s + 7, OperatorAnswer("ann", Stamp(now_s + 7), recognised, heard))]

    black_box = {"evidence": Evidence.OPERATOR, "connection": "", "reports": ()}
    rehearsal = rehearse(speech(3, 4), attended=True, changes=black_box, operator=operator)
    row = rehearsal.rows()[0]
    assert (row.outcome, row.recognition, row.evidence) == (outcome, recognition, EvidenceSource.OPERATOR)
    assert len(rehearsal.of(OperatorAsked)) == 1


def test_missing_or_silent_operator_is_inconclusive() -> None:
    black_box = {"evidence": Evidence.OPERATOR, "connection": "", "reports": ()}
    alone = rehearse(speech(3, 4), changes=black_box)
    assert (alone.rows()[0].outcome, alone.rows()[0].cause) == (Outcome.INCONCLUSIVE, "nobody_to_ask")
    silent = rehearse(speech(3, 4), attended=True, changes=black_box)
    assert (silent.rows()[0].outcome, silent.rows()[0].cause) == (Outcome.INCONCLUSIVE, "operator_silent")


def test_not_assessed_counts_every_response() -> None:
    row = rehearse([says(WRONG), *speech(3, 4)], changes={"evidence": Evidence.NONE}).standing()[1]
    assert (row.outcome, row.recognition) == (Outcome.RESPONDED, Recognition.NOT_ASSESSED)


def test_closing_words_are_said_after_each_attempt_and_before_the_verdict() -> None:
    rehearsal = rehearse(BAD, GOOD, changes={"close_dialogue": CloseDialogue(say="never mind")})
    kinds = [type(action).__name__ for _, action in rehearsal.actions if not isinstance(action, Observed)]
    assert kinds == ["AttemptStarted", "FreezeResponse", "AttemptFinished", "SayClosing"] * 2 + ["TrialFinished"]


def test_only_the_first_response_of_a_dialogue_is_kept() -> None:
    more = [*GOOD, *speech(7.0, 9.0), *speech(12.0, 13.0)]
    rehearsal = rehearse(more, changes={"close_dialogue": CloseDialogue(wait_s=6.0)})
    assert len(rehearsal.of(FreezeResponse)) == 1
    assert rehearsal.standing()[1].length == rehearse(GOOD).standing()[1].length
    assert rehearsal.actions[-1][0] == pytest.approx(rehearsal.starts[1] + 13.0 + 6.0)


@pytest.mark.parametrize(("takes_s", "waits_s"), [(0.5, 0.5), (3.0, 3.0), (4.9, 4.9), (60.0, 5.0)])
def test_the_next_sound_waits_for_our_transcription_but_not_for_long(takes_s: float, waits_s: float) -> None:
    changes = {"close_dialogue": CloseDialogue(say="never mind")}
    rehearsal = rehearse(GOOD, changes=changes, transcribing_s=takes_s)
    frozen_s = rehearsal.of(FreezeResponse)[0][0]
    assert rehearsal.of(SayClosing)[0][0] - frozen_s == pytest.approx(waits_s)


def test_attempt_numbers_continue_after_an_earlier_run() -> None:
    before = [rehearse(BAD).standing()[1], replace(rehearse(BAD).standing()[1], attempt=2)]
    machine = TrialMachine(trial(), 1, TIMING, earlier_attempts=before)
    rehearsal = Rehearsal(machine, [], [], BAD)
    assert rehearsal.run().outcome is Outcome.MISHEARD
    assert list(rehearsal.standing()) == [3]


def test_pausing_holds_the_next_attempt_and_skipping_ends_the_trial() -> None:
    machine = TrialMachine(trial(), 1, TIMING)
    machine.hold()
    assert machine.begin(10.0) == []
    assert machine.is_waiting_in_pause
    assert machine.deadline_s is None
    assert machine.tick(500.0) == []
    (start,) = machine.release(600.0)
    assert isinstance(start, AttemptStarted)
    assert machine.state.word is StateWord.PLAYING
    stop, attempt, verdict = machine.skip(601.0, "the phone rang")
    assert isinstance(stop, StopStimulus)
    assert (attempt.outcome, verdict.outcome) == (Outcome.SKIPPED, Outcome.SKIPPED)  # type: ignore[union-attr]
    assert verdict.cause == "operator: the phone rang"  # type: ignore[union-attr]
    assert machine.skip(602.0, "again") == []


def test_stopping_leaves_the_trial_open() -> None:
    machine = TrialMachine(trial(), 1, TIMING)
    machine.begin(10.0)
    rows = [action for action in machine.stop(11.0, "stopped") if isinstance(action, AttemptFinished)]
    assert [type(row) for row in rows] == [AttemptFinished]
    assert trial_verdict(RepromptRule(), {1: rows[0]}) is None  # type: ignore[dict-item]


def test_the_log_counts_errors_as_the_scorer_does() -> None:
    # The least distance is 5, each word taken for another; the scorer keeps two words, and counts 6.
    changes = {"reference": "dim the lamp in here", "recognised": RecognitionRule(wer=1.0)}
    rows = rehearse([wake(), says("in here we are now"), *speech(3, 4)], changes=changes).standing()
    assert (rows[1].errors, rows[1].words, rows[1].outcome) == (6, 5, Outcome.MISHEARD)
    assert rows[1].cause == "words_differ: 6 errors in 5 words"
    counts = word_counts(["dim", "the", "lamp", "in", "here"], (rows[1].heard or "").split())
    assert (counts.deletions, counts.insertions, counts.substitutions) == (3, 3, 0)


def test_another_devices_words_are_no_evidence() -> None:
    rehearsal = rehearse([(2.2, Transcript("other", Stamp(2.2), RIGHT)), *BAD], GOOD)
    assert outcomes(rehearsal) == [(1, "misheard"), (2, "responded")]
    other = [a for _, a in rehearsal.of(Observed) if isinstance(a, Observed) and a.observation.source == "other"]
    assert [credit.attempt for credit in other] == [None]
    assert not any(isinstance(credit.observation, Status) for credit in other)


@pytest.mark.parametrize(("state", "closings"), [(DeviceState.IDLE, 0), (DeviceState.DIALOGUE_OPEN, 1)])
def test_a_device_that_says_that_it_is_idle_has_no_dialogue_to_close(state: DeviceState, closings: int) -> None:
    reports_it: Later = (4.6, Status("dut_link", Stamp(4.6), state))
    rehearsal = rehearse([*GOOD, reports_it], changes={"close_dialogue": CloseDialogue(say="never mind")})
    assert len(rehearsal.of(SayClosing)) == closings
    assert rehearsal.verdict.outcome is Outcome.RESPONDED


@pytest.mark.parametrize("state", [DeviceState.THINKING, DeviceState.SPEAKING])
def test_a_device_that_still_answers_is_not_talked_into_silence(state: DeviceState) -> None:
    answers: Later = (2.5, Status("dut_link", Stamp(2.5), state))
    late = [wake(), says(RIGHT), answers, *speech(12.0, 13.0)]
    rehearsal = rehearse(late, changes={"close_dialogue": CloseDialogue(say="never mind")})
    assert rehearsal.verdict.outcome is Outcome.LATE
    assert [at_s for at_s, _ in rehearsal.of(SayClosing) if at_s < rehearsal.starts[1] + 13.0] == []


@pytest.mark.parametrize("state", [DeviceState.THINKING, DeviceState.SPEAKING])
def test_a_dialogue_that_stays_open_after_an_unheard_answer_is_closed(state: DeviceState) -> None:
    answers: Later = (2.5, Status("dut_link", Stamp(2.5), state))
    still_open: Later = (13.0, Status("dut_link", Stamp(13.0), DeviceState.DIALOGUE_OPEN))
    changes = {"close_dialogue": CloseDialogue(say="never mind")}
    rehearsal = rehearse([wake(), says(RIGHT), answers, still_open], GOOD, changes=changes)
    closings = [at_s - rehearsal.starts[1] for at_s, _ in rehearsal.of(SayClosing) if at_s < rehearsal.starts[2]]
    assert len(closings) == 1
    assert closings[0] >= 13.0


@pytest.mark.parametrize(
    ("back", "min_s", "max_s"),
    [
        ([restarts(40.0)], 40.0, 60.0),
        ([], 60.0, 75.0),  # a last will that came after the new start holds nothing up for long
    ],
)
def test_a_device_that_is_gone_is_waited_for(back: list[Later], min_s: float, max_s: float) -> None:
    gone: Later = (2.5, Status("dut_link", Stamp(2.5), DeviceState.GONE))
    rehearsal = rehearse([wake(), gone, *back], GOOD)
    assert outcomes(rehearsal) == [(1, "interrupted"), (2, "responded")]
    assert min_s < rehearsal.starts[2] - rehearsal.starts[1] < max_s


def test_noise_that_is_lost_interrupts_the_attempt() -> None:
    noise = NoiseSpec(NoiseKind.PINK, None, level_dbfs=-40.0, positions=("left",), players=(("left_speaker", 0.0),))
    changes = {"recipe": replace(trial().recipe, noise=noise)}
    rehearsal = rehearse([wake(), *loses("left_speaker", 1.0, 9.0)], GOOD, changes=changes)
    assert outcomes(rehearsal) == [(1, "interrupted"), (2, "responded")]


def test_a_device_that_goes_before_its_transcript_comes_interrupts_the_attempt() -> None:
    gone: Later = (6.0, Status("dut_link", Stamp(6.0), DeviceState.GONE))
    rehearsal = rehearse([wake(), *speech(3.0, 4.0), gone, restarts(8.0)], GOOD)
    assert outcomes(rehearsal) == [(1, "interrupted"), (2, "responded")]


def test_without_a_dialogue_to_close_the_trial_ends_when_the_transcription_is_there() -> None:
    rehearsal = rehearse(GOOD, transcribing_s=2.0)
    frozen_s = rehearsal.of(FreezeResponse)[0][0]
    assert rehearsal.actions[-1][0] - frozen_s == pytest.approx(2.0)


def test_a_query_is_not_repeated_while_the_device_says_that_it_thinks() -> None:
    thinks: Later = (2.5, Status("dut_link", Stamp(2.5), DeviceState.THINKING))
    idle: Later = (23.0, Status("dut_link", Stamp(23.0), DeviceState.IDLE))
    late = rehearse([wake(), says(RIGHT), thinks, *speech(19.0, 20.0), idle])
    assert outcomes(late) == [(1, "late")]
    never = rehearse([wake(), says(RIGHT), thinks], GOOD)
    assert outcomes(never) == [(1, "no_response"), (2, "responded")]


NOTHING: Later = (3.0, Intent("dut_link", Stamp(3.0), ""))
SPEAKS: Later = (4.0, Status("dut_link", Stamp(4.0), DeviceState.SPEAKING))


@pytest.mark.parametrize(
    ("evidence", "ends_s"),
    [
        ([NOTHING], 3.0),  # OVOS reports no state after that
        ([NOTHING, *speech(4.0, 5.0)], 5.0),
        ([SPEAKS, *speech(4.1, 5.5)], 5.5),  # Home Assistant reports no end with wyoming-satellite 1.0
    ],
)
def test_stuck_thinking_state_delays_a_query_only_until_quiet(evidence: list[Later], ends_s: float) -> None:
    thinks: Later = (2.5, Status("dut_link", Stamp(2.5), DeviceState.THINKING))
    rehearsal = rehearse([wake(), says(WRONG), thinks, *evidence], GOOD)
    assert outcomes(rehearsal)[-1] == (2, "responded")
    assert ends_s + 5.0 - 0.1 <= rehearsal.starts[2] - rehearsal.starts[1] < 13.0


def test_the_screen_shows_what_a_query_waits_for() -> None:
    thinks: Later = (2.5, Status("dut_link", Stamp(2.5), DeviceState.THINKING))
    machine = TrialMachine(trial(), 1, TIMING)
    rehearsal = Rehearsal(machine, [wake(), says(WRONG), thinks, (20.0, NOTHING[1])], GOOD)
    reasons: dict[str, None] = {}
    act = rehearsal._act

    def noted(now_s: float, actions: Any) -> None:
        act(now_s, actions)
        if machine.state.word is StateWord.WAITING:
            reasons[machine.state.reason] = None

    rehearsal._act = noted  # type: ignore[method-assign]
    rehearsal.run()
    assert "the device reports that it is thinking" in reasons


def test_a_dialogue_that_ends_by_itself_is_not_closed_with_words() -> None:
    opens: Later = (4.6, Status("dut_link", Stamp(4.6), DeviceState.DIALOGUE_OPEN))
    idle: Later = (6.0, Status("dut_link", Stamp(6.0), DeviceState.IDLE))
    changes = {"close_dialogue": CloseDialogue(say="never mind")}
    rehearsal = rehearse([*GOOD, opens, idle], changes=changes, transcribing_s=4.0)
    assert not rehearsal.of(SayClosing)
    assert rehearsal.verdict.outcome is Outcome.RESPONDED


@pytest.mark.parametrize("cause", ["stopped: the engine was asked to end", "engine_ended: during the attempt"])
def test_the_end_of_an_engine_uses_up_no_interruption(cause: str) -> None:
    row = AttemptFinished("m", 1, 1, Outcome.INTERRUPTED, Recognition.UNKNOWN, EvidenceSource.NONE, cause=cause)
    assert trial_verdict(RepromptRule(max_attempts=1, max_interruptions=0), {1: row}) is None
