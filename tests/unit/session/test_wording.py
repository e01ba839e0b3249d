"""What happens is said in one clear line; what was understood, at the end of a session."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from harness.base.foreign import plain_text
from harness.dashboard.events import event_line
from harness.dashboard.watch import View
from harness.dashboard.widgets.bars import state_line
from harness.model.effect import EffectOutcome
from harness.model.feed import StateChanged, StateWord
from harness.model.observation import Intent, LinkLost, Observation, StateTold, Transcript
from harness.model.record import (
    AttemptFinished,
    AttemptStarted,
    Clip,
    EffectAnswered,
    EndReason,
    Entry,
    FaultMet,
    NoteWritten,
    Observed,
    Record,
    ResponseFrozen,
    ResponseTranscribed,
    SessionFinished,
    SessionStarted,
    TrialFinished,
    TrialStarted,
    UnderstandingResult,
)
from harness.model.scenario import RepeatUntil, RepromptRule, Scenario
from harness.model.time import MeasuredDuration, Stamp
from harness.model.trial import EvidenceSource, Outcome, Recognition
from harness.model.understanding import ExpectedFrame, Slot
from harness.report import junit
from harness.session import summary
from harness.session.summary import end_of_session
from harness.session.trial_table import trials_csv
from harness.session.wording import OUTCOME_WORDS, RowWriter, cause_in_words, short_names
from harness.wake.wake import WakeFigures
from tests.dashboard.frame_bench import TIMER, some_frames, told, wanting
from tests.known import known
from tests.unit.session.figures.rows import Rows, planned
from tests.unit.session.log.records import KINDS, rows_of
from tests.written_sessions import progress_of

HOSTILE = "\x1b]0;owned\x07[/red]\u202e\r\n" + "x" * 10_000


@pytest.mark.parametrize(
    ("record", "line"),
    [
        (AttemptStarted("t", 1, 2, "p", "s", 0.0, 1.0, 1.0, 5.04), "  attempt 2, 5.04 s after the last sound"),
        (
            AttemptFinished(
                "t", 1, 1, Outcome.MISHEARD, Recognition.NO, EvidenceSource.DEVICE, "what dime", 1, 4, None,
                MeasuredDuration(0.9123, 0.014),
            ),
            '  attempt 1: misheard, not recognised; heard "what dime"; latency 912 ms ± 14 ms',
        ),
        (TrialFinished("t", 1, Outcome.RESPONDED, 2, 2), "  = t: RESPONDED after 2 attempts"),
        (TrialFinished("t", 1, Outcome.SKIPPED, 1, None, "door"), "  = t: SKIPPED after 1 attempt (door)"),
        (ResponseTranscribed("t", 1, 1, "", "r"), "    no words in it (our transcription)"),
        (Observed(LinkLost("mic", Stamp(0.0), "server gone")), "LOST mic: server gone"),
        (Observed(StateTold("lamp", Stamp(0.0), "timer", "10 min")), '    lamp reports that timer is "10 min"'),
        (Observed(StateTold("lamp", Stamp(0.0), "timer")), "    lamp reports that timer is gone"),
        (EffectAnswered("t", 1, 1, EffectOutcome.WRONG, "ann", "none"), '    effect of t: wrong, "none", by ann'),
        (Observed(Intent("lamp", Stamp(0.0), "set", (("x", "1"),))), '    lamp reports that it understood set, x "1"'),
        (Observed(Intent("lamp", Stamp(0.0), "")), "    lamp reports that it understood nothing"),
        (FaultMet("broker", "refused"), "FAULT broker: refused"),
        (SessionFinished(EndReason.STOPPED), "END stopped; it can be resumed"),
    ],
)  # fmt: skip
def test_record_is_worded_as_one_line(record: Record, line: str) -> None:
    assert RowWriter().line(record) == line


@pytest.mark.parametrize(
    "record",
    [
        Observed(Transcript("d", Stamp(0.0), HOSTILE)),
        NoteWritten(HOSTILE, HOSTILE),
        Observed(StateTold("d", Stamp(0.0), HOSTILE, HOSTILE)),
        EffectAnswered("t", 1, 1, EffectOutcome.RIGHT, HOSTILE, HOSTILE),
        FaultMet(HOSTILE, HOSTILE),
        ResponseTranscribed("t", 1, 1, HOSTILE, "r"),
        TrialFinished("t", 1, Outcome.ABORTED, 1, None, HOSTILE),
        ResponseFrozen("t", 1, 1, Clip(HOSTILE, "s", 48000, 1, 0.0), Stamp(0.0), Stamp(1.0)),
    ],
)
def test_hostile_text_is_shown_and_not_obeyed(record: Record) -> None:
    line = known(RowWriter().line(record))
    assert line.isprintable()
    assert len(line) < 1000


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(drawn=st.data())
def test_every_row_is_one_printable_line_or_none(drawn: st.DataObject) -> None:
    record = drawn.draw(rows_of(drawn.draw(st.sampled_from(KINDS))))
    line = RowWriter().line(record)
    assert line is None or line.isprintable()


@pytest.mark.parametrize("kind", [*KINDS, *get_args(Observation)])
@settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(drawn=st.data())
def test_plain_output_and_dashboard_have_the_same_words(kind: type, drawn: st.DataObject) -> None:
    rows = rows_of(kind) if kind in KINDS else st.builds(Observed, rows_of(kind))
    record = drawn.draw(rows)
    plain, shown = RowWriter().line(record), event_line(Entry(1, 1, 0.0, 0.0, record), RowWriter())
    assert shown is None or shown.text.isprintable()
    if plain is not None:
        assert known(shown).text == plain_text(plain.lstrip(), 200)


@pytest.mark.parametrize("outcome", list(Outcome))
def test_an_outcome_has_the_same_words_on_every_surface(outcome: Outcome) -> None:
    rows = Rows.of(planned(1))
    rows.trial("time-1", outcome)
    words, progress = OUTCOME_WORDS[outcome], progress_of(rows)
    assert RowWriter().line(rows.entries[-1].record) == f"  = time-1: {words.upper()} after 1 attempt"
    assert f"attempt 1: {words}" in known(event_line(rows.entries[-2], RowWriter())).text
    assert summary.outcome_in_words(progress.trials[0]) == words  # of tables in `show` and on the report's page
    assert summary.finished_line(progress.totals).endswith(f"1 {words}")  # of notifications and the live page
    scenario = Scenario("kitchen", "Kitchen", "/s.yaml", "a", (), ())
    case = junit.report_of(rows.entries, scenario).suites[-1].cases[0]
    assert case.reason is None or case.reason.message == words
    assert len(words) <= 12, "columns of tables"


def test_interrupted_attempts_do_not_use_up_those_that_the_scenario_allows() -> None:
    rows, writer = Rows.of(planned(1)), RowWriter()
    rows.add(TrialStarted("time-1", 1))
    for number in (1, 2):
        rows.attempt("time-1", number, Outcome.INTERRUPTED, Recognition.NOT_ASSESSED, cause="link_lost: mic")
    rows.attempt("time-1", 2, Outcome.MISHEARD, Recognition.NO)  # what was heard came late: the later row counts
    rows.attempt("time-1", 3, Outcome.MISHEARD, Recognition.NO)
    change = StateChanged(StateWord.PLAYING, 0.0, None, "time-1", 4)
    allowed = known(progress_of(rows).trial("time-1")).trial.reprompt.max_attempts
    assert f"attempt 4 of {allowed + 1} (1 interrupted)" in state_line(View(progress_of(rows), state=change))
    rows.attempt("time-1", 4)
    rows.add(TrialFinished("time-1", 1, Outcome.RESPONDED, 4, 4))
    lines = [writer.line(entry.record) for entry in rows.entries]
    assert lines[-1] == "  = time-1: RESPONDED after 4 attempts (1 interrupted)"


def test_a_frame_is_worded_with_expectation_and_attempts(tmp_path: Path) -> None:
    writer = RowWriter()
    lines = [writer.line(entry.record) for entry in some_frames(tmp_path).entries]
    frame_lines = [line for line in lines if line and ("TRIAL 4" in line or ("  attempt" in line and ": " in line))]
    assert frame_lines[0].startswith(
        '  attempt 1: misheard, recognised; heard "set a timer for ten minutes"; intents right, '
    )
    assert 'slots not: = set_timer, ≠ duration "15 minutes" (wanted "10 minutes"); latency 800' in frame_lines[0]
    assert '; understood: = set_timer, = duration "10 minutes"; latency' in frame_lines[1]
    assert frame_lines[2] == "  attempt 1: understood, recognised; understood: = get_time"
    assert "; understood: nothing, as expected; latency" in frame_lines[3]
    assert " to kitchen, expected add_to_list#set_timer (duration: 5 minutes, item: eggs), espeak" in frame_lines[4]
    assert "; not understood: − add_to_list, − set_timer, " in frame_lines[5]


def test_a_hostile_frame_is_escaped() -> None:
    row = AttemptFinished(
        "t", 1, 1, Outcome.MISHEARD, Recognition.NO, EvidenceSource.DEVICE,
        understood=UnderstandingResult((HOSTILE,), (Slot(HOSTILE, HOSTILE),), False, False, EvidenceSource.DEVICE),
    )  # fmt: skip
    trial = replace(planned(1), id="t", expects=ExpectedFrame((HOSTILE[::-1],), (Slot(HOSTILE, "x"),)))
    writer = RowWriter()
    for record in (SessionStarted("s", "k", "t", "a", "b", "c", 1, "in", (), (trial,)), TrialStarted("t", 1), row):
        line = known(writer.line(record))
        assert line.isprintable()
        assert len(line) <= 1000


def test_a_common_last_part_of_names_is_left_out() -> None:
    assert short_names(["time.r1", "black_box.r1"], 9) == ["time", "black_box"]
    assert short_names(["time.r1", "time.r2"], 9) == ["time.r1", "time.r2"]
    assert short_names(["time.r1"], 9) == ["time.r1"]


@pytest.mark.parametrize(
    "ids",
    [
        [f"time.v-{voice}.n{noise}.r{n}" for voice in ("alan", "belinda") for noise in (10, -20) for n in (1, 2)],
        [f"a-very-long-name-with-{name}-in-the-middle-of-it.r1" for name in ("alan", "belinda", "cass")],
        [f"kitchen-evening-question-{n:03}.r1" for n in range(500)],
        [
            f"set_a_timer_for_{n}_minutes.n-pink_{level}_dB.r{r}"
            for n in ("ten", "two")
            for level in (5, 10)
            for r in (1, 2)
        ],
    ],
)
def test_long_names_stay_different(ids: list[str]) -> None:
    shown = short_names(ids, 11)
    assert len(set(shown)) == len(ids)
    assert max(map(len, shown)) <= 11


def test_conditions_that_all_trials_share_give_way_to_those_that_vary() -> None:
    ids = [f"product.v-{voice}.l--{level}.n-pink_10_dB.r1" for voice in ("anna", "ben") for level in (26, 36)]
    shown = ["product.v-anna.l--26", "product.v-anna.l--36", "product.v-ben.l--26", "product.v-ben.l--36"]
    assert short_names(ids, 24) == shown


def test_words_that_names_begin_or_end_with_give_way_before_a_cut() -> None:
    ids = [
        f"say_the_{subject}.v-{voice}.r{n}" for subject in ("time", "date") for voice in ("anna", "ben") for n in (1, 2)
    ]
    assert short_names(ids, 12)[:5] == ["time.anna.r1", "time.anna.r2", "time.ben.r1", "time.ben.r2", "date.anna.r1"]


@example(ids=["1", "1", "11", "1a"], width=1)
@example(ids=["a-b", "--b"], width=2)
@given(st.lists(st.text("abc.-1", min_size=1, max_size=30), max_size=8), st.integers(1, 24))
def test_short_names_are_never_too_long_or_empty(ids: list[str], width: int) -> None:
    shown = short_names(ids, width)
    assert len(shown) == len(ids)
    assert all(1 <= len(name) <= width for name in shown)


HOSTILE_NAME = "\x1b]0;owned\x07=1+1\r\n\u202e" + "x" * 3000


def one(understood: UnderstandingResult | None, outcome: Outcome = Outcome.MISHEARD) -> Rows:
    rows = Rows.of(wanting(1, "set a timer for ten minutes", "timer", TIMER))
    rows.trial("timer", outcome, understood=understood)
    return rows


def cells(rows: Rows) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(trials_csv(progress_of(rows), WakeFigures()).decode())))


def test_parts_of_frames_are_tabulated_with_signs(tmp_path: Path) -> None:
    lines = summary.frame_table(progress_of(some_frames(tmp_path)), 143)
    assert lines[0].startswith("#  ")
    assert lines[2].split() == ["1", "timer", "2", "understood:", "=", "set_timer,", "=", "duration", '"10', 'minutes"']
    assert lines[4].endswith("understood: nothing, as expected")
    assert lines[5].endswith('− add_to_list, = set_timer, + read_list, ≠ duration "9 minutes" (wanted "5 minutes")…')
    assert lines[6].split() == ["5", "read_list"]
    assert all(len(line) <= 60 for line in summary.frame_table(progress_of(some_frames(tmp_path)), 60))


def test_conditions_read_alike_on_every_surface() -> None:
    rows = Rows.of(trial := replace(planned(1), conditions=(("voice", "anna"), ("noise", "pink 5 dB"))))
    writer = RowWriter()
    writer.text(rows.entries[0].record)
    assert known(writer.text(TrialStarted(trial.id, 1))).endswith(" · voice=anna noise=pink 5 dB")
    assert cells(rows)[0]["conditions"] == trial.condition == "voice=anna noise=pink 5 dB"


def test_sessions_without_understand_trials_have_no_frame_table() -> None:
    rows = Rows.of(planned(1))
    assert summary.frame_table(progress_of(rows)) == []
    assert not [line for line in summary.totals_lines(progress_of(rows).totals) if line.startswith("understood")]


def test_totals_of_frames_come_before_those_of_words(tmp_path: Path) -> None:
    lines = summary.totals_lines(progress_of(some_frames(tmp_path)).totals)
    assert lines[1:5] == [
        "understood           3 of 4 = 75.0 % (95 % interval 30.1–95.4 %)",
        "intents alone        3 of 4 = 75.0 % (95 % interval 30.1–95.4 %)",
        "understood at first  2 of 4 = 50.0 % (95 % interval 15.0–85.0 %); intents alone 3 of 4",
        "attempts             2 at the 1st (50.0 %), 1 at the 2nd (25.0 %), 1 not understood (25.0 %)",
    ]
    assert not [line for line in lines if line.startswith("recognised")]
    whole = end_of_session(progress_of(some_frames(tmp_path)), WakeFigures(), None)
    assert [line for line in whole if "timer_and_eggs" in line and "− add_to_list" in line]


def test_deciding_words_have_totals_beside_frames() -> None:
    trial = wanting(1, "set a timer for ten minutes", "timer", TIMER)
    rows = Rows.of(replace(trial, reprompt=RepromptRule(until=RepeatUntil.RECOGNISED)))
    rows.trial("timer", understood=told("set_timer", right=False, intents_right=True))
    lines = summary.totals_lines(progress_of(rows).totals)
    assert lines[1].startswith("understood           0 of 1")
    assert [line for line in lines if line.startswith("recognised           1 of 1")]


@pytest.mark.parametrize(
    ("understood", "words"),
    [
        (None, ""),
        (UnderstandingResult(), "what it understood is unknown"),
        (told("", right=False), "not understood: − set_timer, − duration \"10 minutes\""),
        (UnderstandingResult(right=False, intents_right=None, source=EvidenceSource.OPERATOR), "not understood"),
    ],
)  # fmt: skip
def test_frame_is_described_in_words(understood: UnderstandingResult | None, words: str) -> None:
    assert summary.frame_in_words(progress_of(one(understood)).trials[0]) == words


def test_unknown_frames_are_stated_beside_the_shares() -> None:
    lines = list(summary.understood_lines(progress_of(one(UnderstandingResult(), Outcome.NO_WAKE)).totals.understood))
    assert lines[0] == "understood           0 of 1 = 0.00 % (95 % interval 0.00–79.3 %)"
    unknown = progress_of(one(UnderstandingResult(), Outcome.RESPONDED)).totals.understood
    assert (
        list(summary.understood_lines(unknown))[-1] == "not known            1 without evidence of what was understood"
    )


def test_a_spreadsheet_has_both_frames_and_no_formula(tmp_path: Path) -> None:
    rows = cells(some_frames(tmp_path))
    assert [row["kind"] for row in rows] == ["understand"] * 5
    assert (rows[0]["expected"], rows[0]["understood"]) == ("set_timer (duration: 10 minutes)",) * 2
    assert [(row["intents_right"], row["frame_right"]) for row in rows] == [
        ("1", "1"), ("1", "1"), ("1", "1"), ("0", "0"), ("", ""),
    ]  # fmt: skip
    assert rows[4]["expected"] == "read_list"
    (hostile,) = cells(one(UnderstandingResult(("=1+1",), (), False, False, EvidenceSource.DEVICE)))
    assert hostile["understood"] == "'=1+1"


def test_device_names_are_escaped() -> None:
    row = one(UnderstandingResult((HOSTILE_NAME,), (), False, False, EvidenceSource.DEVICE))
    for line in summary.frame_table(progress_of(row), 100):
        assert line.isprintable()
        assert len(line) <= 100
    text = trials_csv(progress_of(row), WakeFigures()).decode()
    assert not set(text) & set("\x1b\x07\u202e")


def test_a_trial_without_a_verdict_is_silent() -> None:
    rows = Rows.of(wanting(1, "set a timer", "timer", TIMER))
    rows.trial("timer", Outcome.NO_WAKE, Recognition.UNKNOWN, latency_s=None)
    assert cells(rows)[0]["understood"] == ""


def test_causes_are_worded_for_people() -> None:
    assert cause_in_words("link_lost: a_b: the port is gone") == "link lost: a_b: the port is gone"
    assert cause_in_words("engine_ended") == "engine ended"
