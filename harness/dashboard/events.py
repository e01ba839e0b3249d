"""Rows of the log as one line of text each: the words of `RowWriter`, with a time and a tone."""

from __future__ import annotations

import time
from dataclasses import replace
from enum import StrEnum

from harness.base.foreign import plain_text
from harness.model import observation as seen_by
from harness.model import record as row
from harness.model.frozen import frozen
from harness.session.wording import RowWriter, late_blocks


class LineTone(StrEnum):
    """How much a line stands out."""

    QUIET = "quiet"
    PLAIN = "plain"
    GOOD = "good"
    PERSON = "person"
    FAULT = "fault"


@frozen
class EventLine:
    """A row in words: printable text, not markup.

    - late_blocks: number of late or lost blocks, if the line is about these.
    - renewal_key: the line replaces the previous one if that has the same key; "": it replaces none.
    """

    seq: int
    time_of_day: str
    text: str
    tone: LineTone
    late_blocks: int = 0
    renewal_key: str = ""

    def merged_with(self, previous: EventLine) -> EventLine | None:
        """The line that replaces the previous one, if this one renews it; else None.

        Successive lines about late sound are merged too: a slow host writes hundreds of them.
        """
        if self.renewal_key and self.renewal_key == previous.renewal_key:
            return self
        if not (self.late_blocks and previous.late_blocks):
            return None
        count = previous.late_blocks + self.late_blocks
        return replace(self, text=late_blocks(count), late_blocks=count)


def event_line(entry: row.Entry, rows: RowWriter) -> EventLine | None:
    """A row in words. None for proofs of listening and stored stimuli, which the wake screen shows."""
    text = rows.text(entry.record)
    if text is None:
        return None
    observation = entry.record.observation if isinstance(entry.record, row.Observed) else None
    time_of_day = time.strftime("%H:%M:%S", time.localtime(entry.wall_s))
    late_count = observation.count if isinstance(observation, seen_by.Overrun) else 0
    renewal_key = f"clock {observation.source}" if isinstance(observation, seen_by.ClockFitted) else ""
    tone = _tone(entry.record, observation)
    return EventLine(entry.seq, time_of_day, plain_text(text, 200), tone, late_count, renewal_key)


_TONES: dict[type, LineTone] = {
    **dict.fromkeys(
        (row.EngineStarted, row.LevelMeasured, row.EventClipped, row.SettingsNoted, seen_by.StimulusStarted,
         seen_by.StimulusHeard, seen_by.SpeechStarted, seen_by.SpeechEnded, seen_by.ClockFitted, seen_by.Status,
         seen_by.SoundKept, seen_by.DeviceDescribed, seen_by.LogLine),
        LineTone.QUIET,
    ),
    **dict.fromkeys((row.SessionFinished, seen_by.LinkBack), LineTone.GOOD),
    **dict.fromkeys(
        (row.OperatorAsked, row.StimulusSpoken, row.EventReviewed, row.RerunAsked, row.JudgmentGiven,
         row.EffectAnswered, row.SharesMoved, row.SoundsRemoved, row.SoundRedacted, row.NoteWritten, row.MarkSet,
         row.Paused, row.Resumed, seen_by.OperatorAnswer),
        LineTone.PERSON,
    ),
    **dict.fromkeys(
        (row.FaultMet, seen_by.Unread, seen_by.LinkLost, seen_by.HostStalled, seen_by.Overrun), LineTone.FAULT
    ),
}  # fmt: skip


def _tone(record: row.Record, observation: seen_by.Observation | None) -> LineTone:
    match observation or record:
        case row.TrialFinished(outcome=outcome):
            return LineTone.GOOD if outcome.answered else LineTone.PLAIN
        case row.DecisionReached(passed=passed):
            return LineTone.GOOD if passed else LineTone.FAULT
        case row.BenchChecked(level=level):
            return LineTone.QUIET if level == "ok" else LineTone.FAULT
        case seen_by.StimulusEnded(complete=True) | seen_by.Earcon(of=""):
            return LineTone.QUIET
        case event:
            return _TONES.get(type(event), LineTone.PLAIN)
