"""What happens is said in one clear line, whatever a device sends."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from harness.model.effect import EffectWord
from harness.model.observation import Intent, LinkLost, StateTold, Transcript
from harness.model.record import (
    AttemptFinished,
    AttemptStarted,
    Clip,
    EffectAnswered,
    EndReason,
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
    Understood,
)
from harness.model.time import Measured, Stamp
from harness.model.trial import EvidenceSource, Outcome, Recognition
from harness.model.understanding import Expected, Slot
from harness.session.wording import Happenings, short_names
from tests.dashboard.frame_bench import some_frames
from tests.unit.session.figures.rows import planned
from tests.unit.session.log.records import KINDS, rows_of

HOSTILE = "\x1b]0;owned\x07[/red]\u202e\r\n" + "x" * 10_000


@pytest.mark.parametrize(
    ("record", "line"),
    [
        (AttemptStarted("t", 1, 2, "p", "s", 0.0, 1.0, 1.0, 5.04), "  attempt 2, 5.0 s after the last sound"),
        (
            AttemptFinished(
                "t", 1, 1, Outcome.MISHEARD, Recognition.NO, EvidenceSource.DEVICE, "what dime", 1, 4, None,
                Measured(0.9123, 0.014),
            ),
            '  attempt 1: misheard, not recognised; heard "what dime"; latency 912 ± 14 ms',
        ),
        (TrialFinished("t", 1, Outcome.RESPONDED, 2, 2), "  = t: RESPONDED after 2 attempts"),
        (TrialFinished("t", 1, Outcome.SKIPPED, 1, None, "door"), "  = t: SKIPPED after 1 attempt (door)"),
        (ResponseTranscribed("t", 1, 1, "", "r"), "    no words in it (our transcription)"),
        (Observed(LinkLost("mic", Stamp(0.0), "server gone")), "LOST mic: server gone"),
        (Observed(StateTold("lamp", Stamp(0.0), "timer", "10 min")), '    lamp tells that timer is "10 min"'),
        (Observed(StateTold("lamp", Stamp(0.0), "timer")), "    lamp tells that timer is no more"),
        (EffectAnswered("t", 1, 1, EffectWord.WRONG, "ann", "none"), '    effect of t: wrong, "none", by ann'),
        (Observed(Intent("lamp", Stamp(0.0), "set", (("x", "1"),))), '    lamp reports that it understood set, x "1"'),
        (Observed(Intent("lamp", Stamp(0.0), "")), "    lamp reports that it understood nothing"),
        (FaultMet("broker", "refused"), "FAULT broker: refused"),
        (SessionFinished(EndReason.STOPPED), "END stopped; it can be resumed"),
    ],
)  # fmt: skip
def test_lines(record: Record, line: str) -> None:
    assert Happenings().line(record) == line


@pytest.mark.parametrize(
    "record",
    [
        Observed(Transcript("d", Stamp(0.0), HOSTILE)),
        NoteWritten(HOSTILE, HOSTILE),
        Observed(StateTold("d", Stamp(0.0), HOSTILE, HOSTILE)),
        EffectAnswered("t", 1, 1, EffectWord.RIGHT, HOSTILE, HOSTILE),
        FaultMet(HOSTILE, HOSTILE),
        ResponseTranscribed("t", 1, 1, HOSTILE, "r"),
        TrialFinished("t", 1, Outcome.ABORTED, 1, None, HOSTILE),
        ResponseFrozen("t", 1, 1, Clip(HOSTILE, "s", 48000, 1, 0.0), Stamp(0.0), Stamp(1.0)),
    ],
)
def test_hostile_text_is_shown_and_not_obeyed(record: Record) -> None:
    line = Happenings().line(record)
    assert line is not None
    assert line.isprintable()
    assert len(line) < 1000


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(drawn=st.data())
def test_every_row_is_one_printable_line_or_none(drawn: st.DataObject) -> None:
    record = drawn.draw(rows_of(drawn.draw(st.sampled_from(KINDS))))
    line = Happenings().line(record)
    assert line is None or line.isprintable()


def test_of_a_frame_it_says_what_was_expected_and_how_each_attempt_stands(tmp_path: Path) -> None:
    said = Happenings()
    lines = [said.line(entry.record) for entry in some_frames(tmp_path).entries]
    found = [line for line in lines if line and ("TRIAL 4" in line or ("  attempt" in line and ": " in line))]
    assert found[0].startswith(
        '  attempt 1: misheard, recognised; heard "set a timer for ten minutes"; intents right, '
    )
    assert 'slots not: = set_timer, ≠ duration "15 minutes" (wanted "10 minutes"); latency 800' in found[0]
    assert '; understood: = set_timer, = duration "10 minutes"; latency' in found[1]
    assert found[2] == "  attempt 1: understood, without an answer, recognised; understood: = get_time"
    assert "; understood: nothing, as it should; latency" in found[3]
    assert (
        " to kitchen, to be understood as add_to_list#set_timer (duration: 5 minutes, item: eggs), espeak" in found[4]
    )
    assert "; not understood: − add_to_list, − set_timer, " in found[5]


def test_a_hostile_frame_is_harmless() -> None:
    row = AttemptFinished(
        "t", 1, 1, Outcome.MISHEARD, Recognition.NO, EvidenceSource.DEVICE,
        understood=Understood((HOSTILE,), (Slot(HOSTILE, HOSTILE),), False, False, EvidenceSource.DEVICE),
    )  # fmt: skip
    trial = replace(planned(1), id="t", expects=Expected((HOSTILE[::-1],), (Slot(HOSTILE, "x"),)))
    said = Happenings()
    for record in (SessionStarted("s", "k", "t", "a", "b", "c", 1, "in", (), (trial,)), TrialStarted("t", 1), row):
        line = said.line(record)
        assert line is not None
        assert line.isprintable()
        assert len(line) <= 1000


def test_a_last_part_that_all_share_is_left_out() -> None:
    assert short_names(["time.r1", "black_box.r1"], 9) == ["time", "black_box"]
    assert short_names(["time.r1", "time.r2"], 9) == ["time.r1", "time.r2"]
    assert short_names(["time.r1"], 9) == ["time.r1"]


@pytest.mark.parametrize(
    "ids",
    [
        [f"time.v-{voice}.n{noise}.r{n}" for voice in ("alan", "belinda") for noise in (10, -20) for n in (1, 2)],
        [f"a-very-long-name-with-{one}-in-the-middle-of-it.r1" for one in ("alan", "belinda", "cass")],
        [f"kitchen-evening-question-{n:03}.r1" for n in range(500)],
    ],
)
def test_long_names_stay_different(ids: list[str]) -> None:
    shown = short_names(ids, 11)
    assert len(set(shown)) == len(ids)
    assert max(map(len, shown)) <= 11


@example(ids=["1", "1", "11", "1a"], width=1)
@given(st.lists(st.text("abc.-1", min_size=1, max_size=30), max_size=8), st.integers(1, 24))
def test_never_longer_than_asked_nor_empty(ids: list[str], width: int) -> None:
    shown = short_names(ids, width)
    assert len(shown) == len(ids)
    assert all(1 <= len(one) <= width for one in shown)
