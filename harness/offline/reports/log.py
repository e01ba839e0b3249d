"""The log of an offline evaluation, written while its outcomes are read. Memory does not grow with the lists.

The manual's keys come first, ours begin with x-; docs/reference/wake-log.md describes every line.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from typing import Any, TextIO

from harness import __version__
from harness.base.foreign import plain_text
from harness.base.plain_json import to_plain
from harness.base.processor import values_by_name
from harness.base.text_table import shown
from harness.model.frozen import frozen
from harness.model.numbers import counted, exact, exposure
from harness.model.offline import FileOutcome, LabelledPhrase, ListKind, OfflineSpot, RejectReason
from harness.model.transcript import Normalisation, WordCounts
from harness.offline import wake_log
from harness.offline.figures.counts import NEEDED_TAIL_MS, Fact, FileVerdict, LogKey, OfflineCounts, Tally
from harness.offline.figures.figures import BOOTSTRAP_SEED, Figures, figures_of, limits_of
from harness.offline.figures.groups import FileBreakdown, talker_of
from harness.offline.figures.phrase_matching import silent_labels
from harness.offline.journal import JournalFile
from harness.offline.journal_lines import JournalHeader, JournalledOutcome, WorkerUse
from harness.offline.request import DeclaredLimits
from harness.statistics.intervals import Interval
from harness.statistics.text import TOO_FEW_VOICES, basis
from harness.statistics.verdict import DeclaredLimit, LimitVerdict, limits_met_text, worst

SUMMARY_FORMAT = 1
SDK_NAME = "voice-harness"
"""The line `sdk-name` has this name in place of that of the original tool's SDK."""
LOG_PRECISION_S = 0.01
"""Sums of audio that differ by less are equal, since the log rounds each to milliseconds."""
_MAX_PATH_BYTES = 4096
"""PATH_MAX of Linux."""
_MAX_COMMAND_CHARS = 20_000


def file_events(outcome: FileOutcome, verdict: FileVerdict, file: str) -> Iterator[wake_log.WakeLogEvent]:
    """The lines of the log for one file, in their order. file: the name of the file in the list."""
    for fact in verdict.facts:
        yield _file_event(fact, outcome, verdict, file)


def _file_event(fact: Fact, outcome: FileOutcome, verdict: FileVerdict, file: str) -> wake_log.WakeLogEvent:
    """The line of the log for one fact."""
    spot = fact.spot or OfflineSpot("", 0, 0)  # for the keys without a spot, whose lines have no times
    start_ms, end_ms = _ms(spot.start, outcome.engine_rate_hz), _ms(spot.end, outcome.engine_rate_hz)
    extras: wake_log.Extras = ()
    if spot.score is not None:
        extras += (("x-score", f"{spot.score:g}"),)
    if fact.label is not None:
        extras += (("x-label-ms", label_span(fact.label)),)
        if fact.label.phrase:
            extras += (("x-label", fact.label.phrase),)
    match fact.key.value:  # as text, which is the type of a line's key
        case "INVTA" | "INVFA" | "OOVFA" | "CMDTA" | "CMDSB" as key:
            return wake_log.Spot(key, file, start_ms, end_ms, spot.phrase, fact.reference, extras=extras)
        case "STTTA" | "STTSB":
            words, span_ms = fact.words or WordCounts(), (start_ms, end_ms)
            return wake_log.TranscriptLine.of_counts(file, span_ms, spot.phrase, fact.reference, words, extras)
        case "INVFR" | "CMDFR" | "STTFR" as key:
            if outcome.tail_ms is not None and not outcome.spots:
                extras += (("x-tail-ms", str(outcome.tail_ms)),)
            return wake_log.MissedFile(key, file, fact.reference, extras)
        case "INVTX":
            return wake_log.SpotCount(file, fact.spots)
        case "ERROR":
            return wake_log.ErrorLine(f"{wake_log.quoted(file)}: {fact.text}")
        case "REJECT":
            reason = verdict.rejected.value if verdict.rejected else ""
            detail = outcome.detail
            if outcome.rejected is None and verdict.rejected is RejectReason.REFERENCE:
                detail = "it has no words"  # readable, but found to be empty only when compared
            return wake_log.RejectedFile(file, reason, (("x-detail", detail),) if detail else ())


def label_span(label: LabelledPhrase) -> str:
    """Start and end of a label in whole milliseconds: `1200-1850`."""
    return f"{label.start_s * 1000:.0f}-{label.end_s * 1000:.0f}"


def _ms(samples: int, rate_hz: int) -> float:
    return round(samples * 1000 / rate_hz, 3) if rate_hz else 0.0


@frozen
class EvaluationRun:
    """What a log states about a run as a whole.

    - outcomes: number of planned files (`header.planned`) that have an outcome.
    - ended_s: end of the run, in seconds of Unix time.
    - duration_s: duration of all sittings together.
    - untimed_s: seconds of audio that a killed run played after it last stored its duration.
    - lost_workers: for each worker that was lost, how that happened.
    - breakdowns: results by groups of files.
    - used: resources that all workers used together.
    - limits: the limits that the user declared.
    """

    header: JournalHeader
    outcomes: int
    ended_s: float
    duration_s: float
    untimed_s: float = 0.0
    lost_workers: tuple[str, ...] = ()
    breakdowns: tuple[FileBreakdown, ...] = ()
    used: WorkerUse = field(default_factory=WorkerUse)
    limits: DeclaredLimits = field(default_factory=DeclaredLimits)

    @property
    def partial(self) -> bool:
        return self.outcomes < self.header.planned


def run_of(journal: JournalFile) -> EvaluationRun:
    """What a journal states about its run, without breakdowns and limits."""
    return EvaluationRun(
        journal.header,
        len(journal),
        journal.ended_s,
        journal.duration_s,
        untimed_s=journal.untimed_s,
        lost_workers=journal.lost_workers,
        used=journal.used,
    )


def write_log(stream: TextIO, run: EvaluationRun, outcomes: Iterable[JournalledOutcome]) -> Figures:
    """Writes the log, and returns its results. outcomes: in list order.

    Raises OSError if the stream cannot be written.
    """
    counting = run.header.counting
    # The first line says that file names in the log are escaped.
    for name, detail in ((wake_log.NAMES, wake_log.ESCAPED), *_setting_info(run)):
        stream.write(wake_log.info_line(name, detail) + "\n")
    tally = Tally(counting, len(run.header.evaluation.conditions), talker_of(run.header.talkers))
    for entry in outcomes:
        verdict = tally.add(entry.outcome, entry.listed)
        if entry.outcome.rejected is None and entry.outcome.detail:  # the file was played, but its length was assumed
            length_detail = f"{wake_log.quoted(entry.listed)} {entry.outcome.detail}"
            stream.write(wake_log.info_line("x-length", length_detail) + "\n")
        for event in file_events(entry.outcome, verdict, entry.listed):
            stream.write(wake_log.event_line(event) + "\n")
        for label in silent_labels(entry.outcome, counting):
            silent_span = f"{wake_log.quoted(entry.listed)} {label_span(label)}"
            stream.write(wake_log.info_line("x-no-sound", silent_span) + "\n")
    run_figures = figures_of(tally, counting)
    for name, detail in (*sound_info(run_figures.counts), *_ending_info(run, run_figures), *interval_info(run_figures)):
        stream.write(wake_log.info_line(name, detail) + "\n")
    for warning in recording_warnings(run_figures):
        stream.write(wake_log.info_line("x-warning", warning) + "\n")
    for key in wake_log.TOTALS:
        if key in run_figures.totals:
            stream.write(wake_log.total_line(key, run_figures.totals[key]) + "\n")
    return run_figures


def real_time_factor(run: EvaluationRun, counts: OfflineCounts) -> float | None:
    """Duration of the audio that the engine heard, divided by wall time. None if no time was recorded, or if most
    scores were stored ones: the time then went into reading them."""
    cached_s = run.used.cached_s
    played_s = (counts.inv_ms + counts.oov_ms) / 1000 - run.untimed_s - cached_s
    if run.duration_s <= 0:
        return None
    is_all_timed = run.untimed_s == 0 and cached_s == 0
    if not is_all_timed and played_s <= max(cached_s, LOG_PRECISION_S):
        return None
    return played_s / run.duration_s


def stored_lines(run: EvaluationRun) -> Iterator[str]:
    """A line that says how many files' results rest on stored scores; nothing if none do."""
    files = run.used.cached_files
    if files:
        folder = shown(run.header.evaluation.cache, 200)
        yield (
            f"scores of {counted(files, 'file')} came from {folder}, not from the engine: its speed does not include "
            "them. They were scored earlier, or are copies of other listed files. To replace scores of an earlier run, "
            "delete that folder or choose another one with --cache"
        )


def _setting_info(run: EvaluationRun) -> Iterator[tuple[str, str]]:
    """The INFO lines before the events: the run, the engine, the rules of counting, the lists."""
    header, facts, evaluation = run.header, run.header.facts, run.header.evaluation
    yield "start-time", wake_log.utc_text(header.started_s)
    yield "sdk-name", SDK_NAME
    yield "sdk-version", dict(header.versions).get(SDK_NAME, __version__)
    yield "command-line", shlex.join(header.command_line)
    if facts.operating_point is not None:
        yield "operating-point", str(facts.operating_point)
    if run.partial:
        yield "x-partial", f"{run.outcomes} of {header.planned} files"
    if header.shard is not None:
        yield "x-shard", str(header.shard)
    yield "x-task", evaluation.task.name
    yield "x-engine", evaluation.task.engine
    yield "x-engine-version", facts.version
    yield "x-engine-fingerprint", facts.fingerprint
    yield "x-engine-kind", facts.kind.value
    yield "x-engine-rate-hz", str(facts.rate_hz)
    for phrase in facts.phrases:
        yield "x-phrase", wake_log.quoted(phrase)
    if facts.licence:
        yield "x-licence", facts.licence
    for name, value in facts.settings or evaluation.task.settings:
        yield "x-setting", f"{name} {value}"
    if facts.rule is not None:
        yield "x-threshold", f"{facts.rule.threshold:.9g}"
    yield from counting_info(header)
    for list_facts in header.lists:
        yield "x-list", f"{list_facts.kind.value} {wake_log.quoted(list_facts.name)} {list_facts.sha256}"
    for condition in evaluation.conditions:
        yield "x-condition", wake_log.quoted(condition.label())
    for base in header.bases:
        yield "x-base", wake_log.quoted(base)
    for name, version in header.versions:
        if name != SDK_NAME:
            yield "x-version", f"{name} {version}"
    yield from (*host_info(run.used), *header.more)


def counting_info(header: JournalHeader) -> Iterator[tuple[str, str]]:
    """The INFO lines on how files were played and counted."""
    facts, counting, evaluation = header.facts, header.counting, header.evaluation
    if facts.rule is not None:
        yield "x-refractory-ms", f"{facts.rule.refractory_samples * 1000 / facts.rate_hz:g}"
    yield "x-lead-in-ms", f"{counting.lead_in_ms:g}"
    yield "x-lead-in-ref", counting.lead_in_ref.value
    if any(list_facts.kind is ListKind.LABELLED for list_facts in header.lists):
        yield "x-label-tolerance-s", f"{counting.tolerance_s:g}"
    yield "x-count-in-vocabulary", _yes_or_no(counting.count_in_vocabulary)
    yield "x-false-accept-rate", wake_log.FORMULA_WITH_U if counting.count_in_vocabulary else wake_log.FORMULA
    yield "x-normalisation", (Normalisation.PLAIN if counting.normalise else Normalisation.VERBATIM).value
    yield "x-resample", _yes_or_no(evaluation.resample)
    if evaluation.tail_s:
        yield "x-tail-s", f"{evaluation.tail_s:g}"
    yield "x-continuous", _yes_or_no(evaluation.continuous)
    yield "x-vad", _yes_or_no(evaluation.vad)


def host_info(used: WorkerUse) -> Iterator[tuple[str, str]]:
    """The lines `x-processor`, `x-instruction-set` and `x-threads`, as far as their values are known."""
    for name, value in values_by_name(used.host).items():
        yield f"x-{name.replace(' ', '-')}", value


def sound_info(counts: OfflineCounts) -> Iterator[tuple[str, str]]:
    """The lines of the original tool's manual with the number of files and their hours."""
    for kind, files, ms in (
        ("inv", counts.inv_files, counts.inv_ms),
        ("oov", counts.oov_files, counts.oov_ms),
        ("inv/oov", None, counts.inv_oov_ms),
    ):
        if files is not None:
            yield f"{kind}-files", str(files)
        yield f"{kind}-seconds", f"{ms / 1000:.0f}"
        yield f"{kind}-hours", wake_log.hours_text(ms / 1000)
    yield "rejected-files", str(counts.rejected_files)
    if counts.phrases:
        yield "x-phrases", str(counts.phrases)
    if counts.silent_phrases:
        yield "x-no-sound-phrases", str(counts.silent_phrases)


def _ending_info(run: EvaluationRun, figures: Figures) -> Iterator[tuple[str, str]]:
    """The INFO lines with times, resources and exposure."""
    counts = figures.counts
    yield "completion-time", wake_log.utc_text(run.ended_s)
    yield "duration", f"{run.duration_s:.3f}"
    speed = real_time_factor(run, counts)
    if speed is not None:
        yield "real-time-factor", f"{speed:.1f}"
    yield "x-cpu-seconds", f"{counts.cpu_s + run.used.programs_cpu_s:.3f}"
    if run.used.memory_mb:
        yield "x-peak-memory-mb", f"{run.used.memory_mb:.1f}"
    for why in run.lost_workers:
        yield "x-lost-worker", wake_log.quoted(why)
    yield "x-exposure-hours", f"{counts.exposure_hours(figures.counting):.6f}"
    for reason, count in sorted(counts.rejected.items()):
        yield "x-rejected", f"{count} {reason.value}"


def interval_info(figures: Figures) -> Iterator[tuple[str, str]]:
    """95 % intervals of the totals, and whether false accepts come in clusters."""
    yield from interval_lines("x-farate-interval", figures.false_accepts, 1, "/ hr, Garwood")
    clustering = figures.clustering
    if clustering is not None:
        method = f"over {clustering.stretches} files"
        yield "x-farate-dispersion", f"{clustering.index:.3f}, p {clustering.p:.4f}, {method}"
        if figures.clustered:
            by_file = f"/ hr, bootstrap by file, seed {BOOTSTRAP_SEED}"
            yield from interval_lines("x-farate-interval-by-file", clustering.interval, 1, by_file)
            yield "x-warning", "false accepts come in clusters: Garwood's interval is too narrow"
    rejects = [("x-frratio-interval", figures.false_rejects, figures.false_rejects_wilson)]
    if figures.counts.has_references:
        rejects.append(("x-fr+sbratio-interval", figures.with_substitutions, figures.with_substitutions_wilson))
    trials = figures.counts.rejects_and_substitutions + figures.counts.true_accepts
    for name, interval, wilson_interval in rejects:
        if figures.talkers and interval is None and trials > 0:
            yield name, TOO_FEW_VOICES
        yield from interval_lines(name, interval, 100, f"%, {_reject_method(figures)}")
        yield from interval_lines(f"{name}-wilson", wilson_interval, 100, "%, Wilson")
    yield from interval_lines("x-wer-interval", figures.word_errors, 100, "%, by file")


def _reject_method(figures: Figures) -> str:
    if figures.talkers:
        return basis(figures.talkers, figures.unknown_talkers)
    return "by file" if figures.by_file else "Clopper-Pearson"


def interval_lines(name: str, interval: Interval | None, scale: float, unit: str) -> Iterator[tuple[str, str]]:
    """A line of the log with a 95 % interval; nothing for None. scale: factor from the interval to `unit`."""
    if interval is not None:
        yield name, f"{interval[0] * scale:.4f} to {interval[1] * scale:.4f} {unit}, 95 %"


def _yes_or_no(value: bool) -> str:
    return "yes" if value else "no"


def writing_line(log: str) -> str:
    """The console's line before the run, as the original tool prints it."""
    return f'Writing log to "{plain_text(log, _MAX_PATH_BYTES)}"'


def sound_lines(log: wake_log.WakeLog, *, inv: bool = True, oov: bool = True) -> Iterator[str]:
    """The lines INV:, OOV: and Total: with numbers of files and hours. inv, oov: whether there was a list of that
    kind."""
    total_files, total_s = 0, 0.0
    for name, kind, is_listed in (("INV", "inv", inv), ("OOV", "oov", oov)):
        files, seconds = int(log.about(f"{kind}-files") or 0), log.seconds(kind)
        total_files += files
        total_s += seconds
        if is_listed:
            yield _sound_line(name, files, seconds)
    yield _sound_line("Total", total_files, total_s)


def _sound_line(name: str, files: int, seconds: float) -> str:
    return f"{name}: {files} files, {seconds / 3600:.3f} hr, {wake_log.hours_text(seconds)}"


def point_lines(point: int | None, points: Sequence[int]) -> Iterator[str]:
    """Lines with the operating point in use and those available; nothing for an engine without operating points."""
    if point is not None:
        yield f"Using operating point {point}."
    if points:
        yield f"Available operating points: {', '.join(map(str, points))}."


def fault_lines(
    counts: OfflineCounts, log_text: str, noun: str = "file", *, resampling: bool, log: str = ""
) -> Iterator[str]:
    """Warnings about rejected files and errors.

    - log_text: says where the details are ("the log says").
    - noun: the word for a file in these lines.
    - log: path of the log if readers can open it; the first fault of each kind is then quoted. "" if they cannot.
    """
    if counts.rejected_files:
        hints = {RejectReason.SHORT: " (-s min-in-vocab-duration=0 accepts them)"}
        if not resampling:
            hints[RejectReason.RATE] = " (--resample accepts them)"
        rejections = sorted(counts.rejected.items())
        reasons = ", ".join(f"{count} {reason.value}{hints.get(reason, '')}" for reason, count in rejections)
        line = f"{counted(counts.rejected_files, noun)} rejected: {reasons}"
        if log and counts.first_rejected:
            line += f". The REJECT lines of {log} list each; the first is {_fault_text(*counts.first_rejected)}"
        elif counts.rejected_names:
            unnamed = counts.rejected_files - len(counts.rejected_names)
            line += ": " + ", ".join(plain_text(name, 100) for name in counts.rejected_names)
            if unnamed:
                line += f" and {unnamed} more"
        yield line
    if errors := counts.count(LogKey.ERROR):
        line = f"{counted(errors, 'error')}: {log_text} what went wrong"
        if log and counts.first_error:
            line += f" ({log}). The first is {_fault_text(*counts.first_error)}"
        yield line


def corrected_command(header: JournalHeader, counts: OfflineCounts) -> str:
    """The command line of the evaluation with options added that accept its rejected files; "" if no option does."""
    evaluation, options = header.evaluation, list[str]()
    if counts.rejected[RejectReason.SHORT]:
        # A clip so short also lacks the sound that is needed after the phrase.
        options += ["-s", "min-in-vocab-duration=0"]
        if not evaluation.tail_s:
            options += ["--tail", "1"]
    if counts.rejected[RejectReason.RATE] and not evaluation.resample:
        options.append("--resample")
    if not options:
        return ""
    command = [word for word in header.command_line if word not in ("--resume", "--force")]
    return plain_text(shlex.join([*command, *options, "--force"]), _MAX_COMMAND_CHARS)


def _fault_text(name: str, problem: str) -> str:
    return f"{shown(name, 200)}: {plain_text(problem, 1000)}"


def recording_warnings(figures: Figures) -> Iterator[str]:
    """Warnings about results that the recordings may explain, rather than the engine.

    They concern files whose length was assumed, files that occur twice, phrases without sound, and recordings that
    begin or end with the phrase.
    """
    if files := figures.counts.wrong_lengths:
        headers = "has a header that declares" if files == 1 else "have headers that declare"
        yield (
            f"{counted(files, 'file')} {headers} no length, or a wrong one. The x-length lines of the log "
            "report what was read"
        )
    if silent := figures.counts.silent_phrases:
        reason = "does not count: its recording has" if silent == 1 else "do not count: their recordings have"
        yield f"{counted(silent, 'labelled phrase')} {reason} no sound there. The log lists each (INFO x-no-sound)"
    if copies := figures.copies:
        repeats = "is a copy of another and counts" if copies == 1 else "are copies of others and count"
        example = ""
        if figures.counts.first_copy is not None:
            copy, original = figures.counts.first_copy
            example = f", such as {shown(copy, 100)} of {shown(original, 100)}"
        yield (
            f"{counted(copies, 'recording')} {repeats} again{example}. "
            "Copies have the same sha256 in the journal (.jsonl)"
        )
    false_accepts, rejects = figures.counts.count(LogKey.INVFA), figures.counts.count(LogKey.INVFR)
    if false_accepts and 2 * false_accepts >= rejects > 0 and figures.counting.lead_in_ms:
        yield (
            f"{counted(false_accepts, 'detection')} in recordings with the phrase came in the lead-in, or twice. If "
            "these recordings begin with the phrase, set -s min-in-vocab-duration=0 "
            f"(it is {exact(figures.counting.lead_in_ms)} ms), and repeat the run with --force"
        )
    if short := figures.counts.without_tail:
        recordings = "is in a recording that ends" if short == 1 else "are in recordings that end"
        yield (
            f"{short} of {counted(figures.counts.false_rejects, 'false reject')} {recordings} less than "
            f"{exact(NEEDED_TAIL_MS / 1000)} s after the last speech. If that is the phrase, add silence with "
            "--tail 1, since most engines need sound after it, and repeat the run with --force"
        )


def limit_failures(limits: DeclaredLimits, figures: Figures) -> Iterator[str]:
    """A sentence for each limit that sets the exit status."""
    for limit in limits_of(limits, figures):
        if limit.fails_run:
            on_estimate = limit.compares_bound and limit.found is not None and limit.found <= limit.wanted
            yield f"{limit.name}: {limit.sentence}{_ways_to_pass(limit, figures) if on_estimate else ''}"


def verdict_of(limits: Sequence[DeclaredLimit], run: EvaluationRun, counts: OfflineCounts) -> tuple[LimitVerdict, str]:
    """The verdict on an evaluation, and the reason in words. An incomplete evaluation cannot pass."""
    verdict, why = worst(limit.verdict for limit in limits), limits_met_text(limits)
    if run.partial:
        verdict = worst((verdict, LimitVerdict.UNDECIDED))
        why = f"interrupted after {run.outcomes} of {counted(run.header.planned, 'file')}"
    elif counts.has_faults:
        verdict = worst((verdict, LimitVerdict.UNDECIDED))
        usable = counts.inv_files or counts.oov_files
        why += ", and files that need repair are left out" if usable else ", and no file was usable"
    return verdict, why


def limit_lines(declared: DeclaredLimits, run: EvaluationRun, figures: Figures) -> Iterator[str]:
    """The verdict and each limit, for people; nothing without limits."""
    limits = limits_of(declared, figures)
    if limits:
        verdict, why = verdict_of(limits, run, figures.counts)
        yield f"Limits: {verdict} ({why})"
        yield from (f"  {limit.sentence}" for limit in limits)


def _ways_to_pass(limit: DeclaredLimit, figures: Figures) -> str:
    """What would let a limit hold that only the estimate meets."""
    needed = ""
    if limit.name == "--max-fa-per-hour" and limit.wanted and not figures.clustered:
        from harness.statistics.planning import hours_for_limit  # here, since it imports SciPy

        count = figures.counts.false_accepts(figures.counting)
        hours = exposure(hours_for_limit(limit.wanted, count))
        needed = f"with {counted(count, 'false accept')}, it needs {hours} of audio; "
    return f" ({needed}--limits-on estimate would let it pass)"


def head_of(run: EvaluationRun, figures: Figures) -> wake_log.WakeLog:
    """The log without its events: enough for the console's lines."""
    info = [pair for pair in _setting_info(run) if pair[0] in ("x-list", "x-partial", "x-shard")]
    info += sound_info(figures.counts)
    speed = real_time_factor(run, figures.counts)
    if speed is not None:
        info.append(("real-time-factor", f"{speed:.1f}"))
    return wake_log.WakeLog(tuple(info), totals=tuple(figures.totals.items()))


def summary_line(run: EvaluationRun, figures: Figures) -> str:
    """The console's last line."""
    return wake_log.summary(head_of(run, figures))


def summary_json(run: EvaluationRun, figures: Figures) -> dict[str, Any]:
    """The summary for programs: settings, totals, intervals, and samples by rate in Hz. Rates are per hour, shares and
    WER 0–1. A total without data is null."""
    header, counts = run.header, figures.counts
    clustering = figures.clustering
    return {
        "evaluation_summary": SUMMARY_FORMAT,
        "partial": run.partial,
        "planned_files": header.planned,
        "start_time": wake_log.utc_text(header.started_s),
        "completion_time": wake_log.utc_text(run.ended_s),
        "duration_s": round(run.duration_s, 3),
        "cpu_s": round(counts.cpu_s + run.used.programs_cpu_s, 3),
        "peak_memory_mb": run.used.memory_mb or None,
        "real_time_factor": real_time_factor(run, counts),
        "lost_workers": list(run.lost_workers),
        "command_line": list(header.command_line),
        "versions": dict(header.versions),
        "host": values_by_name(run.used.host),
        "task": to_plain(header.evaluation.task, sparse=True),
        "evaluation": to_plain(header.evaluation, sparse=True),
        "counting": to_plain(header.counting),
        "engine": to_plain(header.facts, sparse=True),
        "lists": [to_plain(list_facts, sparse=True) for list_facts in header.lists],
        "shard": None if header.shard is None else str(header.shard),
        "totals": {key: figures.totals.get(key) for key in wake_log.TOTALS},
        "lines": dict(sorted(counts.lines.items())),
        "rejected": dict(sorted(counts.rejected.items())),
        "files": {"inv": counts.inv_files, "oov": counts.oov_files, "rejected": counts.rejected_files},
        "phrases": counts.phrases,
        "no_sound_phrases": counts.silent_phrases,
        "samples": {
            name: {str(rate): count for rate, count in sorted(samples.items())}
            for name, samples in (
                ("inv", counts.inv_samples),
                ("oov", counts.oov_samples),
                ("true_accept_spots", counts.accepted_samples),
            )
        },
        "exposure_hours": counts.exposure_hours(figures.counting),
        "intervals_95": {
            "FARATE": figures.false_accepts,
            "FARATE_by_file": None if clustering is None else clustering.interval,
            "FRRATIO": figures.false_rejects,
            "FRRATIO_wilson": figures.false_rejects_wilson,
            "FR+SBRATIO": figures.with_substitutions,
            "FR+SBRATIO_wilson": figures.with_substitutions_wilson,
            "WER": figures.word_errors,
        },
        "warnings": list(recording_warnings(figures)),
        "talkers": figures.talkers or None,
        "limits": to_plain(run.limits, sparse=True),
        "groups": [to_plain(breakdown) for breakdown in run.breakdowns],
        "clustering": _clustering_json(figures),
    }


def _clustering_json(figures: Figures) -> dict[str, Any] | None:
    if figures.clustering is None:
        return None
    return {
        "index_of_dispersion": figures.clustering.index,
        "p": figures.clustering.p,
        "files": figures.clustering.stretches,
        "clustered": figures.clustered,
    }
