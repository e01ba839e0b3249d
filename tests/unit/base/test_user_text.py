"""What people write is kept as it was written, refused when too long, and a name has one spelling."""

from __future__ import annotations

import pytest

from harness.base.user_text import (
    MAX_NAME_CHARS,
    MAX_TEXT_CHARS,
    checked_text,
    known_name,
    name_key,
    person_name,
    refuse_same_names,
    required_text,
)
from harness.model.errors import InputError


@pytest.mark.parametrize(
    "text",
    [
        "می\u200cخواهم",
        "👨\u200d👩\u200d👧 ❤\ufe0f",
        "ライト\u3000オン",
        "100\u00a0000\u202f!",
        "a\tb\nc",
        " around ",
        "\x1b[2J",
        "x" * MAX_TEXT_CHARS,
    ],
)
def test_user_text_is_stored_unchanged(text: str) -> None:
    assert checked_text(text) == text


def test_letters_are_composed_and_line_ends_are_unified() -> None:
    assert checked_text("Jo\u0308rg\r\nsaid\rso") == "Jörg\nsaid\nso"
    assert checked_text(" \u3000\n") == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x" * (MAX_TEXT_CHARS + 1), "the note has 10,001 characters; the limit is 10,000"),
        ("a\0b", "the note contains a NUL"),
        ("half \ud83d", "an incomplete character"),
    ],
)
def test_unstorable_text_is_refused_unchanged(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        checked_text(text, "the note")


def test_a_required_text_must_not_be_blank() -> None:
    with pytest.raises(InputError, match="--reason is empty"):
        required_text(" ", "--reason")


@pytest.mark.parametrize("other", ["ann", "ANN", "Ann\u200d"])
def test_spellings_of_a_name_are_one_name(other: str) -> None:
    assert name_key(other) == name_key("Ann")
    assert known_name(other, ["ben", "Ann", "ann"]) == "Ann"
    with pytest.raises(InputError, match="are the same rater"):
        refuse_same_names(["Ann", other], "rater")


def test_a_name_is_composed_and_bounded() -> None:
    assert person_name(" Jo\u0308rg ", "rater name") == "Jörg"
    assert person_name("علی\u200cرضا", "rater name") == "علی\u200cرضا"
    assert known_name("eve", ["Ann"]) == "eve"
    for wrong in ("", "a\nb", "a\x1b", "x" * (MAX_NAME_CHARS + 1)):
        with pytest.raises(InputError, match=f"1 to {MAX_NAME_CHARS} printable"):
            person_name(wrong, "rater name")
