"""Writes a live session as wake-evaluation logs, one for each device.

Wake trials become in-vocabulary files, commands files with a reference, and ambient trials out-of-vocabulary files. The
files are the clips of the stimuli. docs/reference/wake-log.md describes the lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness import __version__
from harness.model.scenario import TrialKind
from harness.model.transcript import WordCounts
from harness.offline.reports.log import interval_lines
from harness.offline.wake_log import (
    ACCEPTED,
    FORMULA,
    FORMULA_WITH_U,
    MISSED,
    SUBSTITUTED,
    TOTALS,
    Extras,
    MissedFile,
    Spot,
    SpotCount,
    TranscriptLine,
    WakeLog,
    WakeLogEvent,
    computed_totals,
    hours_text,
    quoted,
    utc_text,
)
from harness.report.session import WholeSession
from harness.statistics.intervals import Share, garwood
from harness.statistics.text import TOO_FEW_VOICES, basis
from harness.transcripts.recognition import recognised, words_of
from harness.wake.wake_plays import CommandResult, HeardWake, Play
from harness.wake.wake_progress import Speakers, UnmatchedWake, ratio_with_intervals

_SPOKEN = (TrialKind.WAKE, TrialKind.COMMAND)


def wake_log(
    session: WholeSession, device: str, *, reviewed: bool = False, command_line: str = "", words: bool = False
) -> WakeLog:
    """The log of one device.

    - reviewed: whether reviews, not only the rules, decide what is a false accept.
    - words: whether a command becomes an STT line with word counts, if the device reports its words. If not, it becomes
      a CMD line.
    """
    return _LogBuilder(session, device, reviewed, words).log(command_line)


class _LogBuilder:
    """Makes the log of one device. The parameters are as in `wake_log`."""

    def __init__(self, session: WholeSession, device: str, reviewed: bool, words: bool) -> None:
        self._session, self._device, self._reviewed, self._writes_words = session, device, reviewed, words
        # A probe only shows that the device listens, so it does not become a file.
        plays = session.wake.plays(device)
        self._plays = tuple(play for play in plays if play.kind is not TrialKind.PROBE)
        self._events = {event.seq: event for event in session.wake.unmatched(device)}
        self._settings = session.wake.settings

    def log(self, command_line: str) -> WakeLog:
        lines = [(play, tuple(self._event_lines(play))) for play in self._plays]
        events = tuple(line for _, play_lines in lines for line in play_lines)
        without_intervals = WakeLog(tuple(self._info_lines(command_line)), events)
        sums = computed_totals(without_intervals)
        keys = [(play.trial.speaker, frozenset[str](line.key for line in play_lines)) for play, play_lines in lines]
        intervals = tuple(self._interval_lines(without_intervals, sums, keys))
        totals = tuple((key, sums[key]) for key in TOTALS if key in sums)
        return WakeLog((*without_intervals.info, *intervals, *self._set_aside_lines()), events, totals)

    def _file_name(self, play: Play) -> str:
        """The name of a play in the log: that of the stimulus' clip; for ambient trials, of the trial and its sound."""
        if play.kind is TrialKind.AMBIENT:
            source = play.trial.listening.source if play.trial.listening else ""
            return f"{play.trial.id}/{source}" if source else play.trial.id
        clip = self._session.clips.get(play.row.stimulus_sha256)
        return clip.name if clip else play.trial.id

    def _event_lines(self, play: Play) -> Iterator[WakeLogEvent]:
        """The lines of a play: detections in the order of their ends, then a miss, the command, and their number."""
        file, reading = self._file_name(play), play.reading
        trial: Extras = (("x-trial", play.trial.id),)
        if play.trial.recording:
            trial = (*trial, ("x-recording", play.trial.recording))
        spots: list[tuple[float, WakeLogEvent]] = []
        for event in reading.unmatched:
            if self._is_false_accept(self._events[event.seq]):
                at_ms = self._offset_ms(play, event)
                in_vocabulary = play.kind is not TrialKind.AMBIENT
                phrase, extras = event.phrase, _event_extras(event, trial)
                spot = Spot("INVFA" if in_vocabulary else "OOVFA", file, at_ms, at_ms, phrase, extras=extras)
                spots.append((at_ms, spot))
        start_ms = play.row.query_start_s * 1000
        expected = play.trial.listening.phrase if play.trial.listening else ""
        if play.kind is TrialKind.WAKE and reading.hit is not None:
            at_ms = self._offset_ms(play, reading.hit)
            phrase, extras = reading.hit.phrase or expected, _event_extras(reading.hit, trial)
            spots.append((at_ms, Spot("INVTA", file, min(start_ms, at_ms), at_ms, phrase, extras=extras)))
        yield from (spot for _, spot in sorted(spots, key=lambda pair: pair[0]))
        if play.kind is TrialKind.WAKE and reading.hit is None:
            yield MissedFile("INVFR", file, extras=trial)
        yield from self._command_lines(play, file, trial)
        if play.kind is TrialKind.WAKE and len(spots) > 1:
            yield SpotCount(file, len(spots), trial)

    def _command_lines(self, play: Play, file: str, trial: Extras) -> Iterator[WakeLogEvent]:
        """The line of a command, from its outcome or from its words."""
        reading, reference = play.reading, play.trial.reference
        if reading.command is None:
            return
        if reading.command is CommandResult.MISSING:
            if self._writes_words and play.has_transcripts:
                yield MissedFile("STTFR", file, " ".join(words_of(reference, play.trial.recognised)), trial)
            else:
                yield MissedFile("CMDFR", file, reference, trial)
            return
        heard_ms = round(max(0.0, (reading.heard_s or 0.0) * 1000), 3)
        span = min(play.row.query_start_s * 1000, heard_ms), heard_ms
        if reading.counts is not None and self._writes_words:
            yield _transcript_line(file, span, play, trial)
            return
        match = reading.command is CommandResult.MATCH
        extras = (*trial, *_count_extras(reading.counts))
        yield Spot("CMDTA" if match else "CMDSB", file, *span, reading.heard, reference, extras=extras)

    def _offset_ms(self, play: Play, event: HeardWake) -> float:
        """Time of an event from the start of a play."""
        return round((play.place(event) - play.start_s) * 1000, 3)

    def _is_false_accept(self, event: UnmatchedWake) -> bool:
        """Whether an event is a false accept. In-vocabulary lines are written whether they count or not."""
        return event.exposed and event.is_false_accept(use_reviews=self._reviewed)

    def _info_lines(self, command_line: str) -> Iterator[tuple[str, str]]:
        """Keys and values about the run. inv: files with a wake phrase; oov: ambient sound; inv/oov: the rest of the
        former."""
        session, started, settings = self._session, self._session.started, self._settings
        duration_s = session.last_s - session.first_s
        spoken = [play for play in self._plays if play.kind is not TrialKind.AMBIENT]
        ambient = [play for play in self._plays if play.kind is TrialKind.AMBIENT]
        spoken_s = sum(play.end_s - play.start_s for play in spoken)
        ambient_s = sum(play.reading.exposure_s for play in ambient)
        rest_s = sum(play.end_s - play.start_s - play.reading.spot_s for play in spoken)
        yield from (
            ("start-time", utc_text(session.first_s)),
            ("sdk-name", "voice-harness"),
            ("sdk-version", __version__),
            ("command-line", command_line),
        )
        for part, files, seconds in (
            ("inv", len(spoken), spoken_s),
            ("oov", len(ambient), ambient_s),
            ("inv/oov", None, rest_s),
        ):
            if files is not None:
                yield f"{part}-files", str(files)
            yield f"{part}-seconds", f"{seconds:.0f}"
            yield f"{part}-hours", hours_text(seconds)
        boards = [board for board in session.progress.boards if board.firmware]
        yield from (
            ("rejected-files", "0"),
            ("x-session", started.session_id),
            ("x-scenario", f"{started.scenario_id} {started.scenario_sha256}"),
            ("x-bench", f"{started.bench_id} {started.bench_sha256}"),
            ("x-device", self._device),
            *(("x-firmware", f"{quoted(board.source)} {quoted(board.firmware)}") for board in boards),
            *(("x-device-setting", " ".join(map(quoted, setting))) for setting in session.settings),
            ("x-seed", str(started.seed)),
            ("x-sound-path", started.sound_path),
            ("x-review", "after" if self._reviewed else "before"),
            ("x-count-in-vocabulary", "yes" if settings.count_in_vocabulary else "no"),
            ("x-false-accept-rate", FORMULA_WITH_U if settings.count_in_vocabulary else FORMULA),
        )
        if any(play.has_transcripts for play in self._plays):
            rule = next(play.trial.recognised for play in self._plays if play.has_transcripts)
            yield "x-normalisation", rule.name
            yield "x-words-allowed-wrong", f"{rule.wer:g}"
        yield from (
            ("x-window-seconds", f"{settings.window_before_s:g} before, {settings.window_after_s:g} after"),
            ("x-refractory-seconds", f"{settings.refractory_s:g}"),
            ("x-proof-within-seconds", f"{settings.proof_within_s:g}"),
            ("x-unproven-seconds", f"{sum(play.reading.unproven_s for play in ambient):.3f}"),
            ("x-suppressed-events", str(sum(play.reading.suppressed for play in self._plays))),
            *(("x-oov-file", f"{quoted(self._file_name(play))} {play.reading.exposure_s:.3f}") for play in ambient),
            *(("x-not-counted", f"{quoted(name)} {outcome.value}") for name, outcome in session.not_counted.items()),
            ("completion-time", utc_text(session.last_s)),
            ("duration", f"{duration_s:.3f}"),
        )
        if duration_s > 0:
            yield "real-time-factor", f"{(spoken_s + ambient_s) / duration_s:.1f}"

    def _interval_lines(
        self, log: WakeLog, sums: dict[str, float], lines: Sequence[tuple[str, frozenset[str]]]
    ) -> Iterator[tuple[str, str]]:
        """The lines with intervals. lines: for each play, its speaker and the keys of its lines."""
        if "FARATE" in sums:
            accepts = garwood(int(sums["FACOUNT"]), log.exposure_hours)
            yield from interval_lines("x-farate-interval", accepts, 1.0, "/ hr, Garwood")
        trials = (trial.trial for trial in self._session.progress.trials if trial.trial.kind in _SPOKEN)
        planned = {trial.speaker for trial in trials if any(target.device == self._device for target in trial.targets)}
        for name, count, rejected in (
            ("x-frratio-interval", "FRCOUNT", MISSED),
            ("x-fr+sbratio-interval", "FR+SBCOUNT", (*MISSED, *SUBSTITUTED)),
        ):
            if count not in sums:
                continue
            shares: dict[str, Share] = {}
            for speaker, keys in lines:
                if not keys.isdisjoint((*ACCEPTED, *MISSED, *SUBSTITUTED)):
                    share = Share(0 if keys.isdisjoint(rejected) else 1, 1)
                    shares[speaker] = shares.get(speaker, Share()) + share
            rejects = ratio_with_intervals(sum(shares.values(), Share()), Speakers.of(shares, planned))
            if rejects.interval is None and rejects.share.total:
                yield name, TOO_FEW_VOICES
            method = basis(rejects.voices, rejects.speakers.unknown, "Clopper-Pearson")
            yield from interval_lines(name, rejects.interval, 100.0, f"%, {method}")

    def _set_aside_lines(self) -> Iterator[tuple[str, str]]:
        """Lines with the events that are not false accepts, and what they were, so that no event is left out
        silently."""
        for event in self._events.values():
            if self._is_false_accept(event):
                continue
            kind = (event.verdict if self._reviewed else event.rule) or "outside_exposure"
            trial_name = quoted(event.trial_id or "between trials")
            yield "x-event", f"{trial_name} {utc_text(event.wall_s)} {quoted(event.phrase)} {kind} {event.why}".rstrip()


def _transcript_line(file: str, span: tuple[float, float], play: Play, trial: Extras) -> TranscriptLine:
    """The line with the words of a command, normalised, and the reference or alternative that fits them best."""
    judged = recognised(play.trial, play.reading.heard)
    heard, reference = " ".join(judged.heard), " ".join(judged.reference)
    return TranscriptLine.of_counts(file, span, heard, reference, judged.counts, trial)


def _count_extras(counts: WordCounts | None) -> Extras:
    if counts is None:
        return ()
    counts_by_name = (
        ("x-words", counts.words),
        ("x-substitutions", counts.substitutions),
        ("x-insertions", counts.insertions),
        ("x-deletions", counts.deletions),
    )
    return tuple((name, str(value)) for name, value in counts_by_name)


def _event_extras(event: HeardWake, more: Extras) -> Extras:
    score = [("x-score", f"{event.score:g}")] if event.score is not None else []
    weak_evidence = [("x-weak-evidence", event.inferred)] if event.inferred else []
    return (*score, *weak_evidence, *more)
