"""The trials of a session as a typed table: the one schema of CSV, Parquet and docs/reference/exports.md."""

from __future__ import annotations

from harness.base.foreign import plain_text
from harness.base.typed_table import ColumnContent, TypedTable, Value, csv_of
from harness.model.scenario import TrialKind
from harness.model.stimulus import Ambience
from harness.model.time import MeasuredDuration
from harness.model.transcript import WordCounts
from harness.model.trial import Trial
from harness.session.figures.progress import Progress
from harness.session.figures.trials import TrialProgress, deciding_words
from harness.understanding.reported_frames import frame_line
from harness.wake.wake import WakeFigures
from harness.wake.wake_plays import Play

TRIALS_SCHEMA = "voice-harness.trials.1"
TEXT, WHOLE, NUMBER = ColumnContent.TEXT, ColumnContent.WHOLE, ColumnContent.NUMBER
TRIAL_COLUMNS: tuple[tuple[str, ColumnContent, str], ...] = (
    ("number", WHOLE, "Number of the trial in the plan."),
    ("trial", TEXT, "Id of the trial."),
    ("take", WHOLE, "Take that counts: 1, or higher after an interruption or a repetition."),
    ("device", TEXT, "Device on the bench."),
    ("conditions", TEXT, "Labels of the matrix axes, such as `voice=kal level_dbfs=-26`."),
    ("reference", TEXT, "Words that were said."),
    ("outcome", TEXT, "Outcome of the take."),
    ("recognition", TEXT, "Whether the deciding attempt was recognised."),
    ("evidence", TEXT, "Source of the verdict on recognition: the device, an operator, or nothing."),
    (
        "attempts",
        WHOLE,
        "Number of attempts in the take that counts; 0 if nothing showed that the device was listening.",
    ),
    ("heard", TEXT, "Transcript of the deciding attempt, from the device or an operator."),
    ("errors", WHOLE, "Word errors in the transcript of the deciding attempt."),
    ("words", WHOLE, "Reference words."),
    ("latency_ms", NUMBER, "From the end of the query to the response, ms."),
    ("latency_error_ms", NUMBER, "Error of the time to the response (±), ms."),
    ("first_sound_ms", NUMBER, "From the end of the query or command to the first sound (including a chime), ms."),
    ("first_sound_error_ms", NUMBER, "Error of the time to the first sound (±), ms."),
    ("wake_delay_ms", NUMBER, "From the end of the wake phrase to the wake event, ms."),
    ("wake_delay_error_ms", NUMBER, "Error of the wake delay (±), ms."),
    ("length_ms", NUMBER, "Length of the response, ms."),
    ("response_clip", TEXT, "File of the first response in clips/."),
    ("response_transcript", TEXT, "Words of the response, by our transcription."),
    ("cause", TEXT, "Reason for the outcome."),
    ("kind", TEXT, "query, wake, command, ambient, memory, understand or probe."),
    ("hit", WHOLE, "1 if the device woke to the phrase, 0 if not; empty for ambient sound."),
    ("unmatched", WHOLE, "Wake events that match no phrase."),
    ("exposure_s", NUMBER, "Sound that the device demonstrably heard, s."),
    ("unproven_s", NUMBER, "Sound without proof that the device heard it, s."),
    ("substitutions", WHOLE, "Word errors that are substitutions."),
    ("deletions", WHOLE, "Word errors that are deletions."),
    ("insertions", WHOLE, "Word errors that are insertions."),
    ("normalisation", TEXT, "How words were compared."),
    ("expected", TEXT, "Expected intents and slots."),
    ("understood", TEXT, "Intents and slots that the device reported."),
    ("intents_right", WHOLE, "1 if the intents are right, 0 if not; empty if unknown."),
    ("frame_right", WHOLE, "1 if intents and slots are right, 0 if not; empty if unknown."),
    ("recording", TEXT, "Recording that was played."),
    ("speaker", TEXT, "Talker or voice."),
)
"""Name, type and meaning of each column. New columns are added at the end; any other change is another schema."""


def trial_table(progress: Progress, wake: WakeFigures | None) -> TypedTable:
    """One row for each trial. A wake, command or ambient trial has one for each device, with what it counts as."""
    plays_by_trial = wake.plays_by_trial() if wake is not None else {}
    rows = []
    for trial in progress.trials:
        row = _trial_values(trial)
        if plays := plays_by_trial.get(trial.trial.id):
            rows += [row | _device_values(play, trial.trial) for play in plays]
        else:  # queries, and what was not played or does not count
            rows += [row | {"device": plain_text(target.device, 80)} for target in trial.trial.targets]
    names = [name for name, _, _ in TRIAL_COLUMNS]
    values = tuple(tuple(row.get(name) for name in names) for row in rows)
    return TypedTable(tuple((name, content) for name, content, _ in TRIAL_COLUMNS), values)


def trials_csv(progress: Progress, wake: WakeFigures | None) -> bytes:
    """The same table as CSV."""
    return csv_of(trial_table(progress, wake), {"exposure_s": 3, "unproven_s": 3})


def _trial_values(progress: TrialProgress) -> dict[str, Value]:
    """Values that do not depend on the device: of the take that counts, and of the attempt that decided it."""
    take, trial, response = progress.counting, progress.trial, progress.answer
    verdict = take.deciding.verdict if take and take.deciding else None
    row: dict[str, Value] = {
        "number": trial.number,
        "trial": plain_text(trial.id),
        "take": take.take if take else None,
        "device": plain_text(trial.device, 80),
        "conditions": " ".join(f"{plain_text(axis, 80)}={plain_text(label, 80)}" for axis, label in trial.conditions),
        "reference": plain_text(trial.reference),
        "outcome": take.outcome.value if take and take.outcome else None,
        "attempts": len(take.attempts) if take else None,
        "response_clip": response.clip.name if response else None,
        "response_transcript": plain_text(response.transcript or "") if response else None,
        "cause": plain_text(take.cause) if take else None,
        "kind": trial.kind.value,
        **_edit_values(deciding_words(take), trial),
    }
    if verdict is not None:
        row |= {
            "recognition": verdict.recognition.value,
            "evidence": verdict.evidence.value,
            "heard": plain_text(verdict.heard or ""),
            "errors": verdict.errors,
            "words": verdict.words,
            **_duration_values("latency", verdict.latency),
            **_duration_values("first_sound", verdict.first_sound),
            **_duration_values("wake_delay", verdict.wake_delay),
            "length_ms": _rounded_ms(verdict.length.value_s) if verdict.length else None,
        }
    if trial.expects is not None:
        frame = progress.last_verdict.understood if progress.last_verdict else None
        is_known = frame is not None and frame.intents is not None
        row["expected"] = plain_text(frame_line(trial.expects.intents, trial.expects.slots))
        row["understood"] = plain_text(frame_line(frame.intents or (), frame.slots)) if frame and is_known else None
        row["intents_right"] = None if frame is None or frame.intents_right is None else int(frame.intents_right)
        row["frame_right"] = None if frame is None or frame.right is None else int(frame.right)
    if not isinstance(trial.recipe.query, Ambience):  # in which nobody speaks
        row["recording"] = plain_text(trial.recording)
        row["speaker"] = plain_text(trial.speaker)
    return row


def _rounded_ms(value_s: float) -> float:
    return round(value_s * 1000, 1)


def _duration_values(name: str, value: MeasuredDuration | None) -> dict[str, Value]:
    """The columns `<name>_ms` and `<name>_error_ms`; {} without a measurement."""
    if value is None:
        return {}
    return {f"{name}_ms": _rounded_ms(value.value_s), f"{name}_error_ms": _rounded_ms(value.error_s)}


def _edit_values(words: WordCounts | None, trial: Trial) -> dict[str, Value]:
    if words is None:
        return {}
    return {
        "substitutions": words.substitutions,
        "deletions": words.deletions,
        "insertions": words.insertions,
        "normalisation": plain_text(trial.recognised.name, 80),
    }


def _device_values(play: Play, trial: Trial) -> dict[str, Value]:
    """Values that depend on the device. They replace those of the trial."""
    reading = play.reading
    row: dict[str, Value] = {
        "device": plain_text(play.target.device, 80),
        "hit": None if play.kind is TrialKind.AMBIENT else int(reading.hit is not None),
        **_duration_values("wake_delay", reading.delay),
        "unmatched": len(reading.unmatched),
        "exposure_s": round(reading.exposure_s, 3),
        "unproven_s": round(reading.unproven_s, 3),
    }
    if play.was_answered:
        row |= _duration_values("first_sound", play.first_sound)
    if play.kind is TrialKind.COMMAND:
        row["heard"] = plain_text(reading.heard)
        if reading.counts is not None:
            row |= {
                "errors": reading.counts.errors,
                "words": reading.counts.words,
                **_edit_values(reading.counts, trial),
            }
    return row
