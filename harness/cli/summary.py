"""The end of a session in figures: a table of trials, totals, limits; plain text, or CSV."""

from __future__ import annotations

import csv
import io
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

from harness.base.cells import fit
from harness.base.foreign import plain_text
from harness.base.safe_csv import safe_cell
from harness.cli import frames_summary
from harness.cli.frames_summary import share_in_words
from harness.cli.happenings import IN_WORDS, milliseconds
from harness.model.scenario import TrialKind
from harness.model.stimulus import Ambience
from harness.model.transcript import WordCounts
from harness.model.trial import Trial
from harness.session.figures.names import short_names
from harness.session.figures.progress import LimitVerdict, Progress, Totals
from harness.session.figures.trials import TrialProgress, TrialState, deciding_words
from harness.statistics.latency import LatencyFigures
from harness.wake.wake import WakeFigures
from harness.wake.wake_plays import Play

COLUMNS = ("#", "trial", "outcome", "tries", "latency", "it heard", "it answered (by our transcription)")
WIDTHS = (4, 24, 18, 5, 13)
GAP = "  "
LEAST_TEXT = 28
"""Columns for the two texts together; where there is less room, they are left out."""
CSV_COLUMNS = (
    "number", "trial", "take", "device", "conditions", "reference", "outcome", "recognition", "evidence", "attempts",
    "heard", "errors", "words", "latency_ms", "latency_error_ms", "wake_delay_ms", "wake_delay_error_ms", "length_ms",
    "response_clip", "response_transcript", "cause",
    "kind", "hit", "unmatched", "exposure_s", "unproven_s",
    "substitutions", "deletions", "insertions", "normalisation",
    "expected", "understood", "intents_right", "frame_right", "recording", "speaker",
)  # fmt: skip
_EDITS = slice(CSV_COLUMNS.index("substitutions"), CSV_COLUMNS.index("normalisation") + 1)


@dataclass(frozen=True, slots=True)
class TrialRow:
    """What the table says of one trial, by the take that counts; texts are still foreign."""

    number: int
    trial: str
    outcome: str
    attempts: int | None
    latency: str
    heard: str
    answer: str


def trial_rows(progress: Progress) -> Iterator[TrialRow]:
    """One row for each planned trial, in the order of playing."""
    for one in progress.trials:
        take = one.counting
        verdict = take.deciding.verdict if take and take.deciding else None
        if verdict is None and take and take.attempts:
            verdict = take.attempts[-1].verdict
        response = one.answer
        yield TrialRow(
            number=one.trial.number,
            trial=one.trial.id,
            outcome=_state_in_words(one),
            attempts=len(take.attempts) if take else None,
            latency=milliseconds(verdict.latency) if verdict and verdict.latency else "",
            heard=verdict.heard or "" if verdict else "",
            answer=(response.transcript or "") if response else "",
        )


def table(progress: Progress, width: int | None = None) -> list[str]:
    """Lines of the table, at most `width` columns wide (None: as wide as the terminal; 120 without one)."""
    widths = _widths(shutil.get_terminal_size((120, 24)).columns if width is None else width)
    lines = [_line(COLUMNS, widths), _line(tuple("─" * one for one in widths), widths)]
    rows = list(trial_rows(progress))
    names = short_names([row.trial for row in rows], widths[1])
    for row, name in zip(rows, names, strict=True):
        attempts = "" if row.attempts is None else str(row.attempts)
        cells = (
            str(row.number),
            name,
            row.outcome,
            attempts,
            row.latency,
            row.heard,
            row.answer,
        )
        lines.append(_line(cells, widths))
    return lines


def _widths(width: int) -> tuple[int, ...]:
    left = width - sum(WIDTHS) - len(GAP) * (len(WIDTHS) + 1)
    return (*WIDTHS, left * 2 // 5, left - left * 2 // 5) if left >= LEAST_TEXT else WIDTHS


def queries(progress: Progress) -> Progress:
    """Without wake, command and ambient trials, which a table of single trials says nothing about."""
    return replace(progress, trials=tuple(one for one in progress.trials if one.trial.listening is None))


def finished(figures: Totals) -> str:
    """How far the plan was played."""
    outcomes = ", ".join(f"{count} {_short(IN_WORDS[outcome])}" for outcome, count in figures.by_outcome) or "none"
    return f"finished             {figures.finished} of {figures.planned}: {outcomes}"


def totals(figures: Totals) -> list[str]:
    """Lines with the totals; a figure over nothing is n/a.

    Where trials are asked until they are understood, that comes first; how often words were recognised then says
    nothing, unless there are others.
    """
    understood = figures.understood
    frames = bool(understood.right.total or understood.unknown)
    words = [
        f"recognised           {share_in_words(figures.recognised)}",
        f"at the first attempt {share_in_words(figures.first_attempt)}",
        f"attempts             {_attempts(figures)}",
    ]
    return [
        finished(figures),
        *(frames_summary.totals(understood) if frames else ()),
        *(words if figures.recognised.total or not frames else ()),
        f"answered             {share_in_words(figures.answered)}",
        f"latency              {_latency(figures.latency)}",
        f"wake delay           {_latency(figures.wake_delay)}",
        f"judged               {figures.judged} of {figures.to_judge} responses",
    ]


def _attempts(figures: Totals) -> str:
    """`1: 12 = 80.0%, 2: 2 = 13.3%, never: 1 = 6.7%` of the trials whose recognition was assessed."""
    shares = (
        f"{'never' if needed is None else needed}: {share.count} = {share.value:.1%}"
        for needed, share in figures.attempts_needed
        if share.value is not None
    )
    return ", ".join(shares) or "n/a (of none)"


def limits(verdicts: Iterable[LimitVerdict]) -> list[str]:
    """One line for each limit that the scenario declares."""
    lines = []
    for one in verdicts:
        found = f"wanted {one.wanted:g}, found {'n/a' if one.found is None else f'{one.found:.4g}'}"
        if one.of_test:
            found = "undecided" if one.found is None else "passed" if one.found else "failed"
        lines.append(f"{'holds ' if one.ok else 'FAILED'} {one.name}: {found}")
    return lines


def as_csv(progress: Progress, wake: WakeFigures | None = None) -> str:
    """The table of trials for a spreadsheet, empty where there is nothing.

    One row a trial; of a wake, command or ambient trial one for each device, by what it counts as.
    """
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(CSV_COLUMNS)
    heard: dict[str, list[Play]] = {}
    for device in wake.snapshot().devices if wake else ():
        for play in wake.plays(device.device) if wake else ():
            heard.setdefault(play.trial.id, []).append(play)
    for one in progress.trials:
        kind = one.trial.kind.value
        words = deciding_words(one.counting)
        row = [*_csv_row(one), kind, "", "", "", "", *_edits(words, one), *_frame(one), *_said_by(one.trial)]
        if plays := heard.get(one.trial.id):
            writer.writerows(_of_device(row, play, one) for play in plays)
        else:
            writer.writerow(row)
    return text.getvalue()


def _said_by(trial: Trial) -> tuple[str, str]:
    """The recording, and who speaks; nobody does in ambient sound."""
    if isinstance(trial.recipe.query, Ambience):
        return "", ""
    speaker = trial.speaker if trial.recording != PurePath(trial.speaker).name else ""
    return safe_cell(trial.recording), safe_cell(speaker)


def _edits(words: WordCounts | None, one: TrialProgress) -> tuple[object, ...]:
    """Empty without a transcript."""
    if words is None:
        return "", "", "", ""
    return words.substitutions, words.deletions, words.insertions, plain_text(one.trial.recognised.name, 80)


def _frame(one: TrialProgress) -> tuple[object, ...]:
    """Empty where nothing is expected; what nobody knows is empty."""
    if one.trial.expects is None:
        return "", "", "", ""
    found = frames_summary.understood_at_last(one)
    intents, frame = (None, None) if found is None else (found.intents_right, found.right)
    return (
        safe_cell(frames_summary.expected(one)),
        safe_cell(frames_summary.told(one)),
        "" if intents is None else int(intents),
        "" if frame is None else int(frame),
    )


def _of_device(row: Sequence[object], play: Play, one: TrialProgress) -> list[object]:
    found = dict(zip(CSV_COLUMNS, row, strict=True))
    reading = play.reading
    found["device"] = plain_text(play.target.device, 80)
    if play.kind is not TrialKind.AMBIENT:
        found["hit"] = int(reading.hit is not None)
    if reading.delay is not None:
        found["wake_delay_ms"] = f"{reading.delay.value_s * 1000:.1f}"
        found["wake_delay_error_ms"] = f"{reading.delay.error_s * 1000:.1f}"
    if play.kind is TrialKind.COMMAND:
        found["heard"] = plain_text(reading.heard)
        if (words := reading.counts) is not None:
            found["errors"], found["words"] = words.errors, words.words
            found.update(zip(CSV_COLUMNS[_EDITS], _edits(words, one), strict=True))
    found["unmatched"] = len(reading.unmatched)
    found["exposure_s"], found["unproven_s"] = f"{reading.exposure_s:.3f}", f"{reading.unproven_s:.3f}"
    return list(found.values())


def _csv_row(one: TrialProgress) -> Sequence[object]:
    take, trial, response = one.counting, one.trial, one.answer
    verdict = take.deciding.verdict if take and take.deciding else None
    latency = verdict.latency if verdict else None
    wake = verdict.wake_delay if verdict else None
    length = verdict.length if verdict else None
    return (
        trial.number,
        trial.id,
        take.take if take else "",
        trial.device,
        " ".join(f"{axis}={plain_text(label, 80)}" for axis, label in trial.conditions),
        plain_text(trial.reference),
        take.outcome.value if take and take.outcome else "",
        verdict.recognition.value if verdict else "",
        verdict.evidence.value if verdict else "",
        len(take.attempts) if take else "",
        plain_text(verdict.heard) if verdict and verdict.heard is not None else "",
        verdict.errors if verdict and verdict.errors is not None else "",
        verdict.words if verdict and verdict.words is not None else "",
        f"{latency.value_s * 1000:.1f}" if latency else "",
        f"{latency.error_s * 1000:.1f}" if latency else "",
        f"{wake.value_s * 1000:.1f}" if wake else "",
        f"{wake.error_s * 1000:.1f}" if wake else "",
        f"{length.value_s * 1000:.1f}" if length else "",
        response.clip.name if response else "",
        plain_text(response.transcript) if response and response.transcript else "",
        plain_text(take.cause) if take else "",
    )


def _state_in_words(one: TrialProgress) -> str:
    if one.outcome is not None:
        return _short(IN_WORDS[one.outcome])
    return "cut off" if one.state is TrialState.RUNNING else "not played"


def _short(words: str) -> str:
    return words.partition(":")[0]


def _latency(figures: LatencyFigures) -> str:
    if figures.p50 is None or figures.p95 is None:
        return "n/a (of none)"
    p50, p95 = figures.p50, figures.p95
    error = max(p50.clock_error_s, p95.clock_error_s)
    return (
        f"median {p50.value_s * 1000:.0f} ms, p95 {p95.value_s * 1000:.0f} ms, "
        f"clocks ± {error * 1000:.0f} ms (of {figures.total})"
    )


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return GAP.join(fit(cell, width) for cell, width in zip(cells, widths, strict=False)).rstrip()
