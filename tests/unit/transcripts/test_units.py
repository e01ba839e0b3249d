"""Error rates by character, and by character and word together."""

from __future__ import annotations

import unicodedata

import jiwer
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.choices import TextUnit
from harness.model.transcript import Edit, Normalisation
from harness.transcripts.scoring import Scoring
from harness.transcripts.words import WordRules, units
from tests.unit.transcripts.reports.scorings import scored

CHARS = WordRules(Normalisation.VERBATIM, unit=TextUnit.CHAR)


def pair(reference: str, hypothesis: str, wording: WordRules = CHARS) -> Scoring:
    return scored({"a_1": reference}, {"a_1": hypothesis}, wording)


@pytest.mark.parametrize(
    ("text", "chars", "mixed"),
    [
        ("on off", "o n o f f", "on off"),
        ("e\u0301te\u0301", "\u00e9 t \u00e9", "\u00e9t\u00e9"),  # NFC
        ("打开 volume 三", "打 开 v o l u m e 三", "打 开 volume 三"),
        ("把volume调", "把 v o l u m e 调", "把 volume 调"),
        ("ラーメンを", "ラ ー メ ン を", "ラ ー メ ン を"),
        ("ไม่กำ", "ไ ม่ กำ", "ไ ม่ กำ"),  # vowel signs and tones stay with their consonant
        ("불 켜", "불 켜", "불 켜"),
        ("불켜 줘", "불 켜 줘", "불켜 줘"),  # Korean writes spaces
        ("\u1112\u1161\u11ab", "\ud55c", "\ud55c"),
        ("ok 👨\u200d👩\u200d👧", "o k 👨\u200d👩\u200d👧", "ok 👨\u200d👩\u200d👧"),
        ("", "", ""),
    ],
)
def test_text_is_split_into_characters_or_mixed_units(text: str, chars: str, mixed: str) -> None:
    assert units(text, TextUnit.CHAR) == chars.split()
    assert units(text, TextUnit.MIXED) == mixed.split()
    assert units(text, TextUnit.WORD) == text.split()


@given(st.text())
def test_nothing_but_spaces_is_lost(text: str) -> None:
    bare = "".join(unicodedata.normalize("NFC", text).split())
    for unit in (TextUnit.CHAR, TextUnit.MIXED):
        assert "".join(units(text, unit)) == bare


LETTERS = st.text(alphabet="abcé京東 ", min_size=1).filter(str.strip)


@given(LETTERS, LETTERS)
def test_as_few_errors_as_jiwer_finds_without_spaces(reference: str, hypothesis: str) -> None:
    bare = jiwer.Compose([jiwer.RemoveWhiteSpace(), jiwer.ReduceToListOfListOfChars()])
    totals = pair(reference, hypothesis).totals
    least = jiwer.process_characters(reference, hypothesis, bare, bare)
    # sclite's weights may take a path with an error more; the cost of its path is never higher.
    assert totals.errors >= least.substitutions + least.deletions + least.insertions
    cost = 4 * totals.substitutions + 3 * (totals.deletions + totals.insertions)
    assert cost <= 4 * least.substitutions + 3 * (least.deletions + least.insertions)
    assert totals.words == least.hits + least.substitutions + least.deletions


def test_alternatives_are_compared_by_character() -> None:
    scoring = pair("把 { 声音 / 音量 } 调到 { 三 / 3 / @ }", "把音量调到")
    assert (scoring.totals.words, scoring.totals.errors) == (5, 0)
    (utterance,) = pair("a { bc / de }", "adf").utterances()
    assert [word.edit for word in utterance.words] == [Edit.CORRECT, Edit.CORRECT, Edit.SUBSTITUTION]


def test_spoken_reads_words_and_counts_characters() -> None:
    spoken = WordRules(Normalisation.SPOKEN, unit=TextUnit.CHAR)
    assert pair("at 7:30 lights on", "at half past seven light on", spoken).totals.errors == 1
    assert pair("it's 5 km", "it is five kilometers", spoken).totals.errors == 0


def test_the_name_says_the_unit() -> None:
    assert pair("a", "a").normalisation == "verbatim, unit char"
    assert pair("a", "a").unit is TextUnit.CHAR
