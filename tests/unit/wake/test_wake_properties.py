"""What holds of wake figures whatever is played and whatever a device says."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.record import EventReviewed, ReviewWord
from harness.model.scenario import TrialKind, WakeSettings
from harness.model.trial import Outcome
from harness.statistics.intervals import Share
from harness.wake.wake import WakeFigures
from harness.wake.wake_progress import LOOKS, Looks, WakeProgress
from tests.unit.wake.wake_rows import WakeRows, wake_trial

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
        rows.play(trial, [("a", one) for one in events], outcome=outcome, duration_s=3.5)
    return rows


def counts(progress: WakeProgress) -> tuple[object, ...]:
    one = progress.devices[0]
    return (
        one.hits,
        one.false_rejects.share,
        one.false_accepts.count,
        one.after_review.count,
        one.events,
        one.in_vocabulary_events,
        one.suppressed,
        one.exposure_s,
        one.unproven_s,
        one.ambient_events_outside,
        [(event.seq, event.exposed, event.trial_id) for event in progress.unmatched],
    )


@given(plays_of, st.booleans(), st.integers(-1000, 10**6), st.integers(0, 10**6))
def test_shifting_all_times_changes_nothing(plays: Plays, injected: bool, by_s: int, audio_by_s: int) -> None:
    here, there = session(plays, injected), session(plays, injected, float(by_s), float(audio_by_s))
    assert counts(there.progress) == counts(here.progress)


@given(plays_of, st.booleans())
def test_every_event_has_one_place(plays: Plays, injected: bool) -> None:
    rows = session(plays, injected)
    figures = rows.figures
    one = figures.snapshot().devices[0]
    counted = figures.plays("a")
    assert len({id(play) for play in counted}) == len(counted) == sum(o is Outcome.COUNTED for _, _, o in plays)
    hits = [play.reading.hit.seq for play in counted if play.reading.hit]
    unmatched = [event.seq for event in figures.unmatched("a")]
    told = sum(len(events) for _, events, _ in plays)
    assert len(set(hits) | set(unmatched)) == len(hits) + len(unmatched)
    assert len(hits) + len(unmatched) + one.suppressed == told
    for play in counted:
        if play.reading.hit is not None and play.window is not None:
            assert play.window.start_s <= play.place(play.reading.hit) <= play.window.end_s
    assert one.hits + one.false_rejects.share.count == one.false_rejects.share.total
    assert one.after_review.count == one.false_accepts.count


@given(
    plays_of, st.booleans(), st.lists(st.tuples(st.integers(0, 30), st.sampled_from([None, *ReviewWord])), max_size=6)
)
def test_reviews_in_any_order_leave_counts_that_add_up(
    plays: Plays, injected: bool, reviews: list[tuple[int, ReviewWord | None]]
) -> None:
    rows = session(plays, injected)
    unmatched = rows.figures.unmatched("a")
    for index, word in reviews:
        if unmatched:
            rows.add(EventReviewed(unmatched[index % len(unmatched)].seq, word, "ann"))
    figures = rows.figures
    one = figures.snapshot().devices[0]
    events = figures.unmatched("a")
    assert sum(count for _, count in one.events) == len(events)
    assert one.after_review.count == sum(figures.false_accept(event, True) for event in events)
    assert one.false_accepts.count == sum(figures.false_accept(event, False) for event in events)


@given(plays_of, st.booleans())
def test_asking_in_between_changes_nothing(plays: Plays, injected: bool) -> None:
    rows = session(plays, injected)
    asked = WakeFigures()
    for entry in rows.entries:
        asked.add(entry)
        asked.snapshot()
    assert asked.snapshot() == replace(rows.progress)


def test_looks_are_thinned_and_end_with_the_latest() -> None:
    looks = Looks()
    for number in range(1, 5001):
        looks.add(float(number), Share(0, number), (), number * 60.0, 0)
    found = looks.snapshot()
    assert len(found) <= LOOKS + 1
    assert found[-1].trials == 5000
    gaps = {after.trials - before.trials for before, after in pairwise(found[:-1])}
    assert len(gaps) == 1
    widths = [look.false_accepts.any_time for look in found]
    assert widths[0] is not None
    assert widths[-1] is not None
    assert widths[-1][1] < widths[0][1]


def test_a_flood_of_events_is_quick_and_counted() -> None:
    trial = wake_trial(1, TrialKind.AMBIENT, ("a",))
    rows = WakeRows()
    rows.plan(trial)
    rows.play(trial, [("a", index * 0.006) for index in range(10_000)])
    found = rows.device("a")
    assert found.false_accepts.count == pytest.approx(30, abs=1)
    assert found.false_accepts.count + found.suppressed == 10_000
