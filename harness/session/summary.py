"""A session in figures for a terminal: tables of trials, frames and words, totals, limits; and CSV."""

from __future__ import annotations

import csv
import io
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath

from harness.base.foreign import fit, plain_text
from harness.base.safe_csv import safe_cell
from harness.base.text_table import Column, text_table
from harness.model.choices import Grouping
from harness.model.record import Understood
from harness.model.scenario import TrialKind
from harness.model.stimulus import Ambience
from harness.model.time import Measured
from harness.model.transcript import WordCounts
from harness.model.trial import Trial
from harness.session.figures.progress import LimitVerdict, Progress, Totals
from harness.session.figures.trials import (
    AttemptProgress,
    HeardTrial,
    HeardWords,
    TrialProgress,
    TrialState,
    UnderstoodFigures,
    by_group,
    deciding_words,
    words_of,
)
from harness.session.wording import IN_WORDS, milliseconds, short_names
from harness.statistics.intervals import Share
from harness.statistics.text import NOTHING, delays, percent, percent_interval, share_with_interval
from harness.statistics.word_intervals import LEAST_QUERIES
from harness.transcripts.recognition import HeardUnit, WordsHeard
from harness.understanding.understood import compared, parts_of, verdict_in_words, written
from harness.wake.wake import WakeFigures
from harness.wake.wake_plays import Play

GAP = "  "
HEADS = ("#", "trial", "outcome", "tries", "latency", "it heard", "it answered (by our transcription)")
WIDTHS = (4, 24, 18, 5, 13)
LEAST_TEXT = 28
"""Columns for the two texts together; where there is less room, they are left out."""
FRAME_HEADS = ("#", "trial", "tries", "what was understood: = right, ≠ another value, − missing, + too many")
FRAME_WIDTHS = (4, 24, 5)
LEAST_FRAME = 20
NO_LABEL = "(none)"
UNITS = {HeardUnit.QUERIES: "query", HeardUnit.ATTEMPTS: "try"}
CSV_COLUMNS = (
    "number", "trial", "take", "device", "conditions", "reference", "outcome", "recognition", "evidence", "attempts",
    "heard", "errors", "words", "latency_ms", "latency_error_ms", "wake_delay_ms", "wake_delay_error_ms", "length_ms",
    "response_clip", "response_transcript", "cause",
    "kind", "hit", "unmatched", "exposure_s", "unproven_s",
    "substitutions", "deletions", "insertions", "normalisation",
    "expected", "understood", "intents_right", "frame_right", "recording", "speaker",
)  # fmt: skip


def _columns(width: int | None) -> int:
    """As asked for, else of the terminal; 120 without one."""
    return shutil.get_terminal_size((120, 24)).columns if width is None else width


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], widths: Sequence[int]) -> Iterator[str]:
    """Lines of foreign texts, each cut to its column; columns beyond `widths` are left out."""
    for cells in (heads, tuple("─" * width for width in widths), *rows):
        yield GAP.join(fit(cell, width) for cell, width in zip(cells, widths, strict=False)).rstrip()


# Trials


def trial_table(trials: Sequence[TrialProgress], width: int | None = None) -> list[str]:
    """One row for each, by the take that counts, at most `width` columns wide (None: as wide as the terminal)."""
    left = _columns(width) - sum(WIDTHS) - len(GAP) * (len(WIDTHS) + 1)
    widths = (*WIDTHS, left * 2 // 5, left - left * 2 // 5) if left >= LEAST_TEXT else WIDTHS
    names = short_names([one.trial.id for one in trials], WIDTHS[1])
    return list(_table(HEADS, map(_trial_cells, trials, names), widths))


def _trial_cells(one: TrialProgress, name: str) -> tuple[str, ...]:
    take, response = one.counting, one.answer
    verdict = take.deciding.verdict if take and take.deciding else None
    if verdict is None and take and take.attempts:
        verdict = take.attempts[-1].verdict
    return (
        str(one.trial.number),
        name,
        outcome_in_words(one),
        str(len(take.attempts)) if take else "",
        milliseconds(verdict.latency) if verdict and verdict.latency else "",
        verdict.heard or "" if verdict else "",
        (response.transcript or "") if response else "",
    )


def outcome_in_words(one: TrialProgress) -> str:
    """How a trial ended, in few words, or that it did not."""
    if one.outcome is not None:
        return _short(IN_WORDS[one.outcome])
    return "cut off" if one.state is TrialState.RUNNING else "not played"


def _short(words: str) -> str:
    return words.partition(":")[0]


# Frames


def frame_table(progress: Progress, width: int | None = None) -> list[str]:
    """A line for each trial that was understood or not; empty where no trial expects anything."""
    rows = [one for one in progress.trials if one.trial.expects is not None]
    if not rows:
        return []
    left = max(LEAST_FRAME, _columns(width) - sum(FRAME_WIDTHS) - len(GAP) * len(FRAME_WIDTHS))
    names = short_names([one.trial.id for one in rows], FRAME_WIDTHS[1])
    cells = (
        (str(one.trial.number), name, str(len(one.counting.attempts)) if one.counting else "", frame_in_words(one))
        for one, name in zip(rows, names, strict=True)
    )
    return list(_table(FRAME_HEADS, cells, (*FRAME_WIDTHS, left)))


def _told_at_last(one: TrialProgress) -> AttemptProgress | None:
    """The attempt of the take that counts by which a trial's frame is judged; None where none has ended."""
    take = one.counting
    return None if take is None or not take.attempts else take.deciding or take.attempts[-1]


def _understood_at_last(one: TrialProgress) -> Understood | None:
    attempt = _told_at_last(one)
    return attempt.verdict.understood if attempt and attempt.verdict else None


def frame_in_words(one: TrialProgress) -> str:
    """The verdict on a trial's frame, with its parts; "" where it was not played."""
    attempt, told = _told_at_last(one), _understood_at_last(one)
    if attempt is None or attempt.verdict is None or told is None:
        return ""
    found = compared(parts_of(one.trial, attempt.verdict))
    if not found and told.intents is not None:
        found = "nothing, as it should" if told.right else "nothing"
    return f"{verdict_in_words(told)}{': ' if found else ''}{found}"


# Totals


def finished_line(figures: Totals) -> str:
    """How far the plan was played."""
    outcomes = ", ".join(f"{count} {_short(IN_WORDS[outcome])}" for outcome, count in figures.by_outcome) or "none"
    return f"finished             {figures.finished} of {figures.planned}: {outcomes}"


def totals_lines(figures: Totals) -> list[str]:
    """Lines with the totals; a figure over nothing is n/a.

    Where trials are asked until they are understood, that comes first; how often words were recognised then says
    nothing, unless there are others.
    """
    understood = figures.understood
    frames = bool(understood.right.total or understood.unknown)
    words = [
        f"recognised           {share_with_interval(figures.recognised)}",
        f"at the first attempt {share_with_interval(figures.first_attempt)}",
        f"attempts             {_needed(figures.attempts_needed)}",
    ]
    return [
        finished_line(figures),
        *(understood_lines(understood) if frames else ()),
        *(words if figures.recognised.total or not frames else ()),
        f"answered             {share_with_interval(figures.answered)}",
        f"latency              {delays(figures.latency)}",
        f"wake delay           {delays(figures.wake_delay)}",
        f"judged               {figures.judged} of {figures.to_judge} responses",
    ]


def understood_lines(figures: UnderstoodFigures) -> Iterator[str]:
    """Lines with shares of frames and intents, and their intervals."""
    first = figures.first_intents
    alone = NOTHING if first.value is None else f"{first.count} of {first.total}"
    yield f"understood           {share_with_interval(figures.right)}"
    yield f"intents alone        {share_with_interval(figures.intents)}"
    yield f"understood at first  {share_with_interval(figures.first_right)}; intents alone {alone}"
    yield f"tries                {_needed(figures.attempts_needed)}"
    if figures.unknown:
        yield f"not known            of {figures.unknown} nothing says what was understood"


def _needed(attempts: Iterable[tuple[int | None, Share]]) -> str:
    """`1: 12 = 80.0 %, 2: 2 = 13.3 %, never: 1 = 6.67 %`."""
    shares = (
        f"{'never' if needed is None else needed}: {share.count} = {percent(share.value)}"
        for needed, share in attempts
        if share.value is not None
    )
    return ", ".join(shares) or NOTHING


def limit_lines(verdicts: Iterable[LimitVerdict]) -> list[str]:
    """One line for each limit that the scenario declares."""
    lines = []
    for one in verdicts:
        found = f"wanted {one.wanted:g}, found {NOTHING if one.found is None else f'{one.found:.4g}'}"
        if one.of_test:
            found = "undecided" if one.found is None else "passed" if one.found else "failed"
        lines.append(f"{'holds ' if one.ok else 'FAILED'} {one.name}: {found}")
    return lines


# Words that were heard


def heard_lines(first: WordsHeard, final: WordsHeard, normalisation: str) -> list[str]:
    """Three lines for the totals of a session, a fourth where an operator typed; none where nothing could be heard."""
    if not first.attempts:
        return []
    told = (
        f"{words.counts.sentences} of {words.attempts} {which}" for words, which in ((first, "first"), (final, "final"))
    )
    return [
        f"WER, first attempt   {wer_in_words(first)}",
        f"WER, final attempt   {wer_in_words(final)}",
        f"transcripts          {' and '.join(told)} attempts; words compared as {plain_text(normalisation, 80)}",
        *(f"typed                {told}" for told in _typed(first, final)),
    ]


def _typed(first: WordsHeard, final: WordsHeard) -> Iterator[str]:
    if first.typed or final.typed:
        yield f"by the operator, mostly of what was misheard: {first.typed} first, {final.typed} final"


def wer_in_words(words: WordsHeard) -> str:
    """`3 of 60 words = 5.00 % (95 % over queries 1.20–9.00 %)`; errors of reference words."""
    counts, low_high = words.counts, words.interval
    if counts.wer is None:
        return f"{NOTHING} (of no words{f', {counts.insertions} inserted' if counts.insertions else ''})"
    interval = "" if low_high is None else f" (95 % over {words.unit} {percent_interval(low_high)})"
    return f"{counts.errors} of {counts.words} words = {percent(counts.wer)}{interval}"


def heard_tables(
    trials: Sequence[HeardTrial], normalisation: str, groupings: Iterable[str] = (), width: int | None = None
) -> list[str]:
    """All trials together, then a table for each grouping; without one, for each that parts the trials."""
    if not trials:
        return ["no attempt was made that could tell what was heard"]
    whole, columns = words_of(trials), _columns(width)
    out = [
        f"WER of what was heard, words compared as {normalisation}",
        f"intervals: by query from {LEAST_QUERIES} different ones on, else by try (attempt)",
        *(f"transcripts typed {told}" for told in _typed(whole.first, whole.final)),
        "",
        *_heard_table("", [("all", whole)], columns),
    ]
    asked = tuple(groupings)
    for grouping in asked or Grouping:
        groups = by_group(trials, grouping)
        # Conditions of one axis say no more than that axis, which has a table of its own.
        of_one_axis = grouping is Grouping.CONDITION and all(len(one.trial.conditions) < 2 for one in trials)
        if asked or (len(groups) > 1 and not of_one_axis):
            out += ["", *_heard_table(f"by {grouping}", groups, columns)]
    return out


def _heard_table(title: str, groups: Iterable[tuple[str, HeardWords]], width: int) -> Iterator[str]:
    heads = ("WER", "95 %", "by", "sub", "del", "ins", "words", "transcripts")
    rows = [
        row
        for label, heard in groups
        for row in ((label or NO_LABEL, "first", *_words(heard.first)), ("", "final", *_words(heard.final)))
    ]
    return text_table((Column(title), Column("try", left=True), *map(Column, heads)), rows, width)


def _words(words: WordsHeard) -> tuple[str, ...]:
    counts = words.counts
    return (
        percent(counts.wer),
        percent_interval(words.interval),
        "" if words.interval is None else UNITS[words.unit],
        *map(str, (counts.substitutions, counts.deletions, counts.insertions, counts.words)),
        f"{counts.sentences} of {words.attempts}",
    )


# CSV


def as_csv(progress: Progress, wake: WakeFigures | None = None) -> str:
    """The table of trials for a spreadsheet, empty where there is nothing.

    One row a trial; of a wake, command or ambient trial one for each device, by what it counts as.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, CSV_COLUMNS)
    writer.writeheader()
    heard: dict[str, list[Play]] = {}
    for device in wake.snapshot().devices if wake else ():
        for play in wake.plays(device.device) if wake else ():
            heard.setdefault(play.trial.id, []).append(play)
    for one in progress.trials:
        row = _csv_row(one)
        plays = heard.get(one.trial.id)
        writer.writerows([row | _of_device(play, one.trial) for play in plays] if plays else [row])
    return text.getvalue()


def _csv_row(one: TrialProgress) -> dict[str, object]:
    """None is an empty cell."""
    take, trial, response = one.counting, one.trial, one.answer
    verdict = take.deciding.verdict if take and take.deciding else None
    row: dict[str, object] = {
        "number": trial.number,
        "trial": trial.id,
        "take": take.take if take else None,
        "device": trial.device,
        "conditions": " ".join(f"{axis}={plain_text(label, 80)}" for axis, label in trial.conditions),
        "reference": plain_text(trial.reference),
        "outcome": take.outcome.value if take and take.outcome else None,
        "attempts": len(take.attempts) if take else None,
        "response_clip": response.clip.name if response else None,
        "response_transcript": plain_text(response.transcript or "") if response else None,
        "cause": plain_text(take.cause) if take else None,
        "kind": trial.kind.value,
        **_edits(deciding_words(take), trial),
    }
    if verdict is not None:
        row |= {
            "recognition": verdict.recognition.value,
            "evidence": verdict.evidence.value,
            "heard": plain_text(verdict.heard or ""),
            "errors": verdict.errors,
            "words": verdict.words,
            **_ms("latency", verdict.latency),
            **_ms("wake_delay", verdict.wake_delay),
            "length_ms": f"{verdict.length.value_s * 1000:.1f}" if verdict.length else None,
        }
    if trial.expects is not None:
        told = _understood_at_last(one)
        known = told is not None and told.intents is not None
        row["expected"] = safe_cell(written(trial.expects.intents, trial.expects.slots))
        row["understood"] = safe_cell(written(told.intents or (), told.slots)) if told and known else None
        row["intents_right"] = None if told is None or told.intents_right is None else int(told.intents_right)
        row["frame_right"] = None if told is None or told.right is None else int(told.right)
    if not isinstance(trial.recipe.query, Ambience):  # in which nobody speaks
        row["recording"] = safe_cell(trial.recording)
        row["speaker"] = safe_cell(trial.speaker if trial.recording != PurePath(trial.speaker).name else "")
    return row


def _ms(name: str, value: Measured | None) -> dict[str, object]:
    if value is None:
        return {}
    return {f"{name}_ms": f"{value.value_s * 1000:.1f}", f"{name}_error_ms": f"{value.error_s * 1000:.1f}"}


def _edits(words: WordCounts | None, trial: Trial) -> dict[str, object]:
    if words is None:
        return {}
    return {
        "substitutions": words.substitutions,
        "deletions": words.deletions,
        "insertions": words.insertions,
        "normalisation": plain_text(trial.recognised.name, 80),
    }


def _of_device(play: Play, trial: Trial) -> dict[str, object]:
    """What differs from device to device."""
    reading = play.reading
    row: dict[str, object] = {
        "device": plain_text(play.target.device, 80),
        "hit": None if play.kind is TrialKind.AMBIENT else int(reading.hit is not None),
        **_ms("wake_delay", reading.delay),
        "unmatched": len(reading.unmatched),
        "exposure_s": f"{reading.exposure_s:.3f}",
        "unproven_s": f"{reading.unproven_s:.3f}",
    }
    if play.kind is TrialKind.COMMAND:
        row["heard"] = plain_text(reading.heard)
        if reading.counts is not None:
            row |= {"errors": reading.counts.errors, "words": reading.counts.words, **_edits(reading.counts, trial)}
    return row
