"""Foreign text that tries to be markup, a terminal command or a page of its own."""

from pathlib import Path

from harness.model.feed import Goodbye, StateWord
from harness.model.observation import DeviceState, LinkLost, LogLine, ResponseText, Status, Transcript, Wake
from harness.model.record import (
    AttemptFinished,
    FaultMet,
    MarkSet,
    NoteWritten,
    Observed,
    OperatorAsked,
    Paused,
    RerunAsked,
    ResponseFrozen,
    ResponseTranscribed,
    TrialFinished,
    TrialStarted,
)
from harness.model.time import MeasuredDuration, Stamp
from harness.model.trial import EvidenceSource, Outcome, Recognition
from tests.dashboard.bench import opened, press_until, raw, shows, sizes, until
from tests.dashboard.engine_double import START_S, EngineDouble, write_clip
from tests.unit.session.figures.rows import Rows, planned

HOSTILE = "[/red] [wake]\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp\u200b\r\n\t" + "x" * 10_000


@sizes
async def test_hostile_text_in_every_field(tmp_path: Path, size: tuple[int, int]) -> None:
    bad_id = f"t{HOSTILE}"
    rows = Rows.of(planned(1, HOSTILE, bad_id, device=HOSTILE), title=HOSTILE)
    clip = write_clip(tmp_path, "a.flac")
    stamp = Stamp(1.0)
    async with opened(EngineDouble(tmp_path, rows), size, "0 of 1") as (engine, app, pilot):
        engine.log(
            TrialStarted(bad_id, 1),
            Observed(Transcript(HOSTILE, stamp, HOSTILE)),
            Observed(Wake(HOSTILE, stamp, HOSTILE)),
            Observed(ResponseText(HOSTILE, stamp, HOSTILE)),
            Observed(Status(HOSTILE, stamp, DeviceState.IDLE, HOSTILE)),
            Observed(LogLine(HOSTILE, stamp, HOSTILE)),
            Observed(LinkLost(HOSTILE, stamp, HOSTILE)),
            ResponseFrozen(bad_id, 1, 1, clip, stamp, stamp),
            ResponseTranscribed(bad_id, 1, 1, HOSTILE, HOSTILE),
            OperatorAsked(bad_id, 1, 1, HOSTILE),
            FaultMet(HOSTILE, HOSTILE),
            NoteWritten(HOSTILE, HOSTILE),
            MarkSet(HOSTILE, HOSTILE),
            Paused(HOSTILE, HOSTILE),
        )
        engine.say(StateWord.ASKING, trial_id=bad_id, attempt=1, reason=HOSTILE, until_s=START_S + 5)
        await until(pilot, shows(pilot, "5 s left to answer"))
        assert raw(pilot) == []
        await press_until(pilot, shows(pilot, "[/red] [wake]"), "escape")
        assert raw(pilot) == []
        engine.log(
            AttemptFinished(
                bad_id, 1, 1, Outcome.RESPONDED, Recognition.YES, EvidenceSource.OPERATOR, HOSTILE,
                latency=MeasuredDuration(1.0), cause=HOSTILE,
            ),
            TrialFinished(bad_id, 1, Outcome.RESPONDED, 1, 1, HOSTILE),
            RerunAsked(bad_id, 2, HOSTILE),
        )  # fmt: skip
        engine.say(StateWord.LISTENING, trial_id=bad_id, attempt=1, reason=HOSTILE)
        engine.refuse = HOSTILE
        await press_until(pilot, shows(pilot, "refused"), "r")
        assert raw(pilot) == []
        await press_until(pilot, shows(pilot, "Judging"), "j")
        await until(pilot, shows(pilot, "asked"))
        assert raw(pilot) == []
        engine.send(Goodbye(0, HOSTILE))
        await until(pilot, shows(pilot, "The engine has ended"))
        assert raw(pilot) == []
        exported = app.export_screenshot()
        assert not any(c in exported for c in "\x1b\x07\x9b\u202e\u200b")
