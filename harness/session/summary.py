"""A session's results for a terminal: tables of trials, frames and words, effects, totals and limits."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from harness.base.foreign import plain_text, shell_word
from harness.base.grouping import group_by
from harness.base.text_table import Column, first_lines, fit, join_blocks, labelled_lines, text_table, wrap_wide_lines
from harness.model.choices import Grouping
from harness.model.errors import HarnessError
from harness.model.numbers import NOTHING, counted, exact, fixed, ordinal, percent, seconds
from harness.model.record import EndReason
from harness.model.scenario import Scenario, TrialKind
from harness.model.trial import Outcome
from harness.session.effect_items import effect_lines, effects_in
from harness.session.figures.limits import limits_so_far, worst_of
from harness.session.figures.memory import (
    AnswerSource,
    MemoryFigures,
    MemoryFinding,
    MemoryLength,
    WaitLevel,
    find_memories,
)
from harness.session.figures.procedures import clause_rows
from harness.session.figures.progress import Progress, Totals, normalisation_of, words_of_session
from harness.session.figures.requests import requests_of_session
from harness.session.figures.trials import (
    FirstAndFinalWords,
    TranscribedTrial,
    TrialProgress,
    TrialState,
    by_group,
    words_of,
)
from harness.session.figures.understood_trials import UnderstoodFigures
from harness.session.log.reader import LogReader, read_scenario
from harness.session.wording import OUTCOME_WORDS, cause_in_words, connection_in_words, described_in_words, short_names
from harness.statistics.intervals import Share
from harness.statistics.text import delays, measured, percent_interval, share_with_interval
from harness.statistics.verdict import DeclaredLimit, LimitVerdict, limits_met_text
from harness.statistics.word_intervals import MIN_QUERIES
from harness.transcripts.recognition import GroupTranscripts, SamplingUnit
from harness.understanding.reported_frames import parts_line, parts_of, verdict_in_words
from harness.wake.reports.figures_text import request_lines, wake_summary
from harness.wake.wake import WakeFigures
from harness.wake.wake_plays import Play
from harness.wake.wake_progress import WakeProgress

GAP = "  "
"""Between the columns of a table."""
REASONS_SHOWN = 50
"""A list of reasons is cut to this many."""
HEADS = ("#", "trial", "outcome", "attempts", "latency", "it heard", "it answered (by our transcription)")
WIDTHS: tuple[int, ...] = (4, 24, 12, 8, 15)  # Of HEADS, without the two texts.
MIN_TEXT_COLUMNS = 28
"""Least width of the two texts together, in columns; on a narrower screen, they are left out."""
FRAME_HEADS = ("#", "trial", "attempts", "what was understood: = right, ≠ another value, − missing, + extra")
FRAME_WIDTHS = (4, 24, 8)  # Of FRAME_HEADS, without the last one.
MIN_FRAME_COLUMNS = 18
"""Least width of that last column, in columns."""
NO_LABEL = "(none)"
UNITS = {SamplingUnit.QUERIES: "query", SamplingUnit.ATTEMPTS: "attempt"}


def _table_width(width: int | None) -> int:
    """Width of a table: as requested, else that of the terminal, else 120."""
    return shutil.get_terminal_size((120, 24)).columns if width is None else width


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], widths: Sequence[int]) -> Iterator[str]:
    """The lines of a table of sanitised texts, each cut to its column. Columns beyond `widths` are left out."""
    for cells in (heads, tuple("─" * width for width in widths), *rows):
        yield GAP.join(fit(cell, width) for cell, width in zip(cells, widths, strict=False)).rstrip()


# The end of a session


def end_of_session(progress: Progress, wake: WakeFigures | None, folder: Path | None) -> list[str]:
    """The lines at the end of a session: the table of queries, the totals, the results of each device, and the limits.

    - progress: includes later answers of people (`log.reader.later_rows`).
    - folder: None leaves out what is read from files: effects, memory, procedure and limits.
    """
    lines = ["The run failed at the start: nothing was played."] if progress.failed_at_start else []
    if any(trial.trial.listening is None for trial in progress.trials) or not progress.trials:
        lines += trial_table([trial for trial in progress.trials if trial.trial.listening is None])
        if frames := frame_table(progress):
            lines += ["", *frames]
        lines += [*interrupted_lines(progress), ""]
    snapshot = wake.snapshot() if wake else None
    lines += wrap_wide_lines(results_lines(progress, snapshot, wake_summary(wake) if wake else ()), _table_width(None))
    lines += self_wake_lines(progress)
    if folder is not None and any(trial.trial.memory is not None for trial in progress.trials):
        lines += memory_lines(folder)
    lines += bench_lines(progress)
    if folder is not None:
        lines += effect_lines(effects_in(progress, folder).items)
        try:
            scenario = read_scenario(folder)
        except HarnessError as error:
            return [*lines, f"limits: {error}"]
        lines += procedure_lines(scenario, progress, wake)
        lines += verdict_lines(limits_so_far(scenario.limits, scenario.stopping, progress, snapshot), progress)
    return lines


def procedure_lines(scenario: Scenario, progress: Progress, wake: WakeFigures | None) -> list[str]:
    """The clauses of the scenario's procedure with each device's value and verdict; [] without a procedure."""
    rows = clause_rows(scenario, progress, wake)
    if scenario.procedure is None or not rows:
        return []
    heads = tuple(Column(head, left=True) for head in ("clause", "required", "result", "verdict"))
    lines = ["", f"after {scenario.procedure.name.value}, edition {plain_text(scenario.procedure.edition, 40)}"]
    for device, device_rows in group_by((row.device, row) for row in rows).items():
        cells = [
            (row.clause.what, row.clause.wanted, row.result.value, row.result.verdict.value) for row in device_rows
        ]
        lines += [f"device {plain_text(device, 80)}", *text_table(heads, cells, _table_width(None))]
    return [*lines, ""]


def interrupted_lines(progress: Progress) -> list[str]:
    """Why trials have no result: `time.r1: not proven: nothing shows that radio was listening`."""
    causes = [
        f"{plain_text(trial.trial.id, 60)}: {plain_text(cause_in_words(trial.counting.cause), 200)}"
        for trial in progress.trials
        if trial.counting is not None and trial.counting.outcome is Outcome.INTERRUPTED and trial.counting.cause
    ]
    return labelled_lines("interrupted", first_lines(causes, REASONS_SHOWN))


def ran_line(progress: Progress) -> str:
    """How often the session ran, failed and was paused, and how it ended."""
    ended = progress.finished.value if progress.finished else "not ended"
    return f"runs {progress.runs} · faults {progress.faults} · pauses {progress.pauses} · {ended}"


def bench_lines(progress: Progress) -> list[str]:
    """Boards, their lost connections and restarts, power cycles, bench checks, and lost sound and reports."""
    cycles = (
        f"{plain_text(device, 40)}: {count}, {faults} of them after a fault"
        for device, count, faults in progress.power_cycles
    )
    connections = (
        f"{plain_text(connection.device, 40)}: {connection_in_words(connection)}"
        for connection in progress.connections
        if connection.failed
    )
    return [
        *labelled_lines("boards", map(described_in_words, progress.boards)),
        *labelled_lines("connections", connections),
        *labelled_lines("power cycles", cycles),
        *check_lines(progress),
        *labelled_lines("sound", filter(None, [progress.late_sound.in_words])),
        *labelled_lines("host", disturbance_lines(progress)),
        *labelled_lines("NOT READ", [f"{counted(progress.unread, 'line')} of devices"] if progress.unread else ()),
    ]


def disturbance_lines(progress: Progress) -> list[str]:
    """How the host disturbed the run: attempts and stalls, then the reason of each attempt; [] if it did not."""
    share, lines = progress.totals.disturbed, []
    if share.count:
        lines.append(f"disturbed attempts: {share_with_interval(share)}")
    if progress.stalls:
        lines.append(f"stalled {counted(progress.stalls, 'time')}, for {seconds(progress.longest_stall_s)} at most")
    reasons = [
        f"{plain_text(row.trial_id, 60)}, attempt {row.attempt}: {plain_text(row.disturbed, 200)}"
        for row in progress.disturbed
    ]
    return [*lines, *first_lines(reasons, REASONS_SHOWN)]


def disturbed_trials(progress: Progress, limit: int = 3) -> str:
    """Names of at most `limit` trials with attempts that the host disturbed: `time.r1, lamp.r1, and 4 more`."""
    names = dict.fromkeys(plain_text(row.trial_id, 60) for row in progress.disturbed)
    return ", ".join(first_lines(list(names), limit))


def self_wake_lines(progress: Progress) -> list[str]:
    """A line for each device that reports wake events, in its own answers and in those of others."""
    lines = (
        f"{plain_text(wakes.device, 40)} woke in {answers}: {share_with_interval(share)}"
        for wakes in progress.self_wakes
        for answers, share in (("its own answers", wakes.own), ("other devices' answers", wakes.others))
        if share.total
    )
    return labelled_lines("self-wakes", lines)


def check_lines(progress: Progress) -> list[str]:
    """One line on the checks of the bench during the run, and one for each that was not always ok."""
    counts = progress.bench_checks
    if not counts:
        return []
    ok = sum(count.ok for count in counts)
    warned = sum(count.warned for count in counts)
    refused = sum(count.refused for count in counts)
    lines = [f"{ok + warned + refused}: {ok} ok, {counted(warned, 'warning')}, {counted(refused, 'refusal')}"]
    for count in counts:
        not_ok = count.warned + count.refused
        if not_ok:
            last = plain_text(count.last_wrong, 200)
            lines.append(f"{count.check}: {not_ok} of {count.ok + not_ok} not ok; last: {last}")
    return labelled_lines("bench checks", lines)


def results_lines(progress: Progress, wake: WakeProgress | None, figures: Sequence[str]) -> list[str]:
    """The lines with the totals, then `figures`, which are the lines on wake results."""
    has_queries = any(trial.trial.listening is None for trial in progress.trials) or not progress.trials
    lines = totals_lines(progress.totals) if has_queries else [finished_line(progress.totals)]
    lines += wer_lines(*words_of_session(progress.totals, wake), normalisation_of(progress))
    lines += labelled_lines("requests", request_pauses(progress.totals, wake))
    return [*lines, "", *figures] if figures else lines


def request_pauses(totals: Totals, wake: WakeProgress | None) -> list[str]:
    """Lines for each device whose requests followed their wake phrase after different pauses."""
    return [
        line
        for device, gaps in requests_of_session(totals.requests, wake)
        if len(gaps) > 1
        for line in request_lines(device, gaps)
    ]


def next_steps(progress: Progress, folder: Path | None) -> list[str]:
    """The session's folder, and the commands to type next."""
    if folder is None:
        return []
    path = _as_typed(folder)
    name, lines = shell_word(path), ["", f"session folder: {path}"]
    if progress.can_resume:
        lines.append(f"resume:         harness run resume {name}")
    lines.append(f"results:        harness report show {name}")
    if progress.totals.finished:
        lines.append(f"page:           harness report {name} --html report.html")
    if progress.totals.judged < progress.totals.to_judge:
        lines.append(f"judge:          harness rate {name}")
    return lines


def _as_typed(folder: Path) -> str:
    """The shortest path that can be typed from here."""
    try:
        return str(folder.relative_to(Path.cwd()))
    except ValueError:
        return str(folder)


# Trials


def trial_table(
    trials: Sequence[TrialProgress], width: int | None = None, wake: WakeFigures | None = None
) -> list[str]:
    """One row per trial, by the take that counts, at most `width` columns wide (None: as the terminal).

    wake: the results of wake trials; None: there are none.
    """
    text_width = _table_width(width) - sum(WIDTHS) - len(GAP) * (len(WIDTHS) + 1)
    widths = WIDTHS
    if text_width >= MIN_TEXT_COLUMNS:
        heard_width = text_width * 2 // 5  # what it answers is longer than what it heard
        widths = (*WIDTHS, heard_width, text_width - heard_width)
    names = short_names([trial.trial.id for trial in trials], WIDTHS[1])
    plays = wake.plays_by_trial() if wake is not None else {}
    cells = (
        _trial_cells(trial, name, plays.get(trial.trial.id, ())) for trial, name in zip(trials, names, strict=True)
    )
    return list(_table(HEADS, cells, widths))


def _trial_cells(trial: TrialProgress, name: str, plays: Sequence[Play]) -> tuple[str, ...]:
    """The cells under HEADS."""
    response = trial.answer
    verdict = trial.last_verdict
    return (
        str(trial.trial.number),
        name,
        outcome_in_words(trial, plays),
        "" if trial.attempts is None else str(trial.attempts),
        measured(verdict.latency) if verdict and verdict.latency else "",
        verdict.heard or "" if verdict else "",
        response.transcript or "" if response else "",
    )


def outcome_in_words(trial: TrialProgress, plays: Sequence[Play] = ()) -> str:
    """A trial's result: with plays `hit`, `double`, `false reject`, `1 of 2 hit`; of a probe `heard`, `unheard`."""
    readings = [play.reading for play in plays if play.kind in (TrialKind.WAKE, TrialKind.PROBE)]
    if trial.outcome is Outcome.COUNTED and readings:
        hits = sum(reading.hit is not None for reading in readings)
        if 0 < hits < len(readings):
            return f"{hits} of {len(readings)} {'heard' if trial.trial.kind is TrialKind.PROBE else 'hit'}"
        if trial.trial.kind is TrialKind.PROBE:  # neither a hit nor a false reject
            return "heard" if hits else "unheard"
        if not hits:
            return "false reject"
        return "double" if any(reading.doubled for reading in readings) else "hit"
    if trial.outcome is not None:
        return OUTCOME_WORDS[trial.outcome]
    return "cut off" if trial.state is TrialState.RUNNING else "not played"


# Frames


def frame_table(progress: Progress, width: int | None = None) -> list[str]:
    """A line for each trial with an expected frame."""
    rows = [trial for trial in progress.trials if trial.trial.expects is not None]
    if not rows:
        return []
    frame_width = max(MIN_FRAME_COLUMNS, _table_width(width) - sum(FRAME_WIDTHS) - len(GAP) * len(FRAME_WIDTHS))
    names = short_names([trial.trial.id for trial in rows], FRAME_WIDTHS[1])
    cells = (
        (str(trial.trial.number), name, "" if trial.attempts is None else str(trial.attempts), frame_in_words(trial))
        for trial, name in zip(rows, names, strict=True)
    )
    return list(_table(FRAME_HEADS, cells, (*FRAME_WIDTHS, frame_width)))


def frame_in_words(trial: TrialProgress) -> str:
    """The verdict on a trial's intents and slots, with its parts; "" if it was not played."""
    verdict = trial.last_verdict
    if verdict is None or verdict.understood is None:
        return ""
    understood, comparison = verdict.understood, parts_line(parts_of(trial.trial, verdict))
    if not comparison and understood.intents is not None:
        comparison = "nothing, as expected" if understood.right else "nothing"
    return f"{verdict_in_words(understood)}{': ' if comparison else ''}{comparison}"


# Totals


def finished_line(figures: Totals) -> str:
    """How far the plan was played."""
    outcomes = ", ".join(f"{count} {OUTCOME_WORDS[outcome]}" for outcome, count in figures.by_outcome) or "none"
    return f"finished             {figures.finished_in_words}: {outcomes}"


def totals_lines(figures: Totals) -> list[str]:
    """Lines with the totals; a result over nothing is n/a.

    Understanding comes first for trials that are repeated until understood. The share of recognised queries follows
    only if there are other trials.
    """
    understood = figures.understood
    frames = bool(understood.right.total or understood.unknown)
    words = [
        f"recognised           {share_with_interval(figures.recognised)}",
        f"at the first attempt {share_with_interval(figures.first_attempt)}",
        f"attempts             {_attempts_needed_text(figures.attempts_needed, 'not recognised')}",
    ]
    lines = [finished_line(figures)]
    if frames:
        lines += understood_lines(understood)
    if figures.recognised.total or not frames:
        lines += words
    lines.append(f"answered             {share_with_interval(figures.answered)}")
    lines.append(f"latency              {delays(figures.latency)}")
    if figures.first_sounds.times.measured:
        lines.append(f"first sound          {figures.first_sounds}")
    lines.append(f"wake delay           {delays(figures.wake_delay)}")
    lines.append(f"judged               {figures.judged} of {counted(figures.to_judge, 'response')}")
    return lines


def understood_lines(figures: UnderstoodFigures) -> Iterator[str]:
    """Lines with shares of frames and intents, and their intervals."""
    first = figures.first_intents
    alone = NOTHING if first.value is None else f"{first.count} of {first.total}"
    yield f"understood           {share_with_interval(figures.right)}"
    yield f"intents alone        {share_with_interval(figures.intents)}"
    yield f"understood at first  {share_with_interval(figures.first_right)}; intents alone {alone}"
    yield f"attempts             {_attempts_needed_text(figures.attempts_needed, 'not understood')}"
    if figures.unknown:
        yield f"not known            {figures.unknown} without evidence of what was understood"


def _attempts_needed_text(attempts: Iterable[tuple[int | None, Share]], failed: str) -> str:
    """`12 at the 1st (80.0 %), 2 at the 2nd (13.3 %), 1 not recognised (6.67 %)`. failed: the words for the last."""
    shares = (
        f"{share.count} {failed if number is None else f'at the {ordinal(number)}'} ({percent(share.value)})"
        for number, share in attempts
        if share.value is not None
    )
    return ", ".join(shares) or NOTHING


def verdict_lines(limits: Sequence[DeclaredLimit], progress: Progress) -> list[str]:
    """Lines on the limits, on a run that was not completed, and on how the host disturbed it."""
    verdict, (reason, *disturbances) = session_verdict(limits, progress)
    lines = limit_lines(limits)
    if progress.finished is not EndReason.COMPLETED:
        lines.append(f"{verdict:<9} {reason}")
    return [*lines, *labelled_lines("BUSY HOST", disturbances, 10)]


def session_verdict(limits: Sequence[DeclaredLimit], progress: Progress) -> tuple[LimitVerdict, list[str]]:
    """The verdict on a whole session, and lines: first one with the reason, then some on how the host disturbed it."""
    verdict = worst_of(limits, progress.finished, failed_at_start=progress.failed_at_start)
    reason = limits_met_text(limits)
    if progress.finished is not EndReason.COMPLETED:
        if progress.failed_at_start:
            ended = "failed at the start"
        elif progress.finished is None:
            ended = "has not ended"
        else:
            ended = f"ended early: {progress.finished.value}"
        reason = f"the run {ended}; {progress.totals.finished_in_words} are finished"
    disturbed, lines = progress.totals.disturbed, [reason]
    if disturbed.count:
        attempts = f"{disturbed.count} of {counted(disturbed.total, 'attempt')}"
        lines.append(f"the host disturbed {attempts}, in {disturbed_trials(progress)}")
    if progress.late_sound.consequence:
        lines.append(progress.late_sound.consequence)
    return verdict, lines


def limit_lines(limits: Iterable[DeclaredLimit]) -> list[str]:
    """One line for each limit that the scenario declares, the verdict first; one line if there are no limits."""
    return [f"{limit.verdict:<9} {limit.sentence}" for limit in limits] or [LimitVerdict.NO_LIMITS.in_words]


# Words that were heard


def wer_lines(first: GroupTranscripts, final: GroupTranscripts, normalisation: str) -> list[str]:
    """Three lines with WER totals, and a fourth if an operator typed words; none without transcripts."""
    if not first.attempts:
        return []
    counts = (
        f"{words.counts.sentences} of {words.attempts} {which}" for words, which in ((first, "first"), (final, "final"))
    )
    return [
        f"WER, first attempt   {wer_in_words(first)}",
        f"WER, final attempt   {wer_in_words(final)}",
        f"transcripts          {' and '.join(counts)} attempts; words compared as {plain_text(normalisation, 80)}",
        *(f"typed                {text}" for text in _typed_lines(first, final)),
    ]


def _typed_lines(first: GroupTranscripts, final: GroupTranscripts) -> Iterator[str]:
    if first.typed or final.typed:
        yield f"by the operator, mostly for misheard queries: {first.typed} first and {final.typed} final attempts"


def wer_in_words(words: GroupTranscripts) -> str:
    """Word errors and words of the reference: `3 of 60 words = 5.00 % (95 % over queries 1.20–9.00 %)`."""
    counts = words.counts
    if counts.wer is None:
        return f"{NOTHING} (no reference words{f', {counts.insertions} inserted' if counts.insertions else ''})"
    interval = "" if words.interval is None else f" (95 % over {words.unit} {percent_interval(words.interval)})"
    return f"{counts.errors} of {counted(counts.words, 'word')} = {percent(counts.wer)}{interval}"


def wer_tables(
    trials: Sequence[TranscribedTrial], normalisation: str, groupings: Iterable[str] = (), width: int | None = None
) -> list[str]:
    """WER of all trials, then a table for each grouping (default: each grouping that splits the trials)."""
    if not trials:
        return ["no attempts that could have a transcript"]
    total, columns = words_of(trials), _table_width(width)
    lines = [
        f"WER of what was heard, words compared as {normalisation}",
        f"intervals: over queries if at least {MIN_QUERIES} are different, else over attempts",
        *(f"transcripts typed {text}" for text in _typed_lines(total.first, total.final)),
        "",
        *_transcript_table("", [("all", total)], columns),
    ]
    requested_groupings = tuple(groupings)
    for grouping in requested_groupings or Grouping:
        groups = by_group(trials, grouping)
        # Conditions of one axis equal that axis, where it has a table of its own.
        of_one_axis = grouping is Grouping.CONDITION and not any(
            heard.trial.needs_condition(Grouping) for heard in trials
        )
        if requested_groupings or (len(groups) > 1 and not of_one_axis):
            lines += ["", *_transcript_table(f"by {grouping}", groups, columns)]
    return lines


def _transcript_table(title: str, groups: Iterable[tuple[str, FirstAndFinalWords]], width: int) -> Iterator[str]:
    heads = ("WER", "95 %", "by", "sub", "del", "ins", "words", "transcripts")
    rows: list[tuple[str, ...]] = []
    for label, words in groups:
        rows.append((label or NO_LABEL, "first", *_word_cells(words.first)))
        rows.append(("", "final", *_word_cells(words.final)))
    return text_table((Column(title), Column("attempt", left=True), *map(Column, heads)), rows, width)


def _word_cells(words: GroupTranscripts) -> tuple[str, ...]:
    """The cells of one row of `_transcript_table`, from the WER on."""
    counts = words.counts
    return (
        percent(counts.wer),
        percent_interval(words.interval),
        "" if words.interval is None else UNITS[words.unit],
        *map(str, (counts.substitutions, counts.deletions, counts.insertions, counts.words)),
        f"{counts.sentences} of {words.attempts}",
    )


# Memory


BAR_CELLS = 30
_SOURCE_NAMES = {
    AnswerSource.DEVICE: "the device's own answer",
    AnswerSource.TRANSCRIPTION: "our transcription of the answer",
}


def memory_lines(folder: Path) -> list[str]:
    """A line for each device with memory trials. Reads the log again."""
    with LogReader(folder) as reader:
        figures = MemoryFigures.of(reader.entries())
    lines = [
        f"{plain_text(finding.device, 60)}: {_memory_length_text(finding.length)}; {_recommendation(finding)}"
        for finding in find_memories(figures.points())
    ]
    return labelled_lines("memory", lines or [f"n/a (0 of {figures.planned} pairs have ended)"])


def _memory_block(finding: MemoryFinding, axis: str | None = None) -> Iterator[str]:
    """Results of one device: a bar for each wait, the length, and the line for its profile."""
    label = f", {axis} {plain_text(finding.group, 60) or 'as it is'}" if axis else ""
    yield f"device {plain_text(finding.device, 80)}{label}: {finding.counted} of {len(finding.points)} pairs count"
    if finding.levels:
        yield "     wait  share of pairs that remember (bar) and its exact 95 % interval (·)"
        yield from (_memory_bar(level) for level in finding.levels)
    yield f"  memory length      {_memory_length_text(finding.length)}"
    if finding.to_wake is not None:
        yield f"  to the wake event  {_memory_length_text(finding.to_wake)}"
    yield f"  recommended        {_recommendation(finding)}"
    if finding.forgotten is not None and finding.forgotten.surer is not None:
        wait_s, at_most = finding.forgotten.surer
        yield f"  more cautious      {exact(wait_s)} s: at most {percent(at_most, 0)} of pairs show memory"
    yield from _memory_notes(finding)


def _memory_length_text(estimate: MemoryLength | None) -> str:
    """`between 6.5 and 8 s (95 % interval 5 to 10 s)`."""
    if estimate is None:
        return "n/a (no data)"
    low, high = estimate.bracket
    if high is None:
        range_text = f"over {exact(low)} s"
    else:
        range_text = f"under {exact(high)} s" if low == 0 else f"between {exact(low)} and {exact(high)} s"
    first, last = estimate.interval
    within = f"{exact(first)} s and up" if last is None else f"{exact(first)} to {exact(last)} s"
    return f"{range_text} (95 % interval {within})"


def _recommendation(finding: MemoryFinding) -> str:
    """A line for the device profile, with its evidence as a comment; else n/a and the reason."""
    forgotten_wait = finding.forgotten
    if forgotten_wait is None:
        return f"n/a ({finding.why})"
    wait, left = exact(forgotten_wait.wait_s), forgotten_wait.left
    later = f"observed: {left.count} of {left.total} pairs at {wait} s or more"
    evidence = f"at {wait} s, at most {percent(forgotten_wait.at_most, 0)} show memory (95 %); {later}"
    return f"context_wait_s: {wait}  # {evidence}"


def _memory_bar(level: WaitLevel) -> str:
    share = level.shown
    low, high = (round(end * BAR_CELLS) for end in level.interval)
    full = round(BAR_CELLS * (share.value or 0.0))
    cells = "█" * full + "".join("·" if low <= index < high else " " for index in range(full, BAR_CELLS))
    shown = f"{share.count} of {share.total} ({percent_interval(level.interval, 0)})"
    return f"  {fixed(level.wait_s, 1):>6} s  {cells}  {shown}"


def _memory_notes(finding: MemoryFinding) -> Iterator[str]:
    sources = {point.source for point in finding.points if point.shown is not None and point.source is not None}
    if sources:
        names = (name for source, name in _SOURCE_NAMES.items() if source in sources)
        yield f"  evidence           {' and '.join(names)}"
    if finding.levels:
        error_s = max((point.error_s for point in finding.points if point.shown is not None), default=0.0)
        yield f"  waits              resolved to 0.1 s; the end of an answer is known to ± {seconds(error_s)}"
    if finding.left_out:
        why = ", ".join(f"{plain_text(code, 40)} {count}" for code, count in finding.left_out)
        yield f"  do not count       {why}"
    for planned_s, mean_s in finding.exceeded_waits.items():
        yield f"  not reached        planned {exact(planned_s)} s, waited {fixed(mean_s, 1)} s on average"


def memory_blocks(findings: Iterable[MemoryFinding], axis: str | None = None) -> list[str]:
    """The results of all devices, separated by empty lines."""
    return list(join_blocks(*(_memory_block(finding, axis) for finding in findings)))
