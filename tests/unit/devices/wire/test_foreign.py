"""No text of others can steer a terminal."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.base.foreign import ELLIPSIS, plain_text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("what time is it?", "what time is it?"),
        ("Zürich, 北京 ☕", "Zürich, 北京 ☕"),
        ("[/red] [bold]", "[/red] [bold]"),
        ("\x1b]0;owned\x07", "\\e]0;owned\\x07"),
        ("\x9b31m", "\\x9b31m"),
        ("a\u202eb\u200bc\u2066", "a\\u202eb\\u200bc\\u2066"),
        ("two\r\nlines\there", "two\\r\\nlines\\there"),
        ("\U000e0041", "\\U000e0041"),
        ("\ud800", "\\ud800"),
        ("\u2028\u2029\x7f\x00", "\\u2028\\u2029\\x7f\\x00"),
        ("\u3164", "\\u3164"),
    ],
)
def test_shows_what_a_terminal_would_obey(text: str, shown: str) -> None:
    assert plain_text(text) == shown


def test_cuts_with_an_ellipsis_and_not_inside_an_escape() -> None:
    assert plain_text("abcdef", 6) == "abcdef"
    assert plain_text("abcdefg", 6) == "abcde" + ELLIPSIS
    assert plain_text("abc\x9bdef", 6) == "abc" + ELLIPSIS
    assert plain_text("x" * 10_000, 500) == "x" * 499 + ELLIPSIS


def test_thins_a_flood_of_combining_marks() -> None:
    assert plain_text("e" + "\u0301" * 300) == "e" + "\u0301" * 4


def test_refuses_a_limit_without_room() -> None:
    with pytest.raises(ValueError):
        plain_text("x", 0)


@given(st.text(alphabet=st.characters()), st.integers(1, 40))
def test_never_longer_than_asked_and_always_printable(text: str, limit: int) -> None:
    shown = plain_text(text, limit)
    assert len(shown) <= limit
    assert not any(unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"} for c in shown)
    shown.encode("utf-8")
