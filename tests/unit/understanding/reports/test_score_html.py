"""The page of scored intents and slots."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from harness.model.understanding import Corpus, Detail, Slot, Utterance
from harness.understanding.comparison import compare
from harness.understanding.counts import Rule
from harness.understanding.reports.score_html import page
from harness.understanding.reports.score_text import SystemReport
from harness.understanding.reports.shown_utterances import FrameLine, ShownFrames, selection
from harness.understanding.scoring import FrameScoring, count_system, score
from tests.unit.understanding.reports.frames import HOSTILE, made

WORDS = tuple("abcdefgh")


def scoring(gold: Utterance, prediction: Utterance, rule: Rule | None = None) -> FrameScoring:
    return score(Corpus("g", (gold,)), Corpus("p", (prediction,)), rule or Rule())


def shown(gold: Utterance, prediction: Utterance, rule: Rule | None = None) -> ShownFrames:
    (frames,) = selection([scoring(gold, prediction, rule)], ["predicted"], 10).utterances
    return frames


def slots(line: FrameLine) -> list[tuple[str, str, str]]:
    return [(piece.text, piece.concept, piece.mark) for piece in line.pieces if piece.concept]


# Marks: C another concept, B another border, M missing, X too many, V another value; I is an error of intents.
def test_each_kind_of_slot_error_has_its_mark() -> None:
    frames = shown(
        Utterance("1", WORDS, ("p", "q"), ("B-same", "O", "B-one", "B-long", "I-long", "O", "B-gone", "O")),
        Utterance("1", WORDS, ("q", "r"), ("B-same", "B-more", "B-two", "B-long", "O", "O", "O", "O")),
    )
    gold, prediction = frames.lines
    assert slots(gold) == [("a", "same", ""), ("c", "one", "C"), ("d e", "long", "B"), ("g", "gone", "M")]
    assert slots(prediction) == [("a", "same", ""), ("b", "more", "X"), ("c", "two", "C"), ("d", "long", "B")]
    assert [piece.text for piece in prediction.pieces] == ["a", "b", "c", "d", "e", "f", "g", "h"]
    assert prediction.intents == (("q", ""), ("r", "X"), ("p", "M"))
    assert frames.kinds == "BCIMX"


def test_slots_without_place_stand_behind_the_words_with_their_values() -> None:
    frames = shown(
        Utterance("1", ("go", "on"), ("p",), slots=(Slot("city", "Paris"), Slot("n", "2"))),
        Utterance("1", (), ("p",), slots=(Slot("n", "3"),)),
    )
    assert slots(frames.lines[0]) == [("Paris", "city", "M"), ("2", "n", "V")]
    assert slots(frames.lines[1]) == [("3", "n", "V")]
    assert frames.kinds == "MV"


def test_values_beside_tags_are_marked() -> None:
    gold, prediction = (
        Utterance("1", ("for", "two"), ("p",), ("O", "B-n"), (Slot("n", value, 1, 2),)) for value in ("2", "two")
    )
    frames = shown(gold, prediction)
    assert [slots(line) for line in frames.lines] == [[("two", "n", "V")]] * 2
    assert frames.kinds == "V"


@pytest.mark.parametrize(
    ("values", "reported", "kinds"),
    [(("Paris",), ("Paris",), "0"), (("Paris",), (None,), "V"), ((None, "Paris"), ("Paris", "Rome"), "0")],
)
def test_values_are_marked_as_they_are_counted(
    values: tuple[str | None, ...], reported: tuple[str | None, ...], kinds: str
) -> None:
    gold, prediction = (
        [Utterance("1", slots=tuple(Slot("city", value) for value in side)), Utterance("2", slots=(Slot("n", "2"),))]
        for side in (values, reported)
    )
    counted = score(Corpus("g", tuple(gold)), Corpus("p", tuple(prediction)), Rule(ordered=False, places=False))
    assert [frame.counts.valued.edits.errors > 0 for frame in counted.frames] == [kinds != "0", False]
    excerpt = selection([counted], ["predicted"], 10)
    assert {utterance.id: utterance.kinds for utterance in excerpt.utterances} == {"1": kinds, "2": "0"}


def test_a_missing_prediction_is_an_error_also_without_intents_in_gold() -> None:
    gold = Corpus("g", (Utterance("1", intents=()), Utterance("2", intents=())))
    assert selection([score(gold, Corpus("p", gold.utterances[:1]), Rule())], ["predicted"], 10).with_errors == 1


def test_missing_annotations_and_predictions_are_not_marked_wrong() -> None:
    tagged = Utterance("1", ("go",), ("p",), ("B-x",))
    assert shown(tagged, Utterance("1", ("go",), ("p",))).kinds == "0"
    assert shown(replace(tagged, tags=None), tagged).kinds == "0"
    assert shown(replace(tagged, intents=None), replace(tagged, intents=("z",))).kinds == "0"


def test_specifiers_do_not_count_where_they_are_dropped() -> None:
    gold, prediction = (Utterance("1", ("go",), ("p",), (tag,)) for tag in ("B-n-rooms", "B-n-guests"))
    assert shown(gold, prediction).kinds == "C"
    assert shown(gold, prediction, Rule(detail=Detail.RELAX)).kinds == "0"


def test_the_worst_are_shown_and_what_is_left_out_is_said() -> None:
    frame_scoring = score(*made(3, 200), Rule())
    excerpt = selection([frame_scoring], ["predicted"], 20)
    assert len(excerpt.utterances) == 20
    assert excerpt.total == 200
    assert 20 < excerpt.with_errors < 200
    assert all(utterance.kinds != "0" for utterance in excerpt.utterances)
    text = page([SystemReport(count_system([frame_scoring]))], [frame_scoring], max_utterances=20)
    assert "The 20 worst are shown; 180 are left out" in text
    assert text.count("<article") == 20


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.scripts = 0
        self.active_attributes: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "script":
            self.scripts += 1
        self.active_attributes += [name for name, value in attrs if name.startswith("on") or "http" in (value or "")]


def test_hostile_text_is_shown_and_never_obeyed() -> None:
    word = HOSTILE.replace(" ", "")
    gold = Utterance(HOSTILE, (word, word), (HOSTILE,), ("O", f"B-{word}"), groups=((HOSTILE, HOSTILE), ("b", "c")))
    prediction = replace(gold, intents=(f"x{HOSTILE}",), tags=(f"B-{word}", "O"))
    frame_scoring = score(
        Corpus(HOSTILE, (gold, replace(gold, id="2", groups=()))),
        Corpus(HOSTILE, (prediction, replace(prediction, id=HOSTILE + "?"))),
        Rule(),
    )
    text = page([SystemReport(count_system([frame_scoring]))], [frame_scoring])
    tags = _Tags()
    tags.feed(text)
    assert (tags.scripts, tags.active_attributes) == (1, [])
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\e[2J\\u202e&amp;" in text


def test_several_systems_stand_below_one_gold_and_are_compared() -> None:
    gold, predicted = made(4, 60)
    other = Corpus(
        "other.jsonl", tuple(replace(utterance, intents=("greeting",)) for utterance in predicted.utterances)
    )
    scorings = [score(gold, corpus, Rule()) for corpus in (predicted, other)]
    reports = [SystemReport(count_system([frame_scoring])) for frame_scoring in scorings]
    text = page(reports, scorings, [compare(*scorings)])
    assert "<bdi>1 pred</bdi> − <bdi>2 other</bdi>, on the" in text
    assert re.search(r"<article.*?gold</bdi>.*?1 pred</bdi>.*?2 other</bdi>", text, re.DOTALL)


def test_counts_alone_make_a_page_without_utterances() -> None:
    text = page([SystemReport(count_system([score(*made(4, 60), Rule())]))])
    assert "<article" not in text
    assert "EMR (exact match)" in text
    with pytest.raises(ValueError, match="no system"):
        page([])
