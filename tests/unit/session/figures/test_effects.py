"""What rows say of effects: windows, retained state, cuts, and people who looked."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from harness.model.effect import EffectCheck, EffectOutcome, EffectSource, StateWanted
from harness.model.observation import LinkLost, StimulusHeard
from harness.model.record import (
    AttemptFinished,
    EffectAnswered,
    EndReason,
    EngineStarted,
    Entry,
    Observed,
    ResponseFrozen,
    SessionFinished,
    TrialFinished,
)
from harness.model.scenario import Limits
from harness.model.time import Stamp
from harness.model.trial import EvidenceSource, Outcome, Recognition
from harness.session.figures.effects import EffectRows, next_time_of_day
from harness.session.figures.limits import check_limits
from harness.session.figures.progress import SessionFigures, Totals
from harness.statistics.intervals import Share
from tests.unit.session.figures.effect_rows import ASKED, BOTH, KEY, TIMER, WALL_S, Session, answer, effects_in, trial
from tests.unit.session.figures.rows import clip_of


@pytest.mark.parametrize(
    ("told_s", "word"),
    [
        (0.5, EffectOutcome.WRONG),  # retained, or told before: it was so already
        (2.9, EffectOutcome.WRONG),
        (2.995, EffectOutcome.RIGHT),  # within the error of its stamp
        (10.9, EffectOutcome.RIGHT),
        (11.2, EffectOutcome.WRONG),
    ],
)
def test_the_effect_window_starts_at_the_end_of_the_query(told_s: float, word: EffectOutcome) -> None:
    session = Session(trial(TIMER)).asked().answered()
    assert session.told(told_s).ends(12.0).found().word is word


def test_a_slow_device_has_until_its_response_has_ended() -> None:
    def slow(told_s: float) -> EffectOutcome:
        # The response lasts until 17 s, which is 14 s after the query.
        return Session(trial(TIMER)).asked().told(told_s).answered(18.0).ends(30.0).found().word

    assert (slow(16.9), slow(17.1)) == (EffectOutcome.RIGHT, EffectOutcome.WRONG)


def test_the_recordings_own_time_of_the_stimulus_counts() -> None:
    session = Session(trial(TIMER)).asked()
    session.add(3.6, Observed(StimulusHeard("mic", Stamp(1.5, 0.002), "t1.1", 0.9)))
    assert session.told(3.3).answered().ends(12.0).found().word is EffectOutcome.WRONG


def test_unchanged_state_counts_when_reported_again() -> None:
    session = Session(trial(TIMER)).told(-1.0).asked().answered()
    assert session.told(5.0).ends(12.0).found().word is EffectOutcome.RIGHT


def test_another_value_and_silence_are_wrong_with_a_reason() -> None:
    other = Session(trial(TIMER)).asked().told(4.0, "5 minutes").answered().ends(12.0).found()
    assert (other.word, other.source) == (EffectOutcome.WRONG, EffectSource.DEVICE)
    assert other.said == "reported timer: “5 minutes” instead of “10 minutes”, within 8 s"
    silent = Session(trial(TIMER)).asked().told(4.0, source="another").answered().ends(12.0).found()
    assert (silent.word, silent.said) == (EffectOutcome.WRONG, "reported nothing about timer, within 8 s")


def test_incomplete_state_change_is_partial() -> None:
    evidence = Session(trial(BOTH)).asked().told(4.0).told(5.0, "milk", "list").answered().ends(12.0).found()
    assert evidence.word is EffectOutcome.PARTIAL
    assert "instead of nothing" in evidence.said
    assert Session(trial(BOTH)).asked().told(4.0).told(5.0, "", "list").answered().ends(12.0).found().word is (
        EffectOutcome.RIGHT
    )


@pytest.mark.parametrize("value", ["3 lamps", ""])
def test_an_effect_without_a_value_accepts_any_value(value: str) -> None:
    any_value = replace(TIMER, state=(StateWanted("timer"),))
    assert Session(trial(any_value)).asked().told(4.0, value).answered().ends(9.0).found().word is EffectOutcome.RIGHT


@pytest.mark.parametrize(
    ("cut", "why"),
    [
        (lambda session: session.add(9.0, SessionFinished(EndReason.ABORTED)), "the session ended"),
        (lambda session: session.add(9.0, Observed(LinkLost("link", Stamp(8.9), "gone"))), "the link to link was lost"),
        (lambda session: session.asked(9.0, "t2"), "the device was asked something else"),
        (lambda session: session.add(900.0, EngineStarted(2, 1, "boot", 1.0)), "the run was cut off"),
    ],
)
def test_unobserved_effect_is_open_and_not_wrong(cut, why: str) -> None:  # type: ignore[no-untyped-def]
    session = Session(trial(TIMER), trial(None, 2)).asked().answered()
    assert session.found().said == "the device still has time to report it"
    cut(session)
    session.told(10.0)  # too late: it may be of something else
    session.add(1000.0, TrialFinished("t1", 1, Outcome.RESPONDED, 1, 1))
    evidence = session.found()
    assert (evidence.word, evidence.source) == (EffectOutcome.UNKNOWN, EffectSource.NONE)
    assert evidence.said == f"{why} before the device had reported every wanted state"
    assert evidence.is_open


def test_state_reported_before_the_cut_counts() -> None:
    session = Session(trial(TIMER)).asked().told(4.0).answered()
    assert session.add(7.0, SessionFinished(EndReason.ABORTED)).found().word is EffectOutcome.RIGHT


def test_a_device_that_reports_no_state_is_not_wrong() -> None:
    session = Session(trial(replace(TIMER, question="does it?"), reports=())).asked().answered().ends(20.0)
    evidence = session.found()
    assert (evidence.word, evidence.source) == (EffectOutcome.UNKNOWN, EffectSource.NONE)
    assert evidence.due_wall_s == WALL_S + 6.0


def test_attempts_that_were_not_answered_have_no_effect_to_judge() -> None:
    session = Session(trial(TIMER)).asked().answered(outcome=Outcome.MISHEARD)
    session.asked(20.0, attempt=2).told(24.0).answered(26.0, attempt=2)
    assert list(effects_in(session.entries)) == [("t1", 1, 2)]


@pytest.mark.parametrize("word", [EffectOutcome.RIGHT, EffectOutcome.PARTIAL, EffectOutcome.WRONG])
def test_observer_overrules_the_device_and_disagreement_is_stated(word: EffectOutcome) -> None:
    session = Session(trial(TIMER)).asked().told(4.0).answered().ends(12.0)
    evidence = session.found(answer(word, detail="on its display"))
    assert (evidence.word, evidence.source) == (word, EffectSource.OPERATOR)
    agrees = "says so too" if word is EffectOutcome.RIGHT else "says otherwise: right"
    report = "reported timer: “10 minutes” 1.00 s after the query"
    assert evidence.said == f"ann looked: {word.value}, “on its display”; the device {agrees} ({report})"


def test_unsure_observer_releases_the_hold_without_overruling_the_device() -> None:
    session = Session(trial(TIMER)).asked().told(4.0).answered().ends(12.0)
    unsure = session.found(answer(EffectOutcome.UNKNOWN))
    assert (unsure.word, unsure.source) == (EffectOutcome.RIGHT, EffectSource.DEVICE)
    assert unsure.said.endswith("; ann could not tell")
    open_session = Session(trial(ASKED)).asked().answered().ends(12.0)
    assert open_session.found().is_open
    looked = open_session.found(answer(EffectOutcome.UNKNOWN))
    assert (looked.word, looked.source, looked.is_open) == (EffectOutcome.UNKNOWN, EffectSource.OPERATOR, False)


def test_the_latest_answer_counts_wherever_it_was_written() -> None:
    session = Session(trial(ASKED)).asked().answered()
    session.add(50.0, EffectAnswered("t1", 1, 1, EffectOutcome.WRONG, "bob")).ends(60.0)
    assert session.found().word is EffectOutcome.WRONG
    assert session.found(answer(EffectOutcome.RIGHT, 70.0)).word is EffectOutcome.RIGHT
    assert session.found(answer(EffectOutcome.RIGHT, 40.0)).word is EffectOutcome.WRONG


def test_an_answer_without_a_check_is_evidence_too() -> None:
    session = Session(trial(None)).asked().answered().ends(12.0)
    assert effects_in(session.entries) == {}
    assert session.found(answer(EffectOutcome.RIGHT)).source is EffectSource.OPERATOR


@pytest.mark.parametrize(
    ("check", "due_s"),
    [
        (ASKED, WALL_S + 6.0),
        (replace(ASKED, after_s=90.0), WALL_S + 96.0),
        (replace(ASKED, at="22:30"), 1_700_001_000.0),  # the response is of 22:13:26
        (replace(ASKED, at="01:00"), 1_700_010_000.0),
    ],
)
def test_effect_has_its_due_time(check: EffectCheck, due_s: float) -> None:
    assert Session(trial(check)).asked().answered().ends(12.0).found().due_wall_s == due_s


def test_effects_are_the_same_if_rows_come_one_by_one() -> None:
    session = Session(trial(TIMER)).asked().told(4.0).answered().ends(12.0)
    rows = EffectRows()
    words = []
    for entry in session.entries:
        rows.add(entry)
        words.append({key: evidence.word.value for key, evidence in rows.evidence().items()})
    assert words[-1] == {KEY: "right"}
    assert words[:5] == [{}] * 5


def test_a_limit_on_effects_leaves_out_what_nobody_knows() -> None:
    trials = (trial(TIMER), trial(TIMER, 2), trial(ASKED, 3), trial(None, 4))
    session = Session(*trials)
    for number, planned_trial in enumerate(trials):
        at_s = 100.0 * number
        session.asked(at_s, planned_trial.id)
        if number == 0:
            session.told(at_s + 4.0)
        frozen = ResponseFrozen(planned_trial.id, 1, 1, clip_of("r"), Stamp(at_s + 4.0), Stamp(at_s + 5.0))
        answered = AttemptFinished(planned_trial.id, 1, 1, Outcome.RESPONDED, Recognition.YES, EvidenceSource.DEVICE)
        session.add(at_s + 6.0, frozen).add(at_s + 6.5, answered)
        session.add(at_s + 20.0, TrialFinished(planned_trial.id, 1, Outcome.RESPONDED, 1, 1))
    figures = SessionFigures()
    for entry in session.entries:
        figures.add(entry)
    figures.add_later(Entry(1, 0, 0.0, WALL_S + 500, EffectAnswered("t4", 1, 1, EffectOutcome.WRONG, "ann")))
    progress = figures.snapshot()
    totals = progress.totals
    assert {key[0]: effect.word for key, effect in progress.effects.items()} == {
        "t1": EffectOutcome.RIGHT, "t2": EffectOutcome.WRONG, "t3": EffectOutcome.UNKNOWN, "t4": EffectOutcome.WRONG
    }  # fmt: skip
    assert totals.effects == Share(1, 2)  # the last has no check: what it did is known, and breaks no limit
    for least, holds in ((0.5, True), (0.6, False)):
        (limit,) = check_limits(Limits(min_effect_share=least), totals)
        assert (limit.name, limit.found, limit.holds) == ("min_effect_share", 0.5, holds)
    assert check_limits(Limits(min_effect_share=0.0), Totals())[0].holds is False


BERLIN = ZoneInfo("Europe/Berlin")


def unix(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


@pytest.mark.parametrize(
    ("clock", "after", "expected"),
    [
        ("01:00", "2024-06-01T23:30:00+02:00", "2024-06-02T01:00:00+02:00"),
        ("13:05", "2024-06-01T12:00:00+02:00", "2024-06-01T13:05:00+02:00"),
        ("13:05", "2024-06-01T13:05:00+02:00", "2024-06-02T13:05:00+02:00"),
        # The night that is an hour shorter: 02:30 does not come, and clocks show 03:30 instead.
        ("02:30", "2024-03-31T00:10:00+01:00", "2024-03-31T03:30:00+02:00"),
        ("03:00", "2024-03-31T01:59:00+01:00", "2024-03-31T03:00:00+02:00"),
        # The night that is an hour longer: 02:30 comes twice.
        ("02:30", "2024-10-27T00:10:00+02:00", "2024-10-27T02:30:00+02:00"),
        ("02:30", "2024-10-27T02:40:00+02:00", "2024-10-27T02:30:00+01:00"),
        ("02:30", "2024-10-27T02:40:00+01:00", "2024-10-28T02:30:00+01:00"),
        ("12:00", "2024-12-31T12:00:01+01:00", "2025-01-01T12:00:00+01:00"),
    ],
)
def test_next_time_of_day_is_found(clock: str, after: str, expected: str) -> None:
    assert next_time_of_day(clock, unix(after), BERLIN) == unix(expected)


def test_a_wrong_effect_stays_wrong_after_a_reboot() -> None:
    rows = Session(trial(TIMER)).asked(5000.0).answered(5006.0).ends(5020.0)
    assert rows.found().word is EffectOutcome.WRONG
    rows.add(40.0, EngineStarted(2, 1, "another boot", 1.0)).add(42.0, SessionFinished(EndReason.COMPLETED))
    assert rows.found().word is EffectOutcome.WRONG
