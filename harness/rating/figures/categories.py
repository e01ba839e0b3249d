"""Counts of first responses in each category, and of queries without one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from statistics import median

from harness.base.grouping import group_by
from harness.base.text_table import sorted_labels
from harness.model.choices import By, CategoryGroup, Reading, ResultGrouping
from harness.model.frozen import frozen
from harness.model.judgment import Category, SubFlag
from harness.rating.figures.judged_responses import Basis, QueryOutcome, RatedTrial
from harness.session.figures.trials import DECIDED, label_of
from harness.statistics.intervals import CONFIDENCE, Interval, clustered_interval, design_effect, wilson
from harness.statistics.word_intervals import wer_interval

SIMULTANEOUS_CONFIDENCE = 1 - (1 - CONFIDENCE) / len(Category)
"""Confidence of each interval such that all eleven hold at once (Bonferroni)."""


GROUP_MEMBERS: dict[CategoryGroup, frozenset[Category]] = {
    CategoryGroup.SATISFIED: frozenset({Category.CORRECT}),
    CategoryGroup.HELPFUL: frozenset(
        {Category.CORRECT, Category.PARTIALLY_CORRECT, Category.INFERRABLE, Category.FINDABLE}
    ),
    CategoryGroup.ASKS_BACK: frozenset({Category.CLARIFICATION, Category.SLOT_REQUEST}),
}
Figure = Category | CategoryGroup


class Method(StrEnum):
    """Method of an interval. All intervals apply to further queries like these.

    - WILSON: each query was said once.
    - CLUSTERED: repetitions of a query count as far as they differ.
    - TOO_FEW: there is only one query, repeated, and so no interval.
    """

    WILSON = "wilson"
    CLUSTERED = "clustered"
    TOO_FEW = "too_few_queries"

    @classmethod
    def of(cls, queries: int, responses: int) -> Method:
        if queries == responses:
            return cls.WILSON
        return cls.CLUSTERED if queries > 1 else cls.TOO_FEW


@frozen
class CountedShare:
    """`count` of `total` responses.

    - interval: 95 % interval.
    - together: a wider one, such that the intervals of all eleven categories hold at once.

    Both intervals are None for a total of 0, and for a single repeated query.
    """

    count: int
    total: int
    interval: Interval | None = None
    together: Interval | None = None

    @property
    def value(self) -> float | None:
        return self.count / self.total if self.total else None


@frozen
class CoreLack:
    """Numbers of admitted defeats on which the readings differ, by the source for a missing core capability."""

    by_rater: int = 0
    by_scenario: int = 0
    by_both: int = 0

    @property
    def total(self) -> int:
        return self.by_rater + self.by_scenario + self.by_both


@frozen
class CategoryFigures:
    """Category counts of some queries.

    - outcomes: number of queries with each `QueryOutcome`; they add up to the planned queries.
    - unassessed: number of queries that count as recognised without assessment.
    - bases: number of categories with each basis.
    - shares: for each reading, the share of each of the eleven categories and of the derived groups.
    - core: the responses on which the readings differ.
    - sub_flags: number of responses with each sub-flag.
    - queries: number of different queries with a category.
    - method: method of the intervals.
    - flagged_too: number of responses with a category that some rater put aside.
    - raters: number of raters who gave a category.
    """

    outcomes: tuple[tuple[QueryOutcome, int], ...]
    unassessed: int
    bases: tuple[tuple[Basis, int], ...]
    shares: tuple[tuple[Reading, tuple[tuple[Figure, CountedShare], ...]], ...]
    core: CoreLack
    sub_flags: tuple[tuple[SubFlag, int], ...]
    queries: int
    method: Method
    flagged_too: int = 0
    raters: int = 0

    def count(self, *outcomes: QueryOutcome) -> int:
        """Number of queries with one of these outcomes."""
        return sum(count for outcome, count in self.outcomes if outcome in outcomes)

    @property
    def planned(self) -> int:
        return sum(count for _, count in self.outcomes)

    @property
    def asked(self) -> int:
        """Number of queries that were played to a result."""
        return self.planned - self.count(QueryOutcome.NOT_PLAYED, QueryOutcome.NOT_TESTED)

    @property
    def recognised(self) -> int:
        """Number of queries that were recognised by evidence, or not assessed."""
        return self.asked - self.count(QueryOutcome.NOT_RECOGNISED, QueryOutcome.INCONCLUSIVE)

    @property
    def answered(self) -> int:
        """Number of queries with a first response to judge."""
        return self.recognised - self.count(QueryOutcome.SILENT, QueryOutcome.NO_RECORDING)

    @property
    def judged(self) -> int:
        """Number of queries with a category from a rater, including tied ones."""
        return self.count(QueryOutcome.CATEGORY, QueryOutcome.TIED)

    @property
    def total(self) -> int:
        """Number of responses with a final category, the denominator of the shares."""
        return self.count(QueryOutcome.CATEGORY)

    def share(self, figure: Figure, reading: Reading = Reading.ADMITTED) -> CountedShare:
        return dict(dict(self.shares)[reading])[figure]

    @property
    def why_not(self) -> str:
        """Why there is no share; "" if there is one."""
        if self.total:
            return ""
        if not self.planned:
            return "no query was planned"
        if not self.asked:
            return "no query was played to the end"
        if not self.answered:
            return "no query was answered"
        if self.judged:
            return f"raters differ on all {self.judged} judged responses, and none is settled"
        return "nothing was judged"


def category_figures(trials: Iterable[RatedTrial]) -> CategoryFigures:
    """The category counts of the queries of one or more sessions."""
    all_trials = tuple(trials)
    outcomes = Counter(trial.outcome for trial in all_trials)
    with_category = [trial for trial in all_trials if trial.outcome is QueryOutcome.CATEGORY]
    by_query = group_by((trial.query, trial) for trial in with_category)
    method = Method.of(len(by_query), len(with_category))
    queries = list(by_query.values())
    totals = [len(responses) for responses in queries]

    def shares(reading: Reading) -> Iterator[tuple[Figure, CountedShare]]:
        query_counts = [Counter(category_under(trial, reading) for trial in responses) for responses in queries]
        counts: dict[Figure, list[int]] = {
            category: [counter[category] for counter in query_counts] for category in Category
        }
        for group in CategoryGroup:
            counts[group] = [sum(counter[category] for category in GROUP_MEMBERS[group]) for counter in query_counts]
        # A rare category says too little about the similarity of repetitions, so all eleven are pooled.
        effect = design_effect([counts[figure] for figure in Category], totals)
        for figure, figure_counts in counts.items():
            yield figure, counted_share(figure_counts, totals, effect)

    bases = Counter(trial.basis for trial in with_category)
    flags = Counter(flag for trial in with_category for flag in trial.sub_flags)
    lack_sources = Counter(map(core_lack_sources, with_category))
    judged = [trial.judged for trial in all_trials if trial.judged is not None]
    return CategoryFigures(
        outcomes=tuple((outcome, outcomes[outcome]) for outcome in QueryOutcome),
        unassessed=sum(not trial.assessed for trial in all_trials if _is_recognised(trial.outcome)),
        bases=tuple((basis, bases[basis]) for basis in Basis),
        shares=tuple((reading, tuple(shares(reading))) for reading in Reading),
        core=CoreLack(
            by_rater=lack_sources[True, False], by_scenario=lack_sources[False, True], by_both=lack_sources[True, True]
        ),
        sub_flags=tuple((flag, flags[flag]) for flag in SubFlag),
        queries=len(by_query),
        method=method,
        flagged_too=sum(
            any(row.flags for row in trial.judged.judgments) for trial in with_category if trial.judged is not None
        ),
        raters=len({row.rater for response in judged for row in response.submitted}),
    )


def core_lack_sources(trial: RatedTrial) -> tuple[bool, bool]:
    """Whether an admitted defeat concerns a core capability, according to its raters, and to its scenario."""
    if trial.category is not Category.ADMITTED_DEFEAT:
        return False, False
    return SubFlag.CORE_CAPABILITY_MISSING in trial.sub_flags, trial.trial.core_capability


def category_under(trial: RatedTrial, reading: Reading) -> Category | None:
    """The category of a query under a reading; None without a category."""
    return Category.WRONG if reading is Reading.WRONG and any(core_lack_sources(trial)) else trial.category


def counts_as(trial: RatedTrial, figure: Figure, reading: Reading = Reading.ADMITTED) -> bool:
    """Whether the category of a query is this one, or belongs to this group."""
    category = category_under(trial, reading)
    return category in GROUP_MEMBERS[figure] if isinstance(figure, CategoryGroup) else category is figure


def counted_share(counts: Sequence[int], totals: Sequence[int], effect: float | None) -> CountedShare:
    """The share sum(counts) of sum(totals) responses.

    - counts, totals: one for each query.
    - effect: the `design_effect` of repetitions.
    """
    count, total = sum(counts), sum(totals)
    if Method.of(len(totals), total) is Method.WILSON:
        return CountedShare(count, total, wilson(count, total), wilson(count, total, SIMULTANEOUS_CONFIDENCE))
    interval = clustered_interval(counts, totals, min_effect=effect)
    return CountedShare(count, total, interval, clustered_interval(counts, totals, SIMULTANEOUS_CONFIDENCE, effect))


def _is_recognised(outcome: QueryOutcome) -> bool:
    return outcome not in (
        QueryOutcome.NOT_PLAYED,
        QueryOutcome.NOT_TESTED,
        QueryOutcome.NOT_RECOGNISED,
        QueryOutcome.INCONCLUSIVE,
    )


MANY_ATTEMPTS = "3 or more"
NEVER = ""


def label_by(trial: RatedTrial, grouping: By) -> str:
    """The label of a query in a grouping; "" if it has none."""
    match grouping:
        case ResultGrouping.DEVICE:
            return trial.trial.device
        case ResultGrouping.CLASS:
            return trial.trial.query_class
        case ResultGrouping.QUERY:
            return trial.trial.query_id
        case ResultGrouping.SESSION:
            return trial.session_id
        case ResultGrouping.ATTEMPTS:
            if trial.attempts is None:
                return NEVER
            return str(trial.attempts) if trial.attempts < 3 else MANY_ATTEMPTS
        case _:
            return label_of(trial.trial, trial.trial.device, grouping)


def grouped(trials: Iterable[RatedTrial], grouping: By) -> tuple[tuple[str, tuple[RatedTrial, ...]], ...]:
    """The queries of each label. Labels are sorted, numbers by size, with "" last."""
    groups = group_by((label_by(trial, grouping), trial) for trial in trials)
    return tuple((name, tuple(groups[name])) for name in sorted_labels(list(groups)))


@frozen
class CrossedFigures:
    """Queries by two groupings at once.

    - by: the two groupings.
    - rows, columns: their labels.
    - cells: the counts of each pair of labels, row by row; None without queries.
    """

    by: tuple[By, By]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[CategoryFigures | None, ...], ...]


def crossed(trials: Sequence[RatedTrial], first: By, second: By) -> CrossedFigures:
    """The category counts for each pair of labels."""
    rows = [label for label, _ in grouped(trials, first)]
    columns = [label for label, _ in grouped(trials, second)]
    pairs = group_by(((label_by(trial, first), label_by(trial, second)), trial) for trial in trials)
    cells = tuple(
        tuple(category_figures(pairs[row, column]) if (row, column) in pairs else None for column in columns)
        for row in rows
    )
    return CrossedFigures((first, second), tuple(rows), tuple(columns), cells)


@frozen
class Waits:
    """The pauses before attempts after the first.

    - count: number of known pauses.
    - least_s, median_s, most_s: of the known pauses; None without any.
    - shorter: number of pauses shorter than in the scenario.
    - unknown: number of pauses that the log does not contain.
    """

    count: int = 0
    least_s: float | None = None
    median_s: float | None = None
    most_s: float | None = None
    shorter: int = 0
    unknown: int = 0


@frozen
class RepromptFigures:
    """The attempts of decided queries whose recognition was assessed.

    - needed: (attempts, number of queries that needed them), ascending.
    - never: number of queries that were never recognised; the mean does not include them.
    - first: share of all assessed queries that were recognised at the first attempt.
    - mean: mean number of attempts of recognised queries, with its 95 % interval (None for fewer than two queries).
    - unassessed: number of decided queries that are left out.
    """

    needed: tuple[tuple[int, int], ...]
    never: int
    first: CountedShare
    mean: float | None
    mean_interval: Interval | None
    unassessed: int
    waits: Waits

    @property
    def recognised(self) -> int:
        return sum(queries for _, queries in self.needed)

    @property
    def assessed(self) -> int:
        return self.recognised + self.never


def reprompt_figures(trials: Iterable[RatedTrial]) -> RepromptFigures:
    """The attempts of some queries. In intervals, repetitions of a query count as far as they differ."""
    decided = [trial for trial in trials if trial.progress.outcome in DECIDED]
    assessed = [trial for trial in decided if trial.assessed]
    by_query = group_by((trial.query, trial.attempts) for trial in assessed)
    # For each query, the attempts that each of its repetitions needed; None if it was never recognised.
    queries = list(by_query.values())
    needed_attempts = [attempts for repetitions in queries for attempts in repetitions if attempts is not None]
    totals = [len(repetitions) for repetitions in queries]
    at_first = [repetitions.count(1) for repetitions in queries]
    after_reprompt = [total - first for first, total in zip(at_first, totals, strict=True)]
    return RepromptFigures(
        needed=tuple(sorted(Counter(needed_attempts).items())),
        never=len(assessed) - len(needed_attempts),
        first=counted_share(at_first, totals, design_effect([at_first, after_reprompt], totals)),
        mean=sum(needed_attempts) / len(needed_attempts) if needed_attempts else None,
        mean_interval=_mean_interval(queries),
        unassessed=len(decided) - len(assessed),
        waits=_waits(decided),
    )


def _mean_interval(queries: list[list[int | None]]) -> Interval | None:
    """The interval of the mean number of attempts; None for fewer than two recognised queries.

    Additional attempts per query are computed as word errors per word. queries: as in `reprompt_figures`.
    """
    additional = [[attempts - 1 for attempts in repetitions if attempts is not None] for repetitions in queries]
    recognised = [counts for counts in additional if counts]
    interval = wer_interval([sum(counts) for counts in recognised], [len(counts) for counts in recognised])
    if interval is None:
        return None
    low, high = interval
    return 1 + low, 1 + high


def _waits(trials: Iterable[RatedTrial]) -> Waits:
    waits_s: list[float] = []
    shorter = unknown = 0
    for trial in trials:
        take = trial.progress.counting
        if take is None:
            continue
        for attempt in take.attempts:
            if attempt.attempt == 1:
                continue
            if attempt.waited_s is None:
                unknown += 1
                continue
            waits_s.append(attempt.waited_s)
            if attempt.waited_s < trial.trial.reprompt.context_wait_s:
                shorter += 1
    if not waits_s:
        return Waits(unknown=unknown)
    return Waits(len(waits_s), min(waits_s), median(waits_s), max(waits_s), shorter, unknown)
