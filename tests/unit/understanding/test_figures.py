"""The arithmetic of the paper that intents of MEDIA come from: what 0/0 did to its macro figures, and its shares."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from harness.statistics.intervals import Share, wilson
from harness.understanding.counts import FrameCounts, IntentCounts, Matched
from harness.understanding.figures import (
    ONE,
    SEED,
    ZERO,
    IntentFigures,
    Interval,
    ZeroDivision,
    accuracy_interval,
    figures,
    pooled_spans,
    ratio_interval,
    samples_spans,
)
from tests.unit.understanding.random_frames import counted, pairs

# Intents of the paper's test set of 187 utterances (its Table 2), with right and predicted ones that give its Table 4.
LABELS = {
    "annulation": Matched(0, 1, 0),
    "incomprehension": Matched(0, 4, 0),
    "modification": Matched(0, 1, 0),
    "reponse_indecise": Matched(0, 1, 0),
    "marqueur_discursif": Matched(4, 5, 7),
    "remercier": Matched(6, 6, 6),
    "renseignements": Matched(18, 19, 21),
    "reponse_affirmative": Matched(51, 52, 54),
    "reponse_negative": Matched(57, 57, 58),
    "reservation": Matched(47, 48, 49),
    "saluer": Matched(6, 6, 6),
}
# 173 of 187 right, and of the others: 2 empty, 8 all wrong, 2 with half of two, 1 with one too many, 1 half right.
OVERLAPS = {
    Matched(1, 1, 1): 173,
    Matched(0, 1, 0): 2,
    Matched(0, 1, 1): 8,
    Matched(1, 2, 1): 2,
    Matched(1, 1, 2): 1,
    Matched(1, 2, 2): 1,
}


def of(zero: ZeroDivision) -> IntentFigures:
    return figures(FrameCounts(187, IntentCounts(OVERLAPS, LABELS)), zero, tuple(LABELS)).intents


def per_cent(*shares: float | None) -> tuple[float, ...]:
    return tuple(round(100 * (share or 0), 2) for share in shares)


def test_the_macro_figures_are_those_of_the_paper_where_precision_of_nothing_is_one() -> None:
    found = of(SEED)
    assert per_cent(found.macro.precision, found.macro.recall, found.macro.f1) == (93.77, 60.98, 58.99)
    assert found.never_predicted == ("annulation", "incomprehension", "modification", "reponse_indecise")


def test_by_default_a_third_of_that_precision_is_gone_and_the_rest_stays() -> None:
    found = of(ZERO)
    assert per_cent(found.macro.precision, found.macro.recall, found.macro.f1) == (57.41, 60.98, 58.99)
    # F1 counts right ones of gold and predicted together: with gold ones there is no 0/0, and all choices agree.
    assert of(ONE).macro.f1 == of(SEED).macro.f1 == found.macro.f1
    assert all(one.f1 == 0 for name, _, one in of(SEED).labels if name in found.never_predicted)


def test_the_figures_over_samples_are_those_of_the_paper_with_two_empty_predictions() -> None:
    found = of(SEED)
    assert per_cent(found.exact.value) == (92.51,)
    assert per_cent(found.samples.precision, found.samples.recall, found.samples.f1) == (95.19, 93.85, 93.85)
    assert found.empty == 2
    assert per_cent(of(ZERO).samples.precision) == (94.12,)


@pytest.mark.parametrize(
    ("count", "total", "printed"),
    [
        # Pseudo-labelled utterances that were wrong, and those without consensus.
        (3_122, 16_005, 19.51),
        (56, 4_002, 1.40),
        # The paper prints 7.22 % of 3,946: a slip, since that is of all 4,002.
        (289, 3_946, 7.32),
        (289, 4_002, 7.22),
        (173, 187, 92.51),
    ],
)
def test_shares_of_the_paper(count: int, total: int, printed: float) -> None:
    assert per_cent(Share(count, total).value) == (printed,)


def test_sums_of_the_paper() -> None:
    # Table 1 (*): all utterances, less those annotated by hand, are those with and without a pseudo-label.
    assert 12_916 + 1_259 + 3_518 == 17_693
    assert 17_693 - 1_551 == 16_005 + 137
    assert 1_240 + 124 + 187 == 1_551
    assert 4_002 - 56 == 3_946


# Its Tables 2, 5 and 18: a row for each intent, a column for each split, and the total that it prints.
TABLES = {
    2: "15 1 1 17; 6 1 4 11; 38 6 5 49; 7 1 1 9; 47 5 6 58; 114 11 19 144; 392 42 52 486; 9 1 3 13; 362 35 57 454; "
    "352 30 48 430; 43 8 6 57",
    5: "32 1 15 48; 273 30 94 397; 282 40 113 435; 115 10 31 156; 713 100 200 1013; 1611 159 401 2171; "
    "4325 419 1190 5934; 37 5 9 51; 1315 88 344 1747; 5437 522 1410 7369; 717 101 206 1024",
    18: "33 1 17 12 63; 409 49 128 58 644; 386 48 148 97 679; 127 11 33 23 194; 691 99 199 175 1164; "
    "1704 158 408 524 2794; 4347 427 1209 1207 7190; 48 9 10 6 73; 1345 90 343 412 2190; "
    "5777 575 1528 1810 9690; 714 101 210 199 1224",
}


@pytest.mark.parametrize("table", sorted(TABLES))
def test_totals_of_its_tables_are_those_of_their_splits(table: int) -> None:
    for row in TABLES[table].split(";"):
        *splits, printed = map(int, row.split())
        counts = sum((IntentCounts(labels={"an intent": Matched(0, n, 0)}) for n in splits), IntentCounts())
        assert counts.labels["an intent"].gold == printed


def f1(counts: dict[tuple[int, int, int], int]) -> Interval | None:
    return ratio_interval(counts, lambda one: 2 * one[0], lambda one: one[1] + one[2])


def drawn(draw: random.Random, number: int) -> dict[tuple[int, int, int], int]:
    """Utterances with four slots that are right with three chances of four, all of an utterance alike or not."""
    rows: Counter[tuple[int, int, int]] = Counter()
    for _ in range(number):
        wrong = draw.choice((0, 0, 2, 4)) if draw.random() < 0.5 else sum(draw.random() < 0.25 for _ in range(4))
        rows[4 - wrong, 4, 4] += 1
    return dict(rows)


def test_an_interval_has_the_truth_in_it_as_often_as_it_says() -> None:
    draw = random.Random(1)
    true = 0.5 * (1 - 1.5 / 4) + 0.5 * 0.75
    found = [f1(drawn(draw, 120)) for _ in range(300)]
    held = sum(one is not None and one[0] <= true <= one[1] for one in found)
    assert 0.90 <= held / 300 <= 0.98


def test_the_order_of_counting_changes_nothing() -> None:
    counts = drawn(random.Random(2), 200)
    other = dict(sorted(counts.items(), reverse=True))
    assert list(other) != sorted(counts)
    assert f1(counts) == f1(other) == f1(dict(counts))


def test_where_nothing_varies_utterances_stand_for_what_is_counted() -> None:
    assert f1({(2, 2, 2): 30, (0, 0, 0): 5}) == wilson(30, 30)
    assert f1({(0, 2, 2): 30}) == wilson(0, 30)
    assert ratio_interval({(3, 3): 9}, lambda one: one[0], lambda one: one[1], None) is None
    assert ratio_interval({(0, 3): 9}, lambda one: one[0], lambda one: one[1], None) == wilson(0, 9)


@pytest.mark.parametrize("counts", [{}, {(0, 0, 0): 9}, {(3, 4, 4): 1}, {(3, 4, 4): 1, (0, 0, 0): 9}])
def test_one_utterance_that_counts_says_nothing_of_others(counts: dict[tuple[int, int, int], int]) -> None:
    assert f1(counts) is None


def test_an_error_rate_may_go_above_one() -> None:
    found = ratio_interval({(6, 2): 20, (1, 2): 20}, lambda one: one[0], lambda one: one[1], None)
    assert found is not None
    assert found[0] < 1.75 < found[1]
    assert found[1] > 2


def intents_of(counts: FrameCounts) -> list[float | None]:
    found = figures(counts, SEED).intents
    averages = [of for one in (found.samples, found.micro) for of in (one.precision, one.recall, one.f1)]
    return [found.accuracy, *averages]


def test_intervals_of_intents_have_the_figures_of_all_utterances_in_them() -> None:
    draw = random.Random(3)
    population = pairs(random.Random(5), 2_000)
    truth = intents_of(counted(population))
    held = [0] * len(truth)
    for _ in range(60):
        overlaps = counted([draw.choice(population) for _ in range(100)]).intents.overlaps
        spans = [accuracy_interval(overlaps, SEED), *samples_spans(overlaps, SEED), *pooled_spans(overlaps)]
        for at, (value, span) in enumerate(zip(truth, spans, strict=True)):
            assert value is not None
            assert span is not None
            held[at] += span[0] <= value <= span[1]
    # 95 % of 60 is 57. Fewer than 50 would be one in a thousand.
    assert all(times >= 50 for times in held), held
    assert sum(held) < 60 * len(held)
