"""Figures of a session from its rows."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.judgment import Category, JudgmentStatus
from harness.model.numbers import counted
from harness.model.observation import (
    DeviceDescribed,
    DeviceState,
    HostStalled,
    LinkBack,
    LinkLost,
    ListeningProved,
    LogLine,
    Overrun,
    Proof,
    Status,
)
from harness.model.record import (
    AttemptFinished,
    AttemptStarted,
    EndReason,
    EngineStarted,
    FaultMet,
    JudgmentGiven,
    NoteWritten,
    Observed,
    Paused,
    PowerSwitched,
    RerunAsked,
    Resumed,
    SessionFinished,
    TrialFinished,
    TrialStarted,
)
from harness.model.scenario import Limits, Stopping
from harness.model.time import MeasuredDuration, Stamp
from harness.model.transcript import WordCounts
from harness.model.trial import LIFE_CHECK_BY, NOT_PROVEN, EvidenceSource, Outcome, Recognition
from harness.session.figures.connections import DeviceConnection
from harness.session.figures.limits import check_limits, limits_so_far
from harness.session.figures.progress import SessionFigures, Totals, totals_of
from harness.session.figures.trials import TrialState
from harness.session.summary import disturbance_lines, end_of_session, interrupted_lines, limit_lines, verdict_lines
from harness.session.wording import RowWriter
from harness.statistics.intervals import Share, latency_figures
from harness.statistics.verdict import DeclaredLimit, LimitVerdict, unmet_limits_text
from harness.transcripts.recognition import GroupTranscripts
from harness.wake.wake_progress import DeviceWake, WakeProgress
from tests.known import known
from tests.unit.session.figures.rows import Rows, clip_of, judgment_on, planned
from tests.written_sessions import progress_of


def test_empty_session_has_no_rates() -> None:
    totals = SessionFigures().snapshot().totals
    assert totals.recognised.value is None
    assert totals.recognised.interval is None
    assert totals.latency.p50 is None
    assert SessionFigures().snapshot().eta_s is None


def test_a_trial_goes_from_planned_to_running_to_finished() -> None:
    rows = Rows.of(planned(1), planned(2))
    assert [trial.state for trial in progress_of(rows).trials] == [TrialState.PLANNED, TrialState.PLANNED]
    rows.add(TrialStarted("time-1", 1))
    rows.add(AttemptStarted("time-1", 1, 1, "p", "c", 0, 1, 1, None))
    running = progress_of(rows)
    assert running.trials[0].state is TrialState.RUNNING
    assert running.running == "time-1"
    rows.attempt("time-1")
    rows.add(TrialFinished("time-1", 1, Outcome.RESPONDED, 1, 1))
    done = progress_of(rows)
    assert done.trials[0].state is TrialState.FINISHED
    assert done.running is None
    assert (done.totals.planned, done.totals.finished) == (2, 1)


def test_shares_are_over_decided_trials_only() -> None:
    rows = Rows.of(*(planned(n) for n in range(1, 10)))
    rows.trial("time-1")
    rows.trial("time-2", attempts=2)
    rows.trial("time-3", Outcome.MISHEARD, Recognition.NO, attempts=3, latency_s=None)
    rows.trial("time-4", Outcome.NO_RESPONSE, Recognition.UNKNOWN, latency_s=None)
    rows.trial("time-5", Outcome.INCONCLUSIVE, Recognition.UNKNOWN)
    rows.trial("time-6", Outcome.INTERRUPTED, Recognition.UNKNOWN)
    rows.trial("time-7", Outcome.RESPONDED, Recognition.NOT_ASSESSED, latency_s=3.0)
    rows.add(TrialFinished("time-8", 1, Outcome.SKIPPED, 0, None))
    totals = progress_of(rows).totals
    assert (totals.recognised.count, totals.recognised.total) == (2, 4)
    assert (totals.first_attempt.count, totals.first_attempt.total) == (1, 4)
    assert (totals.answered.count, totals.answered.total) == (3, 5)
    assert totals.attempts_to_recognition == ((1, 1), (2, 1))
    assert totals.latency.total == 3
    assert totals.count(Outcome.SKIPPED) == 1
    assert totals.finished == 8


def test_an_interrupted_attempt_is_not_counted_against_the_device() -> None:
    rows = Rows.of(planned(1))
    rows.add(TrialStarted("time-1", 1))
    rows.attempt("time-1", 1, Outcome.INTERRUPTED, Recognition.UNKNOWN, latency_s=None)
    rows.attempt("time-1", 2)
    rows.add(TrialFinished("time-1", 1, Outcome.RESPONDED, 2, 2))
    assert progress_of(rows).totals.attempts_to_recognition == ((1, 1),)


def test_the_latest_finished_take_counts() -> None:
    rows = Rows.of(planned(1))
    rows.trial("time-1", Outcome.NO_WAKE, Recognition.NO, latency_s=None)
    rows.add(RerunAsked("time-1", 2, "ann"))
    rerun = progress_of(rows)
    assert rerun.trials[0].state is TrialState.PLANNED
    assert rerun.left == 1
    assert rerun.totals.count(Outcome.NO_WAKE) == 1
    rows.add(TrialStarted("time-1", 2))
    assert progress_of(rows).totals.count(Outcome.NO_WAKE) == 1, "an unfinished take does not count yet"
    rows.attempt("time-1", take=2)
    rows.add(TrialFinished("time-1", 2, Outcome.RESPONDED, 1, 1))
    done = progress_of(rows)
    assert done.totals.by_outcome == ((Outcome.RESPONDED, 1),)
    assert done.left == 0


def test_a_later_verdict_on_an_attempt_replaces_the_earlier() -> None:
    rows = Rows.of(planned(1))
    rows.trial("time-1", Outcome.MISHEARD, Recognition.NO, latency_s=None)
    late = AttemptFinished(
        "time-1", 1, 1, Outcome.LATE, Recognition.YES, EvidenceSource.DEVICE, latency=MeasuredDuration(9.0, 0.1)
    )
    rows.add(late)
    trial = progress_of(rows).trials[0]
    assert trial.takes[0].attempts[0].verdict == late
    assert len(trial.takes[0].attempts) == 1


def test_first_response_carries_clip_transcript_and_judgment() -> None:
    rows = Rows.of(planned(1))
    clip = clip_of("r1.flac", 2.0)
    rows.trial("time-1", clip=clip, text="it is noon")
    response = known(progress_of(rows).trials[0].response)
    assert (response.clip, response.transcript, response.judgment) == (clip, "it is noon", None)
    assert response.latency == MeasuredDuration(0.8, 0.01)
    rows.add(JudgmentGiven(judgment_on("time-1", clip, "j1")))
    assert progress_of(rows).totals.judged == 1


def test_an_unanswered_trial_has_nothing_to_judge() -> None:
    rows = Rows.of(planned(1))
    rows.trial("time-1", Outcome.INCONCLUSIVE, Recognition.UNKNOWN, clip=clip_of("r"))
    trial = progress_of(rows).trials[0]
    assert trial.response is None
    assert trial.latest_response is not None


def test_replaced_and_withdrawn_judgments_are_not_in_force() -> None:
    rows = Rows.of(planned(1))
    clip = clip_of("r1.flac")
    rows.trial("time-1", clip=clip)

    def in_force() -> list[str]:
        return [judgment.id for judgment in progress_of(rows).trials[0].judgments]

    rows.add(JudgmentGiven(judgment_on("time-1", clip, "j1")))
    rows.add(JudgmentGiven(judgment_on("time-1", clip, "j1")))
    assert in_force() == ["j1"], "a repeated send is one judgment"
    rows.add(JudgmentGiven(judgment_on("time-1", clip, "j2", replaces="j1", category=Category.WRONG)))
    assert in_force() == ["j2"]
    rows.add(JudgmentGiven(judgment_on("time-1", clip, "b1", rater="bob")))
    assert in_force() == ["j2", "b1"]
    rows.add(JudgmentGiven(judgment_on("time-1", clip, "j3", JudgmentStatus.WITHDRAWN, replaces="j2")))
    assert in_force() == ["b1"]
    rows.add(JudgmentGiven(judgment_on("time-1", clip, "b2", JudgmentStatus.WITHDRAWN, replaces="b1")))
    assert in_force() == []
    assert progress_of(rows).totals.judged == 0


def test_a_judgment_on_an_earlier_take_is_not_one_on_the_rerun() -> None:
    rows = Rows.of(planned(1))
    first, second = clip_of("a.flac"), clip_of("b.flac")
    rows.trial("time-1", clip=first)
    rows.add(JudgmentGiven(judgment_on("time-1", first, "j1")))
    rows.trial("time-1", take=2, clip=second)
    response = known(progress_of(rows).trials[0].response)
    assert response.clip == second
    assert response.judgment is None


def test_repeated_rows_change_nothing() -> None:
    rows = Rows.of(planned(1))
    rows.trial("time-1")
    rows.add(FaultMet("sound", "gone"))
    figures = SessionFigures()
    for entry in (*rows.entries, *rows.entries):
        figures.add(entry)
    assert figures.snapshot() == progress_of(rows)
    assert figures.snapshot().faults == 1


def test_late_sound_is_a_share_of_the_time_of_all_runs_and_has_a_consequence_above_half_a_percent() -> None:
    rows = Rows.of(planned(1))
    rows.add(EngineStarted(1, 11, "boot", 1.0))
    for _ in range(6):
        rows.add(Observed(Overrun("near", Stamp(1.0), 2)), 11)
    rows.add(Observed(Overrun("far", Stamp(1.0), 1)), 0)
    late = progress_of(rows).late_sound
    assert late.in_words == "13 blocks late or lost: about 0.45 % of near, 0.08 % of far"
    assert late.consequence == ""
    rows.add(EngineStarted(2, 12, "boot", 1.0), 1000)
    rows.add(Observed(Overrun("near", Stamp(1.0), 1)), 2)
    late = progress_of(rows).late_sound
    assert late.session_s == 68, "the time between two runs does not count"
    assert late.consequence.startswith("about 0.51 % of the sound of near was late or lost (more than 0.5 %). Misses")
    assert verdict_lines((), progress_of(rows))[-1].startswith("BUSY HOST about 0.51 %")


def test_pauses_faults_runs_and_the_end_are_tracked() -> None:
    rows = Rows.of(planned(1))
    rows.add(Paused("lunch", "ann"))
    assert progress_of(rows).paused == Paused("lunch", "ann")
    rows.add(Resumed("ann"), 60)
    rows.add(FaultMet("sound", "gone"))
    rows.add(Observed(Overrun("mic", Stamp(1.0), 3)))
    rows.add(NoteWritten("door slammed", "ann"))
    rows.add(EngineStarted(2, 11, "boot", 1.0))
    rows.add(SessionFinished(EndReason.COMPLETED))
    progress = progress_of(rows)
    assert (progress.pauses, progress.paused, progress.faults, progress.late_sound.blocks, progress.runs) == (
        1,
        None,
        1,
        3,
        2,
    )
    assert progress.finished is EndReason.COMPLETED
    assert progress.eta_s == 0.0


def test_a_row_of_a_trial_that_is_not_planned_is_counted_and_shown() -> None:
    rows = Rows.of(planned(1))
    rows.trial("elsewhere")
    progress = progress_of(rows)
    assert progress.unplanned_rows > 0
    assert progress.totals.finished == 0


@given(st.lists(st.tuples(st.integers(1, 5), st.sampled_from(Outcome), st.sampled_from(Recognition)), max_size=12))
def test_live_figures_equal_those_over_the_finished_trials(plays: list[tuple[int, Outcome, Recognition]]) -> None:
    rows = Rows.of(*(planned(n) for n in range(1, 6)))
    takes: dict[int, int] = {}
    for number, outcome, recognition in plays:
        takes[number] = takes.get(number, 0) + 1
        rows.trial(f"time-{number}", outcome, recognition, take=takes[number])
    figures = SessionFigures()
    for entry in rows.entries:
        figures.add(entry)
        figures.snapshot()  # asking in between must not change what comes out
    progress = figures.snapshot()
    assert progress.totals == totals_of(progress.trials)
    assert progress.totals.finished == len(takes)
    assert sum(n for _, n in progress.totals.by_outcome) == len(takes)


def test_ten_thousand_trials_stay_cheap() -> None:
    rows = Rows.of(*(planned(n) for n in range(1, 10_001)))
    for number in range(1, 10_001):
        rows.trial(f"time-{number}")
    figures = SessionFigures()
    began = time.process_time()
    for entry in rows.entries:
        figures.add(entry)
    per_row_s = (time.process_time() - began) / len(rows.entries)
    began = time.process_time()
    assert figures.snapshot().totals.finished == 10_000
    # Quadratic bookkeeping would take milliseconds a row; the bounds are wide, and of processor time.
    assert per_row_s < 1e-3
    assert time.process_time() - began < 2.0


def test_board_identities_and_their_changes_are_kept() -> None:
    rows = Rows.of(planned(1))
    stamp = Stamp(1.0)
    rows.add(Observed(DeviceDescribed("radio", stamp, serial="A1")))
    rows.add(Observed(DeviceDescribed("radio", stamp, "1.0")))
    rows.add(Observed(DeviceDescribed("lamp", stamp, "7")))
    rows.add(Observed(DeviceDescribed("radio", stamp, "1.1")))
    boards = [(board.source, board.firmware, board.serial) for board in progress_of(rows).boards]
    assert boards == [("radio", "1.0", "A1"), ("lamp", "7", ""), ("radio", "1.1", "A1")]


def test_an_open_interval_is_written_as_such() -> None:
    ends = [(1.5, 2.5), (1.5, math.inf), (-math.inf, 2.5), (-math.inf, math.inf)]
    texts = [DeclaredLimit("x", "x", 1.0, 2.0, interval=interval).interval_text for interval in ends]
    assert texts == ["1.50–2.50", "1.50 or more", "2.50 or less", ""]


def test_lost_connections_restarts_and_what_they_interrupted_are_counted_by_device() -> None:
    rows = Rows.of(replace(planned(1), connection="kitchen.serial"), replace(planned(2), connection="kitchen.serial"))
    assert not any(connection.failed for connection in progress_of(rows).connections)
    board = "kitchen.serial"
    rows.attempt("time-1", 1, Outcome.INTERRUPTED, cause=f"link_lost: {board}: the port is gone")
    rows.add(Observed(LinkLost(board, Stamp(10.0), "the port is gone")))
    rows.add(Observed(LinkBack(board, Stamp(35.0))))
    rows.add(Observed(Status(board, Stamp(35.1), DeviceState.STARTED)))
    rows.attempt("time-1", 2, Outcome.INTERRUPTED, cause="device_restarted")
    rows.attempt("time-1", 3, Outcome.INTERRUPTED, cause="stimulus_cut: front: it was stopped")
    rows.add(PowerSwitched("kitchen", on=False, reason="before time-2"))
    rows.add(Observed(LinkLost(board, Stamp(40.0), "the port is gone")))
    rows.add(Observed(LinkBack(board, Stamp(50.0))))
    rows.add(Observed(Status(board, Stamp(50.0), DeviceState.STARTED)))
    rows.add(PowerSwitched("kitchen", on=True, reason="before time-2"))
    rows.add(Observed(Status(board, Stamp(60.0), DeviceState.GONE)))
    rows.add(Observed(LinkLost("room_mic", Stamp(61.0), "unplugged")))
    connections = progress_of(rows).connections
    assert connections == (
        DeviceConnection("kitchen", lost=2, lost_s=25.0, is_lost=True, restarts=1, interrupted=2),
        DeviceConnection("room_mic", lost=1, is_lost=True),
    ), "a power cycle by the run is neither"
    lines = end_of_session(progress_of(rows), None, None)
    words = "kitchen: connection lost 2 times (25.0 s in all; not back), restarted 1 time; 2 attempts interrupted"
    assert any(line.endswith(words) for line in lines)
    rows.add(Observed(Status(board, Stamp(70.0), DeviceState.IDLE)))
    assert progress_of(rows).connections[0] == DeviceConnection("kitchen", 2, 35.0, restarts=1, interrupted=2)
    rows.add(Observed(Status(board, Stamp(80.0), DeviceState.GONE)))  # a last will from before the restart
    rows.add(Observed(ListeningProved(board, Stamp(81.0), Proof.HEARTBEAT)))
    assert progress_of(rows).connections[0] == DeviceConnection("kitchen", 3, 36.0, restarts=1, interrupted=2)


def test_a_connection_that_does_not_come_back_is_lost_until_its_run_ends() -> None:
    rows = Rows.of(replace(planned(1), connection="kitchen.serial"))
    rows.add(Observed(LinkLost("kitchen.serial", Stamp(10.0), "the port is gone")))
    rows.add(Observed(LogLine("room_mic", Stamp(30.0), "…")), after_s=30.0)
    away = DeviceConnection("kitchen", lost=1, lost_s=20.0, is_lost=True)
    assert progress_of(rows).connections == (away,)
    rows.at_s, rows.run = 0.0, 2  # the next run, with a clock of its own
    rows.add(EngineStarted(2, 10, "boot", 1.0))
    rows.add(Observed(LogLine("room_mic", Stamp(5.0), "…")), after_s=5.0)
    assert progress_of(rows).connections == (replace(away, is_lost=False),)


def test_two_connections_of_a_device_count_as_one_and_a_boot_after_power_as_none() -> None:
    sources = ("kitchen.serial", "kitchen.led")
    rows = Rows.of(replace(planned(1), connection=sources[0], also=sources[1:]))
    for source in sources:
        rows.add(Observed(LinkLost(source, Stamp(10.0), "the port is gone")))
    for source in sources:
        rows.add(Observed(LinkBack(source, Stamp(20.0))))
        rows.add(Observed(Status(source, Stamp(21.0), DeviceState.STARTED)))
    rows.add(PowerSwitched("kitchen", on=True, reason="at the end"))
    rows.add(Observed(Status("kitchen.serial", Stamp(40.0), DeviceState.STARTED)))
    assert progress_of(rows).connections[0] == DeviceConnection("kitchen", lost=1, lost_s=10.0, restarts=1)


UNHEARD = Totals(first_words=GroupTranscripts.of([("time", None), ("time", None)]))


@pytest.mark.parametrize(
    ("limits", "totals", "verdicts"),
    [
        (Limits(), Totals(), []),
        (Limits(min_recognised_share=0.0), Totals(), [("min_recognised_share", None, False)]),
        (Limits(max_latency_p95_ms=900), Totals(), [("max_latency_p95_ms", None, False)]),
        (Limits(max_first_attempt_wer=1.0), UNHEARD, [("max_first_attempt_wer", None, False)]),
        (Limits(max_final_wer=1.0), UNHEARD, [("max_final_wer", None, False)]),
        (Limits(max_inconclusive=0), Totals(), [("max_inconclusive", 0, True)]),
    ],
)
def test_unmeasured_share_fails_its_limit_and_zero_count_passes(
    limits: Limits, totals: Totals, verdicts: list[tuple[str, float | None, bool]]
) -> None:
    assert [(limit.name, limit.found, limit.holds) for limit in check_limits(limits, totals)] == verdicts


def test_the_wer_is_of_queries_and_of_every_devices_commands() -> None:
    totals = Totals(first_words=GroupTranscripts.of([("time", WordCounts(correct=3, deletions=1, sentences=1))]))
    devices = (
        DeviceWake("kitchen", words=GroupTranscripts.of([("time", WordCounts(correct=4, sentences=1))])),
        DeviceWake("den", words=GroupTranscripts.of([("time", WordCounts(deletions=2, sentences=1)), ("time", None)])),
    )
    (verdict,) = check_limits(Limits(max_first_attempt_wer=0.3), totals, WakeProgress(devices))
    assert (verdict.name, verdict.found, verdict.holds) == ("max_first_attempt_wer", 0.3, True)


@pytest.mark.parametrize(
    ("name", "holds", "fails"),
    [
        ("min_recognised_share", 0.9, 0.91),
        ("min_first_attempt_share", 0.5, 0.51),
        ("min_answered_share", 0.75, 0.76),
        ("max_latency_p95_ms", 800, 799),
        ("max_inconclusive", 2, 1),
        ("max_interrupted", 1, 0),
        ("max_first_attempt_wer", 1.5, 1.49),
        ("max_final_wer", 0.25, 0.24),
    ],
)
def test_each_limit_is_checked_at_its_edge(name: str, holds: float, fails: float) -> None:
    totals = Totals(
        by_outcome=((Outcome.INTERRUPTED, 1), (Outcome.INCONCLUSIVE, 2)),
        recognised=Share(9, 10),
        first_attempt=Share(5, 10),
        answered=Share(9, 12),
        latency=latency_figures([MeasuredDuration(0.8)] * 20),
        first_words=GroupTranscripts.of([("time", WordCounts(1, 1, 0, 2, 1, 1)), ("time", None)]),
        final_words=GroupTranscripts.of(
            [("time", WordCounts(2, 0, 0, 1, 1, 1)), ("time", WordCounts(2, 0, 0, 0, 1, 0))]
        ),
    )
    outcomes = [check_limits(Limits(**{name: limit}), totals)[0].holds for limit in (holds, fails)]
    assert outcomes == [True, False]


@pytest.mark.parametrize(
    ("wanted_ms", "found_ms", "undecided"),
    [
        (850, None, True),  # the left-out ones might all have been slow
        (800, None, True),
        (799, 800, False),  # it fails even if they were faster than all
    ],
)
def test_left_out_times_may_have_been_of_any_length(wanted_ms: int, found_ms: float | None, undecided: bool) -> None:
    times = latency_figures([*[MeasuredDuration(0.8)] * 18, *[MeasuredDuration(0.1, 0.94)] * 2])
    for limits, totals, wake in (
        (Limits(max_latency_p95_ms=wanted_ms), Totals(latency=times), None),
        (Limits(max_wake_delay_p95_ms=wanted_ms), Totals(), WakeProgress((DeviceWake("den", delays=times),))),
    ):
        (verdict,) = check_limits(limits, totals, wake)
        assert (verdict.found, verdict.verdict) == (
            found_ms,
            LimitVerdict.UNDECIDED if undecided else LimitVerdict.FAIL,
        )
    assert (
        unmet_limits_text([verdict])
        == f"{'undecided' if undecided else 'failed'}: wake delay, p95 of den ≤ {wanted_ms} ms"
    )


def test_a_limit_holds_with_left_out_times_that_are_too_few_to_turn_it() -> None:
    times = latency_figures([*[MeasuredDuration(0.8)] * 39, MeasuredDuration(0.1, 0.94)])
    (verdict,) = check_limits(Limits(max_latency_p95_ms=800), Totals(latency=times))
    assert (verdict.found, verdict.holds) == (800, True)


@pytest.mark.parametrize(
    ("times", "wanted_ms", "verdict"),
    [
        (19, 900, LimitVerdict.UNDECIDED),
        (19, 700, LimitVerdict.FAIL),  # even the lower end of the interval exceeds it
        (1, 700, LimitVerdict.UNDECIDED),
        (20, 900, LimitVerdict.MARGINAL),  # the interval has no upper end yet
        (80, 900, LimitVerdict.PASS),
    ],
)
def test_a_limit_on_a_percentile_needs_enough_times(times: int, wanted_ms: int, verdict: LimitVerdict) -> None:
    totals = Totals(latency=latency_figures([MeasuredDuration(0.8)] * times))
    (limit,) = check_limits(Limits(max_latency_p95_ms=wanted_ms), totals)
    assert limit.verdict is verdict
    if verdict is LimitVerdict.UNDECIDED:
        why_not = f"no data ({counted(times, 'response')}, p95 needs 20), undecided"
        assert limit.sentence == f"latency, p95 ≤ {wanted_ms} ms: {why_not}"
        assert unmet_limits_text([limit]) == f"undecided: latency, p95 ≤ {wanted_ms} ms"
    elif times < 20:
        assert limit.sentence == f"latency, p95 ≤ {wanted_ms} ms: found 800 ms or more, fails"


def disturbed_session(count: int, trials: int = 10) -> Rows:
    rows = Rows.of(*(planned(number) for number in range(1, trials + 1)))
    for number in range(1, trials + 1):
        rows.trial(f"time-{number}", disturbed="the host stalled for 800 ms" if number <= count else "")
    return rows


def test_disturbed_attempts_are_counted_and_listed_with_their_reasons() -> None:
    rows = disturbed_session(2)
    rows.add(Observed(HostStalled("host", Stamp(1.0), 0.3, 4.0, None)))
    rows.add(Observed(HostStalled("host", Stamp(9.0), 0.8, 4.0, 0.2)))
    progress = progress_of(rows)
    assert progress.totals.disturbed == Share(2, 10)
    assert (progress.stalls, progress.longest_stall_s) == (2, 0.8)
    lines = disturbance_lines(progress)
    assert lines[0].startswith("disturbed attempts: 2 of 10 = 20.0 %")
    assert lines[1:] == [
        "stalled 2 times, for 800 ms at most",
        "time-1, attempt 1: the host stalled for 800 ms",
        "time-2, attempt 1: the host stalled for 800 ms",
    ]
    assert disturbance_lines(progress_of(disturbed_session(0))) == []


@pytest.mark.parametrize(
    ("count", "limits", "failed"),
    [
        (1, Limits(max_interrupted=0), ""),
        (2, Limits(max_interrupted=0), "undecided: attempts that the host disturbed ≤ 10 %"),
        (2, Limits(max_interrupted=0, max_disturbed_share=0.2), ""),
        (1, Limits(max_disturbed_share=0.0), "undecided: attempts that the host disturbed ≤ 0 %"),
        (2, Limits(min_recognised_share=1.0, max_inconclusive=-1),
         "failed: inconclusive trials ≤ -1; undecided: attempts that the host disturbed ≤ 10 %"),
        (10, Limits(), ""),  # nothing could pass
    ],
)  # fmt: skip
def test_a_session_that_the_host_disturbed_is_undecided_and_a_failure_stays(
    count: int, limits: Limits, failed: str
) -> None:
    totals = progress_of(disturbed_session(count)).totals
    verdicts = check_limits(limits, totals)
    assert unmet_limits_text(verdicts) == failed
    lines = limit_lines(verdicts)
    assert ("UNDECIDED attempts that the host" in "\n".join(lines)) is ("that the host disturbed" in failed)


def test_an_interrupted_trial_is_listed_with_its_reason() -> None:
    rows = Rows.of(planned(1), planned(2))
    rows.trial("time-1")
    rows.add(TrialFinished("time-2", 1, Outcome.INTERRUPTED, 0, None, "not_proven: nothing shows that it listened"))
    progress = progress_of(rows)
    assert interrupted_lines(progress) == ["interrupted          time-2: not proven: nothing shows that it listened"]
    assert interrupted_lines(progress)[0] in end_of_session(progress, None, None)


def test_the_latency_line_wraps_at_the_terminal_width(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Rows.of(*map(planned, range(1, 41)))
    for number in range(1, 41):
        rows.trial(f"time-{number}", latency_s=0.8 + number / 40)
    lines = {}
    for width in (80, 200):
        monkeypatch.setenv("COLUMNS", str(width))
        whole = end_of_session(progress_of(rows), None, None)
        first = next(index for index, line in enumerate(whole) if line.startswith("latency "))
        lines[width] = whole[first : next(index for index, line in enumerate(whole) if line.startswith("wake delay"))]
    assert len(lines[200]) == 1
    assert len(lines[80]) > 1
    assert max(map(len, lines[80])) <= 80
    assert " ".join(line[21:] for line in lines[80]) == lines[200][0][21:]


def test_attempts_of_a_trial_that_is_not_proven_stay_visible() -> None:
    rows = Rows.of(planned(1))
    rows.trial("time-1", Outcome.NO_WAKE)
    second_take, third_take = (RerunAsked("time-1", take, LIFE_CHECK_BY) for take in (2, 3))
    ended = TrialFinished("time-1", 2, Outcome.INTERRUPTED, 0, None, f"{NOT_PROVEN}: nothing shows that it listened")
    for row in (second_take, ended, third_take):
        rows.add(row)
    (trial,) = progress_of(rows).trials
    assert (trial.attempts, trial.outcome) == (1, Outcome.INTERRUPTED)
    words = RowWriter()
    assert [words.line(row) for row in (second_take, ended, third_take)] == [
        None,
        "  = time-1: INTERRUPTED (not proven: nothing shows that it listened)",
        "re-run of time-1 requested by the life check",
    ]


def test_a_limit_is_not_settled_while_a_trial_is_to_be_played_again() -> None:
    rows = Rows.of(*[planned(number) for number in range(1, 6)])

    def verdicts() -> set[str]:
        limits = Limits(max_interrupted=0, min_recognised_share=0.8)
        return {limit.verdict.value for limit in limits_so_far(limits, Stopping(), progress_of(rows), None)}

    for number in (1, 2, 3):
        rows.trial(f"time-{number}")
    rows.trial("time-4", Outcome.MISHEARD, Recognition.NO, latency_s=None)
    rows.trial("time-5", Outcome.INTERRUPTED, Recognition.UNKNOWN, latency_s=None)
    assert "FAIL" in verdicts()
    rows.add(RerunAsked("time-5", 2, "on_fault"))
    assert verdicts() == {"OPEN"}
    rows.add(TrialStarted("time-5", 2))
    assert verdicts() == {"OPEN"}


def test_a_limit_that_can_still_be_reached_exactly_is_open() -> None:
    rows = Rows.of(*[planned(number) for number in range(1, 26)])

    verdicts = []
    for number in range(1, 13):
        rows.trial(f"time-{number}", Outcome.MISHEARD, Recognition.NO, latency_s=None)
        limits = limits_so_far(Limits(min_recognised_share=0.56), Stopping(), progress_of(rows), None)
        verdicts += [limit.verdict.value for limit in limits]
    assert verdicts == ["OPEN"] * 11 + ["FAIL"]  # 14 of 25 is 56 %, and 13 is less


def test_a_pause_that_began_in_the_trial_before_is_not_subtracted_twice() -> None:
    rows = Rows.of(planned(1), planned(2))
    rows.add(TrialStarted("time-1", 1))
    rows.add(Paused("", "ann"), 10.0)
    rows.add(TrialFinished("time-1", 1, Outcome.RESPONDED, 1, 1), 90.0)
    rows.add(TrialStarted("time-2", 1))
    rows.add(Resumed("ann"), 600.0)
    rows.add(TrialFinished("time-2", 1, Outcome.RESPONDED, 1, 1), 20.0)
    assert progress_of(rows).pace_s == 60.0
