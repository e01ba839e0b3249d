"""Agreement of the annotators of a project: of each pair that labelled the same utterances, and of all together."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations

import numpy as np

from harness.annotation.ledger import Ledger
from harness.model.annotation import LabelSet, Slots
from harness.model.frozen import frozen
from harness.model.understanding import Slot, Utterance
from harness.statistics.agreement import (
    ALL_EQUAL,
    MISSING,
    NO_OVERLAP,
    RESAMPLES,
    SEED,
    Counts,
    Figure,
    Labels,
    Sums,
    agreement,
    interval_without_disagreement,
    label_counts,
    resampled_figure,
)
from harness.statistics.intervals import Share

LabelSets = Sequence[frozenset[str]]


@frozen
class LabelAgreement:
    """The agreement of two annotators on one label: numbers of utterances, and Cohen's kappa.

    - both: utterances that both gave the label.
    - first, second: utterances that only this annotator gave the label.
    - neither: utterances that neither gave the label.
    """

    label: str
    both: int
    first: int
    second: int
    neither: int
    kappa: Figure


@frozen
class SetAgreement:
    """The agreement of two annotators on the utterances that both labelled.

    - shared: number of these utterances.
    - exact: the utterances with equal sets of labels. Its interval is Wilson's.
    - jaccard: mean of |both| / |either|, see `jaccard`.
    - masi: Krippendorff's alpha with the MASI distance.
    - nominal: Krippendorff's alpha where two sets are either equal or different.
    - confusion: (set of the first, set of the second, number of utterances) for sets that differ, the most frequent
      first.

    Other intervals are bootstrapped over utterances. So they say nothing about other annotators.
    """

    shared: int
    exact: Share
    jaccard: Figure
    masi: Figure
    nominal: Figure
    labels: tuple[LabelAgreement, ...]
    confusion: tuple[tuple[frozenset[str], frozenset[str], int], ...]


def masi_distance(first: frozenset[str], second: frozenset[str]) -> float:
    """The MASI distance of two sets: 0 for equal sets, 1 for disjoint sets.

    It is 1 − Jaccard × M. The monotonicity M is 1 for equal sets, 2/3 for a subset, 1/3 for other overlaps, and 0 for
    disjoint sets. Source: Passonneau, LREC 2006.
    """
    if first == second:
        return 0.0
    shared = len(first & second)
    if not shared:
        return 1.0
    monotonicity = 2 / 3 if first < second or second < first else 1 / 3
    return 1 - monotonicity * shared / len(first | second)


def jaccard(first: frozenset[str], second: frozenset[str]) -> float:
    """The Jaccard index |both| / |either|: the share of all their labels that both sets have. 1 for two empty sets."""
    either = len(first | second)
    return len(first & second) / either if either else 1.0


def set_alpha(table: Labels, sets: LabelSets, *, resamples: int = RESAMPLES) -> Figure:
    """Krippendorff's alpha with the MASI distance.

    `table` has one row per annotator and one column per utterance. A cell is an index of `sets`, or MISSING. The
    interval is `resampled_figure` over utterances. Without a value, the result says why.
    Source: Krippendorff, Content Analysis, 11 (any distance).
    """
    counts = label_counts(table, len(sets))
    shared = counts[counts.sum(axis=1) >= 2]
    if not len(shared):
        return Figure(None, why_not=NO_OVERLAP)
    used = shared.any(axis=0)
    used_sets = [label_set for label_set, is_used in zip(sets, used, strict=True) if is_used]
    distance = np.array([[masi_distance(label_set, other) for other in used_sets] for label_set in used_sets])
    kinds, kind_counts = np.unique(shared[:, used], axis=0, return_counts=True)
    # A row of `kinds` says how often one sort of utterance got each set. `observed` is what an utterance of this sort
    # adds to the sum of distances between annotators.
    observed = np.einsum("ic,ck,ik->i", kinds, distance, kinds) / (kinds.sum(axis=1) - 1)
    value = float(_alpha((kind_counts @ observed)[None], (kind_counts @ kinds)[None], distance)[0])
    margins = kind_counts @ kinds
    if np.isnan(value):
        return Figure(None, why_not=ALL_EQUAL)
    if not (kind_counts @ observed):
        return Figure(1.0, interval_without_disagreement(len(shared), float(_chance(margins[None], distance)[0])))
    random = np.random.default_rng(SEED)
    samples = random.multinomial(len(shared), kind_counts / len(shared), size=resamples)
    alphas = _alpha(samples @ observed, samples @ kinds, distance)
    left_out = _alpha(kind_counts @ observed - observed, margins - kinds, distance)
    return resampled_figure(value, alphas, left_out, kind_counts, len(shared))


def set_agreement(
    first: LabelSets, second: LabelSets, labels: Sequence[str], *, resamples: int = RESAMPLES
) -> SetAgreement:
    """Agreement of two annotators, from their sets for the same utterances, in the same order.

    labels: all labels, in the order of the result. Raises ValueError if the numbers of sets differ.
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} sets of one annotator and {len(second)} of the other")
    sets = sorted(set(first) | set(second), key=sorted)
    index_of = {label_set: index for index, label_set in enumerate(sets)}
    table = np.array(
        [[index_of[label_set] for label_set in annotator_sets] for annotator_sets in (first, second)], np.int64
    ).reshape(2, -1)
    pairs, pair_counts = np.unique(table.T, axis=0, return_counts=True)
    equal = int(pair_counts[pairs[:, 0] == pairs[:, 1]].sum()) if len(pairs) else 0
    differ = sorted(
        (
            (sets[left], sets[other], int(count))
            for (left, other), count in zip(pairs, pair_counts, strict=True)
            if left != other
        ),
        key=lambda cell: (-cell[2], sorted(cell[0]), sorted(cell[1])),
    )
    return SetAgreement(
        shared=len(first),
        exact=Share(equal, len(first)),
        jaccard=_mean_jaccard(pairs, pair_counts, sets, resamples),
        masi=set_alpha(table, sets, resamples=resamples),
        nominal=agreement(table, max(2, len(sets)), resamples=resamples).alpha,
        labels=tuple(_label_agreement(label, pairs, pair_counts, sets, resamples) for label in labels),
        confusion=tuple(differ),
    )


def _chance(margins: Counts, distance: Sums) -> Sums:
    """The mean distance between two sets that are drawn at random, for each row of `margins`.

    margins: how often each set was given. NaN for a row with fewer than two sets.
    """
    total = margins.sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.einsum("bc,bc->b", margins @ distance, margins) / (total * (total - 1)))


def _alpha(observed: Sums, margins: Counts, distance: Sums) -> Sums:
    by_chance = _chance(margins, distance)
    with np.errstate(divide="ignore", invalid="ignore"):
        alphas = 1 - observed / margins.sum(axis=-1) / by_chance
    return np.where(by_chance > 1e-12, alphas, np.nan)


def _mean_jaccard(pairs: Counts, pair_counts: Counts, sets: LabelSets, resamples: int) -> Figure:
    if not len(pairs):
        return Figure(None, why_not=NO_OVERLAP)
    values = np.array([jaccard(sets[first], sets[other]) for first, other in pairs])
    total = int(pair_counts.sum())
    value = float(pair_counts @ values) / total
    samples = np.random.default_rng(SEED).multinomial(total, pair_counts / total, size=resamples) @ values / total
    left_out = (pair_counts @ values - values) / max(1, total - 1)
    return resampled_figure(value, samples, left_out, pair_counts, total)


def _label_agreement(label: str, pairs: Counts, pair_counts: Counts, sets: LabelSets, resamples: int) -> LabelAgreement:
    has_label = np.array([label in label_set for label_set in sets], bool)
    first_has, second_has = has_label[pairs[:, 0]], has_label[pairs[:, 1]]
    masks = (first_has & second_has, first_has & ~second_has, ~first_has & second_has, ~first_has & ~second_has)
    both, first, second, neither = (int(pair_counts[mask].sum()) for mask in masks)
    return LabelAgreement(
        label, both, first, second, neither, _kappa_figure(np.array([both, first, second, neither]), resamples)
    )


def _kappa_figure(cells: Counts, resamples: int) -> Figure:
    total = int(cells.sum())
    if not total:
        return Figure(None, why_not=NO_OVERLAP)
    value = float(_kappa(cells[None])[0])
    if np.isnan(value):
        return Figure(None, why_not=ALL_EQUAL)
    samples = _kappa(np.random.default_rng(SEED).multinomial(total, cells / total, size=resamples))
    nonzero = cells > 0
    left_out = _kappa(cells - np.eye(4, dtype=np.int64)[nonzero])
    return resampled_figure(value, samples, left_out, cells[nonzero], total)


def _kappa(cells: Counts) -> Sums:
    """Cohen's kappa for each row (both, first, second, neither). NaN where chance alone would give full agreement."""
    both, first, second, neither = (cells[:, column].astype(np.float64) for column in range(4))
    total = both + first + second + neither
    with np.errstate(divide="ignore", invalid="ignore"):
        first_share, second_share = (both + first) / total, (both + second) / total
        by_chance = first_share * second_share + (1 - first_share) * (1 - second_share)
        kappas = ((both + neither) / total - by_chance) / (1 - by_chance)
    return np.where(by_chance > 1 - 1e-12, np.nan, kappas)


@frozen
class SlotAgreement:
    """The agreement of two annotators on the slots of utterances that both marked.

    - exact: F1, where slots match if they have the same words and concept.
    - overlapping: F1, where slots match if they have the same concept and share a word.
    - concepts: (concept, slots of both, slots of the first alone, slots of the second alone). A concept without slots
      is left out.

    F1 stays the same if the two annotators are swapped. The measure gamma needs pygamma-agreement, which reads what
    `report_text.span_rows` writes.
    """

    exact: Figure
    overlapping: Figure
    concepts: tuple[tuple[str, int, int, int], ...]


def slot_agreement(
    first: Sequence[Slots], second: Sequence[Slots], concepts: Sequence[str], resamples: int = RESAMPLES
) -> SlotAgreement:
    """Agreement of two annotators, from their slots for the same utterances, in the same order.

    Intervals are bootstrapped over utterances.
    """
    pairs = list(zip(first, second, strict=True))
    exact_matches = [len(set(first_slots) & set(second_slots)) for first_slots, second_slots in pairs]
    overlaps = [_overlap_count(first_slots, second_slots) for first_slots, second_slots in pairs]
    totals = [len(first_slots) + len(second_slots) for first_slots, second_slots in pairs]
    concept_counts = []
    for concept in concepts:
        in_both = only_first = only_second = 0
        for pair in pairs:
            first_slots, second_slots = ({slot for slot in slots if slot.concept == concept} for slots in pair)
            in_both += len(first_slots & second_slots)
            only_first += len(first_slots - second_slots)
            only_second += len(second_slots - first_slots)
        if in_both or only_first or only_second:
            concept_counts.append((concept, in_both, only_first, only_second))
    return SlotAgreement(
        _f1_figure([2 * count for count in exact_matches], totals, resamples),
        _f1_figure(overlaps, totals, resamples),
        tuple(concept_counts),
    )


def _overlap_count(first: Slots, second: Slots) -> int:
    """The number of slots, of both annotators, that share a word with a slot of the other for the same concept."""

    def overlap(slot: Slot, other: Slot) -> bool:
        return (
            slot.concept == other.concept
            and (slot.start or 0) < (other.end or 0)
            and (other.start or 0) < (slot.end or 0)
        )

    of_first = sum(any(overlap(slot, other) for other in second) for slot in first)
    of_second = sum(any(overlap(slot, other) for other in first) for slot in second)
    return of_first + of_second


def _f1_figure(right: Sequence[int], totals: Sequence[int], resamples: int) -> Figure:
    """F1 = sum of `right` / sum of `totals`, which count the slots of both annotators, for each utterance."""
    if not sum(totals):
        return Figure(None, why_not="no slots")
    counts = np.array([right, totals], np.float64)
    samples = (
        np.random.default_rng(SEED).multinomial(len(totals), np.full(len(totals), 1 / len(totals)), resamples)
        @ counts.T
    )
    with np.errstate(invalid="ignore"):
        scores = samples[:, 0] / samples[:, 1]
        left_out = (counts[0].sum() - counts[0]) / (counts[1].sum() - counts[1])
    value = float(counts[0].sum() / counts[1].sum())
    return resampled_figure(value, scores, left_out, np.ones(len(totals), np.int64), len(totals))


@frozen
class AnnotatorPair:
    """Two annotators and their agreement.

    - `figures`: their agreement on labels.
    - differing: ids of the utterances to which they gave different labels or slots.
    - slots: their agreement on slots; None if there is no utterance for which both marked slots.
    """

    first: str
    second: str
    figures: SetAgreement
    differing: tuple[str, ...]
    slots: SlotAgreement | None = None


@frozen
class AllAnnotators:
    """The agreement of three or more annotators. masi and nominal are the alphas that `SetAgreement` describes.

    shared: number of utterances that two or more of them labelled.
    """

    annotators: tuple[str, ...]
    shared: int
    masi: Figure
    nominal: Figure


def all_annotators(
    utterances: Sequence[Utterance], ledger: Ledger, included: Collection[str] = ()
) -> AllAnnotators | None:
    """Krippendorff's alpha of all annotators; None if there are fewer than three.

    included: names of the annotators to include, empty for all. The labels are those that `pairs_of_annotators` uses.
    """
    names = [name for name in ledger.annotators if not included or name in included]
    if len(names) < 3:
        return None
    chosen_sets = [
        {name: frozenset(row.intents) for name, row in ledger.independent_choices(utterance.id).items()}
        for utterance in utterances
    ]
    sets = sorted({label_set for by_name in chosen_sets for label_set in by_name.values()}, key=sorted)
    index_of = {label_set: index for index, label_set in enumerate(sets)}
    table = np.array(
        [[index_of[by_name[name]] if name in by_name else MISSING for by_name in chosen_sets] for name in names],
        np.int64,
    )
    shared = int(((table != MISSING).sum(axis=0) >= 2).sum())
    nominal = agreement(table, max(2, len(sets))).alpha
    return AllAnnotators(tuple(names), shared, set_alpha(table, sets), nominal)


def pairs_of_annotators(
    utterances: Sequence[Utterance], label_set: LabelSet, ledger: Ledger, included: Collection[str] = ()
) -> tuple[AnnotatorPair, ...]:
    """Pairs of annotators who labelled the same utterances; the pair with the most such utterances comes first.

    included: names of the annotators to include, empty for all. The labels are those that an annotator gave before the
    proposal was shown (`Ledger.independent_choices`).
    """
    choices_by_id = {utterance.id: ledger.independent_choices(utterance.id) for utterance in utterances}
    names = [name for name in ledger.annotators if not included or name in included]
    pairs = []
    for first, second in combinations(names, 2):
        shared = [id_ for id_, choices in choices_by_id.items() if first in choices and second in choices]
        if not shared:
            continue
        first_labels = [frozenset(choices_by_id[id_][first].intents) for id_ in shared]
        second_labels = [frozenset(choices_by_id[id_][second].intents) for id_ in shared]
        marked_slots = {}
        for id_ in shared:
            first_slots = ledger.slots(id_, choices_by_id[id_][first])
            second_slots = ledger.slots(id_, choices_by_id[id_][second])
            if first_slots is not None and second_slots is not None:
                marked_slots[id_] = first_slots, second_slots
        slots = None
        if marked_slots:
            concepts = [concept.id for concept in label_set.concepts]
            of_first, of_second = zip(*marked_slots.values(), strict=True)
            slots = slot_agreement(of_first, of_second, concepts)
        differing_slots = {id_ for id_, (of_first, of_second) in marked_slots.items() if of_first != of_second}
        differing = tuple(
            id_
            for id_, first_set, second_set in zip(shared, first_labels, second_labels, strict=True)
            if first_set != second_set or id_ in differing_slots
        )
        pairs.append(
            AnnotatorPair(first, second, set_agreement(first_labels, second_labels, label_set.ids), differing, slots)
        )
    return tuple(sorted(pairs, key=lambda pair: -pair.figures.shared))
