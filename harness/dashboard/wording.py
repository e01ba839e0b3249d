"""Numbers and queries as text for screens, without markup."""

from __future__ import annotations

from pathlib import Path

from harness.base.foreign import plain_text
from harness.model.numbers import NOTHING, fixed, hundredths, percent
from harness.model.scenario import TrialKind
from harness.model.stimulus import Ambience, Recording, SpokenText
from harness.model.time import MeasuredDuration
from harness.model.trial import ListeningSpec, Trial
from harness.statistics.intervals import LatencyFigures, Share
from harness.statistics.text import measured, quantile, seconds_interval
from harness.transcripts.recognition import GroupTranscripts, SamplingUnit

SILENT_DBFS = -99.0


def screen_text(name: str) -> str:
    """A text of these screens from its file."""
    return Path(__file__).with_name("texts").joinpath(name).read_text(encoding="utf-8")


def share(value: Share) -> str:
    """A share as a count, a percentage and its interval: `12/14  86 % (60–96)`."""
    if value.value is None or value.interval is None:
        return NOTHING
    low, high = value.interval
    return f"{value.count}/{value.total} {percent(value.value, 0)} ({hundredths(low, 0)}–{hundredths(high, 0)})"


def median_latency(figures: LatencyFigures, width: int) -> str:
    """The median with the error of clocks and its interval: `840 ms ± 10 ms (790–912 ms)`.

    The error is left out where there is no room.
    """
    if figures.p50 is None:
        return NOTHING
    interval = seconds_interval(figures.p50.low_s, figures.p50.high_s)
    text = f"{measured(MeasuredDuration(figures.p50.value_s, figures.error_s))} ({interval})"
    return text if len(text) <= width else quantile(figures.p50)


def wer(words: GroupTranscripts, width: int = 80) -> str:
    """A WER with its interval, and transcripts of attempts: `5.0 % (1–9) by query  14/15`.

    The unit of the interval is left out where there is no room.
    """
    counts = words.counts
    transcripts = f"{counts.sentences}/{words.attempts}"
    low_high = words.interval
    if counts.wer is None:
        return f"{NOTHING}  {transcripts}"
    if low_high is None:
        return f"{percent(counts.wer, 1)}  {transcripts}"
    figure = f"{percent(counts.wer, 1)} ({hundredths(low_high[0], 0)}–{hundredths(low_high[1], 0)})"
    text = f"{figure} by {'query' if words.unit is SamplingUnit.QUERIES else 'attempt'}  {transcripts}"
    return text if len(text) <= width else f"{figure}  {transcripts}"


def level(value_dbfs: float | None) -> str:
    if value_dbfs is None:
        return NOTHING
    return fixed(value_dbfs, 0, "dBFS") if value_dbfs > SILENT_DBFS else "silent"


def heard_text(listening: ListeningSpec, limit: int = 60) -> str:
    """The sound of a wake, command or ambient trial in words, sanitised."""
    if listening.kind is TrialKind.AMBIENT:
        return f"ambient: {plain_text(listening.source, limit) or 'sound'}"
    return plain_text(listening.phrase, limit)


def query_text(trial: Trial, limit: int = 200) -> str:
    """The query, or the sound that devices hear, sanitised and on one line."""
    listening = trial.listening
    if listening is not None:
        command = plain_text(trial.reference, limit) if listening.kind is TrialKind.COMMAND else ""
        return f"{heard_text(listening)}{', ' if command else ''}{command}"
    match trial.recipe.query:
        case SpokenText(text=text):
            return plain_text(text, limit)
        case Recording():
            return plain_text(trial.reference, limit) or "(a recording without a transcript)"
        case Ambience():
            return "(ambient sound)"
