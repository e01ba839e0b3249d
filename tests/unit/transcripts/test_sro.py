"""The tokens of .sro text, its ids, and where its brackets do not match."""

from __future__ import annotations

import pytest

from harness.model.errors import InputError, Place
from harness.transcripts.snor import (
    EditEnd,
    EditStart,
    Event,
    Form,
    Marker,
    Pause,
    Token,
    Word,
    convert,
    split_id,
    tokens,
)


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
    ("text", "found"),
    [
        ("so, *Ol*- .", [Word("so"), Word("*Ol*-"), Pause()]),
        ("<a b>", [Word("a", True), Word("b", True)]),
        ("*<tr>-", [Word("tr", True, "*", "-")]),
        ("[throat clear].", [Event("throat_clear")]),
        ("(1) a (2 b)", [Marker(1), Word("a"), EditStart(2), Word("b"), EditEnd()]),
    ],
)
def test_tokens(text: str, found: list[Token]) -> None:
    assert tokens(text) == found


@pytest.mark.parametrize(
    ("line", "column", "what"),
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
        ("<a (1 b> c)", 4, "the '(' is not closed before the '>' of what it stands in"),
        ("(1 <a) b>", 4, "the '<' is not closed before the ')' of what it stands in"),
        ("<[a> b]", 2, "the '[' is not closed before the '>' of what it stands in"),
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
        ("a \0 b (ab)", 3, "a NUL character stands here"),
        ("é\u2028<b", 3, "the '<' is not closed at the end of the line"),
    ],
)
def test_brackets_that_do_not_match_have_a_place_and_a_remedy(line: str, column: int, what: str) -> None:
    for form in Form:
        with pytest.raises(InputError) as caught:
            convert(line, form, Place("a.sro", 7))
        assert caught.value.what == what
        assert caught.value.place == Place("a.sro", 7, column)
        assert caught.value.remedy


def test_columns_count_on_from_that_of_the_place() -> None:
    with pytest.raises(InputError) as caught:
        tokens("a <b", Place("scenario.yaml", 3, 12))
    assert caught.value.place == Place("scenario.yaml", 3, 14)
