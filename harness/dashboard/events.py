"""Rows of the log, one line of text each."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from enum import StrEnum

from harness.base.foreign import plain_text
from harness.dashboard.wording import FIGURE_WORDS, OUTCOME_WORDS
from harness.model import observation as seen_by
from harness.model import record as row
from harness.model.judgment import JudgmentStatus
from harness.model.numbers import seconds
from harness.rating.guide import LABELS
from harness.session.wording import SETTINGS_WORDS, in_words, power_in_words, unread_in_words
from harness.statistics.text import measured
from harness.wake.reports.figures_text import REVIEW_WORDS


class LineTone(StrEnum):
    """How much a line stands out."""

    QUIET = "quiet"
    PLAIN = "plain"
    GOOD = "good"
    PERSON = "person"
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class EventLine:
    """A row in words: printable text, not markup. renews: it replaces an earlier line with the same key."""

    seq: int
    clock: str
    text: str
    tone: LineTone
    late_blocks: int = 0
    renews: str = ""

    def after(self, before: EventLine) -> EventLine | None:
        """Merges successive lines about late sound: a slow host writes hundreds of them."""
        if self.renews and self.renews == before.renews:
            return self
        if not (self.late_blocks and before.late_blocks):
            return None
        count = before.late_blocks + self.late_blocks
        return replace(self, text=_late(count), late_blocks=count)


def event_line(entry: row.Entry) -> EventLine | None:
    """A row in words, foreign text escaped. None for proofs and stored stimuli: the wake screen shows them."""
    record = entry.record
    seen = record.observation if isinstance(record, row.Observed) else None
    if isinstance(seen, seen_by.ListeningProved) or isinstance(record, row.StimulusStored):
        return None
    text, tone = _record(record)
    clock = time.strftime("%H:%M:%S", time.localtime(entry.wall_s))
    late = seen.count if isinstance(seen, seen_by.Overrun) else 0
    renews = f"clock {seen.source}" if isinstance(seen, seen_by.ClockFitted) else ""
    return EventLine(entry.seq, clock, plain_text(text, 200), tone, late, renews)


def _late(count: int) -> str:
    return f"sound: {count} {'block' if count == 1 else 'blocks'} late or lost"


def _record(record: row.Record) -> tuple[str, LineTone]:
    match record:
        case row.SessionStarted():
            what = f"session {record.session_id}: {len(record.trials)} trials of {record.scenario_id}"
            return f"{what}; sound: {record.sound_path}", LineTone.PLAIN
        case row.EngineStarted():
            return f"engine started, run {record.run}", LineTone.QUIET
        case row.TrialStarted():
            return f"trial {record.trial_id}{_take(record.take)}", LineTone.PLAIN
        case row.AttemptStarted(waited_s=None):
            return f"attempt {record.attempt}", LineTone.PLAIN
        case row.AttemptStarted():
            return f"attempt {record.attempt}, after {seconds(record.waited_s)} of silence", LineTone.PLAIN
        case row.Observed():
            return _observation(record.observation)
        case row.ResponseFrozen():
            cut = ", cut at the limit" if record.truncated else ""
            return f"first response kept: {seconds(record.clip.duration_s)}{cut}", LineTone.PLAIN
        case row.ResponseTranscribed():
            return f"our transcription: “{record.text}”", LineTone.PLAIN
        case row.OperatorAsked():
            return f"operator asked: {record.question}", LineTone.PERSON
        case row.AttemptFinished():
            delay = f", latency {measured(record.latency)}" if record.latency else ""
            why = f" ({in_words(record.cause)})" if record.cause else ""
            return f"attempt {record.attempt}: {OUTCOME_WORDS[record.outcome]}{delay}{why}", LineTone.PLAIN
        case row.TrialFinished():
            why = f" ({in_words(record.cause)})" if record.cause else ""
            tone = LineTone.GOOD if record.outcome.answered else LineTone.PLAIN
            return f"{record.trial_id}{_take(record.take)}: {OUTCOME_WORDS[record.outcome]}{why}", tone
        case row.StimulusStored():
            return f"stimulus kept: {seconds(record.clip.duration_s)}", LineTone.QUIET
        case row.StimulusSpoken():
            return f"{record.talker} said “{record.text}”", LineTone.PERSON
        case row.LevelMeasured(asked_spl=asked, heard_spl=heard):
            said = "not heard" if heard is None else f"heard {heard:.1f} dB SPL"
            return f"level: asked {asked:.1f}, {said}", LineTone.QUIET
        case row.EventClipped():
            return f"sound around event {record.event_seq} kept: {seconds(record.clip.duration_s)}", LineTone.QUIET
        case row.EventReviewed(word=was):
            said = "took back what it was" if was is None else f"it was: {REVIEW_WORDS[was]}"
            return f"{record.by} on event {record.event_seq}: {said}", LineTone.PERSON
        case row.DecisionReached():
            does, tone = ("passes", LineTone.GOOD) if record.passed else ("FAILS", LineTone.FAULT)
            return f"{record.device} {does} the test of its {FIGURE_WORDS[record.figure]}", tone
        case row.RerunAsked():
            return f"{record.by} asked for {record.trial_id} again", LineTone.PERSON
        case row.JudgmentGiven(judgment=given):
            word = LABELS[given.category] if given.category else given.status.value
            about = "withdrew a judgment on" if given.status is JudgmentStatus.WITHDRAWN else f"judged “{word}”:"
            return f"{given.rater} {about} {given.trial_id}", LineTone.PERSON
        case row.EffectAnswered(word=became):
            return f"{record.by} on the effect of {record.trial_id}: {became.value}", LineTone.PERSON
        case row.SharesMoved():
            return f"{record.by} gave {len(record.items)} responses of {record.rater} to others", LineTone.PERSON
        case row.SoundsRemoved():
            return f"{record.by} removed {len(record.clips)} clips: {record.reason}", LineTone.PERSON
        case row.SoundRedacted():
            return f"{record.by} redacted clip {record.clip}: {record.reason}", LineTone.PERSON
        case row.NoteWritten():
            return f"note by {record.by}: {record.text}", LineTone.PERSON
        case row.MarkSet():
            return f"mark by {record.by}: {record.label}", LineTone.PERSON
        case row.Paused():
            return f"paused by {record.by}{': ' if record.reason else ''}{record.reason}", LineTone.PERSON
        case row.Resumed():
            return f"resumed by {record.by}", LineTone.PERSON
        case row.SettingsNoted():
            values = ", ".join(f"{name}={value}" for name, value in record.settings)
            return f"{record.source} {SETTINGS_WORDS[record.of]}: {values}", LineTone.QUIET
        case row.PowerSwitched():
            return power_in_words(record), LineTone.PLAIN
        case row.BenchChecked(check=check, level=level, says=says):
            return f"check {check}: {says}", LineTone.QUIET if level == "ok" else LineTone.FAULT
        case row.FaultMet():
            return f"FAULT {record.source}: {record.what}", LineTone.FAULT
        case row.SessionFinished():
            return f"session {record.reason.value}", LineTone.GOOD


def _observation(seen: seen_by.Observation) -> tuple[str, LineTone]:
    match seen:
        case seen_by.StimulusStarted() | seen_by.StimulusEnded(complete=True):
            word = "starts" if isinstance(seen, seen_by.StimulusStarted) else "ends"
            return f"{seen.source}: stimulus {word}", LineTone.QUIET
        case seen_by.StimulusEnded():
            return f"{seen.source}: stimulus stopped early{': ' if seen.why else ''}{seen.why}", LineTone.PLAIN
        case seen_by.StimulusHeard():
            return f"{seen.source}: heard the stimulus (correlation {seen.correlation:.2f})", LineTone.QUIET
        case seen_by.SpeechStarted():
            return f"{seen.source}: speech starts, {seen.level_dbfs:.0f} dBFS", LineTone.QUIET
        case seen_by.SpeechEnded():
            return f"{seen.source}: speech ends", LineTone.QUIET
        case seen_by.Earcon(of=of, meaning=meaning) if of:
            return f"{of}: the {meaning} chime", LineTone.PLAIN
        case seen_by.Earcon():
            return f"{seen.source}: a signal tone", LineTone.QUIET
        case seen_by.Wake():
            weak = seen_by.weakness(seen.inferred, ", ")
            return f"{seen.source}: woke{f' to “{seen.phrase}”' if seen.phrase else ''}{weak}", LineTone.PLAIN
        case seen_by.Intent():
            slots = "".join(f", {name} “{value}”" for name, value in seen.slots)
            return f"{seen.source} understood {seen.name or 'nothing'}{slots}", LineTone.PLAIN
        case seen_by.ListeningProved():
            return f"{seen.source}: listens ({seen.proof.value})", LineTone.QUIET
        case seen_by.ClockFitted():
            return f"{seen.source}: clock known to ±{seconds(seen.error_s)}, {seen.skew_ppm:+.1f} ppm", LineTone.QUIET
        case seen_by.Transcript():
            return f"{seen.source} {'heard' if seen.final else 'hears'}: “{seen.text}”", LineTone.PLAIN
        case seen_by.ResponseText():
            return f"{seen.source} says: “{seen.text}”", LineTone.PLAIN
        case seen_by.Status():
            return f"{seen.source}: {seen.state.value}{' ' if seen.detail else ''}{seen.detail}", LineTone.QUIET
        case seen_by.SoundKept():
            return f"{seen.source}: sound of its microphone kept: {seconds(seen.clip.duration_s)}", LineTone.QUIET
        case seen_by.StateTold():
            return f"{seen.source}: {seen.name} {f'is “{seen.value}”' if seen.value else 'is no more'}", LineTone.PLAIN
        case seen_by.DeviceDescribed():
            return f"{seen.source}: firmware {seen.firmware or '?'}, serial number {seen.serial or '?'}", LineTone.QUIET
        case seen_by.LogLine():
            return f"{seen.source}: {seen.text}", LineTone.QUIET
        case seen_by.Unread():
            return f"NOT READ {seen.source}: {unread_in_words(seen)}", LineTone.FAULT
        case seen_by.OperatorAnswer():
            word = {True: "recognised", False: "not recognised", None: "cannot tell"}[seen.recognised]
            return f"operator: {word}{f', heard “{seen.heard}”' if seen.heard else ''}", LineTone.PERSON
        case seen_by.LinkLost():
            return f"LOST {seen.source}: {seen.what}", LineTone.FAULT
        case seen_by.LinkBack():
            return f"{seen.source} is back", LineTone.GOOD
        case seen_by.HostStalled():
            return f"HOST stood still for {seconds(seen.lasted_s)}", LineTone.FAULT
        case seen_by.Overrun():
            return _late(seen.count), LineTone.FAULT


def _take(take: int) -> str:
    return f", take {take}" if take > 1 else ""
