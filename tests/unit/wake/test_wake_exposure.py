"""Exposure by heartbeats, states and probes, and what holds of wake figures whatever is played."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model import observation as seen_by
from harness.model.record import EngineStarted, EventReviewed, ReviewVerdict, TrialFinished
from harness.model.scenario import Limits, TrialKind, WakeSettings
from harness.model.time import Stamp
from harness.model.trial import Outcome, Trial
from harness.session.figures.limits import check_limits
from harness.session.figures.progress import Totals
from harness.statistics.intervals import Share
from harness.wake.proofs import MAX_PROBE_INTERVALS, PROBE_SLACK_S, Proofs
from harness.wake.wake import WakeFigures
from harness.wake.wake_progress import MAX_LOOKS, LookCounts, Looks, MarkKind, WakeProgress
from tests.known import known
from tests.unit.wake.wake_rows import PHRASE, WAKE_DURATION_S, WakeRows, played, rows_of, wake_trial

EVERY_S = 120.0
SEGMENT_S = 60.0
LINK = "kitchen_link"


def probe(number: int, injected: bool = False, kind: TrialKind = TrialKind.PROBE, every_s: float = EVERY_S) -> Trial:
    trial = wake_trial(number, kind, injected=injected)
    assert trial.listening is not None
    return replace(trial, listening=replace(trial.listening, probe_every_s=every_s))


def segment(number: int, every_s: float = EVERY_S, injected: bool = False) -> Trial:
    return probe(number, injected, TrialKind.AMBIENT, every_s)


def ask(rows: WakeRows, trial: Trial, *heard: bool) -> None:
    """A probe, once or twice, heard or not each time."""
    for attempt, woke in enumerate(heard, start=1):
        last = attempt == len(heard)
        rows.play(
            trial,
            [("kitchen", 1.9)] if woke else [],
            attempt=attempt,
            outcome=Outcome.COUNTED if woke else Outcome.NO_WAKE,
            proof=False,
            finish=last,
        )


def test_a_segment_between_two_probes_that_were_heard_is_exposure() -> None:
    rows = rows_of(first := probe(1), ambient := segment(2), two := segment(3), last := probe(4))
    ask(rows, first, True)
    rows.play(ambient, proof=False)
    rows.play(two, [("kitchen", 30.0)], proof=False)
    assert (rows.device().exposure_s, rows.device().unproven_s) == (0.0, 2 * SEGMENT_S)
    assert (rows.device().false_accepts.count, rows.device().ambient_events_outside) == (0, 1)
    ask(rows, last, True)
    figures = rows.device()
    assert (figures.exposure_s, figures.unproven_s) == (2 * SEGMENT_S, 0.0)
    assert (figures.false_accepts.count, figures.ambient_events_outside) == (1, 0)
    assert figures.probes == Share(2, 2)


def test_probe_counts_only_as_proof() -> None:
    rows = rows_of(first := probe(1), last := probe(2))
    ask(rows, first, True)
    ask(rows, last, False, False)
    figures = rows.device()
    assert (figures.hits, figures.false_rejects.share, figures.delays.total) == (0, Share(0, 0), 0)
    assert figures.events == ()
    assert figures.probes == Share(1, 2)
    assert [mark.kind for mark in figures.timeline if mark.kind is not MarkKind.INTERRUPTED] == [
        MarkKind.PROBE,
        MarkKind.PROBE_UNHEARD,
    ]


def test_a_probe_heard_the_second_time_proves_as_well() -> None:
    rows = rows_of(first := probe(1), ambient := segment(2), last := probe(3))
    ask(rows, first, False, True)
    rows.play(ambient, proof=False)
    ask(rows, last, False, True)
    assert rows.device().exposure_s == SEGMENT_S


def test_a_skipped_probe_proves_nothing_and_disproves_nothing() -> None:
    rows = rows_of(first := probe(1), ambient := segment(2), skipped := probe(3), two := segment(4), last := probe(5))
    ask(rows, first, True)
    rows.play(ambient, proof=False)
    rows.add(TrialFinished(skipped.id, 1, Outcome.SKIPPED, 0, None, "operator"))
    rows.play(two, proof=False)
    ask(rows, last, True)
    assert rows.device().exposure_s == 2 * SEGMENT_S


def test_a_restart_breaks_the_proof() -> None:
    rows = rows_of(first := probe(1), ambient := segment(2), two := segment(3), last := probe(4))
    ask(rows, first, True)
    rows.play(ambient, proof=False)
    rows.see(seen_by.Status(LINK, Stamp(rows.at_s), seen_by.DeviceState.STARTED))
    rows.play(two, proof=False)
    ask(rows, last, True)
    assert (rows.device().exposure_s, rows.device().unproven_s) == (0.0, 2 * SEGMENT_S)


def test_a_long_pause_between_two_probes_proves_nothing() -> None:
    rows = rows_of(first := probe(1), ambient := segment(2), last := probe(3))
    ask(rows, first, True)
    rows.play(ambient, proof=False)
    rows.at_s += MAX_PROBE_INTERVALS * EVERY_S + PROBE_SLACK_S
    ask(rows, last, True)
    assert rows.device().exposure_s == 0.0


def test_a_wake_trial_that_was_heard_proves_too_where_probes_are_declared() -> None:
    rows = rows_of(first := probe(1), ambient := segment(2), call := wake_trial(3, injected=False))
    ask(rows, first, True)
    rows.play(ambient, proof=False)
    rows.play(call, [("kitchen", 1.9)], proof=False)
    assert rows.device().exposure_s == SEGMENT_S
    assert rows.device().hits == 1


def test_an_interrupted_segment_counts_nowhere_and_its_repetition_does() -> None:
    rows = rows_of(first := probe(1), ambient := segment(2), last := probe(3))
    ask(rows, first, True)
    rows.play(ambient, outcome=Outcome.INTERRUPTED, proof=False, duration_s=20.0, finish=False)
    rows.play(ambient, attempt=2, proof=False)
    ask(rows, last, True)
    assert rows.device().exposure_s == SEGMENT_S


def test_more_segments_than_are_kept_for_late_events_are_proved_by_one_probe() -> None:
    segments = [segment(number, every_s=10_000.0) for number in range(2, 62)]
    rows = rows_of(first := probe(1), *segments, last := probe(99))
    ask(rows, first, True)
    for ambient in segments:
        rows.play(ambient, [("kitchen", 10.0), ("kitchen", 10.5)], proof=False)
    ask(rows, last, True)
    figures = rows.device()
    assert figures.exposure_s == 60 * SEGMENT_S
    assert (figures.false_accepts.count, figures.suppressed) == (60, 60)


def test_acknowledged_audio_needs_no_probe() -> None:
    rows = rows_of(first := probe(1, True), ambient := segment(2, injected=True), last := probe(3, True))
    ask(rows, first, False, False)
    rows.play(ambient)
    ask(rows, last, False, False)
    assert rows.device().exposure_s == SEGMENT_S


def test_probes_and_heartbeats_together_prove_each_second_once() -> None:
    rows = rows_of(first := probe(1), ambient := segment(2), last := probe(3))
    ask(rows, first, True)
    begun_s = rows.at_s
    rows.play(ambient, proof=False)
    ends_s, rows.at_s = rows.at_s, begun_s
    for beat in range(12):
        rows.see(seen_by.ListeningProved(LINK, Stamp(begun_s + 5.0 * beat), seen_by.Proof.HEARTBEAT))
    rows.at_s = ends_s
    assert rows.device().exposure_s == pytest.approx(54.5, abs=1.0)
    ask(rows, last, True)
    assert rows.device().exposure_s == SEGMENT_S


Op = Literal["heard", "unheard", "segment", "lost", "engine"]


@given(st.lists(st.sampled_from(["heard", "heard", "unheard", "segment", "segment", "lost", "engine"]), max_size=14))
def test_exposure_is_what_lies_between_two_phrases_that_were_heard(ops: list[Op]) -> None:
    trials = [segment(n, every_s=5000.0) if op == "segment" else probe(n) for n, op in enumerate(ops)]
    rows = rows_of(*trials, segment(900, every_s=5000.0))
    proven = waiting = total = 0
    listening = False
    for trial, op in zip(trials, ops, strict=True):
        match op:
            case "heard":
                ask(rows, trial, True)
                proven, waiting, listening = proven + waiting, 0, True
            case "unheard":
                ask(rows, trial, False, False)
                waiting, listening = 0, False
            case "segment":
                rows.play(trial, [("kitchen", 7.0)], proof=False)
                total += 1
                waiting += listening
            case "lost":
                rows.see(seen_by.LinkLost(LINK, Stamp(rows.at_s), "unplugged"))
                rows.see(seen_by.LinkBack(LINK, Stamp(rows.at_s)))
                waiting, listening = 0, False
            case "engine":
                rows.add(EngineStarted(2, 1, "boot", 1.0))
                waiting, listening = 0, False
    figures = rows.device()
    assert figures.exposure_s == proven * SEGMENT_S
    assert figures.unproven_s == (total - proven) * SEGMENT_S
    assert figures.false_accepts.count == proven
    assert figures.ambient_events_outside == total - proven
    stepwise = WakeFigures()
    for entry in rows.entries:
        stepwise.add(entry)
        stepwise.snapshot()
    assert stepwise.snapshot() == rows.progress


def test_a_state_that_proves_listening_proves_that_moment_and_others_do_not() -> None:
    trial = wake_trial(1, TrialKind.AMBIENT, injected=False)
    (target,) = known(trial.listening).targets
    tells = replace(target, listening_states=(seen_by.DeviceState.IDLE,))
    for listener, expected_s in ((tells, 10.0), (target, 0.0)):
        rows = rows_of(replace(trial, listening=replace(trial.listening, targets=(listener,))))
        (segment_trial,) = rows.trials.values()
        rows.see(seen_by.Status(LINK, Stamp(0.5), seen_by.DeviceState.IDLE))
        rows.at_s = 1.0
        rows.begin(segment_trial, 1.0, (0.0, SEGMENT_S, SEGMENT_S))
        rows.see(seen_by.Status(LINK, Stamp(11.0), seen_by.DeviceState.IDLE), segment_trial)
        rows.see(seen_by.Status(LINK, Stamp(20.0), seen_by.DeviceState.SPEAKING), segment_trial)
        rows.see(seen_by.Status(LINK, Stamp(40.0), seen_by.DeviceState.IDLE), segment_trial)
        rows.at_s = 61.0
        rows.end(segment_trial, 61.0)
        assert rows.device().exposure_s == expected_s, "10 s lie between two proofs, 29 s are too far apart"


def test_through_the_air_a_phrase_lies_where_our_microphone_found_it() -> None:
    """The window moves with it, and the delay is measured from there, with the errors of both moments.

    The microphone may report it after the attempt.
    """
    for heard_s, error_s, after in ((None, 0.02, False), (0.35, 0.004, False), (0.35, 0.004, True)):
        rows = rows_of(call := wake_trial(1, injected=False))
        rows.begin(call, 0.0, (*PHRASE, WAKE_DURATION_S), error_s=0.02)
        if heard_s is not None and not after:
            rows.see(seen_by.StimulusHeard("mic", Stamp(heard_s, error_s), "p1", 0.8), call)
        event_s = PHRASE[1] + 1.2  # 1.2 s after its end by the player, 0.85 s by the microphone
        rows.at_s = event_s
        rows.see(seen_by.Wake(LINK, Stamp(event_s, 0.01), "alexa", 0.9), call)
        rows.at_s = WAKE_DURATION_S
        rows.end(call, WAKE_DURATION_S)
        if heard_s is not None and after:
            rows.see(seen_by.StimulusHeard("mic", Stamp(heard_s, error_s), "p1", 0.8))
        (play,) = rows.figures.plays("kitchen")
        if heard_s is None:
            assert play.reading.hit is None
        else:
            assert known(play.reading.delay).value_s == pytest.approx(0.85)
            assert known(play.reading.delay).error_s == pytest.approx(error_s + 0.01)


def test_a_player_that_stood_still_has_played_no_longer() -> None:
    rows = rows_of(trial := wake_trial(1, TrialKind.AMBIENT, injected=False))
    rows.begin(trial, 0.0, (0.0, 30.0, 30.0))
    for beat in range(9):
        rows.see(seen_by.ListeningProved(LINK, Stamp(5.0 * beat), seen_by.Proof.HEARTBEAT), trial)
    rows.at_s = 40.0
    rows.end(trial, 36.0)
    assert rows.device().exposure_s == 30.0


def test_the_limit_on_exposure_counts_proved_hours_only() -> None:
    rows = rows_of(first := probe(1), ambient := segment(2), last := probe(3), two := segment(4))
    ask(rows, first, True)
    rows.play(ambient, proof=False)
    ask(rows, last, True)
    rows.play(two, proof=False)
    for hours, ok in ((SEGMENT_S / 3600, True), (2 * SEGMENT_S / 3600, False)):
        (verdict,) = check_limits(Limits(min_exposure_hours=hours), Totals(), rows.progress)
        assert verdict.holds is ok


kinds = st.sampled_from([TrialKind.WAKE, TrialKind.AMBIENT])
offsets = st.lists(st.integers(0, 400).map(lambda n: n / 128), max_size=5)
outcomes = st.sampled_from([Outcome.COUNTED, Outcome.COUNTED, Outcome.INTERRUPTED])
plays_of = st.lists(st.tuples(kinds, offsets, outcomes), min_size=1, max_size=6)
Plays = list[tuple[TrialKind, list[float], Outcome]]


def session(plays: Plays, injected: bool, at_s: float = 0.0, audio_s: float = 0.0) -> WakeRows:
    settings = WakeSettings(proof_within_s=1000)
    trials = [wake_trial(number, kind, ("a",), injected, settings) for number, (kind, _, _) in enumerate(plays)]
    rows = WakeRows(at_s=at_s, audio_s=audio_s)
    rows.plan(*trials)
    for trial, (_, events, outcome) in zip(trials, plays, strict=True):
        rows.play(trial, [("a", offset_s) for offset_s in events], outcome=outcome, duration_s=3.5)
    return rows


def counts(progress: WakeProgress) -> tuple[object, ...]:
    device = progress.devices[0]
    return (
        device.hits,
        device.false_rejects.share,
        device.false_accepts.count,
        device.after_review.count,
        device.events,
        device.in_vocabulary_events,
        device.suppressed,
        device.exposure_s,
        device.unproven_s,
        device.ambient_events_outside,
        [(event.seq, event.exposed, event.trial_id) for event in progress.unmatched],
    )


@given(plays_of, st.booleans(), st.integers(-1000, 10**6), st.integers(0, 10**6))
def test_shifting_all_times_changes_nothing(plays: Plays, injected: bool, by_s: int, audio_by_s: int) -> None:
    base, shifted = session(plays, injected), session(plays, injected, float(by_s), float(audio_by_s))
    assert counts(shifted.progress) == counts(base.progress)


@given(plays_of, st.booleans())
def test_every_event_is_counted_in_one_place(plays: Plays, injected: bool) -> None:
    rows = session(plays, injected)
    figures = rows.figures
    device = figures.snapshot().devices[0]
    counted = figures.plays("a")
    assert len({id(play) for play in counted}) == len(counted) == sum(o is Outcome.COUNTED for _, _, o in plays)
    hits = [play.reading.hit.seq for play in counted if play.reading.hit]
    unmatched = [event.seq for event in figures.unmatched("a")]
    event_count = sum(len(events) for _, events, _ in plays)
    assert len(set(hits) | set(unmatched)) == len(hits) + len(unmatched)
    assert len(hits) + len(unmatched) + device.suppressed == event_count
    for play in counted:
        if play.reading.hit is not None and play.window is not None:
            assert play.window.start_s <= play.place(play.reading.hit) <= play.window.end_s
    assert device.hits + device.false_rejects.share.count == device.false_rejects.share.total
    assert device.after_review.count == device.false_accepts.count


@given(
    plays_of,
    st.booleans(),
    st.lists(st.tuples(st.integers(0, 30), st.sampled_from([None, *ReviewVerdict])), max_size=6),
)
def test_reviews_in_any_order_leave_counts_that_add_up(
    plays: Plays, injected: bool, reviews: list[tuple[int, ReviewVerdict | None]]
) -> None:
    rows = session(plays, injected)
    unmatched = rows.figures.unmatched("a")
    for index, word in reviews:
        if unmatched:
            rows.add(EventReviewed(unmatched[index % len(unmatched)].seq, word, "ann"))
    figures = rows.figures
    device = figures.snapshot().devices[0]
    events = figures.unmatched("a")
    assert sum(count for _, count in device.events) == len(events)
    assert device.after_review.count == sum(figures.is_false_accept(event, use_reviews=True) for event in events)
    assert device.false_accepts.count == sum(figures.is_false_accept(event, use_reviews=False) for event in events)


def test_looks_are_thinned_and_end_with_the_latest() -> None:
    looks = Looks()
    for number in range(1, 5001):
        looks.add(LookCounts(float(number), Share(0, number), {}, (), number * 60.0, 0))
    snapshot = looks.snapshot()
    assert len(snapshot) <= MAX_LOOKS + 1
    assert snapshot[-1].trials == 5000
    gaps = {after.trials - before.trials for before, after in pairwise(snapshot[:-1])}
    assert len(gaps) == 1
    widths = [look.false_accepts.any_time for look in snapshot]
    assert widths[0] is not None
    assert widths[-1] is not None
    assert widths[-1][1] < widths[0][1]


def test_a_flood_of_events_is_counted_quickly() -> None:
    rows = played(wake_trial(1, TrialKind.AMBIENT, ("a",)), [("a", index * 0.006) for index in range(10_000)])
    figures = rows.device("a")
    assert figures.false_accepts.count == pytest.approx(30, abs=1)
    assert figures.false_accepts.count + figures.suppressed == 10_000


@pytest.mark.parametrize(
    ("restarts_first", "spans"), [(True, [(100.0, 108.0)]), (False, [(100.0, 100.0), (108.0, 108.0)])]
)
def test_a_restart_and_a_sign_of_life_of_one_moment_count_in_their_order(
    restarts_first: bool, spans: list[tuple[float, float]]
) -> None:
    proofs = Proofs(15.0)
    if restarts_first:
        proofs.add_cut(100.0)
    proofs.add(seen_by.ListeningProved(LINK, Stamp(100.0), seen_by.Proof.HEARTBEAT))
    if not restarts_first:
        proofs.add_cut(100.0)
    proofs.add(seen_by.ListeningProved(LINK, Stamp(108.0), seen_by.Proof.HEARTBEAT))
    assert proofs.spans == spans


def test_an_event_between_two_sounds_on_a_wire_follows_the_first_whenever_it_is_reported() -> None:
    """Its sample is the end of the first sound and the beginning of the second."""
    outcomes = []
    for is_late in (False, True):
        rows = rows_of(first := wake_trial(1), second := wake_trial(2))
        rows.play(first, [("kitchen", PHRASE[1] + 0.1)], duration_s=6.0)
        between = seen_by.Wake(LINK, Stamp(rows.at_s), "alexa", 0.9, rows.audio_s)
        if not is_late:
            rows.see(between)
        rows.play(second, [("kitchen", PHRASE[1] + 0.1)])
        if is_late:
            rows.see(between)
        kitchen = rows.device("kitchen")
        outcomes.append((kitchen.hits, kitchen.double_wakes.count, kitchen.in_vocabulary_events, kitchen.suppressed))
    assert outcomes[0] == outcomes[1]
    assert outcomes[0][:2] == (2, 1)


@pytest.mark.parametrize("is_late", [False, True])
def test_an_event_at_the_end_of_a_sound_is_no_hit_of_the_next_whose_phrase_comes_at_once(is_late: bool) -> None:
    first, second = wake_trial(1), wake_trial(2)
    rows = rows_of(first, second)
    rows.play(first, [("kitchen", PHRASE[1] + 0.1)], duration_s=6.0)
    between = seen_by.Wake(LINK, Stamp(rows.at_s), "alexa", 0.9, rows.audio_s)
    if not is_late:
        rows.see(between)
    rows.begin(second, rows.at_s, (0.05, 0.65, 3.0), sound=(LINK, "at once", rows.audio_s))
    rows.end(second, rows.at_s + 3.0, sound=(LINK, "at once", rows.audio_s + 3.0))
    if is_late:
        rows.see(between)
    kitchen = rows.device("kitchen")
    assert (kitchen.hits, kitchen.false_rejects.share.count, kitchen.double_wakes.count) == (1, 1, 1)


def test_speech_whose_end_is_reported_hours_later_explains_its_first_minutes_only() -> None:
    trial = wake_trial(
        1, TrialKind.AMBIENT, injected=False, settings=WakeSettings(proof_within_s=1000), ambient_s=600.0
    )
    rows = rows_of(trial, at_s=10.0)
    rows.see(seen_by.ListeningProved(LINK, Stamp(10.0), seen_by.Proof.HEARTBEAT))
    for at_s, state in ((15.0, seen_by.DeviceState.SPEAKING), (9000.0, seen_by.DeviceState.IDLE)):
        rows.see(seen_by.Status(LINK, Stamp(at_s), state))
    rows.play(trial, [("kitchen", 200.0), ("kitchen", 400.0)], duration_s=600.0)
    assert dict(rows.device().events) == {ReviewVerdict.SELF_WAKE: 1, None: 1}
    assert rows.device().false_accepts.count == 1


def test_a_device_that_was_lost_is_back_with_its_next_sign_and_in_the_next_run() -> None:
    rows = rows_of(segment(1))
    rows.see(seen_by.Status(LINK, Stamp(7.0), seen_by.DeviceState.GONE))  # the last will, late
    assert not rows.device().link_up
    rows.see(seen_by.ListeningProved(LINK, Stamp(8.0), seen_by.Proof.HEARTBEAT))
    assert rows.device().link_up
    rows.see(seen_by.LinkLost(LINK, Stamp(9.0), "unplugged"))
    assert rows.device().link_trouble == "unplugged"
    rows.add(EngineStarted(2, 4242, "boot", 1.0))
    assert rows.device().link_up


def test_speech_explains_a_wake_event_although_the_end_of_an_older_one_was_reported_after_it() -> None:
    trial = wake_trial(
        1, TrialKind.AMBIENT, ("kitchen", "den"), False, WakeSettings(proof_within_s=2000), ambient_s=900.0
    )
    rows = rows_of(trial, at_s=10.0)
    for name in ("kitchen", "den"):
        rows.see(seen_by.ListeningProved(f"{name}_link", Stamp(10.0), seen_by.Proof.HEARTBEAT))
    for name, at_s, state in (
        ("den", 15.0, seen_by.DeviceState.SPEAKING),
        ("kitchen", 700.0, seen_by.DeviceState.SPEAKING),
        ("kitchen", 705.0, seen_by.DeviceState.IDLE),
        ("den", 710.0, seen_by.DeviceState.IDLE),
    ):
        rows.see(seen_by.Status(f"{name}_link", Stamp(at_s), state))
    rows.play(trial, [("kitchen", 692.0), ("kitchen", 800.0)], duration_s=900.0)
    assert [(event.at.at_s, event.why) for event in rows.progress.unmatched] == [
        (pytest.approx(810.5), ""),
        (pytest.approx(702.5), "during its own speech"),
    ]
