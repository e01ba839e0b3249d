"""Numbers and outcomes as text for screens, without markup."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from harness.base.foreign import plain_text
from harness.model.numbers import NOTHING
from harness.model.scenario import TrialKind
from harness.model.stimulus import Ambience, Recording, SpokenText
from harness.model.trial import Listening, Outcome, Trial
from harness.statistics.intervals import Quantile, Share
from harness.transcripts.recognition import HeardUnit, WordsHeard

SILENT_DBFS = -99.0


def told_in(name: str) -> str:
    """A text of these screens from its file."""
    return Path(__file__).with_name("texts").joinpath(name).read_text(encoding="utf-8")


OUTCOME_WORDS: dict[Outcome, str] = {
    Outcome.RESPONDED: "responded",
    Outcome.LATE: "late",
    Outcome.MISHEARD: "misheard",
    Outcome.NO_WAKE: "no wake",
    Outcome.NO_RESPONSE: "no response",
    Outcome.INTERRUPTED: "interrupted",
    Outcome.INCONCLUSIVE: "inconclusive",
    Outcome.SKIPPED: "skipped",
    Outcome.ABORTED: "aborted",
    Outcome.COUNTED: "counted",
    Outcome.UNDERSTOOD: "understood",
}


FIGURE_WORDS: dict[Literal["false_accepts", "false_rejects"], str] = {
    "false_accepts": "false accepts",
    "false_rejects": "false rejects",
}


def share(value: Share) -> str:
    """A share as a count, a percentage and its interval: `12/14  86 % (60–96)`."""
    if value.value is None or value.interval is None:
        return NOTHING
    low, high = value.interval
    return f"{value.count}/{value.total} {value.value * 100:.0f} % ({low * 100:.0f}–{high * 100:.0f})"


def wer(words: WordsHeard, width: int = 80) -> str:
    """A WER with its interval, and transcripts of attempts: `5.0 % (1–9) by query  14/15`.

    The unit of the interval is left out where there is no room.
    """
    counts = words.counts
    transcripts = f"{counts.sentences}/{words.attempts}"
    low_high = words.interval
    if counts.wer is None:
        return f"{NOTHING}  {transcripts}"
    if low_high is None:
        return f"{counts.wer * 100:.1f} %  {transcripts}"
    figure = f"{counts.wer * 100:.1f} % ({low_high[0] * 100:.0f}–{low_high[1] * 100:.0f})"
    told = f"{figure} by {'query' if words.unit is HeardUnit.QUERIES else 'try'}  {transcripts}"
    return told if len(told) <= width else f"{figure}  {transcripts}"


def quantile(value: Quantile | None) -> str:
    """A quantile with its interval; `?` for an end that needs more values."""
    if value is None:
        return NOTHING

    def end(at_s: float | None) -> str:
        return "?" if at_s is None else f"{at_s:.2f}"

    return f"{value.value_s:.2f} ±{value.clock_error_s:.2f} s ({end(value.low_s)}–{end(value.high_s)})"


def level(value_dbfs: float | None) -> str:
    if value_dbfs is None:
        return NOTHING
    return f"{value_dbfs:.0f} dBFS" if value_dbfs > SILENT_DBFS else "silent"


def heard_text(listening: Listening, limit: int = 60) -> str:
    """The sound of a wake, command or ambient trial in words, escaped."""
    if listening.kind is TrialKind.AMBIENT:
        return f"ambient: {plain_text(listening.source, limit) or 'sound'}"
    return plain_text(listening.phrase, limit)


def query_text(trial: Trial, limit: int = 200) -> str:
    """The query, or the sound that devices hear, escaped and on one line."""
    listening = trial.listening
    if listening is not None:
        said = plain_text(trial.reference, limit) if listening.kind is TrialKind.COMMAND else ""
        return f"{heard_text(listening)}{', ' if said else ''}{said}"
    match trial.recipe.query:
        case SpokenText(text=text):
            return plain_text(text, limit)
        case Recording():
            return plain_text(trial.reference, limit) or "(a recording without a transcript)"
        case Ambience():
            return "(ambient sound)"
