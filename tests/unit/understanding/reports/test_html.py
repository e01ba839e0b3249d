"""The page of scored intents and slots; shards that are put together."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.errors import InputError
from harness.model.understanding import Corpus, Detail, Slot, Utterance
from harness.understanding.comparison import compare
from harness.understanding.counts import Rule
from harness.understanding.figures import SEED
from harness.understanding.reports.score_html import FrameLine, ShownFrames, page, selection
from harness.understanding.reports.score_json import read_score_json, score_json
from harness.understanding.reports.score_text import SystemReport
from harness.understanding.scoring import FrameScoring, SystemCounts, added, counted, score
from tests.unit.understanding.reports.frames import HOSTILE, INTENTS, made

WORDS = tuple("abcdefgh")


def scoring(gold: Utterance, prediction: Utterance, rule: Rule | None = None) -> FrameScoring:
    return score(Corpus("g", (gold,)), Corpus("p", (prediction,)), rule or Rule())


def shown(gold: Utterance, prediction: Utterance, rule: Rule | None = None) -> ShownFrames:
    (frames,) = selection([scoring(gold, prediction, rule)], ["predicted"], 10).utterances
    return frames


def slots(line: FrameLine) -> list[tuple[str, str, str]]:
    return [(piece.text, piece.concept, piece.mark) for piece in line.pieces if piece.concept]


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
        Utterance("1", ("go", "on"), ("p",), None, (Slot("city", "Paris"), Slot("n", "2"))),
        Utterance("1", (), ("p",), None, (Slot("n", "3"),)),
    )
    assert slots(frames.lines[0]) == [("Paris", "city", "M"), ("2", "n", "V")]
    assert slots(frames.lines[1]) == [("3", "n", "V")]
    assert frames.kinds == "MV"


def test_missing_annotations_and_predictions_are_not_marked_wrong() -> None:
    tagged = Utterance("1", ("go",), ("p",), ("B-x",))
    assert shown(tagged, Utterance("1", ("go",), ("p",))).kinds == "0"
    assert shown(replace(tagged, tags=None), tagged).kinds == "0"
    assert shown(replace(tagged, intents=None), replace(tagged, intents=("z",))).kinds == "0"


def test_specifiers_do_not_count_where_they_are_dropped() -> None:
    from harness.model.understanding import Detail

    gold, prediction = (Utterance("1", ("go",), ("p",), (tag,)) for tag in ("B-n-rooms", "B-n-guests"))
    assert shown(gold, prediction).kinds == "C"
    assert shown(gold, prediction, Rule(detail=Detail.RELAX)).kinds == "0"


def test_the_worst_are_shown_and_what_is_left_out_is_said() -> None:
    system_scoring = score(*made(3, 200), Rule())
    excerpt = selection([system_scoring], ["predicted"], 20)
    assert len(excerpt.utterances) == 20
    assert excerpt.total == 200
    assert 20 < excerpt.with_errors < 200
    assert all(utterance.kinds != "0" for utterance in excerpt.utterances)
    text = page([SystemReport(counted([system_scoring]))], [system_scoring], most_utterances=20)
    assert "The 20 worst are shown; 180 are left out" in text
    assert text.count("<article") == 20


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.scripts, self.open, self.wrong = 0, [], []  # type: ignore[var-annotated]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.scripts += tag == "script"
        self.wrong += [name for name, value in attrs if name.startswith("on") or "http" in (value or "")]


def test_hostile_text_is_shown_and_never_obeyed() -> None:
    word = HOSTILE.replace(" ", "")
    gold = Utterance(HOSTILE, (word, word), (HOSTILE,), ("O", f"B-{word}"), None, ((HOSTILE, HOSTILE), ("b", "c")))
    prediction = replace(gold, intents=(f"x{HOSTILE}",), tags=(f"B-{word}", "O"))
    system_scoring = score(
        Corpus(HOSTILE, (gold, replace(gold, id="2", groups=()))),
        Corpus(HOSTILE, (prediction, replace(prediction, id=HOSTILE + "?"))),
        Rule(),
    )
    text = page([SystemReport(counted([system_scoring]))], [system_scoring])
    tags = _Tags()
    tags.feed(text)
    assert (tags.scripts, tags.wrong) == (1, [])
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\e[2J\\u202e&amp;" in text


def test_several_systems_stand_below_one_gold_and_are_compared() -> None:
    gold, predicted = made(4, 60)
    other = Corpus(
        "other.jsonl", tuple(replace(utterance, intents=("greeting",)) for utterance in predicted.utterances)
    )
    first, second = scorings = [score(gold, corpus, Rule()) for corpus in (predicted, other)]
    text = page([SystemReport(counted([scoring])) for scoring in scorings], scorings, [compare(first, second)])
    assert "<bdi>1 pred</bdi> − <bdi>2 other</bdi>, on the" in text
    assert re.search(r"<article.*?gold</bdi>.*?1 pred</bdi>.*?2 other</bdi>", text, re.DOTALL)


def test_counts_alone_make_a_page_without_utterances() -> None:
    text = page([SystemReport(counted([score(*made(4, 60), Rule())]))])
    assert "<article" not in text
    assert "EMR (exact match)" in text
    with pytest.raises(ValueError, match="no system"):
        page([])


def test_how_many_utterances_are_over_nothing_stands_beside_the_means() -> None:
    gold = Corpus("g", (Utterance("1", ("go",), ()), Utterance("2", ("go",), ("p",)), Utterance("3", ("go",), ())))
    predicted = Corpus("p", (Utterance("1", ("go",), ()), Utterance("2", ("go",), ()), Utterance("3", ("go",), ("p",))))
    report = SystemReport(counted([score(gold, predicted, Rule())]))
    rows = {row.key: row for row in report.rows}
    for key in ("intent_accuracy", "precision_samples", "recall_samples", "f1_samples"):
        assert (rows[key].value, rows[key].counts) == (0.0, "mean over 3 utterances; 1 is 0/0"), key
    assert rows["emr"].counts == "1 of 3 utterances"
    right = SystemReport(counted([score(gold, gold, Rule())]))
    assert {row.key: row for row in right.rows}["intent_accuracy"].counts == "mean over 3 utterances; 2 are 0/0"


RULES = tuple(Rule(detail=detail) for detail in Detail)


def counts_of(gold: Corpus, predicted: Corpus, rules: tuple[Rule, ...] = RULES) -> SystemCounts:
    return counted([score(gold, predicted, rule) for rule in rules])


def written(counts: SystemCounts) -> str:
    return score_json([SystemReport(replace(counts, gold="g", predicted="p"), SEED, INTENTS)])


def cut(gold: Corpus, predicted: Corpus, parts: int, seed: int) -> list[tuple[Corpus, Corpus]]:
    """At random; none of the parts is empty. A prediction goes with its gold, one without gold to the first part."""
    draw = random.Random(seed)
    part = {utterance.id: draw.randrange(parts) for utterance in gold.utterances}
    part |= {utterance.id: shard for shard, utterance in enumerate(gold.utterances[:parts])}
    pairs = []
    for shard in range(parts):
        gold_part = tuple(utterance for utterance in gold.utterances if part[utterance.id] == shard)
        predicted_part = tuple(utterance for utterance in predicted.utterances if part.get(utterance.id, 0) == shard)
        pairs.append((Corpus(f"g{shard}", gold_part), Corpus(f"p{shard}", predicted_part)))
    return pairs


@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), parts=st.integers(2, 6))
def test_shards_put_together_in_any_order_are_the_whole_byte_for_byte(seed: int, parts: int) -> None:
    gold, predicted = made(seed, 120)
    shards = [counts_of(*pair) for pair in cut(gold, predicted, parts, seed)]
    whole = written(counts_of(gold, predicted))
    random.Random(seed).shuffle(shards)
    assert written(added(shards)) == whole


def test_a_written_shard_is_read_back(tmp_path: Path) -> None:
    counts = counts_of(*made(1, 80))
    path = tmp_path / "a.json"
    path.write_text(score_json([SystemReport(counts, SEED, INTENTS)]), encoding="ascii")
    report = read_score_json(path, "a.json")
    assert report.systems == (counts,)
    assert (report.zero, report.labels) == (SEED, INTENTS)


def test_a_shard_whose_predictions_tell_no_slots_is_refused() -> None:
    first, other = cut(*made(1, 40, slots=False), 2, 1)
    mute = Corpus("p", tuple(replace(utterance, tags=None) for utterance in other[1].utterances))
    with pytest.raises(ValueError, match="slots are predicted in the first but not in the other"):
        added([counts_of(*first), counts_of(other[0], mute)])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", "this file does not contain understanding scores"),
        ('{"kind": "understanding", "format": 99}', "the file has format 99, but this version reads 1"),
        (
            '{"kind": "understanding", "format": 1}',
            "the file has no key 'details': it is damaged, or an earlier version wrote it",
        ),
        ("\xff", "the file is damaged"),
    ],
)
def test_files_that_are_not_shards_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=message):
        read_score_json(path, "a.json")


@given(data=st.data())
def test_a_file_with_one_value_changed_is_read_or_refused(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    tree = json.loads(score_json([SystemReport(counts_of(*made(1, 6)), SEED)]))
    node = tree
    while True:
        key = data.draw(st.sampled_from(list(node) if isinstance(node, dict) else range(len(node))))
        if not isinstance(node[key], dict | list) or not node[key] or data.draw(st.integers(0, 9)) == 0:
            break
        node = node[key]
    node[key] = data.draw(
        st.none() | st.booleans() | st.integers(-2, 2) | st.text(max_size=2) | st.just([]) | st.just({})
    )
    path = tmp_path_factory.getbasetemp() / "changed.json"
    path.write_text(json.dumps(tree), encoding="utf-8")
    try:
        report = read_score_json(path, "a.json")
    except InputError:
        return
    assert report.systems
