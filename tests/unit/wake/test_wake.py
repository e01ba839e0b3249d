"""Wake figures from rows: what is a hit, a false reject, a false accept, and what counts nowhere."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from harness.model import observation as seen_by
from harness.model.record import (
    AttemptFinished,
    AttemptStarted,
    DecisionReached,
    EngineStarted,
    EventClipped,
    EventReviewed,
    ReviewVerdict,
    TrialFinished,
    TrialStarted,
)
from harness.model.scenario import TrialKind, WakeSettings
from harness.model.stimulus import Opening, Recording
from harness.model.time import MeasuredDuration, Stamp
from harness.model.trial import EvidenceSource, Outcome, Recognition
from harness.statistics.intervals import Share, latency_figures
from harness.statistics.significance import Discordance
from harness.wake.reports.figures_text import device_lines, lag_text
from harness.wake.unmatched import UnmatchedEvents
from harness.wake.wake import DevicePair, WakeFigures, comparisons
from harness.wake.wake_progress import MarkKind, UnmatchedWake
from tests.known import known
from tests.unit.session.figures.rows import clip_of
from tests.unit.wake.wake_rows import WakeRows, played, rows_of, wake_trial
from tests.written_sessions import wake_of

AMBIENT, COMMAND = TrialKind.AMBIENT, TrialKind.COMMAND
AIR_AND_WIRE = pytest.mark.parametrize("injected", [False, True], ids=["air", "wire"])


@pytest.mark.parametrize("credited", [None, "life-check.7", "ask.r1", "next.r1"])
@pytest.mark.parametrize("offset_s", [0.5, 1.8, 3.0, 3.2, 9.0])
@pytest.mark.parametrize("kind", [TrialKind.WAKE, AMBIENT])
@AIR_AND_WIRE
def test_an_event_counts_by_its_time_wherever_its_report_arrives(
    injected: bool, kind: TrialKind, offset_s: float, credited: str | None
) -> None:
    trial = wake_trial(1, kind, injected=injected)
    late, during = rows_of(trial, at_s=100.0), rows_of(trial, at_s=100.0)
    for rows in (late, during):
        rows.see(seen_by.ListeningProved("kitchen_link", Stamp(100.0), seen_by.Proof.HEARTBEAT))
    late.play(trial, duration_s=3.0)
    (play,) = late.figures.plays("kitchen")
    moment = Stamp(known(play.started).at_s + offset_s, 0.01), "alexa", 0.9, offset_s if injected else None
    late.see(seen_by.Wake("kitchen_link", *moment), *([replace(trial, id=credited)] if credited else []))
    during.play(trial, [("kitchen", offset_s)], duration_s=3.0, error_s=0.01)
    for name in ("hits", "false_rejects", "double_wakes", "false_accepts", "exposure_s", "in_vocabulary_events"):
        assert getattr(late.device(), name) == getattr(during.device(), name), name


@AIR_AND_WIRE
def test_hits_false_rejects_and_delays_are_counted(injected: bool) -> None:
    first, two, three = (wake_trial(number, injected=injected) for number in (1, 2, 3))
    rows = rows_of(first, two, three, at_s=50.0)
    rows.play(first, [("kitchen", 1.8)], error_s=0.01)
    rows.play(two)
    rows.play(three, [("kitchen", 2.0)], error_s=0.01)
    figures = rows.device()
    assert (figures.hits, figures.false_rejects.share) == (2, Share(1, 3))
    assert known(figures.delays.p50).value_s == pytest.approx(0.2)
    assert known(figures.delays.p50).clock_error_s == pytest.approx(0.0 if injected else 0.02)
    assert figures.events == ()
    assert rows.progress.counted == rows.progress.planned == 3


@pytest.mark.parametrize(("at_s", "error_s"), [(1.0, 0.02), (1.7, 0.82), (1.9, 0.02)])
def test_a_stall_of_the_host_between_phrase_and_event_widens_the_error_of_the_delay(
    at_s: float, error_s: float
) -> None:
    trial = wake_trial(1, injected=False)
    rows = rows_of(trial, at_s=50.0)
    rows.play(trial, [("kitchen", 1.8)], error_s=0.01)
    begun_s = known(rows.figures.plays("kitchen")[0].started).at_s
    lasted_s = 0.8 if at_s > 1.5 else 0.3
    rows.see(seen_by.HostStalled("host", Stamp(begun_s + at_s), lasted_s, 4.0, None))
    delay = known(rows.figures.plays("kitchen")[0].reading.delay)
    assert delay.error_s == pytest.approx(error_s)
    assert rows.device().delays.excluded == (error_s > 0.25)


def test_a_stall_whose_row_is_before_that_of_the_stimulus_widens_the_error_too() -> None:
    trial = wake_trial(1, injected=False)
    after, before = rows_of(trial, at_s=50.0), rows_of(trial, at_s=50.0)
    after.play(trial, [("kitchen", 1.8)], error_s=0.01)
    begun_s = known(after.figures.plays("kitchen")[0].started).at_s
    stall = seen_by.HostStalled("host", Stamp(begun_s - 0.02), 1.9, 4.0, None)
    after.see(stall)
    before.see(stall)
    before.play(trial, [("kitchen", 1.8)], error_s=0.01)
    assert known(before.figures.plays("kitchen")[0].started).at_s == begun_s
    first, second = (known(rows.figures.plays("kitchen")[0].reading.delay) for rows in (after, before))
    assert (first, second.error_s) == (second, pytest.approx(1.92))
    assert before.device().delays.excluded == 1


def test_an_event_outside_the_window_is_no_hit() -> None:
    trials = [wake_trial(number) for number in range(1, 5)]
    rows = rows_of(*trials)
    for trial, offset_s in zip(trials, (0.89, 0.91, 2.59, 2.61), strict=True):
        rows.play(trial, [("kitchen", offset_s)])
    figures = rows.device()
    assert figures.hits == 2
    assert figures.in_vocabulary_events == 2
    assert figures.false_accepts.count == 0, "in-vocabulary events count only when asked for"


def test_a_spot_in_the_lead_in_does_not_hide_the_phrase() -> None:
    rows = played(wake_trial(1), [("kitchen", 0.5), ("kitchen", 1.8), ("kitchen", 2.0), ("kitchen", 3.0)])
    figures = rows.device()
    assert (figures.hits, figures.in_vocabulary_events, figures.suppressed) == (1, 1, 2)
    assert [event.offset_s for event in rows.progress.unmatched] == [pytest.approx(0.5)]


def test_a_phrase_that_wakes_twice_is_one_hit_and_a_double_wake() -> None:
    trials = [wake_trial(number) for number in range(1, 5)]
    rows = rows_of(*trials)
    for trial, offsets_s in zip(trials, ((1.8,), (0.5, 1.8), (1.8, 2.0, 2.4), (1.8, 2.3)), strict=True):
        rows.play(trial, [("kitchen", offset_s) for offset_s in offsets_s])
    figures = rows.device()
    # What follows the first event comes during the next sound.
    assert (figures.hits, figures.double_wakes) == (4, Share(3, 4))
    assert "  double wakes       3 of 4 = 75.0 %" in "\n".join(device_lines(rows.progress))


@pytest.mark.parametrize(
    ("heard", "words"),
    [
        ({0.5: "nnn", 1.0: "ynn", 2.0: "yyn", 4.0: "yyy"}, "between 1 s (1 of 3 heard) and 2 s (2 of 3 heard)"),
        ({0.5: "yyy", 1.0: "nnn", 2.0: "yyy"}, "between 1 s (0 of 3 heard) and 2 s (3 of 3 heard)"),
        ({0.5: "yy", 1.0: "yy"}, "within 0.5 s (2 of 2 heard)"),
        ({0.5: "nn", 1.0: "yn", 2.0: "nn"}, "not within 2 s (0 of 2 heard)"),
        ({0.5: "yn"}, ""),
    ],
)
def test_recovery_is_between_the_pauses_where_half_are_heard(heard: dict[float, str], words: str) -> None:
    cases = [(pause_s, mark == "y") for pause_s, marks in heard.items() for mark in marks]
    sounding = Opening(3.0, "play some music", sounds=True)
    trials = []
    for number, opening in enumerate([*(Opening(pause_s) for pause_s, _ in cases), sounding], 1):
        trial = wake_trial(number)
        trials.append(replace(trial, recipe=replace(trial.recipe, opening=opening)))
    rows = rows_of(*trials)
    for trial, (_, woke) in zip(trials, [*cases, (0.0, False)], strict=True):
        rows.play(trial, [("kitchen", 1.8)] if woke else [])
    text = "\n".join(device_lines(rows.progress))
    assert f"  recovery           after the wake phrase: {words}" in text if words else "recovery" not in text


@pytest.mark.parametrize("injected", [False, True])
def test_differences_between_two_devices_leave_out_the_error_of_the_sound(injected: bool) -> None:
    trials = [wake_trial(number, devices=("kitchen", "den"), injected=injected) for number in range(1, 8)]
    rows = rows_of(*trials)
    for number, trial in enumerate(trials):
        heard = [("kitchen", 1.8), ("den", 1.8 + 0.008 + number * 1e-4)] if number else [("kitchen", 1.8)]
        rows.play(trial, heard, started_error_s=0.14, error_s=0.002)
    (pair,) = comparisons(wake_of(rows.entries))
    assert known(rows.device().delays.p50).clock_error_s == pytest.approx(0.0 if injected else 0.142)
    assert known(pair.lag.p50).value_s == pytest.approx(0.0083)
    assert (pair.lag.total, pair.lag.error_s) == (6, pytest.approx(0.0 if injected else 0.004))
    words = "; the second woke +8.30 ms after the first, median of 6 (95 % +8.10 to +8.60 ms, clock error ± "
    assert words in lag_text(pair)


def test_large_differences_and_errors_are_plain_numbers() -> None:
    pair = DevicePair("kitchen", "den", Discordance(), lag=latency_figures([MeasuredDuration(1.2344, 0.14)] * 7))
    assert "woke +1234 ms after the first, median of 7 (95 % +1234 to +1234 ms, clock error ± 140 ms)" in lag_text(pair)


def test_an_event_across_two_segments_counts_once() -> None:
    first, two = wake_trial(1, AMBIENT), wake_trial(2, AMBIENT)
    rows = rows_of(first, two)
    rows.play(first, [("kitchen", 59.9)])
    rows.play(two, [("kitchen", 0.3), ("kitchen", 2.5)])
    figures = rows.device()
    assert (figures.false_accepts.count, figures.suppressed) == (2, 1)


def test_an_event_after_a_short_tail_belongs_to_the_phrase() -> None:
    first, two = wake_trial(1), wake_trial(2)
    rows = rows_of(first, two)
    rows.play(first, duration_s=1.8)
    assert rows.device().false_rejects.share == Share(1, 1)
    rows.play(two, [("kitchen", 0.4), ("kitchen", 1.9)])
    figures = rows.device()
    assert (figures.hits, figures.false_rejects.share, figures.in_vocabulary_events) == (2, Share(0, 2), 0)


def test_a_late_event_turns_a_false_reject_into_a_hit() -> None:
    rows = played(wake_trial(1, injected=False))
    start_s = next(play.start_s for play in rows.figures.plays("kitchen"))
    rows.see(seen_by.Wake("kitchen_link", Stamp(start_s + 1.9)))
    assert rows.device().hits == 1


@pytest.mark.parametrize(("boot", "hits"), [("boot", 1), ("another boot", 0)])
def test_a_late_event_of_the_previous_run_turns_a_false_reject_into_a_hit(boot: str, hits: int) -> None:
    rows = WakeRows(at_s=10.0)
    rows.plan(wake_trial(1, injected=False))
    rows.add(EngineStarted(1, 1, "boot", 1.0))
    rows.play(wake_trial(1, injected=False))
    start_s = next(play.start_s for play in rows.figures.plays("kitchen"))
    rows.add(EngineStarted(2, 2, boot, 1.0))
    rows.see(seen_by.Wake("kitchen_link", Stamp(start_s + 1.9)))
    assert (rows.device().hits, rows.device().false_rejects.share) == (hits, Share(1 - hits, 1))


@AIR_AND_WIRE
def test_exposure_and_false_accepts_of_ambient_sound(injected: bool) -> None:
    settings = WakeSettings(proof_within_s=100.0)
    rows = WakeRows(at_s=10.0)
    trials = [wake_trial(number, AMBIENT, injected=injected, settings=settings) for number in range(1, 4)]
    rows.plan(*trials)
    rows.see(seen_by.ListeningProved("kitchen_link", Stamp(10.0), seen_by.Proof.HEARTBEAT))
    rows.play(trials[0], [("kitchen", 30.0)])
    rows.play(trials[1])
    rows.play(trials[2], [("kitchen", 10.0), ("kitchen", 50.0)])
    figures = rows.device()
    assert figures.exposure_s == pytest.approx(180.0)
    assert figures.unproven_s == pytest.approx(0.0)
    assert (figures.false_accepts.count, figures.after_review.count) == (3, 3)
    assert figures.false_accepts.per_hour == pytest.approx(60.0)
    assert figures.false_accepts.interval is not None
    assert figures.false_accepts.any_time is not None


def test_time_without_proof_is_no_exposure() -> None:
    trial = wake_trial(1, AMBIENT, injected=False)
    rows = rows_of(trial, at_s=99.5)

    def proved(at_s: float) -> None:
        rows.see(seen_by.ListeningProved("kitchen_link", Stamp(at_s), seen_by.Proof.HEARTBEAT), trial)

    proved(99.0)
    rows.play(trial, [("kitchen", 5.0), ("kitchen", 40.0)], proof=False)
    figures = rows.device()
    assert (figures.exposure_s, figures.unproven_s, figures.ambient_events_outside) == (0.0, 60.0, 2)
    # Proofs that come late say more of the same play: 13 s, then nothing for too long, then the last 10 s.
    for at_s in (113.0, 150.0, 165.0):
        proved(at_s)
    figures = rows.device()
    assert figures.exposure_s == pytest.approx(13.0 + 10.0)
    assert (figures.false_accepts.count, figures.ambient_events_outside) == (1, 1)


def test_a_lost_link_cuts_exposure() -> None:
    trial = wake_trial(1, AMBIENT, injected=False)
    rows = rows_of(trial, at_s=100.0)
    rows.see(seen_by.ListeningProved("kitchen_link", Stamp(100.0), seen_by.Proof.HEARTBEAT))
    rows.see(seen_by.LinkLost("kitchen_link", Stamp(105.0), "port gone"))
    lost = rows.device()
    assert (lost.link_up, lost.link_trouble) == (False, "port gone")
    rows.see(seen_by.LinkBack("kitchen_link", Stamp(106.0)))
    rows.see(seen_by.ListeningProved("kitchen_link", Stamp(110.0), seen_by.Proof.HEARTBEAT))
    rows.see(seen_by.ListeningProved("kitchen_link", Stamp(120.0), seen_by.Proof.HEARTBEAT))
    rows.play(trial, proof=False)
    figures = rows.device()
    assert figures.link_up
    assert figures.exposure_s == pytest.approx(10.0), "from the first proof after the link was back"


def test_audio_that_is_not_acknowledged_is_no_exposure() -> None:
    trial = wake_trial(1, AMBIENT)
    rows = rows_of(trial)
    rows.play(trial, [("kitchen", 50.0)], proof=False, speed=30.0)
    assert (rows.device().exposure_s, rows.device().ambient_events_outside) == (0.0, 1)
    rows.see(seen_by.ListeningProved("kitchen_link", Stamp(rows.at_s), seen_by.Proof.ACKNOWLEDGED, 55.0), trial)
    figures = rows.device()
    assert (figures.exposure_s, figures.unproven_s, figures.false_accepts.count) == (55.0, 5.0, 1)


def test_an_interrupted_attempt_counts_nowhere() -> None:
    wake, ambient = wake_trial(1), wake_trial(2, AMBIENT)
    rows = rows_of(wake, ambient)
    rows.play(wake, [("kitchen", 1.8)], outcome=Outcome.INTERRUPTED, finish=False)
    rows.play(ambient, [("kitchen", 10.0)], outcome=Outcome.INTERRUPTED, finish=False)
    figures = rows.device()
    assert (figures.false_rejects.share, figures.exposure_s, figures.false_accepts.count) == (Share(), 0.0, 0)
    assert figures.ambient_events_outside == 1
    assert not any(event.exposed for event in rows.progress.unmatched)
    assert {mark.kind for mark in figures.timeline} >= {MarkKind.INTERRUPTED}
    rows.play(wake, [("kitchen", 1.8)], attempt=2)
    assert rows.device().hits == 1


def test_an_attempt_that_a_dead_engine_left_behind_counts_nowhere() -> None:
    trial = wake_trial(1)
    rows = rows_of(trial)
    rows.add(TrialStarted(trial.id, 1))
    rows.add(AttemptStarted(trial.id, 1, 1, "p", "c", 1.0, 1.6, 3.1, None))
    rows.add(EngineStarted(2, 11, "boot", 1.0))
    rows.add(
        AttemptFinished(trial.id, 1, 1, Outcome.INTERRUPTED, Recognition.UNKNOWN, EvidenceSource.NONE, cause="gone")
    )
    rows.play(trial, [("kitchen", 1.8)], attempt=2)
    assert rows.device().false_rejects.share == Share(0, 1)


def test_a_later_take_replaces_the_earlier() -> None:
    trial = wake_trial(1)
    rows = rows_of(trial)
    rows.play(trial)
    rows.play(trial, [("kitchen", 1.8)], take=2)
    assert (rows.device().hits, rows.device().false_rejects.share) == (1, Share(0, 1))
    rows.add(TrialFinished(trial.id, 3, Outcome.SKIPPED, 0, None))
    assert rows.device().false_rejects.share == Share()
    assert rows.device().delays.total == 0
    assert rows.progress.counted == 0


def test_self_wakes_are_told_apart_in_the_room_and_not_over_a_wire() -> None:
    for injected, expected in ((False, 1), (True, 3)):
        trial = wake_trial(1, AMBIENT, ("kitchen", "den"), injected, WakeSettings(proof_within_s=100))
        rows = rows_of(trial, at_s=10.0)
        for name in ("kitchen", "den"):
            rows.see(seen_by.ListeningProved(f"{name}_link", Stamp(10.0), seen_by.Proof.HEARTBEAT))
        # It is said before the events come; the sound begins at 10.5.
        rows.see(seen_by.Status("den_link", Stamp(15.0), seen_by.DeviceState.SPEAKING))
        rows.see(seen_by.Status("den_link", Stamp(20.0), seen_by.DeviceState.IDLE))
        rows.play(trial, [("kitchen", 6.0), ("kitchen", 9.9), ("kitchen", 30.0)])
        figures = rows.device()
        assert figures.false_accepts.count == expected
        assert figures.after_review.count == expected
        if not injected:
            assert dict(figures.events) == {ReviewVerdict.SELF_WAKE: 2, None: 1}
            assert {event.why for event in rows.progress.unmatched} == {"during speech of den", ""}


@pytest.mark.parametrize("late", [False, True])
def test_speech_that_a_microphone_hears_after_a_wake_event_is_a_devices(late: bool) -> None:
    trial = wake_trial(1, AMBIENT, injected=False, settings=WakeSettings(proof_within_s=100))
    rows = rows_of(trial, at_s=10.0)
    rows.see(seen_by.ListeningProved("kitchen_link", Stamp(10.0), seen_by.Proof.HEARTBEAT))
    woke = seen_by.Wake("kitchen_link", Stamp(10.1))
    spoke = seen_by.SpeechStarted("mic", Stamp(12.0), -30.0), seen_by.SpeechEnded("mic", Stamp(16.0))
    speech = seen_by.SpeechStarted("mic", Stamp(40.0), -30.0), seen_by.SpeechEnded("mic", Stamp(45.0))
    for observation in (*spoke, *speech, woke) if late else (woke, *spoke, *speech):
        rows.see(observation)
    rows.play(trial, [("kitchen", 4.0), ("kitchen", 32.0)])
    figures = rows.device()
    assert figures.false_accepts.count == 1, "nobody woke before the second speech: a person, or the sound itself"
    assert figures.ambient_events_outside == 1


def test_reviews_decide_and_can_be_taken_back() -> None:
    trial = wake_trial(1, AMBIENT)
    rows = rows_of(trial)
    first, second = rows.play(trial, [("kitchen", 10.0), ("kitchen", 20.0)])
    rows.add(EventReviewed(first, ReviewVerdict.REAL_PERSON, "ann"))
    rows.add(EventReviewed(second, ReviewVerdict.FALSE_ACCEPT, "ann"))
    figures = rows.device()
    assert (figures.false_accepts.count, figures.after_review.count) == (2, 1)
    assert dict(figures.events) == {ReviewVerdict.REAL_PERSON: 1, ReviewVerdict.FALSE_ACCEPT: 1}
    rows.add(EventReviewed(first, ReviewVerdict.SELF_WAKE, "bob"))
    latest = next(event for event in rows.progress.unmatched if event.seq == first)
    assert (latest.verdict, latest.reviewed_by) == (ReviewVerdict.SELF_WAKE, "bob")
    rows.add(EventReviewed(first, None, "bob"))
    figures = rows.device()
    assert (figures.false_accepts.count, figures.after_review.count) == (2, 2)
    clip = clip_of("around.flac")
    rows.add(EventClipped(second, clip))
    assert rows.progress.unmatched[0].clip == clip


def test_in_vocabulary_events_count_when_asked_for() -> None:
    settings = WakeSettings(count_in_vocabulary=True)
    wake, ambient = wake_trial(1, settings=settings), wake_trial(2, AMBIENT, settings=settings)
    rows = rows_of(wake, ambient)
    rows.play(wake, [("kitchen", 0.4), ("kitchen", 1.9)])
    rows.play(ambient, [("kitchen", 30.0)])
    figures = rows.device()
    assert figures.false_accepts.count == 2
    assert figures.exposure_s == pytest.approx(60.0 + 3.1 - 0.9)


def test_commands_are_matched_substituted_or_missed() -> None:
    trials = [wake_trial(number, COMMAND) for number in range(1, 6)]
    rows = rows_of(*trials)
    rows.play(trials[0], [("kitchen", 1.3)], words=[("kitchen", 2.5, "Alexa, turn on the light!")])
    rows.play(trials[1], [("kitchen", 1.3)], words=[("kitchen", 2.5, "turn off the light")])
    rows.play(trials[2], [("kitchen", 1.3)])
    rows.play(trials[3], words=[("kitchen", 2.4, "intent:turn on the light")])
    # What an earlier command left over is not the answer to this one.
    rows.play(trials[4], words=[("kitchen", 0.2, "turn on the light"), ("kitchen", 2.4, "lights out")])
    figures = rows.device()
    assert (figures.commands, figures.substituted, figures.missed) == (Share(2, 5), 2, 1)
    assert figures.false_rejects.share == Share(), "false rejects are of wake trials"
    assert figures.in_vocabulary_events == 0, "the phrase of a command is its own event"


def test_several_devices_and_conditions_have_their_own_counts() -> None:
    first = wake_trial(1, devices=("kitchen", "den"), conditions=(("voice", "slt"), ("noise", "quiet")))
    two = wake_trial(2, devices=("kitchen", "den"), conditions=(("voice", "rms"), ("noise", "quiet")))
    rows = rows_of(first, two)
    rows.play(first, [("kitchen", 1.8), ("den", 1.9)])
    rows.play(two, [("kitchen", 1.8)])
    assert rows.device().false_rejects.share == Share(0, 2)
    assert rows.device("den").false_rejects.share == Share(1, 2)
    cells = {name: ratio.share for name, ratio in rows.device("den").conditions}
    assert cells == {"voice=slt": Share(0, 1), "noise=quiet": Share(1, 2), "voice=rms": Share(1, 1)}
    assert [name for name, _ in rows.device().conditions] == ["voice=slt", "voice=rms", "noise=quiet"]
    assert all(ratio.interval for _, ratio in rows.device("den").conditions)
    assert rows.figures.hits("den") == {"wake-1": True, "wake-2": False}


def test_recording_without_a_known_phrase_end_has_no_delay() -> None:
    trials = [
        replace(trial, recipe=replace(trial.recipe, query=Recording(f"/said/{trial.id}.wav", phrase_end_s=ends_s)))
        for trial, ends_s in ((wake_trial(1), None), (wake_trial(2), 0.6))
    ]
    rows = rows_of(*trials, at_s=50.0)
    for trial in trials:
        rows.play(trial, [("kitchen", 1.8)])
    assert rows.device().hits == 2
    assert [play.reading.delay is not None for play in rows.figures.plays("kitchen")] == [False, True]
    assert rows.device().delays.total == 1


def test_ambient_events_are_shown_while_they_come_and_counted_at_the_end() -> None:
    rows = played(wake_trial(1, AMBIENT), [("kitchen", 10.0), ("kitchen", 10.5)])
    figures = WakeFigures()
    for entry in rows.entries:
        if isinstance(entry.record, AttemptFinished):
            break
        figures.add(entry)
    before = figures.snapshot()
    assert len(before.unmatched) == 1
    assert before.devices[0].false_accepts.count == before.devices[0].ambient_events_outside == 0


def test_the_sound_of_every_counted_event_is_kept() -> None:
    """Wakes every 1.5 s with a refractory time of 2 s: every other one counts, while it comes and afterwards."""
    ambient = wake_trial(1, AMBIENT)
    rows = rows_of(ambient, at_s=50.0)
    seqs = rows.play(ambient, [("kitchen", 10.0 + 1.5 * number) for number in range(6)])
    figures, shown = WakeFigures(), []
    for entry in rows.entries:
        figures.add(entry)
        if isinstance(entry.record, AttemptFinished):
            break
        shown = [event.seq for event in figures.unmatched("kitchen")]
    assert rows.device().after_review.count == 3
    assert shown == [event.seq for event in figures.unmatched("kitchen")] == [seqs[0], seqs[2], seqs[4]]
    assert [seq for seq in seqs if not figures.is_explained(seq)] == shown


def test_near_miss_event_in_a_window_keeps_its_sound() -> None:
    """Of two events in one window the one nearer to the phrase is its own; that is known when the attempt has ended."""
    call = wake_trial(1, settings=WakeSettings(refractory_s=0.3))
    rows = rows_of(call, at_s=50.0)
    early, near = rows.play(call, [("kitchen", 1.0), ("kitchen", 1.7)])
    figures = WakeFigures()
    for entry in rows.entries:
        if isinstance(entry.record, AttemptFinished):
            assert [figures.is_explained(seq) for seq in (early, near)] == [None, None]
        figures.add(entry)
    assert [figures.is_explained(seq) for seq in (early, near)] == [False, True]
    assert [event.seq for event in figures.unmatched("kitchen")] == [early]


def test_device_status_clock_and_proofs_are_tracked() -> None:
    rows = rows_of(wake_trial(1))
    rows.see(seen_by.ClockFitted("kitchen_link", Stamp(3.0), "b1", 0.0, 12.0, 0.0004))
    rows.see(seen_by.ListeningProved("kitchen_link", Stamp(4.0), seen_by.Proof.STATUS))
    rows.see(seen_by.Status("kitchen_link", Stamp(5.0), seen_by.DeviceState.GONE))
    rows.add(DecisionReached("kitchen", "false_rejects", True))
    figures = rows.device()
    assert (figures.clock_error_s, figures.listening_proved_s, figures.link_up) == (0.0004, 4.0, False)
    assert figures.decisions == (("false_rejects", True),)
    rows.see(seen_by.Status("kitchen_link", Stamp(6.0), seen_by.DeviceState.STARTED))
    assert rows.device().link_up


def test_repeated_rows_change_nothing() -> None:
    rows = played(wake_trial(1), [("kitchen", 1.8)])
    progress, figures = rows.progress, rows.figures
    for entry in rows.entries:
        figures.add(entry)
    assert figures.snapshot() == progress
    strange = replace(rows.entries[-1], seq=100, record=AttemptStarted("x", 1, 1, "p", "s", 0, 0, 1, None))
    figures.add(strange)
    assert figures.snapshot() == progress


def resumed(rows: WakeRows) -> None:
    rows.add(EngineStarted(2, 4242, "boot", 1.0))
    rows.audio_s = 0.0


def test_an_event_of_this_run_is_not_taken_for_one_of_the_run_before() -> None:
    first, two = wake_trial(1), wake_trial(2)
    rows = rows_of(first, two)
    rows.play(first)
    resumed(rows)
    rows.play(two, [("kitchen", 1.8)])
    assert rows.figures.hits("kitchen") == {first.id: False, two.id: True}


def test_an_event_of_this_run_is_not_part_of_one_of_the_run_before() -> None:
    first, two = (wake_trial(number, TrialKind.AMBIENT) for number in (1, 2))
    rows = rows_of(first, two)
    rows.play(first, [("kitchen", 0.1)])
    resumed(rows)
    rows.play(two, [("kitchen", 0.5)])
    assert rows.device().false_accepts.count == 2
    assert rows.device().suppressed == 0


def test_acknowledgements_prove_nothing_for_the_next_run() -> None:
    first, two, three = (wake_trial(number, TrialKind.AMBIENT) for number in (1, 2, 3))
    rows = rows_of(first, two, three)
    rows.play(first)
    rows.play(two)
    resumed(rows)
    rows.play(three, proof=False)
    assert (rows.device().exposure_s, rows.device().unproven_s) == (120.0, 60.0)


def test_a_command_has_no_delay_since_nobody_knows_where_its_phrase_ends() -> None:
    call, ask = wake_trial(1), wake_trial(2, TrialKind.COMMAND)
    rows = rows_of(call, ask)
    rows.play(call, [("kitchen", 1.8)])
    rows.play(ask, [("kitchen", 1.3)])
    assert rows.device().delays.total == 1
    assert rows.device().false_rejects.share == Share(0, 1)


def test_wake_on_an_interrupted_phrase_counts_nowhere() -> None:
    call = wake_trial(1)
    rows = rows_of(call)
    rows.play(call, [("kitchen", 0.2)], outcome=Outcome.INTERRUPTED, finish=False)
    resumed(rows)
    rows.play(call, [("kitchen", 1.8)], attempt=2)
    assert (rows.device().hits, rows.device().in_vocabulary_events) == (1, 0)


def test_the_groups_add_up_to_all_events() -> None:
    events = UnmatchedEvents()
    cases = list(product((False, True), (False, True), (None, ReviewVerdict.SELF_WAKE), (False, True)))
    for seq, (in_vocabulary, exposed, rule, pending) in enumerate(cases):
        now = Stamp(float(seq))
        events.put(
            UnmatchedWake(seq, "d", now, 0.0, "a", None, None, in_vocabulary=in_vocabulary, exposed=exposed, rule=rule),
            pending,
        )
    counts = events.counts("d")
    by_rule = 1  # exposed, in ambient sound, and its own voice
    groups = (counts.before_review, by_rule, counts.in_vocabulary, counts.outside, counts.uncounted, counts.pending)
    assert groups == (1, 1, 2, 2, 2, 8)
    assert sum(counts.by_verdict.values()) == sum(groups)
    for seq in range(len(cases)):
        events.drop(seq)
    assert (counts.uncounted, counts.pending, counts.outside, counts.in_vocabulary) == (0, 0, 0, 0)


@pytest.mark.parametrize(("count", "pairs"), [(1, 0), (2, 1), (3, 3), (5, 4)])
def test_all_pairs_of_a_few_devices_and_each_with_the_first_of_many(count: int, pairs: int) -> None:
    names = [f"d{n}" for n in range(count)]
    trials = [wake_trial(n, devices=names) for n in range(1, 5)]
    rows = rows_of(*trials)
    for trial in trials:
        rows.play(trial, [(name, 1.8) for n, name in enumerate(names) if n <= trial.number])
    device_pairs = comparisons(rows.figures)
    assert len(device_pairs) == pairs
    assert all(pair.counts.total == 4 for pair in device_pairs)
    if count == 5:
        assert device_pairs[-1].counts == Discordance(both=1, only_first=3, only_second=0, neither=0)


@AIR_AND_WIRE
@pytest.mark.parametrize(
    ("events_s", "hits", "false_accepts", "doubled"),
    [
        ((0.3, 1.8, 2.6), 1, 0, 0),  # opening, phrase and closing
        ((0.3, 2.6), 0, 0, 0),
        ((0.3,), 0, 0, 0),
        ((1.8,), 1, 0, 0),
        ((0.3, 1.8, 2.0, 2.6), 1, 1, 1),
    ],
)
def test_events_of_an_opening_are_neither_hits_nor_false_accepts(
    injected: bool, events_s: tuple[float, ...], hits: int, false_accepts: int, doubled: int
) -> None:
    settings = WakeSettings(count_in_vocabulary=True, window_after_s=0.5)
    trial = wake_trial(1, injected=injected, settings=settings)
    other = ((0.0, 0.2), (2.3, 2.5))
    rows = played(trial, [("kitchen", at_s) for at_s in events_s], other_phrases=other)
    figures = rows.device()
    assert figures.hits == hits
    assert sum(count for _, count in figures.events) == false_accepts
    assert figures.double_wakes == Share(doubled, hits)
