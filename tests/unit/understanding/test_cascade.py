"""What recognition cost, by hand."""

from __future__ import annotations

import pytest

from harness.model.understanding import Corpus, Prediction, Utterance
from harness.statistics.intervals import Share
from harness.understanding.cascade import FrameFate, joined, understood
from harness.understanding.comparison import Metric
from harness.understanding.counts import Rule, ValueRule
from harness.understanding.figures import figures
from tests.unit.understanding.cascades import GOLD, heard, said, scored, small, understand


def test_figures_on_the_reference_and_on_what_was_heard_stand_side_by_side() -> None:
    found = small()
    before, after = figures(found.total.reference), figures(found.total.transcript)
    assert (before.intents.exact, after.intents.exact) == (Share(3, 4), Share(2, 4))
    assert (before.slots.frames, after.slots.frames) == (Share(3, 4), Share(1, 4))
    # Of three concepts one is not heard.
    assert (before.slots.cer, after.slots.cer) == (0, 1 / 3)
    sfa = found.total.differences[Metric.SFA]
    assert (sfa.second, sfa.first, sfa.difference) == (0.75, 0.25, -0.5)
    assert sfa.interval is not None
    # niece for nice, yellow for hello, and two words of three for away.
    assert (found.total.words.errors, found.total.words.words) == (4, 10)


def test_slot_f1_is_of_the_reference_alone() -> None:
    found = small()
    assert figures(found.placed).slots.micro.f1 == 1
    for side in (found.total.reference, found.total.transcript):
        assert figures(side).slots.micro.f1 is None
        assert not figures(side).slots.by_place
    assert found.total.differences[Metric.SLOT_F1].difference is None


def test_each_utterance_has_a_fate() -> None:
    found = small()
    assert {one.id: one.fate for one in found.utterances} == {
        "a": FrameFate.BROKEN,
        "b": FrameFate.KEPT,
        "c": FrameFate.BROKEN,
        "e": FrameFate.WRONG,
    }
    assert [one.id for one in found.of(FrameFate.BROKEN)] == ["a", "c"]
    assert found.of(FrameFate.BROKEN)[0].heard.text == "Book niece on Monday."
    assert found.of(FrameFate.BROKEN)[0].words.substitutions == 1


def test_what_is_right_only_as_heard_is_told_too() -> None:
    gold = Corpus("gold", (said("a", "scrap it", intents=("cancel",)),))
    found = scored(joined(gold, heard(a="cancel it")))
    assert found.utterances[0].fate is FrameFate.MENDED
    assert found.total.differences[Metric.SFA].difference == 1


def test_what_has_no_partner_is_told_and_counts_nowhere() -> None:
    gold = Corpus("gold", (*GOLD.utterances, Utterance("f", ("no", "idea"))))
    found = scored(joined(gold, heard(a="book nice on monday", f="no idea", z="what")))
    assert found.without_transcript == ("b", "c", "d", "e")
    assert (found.without_gold, found.unannotated) == (("z",), ("f",))
    assert [one.id for one in found.utterances] == ["a"]
    assert found.total.words.words == 4
    assert not found.missing_is_silence


def test_no_transcript_can_count_as_silence() -> None:
    found = scored(joined(GOLD, heard(a="book nice on monday"), missing_is_silence=True))
    assert len(found.utterances) == 5
    assert found.without_transcript == ("b", "c", "d", "e")
    assert found.missing_is_silence
    assert found.total.words.deletions == 1 + 3 + 4 + 2
    assert figures(found.total.transcript).intents.empty == 4


def test_an_empty_transcript_is_one() -> None:
    found = scored(joined(GOLD, heard(b="")))
    assert found.utterances[0].fate is FrameFate.BROKEN
    assert found.utterances[0].words.deletions == 1


def test_values_are_words_compared_without_case_and_marks() -> None:
    pairs = joined(GOLD, heard(a="book NICE, on Sunday!"))
    before, after = (figures(one).valued for one in (scored(pairs).total.reference, scored(pairs).total.transcript))
    assert before is not None
    assert after is not None
    assert (before.cer, after.cer) == (0, 0.5)
    # Without values, another day is a date as well.
    assert figures(scored(pairs).total.transcript).slots.cer == 0
    assert scored(pairs).utterances[0].fate is FrameFate.REVALUED
    bare = scored(pairs, Rule(values=ValueRule.NONE, spoken=True))
    assert figures(bare.total.transcript).valued is None
    assert bare.utterances[0].fate is FrameFate.KEPT
    assert bare.total.differences[Metric.VALUED_CER].difference is None


def test_groups_part_the_whole() -> None:
    found = small()
    ((column, labels),) = found.groups
    assert column == "voice"
    assert [(label, group.reference.utterances) for label, group in labels] == [("one", 2), ("two", 2)]
    one, two = (group for _, group in labels)
    assert one.reference + two.reference == found.total.reference
    assert one.transcript + two.transcript == found.total.transcript
    assert one.words + two.words == found.total.words
    assert one.differences[Metric.EMR].difference == 0
    assert two.differences[Metric.EMR].difference == -0.5


def test_a_column_of_single_utterances_is_no_group_unless_asked_for() -> None:
    many = tuple(said(str(n), "book nice", groups=(("file", f"{n}.wav"), ("voice", "v"))) for n in range(70))
    pairs = joined(Corpus("gold", many), Corpus("heard", many))
    found = scored(pairs, draws=20)
    assert [column for column, _ in found.groups] == ["voice"]
    assert found.too_many == (("file", 70),)
    asked = scored(pairs, by=("file",), draws=20)
    assert [(column, len(labels)) for column, labels in asked.groups] == [("file", 70)]
    assert asked.too_many == ()


def test_perfect_recognition_costs_nothing() -> None:
    found = scored(joined(GOLD, GOLD))
    for figure in (Metric.EMR, Metric.SFA, Metric.CER, Metric.F1MH, Metric.ACCURACY):
        assert found.total.differences[figure].difference == 0
        assert found.total.differences[figure].p == 1
    assert not found.of(FrameFate.BROKEN)
    assert found.total.words.wer == 0


def test_what_understands_must_answer_to_each_text() -> None:
    def lazy(texts: object) -> list[Prediction]:
        return understand([("book",)])

    with pytest.raises(ValueError, match="1 predictions for 5 texts"):
        understood(GOLD, lazy, "lazy")
