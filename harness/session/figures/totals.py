"""The figures over a set of trials: the same function for a live run, a report and any group of trials."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from harness.model.judgment import JudgmentStatus
from harness.model.time import Measured
from harness.model.trial import Outcome, Recognition
from harness.session.figures.heard import HeardTrial, heard_trial, words_of
from harness.session.figures.trials import DECIDED, TrialProgress
from harness.session.figures.understood import UnderstoodFigures, understood_of
from harness.statistics.intervals import Share
from harness.statistics.latency import LatencyFigures, latency_figures
from harness.transcripts.recognition import WordsHeard


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts over trials, each by its latest finished take.

    recognised: trials with evidence of recognition, of those decided whose recognition was assessed. A device that
    stayed silent to the last attempt is decided, and not recognised. first_attempt: … at the first attempt. Trials that
    are asked until they are understood are in none of them: `understood` has their figures.
    answered: trials with a response, of all decided whose device can be heard to respond. attempts_to_recognition:
    (attempts, trials), ascending.
    latency: end of query → first speech, of answered trials. wake_delay: of the attempts that decided.
    to_judge: first responses; judged: those of them with a category by at least one rater. first_words, final_words:
    of what was heard of the queries at the first attempt, and at the one that decided. effects: right, of those
    known; of a session as a whole only.
    """

    planned: int = 0
    finished: int = 0
    by_outcome: tuple[tuple[Outcome, int], ...] = ()
    recognised: Share = field(default_factory=Share)
    first_attempt: Share = field(default_factory=Share)
    answered: Share = field(default_factory=Share)
    attempts_to_recognition: tuple[tuple[int, int], ...] = ()
    latency: LatencyFigures = field(default_factory=LatencyFigures)
    wake_delay: LatencyFigures = field(default_factory=LatencyFigures)
    to_judge: int = 0
    judged: int = 0
    first_words: WordsHeard = field(default_factory=WordsHeard)
    final_words: WordsHeard = field(default_factory=WordsHeard)
    effects: Share = field(default_factory=Share)
    understood: UnderstoodFigures = field(default_factory=UnderstoodFigures)

    @property
    def attempts_needed(self) -> tuple[tuple[int | None, Share], ...]:
        """Attempts to recognition → trials, of all whose recognition was assessed; None: never recognised."""
        assessed = self.recognised.total
        never = ((None, Share(assessed - self.recognised.count, assessed)),) if assessed else ()
        return (*((needed, Share(n, assessed)) for needed, n in self.attempts_to_recognition), *never)

    def count(self, outcome: Outcome) -> int:
        """Trials with that outcome."""
        return dict(self.by_outcome).get(outcome, 0)


def total(trials: Iterable[TrialProgress]) -> Totals:
    """The figures over `trials`; outcomes are in the order of `Outcome`, those that did not occur left out."""
    trials = list(trials)
    planned = decided = assessed = answered = to_judge = judged = 0
    outcomes: Counter[Outcome] = Counter()
    attempts: Counter[int] = Counter()
    latencies: list[Measured] = []
    delays: list[Measured] = []
    heard: list[HeardTrial] = []
    for one in trials:
        planned += 1
        take = one.counting
        if take is None or take.outcome is None:
            continue
        outcomes[take.outcome] += 1
        if one.trial.memory is not None:  # two queries, over and over: they would outweigh what the scenario asks
            continue
        if (asked := heard_trial(one)) is not None:
            heard.append(asked)
        verdict = take.deciding.verdict if take.deciding else None
        if take.outcome in DECIDED and one.trial.listening is None:
            decided += one.trial.responds
            answered += one.trial.responds and take.outcome.answered
            by_words = not one.trial.until_understood
            assessed += by_words and take.recognition is not Recognition.NOT_ASSESSED
            if by_words and (needed := take.attempts_to_recognition) is not None:
                attempts[needed] += 1
        if take.outcome.answered and verdict and verdict.latency is not None:
            latencies.append(verdict.latency)
        # A counted trial has a delay for each of its devices, which the wake figures keep.
        if verdict and verdict.wake_delay is not None and take.outcome is not Outcome.COUNTED:
            delays.append(verdict.wake_delay)
        if (response := one.response) is not None:
            to_judge += 1
            judged += any(row.status is JudgmentStatus.SUBMITTED for row in response.judgments)
    words = words_of(heard)
    return Totals(
        planned=planned,
        finished=outcomes.total(),
        by_outcome=tuple((outcome, outcomes[outcome]) for outcome in Outcome if outcomes[outcome]),
        recognised=Share(attempts.total(), assessed),
        first_attempt=Share(attempts[1], assessed),
        answered=Share(answered, decided),
        attempts_to_recognition=tuple(sorted((needed, n) for needed, n in attempts.items() if n)),
        latency=latency_figures(latencies),
        wake_delay=latency_figures(delays),
        to_judge=to_judge,
        judged=judged,
        first_words=words.first,
        final_words=words.final,
        understood=understood_of(trials),
    )
