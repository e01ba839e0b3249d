"""Plays a plan against simulated devices, to find out how often its limits would hold, and whether it is large enough.

Verdicts come from the same limits, intervals and sequential tests as in a session. This takes thousands of runs, so
only the results of trials are drawn, not their course; `harness.session.simulated` plays whole nights. Simulated trials
are independent of each other. Real trials of one talker are not, so real intervals can be wider.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np

from harness.base.grouping import group_by
from harness.base.progress import tracked
from harness.model.choices import POWER
from harness.model.frozen import frozen
from harness.model.scenario import Evidence, Limits, Stopping, TrialKind
from harness.model.stimulus import Ambience
from harness.model.trial import Trial
from harness.session.figures.limits import check_limits
from harness.session.figures.progress import Totals
from harness.statistics.intervals import Share
from harness.statistics.verdict import LimitVerdict
from harness.wake.wake_progress import (
    DeviceWake,
    Rate,
    Ratio,
    Speakers,
    WakeProgress,
    due_decisions,
    rate_with_intervals,
    ratio_with_intervals,
    why_needless,
)

REHEARSED_LIMITS = frozenset(
    {
        "min_recognised_share",
        "min_first_attempt_share",
        "min_answered_share",
        "max_false_reject_share",
        "max_false_reject_upper",
        "max_false_accepts_per_hour",
        "max_false_accepts_upper_per_hour",
        "min_exposure_hours",
        "min_command_share",
    }
)
"""Names of the limits whose results are simulated."""
PLAN_FACTORS = (2, 4, 8, 16, 32)
"""Larger sizes of the plan that are tried, as multiples of its size."""
SEARCH_RUNS = 50
"""Number of simulated runs for each of these sizes."""
MIN_GROWTH = 1.2
"""A larger plan must play at least this many times as many trials. If not, the sequential tests end the runs early."""
BAD_FACTOR = 2.0
"""A bad device errs this many times as often as allowed."""


@frozen
class SimulatedDevice:
    """The error rates of a simulated device.

    - missed_share: share of wake phrases that it misses.
    - misheard_share: share of queries and commands that it misunderstands, of those that woke it.
    - accepts_per_hour: false accepts per hour.
    """

    missed_share: float
    misheard_share: float
    accepts_per_hour: float

    @property
    def understood_share(self) -> float:
        """Probability that one attempt is recognised."""
        return (1 - self.missed_share) * (1 - self.misheard_share)


def failing_device(device: SimulatedDevice, limits: Limits, stopping: Stopping, attempts: int) -> SimulatedDevice:
    """A device that errs twice as often as the limits allow, or as often as the sequential tests must detect. It is
    never better than `device`.

    attempts: most attempts at a query.
    """

    def twice(*allowed: float | None) -> float:
        return BAD_FACTOR * min((limit for limit in allowed if limit is not None), default=0.0)

    rejects, accepts = stopping.false_rejects, stopping.false_accepts
    missed = max(twice(limits.max_false_reject_share, limits.max_false_reject_upper), rejects.bad if rejects else 0.0)
    hourly = twice(limits.max_false_accepts_per_hour, limits.max_false_accepts_upper_per_hour)
    hourly = max(hourly, accepts.bad if accepts else 0.0)
    shares = [limits.min_first_attempt_share, limits.min_command_share]
    errors = twice(*(None if share is None else 1 - share for share in shares))
    if limits.min_recognised_share is not None:
        errors = max(errors, (BAD_FACTOR * (1 - limits.min_recognised_share)) ** (1 / attempts))
    if limits.min_answered_share is not None:
        missed = max(missed, (BAD_FACTOR * (1 - limits.min_answered_share)) ** (1 / attempts))
    missed = min(1.0, max(device.missed_share, missed))
    misheard = 1 - (1 - min(1.0, errors)) / (1 - missed) if missed < 1 else 1.0
    return replace(
        device,
        missed_share=missed,
        misheard_share=max(device.misheard_share, misheard),
        accepts_per_hour=max(device.accepts_per_hour, hourly),
    )


@dataclass(slots=True)
class _QueryCounts:
    """The query trials of one simulated run."""

    assessed: int = 0
    recognised: int = 0
    first_attempt: int = 0
    responding: int = 0
    answered: int = 0

    def add(self, trial: Trial, device: SimulatedDevice, draw: float, attended: bool) -> None:
        """Adds a trial.

        - draw: a number from 0 to 1, which decides how often the query fails.
        - attended: whether a person is present.
        """
        unassessed = trial.evidence is Evidence.NONE
        probability = 1 - device.missed_share if unassessed else device.understood_share
        attempts, succeeded = _draw_attempts(probability, trial.reprompt.max_attempts, draw)
        if trial.memory is not None or (trial.evidence is Evidence.OPERATOR and not attended):
            return
        self.responding += trial.responds
        self.answered += succeeded and trial.responds
        if not unassessed and not trial.until_understood:  # those count only in limits that are not rehearsed
            self.assessed += 1
            self.recognised += succeeded
            self.first_attempt += succeeded and attempts == 1


@dataclass(slots=True)
class _DeviceCounts:
    """Counts of one simulated run for the wake events of a device, and the decisions of its sequential tests.

    - speakers: those of all wake trials of the device.
    - missed, phrases: for each speaker, the numbers of missed and of all wake phrases.
    - decisions: (name, passed) of each test that has decided.
    """

    speakers: Collection[str]
    missed: Counter[str] = field(default_factory=Counter)
    phrases: Counter[str] = field(default_factory=Counter)
    commands: int = 0
    understood: int = 0
    accepts: int = 0
    exposure_s: float = 0.0
    decisions: tuple[tuple[str, bool], ...] = ()

    def add(self, trial: Trial, device: SimulatedDevice, random: np.random.Generator, draws: Iterator[float]) -> None:
        """Adds a trial. draws: numbers from 0 to 1, which decide what is missed and misheard."""
        if trial.kind is TrialKind.AMBIENT:
            ambience = trial.recipe.query
            assert isinstance(ambience, Ambience), trial.id
            self.exposure_s += ambience.duration_s
            self.accepts += int(random.poisson(device.accepts_per_hour * ambience.duration_s / 3600))
        elif trial.kind is TrialKind.WAKE:
            self.phrases[trial.speaker] += 1
            self.missed[trial.speaker] += next(draws) < device.missed_share
        elif trial.kind is TrialKind.COMMAND:
            self.commands += 1
            is_missed = next(draws) < device.missed_share
            self.understood += not is_missed and next(draws) >= device.misheard_share

    def figures(self, name: str) -> DeviceWake:
        """The results without intervals, which take time."""
        phrases, missed = self.phrases.total(), self.missed.total()
        shares = {speaker: Share(self.missed[speaker], count) for speaker, count in self.phrases.items()}
        return DeviceWake(
            name,
            false_rejects=Ratio(Share(missed, phrases), speakers=Speakers.of(shares, self.speakers)),
            hits=phrases - missed,
            missed=missed,
            after_review=Rate(self.accepts, self.exposure_s / 3600),
            exposure_s=self.exposure_s,
            commands=Share(self.understood, self.commands),
            decisions=self.decisions,
        )

    def figures_with_intervals(self, name: str) -> DeviceWake:
        plain = self.figures(name)
        rejects = ratio_with_intervals(plain.false_rejects.share, plain.false_rejects.speakers)
        return replace(
            plain, false_rejects=rejects, after_review=rate_with_intervals(self.accepts, self.exposure_s / 3600)
        )


@frozen
class SimulatedRun:
    """The results of a simulated run."""

    totals: Totals
    wake: WakeProgress


@frozen
class RehearsedLimit:
    """How often a limit would get each verdict.

    - wanted: the limit as text.
    - verdicts: share of runs with each verdict.
    - bad_holds: share of runs in which the limit holds for the bad device of `failing_device`.
    - needed: how many times as large the plan must be to decide the limit; 1 if it is large enough. None if no factor
      that was tried is enough. Perhaps no size is: a device may be no better than the limit, or a sequential test may
      end the run too early.
    """

    name: str
    wanted: str
    verdicts: Mapping[LimitVerdict, float]
    bad_holds: float
    needed: int | None

    @property
    def holds(self) -> float:
        """Share of runs in which the limit holds."""
        return _passing_share(self.verdicts)


class Rehearsal:
    """A plan, whose trials are drawn for simulated devices."""

    def __init__(self, trials: Sequence[Trial], limits: Limits, stopping: Stopping, *, attended: bool = True) -> None:
        """attended: whether a person is present. If not, trials that need a person's answer have no result."""
        self._attended = attended
        self._stopping = stopping
        bounds = {limit.name: getattr(limits, limit.name) for limit in fields(limits) if limit.name in REHEARSED_LIMITS}
        self._limits = Limits(**bounds)
        self.left_out = tuple(
            limit.name
            for limit in fields(limits)
            if limit.name not in REHEARSED_LIMITS and getattr(limits, limit.name) is not None
        )
        self._plan = [
            (trial, (() if trial.listening is None else tuple(target.device for target in trial.listening.targets)))
            for trial in trials
        ]
        self._speakers = group_by(
            (device, trial.speaker)
            for trial, devices in self._plan
            if trial.kind is TrialKind.WAKE
            for device in devices
        )
        self._attempts = max((trial.reprompt.max_attempts for trial in trials), default=1)

    def play_runs(self, device: SimulatedDevice, count: int, seed: int, factor: int = 1) -> list[SimulatedRun]:
        """Simulates `count` runs. factor: how many times each run plays the plan."""
        random = np.random.default_rng(seed)
        return [self._play(device, random, factor) for _ in tracked(range(count), "Simulating runs")]

    def assess_limits(self, device: SimulatedDevice, count: int, seed: int) -> tuple[RehearsedLimit, ...]:
        """The assessment of every limit and sequential test, in the order of reports. count: number of simulated
        runs."""
        bad_device = failing_device(device, self._limits, self._stopping, self._attempts)
        runs = self.play_runs(device, count, seed)
        good_verdicts = self._count_verdicts(runs)
        bad_verdicts = self._count_verdicts(self.play_runs(bad_device, count, seed))
        limits: dict[str, RehearsedLimit] = {}
        for name, (wanted_text, shares) in good_verdicts.items():
            limit = RehearsedLimit(name, wanted_text, shares, _passing_share(bad_verdicts[name][1]), None)
            limits[name] = replace(limit, needed=1) if _is_decided(limit) else limit
        played = _mean_played(runs)
        for factor in PLAN_FACTORS:
            open_names = [name for name, limit in limits.items() if limit.needed is None]
            runs = self.play_runs(device, SEARCH_RUNS, seed, factor) if open_names else []
            if _mean_played(runs) < MIN_GROWTH * played:  # a larger plan does not help: the tests end the runs
                break
            played = _mean_played(runs)
            good_verdicts = self._count_verdicts(runs)
            bad_verdicts = self._count_verdicts(self.play_runs(bad_device, SEARCH_RUNS, seed, factor))
            for name in open_names:
                larger = replace(
                    limits[name], verdicts=good_verdicts[name][1], bad_holds=_passing_share(bad_verdicts[name][1])
                )
                if _is_decided(larger):
                    limits[name] = replace(limits[name], needed=factor)
        return tuple(limits.values())

    def _count_verdicts(self, runs: Iterable[SimulatedRun]) -> dict[str, tuple[str, dict[LimitVerdict, float]]]:
        """For each limit by name, its text, and the share of runs with each verdict."""
        counts: dict[str, Counter[LimitVerdict]] = {}
        wanted_texts: dict[str, str] = {}
        for run in runs:
            for row in check_limits(self._limits, run.totals, run.wake, self._stopping):
                wanted_texts[row.name] = row.wanted_text
                counts.setdefault(row.name, Counter())[row.verdict] += 1
        return {
            name: (wanted_texts[name], {verdict: n / verdicts.total() for verdict, n in verdicts.items()})
            for name, verdicts in counts.items()
        }

    def _play(self, device: SimulatedDevice, random: np.random.Generator, factor: int) -> SimulatedRun:
        queries = _QueryCounts()
        devices: dict[str, _DeviceCounts] = {}
        played = 0
        decided = WakeProgress()
        draws = iter(random.random(3 * factor * sum(max(1, len(names)) for _, names in self._plan)).tolist())
        for trial, names in self._plan * factor:
            if decided.devices and why_needless(trial, decided, self._stopping):
                continue
            played += 1
            if trial.listening is None:
                queries.add(trial, device, next(draws), self._attended)
                continue
            for name in names:
                counts = devices.setdefault(name, _DeviceCounts(self._speakers.get(name, ())))
                counts.add(trial, device, random, draws)
                if self._add_decisions(name, counts):
                    decided = WakeProgress(tuple(counts.figures(name) for name, counts in devices.items()))
        totals = Totals(
            planned=len(self._plan) * factor,
            finished=played,
            recognised=Share(queries.recognised, queries.assessed),
            first_attempt=Share(queries.first_attempt, queries.assessed),
            answered=Share(queries.answered, queries.responding),
        )
        wake = WakeProgress(tuple(counts.figures_with_intervals(name) for name, counts in devices.items()))
        return SimulatedRun(totals, wake)

    def _add_decisions(self, name: str, counts: _DeviceCounts) -> bool:
        """Adds the decisions that the sequential tests make now. Returns False if they made none."""
        if self._stopping.false_accepts is None and self._stopping.false_rejects is None:
            return False
        due = due_decisions(WakeProgress((counts.figures(name),)), self._stopping)
        counts.decisions += tuple((row.figure, row.passed) for row in due)
        return bool(due)


def _draw_attempts(probability: float, max_attempts: int, draw: float) -> tuple[int, bool]:
    """The number of attempts at a query, and whether the last one succeeded.

    - probability: probability that an attempt succeeds.
    - draw: a number from 0 to 1, which decides the result.
    """
    failure = 1 - probability
    if failure <= 0:
        return 1, True
    attempts = 1
    while attempts < max_attempts and draw < failure**attempts:  # all attempts so far failed
        attempts += 1
    return attempts, draw >= failure**attempts


def _mean_played(runs: Sequence[SimulatedRun]) -> float:
    """Mean number of finished trials in a run; 0 without runs."""
    return sum(run.totals.finished for run in runs) / max(1, len(runs))


def _passing_share(verdicts: Mapping[LimitVerdict, float]) -> float:
    return verdicts.get(LimitVerdict.PASS, 0.0) + verdicts.get(LimitVerdict.MARGINAL, 0.0)


def _is_decided(limit: RehearsedLimit) -> bool:
    """Whether the plan decides a limit: the device holds it, and the bad device fails it, each in at least 80 % of
    runs.

    For limits on exposure the bad device does not matter, since exposure does not depend on errors.
    """
    return limit.holds >= POWER and (limit.name.startswith("min_exposure") or limit.bad_holds <= 1 - POWER)
