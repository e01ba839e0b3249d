"""A session's figures from its log's rows: live, replayed or read from disk, by the same functions."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from harness.model.effect import EffectEvidence
from harness.model.judgment import Judgment, in_force
from harness.model.observation import DeviceDescribed, Overrun, Unread
from harness.model.record import (
    AttemptFinished,
    AttemptStarted,
    EffectAnswered,
    EndReason,
    EngineStarted,
    Entry,
    FaultMet,
    JudgmentGiven,
    Observed,
    Paused,
    RerunAsked,
    ResponseFrozen,
    ResponseTranscribed,
    Resumed,
    SessionFinished,
    SessionStarted,
    TrialFinished,
    TrialStarted,
)
from harness.model.trial import LIFE_CHECK
from harness.session.figures.effects import EffectRows, Key, right_of_known
from harness.session.figures.totals import Totals, total
from harness.session.figures.trials import AttemptProgress, TakeProgress, TrialProgress
from harness.statistics.intervals import Share
from harness.transcripts.recognition import words_heard

PACE_TRIALS = 30
"""How many of the last trials the estimate of the time left looks at."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What a session has come to, at the row `seq`.

    trials: in the order of playing. running: id of the trial that is going on. pace_s: mean wall time of the last
    trials, pauses left out. overruns: late or lost sound blocks. unread: lines and messages of devices that were lost
    on our side. boards: who the devices say that they are; one that has changed meanwhile is there twice. unplaced:
    rows that name a trial that is not planned; more than 0 says that the log is damaged. last_response: trial, take and
    attempt of the last that was kept; last_frame: of the last attempt of which it is known, or known to be unknown,
    what was understood. effects: what is known of those of attempts that were answered (`effects.EffectRows`).
    """

    seq: int = 0
    session: SessionStarted | None = None
    trials: tuple[TrialProgress, ...] = ()
    totals: Totals = field(default_factory=Totals)
    running: str | None = None
    last_response: tuple[str, int, int] | None = None
    last_frame: tuple[str, int, int] | None = None
    runs: int = 0
    faults: int = 0
    pauses: int = 0
    overruns: int = 0
    unread: int = 0
    boards: tuple[DeviceDescribed, ...] = ()
    unplaced: int = 0
    paused: Paused | None = None
    finished: EndReason | None = None
    pace_s: float | None = None
    effects: Mapping[Key, EffectEvidence] = field(default_factory=dict)

    @property
    def left(self) -> int:
        """Trials, and re-runs asked for, that are still to be finished."""
        return sum(one.outcome is None or one.rerun_asked for one in self.trials)

    @property
    def eta_s(self) -> float | None:
        """Estimated wall time that the rest takes; None when nothing was finished yet."""
        if self.finished is not None:
            return 0.0
        return None if self.pace_s is None else self.pace_s * self.left

    def trial(self, trial_id: str) -> TrialProgress | None:
        return next((one for one in self.trials if one.trial.id == trial_id), None)


class SessionFigures:
    """Takes a log's rows in their order, and gives a frozen `Progress` when asked; not thread-safe.

    A row that was seen already (its seq is not above the last) is left out, so a client may ask for rows again.
    Cost of a row does not grow with the session; a snapshot after a verdict is linear in the trials.
    """

    def __init__(self) -> None:
        self._seq = 0
        self._head = Progress()
        self._trials: dict[str, TrialProgress] = {}
        self._judgments: dict[str, list[Judgment]] = {}
        self._judgment_ids: set[str] = set()
        self._totals: Totals | None = Totals()
        self._effects = EffectRows()
        self._later: list[Entry] = []
        self._pace: deque[float] = deque(maxlen=PACE_TRIALS)
        self._trial_since: float | None = None
        self._paused_since: float | None = None
        self._paused_s = 0.0

    def add(self, entry: Entry) -> None:
        """Takes one row."""
        if entry.seq <= self._seq:
            return
        self._seq = entry.seq
        self._effects.add(entry)
        match entry.record:
            case SessionStarted() as started:
                self._trials = {trial.id: TrialProgress(trial) for trial in started.trials}
                self._head = replace(self._head, session=started)
                self._totals = None
            case EngineStarted():
                # A run that was cut off leaves no pause and no pace behind.
                self._trial_since = self._paused_since = None
                self._head = replace(self._head, runs=self._head.runs + 1, paused=None, running=None, finished=None)
            case Paused() as paused:
                self._paused_since = entry.wall_s
                self._head = replace(self._head, pauses=self._head.pauses + 1, paused=paused)
            case Resumed():
                if self._paused_since is not None:
                    self._paused_s += entry.wall_s - self._paused_since
                self._paused_since = None
                self._head = replace(self._head, paused=None)
            case FaultMet():
                self._head = replace(self._head, faults=self._head.faults + 1)
            case Observed(observation=Overrun(count=count)):
                self._head = replace(self._head, overruns=self._head.overruns + count)
            case SessionFinished(reason=reason):
                self._head = replace(self._head, finished=reason, running=None, paused=None)
            case JudgmentGiven(judgment=judgment):
                self._judge(judgment)
            case RerunAsked(trial_id=trial_id):
                if (found := self._find(trial_id)) is not None:
                    self._trials[trial_id] = replace(found, rerun_asked=True)
            case Observed(observation=DeviceDescribed() as described):
                self._head = replace(self._head, boards=_known(self._head.boards, described))
            case Observed(observation=Unread(count=count)):
                self._head = replace(self._head, unread=self._head.unread + count)
            case TrialStarted(trial_id=trial_id, take=take):
                self._trial_since, self._paused_s = entry.wall_s, 0.0
                self._head = replace(self._head, running=trial_id)
                if (found := self._find(trial_id)) is not None:
                    self._trials[trial_id] = replace(_with(found, _take(found, take)), rerun_asked=False)
            case TrialFinished() as finished:
                self._finish(finished, entry.wall_s)
            case AttemptStarted() | AttemptFinished() | ResponseFrozen() | ResponseTranscribed() as of_attempt:
                self._attempt(of_attempt)
            case _:
                pass  # Observations, notes, marks and questions change no figure.

    def add_later(self, entry: Entry) -> None:
        """Takes a judgment, or the answer to an effect question, from the file of raters; after the log's own rows.

        Judgments of exercises are of no trial, and are left out.
        """
        match entry.record:
            case JudgmentGiven(judgment=judgment) if judgment.trial_id in self._trials:
                self._judge(judgment)
            case EffectAnswered():
                self._later.append(entry)
            case _:
                pass

    def snapshot(self) -> Progress:
        """What the rows so far say."""
        if self._totals is None:
            self._totals = total(self._trials.values())
        effects = self._effects.evidence(self._later)  # each time, since time alone may decide one
        return replace(
            self._head,
            seq=self._seq,
            trials=tuple(self._trials.values()),
            totals=replace(self._totals, effects=self._right_of(effects)),
            pace_s=sum(self._pace) / len(self._pace) if self._pace else None,
            effects=effects,
        )

    def _right_of(self, effects: Mapping[Key, EffectEvidence]) -> Share:
        """Of first responses to what the scenario checks."""
        responses = [one.response for one in self._trials.values() if one.trial.effect is not None]
        keys = [(one.trial.id, one.take, one.attempt) for one in responses if one is not None]
        return right_of_known(effects[key] for key in keys if key in effects)

    def _find(self, trial_id: str) -> TrialProgress | None:
        found = self._trials.get(trial_id)
        if found is None and not trial_id.startswith(LIFE_CHECK):
            self._head = replace(self._head, unplaced=self._head.unplaced + 1)
        return found

    def _finish(self, row: TrialFinished, wall_s: float) -> None:
        if self._trial_since is not None:
            self._pace.append(max(0.0, wall_s - self._trial_since - self._paused_s))
        self._trial_since = None
        self._head = replace(self._head, running=None)
        found = self._find(row.trial_id)
        if found is None:
            return
        take = replace(
            _take(found, row.take), outcome=row.outcome, deciding_attempt=row.deciding_attempt, cause=row.cause
        )
        # A trial may end before it began (skipped because the bench lacks something), re-runs included.
        self._trials[row.trial_id] = replace(_with(found, take), rerun_asked=False)
        self._totals = None

    def _attempt(self, row: AttemptStarted | AttemptFinished | ResponseFrozen | ResponseTranscribed) -> None:
        found = self._find(row.trial_id)
        if found is None:
            return
        take = _take(found, row.take)
        attempt = take.attempt(row.attempt) or AttemptProgress(row.attempt)
        match row:
            case AttemptStarted(waited_s=waited_s):
                attempt = replace(attempt, waited_s=waited_s)
                # A resumed run goes on within a trial that had begun before.
                self._head = replace(self._head, running=row.trial_id)
            case AttemptFinished():
                attempt = replace(attempt, verdict=row, words=words_heard(found.trial, row))
                self._totals = None
                if row.understood is not None:
                    self._head = replace(self._head, last_frame=(row.trial_id, row.take, row.attempt))
            case ResponseFrozen():
                attempt = replace(attempt, frozen=row)
                self._head = replace(self._head, last_response=(row.trial_id, row.take, row.attempt))
            case ResponseTranscribed():
                attempt = replace(attempt, transcribed=row)
        others = tuple(one for one in take.attempts if one.attempt != attempt.attempt)
        ordered = tuple(sorted((*others, attempt), key=lambda one: one.attempt))
        self._trials[row.trial_id] = _with(found, replace(take, attempts=ordered))

    def _judge(self, judgment: Judgment) -> None:
        found = self._find(judgment.trial_id)
        if found is None or judgment.id in self._judgment_ids:
            return
        self._judgment_ids.add(judgment.id)
        rows = self._judgments.setdefault(judgment.trial_id, [])
        rows.append(judgment)
        self._trials[judgment.trial_id] = replace(found, judgments=in_force(rows))
        self._totals = None


def normalisation_of(progress: Progress) -> str:
    """The name of the normalisation under which words are compared; "" of a session without trials."""
    return progress.trials[0].trial.recognised.name if progress.trials else ""


def _take(trial: TrialProgress, number: int) -> TakeProgress:
    return next((take for take in trial.takes if take.take == number), TakeProgress(number))


def _with(trial: TrialProgress, take: TakeProgress) -> TrialProgress:
    others = tuple(one for one in trial.takes if one.take != take.take)
    return replace(trial, takes=tuple(sorted((*others, take), key=lambda one: one.take)))


def _known(boards: tuple[DeviceDescribed, ...], new: DeviceDescribed) -> tuple[DeviceDescribed, ...]:
    """With what is new: filled in where nothing was known, and beside what it contradicts."""
    before = next((one for one in reversed(boards) if one.source == new.source), None)
    if before is None:
        return (*boards, new)
    merged = replace(new, firmware=new.firmware or before.firmware, serial=new.serial or before.serial)
    if before.firmware in ("", merged.firmware) and before.serial in ("", merged.serial):
        return tuple(merged if one is before else one for one in boards)
    return (*boards, merged)
