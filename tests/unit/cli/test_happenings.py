"""What happens is said in one clear line, whatever a device sends."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.cli.happenings import Happenings
from harness.model.clip import Clip
from harness.model.effect import EffectWord
from harness.model.observation import LinkLost, StateTold, Transcript
from harness.model.record import (
    AttemptFinished,
    AttemptStarted,
    EffectAnswered,
    EndReason,
    FaultMet,
    NoteWritten,
    Observed,
    Record,
    ResponseFrozen,
    ResponseTranscribed,
    SessionFinished,
    TrialFinished,
)
from harness.model.time import Measured, Stamp
from harness.model.trial import EvidenceSource, Outcome, Recognition
from tests.unit.log.records import KINDS, rows_of

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
