"""A session as JUnit: a suite for each device and kind of trial, one for limits and tests, and one for the run itself.

docs/how-to/ci.md defines what passes and what fails.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from harness.base.foreign import plain_text
from harness.base.whole_file import write_atomically
from harness.model.choices import Grouping
from harness.model.errors import HarnessError
from harness.model.numbers import NOTHING, counted, exact, fixed, moment
from harness.model.observation import weak_evidence_text
from harness.model.record import EndReason, Entry
from harness.model.scenario import Scenario, SequentialTest, Stopping, TrialKind
from harness.model.trial import Outcome, Trial
from harness.report.junit_xml import Case, CaseVerdict, JUnitReport, Properties, Reason, Suite, to_xml
from harness.report.session import WholeSession, limits_of
from harness.session.figures.progress import normalisation_of
from harness.session.figures.requests import requests_of_session
from harness.session.figures.trials import (
    AttemptProgress,
    FirstAndFinalWords,
    TrialProgress,
    group_of,
    heard_in,
    tested_attempts,
    words_of,
)
from harness.session.figures.understood_trials import frame_of, understood_of
from harness.session.log.reader import LogReader, later_rows, read_scenario
from harness.session.summary import disturbance_lines
from harness.session.wording import OUTCOME_WORDS, cause_in_words, connection_in_words
from harness.statistics.intervals import Interval, Share
from harness.statistics.text import TOO_FEW_VOICES, measured
from harness.statistics.verdict import DeclaredLimit, LimitVerdict
from harness.understanding.reported_frames import frame_line, parts_line, parts_of, verdict_in_words
from harness.wake.reports.figures_text import consistent_words, pause_words, phrase_in_words, review_in_words
from harness.wake.requests import GapRequests, shortest_pause
from harness.wake.wake_plays import CommandResult, HeardWake, Play
from harness.wake.wake_progress import DeviceWake, UnmatchedWake

MAX_EVENTS = 50
_VERDICTS = {
    **dict.fromkeys((Outcome.LATE, Outcome.MISHEARD, Outcome.NO_WAKE, Outcome.NO_RESPONSE), CaseVerdict.FAILURE),
    **dict.fromkeys((Outcome.INTERRUPTED, Outcome.ABORTED), CaseVerdict.ERROR),
    **dict.fromkeys((Outcome.INCONCLUSIVE, Outcome.SKIPPED), CaseVerdict.SKIPPED),
}
_OPEN = Reason(CaseVerdict.SKIPPED, "open", "the run continues and may still change the result")
_BY_FRAME = (Outcome.RESPONDED, Outcome.UNDERSTOOD, Outcome.MISHEARD)


def junit(folder: Path) -> bytes:
    """The report of a session, which may still run or have been killed. Raises LogError or InputError."""
    with LogReader(folder) as reader:
        return to_xml(report_of(reader.entries(), read_scenario(folder), later_rows(folder)))


def write(path: Path, report: bytes) -> None:
    """Writes a report atomically, so that a CI server never reads an incomplete one. Raises LogFull or LogError."""
    write_atomically(path, report)


def report_of(entries: Iterable[Entry], scenario: Scenario, later: Iterable[Entry] = ()) -> JUnitReport:
    """The report, from a session's rows and the scenario's limits.

    later: rows with effects that people reported after the session (`log.reader.later_rows`), which may have a limit.
    Raises InputError if the rows do not begin with a plan.
    """
    return _ReportBuilder(WholeSession.of(entries, later)).report(scenario)


def not_begun(name: str, why: HarnessError | str) -> bytes:
    """The report of a run that never began: an error, or skipped if the bench lacks something (an error with exit code
    0)."""
    if isinstance(why, HarnessError) and why.exit_code == 0:
        verdict, reason_type = CaseVerdict.SKIPPED, "unmet_need"
    else:
        verdict, reason_type = CaseVerdict.ERROR, "not_begun"
    lines = str(why).splitlines() or [""]
    reason = Reason(verdict, reason_type, lines[0], "\n".join(lines))
    case = Case("run", f"{name}.session", reason=reason)
    return to_xml(JUnitReport(name, (Suite("session", (case,)),), time.time(), host=socket.gethostname()))


class _ReportBuilder:
    """Makes the report of a session."""

    def __init__(self, session: WholeSession) -> None:
        self.session, self.progress, self.wake = session, session.progress, session.wake
        self.name = session.started.scenario_id
        self.duration_s = session.last_s - session.first_s

    def report(self, scenario: Scenario) -> JUnitReport:
        limits = limits_of(self.session, scenario)
        suites = [self._session_suite(), *self._limit_suites(limits, scenario.stopping), *self._trial_suites(limits)]
        shared = self._properties()
        suites = [Suite(suite.name, suite.cases, (*shared, *suite.properties)) for suite in suites]
        return JUnitReport(self.name, tuple(suites), self.session.first_s, self.duration_s, socket.gethostname())

    def _properties(self) -> Properties:
        """What all suites state: session, scenario and bench, devices and their settings."""
        started = self.session.started
        return (
            ("session", started.session_id),
            ("scenario", started.scenario_id),
            ("scenario_sha256", started.scenario_sha256),
            ("bench", started.bench_id),
            ("bench_sha256", started.bench_sha256),
            ("seed", str(started.seed)),
            ("sound_path", started.sound_path),
            *((f"firmware {board.source}", board.firmware) for board in self.progress.boards if board.firmware),
            *((f"serial {board.source}", board.serial) for board in self.progress.boards if board.serial),
            *(
                (f"connection {connection.device}", connection_in_words(connection))
                for connection in self.progress.connections
                if connection.failed
            ),
            *((f"setting {name} of {source}", value) for source, name, value in self.session.settings),
        )

    def _session_suite(self) -> Suite:
        """The suite of the run itself, whose only case is an error unless the run was completed."""
        progress, reason = self.progress, None
        faults = (f"fault: {plain_text(fault.source, 80)}: {plain_text(fault.what)}" for fault in self.session.faults)
        lines = (
            f"{progress.totals.finished_in_words} finished",
            *filter(None, [progress.late_sound.in_words, progress.late_sound.consequence]),
            *disturbance_lines(progress),
            *faults,
        )
        if progress.finished is not EndReason.COMPLETED:
            reason_type, message = "not_finished", "the run did not finish"
            if progress.finished is not None:
                reason_type = progress.finished.value
                message += f": {reason_type}"
            reason = Reason(CaseVerdict.ERROR, reason_type, message, "\n".join(lines))
        case = Case("run", f"{self.name}.session", self.duration_s, reason, lines)
        versions = ((f"version {name}", version) for name, version in self.session.started.versions)
        return Suite("session", (case,), (*versions, *self.session.started.host))

    def _limit_suites(self, limits: Sequence[DeclaredLimit], stopping: Stopping) -> Iterator[Suite]:
        """The suites of everything that sets the exit status: limits, and the sequential tests of each device, whether
        decided or not."""
        limit_cases = [limit_case(limit, limit.name, f"{self.name}.limits") for limit in limits if not limit.of_test]
        test_cases = [_sequential_case(limit, stopping, f"{self.name}.tests") for limit in limits if limit.of_test]
        suites = Suite("limits", tuple(limit_cases)), Suite("sequential tests", tuple(test_cases))
        yield from (suite for suite in suites if suite.cases)

    def _trial_suites(self, limits: Sequence[DeclaredLimit]) -> Iterator[Suite]:
        """A suite for each device and kind of trial."""
        wake = self.wake.snapshot()
        requests = dict(requests_of_session(self.progress.totals.requests, wake))
        heard = heard_in(self.progress.trials, self.wake)
        for (device, kind), cases in self._cases_by_suite(limits).items():
            heard_here = (trial for trial in heard if (trial.device, group_of(trial, Grouping.KIND)) == (device, kind))
            properties = _word_properties(words_of(heard_here), normalisation_of(self.progress))
            if kind == TrialKind.UNDERSTAND:
                properties = (*self._frame_properties(device), *properties)
            elif kind != TrialKind.QUERY:
                properties = (*_wake_properties(kind, wake.device(device)), *properties)
            if kind in (TrialKind.QUERY, TrialKind.UNDERSTAND, TrialKind.COMMAND):
                properties = (*properties, *_request_properties(requests.get(device, ())))
            yield Suite(f"{device}.{kind}", tuple(cases), (("device", device), ("kind", kind), *properties))

    def _cases_by_suite(self, limits: Sequence[DeclaredLimit]) -> dict[tuple[str, str], list[Case]]:
        """The cases of trials by device and kind. A listening trial is a case of each of its devices."""
        cases: dict[tuple[str, str], list[Case]] = {}
        devices = [device.device for device in self.wake.snapshot().devices]
        plays = {device: {play.trial.id: play for play in self.wake.plays(device)} for device in devices}
        events = {device: {event.seq: event for event in self.wake.unmatched(device)} for device in devices}
        for trial in self.progress.trials:
            listening = trial.trial.listening
            if listening is None:
                kind = _query_kind(trial)
                cases.setdefault((trial.trial.device, kind), []).append(self._query_case(trial, kind))
                continue
            for device in (target.device for target in listening.targets):
                kind, play = listening.kind.value, plays[device].get(trial.trial.id)
                device_limits = [limit for limit in limits if limit.name.endswith(f"[{device}]")]
                case = self._listening_case(trial, device, kind, play, events[device], device_limits)
                cases.setdefault((device, kind), []).append(case)
        return cases

    def _frame_properties(self, device: str) -> Properties:
        frames = understood_of([trial for trial in self.progress.trials if trial.trial.device == device])
        unknown = (("frames_not_known", str(frames.unknown)),) if frames.unknown else ()
        return (
            *_share_properties("frames_right", frames.right),
            *_share_properties("intents_right", frames.intents),
            *_share_properties("first_attempt_frames_right", frames.first_right),
            *_share_properties("first_attempt_intents_right", frames.first_intents),
            *unknown,
        )

    def _case(self, trial: TrialProgress, device: str, kind: str, reason: Reason | None, lines: Iterable[str]) -> Case:
        """A case of a trial at a device, with the duration of the take that counts, and the trial's conditions."""
        take = trial.counting.take if trial.counting else 0
        begun_s, ended_s = self.session.spans.get((trial.trial.id, take), (0.0, 0.0))
        conditions = [f"{axis}: {plain_text(label, 80)}" for axis, label in trial.trial.conditions]
        if trial.trial.recording:
            conditions.append(f"recording: {plain_text(trial.trial.recording, 80)}")
        class_name = f"{self.name}.{device}.{kind}"
        return Case(trial.trial.id, class_name, ended_s - begun_s, reason, (*conditions, *lines))

    def _query_case(self, trial: TrialProgress, kind: str) -> Case:
        take, lines = trial.counting, []
        if trial.trial.reference:
            lines.append(f"asked: {plain_text(trial.trial.reference)}")
        verdict = trial.last_verdict
        if verdict and verdict.heard is not None:
            lines.append(f"heard: {plain_text(verdict.heard)}")
        if verdict and verdict.latency:
            lines.append(f"latency: {measured(verdict.latency)}")
        if verdict and verdict.first_sound:
            lines.append(f"first sound: {measured(verdict.first_sound)}")
        response = trial.answer
        if response is not None and response.transcript is not None:
            lines.append(f"answered (by our transcription): {plain_text(response.transcript)}")
        lines += _frame_lines(trial)
        cause = ""
        if take:
            cause = take.cause or (verdict.cause if verdict else "")
        reason = _frame_reason(trial, lines) or _outcome_reason(trial.outcome, cause, lines)
        return self._case(trial, trial.trial.device, kind, reason, lines)

    def _listening_case(
        self,
        trial: TrialProgress,
        device: str,
        kind: str,
        play: Play | None,
        events: dict[int, UnmatchedWake],
        limits: list[DeclaredLimit],
    ) -> Case:
        """A case of a listening trial.

        - play: None if the trial does not count at this device.
        - events: the device's unmatched events by their number.
        - limits: those of the device.
        """
        if play is None:
            cause = trial.counting.cause if trial.counting else ""
            outcome = Outcome.INTERRUPTED if trial.outcome is Outcome.COUNTED else trial.outcome
            return self._case(trial, device, kind, _outcome_reason(outcome, cause, ()), ())
        false_accepts = [
            event
            for event in play.reading.unmatched
            if event.seq in events and self.wake.is_false_accept(events[event.seq], use_reviews=True)
        ]
        lines = list(_play_lines(play, events))
        reason = _play_reason(play, lines)
        has_reject_limit = any("false_reject" in limit.name for limit in limits)
        if has_reject_limit and reason is not None and reason.type == "false_reject":
            reason = None  # a limit on their number is a separate case
        broken = [
            limit.sentence for limit in limits if limit.verdict is LimitVerdict.FAIL and "false_accepts" in limit.name
        ]
        if reason is None and false_accepts and broken:
            message = f"{counted(len(false_accepts), 'false accept')}; {'; '.join(broken)}"
            reason = Reason(CaseVerdict.FAILURE, "false_accept", message, "\n".join(lines))
        return self._case(trial, device, kind, reason, lines)


def _query_kind(trial: TrialProgress) -> str:
    """The kind of a trial with one device. The two queries of memory probes count as queries."""
    return (TrialKind.QUERY if trial.trial.memory is not None else trial.trial.kind).value


def _wake_properties(kind: str, device_wake: DeviceWake | None) -> Properties:
    """Totals of the cases of listening trials. False accepts are counted after review, as for limits."""
    if device_wake is None or kind == TrialKind.PROBE:
        return ()
    if kind == TrialKind.COMMAND:
        return (("commands_understood", f"{device_wake.commands.count} of {device_wake.commands.total}"),)
    if kind == TrialKind.WAKE:
        rejects = device_wake.false_rejects
        share = rejects.share
        counts = (("false_rejects", f"{share.count} of {share.total}"), ("voices", str(len(rejects.speakers.shares))))
        unknown = (("talkers", "unknown"),) if rejects.speakers.unknown else ()
        if rejects.interval is None and share.total:
            return (*counts, *unknown, ("share_interval_95", TOO_FEW_VOICES))
        return (*counts, *unknown, *_interval("share", rejects.interval))
    accepts = device_wake.after_review
    counts = (("false_accepts", str(accepts.count)), ("exposure_hours", fixed(accepts.hours, 6)))
    return (*counts, *_interval("per_hour", accepts.interval))


def _request_properties(gaps: Sequence[GapRequests]) -> Properties:
    """Shares of requests that arrived whole, by the pause after their wake phrase. Nothing if there is only one
    pause."""
    if len(gaps) < 2:
        return ()
    pause = pause_words(shortest_pause(gaps))
    shares = ((f"requests_whole_after_{gap.gap_ms}_ms", f"{gap.whole.count} of {gap.whole.total}") for gap in gaps)
    return (("request_pause", pause), ("request_pause_consistent", consistent_words(gaps)), *shares)


def _word_properties(word_figures: FirstAndFinalWords, normalisation: str) -> Properties:
    """The WER of the transcripts; nothing if there are none."""
    if not word_figures.first.attempts:
        return ()
    properties: list[tuple[str, str]] = [("normalisation", normalisation)]
    for name, words in (("first_attempt", word_figures.first), ("final_attempt", word_figures.final)):
        counts = words.counts
        properties.append((f"{name}_word_errors", f"{counts.errors} of {counts.words}"))
        properties.append((f"{name}_wer", NOTHING if counts.wer is None else exact(counts.wer)))
        if words.interval is not None:
            properties += _interval(f"{name}_wer", words.interval)
            properties.append((f"{name}_wer_interval_over", words.unit.value))
        properties.append((f"{name}_transcripts", f"{counts.sentences} of {words.attempts}"))
        if words.typed:
            properties.append((f"{name}_transcripts_typed", str(words.typed)))
    return tuple(properties)


def _interval(name: str, interval: Interval | None) -> Properties:
    if interval is None:
        return ()
    low, high = interval
    return ((f"{name}_interval_95", f"{exact(low)} to {exact(high)}"),)


def _sequential_case(limit: DeclaredLimit, stopping: Stopping, class_name: str) -> Case:
    """The case of a sequential test. Its name is FIELD_test[DEVICE], where FIELD is one of `Stopping`; without a device
    if none listens."""
    figure, _, _ = limit.name.partition("_test")
    test: SequentialTest | None = getattr(stopping, figure)
    declared = "" if test is None else f"good {exact(test.good)}, bad {exact(test.bad)}"
    reason = None
    if limit.verdict is LimitVerdict.OPEN:
        reason = _OPEN
    elif limit.found is None:
        verdict = CaseVerdict.FAILURE if limit.fails_run else CaseVerdict.SKIPPED
        reason = Reason(verdict, "undecided", "the run ended before the test had decided", declared)
    elif limit.fails_run:
        reason = Reason(CaseVerdict.FAILURE, "failed", f"{figure}: closer to bad than to good", declared)
    lines = (limit.sentence, declared) if declared else (limit.sentence,)
    return Case(limit.name, class_name, 0.0, reason, lines)


def limit_case(limit: DeclaredLimit, name: str, class_name: str) -> Case:
    """The case of a limit of a session or an evaluation, with the same sentence as in all other reports."""
    reason = None
    if limit.verdict is LimitVerdict.OPEN:
        reason = _OPEN
    elif limit.fails_run:
        total = f" (of {limit.of})" if limit.of else ""
        reason = Reason(CaseVerdict.FAILURE, "limit", f"{limit.name}: {limit.sentence}{total}")
    return Case(name, class_name, 0.0, reason, (limit.sentence,))


def _outcome_reason(outcome: Outcome | None, cause: str, lines: Iterable[str]) -> Reason | None:
    """Why a trial did not pass; None if it passed."""
    if outcome is None:
        return Reason(CaseVerdict.SKIPPED, "not_played", "not played to its end")
    verdict = _VERDICTS.get(outcome)
    if verdict is None:
        return None
    message = OUTCOME_WORDS[outcome]
    if cause:
        message += f" ({plain_text(cause_in_words(cause))})"
    return Reason(verdict, outcome.value, message, "\n".join(lines))


def _play_reason(play: Play, lines: list[str]) -> Reason | None:
    """Why a device did not pass at a stimulus; None if it passed."""
    reading, text = play.reading, "\n".join(lines)
    match play.kind, reading.command:
        case TrialKind.WAKE, _ if reading.hit is None:
            return Reason(CaseVerdict.FAILURE, "false_reject", OUTCOME_WORDS[Outcome.NO_WAKE], text)
        case TrialKind.COMMAND, CommandResult.SUBSTITUTION:
            message = f"{OUTCOME_WORDS[Outcome.MISHEARD]}: {plain_text(reading.heard, 200)}"
            return Reason(CaseVerdict.FAILURE, "substitution", message, text)
        case TrialKind.COMMAND, CommandResult.MISSING:
            return Reason(CaseVerdict.FAILURE, "missing", "it understood nothing", text)
        case TrialKind.AMBIENT, _ if reading.exposure_s <= 0 and not reading.unmatched:
            return Reason(CaseVerdict.SKIPPED, "unproven", "nothing shows that the device was listening", text)
        case _:
            return None


def _play_lines(play: Play, events: dict[int, UnmatchedWake]) -> Iterator[str]:
    """Lines about what a device did at one stimulus."""
    reading = play.reading
    if play.kind is not TrialKind.AMBIENT:
        delay = f", {measured(reading.delay)} after the phrase" if reading.delay else ""
        weak = weak_evidence_text(plain_text(reading.hit.inferred, 60), ", ") if reading.hit else ""
        yield f"woke{delay}{weak}" if reading.hit else OUTCOME_WORDS[Outcome.NO_WAKE]
    else:
        yield f"exposure: {moment(reading.exposure_s)}, unproven: {moment(reading.unproven_s)}"
    if play.kind is TrialKind.COMMAND:
        yield f"said: {plain_text(play.trial.reference)}"
        yield f"heard: {plain_text(reading.heard) if reading.command is not CommandResult.MISSING else 'nothing'}"
        if play.was_answered and play.first_sound is not None:
            yield f"first sound: {measured(play.first_sound)}"
    for event in reading.unmatched[:MAX_EVENTS]:
        yield _event_line(play, event, events.get(event.seq))
    if len(reading.unmatched) > MAX_EVENTS:
        yield f"… and {len(reading.unmatched) - MAX_EVENTS} more unmatched events"


def _event_line(play: Play, event: HeardWake, unmatched: UnmatchedWake | None) -> str:
    """A line about an unmatched event. unmatched: the same event with its review and clip; None if it is unknown."""
    score = "" if event.score is None else f", score {exact(event.score)}"
    weak = weak_evidence_text(plain_text(event.inferred, 60), ", ")
    clip = f", clips/{unmatched.clip.name}" if unmatched and unmatched.clip else ""
    review = review_in_words(None if unmatched is None else unmatched.verdict)
    offset_s = play.place(event) - play.start_s
    return f"unmatched event at {moment(offset_s)}: {phrase_in_words(event.phrase)}{score}{weak}, {review}{clip}"


def _frame_lines(trial: TrialProgress) -> Iterator[str]:
    """Lines about the frame: expected, and understood at each attempt of the take that counts."""
    expected = trial.trial.expects
    if expected is None:
        return
    any_slots = ", with any slots" if expected.slots is None else ""
    yield f"expected: {frame_line(expected.intents, expected.slots)}{any_slots}"
    for attempt in tested_attempts(trial.counting) if trial.counting else ():
        yield from _attempt_lines(trial.trial, attempt)


def _frame_reason(trial: TrialProgress, lines: Iterable[str]) -> Reason | None:
    """Why a trial with a wrong or unknown frame did not pass; None for other trials, whose outcome gives the reason."""
    expected_frame, take = trial.trial.expects, trial.counting
    if expected_frame is None or take is None or take.outcome not in _BY_FRAME or take.deciding is None:
        return None
    frame, verdict = frame_of(take.deciding), take.deciding.verdict
    understanding = verdict.understood if verdict else None
    if frame.right is None and take.outcome is not Outcome.MISHEARD:
        return Reason(
            CaseVerdict.SKIPPED, "frame_unknown", "nothing shows what the device understood", "\n".join(lines)
        )
    if frame.right is not False:
        return None
    reason_type = "slots_differ" if frame.intents else "intents_differ"
    expected = frame_line(expected_frame.intents, expected_frame.slots)
    if understanding is None or understanding.intents is None:
        message = f"expected {expected}; the operator reports that it was not understood"
    else:
        message = f"expected {expected}; understood {frame_line(understanding.intents, understanding.slots)}"
    return Reason(CaseVerdict.FAILURE, reason_type, message, "\n".join(lines))


def _attempt_lines(trial: Trial, attempt: AttemptProgress) -> Iterator[str]:
    understanding = attempt.verdict.understood if attempt.verdict else None
    if understanding is None or attempt.verdict is None:
        return
    detail = "" if understanding.intents is None else f": {frame_line(understanding.intents, understanding.slots)}"
    yield f"attempt {attempt.attempt}: {verdict_in_words(understanding)}{detail}"
    difference = "" if understanding.right else parts_line(parts_of(trial, attempt.verdict))
    if difference:
        yield f"    {difference}"


def _share_properties(name: str, share: Share) -> Properties:
    return ((name, f"{share.count} of {share.total}" if share.total else NOTHING), *_interval(name, share.interval))
