"""Grammars and label sets: their files, what is wrong with them, and the corpora that are generated."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from harness.model.errors import InputError, InputProblems
from harness.model.understanding import Corpus, Utterance
from harness.understanding.files.grammar_file import (
    MAX_DEPTH,
    load_grammar,
    load_grammars,
    parse_pattern,
    spoken_values,
)
from harness.understanding.files.label_set_file import load_label_map, load_label_set
from harness.understanding.grammar import (
    AlternativePart,
    OptionalPart,
    PhrasePart,
    SequencePart,
    SlotPart,
    SpokenKind,
    TextPart,
    fingerprint,
    generate,
)
from tests.files import file_with

GRAMMARS = Path(__file__).parents[3] / "scenarios" / "understanding"
SIZES = {"train": 4000, "dev": 500, "test": 1000}
DEFAULT = "147e194cc6d8e318c819853c17e30fb748309fddf2687c2d9c4357c7a1542e2f"
"""sha256 of the corpus that `harness understanding generate scenarios/understanding` makes with seed 1."""


@cache
def default() -> Corpus:
    return generate(load_grammars(sorted(GRAMMARS.glob("*.yaml"))), 1, SIZES)


def of(split: str) -> list[Utterance]:
    return [utterance for utterance in default().utterances if dict(utterance.groups)["split"] == split]


def numbers(
    folder: Path, corrected: float = 0, starts: float = 0, max_number: int = 999, seed: int = 1, **sizes: int
) -> Corpus:
    """Of a grammar of one sentence with a number."""
    path = file_with(folder / "grammar.yaml", NUMBERS.format(corrected=corrected, starts=starts, max_number=max_number))
    return generate((load_grammar(path),), seed, sizes)


NUMBERS = """\
grammar: numbers
habits: {{two_intents: 0, corrected: {corrected}, corrections: [rather], false_starts: {starts}, restarts: [again]}}
values: {{n: {{spoken: number, from: 1, to: {max_number}}}}}
intents: [{{intent: count, say: ["count to {{n}} now"]}}]
"""


def test_the_default_corpus_is_pinned() -> None:
    assert fingerprint(default()) == DEFAULT


def test_a_split_does_not_depend_on_the_size_of_those_after_it(tmp_path: Path) -> None:
    some = numbers(tmp_path, 0.5, 0.5, train=50, test=20)
    more = numbers(tmp_path, 0.5, 0.5, train=50, test=200)
    assert some.utterances == more.utterances[:70]
    assert numbers(tmp_path, 0.5, 0.5, seed=2, train=50).utterances[:50] != some.utterances[:50]


def test_no_sentence_is_there_twice() -> None:
    texts = Counter(utterance.text for utterance in default().utterances)
    assert texts.most_common(1)[0][1] == 1
    assert Counter(dict(utterance.groups)["split"] for utterance in default().utterances) == SIZES


def test_every_label_is_learned_some_are_rare_and_a_share_has_two() -> None:
    learned, tested = (
        Counter(label for utterance in of(split) for label in utterance.intents or ()) for split in ("train", "test")
    )
    assert set(tested) <= set(learned)
    assert len(learned) == 51
    assert max(learned.values()) > 30 * min(learned.values())
    sets = [utterance.intents or () for utterance in default().utterances]
    assert 0.12 < sum(len(intents) > 1 for intents in sets) / len(sets) < 0.17
    assert {intents for intents in sets if "discourse_marker" in intents} == {("discourse_marker",)}, "it stands alone"


def test_numbers_are_normalised_and_specifiers_told_apart() -> None:
    values = {
        (slot.concept, " ".join(utterance.words[slot.start : slot.end])): slot.value
        for utterance in default().utterances
        for slot in utterance.slots or ()
    }
    assert values["level", "sixty"] == "60"
    assert values["time-start", "half past seven"] == "7:30"
    assert values["room", "lounge"] == "living room"
    concepts = {concept for concept, _ in values}
    assert {"time-start", "time-end", "city-from", "city-to", "date-start", "date-end"} <= concepts


def test_some_values_come_in_the_test_split_alone() -> None:
    texts_by_split = {split: {" ".join(utterance.words) for utterance in of(split)} for split in SIZES}
    for unseen in ("winter tyres", "saint malo", "violet hill choir"):
        assert not any(unseen in text for text in texts_by_split["train"] | texts_by_split["dev"])
        assert any(unseen in text for text in texts_by_split["test"])


def test_a_withdrawn_value_is_not_a_slot(tmp_path: Path) -> None:
    utterances = [
        utterance for utterance in numbers(tmp_path, corrected=1, test=60).utterances if "rather" in utterance.words
    ]
    assert len(utterances) > 50
    for utterance in utterances:
        (slot,) = utterance.slots or ()
        assert slot.start == utterance.words.index("rather") + 1
        assert slot.end == len(utterance.words) - 1


def test_a_false_start_is_not_a_slot(tmp_path: Path) -> None:
    for utterance in numbers(tmp_path, starts=1, test=60).utterances:
        assert utterance.words.count("count") == 2
        begins = len(utterance.words) - 1 - utterance.words[::-1].index("count")
        (slot,) = utterance.slots or ()
        assert slot.start == begins + 2


def test_a_grammar_that_cannot_give_so_many_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="yield only about 40 different sentences"):
        numbers(tmp_path, max_number=40, train=30, test=20)
    assert len(numbers(tmp_path, max_number=40, train=30).utterances) == 30


def test_a_sentence_has_a_word(tmp_path: Path) -> None:
    path = file_with(tmp_path / "grammar.yaml", "grammar: g\nintents: [{intent: ask, say: ['[please] [now]']}]\n")
    texts = {utterance.text for utterance in generate((load_grammar(path),), 1, {"train": 3}).utterances}
    assert texts == {"please", "now", "please now"}


WHOLE = """\
grammar: tea
habits:
  two_intents: 0.5
  connectives: [and then]
values:
  kind:
    say: [green, {say: earl grey, value: bergamot, weight: 3}]
    unseen: [oolong]
    unseen_share: 0.4
  cups: {spoken: number, from: 20, to: 24, step: 2}
phrases:
  ask: (please|could you)
intents:
  - intent: brew
    weight: 2
    say:
      - "[<ask>] make {cups} cups of {kind=kind} tea"
      - {say: "brew {tea-kind=kind}", weight: 0.5, unseen: true}
  - intent: [thank, stop]
    say: [thanks that is enough]
  - {intent: hm, alone: true, say: [hm]}
"""


def written(folder: Path, text: str, name: str = "tea.yaml") -> Path:
    return file_with(folder / name, text)


def test_every_key_of_a_grammar_is_read(tmp_path: Path) -> None:
    path = written(tmp_path, WHOLE)
    read = load_grammar(path)
    kind, cups = read.values
    assert [(entry.words, entry.value, entry.weight) for entry in kind.values] == [
        (("green",), None, 1.0),
        (("earl", "grey"), "bergamot", 3.0),
    ]
    assert [entry.words for entry in kind.unseen] == [("oolong",)]
    assert kind.unseen_share == 0.4
    assert [(entry.words, entry.value) for entry in cups.values] == [
        (("twenty",), "20"),
        (("twenty", "two"), "22"),
        (("twenty", "four"), "24"),
    ]
    brew, both_labels, alone = read.intents
    assert both_labels.label == ("stop", "thank")
    assert (brew.weight, brew.alone, alone.alone) == (2.0, False, True)
    assert brew.sentences[0].part == SequencePart(
        (
            OptionalPart(PhrasePart("ask")),
            TextPart(("make",)),
            SlotPart("cups", "cups"),
            TextPart(("cups", "of")),
            SlotPart("kind", "kind"),
            TextPart(("tea",)),
        )
    )
    assert brew.sentences[1].part == SequencePart((TextPart(("brew",)), SlotPart("tea-kind", "kind")))
    assert (brew.sentences[1].weight, brew.sentences[1].unseen) == (0.5, True)
    assert brew.sentences[0].place.line == 17
    assert read.phrases == (("ask", AlternativePart((TextPart(("please",)), TextPart(("could", "you"))))),)
    assert (read.habits.two_intents, read.habits.connectives) == (0.5, (("and", "then"),))


@pytest.mark.parametrize(
    ("old", "new", "line", "part"),
    [
        ("{cups} cups", "{cubs} cups", 17, "no list of values 'cubs'"),
        ("[<ask>]", "[<aks>]", 17, "no phrase 'aks'"),
        ("[<ask>]", "[<ask>", 17, "is not closed"),
        ("{cups} cups", "{cups cups", 17, "is neither a slot nor a phrase"),
        ("(please|could you)", "(please|<ask>)", 12, "contains itself"),
        ("(please|could you)", "(please|)", 12, "an alternative is empty"),
        ("from: 20, to: 24", "from: 24, to: 20", 10, "there are no numbers"),
        ("from: 20, to: 24", "from: 20", 10, "needs `to`"),
        ("from: 20, to: 24, step: 2", "from: 0, to: 99999999", 10, "more than 2000"),
        ("{spoken: number, from: 20, to: 24, step: 2}", "{say: [two], step: 2}", 10, "only a spoken list can have"),
        ("{spoken: number, from: 20, to: 24, step: 2}", "{say: [two], unseen_share: 0.5}", 10, "no unseen values"),
        ("step: 2}", "step: 2, unseen_share: 0.5}", 10, "a spoken list cannot have other values"),
        ("spoken: number", "spoken: numbers", 10, "is not supported here"),
        ("spoken: number", "spoken: time", 10, "20 is not a time"),
        ("unseen: [oolong]", "unseen: [green]", 8, "already in the list"),
        ("intent: brew", "intent: brew#tea", 14, "is not an intent"),
        ("weight: 2", "weight: 0", 15, "is too small"),
        ("two_intents: 0.5", "two_intents: 1.5", 3, "is too large"),
        ("alone: true", "alon: true", 21, "there is no key 'alon'"),
        ("[thanks that is enough]", "[{say: enough, unseen: true}]", 19, "all sentences are for the test split"),
    ],
)
def test_grammar_mistakes_are_reported_with_their_line(
    tmp_path: Path, old: str, new: str, line: int, part: str
) -> None:
    assert old in WHOLE
    path = written(tmp_path, WHOLE.replace(old, new, 1))
    with pytest.raises(InputProblems) as caught:
        load_grammar(path)
    problems = [(problem.place.line, problem.what) for problem in caught.value.problems if problem.place]
    assert any(number == line and part in message for number, message in problems), problems
    assert all(problem.remedy for problem in caught.value.problems)


def test_the_grammar_example_of_the_page_is_valid(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "train-understanders.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    read = load_grammar(written(tmp_path, example))
    assert [intent.label for intent in read.intents] == [("brew",), ("hm",)]
    assert len(generate((read,), 1, {"train": 200, "test": 50}).utterances) == 250


def test_a_file_of_another_kind_and_two_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a grammar file is expected"):
        load_grammar(written(tmp_path, "round: a\n", "round.yaml"))
    with pytest.raises(InputError, match="both have the name 'tea'"):
        load_grammars([written(tmp_path, WHOLE), written(tmp_path, WHOLE, "again.yaml")])


def test_brackets_are_not_nested_without_end() -> None:
    with pytest.raises(ValueError, match="nested"):
        parse_pattern("(" * 5000 + "a" + ")" * 5000)
    assert parse_pattern("(" * (MAX_DEPTH - 1) + "a" + ")" * (MAX_DEPTH - 1)) == TextPart(("a",))


@pytest.mark.parametrize("pattern", ["a)", "a]", "(a]", "", "[]", "a | ", "<", "{a b}", "{a=}"])
def test_a_pattern_that_cannot_be_read_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError):
        parse_pattern(pattern)


def test_times_are_said_as_people_say_them() -> None:
    value_by_words = {
        " ".join(entry.words): entry.value
        for entry in spoken_values(SpokenKind.TIME, (7 * 60 + 30, 18 * 60 + 45, 12 * 60))
    }
    assert value_by_words["half past seven"] == value_by_words["seven thirty"] == "7:30"
    assert value_by_words["seven thirty a m"] == "7:30"
    assert value_by_words["quarter to seven"] == "6:45"
    assert value_by_words["six forty five in the evening"] == "18:45"
    assert value_by_words["noon"] == "12:00"
    assert [(entry.words, entry.value) for entry in spoken_values(SpokenKind.ORDINAL, (31,))] == [
        (("thirty", "first"), "31")
    ]


ROOT = Path(__file__).parents[3]
HEAD = "label_set: t\nlabels:\n  - {id: a, description: is a, key: 1}\n  - {id: b, description: is b}\n"


def load(tmp_path: Path, text: str) -> list[str]:
    path = file_with(tmp_path / "labels.yaml", text)
    with pytest.raises(InputProblems) as raised:
        load_label_set(path)
    return [str(problem).removeprefix(f"{path}:") for problem in raised.value.problems]


def test_the_example_of_the_page_is_read_whole(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "reference" / "label-sets.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    path = file_with(tmp_path / "lamps.yaml", example)
    label_set = load_label_set(path)
    assert label_set.ids == ("switch_on", "switch_off", "ask", "thank", "filler")
    assert label_set.never_together == (("switch_on", "switch_off"),)
    first = label_set.labels[0]
    assert (first.key, first.examples[1].labels) == ("o", ("switch_on", "thank"))
    assert first.counterexamples[0].labels == ("ask",)
    assert label_set.labels[4].alone
    assert [(concept.id, concept.key) for concept in label_set.concepts] == [("room", "r"), ("brightness", "")]


@pytest.mark.parametrize(
    ("more", "line", "message"),
    [
        ("  - {id: a, description: again}\n", 5, "the id 'a' is already on line 3"),
        ("  - {id: c, description: c, key: '1'}\n", 5, "the key '1' is already on line 3"),
        ("  - {id: c, description: c, key: ab}\n", 5, "'ab' is not a single character"),
        ("  - {id: 'c d', description: c}\n", 5, "'c d' is not a valid label"),
        ("  - {id: 'c#d', description: c}\n", 5, "'c#d' is not a valid label"),
        ("  - {id: c}\n", 5, "the key 'description' is missing"),
        ("never_together: [[a, x]]\n", 5, "there is no label 'x'"),
        ("never_together: [[a, a]]\n", 5, "'a' cannot exclude itself"),
        ("never_together: [[a]]\n", 5, "expected a pair of labels, found 1"),
        ("never_together: [[a, b]]\nmay_be_empty: maybe\n", 6, "expected true or false"),
        (
            "  - id: c\n    description: c\n    examples: [{text: x, labels: [a]}]\n",
            7,
            "an example of 'c' does not have that label",
        ),
        (
            "  - id: c\n    description: c\n    alone: true\n    examples: [{text: x, labels: [a, c]}]\n",
            8,
            "the rules of this file forbid these labels: c must be the only label",
        ),
        (
            "  - id: c\n    description: c\n    counterexamples: [{text: x, labels: [c], why: no}]\n",
            7,
            "the counterexample has the label 'c'",
        ),
        ("  - id: c\n    description: c\n    counterexamples: [{text: x, labels: [a]}]\n", 7, "'why' is missing"),
    ],
)
def test_label_set_mistakes_are_reported_with_their_line(tmp_path: Path, more: str, line: int, message: str) -> None:
    (problem,) = load(tmp_path, HEAD + more)
    assert problem.startswith(f"{line}:")
    assert message in problem


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    assert len(load(tmp_path, HEAD + "  - {id: a, description: x}\nnever_together: [[a, x], [b, b]]\n")) == 3


def test_the_set_of_the_generated_corpus_has_all_intents_of_its_grammars() -> None:
    label_set = load_label_set(ROOT / "scenarios" / "labels" / "generated.yaml")
    grammars = [load_grammar(path) for path in sorted((ROOT / "scenarios" / "understanding").glob("*.yaml"))]
    assert set(label_set.ids) == {label for grammar in grammars for intent in grammar.intents for label in intent.label}


def test_the_media_preset_leads_to_its_label_set() -> None:
    label_set = load_label_set(ROOT / "scenarios" / "labels" / "media.yaml")
    assert set(label_set.ids) == set(load_label_map("media").values())
    assert [label.id for label in label_set.labels if label.alone] == ["discourse_marker"]
    assert all(label.key and label.examples for label in label_set.labels)


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("no thank you", {"negative_answer"}),  # Table 11: "non merci"
        ("that is beyond what we can pay", {"booking"}),  # B.8.1: "c'est trop cher"
        ("rather the second week of june", {"booking"}),  # B.8: an implicit correction
        ("no in lyon", {"booking", "negative_answer"}),  # Table 16: "non à Lorient"
        ("yes but with a double bed", {"affirmative_answer", "booking"}),  # Table 17: "parfait je veux réserver deux …"
        ("sorry which street was that", {"information"}),  # Table 13: "hôtel comment"
        ("and i would like", {"incomprehension"}),  # Table 12: "et je voudrais"
    ],
)
def test_the_media_set_labels_as_the_guide_of_the_paper(text: str, labels: set[str]) -> None:
    label_set = load_label_set(ROOT / "scenarios" / "labels" / "media.yaml")
    stated = [
        set(example.labels or [label.id])
        for label in label_set.labels
        for example in (*label.examples, *label.counterexamples)
        if example.text == text
    ]
    assert stated
    assert all(example_labels == labels for example_labels in stated)


def test_label_maps_are_read(tmp_path: Path) -> None:
    path = file_with(tmp_path / "map.csv", "from,to\nalt,a\nneu, b \n")
    assert load_label_map(str(path)) == {"alt": "a", "neu": "b"}
    path.write_text("from,to\nalt,a\nalt,b\n", encoding="utf-8")
    with pytest.raises(InputProblems, match=r"map.csv:3.*'alt' already occurs"):
        load_label_map(str(path))
    with pytest.raises(InputError, match="is not a file or a preset"):
        load_label_map("nedia")
