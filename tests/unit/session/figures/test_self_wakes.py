"""Wake events during the answers of devices."""

from __future__ import annotations

from dataclasses import replace

from harness.model.observation import Wake
from harness.model.record import EngineStarted, Observed, ResponseFrozen
from harness.model.time import Stamp
from harness.session.figures.self_wakes import AnswersHeard
from harness.session.summary import self_wake_lines
from harness.statistics.intervals import Share
from tests.unit.session.figures.rows import Rows, clip_of, planned
from tests.written_sessions import progress_of


def test_wake_events_within_an_answer_are_counted_by_whose_answer_it_is() -> None:
    trials = [
        replace(planned(1, trial_id="a"), device="kitchen", connection="kitchen_line"),
        replace(planned(2, trial_id="b"), device="hall", connection="hall_line"),
    ]
    rows = Rows.of(*trials)
    answers = [("a", 10.0, 12.0), ("b", 20.0, 22.0), ("a", 30.0, 32.0)]
    # One call before each answer; then the kitchen twice in its own, once in the hall's, and once after an answer.
    for source, at_s in [("kitchen_line", 9.0), ("kitchen_line", 10.5), ("kitchen_line", 11.5), ("hall_line", 19.0)]:
        rows.add(Observed(Wake(source, Stamp(at_s))))
    for number, (trial_id, starts_s, ends_s) in enumerate(answers, 1):
        if number == 3:
            rows.add(Observed(Wake("kitchen_line", Stamp(20.1))))
            rows.add(Observed(Wake("kitchen_line", Stamp(32.1))))
        if number == 2:
            rows.add(Observed(Wake("kitchen_line", Stamp(21.0))))
        rows.add(ResponseFrozen(trial_id, number, 1, clip_of(f"{number}.flac"), Stamp(starts_s), Stamp(ends_s)))
    progress = progress_of(rows)
    assert progress.self_wakes == (
        AnswersHeard("kitchen", own=Share(1, 2), others=Share(1, 1)),
        AnswersHeard("hall", own=Share(0, 1), others=Share(0, 2)),
    )
    lines = self_wake_lines(progress)
    assert lines[0].startswith("self-wakes           kitchen woke in its own answers: 1 of 2 = 50")
    assert len(lines) == 4


def test_self_wakes_are_of_the_device_whatever_source_reports_them() -> None:
    speaker = replace(planned(1, trial_id="a"), connection="kitchen", also=("kitchen.led",))
    trials = [speaker, planned(2, trial_id="b", device="hall")]
    rows = Rows.of(*trials)
    for source in ("kitchen", "kitchen.led"):
        rows.add(Observed(Wake(source, Stamp(10.5))))
    rows.add(ResponseFrozen("a", 1, 1, clip_of("1"), Stamp(10.0), Stamp(12.0)))
    assert progress_of(rows).self_wakes == (AnswersHeard("kitchen", Share(1, 1), Share(0, 0)),)


def test_wake_events_of_an_earlier_boot_are_not_during_an_answer() -> None:
    rows = Rows.of(replace(planned(1, trial_id="a"), connection="kitchen"))
    rows.add(Observed(Wake("kitchen", Stamp(100.5))), 5000.0)
    rows.at_s = 50.0
    rows.add(EngineStarted(2, 1, "another boot", 1.0))
    rows.add(ResponseFrozen("a", 1, 1, clip_of("1"), Stamp(100.0), Stamp(102.0)), 60.0)
    assert progress_of(rows).self_wakes == (AnswersHeard("kitchen", Share(0, 1), Share(0, 0)),)
