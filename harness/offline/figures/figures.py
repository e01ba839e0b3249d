"""Results of an offline evaluation: the totals of its log and their intervals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from harness.model.choices import LimitsOn
from harness.model.offline import Counting
from harness.offline.asked import DeclaredLimits
from harness.offline.figures.counts import OfflineCounts, Tally
from harness.offline.wake_log import StatedWords, wake_totals
from harness.statistics.intervals import Interval, clopper_pearson, garwood, wilson
from harness.statistics.significance import Clustering, clustering
from harness.statistics.voices import over_clusters
from harness.statistics.word_intervals import wer_interval

CLUSTERED_P = 0.05
BOOTSTRAP_SEED = 1


@dataclass(frozen=True, slots=True)
class Figures:
    """Totals by the log's keys, without those that have no data, and 95 % intervals. Rates are per hour, shares 0–1.
    clustering: of false accepts over files. by_file: whether the intervals of false rejects take each file in all its
    conditions as a whole. talkers: how many talkers they take as a whole instead; unknown ones are one."""

    counts: OfflineCounts
    counting: Counting
    totals: dict[str, float]
    false_accepts: Interval | None = None
    false_rejects: Interval | None = None
    false_rejects_wilson: Interval | None = None
    with_substitutions: Interval | None = None
    with_substitutions_wilson: Interval | None = None
    word_errors: Interval | None = None
    clustering: Clustering | None = None
    by_file: bool = False
    talkers: int = 0
    unknown_talkers: bool = False

    @property
    def clustered(self) -> bool:
        """Whether false accepts come in clusters, so that Garwood's interval is too narrow."""
        return self.clustering is not None and self.clustering.index > 1 and self.clustering.p < CLUSTERED_P


def totals(counts: OfflineCounts, counting: Counting) -> dict[str, float]:
    """The log's totals. Rates use the hours as the log has them; those without data are left out."""
    lines = {key.value: count for key, count in counts.lines.items()}
    said = counts.words
    words = StatedWords(said.words, said.substitutions, said.insertions, said.deletions)
    hours = counts.exposure_hours(counting)
    return wake_totals(lines, hours, count_in_vocabulary=counting.count_in_vocabulary, words=words)


def figures(tally: Tally, counting: Counting) -> Figures:
    """The results of what was counted."""
    counts = tally.counts
    hours = counts.exposure_hours(counting)
    files = counts.true_accepts + counts.rejects_and_substitutions
    missed, wrong = counts.false_rejects, counts.rejects_and_substitutions
    referenced = counts.has_references
    by_talker = tally.talkers
    clusters = list(by_talker.values()) or tally.files
    talkers, by_file = len(by_talker), bool(clusters) and not by_talker

    def rejects(count: int, *columns: int) -> Interval | None:
        if not clusters:
            return clopper_pearson(count, files)
        return over_clusters([sum(one[at] for at in columns) for one in clusters], [one[2] for one in clusters])

    return Figures(
        counts,
        counting,
        totals(counts, counting),
        garwood(counts.false_accepts(counting), hours) if hours > 0 else None,
        rejects(missed, 0),
        None if clusters else wilson(missed, files),
        rejects(wrong, 0, 1) if referenced else None,
        wilson(wrong, files) if referenced and not clusters else None,
        wer_interval(np.asarray(tally.word_errors), np.asarray(tally.words)) if tally.words else None,
        clustering(np.asarray(tally.false_accepts), np.asarray(tally.exposure_s) / 3600, seed=BOOTSTRAP_SEED)
        if tally.false_accepts
        else None,
        by_file,
        talkers,
        "" in by_talker,
    )


@dataclass(frozen=True, slots=True)
class LimitCheck:
    """A declared limit and what it is compared with, in its unit. bound: the upper end of the 95 % interval.

    value: None without data, which fails every limit.
    """

    option: str
    what: str
    wanted: float
    value: float | None
    bound: float | None
    unit: str

    def fails(self, on: LimitsOn) -> bool:
        found = self.value if on is LimitsOn.ESTIMATE or self.value is None else self.bound
        return found is None or found > self.wanted

    def failure(self, on: LimitsOn) -> str:
        """In a sentence, for one that fails."""
        unit, begin = self.unit, f"{self.option}: {self.what}"
        if self.value is None:
            return f"{begin} is n/a, which no limit allows"
        if on is LimitsOn.ESTIMATE:
            return f"{begin} is {self.value:.4g}{unit}, above {self.wanted:g}{unit}"
        hint = f"(--limits-on estimate compares {self.value:.4g}{unit})"
        if self.bound is None:
            return f"{begin} has no interval, which no limit allows {hint}"
        return (
            f"{begin} is {self.value:.4g}{unit}, and the upper end of its 95 % interval, {self.bound:.4g}{unit}, is "
            f"above {self.wanted:g}{unit} {hint}"
        )


def limit_checks(limits: DeclaredLimits, found: Figures) -> Iterator[LimitCheck]:
    """Each declared limit."""
    totals = found.totals
    # With references the percentage covers all errors, as on the console.
    substitutions = "FR+SBRATIO" in totals
    accepts = None if found.false_accepts is None else found.false_accepts[1]
    if accepts is not None and found.clustered and found.clustering is not None:
        accepts = max(accepts, found.clustering.interval[1])
    rejects = found.with_substitutions if substitutions else found.false_rejects
    wer = None if limits.wer is None else 100 * limits.wer
    for option, what, wanted, value, bound, unit in (
        ("--max-fa-per-hour", "false accepts per hour", limits.false_accepts_per_hour,
         totals.get("FARATE"), accepts, ""),
        ("--max-fr", "the false-reject ratio", limits.false_rejects_percent,
         totals.get("FR+SBRATIO" if substitutions else "FRRATIO"), _upper_percent(rejects), " %"),
        ("--max-wer", "the WER", wer, totals.get("WER"), _upper_percent(found.word_errors), " %"),
    ):  # fmt: skip
        if wanted is not None:
            yield LimitCheck(option, what, wanted, value, bound, unit)


def limit_failures(limits: DeclaredLimits, found: Figures) -> Iterator[str]:
    """A sentence for each limit that fails. A result without data fails every limit."""
    return (one.failure(limits.on) for one in limit_checks(limits, found) if one.fails(limits.on))


def _upper_percent(interval: Interval | None) -> float | None:
    return None if interval is None else 100 * interval[1]
