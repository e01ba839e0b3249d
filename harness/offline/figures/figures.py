"""Results of an offline evaluation: the totals of its log and their intervals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from harness.model.choices import LimitBasis
from harness.model.frozen import frozen
from harness.model.offline import CountingRules
from harness.offline.figures.counts import OfflineCounts, PhraseCounts, Tally
from harness.offline.request import DeclaredLimits
from harness.offline.wake_log import wake_totals
from harness.statistics.intervals import Interval, clopper_pearson, garwood, wilson
from harness.statistics.significance import Clustering, clustering
from harness.statistics.verdict import RATE, SHARE, DeclaredLimit
from harness.statistics.voices import over_clusters
from harness.statistics.word_intervals import wer_interval

CLUSTERED_P = 0.05
"""Largest p-value with which false accepts are said to come in clusters."""
BOOTSTRAP_SEED = 1
"""Any fixed seed: the same files then give the same interval."""


@frozen
class Figures:
    """Totals by the log's keys, without those that have no data, and 95 % intervals. Rates are per hour, shares 0–1."""

    counts: OfflineCounts
    counting: CountingRules
    totals: dict[str, float]
    false_accepts: Interval | None = None
    """Interval of the false accepts per hour (Garwood)."""
    false_rejects: Interval | None = None
    """Interval of the share of missed phrases."""
    false_rejects_wilson: Interval | None = None
    """The same by Wilson's method; None with clusters."""
    with_substitutions: Interval | None = None
    """Interval of the share of missed or substituted phrases; only with references."""
    with_substitutions_wilson: Interval | None = None
    """The same by Wilson's method; None with clusters."""
    word_errors: Interval | None = None
    clustering: Clustering | None = None
    """A test of whether false accepts cluster in files; None without files."""
    by_file: bool = False
    """Whether the intervals of false rejects take all plays of a file as one cluster."""
    talkers: int = 0
    """Number of talkers that these intervals take as clusters instead (all unknown talkers are one); 0 for none."""
    unknown_talkers: bool = False
    """Whether there are phrases without a known talker."""
    copies: int = 0
    """Number of files with the same bytes as another; 0 if no file was hashed."""

    @property
    def clustered(self) -> bool:
        """Whether false accepts come in clusters, so that Garwood's interval is too narrow."""
        return self.clustering is not None and self.clustering.index > 1 and self.clustering.p < CLUSTERED_P


def totals_of(counts: OfflineCounts, counting: CountingRules) -> dict[str, float]:
    """The log's totals, by key. Rates use the hours as rounded in the log; a rate without data is left out."""
    lines = {key.value: count for key, count in counts.lines.items()}
    hours = counts.exposure_hours(counting)
    return wake_totals(lines, hours, count_in_vocabulary=counting.count_in_vocabulary, words=counts.words)


def figures_of(tally: Tally, counting: CountingRules) -> Figures:
    """The totals and intervals of everything that a tally has counted."""
    counts = tally.counts
    hours = counts.exposure_hours(counting)
    phrases = counts.true_accepts + counts.rejects_and_substitutions
    missed, wrong = counts.false_rejects, counts.rejects_and_substitutions
    referenced = counts.has_references
    by_talker = tally.talkers
    clusters = list(by_talker.values()) or tally.counts_by_file

    def share_interval(count: int, count_in: Callable[[PhraseCounts], int]) -> Interval | None:
        """Interval of the share of `count` in all phrases. count_in: the part of it in one cluster."""
        if not clusters:
            return clopper_pearson(count, phrases)
        return over_clusters([count_in(cluster) for cluster in clusters], [cluster.total for cluster in clusters])

    with_substitutions = accept_clustering = None
    if referenced:
        with_substitutions = share_interval(wrong, lambda cluster: cluster.missed + cluster.substituted)
    if tally.false_accepts:
        exposure_hours = np.asarray(tally.exposure_s) / 3600
        accept_clustering = clustering(np.asarray(tally.false_accepts), exposure_hours, seed=BOOTSTRAP_SEED)
    return Figures(
        counts=counts,
        counting=counting,
        totals=totals_of(counts, counting),
        false_accepts=garwood(counts.false_accepts(counting), hours) if hours > 0 else None,
        false_rejects=share_interval(missed, lambda cluster: cluster.missed),
        false_rejects_wilson=None if clusters else wilson(missed, phrases),
        with_substitutions=with_substitutions,
        with_substitutions_wilson=wilson(wrong, phrases) if referenced and not clusters else None,
        word_errors=wer_interval(np.asarray(tally.word_errors), np.asarray(tally.words)) if tally.words else None,
        clustering=accept_clustering,
        by_file=bool(clusters) and not by_talker,
        talkers=len(by_talker),
        unknown_talkers="" in by_talker,
        # Not by np.unique, which imports NumPy's masked arrays.
        copies=int(np.count_nonzero(np.diff(np.sort(tally.content_hashes)) == 0)),
    )


def limits_of(limits: DeclaredLimits, figures: Figures) -> tuple[DeclaredLimit, ...]:
    """Each declared limit. A result without data, or without the interval that is compared, is undecided."""
    totals = figures.totals
    # With references the percentage covers all errors, as on the console.
    with_substitutions = "FR+SBRATIO" in totals
    accepts = figures.false_accepts
    if accepts is not None and figures.clustered and figures.clustering is not None:
        # The interval by file is rough where files are few; a verdict must hold by both.
        low, high = figures.clustering.interval
        accepts = min(accepts[0], low), max(accepts[1], high)
    rejects, reject_total = figures.false_rejects, "FRRATIO"
    if with_substitutions:
        rejects, reject_total = figures.with_substitutions, "FR+SBRATIO"
    max_reject_share = None if limits.false_rejects_percent is None else limits.false_rejects_percent / 100
    max_rate = limits.false_accepts_per_hour
    results = (
        ("--max-fa-per-hour", "false accepts per hour", RATE, max_rate, totals.get("FARATE"), accepts),
        ("--max-fr", "false rejects", SHARE, max_reject_share, _share(totals, reject_total), rejects),
        ("--max-wer", "WER", SHARE, limits.wer, _share(totals, "WER"), figures.word_errors),
    )
    compares_bound = limits.on is LimitBasis.BOUND
    return tuple(
        DeclaredLimit(
            option, result, limit, value, unit=unit, interval=interval, has_interval=True, compares_bound=compares_bound
        )
        for option, result, unit, limit, value, interval in results
        if limit is not None
    )


def _share(totals: dict[str, float], percentage: str) -> float | None:
    """A total in per cent as a share 0–1; None without data."""
    return None if percentage not in totals else totals[percentage] / 100
