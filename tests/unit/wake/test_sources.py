"""Events and stimuli: matching, several sources of one device, inferred events, limits."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.dashboard.events import event_line
from harness.model.observation import LinkBack, LinkLost, ListeningProved, Proof, Wake
from harness.model.record import DecisionReached, EventReviewed, ReviewVerdict
from harness.model.scenario import Limits, OnUndecided, Scenario, SequentialTest, Stopping, TrialKind, WakeSettings
from harness.model.time import MeasuredDuration, Stamp
from harness.model.trial import Outcome, Target, Trial
from harness.report import junit
from harness.report.junit_xml import to_xml
from harness.session.figures.limits import check_limits
from harness.session.figures.progress import Totals
from harness.session.summary import limit_lines
from harness.session.wording import RowWriter
from harness.statistics.intervals import Share, latency_figures
from harness.wake.counting import Matching, Window, match_events, merge_sources
from harness.wake.reports.figures_text import unmatched_line, wake_summary
from harness.wake.wake_progress import (
    DeviceWake,
    Disagreement,
    Speakers,
    WakeProgress,
    due_decisions,
    rate_with_intervals,
    ratio_with_intervals,
    why_needless,
)
from tests.known import known
from tests.unit.session.figures.rows import planned
from tests.unit.wake.wake_rows import WakeRows, rows_of, wake_trial

LONG = WakeSettings(proof_within_s=3600.0)
LED, LOG = "kitchen.led", "kitchen.log"

REPORTS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 8).map(float)), max_size=9)


@given(REPORTS, st.randoms())
def test_groups_hold_one_report_of_each_source_and_do_not_depend_on_the_order(
    reports: list[tuple[int, float]], chance: object
) -> None:
    groups = merge_sources(reports, 1.0)
    assert sorted(index for group in groups for index in group) == list(range(len(reports)))
    for group in groups:
        members = [reports[index] for index in group]
        assert len({rank for rank, _ in members}) == len(members)
        assert all(abs(at_s - members[0][1]) <= 1.0 for _, at_s in members)
    shuffled = list(reports)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    shuffled_groups = merge_sources(shuffled, 1.0)
    as_events = sorted(sorted(reports[index] for index in group) for group in groups)
    assert as_events == sorted(sorted(shuffled[index] for index in group) for group in shuffled_groups)


def watched(trial: Trial, within_s: float = 1.0) -> Trial:
    """The trial of a kitchen with a serial connection, a light and a log."""
    target = Target("kitchen", "kitchen", "speaker", also=(LED, LOG), merge_within_s=within_s, driver="serial")
    return replace(trial, listening=replace(known(trial.listening), targets=(target,)))


def woke(source: str, at_s: float, error_s: float) -> Wake:
    return Wake(source, Stamp(at_s, error_s), "alexa")


# (source, seconds from the start of the phrase's trial, error in seconds), and the play during which it arrives.
Report = tuple[str, float, float]


def session(kind: TrialKind, *arrivals: tuple[Report, ...], within_s: float = 1.0) -> WakeRows:
    """Trials of one kind, one after another; after each play, the reports that arrive by then."""
    trials = [
        watched(wake_trial(number, kind, injected=False, settings=LONG), within_s)
        for number in range(1, len(arrivals) + 1)
    ]
    rows = rows_of(*trials)
    begun_s = rows.at_s + 0.5
    for trial, reports in zip(trials, arrivals, strict=True):
        rows.see(ListeningProved("kitchen", Stamp(rows.at_s), Proof.HEARTBEAT))
        rows.play(trial)
        for source, at_s, error_s in reports:
            rows.see(woke(source, begun_s + at_s, error_s), trial)
    return rows


def test_two_sources_of_one_wake_are_one_hit_at_the_time_of_the_least_error() -> None:
    rows = session(TrialKind.WAKE, ((LOG, 1.7, 0.2), (LED, 2.1, 0.01)))
    figures = rows.device()
    assert (figures.hits, figures.suppressed, figures.events) == (1, 0, ())
    hit = known(rows.figures.plays("kitchen")[0].reading.hit)
    assert hit.source == LED
    assert {report.source: report.at.error_s for report in hit.reports} == {LED: 0.01, LOG: 0.2}
    assert figures.disagreements == (Disagreement(("led", "log"), ("serial",), 1),)


def test_a_report_that_is_delivered_twice_does_not_hide_that_another_source_agrees() -> None:
    rows = session(TrialKind.WAKE, (("kitchen", 1.8, 0.01), ("kitchen", 1.8, 0.01), (LED, 1.9, 0.05)))
    assert (rows.device().hits, rows.device().suppressed) == (1, 1)
    assert rows.device().disagreements == (Disagreement(("serial", "led"), ("log",), 1),)


def test_reports_further_apart_than_the_tolerance_are_two_events() -> None:
    reports = (("kitchen", 10.0, 0.01), (LED, 12.5, 0.01))
    assert session(TrialKind.AMBIENT, reports).device().false_accepts.count == 2
    assert session(TrialKind.AMBIENT, reports, within_s=2.5).device().false_accepts.count == 1


@pytest.mark.parametrize(("kind", "second_s"), [(TrialKind.WAKE, 3.05), (TrialKind.AMBIENT, 25.0)])
def test_the_order_of_arrival_changes_no_number(kind: TrialKind, second_s: float) -> None:
    first = ("kitchen", 1.8, 0.05), (LED, 1.9, 0.004), (LOG, 1.5, 0.3)
    reports = (*first, (LED, second_s, 0.004), (LOG, second_s + 0.3, 0.3))
    outcomes = set()
    for order in permutations(reports):
        for early in (5, 3, 0):
            figures = session(kind, order[:early], order[early:]).device()
            outcomes.add(
                (figures.hits, figures.false_accepts.count, figures.suppressed, figures.events, figures.disagreements)
            )
    assert len(outcomes) == 1, outcomes


def test_an_event_keeps_its_row_and_its_review_when_a_better_time_arrives() -> None:
    rows = session(TrialKind.AMBIENT, ((LOG, 10.0, 0.3),))
    first = rows.progress.unmatched[0]
    assert first.at.error_s == 0.3
    rows.add(EventReviewed(first.seq, ReviewVerdict.REAL_PERSON, "ann"))
    rows.see(woke(LED, first.at.at_s + 0.4, 0.01), None)
    (event,) = rows.progress.unmatched
    assert (event.seq, event.verdict) == (first.seq, ReviewVerdict.REAL_PERSON)
    assert event.at.at_s == pytest.approx(first.at.at_s + 0.4)
    assert [report.source for report in event.sources] == ["led", "log"]
    assert rows.device().after_review.count == 0


def test_only_the_row_that_an_event_is_known_by_keeps_a_clip() -> None:
    rows = session(TrialKind.AMBIENT, ((LED, 10.0, 0.01), (LOG, 10.2, 0.3)))
    first, second = (entry.seq for entry in rows.entries[-2:])
    assert (rows.figures.is_explained(first), rows.figures.is_explained(second)) == (False, True)


def test_disagreements_are_counted_and_shown() -> None:
    reports = (("kitchen", 10.0, 0.01), (LED, 10.1, 0.01), (LOG, 10.4, 0.2))
    lights = tuple((LED, at_s, 0.01) for at_s in (20.0, 30.0, 40.0))
    rows = session(TrialKind.AMBIENT, (*reports, *lights))
    assert rows.device().source_events == 4
    assert "  sources            led but no serial or log: 3, of 4 events" in wake_summary(rows.figures)
    assert "all agree, of 1 event" in "\n".join(wake_summary(session(TrialKind.AMBIENT, reports).figures))


def test_a_device_with_one_source_has_no_disagreements() -> None:
    trial = wake_trial(1)
    rows = rows_of(trial)
    rows.play(trial, [("kitchen", 1.8)])
    figures = rows.device()
    assert (figures.hits, figures.source_events, figures.disagreements) == (1, 0, ())
    assert "sources" not in "\n".join(wake_summary(rows.figures))


def test_a_running_ambient_trial_shows_one_event_and_moves_it() -> None:
    trial = watched(wake_trial(1, TrialKind.AMBIENT, injected=False))
    rows = rows_of(trial)
    rows.play(trial, finish=False)
    running = WakeRows(rows.entries[:-1], rows.at_s)  # without its end
    for report in ((LOG, 10.0, 0.3), (LED, 10.3, 0.01), (LOG, 11.5, 0.3)):
        running.see(woke(*report), trial)
    assert [event.at.at_s for event in running.progress.unmatched] == [10.3]
    assert running.device().pending_events == 1


def test_any_lost_link_shows_until_that_link_is_back() -> None:
    rows = session(TrialKind.AMBIENT, ())
    rows.see(LinkLost(LED, Stamp(1.0), "camera gone"))
    rows.see(LinkLost("kitchen", Stamp(1.0), "port gone"))
    rows.see(LinkBack("kitchen", Stamp(2.0)))
    assert (rows.device().link_up, rows.device().link_trouble) == (False, "camera gone")
    rows.see(LinkBack(LED, Stamp(3.0)))
    assert rows.device().link_up


def test_late_reports_of_many_events_stay_with_their_own() -> None:
    """A log that is read a minute later, after more events than a buffer of a few would hold."""
    times = [2.5 * number for number in range(1, 21)]
    rows = session(TrialKind.AMBIENT, tuple((LED, at_s, 0.01) for at_s in times))
    assert rows.device().false_accepts.count == 20
    for at_s in reversed(times):
        rows.see(woke(LOG, rows.progress.unmatched[0].at.at_s - times[-1] + at_s + 0.4, 0.3))
    figures = rows.device()
    assert figures.false_accepts.count == 20
    assert figures.disagreements == (Disagreement(("led", "log"), ("serial",), 20),)


TICK = 1 / 64  # exact in binary, so that a shift rounds nothing

windows_of = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 60), st.integers(0, 60)), max_size=5).map(
    lambda triples: [
        Window(start * TICK, (start + length) * TICK, (start + min(near, length)) * TICK)
        for start, length, near in sorted(triples)
    ]
)
events_of = st.lists(st.integers(0, 460), max_size=5).map(lambda ticks: [tick * TICK for tick in sorted(ticks)])


def _best(windows: list[Window], events: list[float]) -> tuple[int, float]:
    """Most pairs and least distance, by trying everything."""
    slots = [*range(len(windows)), *([None] * len(events))]
    best = (0, 0.0)
    for chosen in set(permutations(slots, len(events))):
        pairs = [(index, events[event]) for event, index in enumerate(chosen) if index is not None]
        if all(windows[index].start_s <= at_s <= windows[index].end_s for index, at_s in pairs):
            distance = sum(abs(at_s - windows[index].near_s) for index, at_s in pairs)
            best = max(best, (len(pairs), -distance))
    return best


@given(windows_of, events_of)
def test_matching_finds_most_pairs_with_least_distance(windows: list[Window], events: list[float]) -> None:
    matching = match_events(windows, events, 0.0)
    distance = sum(abs(events[event] - windows[window].near_s) for window, event in matching.pairs)
    count, less = _best(windows, events)
    assert len(matching.pairs) == count
    assert distance == pytest.approx(-less)


@given(windows_of, events_of, st.integers(0, 200))
def test_matching_is_one_to_one_and_within_windows(windows: list[Window], events: list[float], refractory: int) -> None:
    matching = match_events(windows, events, refractory * TICK)
    used_windows, used_events = [window for window, _ in matching.pairs], [event for _, event in matching.pairs]
    assert len(set(used_windows)) == len(used_windows)
    assert len(set(used_events)) == len(used_events)
    for window, event in matching.pairs:
        assert windows[window].start_s <= events[event] <= windows[window].end_s
    assert sorted([*used_windows, *matching.missed]) == list(range(len(windows)))
    parts = [further for further, _ in matching.repeats]
    assert sorted([*used_events, *matching.unmatched, *parts]) == list(range(len(events)))


FRAMES = [start + frame * 0.08 for start in (1.0, 11.0, 21.0) for frame in range(5)]
TWO = [Window(0.0, 2.0, 1.0), Window(10.0, 12.0, 11.0)]


@pytest.mark.parametrize(
    ("windows", "events", "refractory_s", "pairs", "unmatched"),
    [
        pytest.param([], FRAMES, 2.0, (), 3, id="three events of five frames each are three, not fifteen"),
        pytest.param([], [0.0], 2.0, (), 1, id="no cool-down is armed at the start"),
        pytest.param(TWO, [1.0, 1.1, 1.2], 0.0, ((0, 0),), 2, id="frames of a phrase do not stand for another"),
        pytest.param(TWO[:1], [2.0], 1.0, ((0, 0),), 0, id="a window's end is in it"),
        pytest.param(TWO[:1], [2.0 + TICK], 1.0, (), 1, id="and what comes after is not"),
        # Nearest first would give the second window the first event, and leave the second event without one.
        pytest.param([Window(0, 3, 1), Window(2, 4, 2.6)], [2.5, 3.5], 0.0, ((0, 0), (1, 1)), 0, id="best in total"),
        pytest.param([], [n * 0.5 for n in range(100)], 2.0, (), 25, id="a stuck device goes on being counted"),
    ],
)
def test_known_counting_faults_of_other_tools_are_avoided(
    windows: list[Window], events: list[float], refractory_s: float, pairs: tuple[tuple[int, int], ...], unmatched: int
) -> None:
    matching = match_events(windows, events, refractory_s)
    assert (matching.pairs, len(matching.unmatched)) == (pairs, unmatched)


def test_events_and_windows_out_of_order_are_refused() -> None:
    with pytest.raises(ValueError, match="order"):
        match_events([], [2.0, 1.0], 1.0)
    with pytest.raises(ValueError, match="window"):
        Window(2.0, 1.0, 1.0)


@pytest.mark.parametrize("step_s", [3.0, 1.0], ids=["apart", "overlapping"])
def test_a_hundred_thousand_events_are_matched_quickly(step_s: float) -> None:
    windows = [Window(index * step_s, index * step_s + 2.5, index * step_s + 1) for index in range(30_000)]
    events = [index * 0.7 for index in range(100_000)]
    began = time.process_time()
    matching: Matching = match_events(windows, events, 0.0)
    # Quadratic matching would take minutes; the bound is wide for a busy machine.
    assert time.process_time() - began < 30
    assert len(matching.pairs) > 20_000


TRAFFIC, WEAK = "network traffic", "weak evidence: network traffic"
LED_DEVICE, NET = "kitchen.led", "kitchen.net"


def several(trial: Trial) -> Trial:
    """A kitchen whose light and traffic are watched."""
    target = Target("kitchen", LED_DEVICE, "speaker", also=(NET,), merge_within_s=1.0, driver="camera")
    return replace(trial, listening=replace(known(trial.listening), targets=(target,)))


def reported(kind: TrialKind, *reports: tuple[str, float, str]) -> WakeRows:
    """One trial, and reports of (source, seconds into it, what it was inferred from)."""
    trial = several(wake_trial(1, kind, injected=False, settings=WakeSettings(proof_within_s=3600.0)))
    rows = rows_of(trial)
    begun_s = rows.at_s + 0.5
    rows.see(ListeningProved(LED_DEVICE, Stamp(rows.at_s), Proof.HEARTBEAT))
    rows.play(trial)
    for source, at_s, inferred in reports:
        rows.see(Wake(source, Stamp(begun_s + at_s, 0.2), "alexa", inferred=inferred), trial)
    return rows


def xml(rows: WakeRows) -> str:
    return to_xml(junit.report_of(rows.entries, Scenario("kitchen", "Kitchen", "/s.yaml", "a", (), ())))


def test_an_unmatched_event_is_marked_on_each_surface() -> None:
    rows = reported(TrialKind.AMBIENT, (NET, 10.0, TRAFFIC))
    (event,) = rows.progress.unmatched
    assert event.inferred == TRAFFIC
    assert [report.inferred for report in event.sources] == [TRAFFIC]
    assert "  weak evidence      1 event is inferred from network traffic" in wake_summary(rows.figures)
    assert unmatched_line(event).endswith(WEAK)
    assert WEAK in known(event_line(rows.entries[-1], RowWriter())).text
    assert known(RowWriter().line(rows.entries[-1].record)).endswith(WEAK)
    assert WEAK in str(xml(rows))


def test_a_hit_from_an_inferred_source_is_marked() -> None:
    rows = reported(TrialKind.WAKE, (NET, 1.8, TRAFFIC))
    assert known(rows.figures.plays("kitchen")[0].reading.hit).inferred == TRAFFIC
    assert f"after the phrase, {WEAK}" in str(xml(rows))


@pytest.mark.parametrize("order", [1, -1])
def test_a_report_of_a_stronger_source_takes_the_mark_away(order: int) -> None:
    reports = [(NET, 1.8, TRAFFIC), (LED_DEVICE, 1.9, "")][::order]
    rows = reported(TrialKind.WAKE, *reports)
    hit = known(rows.figures.plays("kitchen")[0].reading.hit)
    assert hit.inferred == ""
    assert rows.device().inferred == ()
    assert {report.source: report.inferred for report in hit.reports} == {NET: TRAFFIC, LED_DEVICE: ""}
    assert WEAK not in str(xml(rows))


def test_what_a_device_reports_is_not_marked() -> None:
    rows = reported(TrialKind.AMBIENT, (LED_DEVICE, 10.0, ""))
    assert "weak" not in unmatched_line(rows.progress.unmatched[0])
    assert "weak" not in known(event_line(rows.entries[-1], RowWriter())).text


BOTH = Stopping(false_accepts=SequentialTest(0.1, 0.5), false_rejects=SequentialTest(0.02, 0.1))


def device(name: str, rejects: Share, accepts: int, hours: float, **more: object) -> DeviceWake:
    figures = {"exposure_s": hours * 3600, "after_review": rate_with_intervals(accepts, hours), **more}
    return DeviceWake(name, ratio_with_intervals(rejects), **figures)  # type: ignore[arg-type]


def test_wake_limits_hold_for_every_device() -> None:
    wake = WakeProgress((device("a", Share(1, 100), 0, 10.0), device("b", Share(9, 100), 12, 10.0)))
    limits = Limits(
        max_false_reject_share=0.05,
        max_false_reject_upper=0.06,
        max_false_accepts_per_hour=0.5,
        max_false_accepts_upper_per_hour=0.4,
        min_exposure_hours=8.0,
    )
    verdicts = {verdict.name: verdict for verdict in check_limits(limits, Totals(), wake)}
    assert [name for name, verdict in verdicts.items() if verdict.holds] == [
        "max_false_reject_share[a]",
        "max_false_reject_upper[a]",
        "max_false_accepts_per_hour[a]",
        "max_false_accepts_upper_per_hour[a]",
        "min_exposure_hours[a]",
        "min_exposure_hours[b]",
    ]
    assert verdicts["max_false_reject_share[b]"].found == pytest.approx(0.09)
    assert verdicts["max_false_accepts_upper_per_hour[a]"].found == pytest.approx(0.3689, abs=1e-4)
    assert len(verdicts) == 10


def test_limits_on_unmeasured_figures_fail() -> None:
    limits = Limits(max_false_reject_share=0.5, min_command_share=0.1)
    without = check_limits(limits, Totals())
    assert [(verdict.name, verdict.found, verdict.holds) for verdict in without] == [
        ("max_false_reject_share", None, False),
        ("min_command_share", None, False),
    ]
    empty = check_limits(limits, Totals(), WakeProgress((DeviceWake("a"),)))
    assert [verdict.holds for verdict in empty] == [False, False]
    assert empty[1].name == "min_command_share[a]"


def test_a_limit_on_the_wake_delay_is_over_its_p95() -> None:
    delays = latency_figures([MeasuredDuration(0.1 + 0.01 * number, 0.001) for number in range(100)])
    for limit_ms, holds in ((1100, True), (900, False)):
        wake = WakeProgress((DeviceWake("a", delays=delays),))
        (verdict,) = check_limits(Limits(max_wake_delay_p95_ms=limit_ms), Totals(), wake)
        assert (verdict.name, verdict.holds) == ("max_wake_delay_p95_ms[a]", holds)
    (none,) = check_limits(Limits(max_wake_delay_p95_ms=900), Totals(), WakeProgress((DeviceWake("a"),)))
    assert (none.found, none.holds) == (None, False)


@pytest.mark.parametrize("meaning", list(OnUndecided))
def test_an_undecided_sequential_test_fails_unless_allowed(meaning: OnUndecided) -> None:
    wake = WakeProgress((DeviceWake("a", decisions=(("false_accepts", True),)),))
    verdicts = check_limits(Limits(), Totals(), wake, replace(BOTH, on_undecided=meaning))
    assert [(verdict.name, verdict.found, verdict.fails_run) for verdict in verdicts] == [
        ("false_accepts_test[a]", 1.0, False),
        ("false_rejects_test[a]", None, meaning is OnUndecided.FAIL),
    ]
    shown = limit_lines(verdicts)
    assert shown[0] == "PASS      sequential test of false accepts of a: passed"
    assert shown[1] == "UNDECIDED sequential test of false rejects of a: undecided"


def test_query_limits_hold_without_wake_figures() -> None:
    (verdict,) = check_limits(Limits(max_inconclusive=0), Totals())
    assert verdict.holds


def test_decisions_are_due_once() -> None:
    decided = WakeProgress((device("a", Share(0, 10), 0, 8.0), device("b", Share(9, 10), 0, 1.0)))
    assert due_decisions(decided, BOTH) == (
        DecisionReached("a", "false_accepts", True),
        DecisionReached("b", "false_rejects", False),
    )
    with_decision = WakeProgress((device("a", Share(0, 10), 9, 8.0, decisions=(("false_accepts", True),)),))
    assert due_decisions(with_decision, BOTH) == (), "a decision stands"
    assert due_decisions(decided, Stopping()) == ()


def test_decisions_over_voices_wait_for_voices() -> None:
    """80 trials without a miss pass with one voice. Four voices of the plan decide nothing about further ones."""
    whole = Share(0, 80)
    for shares, due in (((whole,), 1), ((Share(0, 20),) * 4, 0), ((Share(0, 36),) * 24, 1)):
        speakers = Speakers.of({str(number): share for number, share in enumerate(shares)})
        of_device = DeviceWake("a", ratio_with_intervals(sum(shares, Share()), speakers))
        assert len(due_decisions(WakeProgress((of_device,)), Stopping(false_rejects=BOTH.false_rejects))) == due
    first = Speakers.of({"ann": whole}, planned=("ann", "ben"))
    assert due_decisions(WakeProgress((DeviceWake("a", ratio_with_intervals(whole, first)),)), BOTH) == ()


def test_trials_are_needless_when_every_device_is_decided() -> None:
    ambient, wake = wake_trial(1, TrialKind.AMBIENT, ("a", "b")), wake_trial(2, devices=("a", "b"))
    command = wake_trial(3, TrialKind.COMMAND, ("a", "b"))
    half_decided = WakeProgress((DeviceWake("a", decisions=(("false_accepts", True),)), DeviceWake("b")))
    progress = WakeProgress(tuple(DeviceWake(name, decisions=(("false_accepts", True),)) for name in ("a", "b")))
    assert why_needless(ambient, half_decided, BOTH) == ""
    assert why_needless(ambient, progress, BOTH) == "false accepts are decided for every device"
    assert why_needless(wake, progress, BOTH) == "", "another question"
    assert why_needless(ambient, progress, Stopping()) == ""
    assert why_needless(command, progress, BOTH) == ""
    assert why_needless(planned(4), progress, BOTH) == ""
    only_a = wake_trial(5, TrialKind.AMBIENT, ("a",))
    assert why_needless(only_a, half_decided, BOTH) != "", "only the devices of the trial matter"


def test_a_missed_probe_is_not_counted() -> None:
    call = wake_trial(1, TrialKind.PROBE, injected=False)
    rows = rows_of(call)
    rows.play(call, [], outcome=Outcome.NO_WAKE)
    assert (rows.progress.planned, rows.progress.counted) == (1, 0)
