"""Agreement of the raters of one or more sessions, their consensus, and disputed items."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from harness.base.grouping import group_by
from harness.model.frozen import frozen
from harness.model.judgment import (
    EXERCISE,
    SUB_FLAGS_OF,
    Category,
    Exercise,
    GoldItem,
    Judgment,
    JudgmentStatus,
    SubFlag,
    in_force,
)
from harness.rating.figures.judged_responses import JudgedResponse, RatedSession
from harness.statistics.agreement import (
    DOUBTFUL,
    MISSING,
    Agreement,
    DawidSkene,
    PairAgreement,
    agreement,
    dawid_skene,
    leading_label,
    leave_one_out,
    pairs,
)
from harness.statistics.intervals import Share

WHOLE_SHARE = 0.95
"""A rater who heard at least this share of a clip counts as having heard it whole. Players round times and cut
silence."""


@frozen
class RaterFigures:
    """Counts of one rater over all sessions."""

    rater: str
    submitted: int = 0
    skipped: int = 0
    flagged: int = 0
    held: int = 0
    """These four: number of judgments in force on responses that count, by status."""
    withdrawn: int = 0
    """Number of rows that took a judgment back."""
    outdated: int = 0
    """Number of judgments in force on responses that no longer count, since their trial was run again."""
    times_s: tuple[float, ...] = ()
    """Times to answer, as far as they are known."""
    too_fast: Share = field(default_factory=Share)
    """Share of answers in less time than the response lasts, of those with a known time."""
    heard_whole: Share = field(default_factory=Share)
    """Share of answers after the whole response was heard, of those with a known play time."""
    transcript_shown: Share = field(default_factory=Share)
    """Share of answers with the transcript shown, of those of which this is known."""
    gold: Share = field(default_factory=Share)
    """Share of known answers that were right."""
    exercises: Share = field(default_factory=Share)
    """Share of first answers to exercises that were right."""
    leave_one_out: Share = field(default_factory=Share)
    """Share of labels that equal the consensus of the other raters (leave-one-out)."""
    first_half: Share = field(default_factory=Share)
    second_half: Share = field(default_factory=Share)
    """The same for the first and the second half of the labels, in the order of giving."""
    program: bool = False
    """Whether it is a program, whose labels do not count in the numbers of people."""

    @property
    def quartiles_s(self) -> tuple[float, float, float] | None:
        """Low quartile, median and high quartile of the times to answer; None without any."""
        if not self.times_s:
            return None
        low, median, high = map(float, np.quantile(np.array(self.times_s, np.float64), (0.25, 0.5, 0.75)))
        return low, median, high

    @property
    def per_hour(self) -> float | None:
        """Answers per hour of answering, not counting pauses between items."""
        total_s = float(np.array(self.times_s, np.float64).sum())
        return 3600 * len(self.times_s) / total_s if total_s > 0 else None


def rater_figures(
    sessions: Sequence[RatedSession],
    gold: Mapping[tuple[str, str], GoldItem],
    exercises: Iterable[Exercise],
    matches: Mapping[str, Sequence[bool]],
) -> tuple[RaterFigures, ...]:
    """Counts of every rater, sorted by name. A name stands for one rater in all sessions.

    - gold: known answers by session and trial.
    - matches: for each rater, whether each label (oldest first) equals the consensus of the others.
    """
    rows_in_force: dict[str, list[tuple[JudgedResponse, Judgment]]] = defaultdict(list)
    rows: dict[str, list[Judgment]] = defaultdict(list)
    for session in sessions:
        for response in session.responses:
            for judgment in (*response.judgments, *response.programs):
                rows_in_force[judgment.rater].append((response, judgment))
        for row in {row.id: row for row in session.rows}.values():
            if not row.adjudicates:
                rows[row.rater].append(row)
    exercise_by_trial = {exercise.trial_id: exercise for exercise in exercises}
    return tuple(
        _figures_of_rater(
            rater, rows_in_force.get(rater, []), rows[rater], gold, exercise_by_trial, matches.get(rater, ())
        )
        for rater in sorted(rows)
    )


def _figures_of_rater(
    rater: str,
    rows_in_force: Sequence[tuple[JudgedResponse, Judgment]],
    rows: Sequence[Judgment],
    gold: Mapping[tuple[str, str], GoldItem],
    exercises: Mapping[str, Exercise],
    matches: Sequence[bool],
) -> RaterFigures:
    """Counts of one rater. rows: all of their rows, oldest first. The other parameters are as in `rater_figures`."""
    response_rows = [row for row in rows if not row.trial_id.startswith(EXERCISE)]
    statuses = Counter(judgment.status for _, judgment in rows_in_force)
    submitted = [
        (response, judgment) for response, judgment in rows_in_force if judgment.status is JudgmentStatus.SUBMITTED
    ]
    counting_ids = {judgment.id for _, judgment in rows_in_force}
    half = len(matches) // 2
    return RaterFigures(
        rater=rater,
        submitted=statuses[JudgmentStatus.SUBMITTED],
        skipped=statuses[JudgmentStatus.SKIPPED],
        flagged=statuses[JudgmentStatus.FLAGGED],
        held=statuses[JudgmentStatus.HELD],
        withdrawn=sum(row.status is JudgmentStatus.WITHDRAWN for row in response_rows),
        outdated=sum(row.id not in counting_ids for row in in_force(response_rows)),
        times_s=tuple(judgment.time_to_answer_s for _, judgment in submitted if judgment.time_to_answer_s is not None),
        too_fast=_share(
            judgment.time_to_answer_s < response.response.clip.duration_s
            for response, judgment in submitted
            if judgment.time_to_answer_s is not None and not judgment.program
        ),
        heard_whole=_share(
            judgment.heard_ms >= 1000 * WHOLE_SHARE * response.response.clip.duration_s
            for response, judgment in submitted
            if judgment.heard_ms is not None
        ),
        transcript_shown=_share(
            judgment.transcript_shown for _, judgment in submitted if judgment.transcript_shown is not None
        ),
        gold=_share(
            gold_item.is_right(judgment.category)
            for response, judgment in submitted
            if (gold_item := gold.get((response.session_id, response.trial.trial.id))) is not None
        ),
        exercises=_first_answer_share(rows, exercises),
        leave_one_out=_share(matches),
        first_half=_share(matches[:half]),
        second_half=_share(matches[half:]) if half else Share(),
        program=any(row.program for row in rows),
    )


def _first_answer_share(rows: Sequence[Judgment], exercises: Mapping[str, Exercise]) -> Share:
    """The share of exercises with a right first answer. Later answers do not count, since they follow the
    explanation."""
    first_answers: dict[str, Judgment] = {}
    for row in rows:
        if row.trial_id in exercises and row.status is JudgmentStatus.SUBMITTED:
            first_answers.setdefault(row.trial_id, row)
    return _share(exercises[row.trial_id].is_right(row.category) for row in first_answers.values())


def _share(flags: Iterable[bool]) -> Share:
    """The share of True."""
    all_flags = list(flags)
    return Share(sum(all_flags), len(all_flags))


CATEGORIES = tuple(Category)
_CATEGORY_INDEX = {category: index for index, category in enumerate(CATEGORIES)}


@frozen
class AgreedItem:
    """A response with its labels.

    - labels: (rater, category) of each rater.
    - majority: the category that most raters gave; None for a tie.
    - consensus: the same if at least two gave it; None otherwise, and for gold items.
    - probability: probability of the consensus in the model of Dawid and Skene; None without a consensus. It only
      decides the order of a review.
    - settled: the category of an adjudication; None without one.
    - gold: the known category; None if it is not known.
    - consensus_raters: number of raters who gave the consensus.
    """

    session_id: str
    trial_id: str
    labels: tuple[tuple[str, Category], ...]
    majority: Category | None
    consensus: Category | None
    probability: float | None
    settled: Category | None
    gold: Category | None = None
    consensus_raters: int = 0

    @property
    def differing(self) -> bool:
        return len({category for _, category in self.labels}) > 1

    @property
    def disputed(self) -> bool:
        """Whether raters differ, without an adjudication."""
        return self.differing and self.settled is None

    @property
    def spread(self) -> float:
        """The share of different pairs among its pairs of labels."""
        label_pairs = list(combinations([category for _, category in self.labels], 2))
        differing = [first is not second for first, second in label_pairs]
        return sum(differing) / len(differing) if differing else 0.0

    @property
    def votes(self) -> Votes:
        """The number of raters who gave the consensus, and that of all raters of the response."""
        return self.consensus_raters, len(self.labels)

    @property
    def review_order(self) -> tuple[float, float]:
        """Sort key that puts the most divided responses first, and among these the least certain ones."""
        return -self.spread, self.probability or 0.0


Votes = tuple[int, int]
"""Number of raters who gave the consensus, and number of all raters of the response."""


@frozen
class VotesFigures:
    """The responses with the same votes.

    - items: their number.
    - doubtful: number of those of which the model is least certain (DOUBTFUL).
    - right: share of gold items with these votes on which the raters agree on a right category.
    """

    items: int = 0
    doubtful: int = 0
    right: Share = field(default_factory=Share)


@frozen
class SubFlagAgreement:
    """Numbers of pairs of equal labels that may have a sub-flag, by the raters who set it: both, one, neither."""

    both: int = 0
    one: int = 0
    neither: int = 0

    @property
    def set_again(self) -> Share:
        """If one rater sets it, how often the other one sets it too."""
        return Share(2 * self.both, 2 * self.both + self.one)


@frozen
class AgreementFigures:
    """Agreement over all sessions. Gold items are chosen, not sampled, so some results leave them out."""

    sessions: tuple[str, ...]
    raters: tuple[RaterFigures, ...]
    """Everybody with a row."""
    names: tuple[str, ...]
    """Raters with labels, in the order of the rows of `model`."""
    responses: int
    """Number of responses that could be judged."""
    items: tuple[AgreedItem, ...]
    """Responses with a label, in the order of the sessions, with gold items."""
    agreement: Agreement
    """Without gold items, as are `pairs`, `model` and `sub_flags`."""
    pairs: tuple[PairAgreement, ...]
    model: DawidSkene
    by_votes: Mapping[Votes, VotesFigures]
    """Responses with a consensus: those with many raters first, and of these those with much agreement."""
    sub_flags: tuple[tuple[SubFlag, SubFlagAgreement], ...]
    gold_items: int
    """Number of gold items with a label."""
    programs: tuple[str, ...] = ()
    """Programs with labels. They occur only in `raters` and `pairs`, where their numbers follow those of `names`."""

    @property
    def untouched(self) -> bool:
        """Whether nobody has judged, skipped or flagged a response."""
        return not self.raters

    @property
    def disputed(self) -> tuple[AgreedItem, ...]:
        """Items on which raters differ without an adjudication, in the order of a review, with gold items."""
        disputed = [item for item in self.items if item.disputed]
        return tuple(sorted(disputed, key=lambda item: item.review_order))

    def right(self, item: AgreedItem) -> Share:
        """The share of gold items on which the raters are right, of those with the same votes as this item."""
        votes = self.by_votes.get(item.votes)
        return Share() if votes is None else votes.right

    @property
    def settled(self) -> int:
        """Number of items that an adjudication settled."""
        return sum(item.settled is not None for item in self.items)


def agreement_figures(
    sessions: Sequence[RatedSession], gold: Sequence[GoldItem] = (), exercises: Sequence[Exercise] = ()
) -> AgreementFigures:
    """Agreement and statistics of the raters of these sessions.

    gold, exercises: known answers of a round. A rater is compared with the consensus of the *others* (leave-one-out).
    """
    gold_by_key = {(gold_item.session, gold_item.trial): gold_item for gold_item in gold}
    responses = [response for session in sessions for response in session.responses]
    judged = [response for response in responses if response.submitted]
    names = sorted({judgment.rater for response in judged for judgment in response.submitted})
    programs = sorted({row.rater for response in responses for row in response.programs if row.category is not None})
    labels = _label_table(judged, names)
    is_sampled = np.array([_key(response) not in gold_by_key for response in judged], np.bool_)
    sampled_labels = labels[:, is_sampled]
    sampled = [response for response in judged if _key(response) not in gold_by_key]
    model = dawid_skene(sampled_labels, len(CATEGORIES))
    items = _agreed_items(judged, is_sampled, model, gold_by_key)
    consensus_of_others = np.full(labels.shape, MISSING, np.int64)
    consensus_of_others[:, is_sampled] = leave_one_out(sampled_labels)
    matches = _matches_by_rater(judged, names, labels, consensus_of_others)
    program_pairs, program_matches = _program_agreement(sampled, names, programs, sampled_labels)
    return AgreementFigures(
        sessions=tuple(session.session_id for session in sessions),
        raters=rater_figures(sessions, gold_by_key, exercises, {**matches, **program_matches}),
        names=tuple(names),
        responses=len(responses),
        items=items,
        agreement=agreement(sampled_labels, len(CATEGORIES)),
        pairs=(*pairs(sampled_labels, len(CATEGORIES)), *program_pairs),
        model=model,
        by_votes=_figures_by_votes(items, judged, gold_by_key),
        sub_flags=_sub_flags(sampled),
        gold_items=len(judged) - len(sampled),
        programs=tuple(programs),
    )


def _program_agreement(
    judged: Sequence[JudgedResponse], people: Sequence[str], programs: Sequence[str], labels: NDArray[np.int64]
) -> tuple[list[PairAgreement], dict[str, list[bool]]]:
    """Compares programs with people: pairs, and for each program whether each label equals the consensus of the people.

    - judged: responses that are not gold items.
    - labels: table of the people's labels. Each program is compared as if it were the only one.
    """
    program_pairs: list[PairAgreement] = []
    matches: dict[str, list[bool]] = {}
    judged_by_programs = [replace(response, judgments=response.programs) for response in judged]
    for number, program in enumerate(programs):
        program_labels = _label_table(judged_by_programs, [program])
        all_labels = np.concatenate([labels, program_labels])
        consensus_of_people = leave_one_out(all_labels)[-1:]
        matches |= _matches_by_rater(judged_by_programs, [program], program_labels, consensus_of_people)
        program_pairs += [
            replace(pair, second=len(people) + number)
            for pair in pairs(all_labels, len(CATEGORIES))
            if pair.second == len(people)
        ]
    return program_pairs, matches


def _key(response: JudgedResponse) -> tuple[str, str]:
    return response.session_id, response.trial.trial.id


def _label_table(judged: Sequence[JudgedResponse], names: Sequence[str]) -> NDArray[np.int64]:
    """The labels that raters gave without help, raters × responses: indices of categories, or MISSING."""
    row_by_name = {name: row for row, name in enumerate(names)}
    labels = np.full((len(names), len(judged)), MISSING, np.int64)
    for column, response in enumerate(judged):
        for judgment in response.submitted:
            if judgment.rater in row_by_name and judgment.independent is not None:
                labels[row_by_name[judgment.rater], column] = _CATEGORY_INDEX[judgment.independent]
    return labels


def _matches_by_rater(
    judged: Sequence[JudgedResponse],
    names: Sequence[str],
    labels: NDArray[np.int64],
    consensus_of_others: NDArray[np.int64],
) -> dict[str, list[bool]]:
    """For each rater, whether each label (in the order of giving) equals the consensus of the others.

    labels, consensus_of_others: tables, raters × responses.
    """
    matches: dict[str, list[bool]] = {}
    for row, name in enumerate(names):
        judgments = {
            column: judgment
            for column, item in enumerate(judged)
            for judgment in item.submitted
            if judgment.rater == name
        }
        columns: list[int] = np.flatnonzero(consensus_of_others[row] != MISSING).tolist()
        columns.sort(key=lambda column: judgments[column].given_wall_s or 0.0)
        matches[name] = [bool(labels[row, column] == consensus_of_others[row, column]) for column in columns]
    return matches


def _agreed_items(
    judged: Sequence[JudgedResponse],
    is_sampled: NDArray[np.bool_],
    model: DawidSkene,
    gold: Mapping[tuple[str, str], GoldItem],
) -> tuple[AgreedItem, ...]:
    model_row = np.cumsum(is_sampled) - 1  # the model has no rows for gold items
    items = []
    for column, response in enumerate(judged):
        consensus, consensus_raters = None, 0
        if is_sampled[column] and response.consensus is not None:
            consensus, consensus_raters = response.consensus
        gold_item = gold.get(_key(response))
        labels = tuple((judgment.rater, judgment.category) for judgment in response.submitted if judgment.category)
        majority = leading_label((label for _, label in labels), min_raters=1)
        probability = None
        if consensus is not None:
            probability = float(model.posteriors[model_row[column], _CATEGORY_INDEX[consensus]])
        items.append(
            AgreedItem(
                session_id=response.session_id,
                trial_id=response.trial.trial.id,
                labels=labels,
                majority=None if majority is None else majority[0],
                consensus=consensus,
                probability=probability,
                settled=None if response.settled is None else response.settled.category,
                gold=None if gold_item is None else gold_item.category,
                consensus_raters=consensus_raters,
            )
        )
    return tuple(items)


def _figures_by_votes(
    items: Iterable[AgreedItem], judged: Iterable[JudgedResponse], gold: Mapping[tuple[str, str], GoldItem]
) -> dict[Votes, VotesFigures]:
    items_by_votes = group_by((item.votes, item) for item in items if item.consensus is not None)
    gold_answers: dict[Votes, list[bool]] = defaultdict(list)
    for response in judged:
        if response.consensus is not None and _key(response) in gold:
            category, raters = response.consensus
            gold_answers[raters, len(response.submitted)].append(gold[_key(response)].is_right(category))
    figures: dict[Votes, VotesFigures] = {}
    for votes in sorted({*items_by_votes, *gold_answers}, key=lambda votes: (-votes[1], -votes[0])):
        items_of_votes = items_by_votes.get(votes, [])
        doubtful = [item for item in items_of_votes if (item.probability or 0.0) < DOUBTFUL]
        figures[votes] = VotesFigures(len(items_of_votes), len(doubtful), _share(gold_answers.get(votes, ())))
    return figures


def _sub_flags(judged: Sequence[JudgedResponse]) -> tuple[tuple[SubFlag, SubFlagAgreement], ...]:
    counts: dict[SubFlag, Counter[int]] = defaultdict(Counter)  # of pairs, by the number of raters who set the flag
    for response in judged:
        for first, second in combinations(response.submitted, 2):
            if first.category is not second.category or first.category is None:
                continue
            for flag in SUB_FLAGS_OF.get(first.category, ()):
                counts[flag][sum(flag in judgment.sub_flags for judgment in (first, second))] += 1
    return tuple(
        (flag, SubFlagAgreement(both=counts[flag][2], one=counts[flag][1], neither=counts[flag][0]))
        for flag in SubFlag
        if flag in counts
    )
