"""The three conversions of .sro text: every example of the conventions, what they leave open, and what always holds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.errors import InputError, Place
from harness.transcripts.snor import (
    EditEnd,
    EditStart,
    Marker,
    SnorForm,
    SroEvent,
    SroPause,
    SroWord,
    Token,
    convert,
    homophone,
    split_id,
    tokens,
    words,
)
from tests.known import known

LEXICAL, EXPANDED, SNR = SnorForm.LEXICAL, SnorForm.EXPANDED, SnorForm.SNR

FLIGHT = (
    "<What> <!day> (1) does flight, eight seventy seven from        San Francisco to Dallas, leave from "
    "(1 What !date) (bb00e1sx)"
)
CLASSES = "[uh] Show me: !classes, Q W a:nd Q X (bn0051sx)"
OAKLAND = "How far: distance is San Francisco from *Ol*- Oakland (bt0041sx)"


@pytest.mark.parametrize(
    ("form", "line", "expected"),
    [
        # Lexical SNOR, exceptions 1 and 2
        (LEXICAL, "<what> <is> <no> what does C U mean", "WHAT IS NO WHAT DOES C U MEAN"),
        (
            LEXICAL,
            "what day (1) does flight one leave (1 what          date)   ",
            "WHAT DAY DOES FLIGHT ONE LEAVE WHAT DATE",
        ),
        # Expanded SNOR, exceptions 1 to 5
        (EXPANDED, "[uh] what [um] does C U mean", "[UH] WHAT [UM] DOES C U MEAN"),
        (EXPANDED, "<where> what does D U mean", "<WHERE> WHAT DOES D U MEAN"),
        (EXPANDED, "show me tr- transportation codes", "SHOW ME TR- TRANSPORTATION CODES"),
        (EXPANDED, "what . does . . C U mean", "WHAT PAUSE DOES PAUSE PAUSE C U MEAN"),
        (EXPANDED, "What *does* C U mean", "WHAT =DOES= C U MEAN"),
        # .snr, rules 2 to 7
        (SNR, "<what> <is> <no> what does c u mean", "WHAT DOES C U MEAN"),
        (SNR, "[uh] what [um] does C U mean", "WHAT DOES C U MEAN"),
        (SNR, "what *does* C U mean", "WHAT DOES C U MEAN"),
        (SNR, "show me tr- transportation codes", "SHOW ME TRANSPORTATION CODES"),
        (SNR, "what . does . . C U mean", "WHAT DOES C U MEAN"),
        (SNR, "what do:es !C U mean.", "WHAT DOES C U MEAN"),
        # the full examples
        (
            EXPANDED,
            FLIGHT,
            "<WHAT> <DAY> DOES FLIGHT EIGHT SEVENTY SEVEN FROM SAN FRANCISCO TO DALLAS LEAVE FROM WHAT DATE (BB00E1SX)",
        ),
        (
            LEXICAL,
            FLIGHT,
            "WHAT DAY DOES FLIGHT EIGHT SEVENTY SEVEN FROM SAN FRANCISCO TO DALLAS LEAVE FROM WHAT DATE (BB00E1SX)",
        ),
        (SNR, FLIGHT, "DOES FLIGHT EIGHT SEVENTY SEVEN FROM SAN FRANCISCO TO DALLAS LEAVE FROM WHAT DATE (BB00E1SX)"),
        (EXPANDED, CLASSES, "[UH] SHOW ME CLASSES Q W AND Q X (BN0051SX)"),
        (LEXICAL, CLASSES, "SHOW ME CLASSES Q W AND Q X (BN0051SX)"),
        (SNR, CLASSES, "SHOW ME CLASSES Q W AND Q X (BN0051SX)"),
        (EXPANDED, OAKLAND, "HOW FAR DISTANCE IS SAN FRANCISCO FROM =OL=- OAKLAND (BT0041SX)"),
        (LEXICAL, OAKLAND, "HOW FAR DISTANCE IS SAN FRANCISCO FROM OAKLAND (BT0041SX)"),
        (SNR, OAKLAND, "HOW FAR DISTANCE IS SAN FRANCISCO FROM OAKLAND (BT0041SX)"),
    ],
)
def test_every_example_of_the_conventions(form: SnorForm, line: str, expected: str) -> None:
    assert convert(line, form) == expected
    assert convert(expected, form) == expected


@pytest.mark.parametrize(
    ("line", "lexical", "expanded", "snr"),
    [
        # the id
        ("(bb00e1sx)", "(BB00E1SX)", "(BB00E1SX)", "(BB00E1SX)"),
        ("[uh] (ab)", "(AB)", "[UH] (AB)", "(AB)"),
        ("say(ab)  ", "SAY (AB)", "SAY (AB)", "SAY (AB)"),
        ("say ( ab )", "SAY (AB)", "SAY (AB)", "SAY (AB)"),
        ("say (10)", "SAY (10)", "SAY (10)", "SAY (10)"),
        ("say (1what)", "SAY (1WHAT)", "SAY (1WHAT)", "SAY (1WHAT)"),
        ("say (a.b:c-*)", "SAY (A.B:C-*)", "SAY (A.B:C-*)", "SAY (A.B:C-*)"),
        ("say (5)", "SAY", "SAY", "SAY"),
        ("", "", "", ""),
        (" \t ", "", "", ""),
        # pauses and marks
        (". a .", "A", "PAUSE A PAUSE", "A"),
        (". (ab)", "(AB)", "PAUSE (AB)", "(AB)"),
        ("a .. b ... , : ! ? ,.", "A B", "A B", "A B"),
        ("a.m. 12:30 wh:y?! yes,no", "AM 1230 WHY YESNO", "AM 1230 WHY YESNO", "AM 1230 WHY YESNO"),
        ("[um]. a", "A", "[UM] A", "A"),
        ("[um] . a", "A", "[UM] PAUSE A", "A"),
        ("(1) a (1 b). c", "A B C", "A B C", "A B C"),
        ("(1 . a .)", "A", "PAUSE A PAUSE", "A"),
        ("<a . b>", "A B", "<A> PAUSE <B>", ""),
        # events
        ("wh[uh]at", "WH AT", "WH [UH] AT", "WH AT"),
        ("[uh][um]x", "X", "[UH] [UM] X", "X"),
        ("[Throat_Clear] [ uh ] [uh:,] [throat clear]", "", "[THROAT_CLEAR] [UH] [UH] [THROAT_CLEAR]", ""),
        ("[*uh*] [uh-] [it's]", "", "[=UH=] [UH-] [IT'S]", ""),
        ("[] [.] <> <,> a", "A", "A", "A"),
        # deletions
        ("<a b c>", "A B C", "<A> <B> <C>", ""),
        ("< a >", "A", "<A>", ""),
        ("<day>, !<day>. <day!>", "DAY DAY DAY", "<DAY> <DAY> <DAY>", ""),
        ("<what [uh] day>", "WHAT DAY", "<WHAT> [UH] <DAY>", ""),
        ("<no>what<is>", "NO WHAT IS", "<NO> WHAT <IS>", "WHAT"),
        ("<a><b>", "A B", "<A> <B>", ""),
        ("<it's> <o'clock_2>", "IT'S O'CLOCK_2", "<IT'S> <O'CLOCK_2>", ""),
        # stars
        ("*does", "DOES", "=DOES", "DOES"),
        ("*a b*", "A B", "=A B=", "A B"),
        ("d*oe*s **", "DOES", "D=OE=S ==", "DOES"),
        ("*", "", "=", ""),
        ("*<,> a", "A", "= A", "A"),
        ("<*does*> *<does>*", "DOES DOES", "<=DOES=> =<DOES>=", ""),
        # false starts
        ("tr-, tr-. !tr- *tr*- *tr-*", "", "TR- TR- TR- =TR=- =TR-=", ""),
        ("<tr-> <tr>- (1 tr- b)", "B", "<TR-> <TR>- TR- B", "B"),
        ("- -- one-way -x o'", "ONE-WAY -X O'", "- -- ONE-WAY -X O'", "ONE-WAY -X O'"),
        # edit cues
        ("a(1)b", "A B", "A B", "A B"),
        ("(1)(2) a (2 b)(1 c)", "A B C", "A B C", "A B C"),
        ("( 1) a ( 1  b ) ( 2 )", "A B", "A B", "A B"),
        ("(1 a (2) b (2 c) d) e", "A B C D E", "A B C D E", "A B C D E"),
        ("(1 <a b> [uh] c,) <d (1) e (2 f)>", "A B C D E F", "<A> <B> [UH] C <D> <E> <F>", "C"),
        ("(1[uh] a) (2<b>) c", "A B C", "[UH] A <B> C", "A C"),
        # upper case and spaces
        ("straße ŉ ﬁ", "STRASSE ʼN FI", "STRASSE ʼN FI", "STRASSE ʼN FI"),
        ("a\u2028b\x85c\x0bd\x0ce\xa0f\u3000g\rh", "A B C D E F G H", "A B C D E F G H", "A B C D E F G H"),
        ("a\u200bb", "A\u200bB", "A\u200bB", "A\u200bB"),
        ("1: {a / b} x=y @ ;c", "1 {A / B} X=Y @ ;C", "1 {A / B} X=Y @ ;C", "1 {A / B} X=Y @ ;C"),
    ],
)
def test_cases_left_open_by_the_conventions(line: str, lexical: str, expanded: str, snr: str) -> None:
    assert tuple(convert(line, form) for form in SnorForm) == (lexical, expanded, snr)


def test_words_leave_the_id_out() -> None:
    assert words("what *does* <it> mean (ab12)") == ("WHAT", "DOES", "IT", "MEAN")
    assert words("what . <it> (ab12)", EXPANDED) == ("WHAT", "PAUSE", "<IT>")
    assert words("<it> [uh]", SNR) == ()
    assert words("") == ()
    assert words("what (1 date)", with_id=False) == ("WHAT", "DATE")
    with pytest.raises(InputError):
        words("what (date)", with_id=False)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("what does (1) flight one arrive (1 what date)", "WHAT DOES WHAT DATE FLIGHT ONE ARRIVE"),
        ("(1) a (2) b (2 c) (1 d) (xy)", "D A C B (XY)"),
        ("(1) a (1 b) (1) c (1 d)", "B A D C"),
        ("a (1 b) c (1)", "A B C"),
        ("(1) a (1 b (2) c (2 d))", "B D C A"),
        ("(1) a (1) b (1 c) (1 d)", "D A C B"),
        ("(1) <a> (1 [uh] tr- <b> c)", "C"),
        ("no cue here", "NO CUE HERE"),
    ],
)
def test_edited_words_go_to_the_last_free_marker_of_their_number_on_request(line: str, expected: str) -> None:
    assert convert(line, SNR, place_edits=True) == expected


def test_many_nested_cues_are_placed() -> None:
    depth = 5000
    line = "(1) a " + "(1 (2) b " * depth + "c" + ")" * depth
    assert convert(line, SNR, place_edits=True) == " ".join(["B"] * depth + ["C", "A"])


@pytest.mark.parametrize(
    ("word", "sound"),
    [("<WHERE>", "WHERE"), ("<TR>-", "TR-"), ("=<DOES>=", "=DOES="), ("WHERE", "WHERE"), ("[UH]", "[UH]"), ("<", "<")],
)
def test_a_deleted_word_sounds_like_the_word(word: str, sound: str) -> None:
    assert homophone(word) == sound


SIGNS = [*"ab1-*.,:!?<>[]()'_=ßŉ\x85\u2028\0", *"        ", "(1", "(2)", "(1 ", "<a", "b>", "[uh]", "(ab)", " . "]
SRO = st.lists(st.sampled_from(SIGNS), max_size=16).map("".join)


def converted(line: str, form: SnorForm, place_edits: bool) -> str | InputError:
    try:
        return convert(line, form, place_edits=place_edits)
    except InputError as error:
        return error


@given(st.one_of(SRO, st.text()), st.sampled_from(SnorForm), st.booleans())
def test_conversion_invariants_hold_for_any_line(line: str, form: SnorForm, place_edits: bool) -> None:
    snor_line = converted(line, form, place_edits)
    if isinstance(snor_line, InputError):
        assert snor_line.place is not None
        assert 1 <= snor_line.place.column <= len(line)
        assert snor_line.remedy
        return
    assert convert(snor_line, form, place_edits=place_edits) == snor_line
    assert snor_line == snor_line.upper() == " ".join(snor_line.split())
    id_ = split_id(line)[1]
    assert split_id(snor_line)[1] == id_.upper()
    assert words(snor_line, form) == tuple(snor_line.split()[: -1 if id_ else None])
    assert sorted(words(snor_line, form)) == sorted(words(line, form))


def read_sign_by_sign(text: str) -> list[object] | None:
    try:
        return list(tokens(text))
    except InputError:
        return None


@given(SRO.filter(lambda text: "\0" not in text and not split_id(text)[1]))
def test_chunk_lookup_equals_reading_the_whole_line(line: str) -> None:
    """A cue within a cue is nothing that can be looked up."""
    if read_sign_by_sign(line) is None:
        assert isinstance(converted(line, EXPANDED, False), InputError)
    else:
        assert words(line, EXPANDED) == words(f"(1 (1 a) {line} ) b", EXPANDED)[1:-1]


@pytest.mark.parametrize(("piece", "end"), [("a, ", ""), ("word", ""), ("<a> <b c> ", ""), ("(1 <a> ", ")")])
def test_a_very_long_line_takes_linear_time(piece: str, end: str) -> None:
    """A moment; what is quadratic would take hours, and the test's time limit."""
    pieces = 400_000 // len(piece)
    letters = sum(map(str.isalpha, piece))
    snor_line = convert(piece * pieces + end * pieces, LEXICAL)
    assert sum(map(str.isalpha, snor_line)) == letters * pieces


def test_the_example_of_the_documentation() -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference" / "snor.md").read_text(encoding="utf-8")
    line = known(re.search(r"^\$ echo '(.*)' > a\.sro$", page, re.MULTILINE))
    shown = re.findall(r"^\$ harness score snor --output-format (\w+) a\.sro\n(.*)$", page, re.MULTILINE)
    assert [form for form, _ in shown] == [form.value for form in SnorForm]
    assert [convert(line[1], SnorForm(form)) for form, _ in shown] == [output for _, output in shown]


@pytest.mark.parametrize(
    ("line", "text", "id_"),
    [
        ("what (bb00e1sx)", "what ", "bb00e1sx"),
        ("what (Bb-1.x)\r", "what ", "Bb-1.x"),
        ("(ab)", "", "ab"),
        ("what (1)", "what (1)", ""),
        ("what (1 what date)", "what (1 what date)", ""),
        ("what (10)", "what ", "10"),
        ("what (a)", "what (a)", ""),
        ("what (ab) .", "what (ab) .", ""),
        ("what ab)", "what ab)", ""),
        ("(1 a) b)", "(1 a) b)", ""),
        ("", "", ""),
    ],
)
def test_an_id_is_one_token_of_two_or_more_characters_at_the_end(line: str, text: str, id_: str) -> None:
    assert split_id(line) == (text, id_)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("so, *Ol*- .", [SroWord("so"), SroWord("*Ol*-"), SroPause()]),
        ("<a b>", [SroWord("a", True), SroWord("b", True)]),
        ("*<tr>-", [SroWord("tr", True, "*", "-")]),
        ("[throat clear].", [SroEvent("throat_clear")]),
        ("(1) a (2 b)", [Marker(1), SroWord("a"), EditStart(2), SroWord("b"), EditEnd()]),
    ],
)
def test_tokens_are_found_in_a_line(text: str, expected: list[Token]) -> None:
    assert tokens(text) == expected


@pytest.mark.parametrize(
    ("line", "column", "message"),
    [
        ("a <b", 3, "the '<' is not closed at the end of the line"),
        ("a [b", 3, "the '[' is not closed at the end of the line"),
        ("a (1 b", 3, "the '(' is not closed at the end of the line"),
        ("a (b", 3, "the '(' is not closed at the end of the line"),
        ("a (", 3, "the '(' is not closed at the end of the line"),
        ("a> b", 2, "there is a '>' without its '<'"),
        ("a ] b", 3, "there is a ']' without its '['"),
        ("a b) c", 4, "there is a ')' without its '('"),
        (")", 1, "there is a ')' without its '('"),
        ("<a <b>", 1, "the '<' is not closed before the next '<'"),
        ("<a (1 b <c> d)>", 1, "the '<' is not closed before the next '<'"),
        ("[a <b>]", 1, "the '[' is not closed before the next '<'"),
        ("[a [b]]", 1, "the '[' is not closed before the next '['"),
        ("[a (1)] b", 1, "the '[' is not closed before the next '('"),
        ("<a (1 b> c)", 4, "the '(' is not closed before the '>' that encloses it"),
        ("(1 <a) b>", 4, "the '<' is not closed before the ')' that encloses it"),
        ("<[a> b]", 2, "the '[' is not closed before the '>' that encloses it"),
        ("[a> b]", 3, "there is a '>' without its '<'"),
        ("a (foo) b", 3, "this bracket is neither an edit cue nor the utterance id"),
        ("a (10 words)", 3, "this bracket is neither an edit cue nor the utterance id"),
        ("a (0)", 3, "this bracket is neither an edit cue nor the utterance id"),
        ("a (a)", 3, "this bracket is neither an edit cue nor the utterance id"),
        ("() a", 1, "this bracket is neither an edit cue nor the utterance id"),
        ("a (٣)", 3, "this bracket is neither an edit cue nor the utterance id"),
        ("a (ab) (cd)", 3, "this bracket is neither an edit cue nor the utterance id"),
        ("a (1 (foo) b) c", 6, "this bracket is neither an edit cue nor the utterance id"),
        ("<a (bb00e1sx)", 1, "the '<' is not closed at the end of the line"),
        ("(1 a (bb00e1sx)", 1, "the '(' is not closed at the end of the line"),
        ("a \0 b (ab)", 3, "there is a NUL character here"),
        ("é\u2028<b", 3, "the '<' is not closed at the end of the line"),
    ],
)
def test_brackets_that_do_not_match_have_a_place_and_a_remedy(line: str, column: int, message: str) -> None:
    for form in SnorForm:
        with pytest.raises(InputError) as caught:
            convert(line, form, Place("a.sro", 7))
        assert caught.value.what == message
        assert caught.value.place == Place("a.sro", 7, column)
        assert caught.value.remedy


def test_error_columns_start_at_the_given_place() -> None:
    with pytest.raises(InputError) as caught:
        tokens("a <b", Place("scenario.yaml", 3, 12))
    assert caught.value.place == Place("scenario.yaml", 3, 14)
