"""Results of the effects that queries should have, from a session's rows: reported by the device or a person."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, tzinfo

from harness.model.bench import ObservationKind
from harness.model.effect import EffectCheck, EffectEvidence, EffectOutcome, EffectSource, StateWanted
from harness.model.frozen import frozen
from harness.model.numbers import exact, seconds
from harness.model.observation import LinkLost, Observation, StateTold, StimulusHeard, StimulusStarted
from harness.model.record import (
    AttemptFinished,
    AttemptStarted,
    EffectAnswered,
    EngineStarted,
    Entry,
    Observed,
    ResponseFrozen,
    SessionFinished,
    SessionStarted,
    StimulusSpoken,
)
from harness.model.row_times import chronological
from harness.model.trial import Trial
from harness.statistics.intervals import Share

AttemptKey = tuple[str, int, int]
"""Identifies an attempt: trial, take, number of the attempt."""


@dataclass(slots=True)
class _AttemptReports:
    """One attempt: when its query ended, and what its device reported afterwards."""

    trial: Trial
    row: AttemptStarted
    started_s: float | None = None
    """When the stimulus started."""
    heard_s: float | None = None
    """The same, from the microphone's recording; None if it was not found there."""
    states: list[tuple[StateTold, float]] = field(default_factory=list)
    """(report, seconds from the end of the query)."""
    cut_s: float | None = None
    """When reports ended early; None if they did not."""
    cut_reason: str = ""
    """Why reports ended early; "" if they did not."""
    answered: bool = False
    response_ends_s: float | None = None
    from_earlier_run: bool = False
    """Whether the attempt ended with an earlier run."""

    @property
    def opens_s(self) -> float | None:
        """When reports begin to count: the end of the query; None if it was not played."""
        origin_s = self.started_s if self.heard_s is None else self.heard_s
        return None if origin_s is None else origin_s + self.row.query_end_s

    @property
    def closes_s(self) -> float | None:
        """Until when the device may report the effect."""
        check = self.trial.effect
        if self.opens_s is None or check is None:
            return None
        by_check_s = self.opens_s + check.within_s
        return by_check_s if self.response_ends_s is None else max(by_check_s, self.response_ends_s)

    def cut_off(self, at_s: float, why: str) -> None:
        """Ends the time for reports, because the device was lost or the next query began."""
        if self.cut_s is None and (self.closes_s is None or at_s < self.closes_s):
            self.cut_s, self.cut_reason = at_s, why


@frozen
class _ReportedEffect:
    """The effect according to the device's reports.

    - outcome: None if no report counts.
    - evidence: what it reported.
    """

    outcome: EffectOutcome | None
    evidence: str


class EffectRows:
    """Takes a session's rows in their order, and gives the evidence of effects; not thread-safe.

    There is evidence for attempts that were answered and have an effect check, and for those about which a person has
    given an answer. A state counts if the device reports it after the query, and within `within_s` or before the end of
    its response. Earlier states and retained messages count only if they are reported again.
    """

    def __init__(self) -> None:
        self._trials: dict[str, Trial] = {}
        self._reports: dict[AttemptKey, _AttemptReports] = {}
        self._plays: dict[str, _AttemptReports] = {}
        self._current: dict[str, _AttemptReports] = {}
        self._answers: list[Entry] = []
        self.responses_wall_s: dict[AttemptKey, float] = {}
        """Unix times of the responses that are stored."""
        self._has_checks = False
        self._now_s = 0.0

    def add(self, entry: Entry) -> None:
        """Adds a row of the log."""
        match entry.record:
            case Observed() as row:  # most rows
                if self._has_checks:
                    self._observe(row.observation)
                    self._now_s = max(self._now_s, entry.at_s)
                return
            case SessionStarted(trials=trials):
                self._trials = {trial.id: trial for trial in trials}
                self._has_checks = any(trial.effect is not None for trial in trials)
            case EngineStarted():
                self._end_all_reports("the run was cut off")
                for earlier in self._reports.values():
                    earlier.from_earlier_run = True
            case SessionFinished():
                self._now_s = max(self._now_s, entry.at_s)
                self._end_all_reports("the session ended")
            case AttemptStarted() as row:
                self._begin(row, entry.at_s)
            case StimulusSpoken() as stimulus:
                if (reports := self._reports.get((stimulus.trial_id, stimulus.take, stimulus.attempt))) is not None:
                    reports.row = stimulus.with_measured_times(reports.row)
            case ResponseFrozen() as frozen:
                key = frozen.trial_id, frozen.take, frozen.attempt
                self.responses_wall_s[key] = entry.wall_s
                if (reports := self._reports.get(key)) is not None:
                    reports.response_ends_s = frozen.ends.at_s
            case AttemptFinished() as row:
                if (reports := self._reports.get((row.trial_id, row.take, row.attempt))) is not None:
                    reports.answered = row.outcome.answered
            case EffectAnswered():
                self._answers.append(entry)
            case _:
                pass
        # After a reboot, the clock of a resumed run starts again.
        self._now_s = entry.at_s if isinstance(entry.record, EngineStarted) else max(self._now_s, entry.at_s)

    def _observe(self, observation: Observation) -> None:
        match observation:
            case StimulusStarted(play_id=play_id, at=at) if play_id in self._plays:
                self._plays[play_id].started_s = at.at_s
            case StimulusHeard(play_id=play_id, at=at) if play_id in self._plays:
                self._plays[play_id].heard_s = at.at_s
            case StateTold(source=source, at=at) if source in self._current:
                reports = self._current[source]
                checked = reports.trial.effect is not None  # else a talkative device would fill the memory
                # A report counts if its time, within its error, can lie in the window.
                if checked and (opens_s := reports.opens_s) is not None and at.at_s + at.error_s >= opens_s:
                    reports.states.append((observation, at.at_s - opens_s))
            case LinkLost(source=source, at=at) if source in self._current:
                self._current[source].cut_off(at.at_s, f"the link to {source} was lost")
            case _:
                pass

    def answers(self, later: Iterable[Entry] = ()) -> dict[AttemptKey, tuple[tuple[float, EffectAnswered], ...]]:
        """(Unix time, answer of a person) for each attempt, oldest first. later: rows from the file beside the log."""
        answers: dict[AttemptKey, tuple[tuple[float, EffectAnswered], ...]] = {}
        for entry in chronological(self._answers, later):
            if isinstance(row := entry.record, EffectAnswered):
                key = row.trial_id, row.take, row.attempt
                answers[key] = (*answers.get(key, ()), (entry.wall_s, row))
        return answers

    def evidence(self, later: Iterable[Entry] = (), zone: tzinfo | None = None) -> dict[AttemptKey, EffectEvidence]:
        """Evidence of each effect.

        - later: as for `answers`.
        - zone: time zone for times of day; None: this host's.
        """
        answers = self.answers(later)
        evidence_by_key: dict[AttemptKey, EffectEvidence] = {}
        if not (self._has_checks or answers):
            return evidence_by_key
        for key, reports in self._reports.items():
            wall_s = self.responses_wall_s.get(key)
            if wall_s is not None and reports.answered and (reports.trial.effect is not None or key in answers):
                evidence_by_key[key] = self._evidence(reports, wall_s, [row for _, row in answers.get(key, ())], zone)
        return evidence_by_key

    def _begin(self, row: AttemptStarted, at_s: float) -> None:
        """Begins an attempt. Its devices' later reports belong to it, and no longer to an earlier one."""
        trial = self._trials.get(row.trial_id)
        if trial is None:
            return
        reports = _AttemptReports(trial, row)
        self._reports[row.trial_id, row.take, row.attempt] = self._plays[row.play_id] = reports
        for target in trial.targets:
            for source in target.sources:
                if (previous := self._current.get(source)) is not None:
                    previous.cut_off(at_s, "the device was asked something else")
                self._current[source] = reports

    def _end_all_reports(self, why: str) -> None:
        for reports in self._current.values():
            reports.cut_off(self._now_s, why)
        self._current.clear()

    def _evidence(
        self, reports: _AttemptReports, response_wall_s: float, answers: list[EffectAnswered], zone: tzinfo | None
    ) -> EffectEvidence:
        check = reports.trial.effect or EffectCheck("")
        device = self._device_effect(reports, check)
        due_wall_s = visible_from_wall_s(check, response_wall_s, zone)
        # A person's answer outranks the device's report, except that nobody could tell.
        if answers and (answers[-1].word is not EffectOutcome.UNKNOWN or device.outcome is None):
            last = answers[-1]
            words = _evidence_text(last, device)
            return EffectEvidence(check, last.word, EffectSource.OPERATOR, words, due_wall_s)
        if device.outcome is not None:
            unsure = f"; {answers[-1].by} could not tell{_detail(answers[-1])}" if answers else ""
            return EffectEvidence(check, device.outcome, EffectSource.DEVICE, device.evidence + unsure, due_wall_s)
        return EffectEvidence(check, said=device.evidence, due_wall_s=due_wall_s)

    def _device_effect(self, reports: _AttemptReports, check: EffectCheck) -> _ReportedEffect:
        """The effect by the states that the device reported in time."""
        if not check.state:
            return _ReportedEffect(None, "")
        if not reports.trial.connection or ObservationKind.STATE not in reports.trial.reports:
            return _ReportedEffect(None, "the device reports no state")
        until_s = check.within_s
        if reports.closes_s is not None and reports.opens_s is not None:
            ends_s = reports.closes_s if reports.cut_s is None else min(reports.closes_s, reports.cut_s)
            until_s = ends_s - reports.opens_s
        states = [(state, after_s) for state, after_s in reports.states if after_s - state.at.error_s <= until_s]
        reported = [_reported_state(expected, states) for expected in check.state]
        met_count = sum(is_met for is_met, _ in reported)
        summary = "; ".join(words for _, words in reported)
        if met_count == len(reported):
            return _ReportedEffect(EffectOutcome.RIGHT, summary)
        if reports.cut_s is not None:
            return _ReportedEffect(None, f"{reports.cut_reason} before the device had reported every wanted state")
        if reports.closes_s is None:
            return _ReportedEffect(None, "no start of the query was recorded")
        if not reports.from_earlier_run and self._now_s < reports.closes_s:
            return _ReportedEffect(None, "the device still has time to report it")
        return _ReportedEffect(
            EffectOutcome.PARTIAL if met_count else EffectOutcome.WRONG, f"{summary}, within {exact(until_s, 3)} s"
        )


def right_effects(evidence: Iterable[EffectEvidence]) -> Share:
    """The share of right effects among those that are known. Open ones and "cannot tell" are left out."""
    outcomes = [effect.word for effect in evidence if effect.word is not EffectOutcome.UNKNOWN]
    return Share(outcomes.count(EffectOutcome.RIGHT), len(outcomes))


def visible_from_wall_s(check: EffectCheck, response_wall_s: float | None, zone: tzinfo | None = None) -> float | None:
    """The Unix time from which a person can see the effect; None without a question or a response."""
    if response_wall_s is None or not check.question:
        return None
    if check.at is not None:
        return next_time_of_day(check.at, response_wall_s, zone)
    return response_wall_s + (check.after_s or 0.0)


def _reported_state(expected: StateWanted, states: list[tuple[StateTold, float]]) -> tuple[bool, str]:
    """Whether the expected state was reported, and what was reported instead, in words.

    states: (report, seconds after the query).
    """
    named_states = [(state, after_s) for state, after_s in states if state.name == expected.name]
    for state, after_s in named_states:
        if expected.fits(state.name, state.value):
            return True, f"reported {_show(state.name, state.value)} {seconds(max(0.0, after_s))} after the query"
    aim = f"“{expected.value}”" if expected.value else "nothing"
    if named_states:
        instead = "" if expected.value is None else f" instead of {aim}"
        return False, f"reported {_show(expected.name, named_states[-1][0].value)}{instead}"
    return False, f"reported nothing about {expected.name}"


def _show(name: str, value: str) -> str:
    return f"{name}: “{value}”" if value else f"{name}: nothing"


def _evidence_text(answer: EffectAnswered, device: _ReportedEffect) -> str:
    statement = f"{answer.by} looked: {answer.word.value}{_detail(answer)}"
    if device.outcome is None:
        return statement
    judgment = "says so too" if device.outcome is answer.word else f"says otherwise: {device.outcome.value}"
    return f"{statement}; the device {judgment} ({device.evidence})"


def _detail(answer: EffectAnswered) -> str:
    return f", “{answer.detail}”" if answer.detail else ""


def next_time_of_day(clock: str, after_s: float, zone: tzinfo | None = None) -> float:
    """Unix time of the first HH:MM after another Unix time. zone: None is this host's.

    When clocks go back, HH:MM occurs twice, and both count. When they skip HH:MM, it occurs as long after midnight as
    without the change. Raises ValueError when `clock` is not a time of day.
    """
    hour, _, minute = clock.partition(":")
    first = datetime.fromtimestamp(after_s, zone).date()
    moments = [
        moment
        for day in (first, first + timedelta(days=1))  # tomorrow's lies ahead whatever the clocks do
        for moment in _moments_on(day, int(hour), int(minute), zone)
        if moment > after_s
    ]
    return min(moments)


def _moments_on(day: date, hour: int, minute: int, zone: tzinfo | None) -> list[float]:
    """The Unix times at which clocks show hour:minute on that day: one or two; one after it if the day skips it."""
    folds = [
        datetime(day.year, day.month, day.day, hour, minute, tzinfo=zone, fold=fold).timestamp() for fold in (0, 1)
    ]
    shown = [
        moment for moment in folds if datetime.fromtimestamp(moment, zone).strftime("%H:%M") == f"{hour:02}:{minute:02}"
    ]
    return shown or folds[:1]
