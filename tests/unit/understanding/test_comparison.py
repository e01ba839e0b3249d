"""Figures of many samples at once; the effect of recognition errors, by hand."""

from __future__ import annotations

import random

import numpy as np
import pytest

from harness.model.understanding import Chunking, Corpus, Prediction, Utterance
from harness.statistics.intervals import Share
from harness.statistics.significance import mcnemar
from harness.understanding.cascade import FrameChange, join_transcripts, predict_corpus
from harness.understanding.comparison import SHARES, Metric, basis, columns, compare, differences
from harness.understanding.counts import FrameCounts, Rule, ValueRule, total
from harness.understanding.figures import (
    ONE,
    SEED,
    ZERO,
    FrameFigures,
    ZeroDivision,
    concept_f1,
    frame_figures,
    slu_f1s,
)
from harness.understanding.scoring import FrameScoring, score
from tests.known import known
from tests.unit.understanding.cascades import GOLD, heard, said, scored, small, understand
from tests.unit.understanding.random_frames import counted, near, pairs, utterance

RULE = Rule(spoken=True)


def counts_of(seed: int, utterances: int) -> list[FrameCounts]:
    return [counted([pair], RULE) for pair in pairs(random.Random(seed), utterances)]


def values(frame_figures: FrameFigures, counts: FrameCounts) -> dict[Metric, float | None]:
    intents, valued = frame_figures.intents, known(frame_figures.valued)
    figures = [intents.accuracy, intents.exact.value, intents.samples.f1, intents.macro.f1, intents.micro.f1]
    for slots in (frame_figures.slots, valued):
        figures += [slots.micro.f1, slots.concept_sets.f1, slots.cer, slots.frames.value]
    figures += [None if frame_figures.slots.by_place else concept_f1(counts.slots.multisets)[0]]
    figures += [concept_f1(counts.valued.multisets)[0], slu_f1s(counts.entities)[0][0]]
    return dict(zip(Metric, figures, strict=True))


@pytest.mark.parametrize("zero", [ZERO, SEED, ONE])
@pytest.mark.parametrize("utterances", [1, 2, 30, 400])
def test_columns_have_the_figures_of_counts(zero: ZeroDivision, utterances: int) -> None:
    counts = counts_of(utterances, utterances)
    declared = ("annulation", "never seen")
    actual = columns([counts], basis([counts], zero, declared)).estimates()
    expected = frame_figures(total(counts), zero, declared)
    for figure, value in values(expected, total(counts)).items():
        assert actual[figure].tolist() == pytest.approx([np.nan if value is None else value], nan_ok=True), figure


def test_samples_have_the_figures_of_the_utterances_they_are_of() -> None:
    # The figures of a sample do not depend on whether utterances share a row.
    counts = counts_of(1, 60)
    sample = columns([counts * 3], basis([counts * 3], ZERO, None))
    assert len(sample.unit_counts) < 100
    assert sample.units == 180
    drawn = sample.resampled(400, 1)
    for figure, estimates in sample.estimates().items():
        assert np.mean(drawn[figure]) == pytest.approx(estimates[0], abs=0.02, nan_ok=True)


WITHOUT = (Metric.CONCEPT_F1, Metric.SLU_F1)
"""Not of slots that have places and no values."""
NOT_VALUED = [figure for figure in Metric if "values" not in figure.value and figure not in WITHOUT]


def corpus(seed: int, utterances: int) -> Corpus:
    source = random.Random(seed)
    return Corpus("gold", tuple(utterance(source, str(n), source.randint(1, 8), wild=False) for n in range(utterances)))


def system(gold: Corpus, seed: int, right: float) -> FrameScoring:
    source = random.Random(seed)
    frames = tuple(utterance if source.random() < right else near(source, utterance) for utterance in gold.utterances)
    return score(gold, Corpus(f"system {seed}", frames), Rule())


def counts(scoring: FrameScoring) -> list[FrameCounts]:
    return [frame.counts for frame in scoring.frames]


def test_a_better_system_is_told_from_a_worse_one() -> None:
    gold = corpus(1, 400)
    comparison = compare(system(gold, 1, 0.8), system(gold, 2, 0.3))
    for figure in NOT_VALUED:
        difference = comparison.differences[figure]
        low, high = known(difference.interval)
        assert known(difference.p) < 0.01, figure
        assert low < known(difference.difference) < high
        # Errors are fewer, all other figures higher.
        assert (high < 0) if figure is Metric.CER else (low > 0)


def test_a_system_does_not_differ_from_itself() -> None:
    comparison = compare(system(corpus(3, 100), 1, 0.5), system(corpus(3, 100), 1, 0.5))
    for figure in NOT_VALUED:
        difference = comparison.differences[figure]
        assert (difference.difference, difference.p) == (0, 1)
        assert figure in SHARES or difference.interval is None


def test_equal_systems_seldom_seem_to_differ() -> None:
    seldom = 0
    for seed in range(50):
        gold = corpus(seed, 60)
        by_metric = differences(counts(system(gold, 2 * seed, 0.5)), counts(system(gold, 2 * seed + 1, 0.5)), draws=199)
        seldom += known(by_metric[Metric.SLOT_F1].p) <= 0.05
    # A test of level 5 % says so in 2.5 of 50; more than 8 would be one in a thousand.
    assert seldom <= 8


def test_differences_of_shares_have_the_p_of_mcnemars_test() -> None:
    gold = corpus(5, 120)
    first, second = system(gold, 1, 0.6), system(gold, 2, 0.4)
    right = [[frame.counts.slots.frames_placed.count for frame in scoring.frames] for scoring in (first, second)]
    only_first = sum(count > other for count, other in zip(*right, strict=True))
    only_second = sum(count < other for count, other in zip(*right, strict=True))
    difference = compare(first, second).differences[Metric.SFA]
    assert difference.p == mcnemar(only_first, only_second)
    assert difference.difference == pytest.approx((only_first - only_second) / 120)


def test_swapping_keeps_the_sum_of_both() -> None:
    gold = corpus(6, 80)
    pair = counts(system(gold, 1, 0.6)), counts(system(gold, 2, 0.4))
    sample = columns(pair, basis(pair, ZERO, None))
    actual, swapped = sample.estimates(), sample.swapped(50, 0)
    for figure in SHARES[:2]:
        assert swapped[figure].sum(axis=0) == pytest.approx(actual[figure].sum())
        assert len(set(swapped[figure][0].tolist())) > 5


def test_only_utterances_that_both_have_are_compared() -> None:
    gold = corpus(7, 10)
    first, second = (
        score(gold, Corpus(name, tuple(utterance for utterance in gold.utterances if int(utterance.id) in ids)), Rule())
        for name, ids in (("one", {0, 1, 2, 3, 4, 5}), ("two", {4, 5, 6}))
    )
    comparison = compare(first, second)
    assert comparison.utterances == ("4", "5")
    assert (comparison.only_first, comparison.only_second, comparison.neither) == (4, 1, 3)
    assert (comparison.first, comparison.second) == ("one", "two")


def test_two_rules_are_not_compared() -> None:
    gold = corpus(8, 3)
    strict = score(gold, gold, Rule(chunking=Chunking.IOB2))
    with pytest.raises(ValueError, match="predictions were read under different rules"):
        compare(strict, score(gold, gold, Rule()))


def test_comparison_over_nothing_has_no_difference() -> None:
    comparison = compare(
        score(Corpus("g", ()), Corpus("a", ()), Rule()), score(Corpus("g", ()), Corpus("b", ()), Rule())
    )
    assert {difference.difference for difference in comparison.differences.values()} == {None}
    bare = Corpus("g", (Utterance("1", intents=("a",)),))
    by_metric = compare(score(bare, bare, Rule()), score(bare, bare, Rule())).differences
    assert by_metric[Metric.CER].difference is None
    assert by_metric[Metric.EMR].difference == 0


def test_figures_on_the_reference_and_on_what_was_heard_stand_side_by_side() -> None:
    scoring = small()
    before, after = frame_figures(scoring.total.reference), frame_figures(scoring.total.transcript)
    assert (before.intents.exact, after.intents.exact) == (Share(3, 4), Share(2, 4))
    assert (before.slots.frames, after.slots.frames) == (Share(3, 4), Share(1, 4))
    # Of three concepts one is not heard.
    assert (before.slots.cer, after.slots.cer) == (0, 1 / 3)
    sfa = scoring.total.differences[Metric.SFA]
    assert (sfa.second, sfa.first, sfa.difference) == (0.75, 0.25, -0.5)
    assert known(sfa.interval)
    # niece for nice, yellow for hello, and two words of three for away.
    assert (scoring.total.words.errors, scoring.total.words.words) == (4, 10)


def test_slot_f1_is_of_the_reference_alone() -> None:
    scoring = small()
    assert frame_figures(scoring.placed).slots.micro.f1 == 1
    for side in (scoring.total.reference, scoring.total.transcript):
        assert frame_figures(side).slots.micro.f1 is None
        assert not frame_figures(side).slots.by_place
    assert scoring.total.differences[Metric.SLOT_F1].difference is None


def test_each_utterance_has_a_frame_change() -> None:
    scoring = small()
    assert {utterance.id: utterance.change for utterance in scoring.utterances} == {
        "a": FrameChange.BROKEN,
        "b": FrameChange.KEPT,
        "c": FrameChange.BROKEN,
        "e": FrameChange.WRONG,
    }
    assert [utterance.id for utterance in scoring.utterances_with(FrameChange.BROKEN)] == ["a", "c"]
    assert scoring.utterances_with(FrameChange.BROKEN)[0].heard.text == "Book niece on Monday."
    assert scoring.utterances_with(FrameChange.BROKEN)[0].words.substitutions == 1


def test_utterance_right_only_from_the_transcript_is_reported() -> None:
    gold = Corpus("gold", (said("a", "scrap it", intents=("cancel",)),))
    scoring = scored(join_transcripts(gold, heard(a="cancel it")))
    assert scoring.utterances[0].change is FrameChange.MENDED
    assert scoring.total.differences[Metric.SFA].difference == 1


def test_unpaired_utterances_are_reported_and_not_counted() -> None:
    gold = Corpus("gold", (*GOLD.utterances, Utterance("f", ("no", "idea"))))
    scoring = scored(join_transcripts(gold, heard(a="book nice on monday", f="no idea", z="what")))
    assert scoring.pairs.without_transcript == ("b", "c", "d", "e")
    assert (scoring.pairs.without_gold, scoring.pairs.unannotated) == (("z",), ("f",))
    assert [utterance.id for utterance in scoring.utterances] == ["a"]
    assert scoring.total.words.words == 4
    assert not scoring.pairs.missing_is_silence


def test_no_transcript_can_count_as_silence() -> None:
    scoring = scored(join_transcripts(GOLD, heard(a="book nice on monday"), missing_is_silence=True))
    assert len(scoring.utterances) == 5
    assert scoring.pairs.without_transcript == ("b", "c", "d", "e")
    assert scoring.pairs.missing_is_silence
    assert scoring.total.words.deletions == 1 + 3 + 4 + 2
    assert frame_figures(scoring.total.transcript).intents.empty == 4


def test_an_empty_transcript_counts_as_a_transcript() -> None:
    scoring = scored(join_transcripts(GOLD, heard(b="")))
    assert scoring.utterances[0].change is FrameChange.BROKEN
    assert scoring.utterances[0].words.deletions == 1


def test_values_are_words_compared_without_case_and_marks() -> None:
    pairs = join_transcripts(GOLD, heard(a="book NICE, on Sunday!"))
    sides = scored(pairs).total.reference, scored(pairs).total.transcript
    assert [known(frame_figures(side).valued).cer for side in sides] == [0, 0.5]
    # Without values, another day is a date as well.
    assert frame_figures(scored(pairs).total.transcript).slots.cer == 0
    assert scored(pairs).utterances[0].change is FrameChange.REVALUED
    bare = scored(pairs, Rule(values=ValueRule.NONE, spoken=True))
    assert frame_figures(bare.total.transcript).valued is None
    assert bare.utterances[0].change is FrameChange.KEPT
    assert bare.total.differences[Metric.VALUED_CER].difference is None


def test_groups_split_the_whole() -> None:
    scoring = small()
    ((column, labels),) = scoring.groups
    assert column == "voice"
    assert [(label, group.reference.utterances) for label, group in labels] == [("one", 2), ("two", 2)]
    first, two = (group for _, group in labels)
    assert first.reference + two.reference == scoring.total.reference
    assert first.transcript + two.transcript == scoring.total.transcript
    assert first.words + two.words == scoring.total.words
    assert first.differences[Metric.EMR].difference == 0
    assert two.differences[Metric.EMR].difference == -0.5


def test_a_column_of_single_utterances_is_no_group_unless_asked_for() -> None:
    utterances = tuple(said(str(n), "book nice", groups=(("file", f"{n}.wav"), ("voice", "v"))) for n in range(70))
    pairs = join_transcripts(Corpus("gold", utterances), Corpus("heard", utterances))
    scoring = scored(pairs, draws=20)
    assert [column for column, _ in scoring.groups] == ["voice"]
    assert scoring.too_many == (("file", 70),)
    by_file = scored(pairs, by=("file",), draws=20)
    assert [(column, len(labels)) for column, labels in by_file.groups] == [("file", 70)]
    assert by_file.too_many == ()


def test_perfect_recognition_costs_nothing() -> None:
    scoring = scored(join_transcripts(GOLD, GOLD))
    for figure in (Metric.EMR, Metric.SFA, Metric.CER, Metric.F1MH, Metric.ACCURACY):
        assert scoring.total.differences[figure].difference == 0
        assert scoring.total.differences[figure].p == 1
    assert not scoring.utterances_with(FrameChange.BROKEN)
    assert scoring.total.words.wer == 0


def test_understander_must_answer_every_text() -> None:
    def lazy(texts: object) -> list[Prediction]:
        return understand([("book",)])

    with pytest.raises(ValueError, match="1 predictions for 5 texts"):
        predict_corpus(GOLD, lazy, "lazy")
