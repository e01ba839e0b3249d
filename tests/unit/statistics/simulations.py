"""Made-up devices and raters with a known truth."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from harness.model.scenario import SequentialTest
from harness.statistics.agreement import MISSING
from harness.statistics.intervals import Interval, Share
from harness.statistics.sequential import SequentialVerdict, rate_verdict, share_sequence, share_verdict
from harness.statistics.voices import over_voices, voices_verdict


def kept_rate(
    random: np.random.Generator, rate: float, runs: int, looks: int, interval: Callable[[int, float], Interval | None]
) -> int:
    """Of `runs` runs with a look each hour, those in which no look excluded the true rate."""
    counts = random.poisson(rate, (runs, looks)).cumsum(axis=1)
    covered_runs = 0
    for run in counts:
        ends = [interval(int(count), float(hour)) for hour, count in enumerate(run, start=1)]
        covered_runs += all(bounds is not None and bounds[0] <= rate <= bounds[1] for bounds in ends)
    return covered_runs


def kept_share(random: np.random.Generator, share: float, runs: int, trials: int, every: int) -> int:
    """Of `runs` runs with a look after each `every` trials, those in which no look excluded the true share."""
    counts = (random.random((runs, trials)) < share).cumsum(axis=1)[:, every - 1 :: every]
    covered_runs = 0
    for run in counts:
        ends = [share_sequence(int(count), (look + 1) * every) for look, count in enumerate(run)]
        covered_runs += all(bounds is not None and bounds[0] <= share <= bounds[1] for bounds in ends)
    return covered_runs


def rate_verdicts(
    random: np.random.Generator, test: SequentialTest, rate: float, runs: int, look_hours: float
) -> dict[SequentialVerdict, int]:
    """Verdicts of runs that are looked at after each `look_hours`, each followed until it is decided."""
    verdict_counts = dict.fromkeys(SequentialVerdict, 0)
    for _ in range(runs):
        count, hours, verdict = 0, 0.0, SequentialVerdict.OPEN
        while verdict is SequentialVerdict.OPEN:
            for more in random.poisson(rate * look_hours, 512):
                count, hours = count + int(more), hours + look_hours
                verdict = rate_verdict(test, count, hours)
                if verdict is not SequentialVerdict.OPEN:
                    break
        verdict_counts[verdict] += 1
    return verdict_counts


def share_verdicts(
    random: np.random.Generator, test: SequentialTest, share: float, runs: int
) -> dict[SequentialVerdict, int]:
    """Verdicts of runs that are looked at after every trial, each followed until it is decided."""
    verdict_counts = dict.fromkeys(SequentialVerdict, 0)
    for _ in range(runs):
        count, total, verdict = 0, 0, SequentialVerdict.OPEN
        while verdict is SequentialVerdict.OPEN:
            for missed in random.random(512) < share:
                count, total = count + int(missed), total + 1
                verdict = share_verdict(test, count, total)
                if verdict is not SequentialVerdict.OPEN:
                    break
        verdict_counts[verdict] += 1
    return verdict_counts


def drawn_voices(
    random: np.random.Generator, share: float, correlation: float, *, voices: int, runs: int
) -> NDArray[np.float64]:
    """The share of each voice in each run, with that mean; a beta distribution."""
    if not correlation:
        return np.full((runs, voices), share)
    spread = (1 - correlation) / correlation
    return random.beta(share * spread, (1 - share) * spread, (runs, voices))


def voices_covered(
    random: np.random.Generator, share: float, correlation: float, *, voices: int, trials: int, runs: int
) -> tuple[int, int]:
    """Of `runs` intervals over voices, those that lie above the mean of all voices, and those that lie below it."""
    missed = random.binomial(trials, drawn_voices(random, share, correlation, voices=voices, runs=runs))
    above = below = 0
    for run in missed:
        estimate = over_voices(Share(int(count), trials) for count in run)
        assert estimate is not None
        above += estimate.interval[0] > share
        below += estimate.interval[1] < share
    return above, below


def voices_verdicts(
    random: np.random.Generator,
    test: SequentialTest,
    share: float,
    correlation: float,
    *,
    voices: int,
    trials: int,
    runs: int,
) -> dict[SequentialVerdict, int]:
    """Verdicts of runs in which the voices take turns, looked at after each round, for so many rounds."""
    shares = drawn_voices(random, share, correlation, voices=voices, runs=runs)
    verdict_counts = dict.fromkeys(SequentialVerdict, 0)
    for of_run in shares:
        missed = (random.random((trials, voices)) < of_run).cumsum(axis=0)
        verdicts = (
            voices_verdict(test, [Share(int(count), played) for count in row]) for played, row in enumerate(missed, 1)
        )
        verdict_counts[
            next((verdict for verdict in verdicts if verdict is not SequentialVerdict.OPEN), SequentialVerdict.OPEN)
        ] += 1
    return verdict_counts


CATEGORIES = 11


def confusion_matrix(right: float, categories: int = CATEGORIES, spread: int = 3) -> NDArray[np.float64]:
    """Says what is right so often, else one of the next categories, as neighbours in the guide are mixed up."""
    matrix = np.eye(categories) * right
    for away in range(1, spread + 1):
        matrix += np.roll(np.eye(categories), away, axis=1) * (1 - right) / spread
    return matrix


def prevalences(categories: int = CATEGORIES) -> NDArray[np.float64]:
    """A few categories are common, most are rare."""
    shares = np.asarray(1.0 / np.arange(1, categories + 1))
    return np.asarray(shares / shares.sum())


def truths(items: int, random: np.random.Generator, categories: int = CATEGORIES) -> NDArray[np.int64]:
    return random.choice(categories, items, p=prevalences(categories))


def drawn_labels(
    truth: NDArray[np.int64], matrices: list[NDArray[np.float64]], random: np.random.Generator, missing: float = 0.0
) -> NDArray[np.int64]:
    """A table of labels, raters × items."""
    drawn = random.random((len(matrices), len(truth), 1))
    labels = np.stack(
        [(row > np.cumsum(matrix, axis=1)[truth]).sum(axis=1) for row, matrix in zip(drawn, matrices, strict=True)]
    )
    return np.where(random.random(labels.shape) < missing, MISSING, np.minimum(labels, matrices[0].shape[0] - 1))


def with_shared_errors(
    truth: NDArray[np.int64], labels: NDArray[np.int64], share: float, random: np.random.Generator, follow: float = 0.9
) -> NDArray[np.int64]:
    """The labels, where on such a share of the items each rater falls into the same error so often.

    As with responses that the guide leaves open, or that a recording hides: the raters are not independent there.
    """
    trap = random.random(len(truth)) < share
    falls = trap & (random.random(labels.shape) < follow) & (labels != MISSING)
    return np.where(falls, (truth + 1) % CATEGORIES, labels)


def true_raw_and_alpha(matrices: list[NDArray[np.float64]], shares: NDArray[np.float64]) -> tuple[float, float]:
    """Raw agreement and alpha of such raters on endlessly many items, all labelled by all."""
    raters = len(matrices)
    pairs = [(a, b) for a in range(raters) for b in range(raters) if a < b]
    raw = float(np.mean([shares @ (matrices[a] * matrices[b]).sum(axis=1) for a, b in pairs]))
    margin = np.mean([shares @ matrix for matrix in matrices], axis=0)
    by_chance = 1 - float((margin**2).sum())
    return raw, 1 - (1 - raw) / by_chance
