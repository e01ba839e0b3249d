"""Grammar files become what they say, and what is wrong with them is told with its line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.model.errors import InputError, InputProblems
from harness.understanding.files.grammar_file import (
    MOST_DEPTH,
    load_grammar,
    load_grammars,
    parse_pattern,
    spoken_values,
)
from harness.understanding.grammar import InTurn, Maybe, OneOf, PhraseUse, SaidText, SlotPart, SpokenKind, generate

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
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_grammar_says_all_that_it_can(tmp_path: Path) -> None:
    path = written(tmp_path, WHOLE)
    read = load_grammar(path)
    kind, cups = read.values
    assert [(one.words, one.value, one.weight) for one in kind.values] == [
        (("green",), None, 1.0),
        (("earl", "grey"), "bergamot", 3.0),
    ]
    assert [one.words for one in kind.unseen] == [("oolong",)]
    assert kind.unseen_share == 0.4
    assert [(one.words, one.value) for one in cups.values] == [
        (("twenty",), "20"),
        (("twenty", "two"), "22"),
        (("twenty", "four"), "24"),
    ]
    brew, both, alone = read.intents
    assert both.label == ("stop", "thank")
    assert (brew.weight, brew.alone, alone.alone) == (2.0, False, True)
    assert brew.sentences[0].part == InTurn(
        (
            Maybe(PhraseUse("ask")),
            SaidText(("make",)),
            SlotPart("cups", "cups"),
            SaidText(("cups", "of")),
            SlotPart("kind", "kind"),
            SaidText(("tea",)),
        )
    )
    assert brew.sentences[1].part == InTurn((SaidText(("brew",)), SlotPart("tea-kind", "kind")))
    assert (brew.sentences[1].weight, brew.sentences[1].unseen) == (0.5, True)
    assert brew.sentences[0].place.line == 17
    assert read.phrases == (("ask", OneOf((SaidText(("please",)), SaidText(("could", "you"))))),)
    assert (read.habits.two_intents, read.habits.connectives) == (0.5, (("and", "then"),))


@pytest.mark.parametrize(
    ("old", "new", "line", "what"),
    [
        ("{cups} cups", "{cubs} cups", 17, "no list of values 'cubs'"),
        ("[<ask>]", "[<aks>]", 17, "no phrase 'aks'"),
        ("[<ask>]", "[<ask>", 17, "is not closed"),
        ("{cups} cups", "{cups cups", 17, "is no slot and no phrase"),
        ("(please|could you)", "(please|<ask>)", 12, "contains itself"),
        ("(please|could you)", "(please|)", 12, "a part is empty"),
        ("from: 20, to: 24", "from: 24, to: 20", 10, "there are no numbers"),
        ("from: 20, to: 24", "from: 20", 10, "needs 'to'"),
        ("from: 20, to: 24, step: 2", "from: 0, to: 99999999", 10, "more than 2000"),
        ("spoken: number", "spoken: numbers", 10, "is not a word for this"),
        ("spoken: number", "spoken: time", 10, "20 is no time"),
        ("unseen: [oolong]", "unseen: [green]", 8, "in the list already"),
        ("intent: brew", "intent: brew#tea", 14, "is not an intent"),
        ("weight: 2", "weight: 0", 15, "is too small"),
        ("two_intents: 0.5", "two_intents: 1.5", 3, "is too large"),
        ("alone: true", "alon: true", 21, "there is no key 'alon'"),
        ("[thanks that is enough]", "[{say: enough, unseen: true}]", 19, "every sentence is for the test split alone"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, old: str, new: str, line: int, what: str) -> None:
    assert old in WHOLE
    path = written(tmp_path, WHOLE.replace(old, new, 1))
    with pytest.raises(InputProblems) as caught:
        load_grammar(path)
    told = [(one.place.line, one.what) for one in caught.value.problems if one.place]
    assert any(at == line and what in said for at, said in told), told
    assert all(one.remedy for one in caught.value.problems)


def test_the_example_of_the_page_is_right(tmp_path: Path) -> None:
    page = (Path(__file__).parents[4] / "docs" / "understanders.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    read = load_grammar(written(tmp_path, example))
    assert [one.label for one in read.intents] == [("brew",), ("hm",)]
    assert len(generate((read,), 1, {"train": 200, "test": 50}).utterances) == 250


def test_a_file_of_another_kind_and_two_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a grammar file is wanted"):
        load_grammar(written(tmp_path, "round: a\n", "round.yaml"))
    with pytest.raises(InputError, match="both have the name 'tea'"):
        load_grammars([written(tmp_path, WHOLE), written(tmp_path, WHOLE, "again.yaml")])


def test_brackets_are_not_nested_without_end() -> None:
    with pytest.raises(ValueError, match="nested"):
        parse_pattern("(" * 5000 + "a" + ")" * 5000)
    assert parse_pattern("(" * (MOST_DEPTH - 1) + "a" + ")" * (MOST_DEPTH - 1)) == SaidText(("a",))


@pytest.mark.parametrize("pattern", ["a)", "a]", "(a]", "", "[]", "a | ", "<", "{a b}", "{a=}"])
def test_a_pattern_that_cannot_be_read_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError):
        parse_pattern(pattern)


def test_times_are_said_as_people_say_them() -> None:
    said = {
        " ".join(one.words): one.value for one in spoken_values(SpokenKind.TIME, (7 * 60 + 30, 18 * 60 + 45, 12 * 60))
    }
    assert said["half past seven"] == said["seven thirty"] == "7:30"
    assert said["seven thirty a m"] == "7:30"
    assert said["quarter to seven"] == "6:45"
    assert said["six forty five in the evening"] == "18:45"
    assert said["noon"] == "12:00"
    assert [(one.words, one.value) for one in spoken_values(SpokenKind.ORDINAL, (31,))] == [(("thirty", "first"), "31")]
