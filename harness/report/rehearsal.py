"""A plan against simulated devices: how often its limits would hold, and what its nights would be like.

Verdicts are those of a session: the same limits, intervals and sequential tests. Whether a plan is large enough takes
thousands of runs, so trials are drawn alone, without their course; `harness.session.simulated` plays whole nights.
Trials are independent of each other, which real ones of one talker are not, so real intervals can be wider.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np

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
    needless,
    rate,
    ratio,
)

REHEARSED = frozenset(
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
"""Limits on results that are simulated."""
FACTORS = (2, 4, 8, 16, 32)
SEARCH_RUNS = 50
"""Simulated runs for each size that might suffice."""
GROWS = 1.2
"""How many times as many trials a plan of twice the size must play at least."""
AS_BAD = 2.0


@frozen
class SimulatedDevice:
    """Rates of a device. missed: share of wake phrases; misheard: share of queries and commands that woke it."""

    missed: float
    misheard: float
    accepts_per_hour: float

    @property
    def understands(self) -> float:
        """Probability that one attempt is recognised."""
        return (1 - self.missed) * (1 - self.misheard)


def failing_device(device: SimulatedDevice, limits: Limits, stopping: Stopping, attempts: int) -> SimulatedDevice:
    """A device that errs twice as often as the limits allow, or as often as the tests must find.

    attempts: the most attempts at a query.
    """

    def twice(*allowed: float | None) -> float:
        return AS_BAD * min((limit for limit in allowed if limit is not None), default=0.0)

    rejects, accepts = stopping.false_rejects, stopping.false_accepts
    missed = max(twice(limits.max_false_reject_share, limits.max_false_reject_upper), rejects.bad if rejects else 0.0)
    hourly = twice(limits.max_false_accepts_per_hour, limits.max_false_accepts_upper_per_hour)
    hourly = max(hourly, accepts.bad if accepts else 0.0)
    wanted = [limits.min_first_attempt_share, limits.min_command_share]
    errors = twice(*(None if share is None else 1 - share for share in wanted))
    if limits.min_recognised_share is not None:
        errors = max(errors, (AS_BAD * (1 - limits.min_recognised_share)) ** (1 / attempts))
    if limits.min_answered_share is not None:
        missed = max(missed, (AS_BAD * (1 - limits.min_answered_share)) ** (1 / attempts))
    missed = min(1.0, max(device.missed, missed))
    misheard = 1 - (1 - min(1.0, errors)) / (1 - missed) if missed < 1 else 1.0
    return replace(
        device,
        missed=missed,
        misheard=max(device.misheard, misheard),
        accepts_per_hour=max(device.accepts_per_hour, hourly),
    )


@dataclass(slots=True)
class _Counts:
    """One device in one simulated run."""

    planned: frozenset[str] = frozenset()
    missed: Counter[str] = field(default_factory=Counter)
    heard: Counter[str] = field(default_factory=Counter)
    commands: int = 0
    understood: int = 0
    accepts: int = 0
    exposure_s: float = 0.0
    decisions: tuple[tuple[str, bool], ...] = ()

    def counts(self, name: str) -> DeviceWake:
        """Without intervals, which take time."""
        total, missed = self.heard.total(), self.missed.total()
        return DeviceWake(
            name,
            false_rejects=Ratio(Share(missed, total), speakers=self._speakers()),
            hits=total - missed,
            missed=missed,
            after_review=Rate(self.accepts, self.exposure_s / 3600),
            exposure_s=self.exposure_s,
            commands=Share(self.understood, self.commands),
            decisions=self.decisions,
        )

    def figures(self, name: str) -> DeviceWake:
        plain = self.counts(name)
        rejects = ratio(plain.false_rejects.share, plain.false_rejects.speakers)
        return replace(plain, false_rejects=rejects, after_review=rate(self.accepts, self.exposure_s / 3600))

    def _speakers(self) -> Speakers:
        shares = {speaker: Share(self.missed[speaker], count) for speaker, count in self.heard.items()}
        return Speakers.of(shares, self.planned)


@frozen
class SimulatedRun:
    """What a run would have come to."""

    totals: Totals
    wake: WakeProgress


@frozen
class RehearsedLimit:
    """How often a limit would get each verdict, and hold for a device that is as bad as `failing_device` says.

    needed: how many times as large the plan must be to decide it, 1 as it is. None: more than the largest factor, or
    never. A device may be no better than the limit, and a sequential test may end the run too early.
    """

    name: str
    wanted: str
    verdicts: Mapping[LimitVerdict, float]
    bad_holds: float
    needed: int | None

    @property
    def holds(self) -> float:
        return _passing(self.verdicts)


class Rehearsal:
    """A plan whose trials are drawn for simulated devices."""

    def __init__(self, trials: Sequence[Trial], limits: Limits, stopping: Stopping, *, attended: bool = True) -> None:
        """attended: a person answers the trials that need it; else those have no result."""
        self._attended = attended
        self._stopping = stopping
        bounds = {limit.name: getattr(limits, limit.name) for limit in fields(limits) if limit.name in REHEARSED}
        self._limits = Limits(**bounds)
        self.left_out = tuple(
            limit.name
            for limit in fields(limits)
            if limit.name not in REHEARSED and getattr(limits, limit.name) is not None
        )
        self._plan = [
            (trial, (() if trial.listening is None else tuple(target.device for target in trial.listening.targets)))
            for trial in trials
        ]
        phrases = (TrialKind.WAKE, TrialKind.COMMAND)
        self._speakers = frozenset(trial.speaker for trial in trials if trial.kind in phrases)
        self._attempts = max((trial.reprompt.max_attempts for trial in trials), default=1)

    def runs(self, device: SimulatedDevice, count: int, seed: int, factor: int = 1) -> list[SimulatedRun]:
        """So many simulated runs of the plan, played `factor` times over."""
        random = np.random.default_rng(seed)
        return [self._run(device, random, factor) for _ in tracked(range(count), "Simulating runs")]

    def limits(self, device: SimulatedDevice, count: int, seed: int) -> tuple[RehearsedLimit, ...]:
        """Every limit and sequential test, in the order of a report."""
        bad = failing_device(device, self._limits, self._stopping, self._attempts)
        runs = self.runs(device, count, seed)
        good = self._verdicts(runs)
        worse = self._verdicts(self.runs(bad, count, seed))
        done: dict[str, RehearsedLimit] = {}
        for name, (wanted, shares) in good.items():
            limit = RehearsedLimit(name, wanted, shares, _passing(worse[name][1]), None)
            done[name] = replace(limit, needed=1) if _decided(limit) else limit
        played = _mean_played(runs)
        for factor in FACTORS:
            open_ones = [name for name, limit in done.items() if limit.needed is None]
            runs = self.runs(device, SEARCH_RUNS, seed, factor) if open_ones else []
            if _mean_played(runs) < GROWS * played:  # nothing is open, or the tests end the runs
                break
            played = _mean_played(runs)
            good = self._verdicts(runs)
            worse = self._verdicts(self.runs(bad, SEARCH_RUNS, seed, factor))
            for name in open_ones:
                larger = replace(done[name], verdicts=good[name][1], bad_holds=_passing(worse[name][1]))
                if _decided(larger):
                    done[name] = replace(done[name], needed=factor)
        return tuple(done.values())

    def _verdicts(self, runs: Iterable[SimulatedRun]) -> dict[str, tuple[str, dict[LimitVerdict, float]]]:
        """By limit, what is wanted, and the share of runs with each verdict."""
        counts: dict[str, Counter[LimitVerdict]] = {}
        wanted: dict[str, str] = {}
        for run in runs:
            for row in check_limits(self._limits, run.totals, run.wake, self._stopping):
                wanted[row.name] = row.wanted_text
                counts.setdefault(row.name, Counter())[row.verdict] += 1
        return {
            name: (wanted[name], {verdict: n / verdicts.total() for verdict, n in verdicts.items()})
            for name, verdicts in counts.items()
        }

    def _run(self, device: SimulatedDevice, random: np.random.Generator, factor: int) -> SimulatedRun:
        devices: dict[str, _Counts] = {}
        assessed = recognised = first = played = decided_queries = answered = 0
        decided = WakeProgress()
        tested = self._stopping.false_accepts is not None or self._stopping.false_rejects is not None
        draws = iter(random.random(3 * factor * sum(max(1, len(names)) for _, names in self._plan)).tolist())
        for trial, names in self._plan * factor:
            if decided.devices and needless(trial, decided, self._stopping):
                continue
            played += 1
            if trial.listening is None:
                unassessed = trial.evidence is Evidence.NONE
                understands = 1 - device.missed if unassessed else device.understands
                attempts, right = _attempts_made(understands, trial.reprompt.max_attempts, next(draws))
                if trial.memory is not None or (trial.evidence is Evidence.OPERATOR and not self._attended):
                    continue
                decided_queries += trial.responds
                answered += right and trial.responds
                if not unassessed:
                    assessed += 1
                    recognised += right
                    first += right and attempts == 1
                continue
            kind = trial.listening.kind
            for name in names:
                counts = devices.setdefault(name, _Counts(self._speakers))
                if kind is TrialKind.AMBIENT:
                    query = trial.recipe.query
                    assert isinstance(query, Ambience), trial.id
                    sound_s = query.duration_s
                    counts.exposure_s += sound_s
                    counts.accepts += int(random.poisson(device.accepts_per_hour * sound_s / 3600))
                elif kind in (TrialKind.WAKE, TrialKind.COMMAND):
                    speaker, missed = trial.speaker, next(draws) < device.missed
                    counts.heard[speaker] += 1
                    counts.missed[speaker] += missed
                    if kind is TrialKind.COMMAND:
                        counts.commands += 1
                        counts.understood += not missed and next(draws) >= device.misheard
                if tested and (due := due_decisions(WakeProgress((counts.counts(name),)), self._stopping)):
                    counts.decisions += tuple((row.figure, row.passed) for row in due)
                    decided = WakeProgress(tuple(counts.counts(name) for name, counts in devices.items()))
        totals = Totals(
            planned=len(self._plan) * factor,
            finished=played,
            recognised=Share(recognised, assessed),
            first_attempt=Share(first, assessed),
            answered=Share(answered, decided_queries),
        )
        wake = WakeProgress(tuple(counts.figures(name) for name, counts in devices.items()))
        return SimulatedRun(totals, wake)


def _attempts_made(succeeds: float, most: int, draw: float) -> tuple[int, bool]:
    """Attempts at a query, `most` at most, and whether the last one succeeded."""
    fails = 1 - succeeds
    if fails <= 0:
        return 1, True
    attempts = 1
    while attempts < most and draw < fails**attempts:
        attempts += 1
    return attempts, draw >= fails**attempts


def _mean_played(runs: Sequence[SimulatedRun]) -> float:
    """Mean number of trials; 0 of no runs."""
    return sum(run.totals.finished for run in runs) / max(1, len(runs))


def _passing(verdicts: Mapping[LimitVerdict, float]) -> float:
    return verdicts.get(LimitVerdict.PASS, 0.0) + verdicts.get(LimitVerdict.MARGINAL, 0.0)


def _decided(limit: RehearsedLimit) -> bool:
    """The device holds the limit, and one that is as bad fails it, each in 80 % of runs at least.

    Exposure does not depend on how good a device is.
    """
    return limit.holds >= POWER and (limit.name.startswith("min_exposure") or limit.bad_holds <= 1 - POWER)
