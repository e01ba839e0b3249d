"""Who is paired with whom, and what is counted of it."""

from __future__ import annotations

import random

from harness.model.understanding import Corpus, Slot, Utterance
from harness.understanding.counts import FrameCounts, Matched, Rule, ValueRule, total
from harness.understanding.figures import Averages, figures
from harness.understanding.scoring import FrameScoring, score
from tests.unit.understanding.random_frames import Pair, counted, pairs

WORDS = ("to", "Nice")
TAGS = ("O", "B-city")


def gold(id_: str, **changed: object) -> Utterance:
    given: dict[str, object] = {"words": WORDS, "intents": ("go",), "tags": TAGS}
    return Utterance(id_, **(given | changed))  # type: ignore[arg-type]


def scored(of: list[Utterance], said: list[Utterance], rule: Rule | None = None, **options: object) -> FrameScoring:
    pair = Corpus("gold.jsonl", tuple(of)), Corpus("said.jsonl", tuple(said))
    return score(*pair, rule or Rule(), **options)  # type: ignore[arg-type]


def test_a_missing_prediction_has_predicted_nothing_and_one_without_gold_counts_nowhere() -> None:
    found = scored([gold("1"), gold("2"), gold("3", intents=None, tags=None)], [gold("1"), gold("4")])
    assert (found.missing, found.unknown, found.unannotated) == (("2",), ("4",), ("3",))
    assert [(frame.id, frame.missing) for frame in found.frames] == [("1", False), ("2", True)]
    assert found.totals.intents.labels == {"go": Matched(1, 2, 1)}
    assert found.totals.slots.frames_placed.count == 1
    assert found.totals.intents.empty == 1


def test_ids_pair_in_any_order() -> None:
    of = [gold(str(n), intents=(f"i{n}",)) for n in range(5)]
    assert scored(of, of[::-1]).totals.intents.exact.count == 5


def test_a_system_that_never_tells_intents_has_no_figures_of_them() -> None:
    found = scored([gold("1"), gold("2")], [gold("1", intents=None)])
    assert (found.intents_told, found.slots_told) == (False, True)
    shown = figures(found.totals)
    assert shown.intents.exact.value is None
    assert shown.slots.micro == Averages(1.0, 0.5, 2 / 3)
    # One that tells them for some utterances is wrong about the others.
    some = scored([gold("1"), gold("2")], [gold("1", intents=None), gold("2")])
    assert some.totals.intents.exact.count == 1
    assert some.totals.intents.exact.total == 2


def test_a_system_that_never_tells_slots_has_no_frames() -> None:
    found = scored([gold("1")], [Utterance("1", intents=("go",))])
    assert not found.slots_told
    assert figures(found.totals).slots.frames.value is None
    assert figures(found.totals).slots.cer is None


def test_without_any_prediction_all_is_missing() -> None:
    found = scored([gold("1")], [])
    assert figures(found.totals).intents.exact.value == 0
    assert figures(found.totals).slots.cer == 1


def test_values_count_where_both_sides_give_some() -> None:
    of = gold("1", tags=None, slots=(Slot("city", "Nice", 1, 2),))
    bare = gold("1", tags=None, slots=(Slot("city", None, 1, 2),))
    right, none = scored([of], [of]), scored([of], [bare])
    assert right.values_told
    assert right.totals.valued.frames_placed.count == 1
    assert not none.values_told
    assert figures(none.totals).valued is None
    assert not scored([of], [of], Rule(values=ValueRule.NONE)).values_told
    # A system that gives values, and none here, is wrong here.
    two = scored([of, gold("2", tags=None, slots=of.slots)], [bare, gold("2", tags=None, slots=of.slots)])
    assert two.totals.valued.frames_placed.count == 1
    assert two.totals.valued.utterances == 2


def test_groups_part_the_totals() -> None:
    source = random.Random(4)
    some: list[Pair] = pairs(source, 200)
    of = [
        Utterance(one.id, one.words, one.intents, one.tags, groups=(("voice", source.choice("ab")), ("level", "x")))
        for one, _ in some
    ]
    of[7] = Utterance(of[7].id, of[7].words, of[7].intents, of[7].tags)
    found = scored(of, [said for _, said in some])
    assert [column for column, _ in found.groups] == ["voice", "level"]
    assert found.totals == counted(some)
    for _, labels in found.groups:
        assert total(counts for _, counts in labels) == found.totals
    assert [label for label, _ in found.groups[0][1]] == ["", "a", "b"]
    assert found.groups[0][1][0][1] == counted(some[7:8])
    only = scored(of, [], by=["voice"])
    assert [column for column, _ in only.groups] == ["voice"]


def test_nothing_is_scored_to_nothing() -> None:
    found = scored([], [gold("1")])
    assert found.totals == FrameCounts()
    assert found.unknown == ("1",)
