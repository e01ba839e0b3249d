"""A session's results from the rows of its log, live or replayed."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import field, replace

from harness.model.effect import EffectEvidence
from harness.model.frozen import frozen
from harness.model.judgment import JudgmentStatus
from harness.model.numbers import counted
from harness.model.observation import DeviceDescribed, HostStalled, Observation, Overrun, Unread, Wake
from harness.model.record import (
    AttemptFinished,
    AttemptStarted,
    BenchChecked,
    EffectAnswered,
    EndReason,
    EngineStarted,
    Entry,
    FaultMet,
    JudgmentGiven,
    Observed,
    Paused,
    PowerSwitched,
    Record,
    RerunAsked,
    ResponseFrozen,
    Resumed,
    SessionFinished,
    SessionStarted,
    TrialFinished,
    TrialStarted,
    UnderstandingResult,
)
from harness.model.scenario import TrialKind
from harness.model.stimulus import Ambience
from harness.model.time import MeasuredDuration
from harness.model.trial import Outcome, Recognition, Trial
from harness.session.disturbance import LateSound
from harness.session.figures.connections import Connections, DeviceConnection
from harness.session.figures.effects import AttemptKey, EffectRows, right_effects
from harness.session.figures.requests import requests_asked
from harness.session.figures.self_wakes import AnswersHeard, SelfWakes
from harness.session.figures.trials import (
    DECIDED,
    SessionTrials,
    TranscribedTrial,
    TrialProgress,
    TrialState,
    query_transcript,
    words_of,
)
from harness.session.figures.understood_trials import UnderstoodFigures, understood_of
from harness.statistics.intervals import LatencyFigures, Share, latency_figures
from harness.transcripts.recognition import GroupTranscripts, words_heard
from harness.wake.first_sounds import FirstSounds
from harness.wake.requests import GapRequests
from harness.wake.wake_progress import WakeProgress


@frozen
class Totals:
    """Counts over trials, each by its latest finished take."""

    planned: int = 0
    """Number of trials, including probes."""
    probes: int = 0
    """Number of planned probes."""
    finished: int = 0
    """Number of finished trials, including probes."""
    to_rerun: int = 0
    """Number of finished trials that will be played again."""
    by_outcome: tuple[tuple[Outcome, int], ...] = ()
    """(outcome, number of trials) for outcomes that occurred, in the order of `Outcome`."""
    recognised: Share = field(default_factory=Share)
    """Trials with evidence of recognition, of those decided and assessed. A trial whose last attempt stayed silent is
    decided, and not recognised. Trials repeated until understood count only in `understood`."""
    first_attempt: Share = field(default_factory=Share)
    """As `recognised`, at the first attempt."""
    answered: Share = field(default_factory=Share)
    """Share of trials with a response, of those decided whose device has a voice."""
    attempts_to_recognition: tuple[tuple[int, int], ...] = ()
    """(number of attempts, number of trials), ascending."""
    latency: LatencyFigures = field(default_factory=LatencyFigures)
    """From the end of the query to the first speech, in answered trials."""
    first_sounds: FirstSounds = field(default_factory=FirstSounds)
    """From the end of the query to the first sound, also a chime, in trials in which the device may respond."""
    wake_delay: LatencyFigures = field(default_factory=LatencyFigures)
    """From the end of the wake phrase to the wake event, in the attempts that decided."""
    to_judge: int = 0
    """Number of first responses."""
    judged: int = 0
    """Number of first responses with a category by at least one rater."""
    first_words: GroupTranscripts = field(default_factory=GroupTranscripts)
    """Words understood from the queries at the first attempt."""
    final_words: GroupTranscripts = field(default_factory=GroupTranscripts)
    """Words understood from the queries at the deciding attempt."""
    effects: Share = field(default_factory=Share)
    """Share of right effects of those known; only for a session as a whole."""
    disturbed: Share = field(default_factory=Share)
    """Share of attempts, in the takes that count, that the host disturbed."""
    understood: UnderstoodFigures = field(default_factory=UnderstoodFigures)
    """Results of trials that expect intents."""
    requests: tuple[tuple[str, tuple[GapRequests, ...]], ...] = ()
    """Queries of each device, by the pause after their wake phrase."""

    @property
    def attempts_needed(self) -> tuple[tuple[int | None, Share], ...]:
        """(Number of attempts until recognition, share of trials), of the trials whose recognition was assessed.

        None instead of a number: never recognised.
        """
        assessed = self.recognised.total
        unrecognised = ((None, Share(assessed - self.recognised.count, assessed)),) if assessed else ()
        shares = ((attempts, Share(count, assessed)) for attempts, count in self.attempts_to_recognition)
        return (*shares, *unrecognised)

    @property
    def finished_in_words(self) -> str:
        """`6 of 7 trials and probes`, `2 of 2 trials`."""
        trials = f"{self.planned} trials and probes" if self.probes else counted(self.planned, "trial")
        return f"{self.finished} of {trials}"

    def count(self, outcome: Outcome) -> int:
        return dict(self.by_outcome).get(outcome, 0)


def totals_of(trials: Iterable[TrialProgress]) -> Totals:
    """The results over `trials`, each by its latest finished take."""
    trials = list(trials)
    planned = probes = to_rerun = decided = answered = to_judge = judged = 0
    outcomes: Counter[Outcome] = Counter()
    latencies: list[MeasuredDuration] = []
    delays: list[MeasuredDuration] = []
    sounds: list[MeasuredDuration | None] = []
    transcripts: list[TranscribedTrial] = []
    disturbed = Share()
    has_unrecorded_sound = False
    for trial in trials:
        planned += 1
        probes += trial.trial.kind is TrialKind.PROBE
        take = trial.counting
        if take is None or take.outcome is None:
            continue
        outcomes[take.outcome] += 1
        to_rerun += trial.state is not TrialState.FINISHED
        ended = [attempt.verdict for attempt in take.attempts if attempt.verdict is not None]
        disturbed += Share(sum(bool(row.disturbed) for row in ended), len(ended))
        if trial.trial.memory is not None:  # two repeated queries would outweigh the scenario's own
            continue
        if (query := query_transcript(trial)) is not None:
            transcripts.append(query)
        verdict = take.deciding.verdict if take.deciding else None
        if take.outcome in DECIDED and trial.trial.listening is None:
            decided += trial.trial.responds
            answered += trial.trial.responds and take.outcome.answered
        if take.outcome.answered and verdict and verdict.latency is not None:
            latencies.append(verdict.latency)
        if trial.trial.microphone and trial.trial.responds and take.outcome in _SOUNDING and verdict is not None:
            # An earlier version recorded no first sounds: a trial with a latency must have one.
            has_unrecorded_sound |= verdict.first_sound is None and verdict.latency is not None
            sounds.append(verdict.first_sound)
        # A counted trial has a delay for each of its devices, kept in the wake statistics.
        if verdict and verdict.wake_delay is not None and take.outcome is not Outcome.COUNTED:
            delays.append(verdict.wake_delay)
        if (response := trial.response) is not None:
            to_judge += 1
            judged += any(row.status is JudgmentStatus.SUBMITTED for row in response.judgments)
    words = words_of(transcripts)
    recognised, attempts = recognised_of(trials)
    return Totals(
        planned=planned,
        probes=probes,
        finished=outcomes.total(),
        to_rerun=to_rerun,
        by_outcome=tuple((outcome, outcomes[outcome]) for outcome in Outcome if outcomes[outcome]),
        recognised=recognised,
        first_attempt=Share(attempts[1], recognised.total),
        answered=Share(answered, decided),
        attempts_to_recognition=tuple(sorted((number, count) for number, count in attempts.items() if count)),
        latency=latency_figures(latencies),
        first_sounds=FirstSounds() if has_unrecorded_sound else FirstSounds.of(sounds),
        wake_delay=latency_figures(delays),
        to_judge=to_judge,
        judged=judged,
        first_words=words.first,
        final_words=words.final,
        disturbed=disturbed,
        understood=understood_of(trials),
        requests=requests_asked(trials),
    )


def recognised_of(trials: Iterable[TrialProgress]) -> tuple[Share, Counter[int]]:
    """The share of trials with evidence of recognition, of those decided and assessed.

    The second value maps the number of attempts until recognition to the number of trials.
    """
    attempts: Counter[int] = Counter()
    assessed = 0
    for trial in trials:
        take = trial.counting
        by_words = trial.trial.listening is None and trial.trial.memory is None and not trial.trial.until_understood
        if by_words and take is not None and take.outcome in DECIDED:
            assessed += take.recognition is not Recognition.NOT_ASSESSED
            if (number := take.attempts_to_recognition) is not None:
                attempts[number] += 1
    return Share(attempts.total(), assessed), attempts


_SOUNDING = DECIDED - {Outcome.NO_WAKE}
"""Outcomes of trials in which a device may respond."""


def words_of_session(totals: Totals, wake: WakeProgress | None) -> tuple[GroupTranscripts, GroupTranscripts]:
    """The words understood at the first and the final attempt, in queries and in every device's commands."""
    commands = sum((device.words for device in wake.devices), GroupTranscripts()) if wake else GroupTranscripts()
    return totals.first_words + commands, totals.final_words + commands


PACE_TRIALS = 30
"""Number of recent trials, of all and of each kind, from which the remaining time is estimated."""


def _size(trial: Trial) -> float:
    """The size of a trial, to which its time is proportional: seconds of ambient sound, or 1 for any other trial."""
    query = trial.recipe.query
    return query.duration_s if isinstance(query, Ambience) else 1.0


@frozen
class CheckCount:
    """The results of one check of the bench.

    - ok, warned, refused: number of times that it had this result.
    - last_wrong: what it reported when it last warned or refused; "" if it never has.
    """

    check: str
    ok: int = 0
    warned: int = 0
    refused: int = 0
    last_wrong: str = ""

    def with_check(self, row: BenchChecked) -> CheckCount:
        """The results including one more."""
        match row.level:
            case "ok":
                return replace(self, ok=self.ok + 1)
            case "warn":
                return replace(self, warned=self.warned + 1, last_wrong=row.says)
            case "fail":
                return replace(self, refused=self.refused + 1, last_wrong=row.says)


@frozen
class Progress:
    """State and results of a session at the row `seq`."""

    seq: int = 0
    session: SessionStarted | None = None
    """The first row; None before it was read."""
    trials: tuple[TrialProgress, ...] = ()
    """The trials in the order of playing."""
    totals: Totals = field(default_factory=Totals)
    running: str | None = None
    """Id of the current trial; None between trials."""
    last_response: tuple[str, int, int] | None = None
    """Trial, take and attempt of the last stored response."""
    last_frame: tuple[str, int, int] | None = None
    """Trial, take and attempt of the last attempt about whose intents nothing more can become known."""
    runs: int = 0
    """Number of runs."""
    faults: int = 0
    """Number of faults."""
    engine_failed: bool = False
    """Whether the last engine has failed."""
    pauses: int = 0
    late_sound: LateSound = field(default_factory=LateSound)
    """Late and lost blocks."""
    stalls: int = 0
    longest_stall_s: float = 0.0
    unread: int = 0
    """Number of lost lines and messages of devices."""
    boards: tuple[DeviceDescribed, ...] = ()
    """What the devices report about themselves. A device that was exchanged has two entries."""
    power_cycles: tuple[tuple[str, int, int], ...] = ()
    """(device, number of its power cycles, number of those after a fault)."""
    bench_checks: tuple[CheckCount, ...] = ()
    self_wakes: tuple[AnswersHeard, ...] = ()
    """For each device that reports wake events, those during answers of itself and of other devices."""
    connections: tuple[DeviceConnection, ...] = ()
    """Lost connections and restarts of each device, and the attempts that they interrupted."""
    unplanned_rows: int = 0
    """Number of rows that name an unplanned trial; more than 0 means that the log is damaged."""
    paused: Paused | None = None
    """The row of the present pause; None if there is none."""
    finished: EndReason | None = None
    """Why the session ended; None if it is open."""
    pace_s: float | None = None
    """Mean real time of the last trials, without pauses; None before the first."""
    kind_paces: Mapping[TrialKind, float] = field(default_factory=dict)
    """By kind of trial, the mean real time of each second of ambient sound, or of each other trial."""
    effects: Mapping[AttemptKey, EffectEvidence] = field(default_factory=dict)
    """Evidence for attempts that were answered (`effects.EffectRows`)."""
    effect_answers: Mapping[AttemptKey, tuple[tuple[float, EffectAnswered], ...]] = field(default_factory=dict)
    """Attempt → (Unix time, answer of a person), oldest first."""
    responses_wall_s: Mapping[AttemptKey, float] = field(default_factory=dict)
    """Attempt → Unix time of its response."""

    @property
    def left(self) -> int:
        """Number of unfinished trials, including requested re-runs."""
        return len(self._unfinished)

    @property
    def _unfinished(self) -> list[TrialProgress]:
        return [trial for trial in self.trials if trial.outcome is None or trial.rerun_asked]

    @property
    def disturbed(self) -> list[AttemptFinished]:
        """The attempts of takes that count which the host disturbed."""
        attempts = (attempt for trial in self.trials if trial.counting for attempt in trial.counting.attempts)
        return [attempt.verdict for attempt in attempts if attempt.verdict and attempt.verdict.disturbed]

    @property
    def can_resume(self) -> bool:
        """Whether trials are left, and nobody has aborted the session."""
        return self.left > 0 and self.finished is not EndReason.ABORTED

    @property
    def failed_at_start(self) -> bool:
        """Whether the last engine has failed, and no trial ever began."""
        return self.engine_failed and self.finished is None and not any(trial.takes for trial in self.trials)

    @property
    def eta_s(self) -> float | None:
        """Estimated time until the plan is finished; None before the first finished trial.

        Before any trial of its kind was played, ambient sound is assumed to take its own length, and another trial the
        mean time of all.
        """
        if self.finished is not None:
            return 0.0
        if self.pace_s is None:
            return None
        paces = dict.fromkeys(TrialKind, self.pace_s) | {TrialKind.AMBIENT: 1.0, **self.kind_paces}
        return sum(_size(unfinished.trial) * paces[unfinished.trial.kind] for unfinished in self._unfinished)

    def trial(self, trial_id: str) -> TrialProgress | None:
        return next((trial for trial in self.trials if trial.trial.id == trial_id), None)


_CHANGES_TOTALS = SessionStarted | RerunAsked | TrialStarted | TrialFinished | AttemptFinished | JudgmentGiven


class SessionFigures:
    """Takes a log's rows in their order, and gives a frozen `Progress` on request; not thread-safe.

    It ignores rows that it has seen (seq not above the last), so a client may request rows again. The cost of a row
    does not grow with the session. That of a snapshot after a verdict is proportional to the number of trials.
    """

    def __init__(self) -> None:
        self._seq = 0
        self._progress = Progress()
        self._running_trial: str | None = None
        self._last_response: tuple[str, int, int] | None = None
        self._last_frame: tuple[str, int, int] | None = None
        self._late_blocks = 0
        self._late_reports: Counter[str] = Counter()
        self._earlier_runs_s = 0.0
        self._run_began_s: float | None = None
        self._now_s = 0.0
        self._session_trials = SessionTrials(words_heard)
        self._totals: Totals | None = Totals()
        self._effects = EffectRows()
        self._self_wakes = SelfWakes()
        self._connections = Connections()
        self._later_rows: list[Entry] = []
        self._pace: deque[float] = deque(maxlen=PACE_TRIALS)
        self._durations: dict[TrialKind, deque[tuple[float, float]]] = {}
        self._speed = 1.0
        self._trial_began_s: float | None = None
        self._pause_began_s: float | None = None
        self._paused_s = 0.0

    def add(self, entry: Entry) -> None:
        """Adds a row of the log."""
        if entry.seq <= self._seq:
            return
        self._seq = entry.seq
        last_s, self._now_s = self._now_s, entry.at_s
        self._effects.add(entry)
        if isinstance(entry.record, Observed):  # most rows
            self._observe(entry.record.observation)
            return
        changed = self._add_to_trials(entry.record)
        self._self_wakes.add(entry.record)
        self._connections.add(entry.record, last_s)
        match entry.record:
            case SessionStarted() as started:
                self._progress = replace(self._progress, session=started)
            case EngineStarted(clock_speed=speed):
                self._earlier_runs_s += self._lasted_s(last_s)
                self._begin_run(entry.at_s, speed)
            case Paused() as paused:
                self._pause_began_s = entry.at_s
                self._progress = replace(self._progress, pauses=self._progress.pauses + 1, paused=paused)
            case Resumed():
                if self._pause_began_s is not None:
                    self._paused_s += entry.at_s - self._pause_began_s
                self._pause_began_s = None
                self._progress = replace(self._progress, paused=None)
            case PowerSwitched(on=False) as switched:
                self._count_power_cycle(switched)
            case BenchChecked(check=check) as row:
                counts = {check_count.check: check_count for check_count in self._progress.bench_checks}
                counts[check] = counts.get(check, CheckCount(check)).with_check(row)
                self._progress = replace(self._progress, bench_checks=tuple(counts.values()))
            case FaultMet(source=source):
                failed = self._progress.engine_failed or source == "engine"
                self._progress = replace(self._progress, faults=self._progress.faults + 1, engine_failed=failed)
            case SessionFinished(reason=reason):
                self._progress = replace(self._progress, finished=reason, paused=None)
                self._running_trial = None
            case TrialStarted(trial_id=trial_id):
                self._trial_began_s, self._paused_s = entry.at_s, 0.0
                if self._pause_began_s is not None:  # the pause began in the trial before
                    self._pause_began_s = entry.at_s
                self._running_trial = trial_id
            case TrialFinished(trial_id=trial_id):
                self._time_trial(trial_id, entry.at_s)
                self._trial_began_s = self._running_trial = None
            case AttemptStarted(trial_id=trial_id) if changed:
                self._running_trial = trial_id  # a resumed run may continue within a trial
            case AttemptFinished(understood=UnderstandingResult()) as row if changed:
                self._last_frame = row.trial_id, row.take, row.attempt
            case ResponseFrozen() as row if changed:
                self._last_response = row.trial_id, row.take, row.attempt
            case _:
                pass  # Other rows change no result, or only those of trials.

    def _begin_run(self, at_s: float, clock_speed: float) -> None:
        self._run_began_s = at_s
        # A run that ended abruptly leaves no pause or pace.
        self._trial_began_s = self._pause_began_s = None
        self._speed = clock_speed
        self._progress = replace(
            self._progress, runs=self._progress.runs + 1, paused=None, finished=None, engine_failed=False
        )
        self._running_trial = None

    def _count_power_cycle(self, switched: PowerSwitched) -> None:
        cycles = {device: (count, faults) for device, count, faults in self._progress.power_cycles}
        count, faults = cycles.get(switched.device, (0, 0))
        cycles[switched.device] = (count + 1, faults + switched.after_fault)
        power_cycles = tuple((device, count, faults) for device, (count, faults) in cycles.items())
        self._progress = replace(self._progress, power_cycles=power_cycles)

    def _time_trial(self, trial_id: str, ended_s: float) -> None:
        """Records how long a trial took in real time, without pauses, if its start is known."""
        if self._trial_began_s is None:
            return
        took_s = max(0.0, (ended_s - self._trial_began_s - self._paused_s) / self._speed)
        self._pace.append(took_s)
        if (trial := self._session_trials.trial(trial_id)) is not None:
            durations = self._durations.setdefault(trial.trial.kind, deque(maxlen=PACE_TRIALS))
            durations.append((took_s, _size(trial.trial)))

    def _lasted_s(self, until_s: float) -> float:
        """How long the present run has lasted; each run has a clock of its own."""
        return 0.0 if self._run_began_s is None else max(0.0, until_s - self._run_began_s)

    def _observe(self, observation: Observation) -> None:
        match observation:
            case Wake():  # most observations
                self._self_wakes.add_wake(observation)
            case Overrun(source=source, count=count):
                self._late_blocks += count
                self._late_reports[source] += 1
            case HostStalled(lasted_s=lasted_s):
                progress, longest_s = self._progress, max(self._progress.longest_stall_s, lasted_s)
                self._progress = replace(progress, stalls=progress.stalls + 1, longest_stall_s=longest_s)
            case DeviceDescribed() as described:
                self._progress = replace(self._progress, boards=_add_board(self._progress.boards, described))
            case Unread(count=count):
                self._progress = replace(self._progress, unread=self._progress.unread + count)
            case _:
                self._connections.observe(observation)

    def add_later(self, entry: Entry) -> None:
        """Adds a judgment, or an answer about an effect, from the file beside the log. The log's own rows come first.

        Judgments of exercises belong to no trial, and are ignored.
        """
        match entry.record:
            case JudgmentGiven(judgment=judgment) if self._session_trials.trial(judgment.trial_id) is not None:
                self._add_to_trials(entry.record)
            case EffectAnswered():
                self._later_rows.append(entry)
            case _:
                pass

    def snapshot(self) -> Progress:
        """State and results of the rows so far."""
        if self._totals is None:
            self._totals = totals_of(self._session_trials.trials)
        effects = self._effects.evidence(self._later_rows)  # each time, because time alone may decide one
        return replace(
            self._progress,
            seq=self._seq,
            running=self._running_trial,
            last_response=self._last_response,
            last_frame=self._last_frame,
            late_sound=LateSound(
                self._late_blocks, tuple(self._late_reports.items()), self._earlier_runs_s + self._lasted_s(self._now_s)
            ),
            trials=self._session_trials.trials,
            unplanned_rows=self._session_trials.unplanned_rows,
            totals=replace(self._totals, effects=self._effect_share(effects)),
            pace_s=sum(self._pace) / len(self._pace) if self._pace else None,
            kind_paces={
                kind: sum(took_s for took_s, _ in durations) / sum(size for _, size in durations)
                for kind, durations in self._durations.items()
            },
            effects=effects,
            effect_answers=self._effects.answers(self._later_rows),
            responses_wall_s=dict(self._effects.responses_wall_s),
            self_wakes=self._self_wakes.snapshot(),
            connections=self._connections.snapshot(self._now_s),
        )

    def _effect_share(self, effects: Mapping[AttemptKey, EffectEvidence]) -> Share:
        """The share of right effects of first responses to what the scenario checks."""
        responses = [trial.response for trial in self._session_trials.trials if trial.trial.effect is not None]
        keys = [(response.trial.id, response.take, response.attempt) for response in responses if response is not None]
        return right_effects(effects[key] for key in keys if key in effects)

    def _add_to_trials(self, row: Record) -> bool:
        """Adds a row that may be about a trial. Returns whether it changes a trial."""
        changed = self._session_trials.add(row)
        if changed and isinstance(row, _CHANGES_TOTALS):
            self._totals = None
        return changed


def normalisation_of(progress: Progress) -> str:
    """The name of the normalisation under which words are compared; "" for a session without trials."""
    return progress.trials[0].trial.recognised.name if progress.trials else ""


def _add_board(boards: tuple[DeviceDescribed, ...], new: DeviceDescribed) -> tuple[DeviceDescribed, ...]:
    """Adds new identity data: fills gaps, and keeps contradictions as separate entries."""
    latest = next((board for board in reversed(boards) if board.source == new.source), None)
    if latest is None:
        return (*boards, new)
    merged = replace(new, firmware=new.firmware or latest.firmware, serial=new.serial or latest.serial)
    if latest.firmware in ("", merged.firmware) and latest.serial in ("", merged.serial):
        return tuple(merged if board is latest else board for board in boards)
    return (*boards, merged)
