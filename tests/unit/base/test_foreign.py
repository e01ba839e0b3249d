"""What a terminal shows of a line."""

from __future__ import annotations

import pytest

from harness.base.foreign import plain_text, strip_terminal_codes

ESC = "\x1b"


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("plain", "plain"),
        ("\0wake alexa\0", "wake alexa"),
        (f"{ESC}[1;32mgreen{ESC}[0m and {ESC}]0;title\x07plain", "green and plain"),
        (f"uart:~$ {ESC}[8D{ESC}[J[00:00:13.012,939] {ESC}[0m<inf> app: tick", "[00:00:13.012,939] <inf> app: tick"),
        (f"{ESC}[1;32muart:~$ {ESC}[m{ESC}[8D{ESC}[Jlow", "low"),
        ("abd\x08c", "abc"),
        (f"abc{ESC}[2DX", "aXc"),
        (f"abc{ESC}[99D{ESC}[99CX", "abcX"),
        (f"> ls{ESC}[1G{ESC}[KX", "X"),
        (f"abc{ESC}[2KX", "X"),
        (f"abc{ESC}[1;2DX", "abX"),
        (f"kept{ESC}[2J", "kept"),  # who clears the screen does not take the line back
        (f"{ESC}[999999999999D\x08\x08x", "x"),
    ],
)
def test_terminal_codes_are_stripped_from_a_line(line: str, shown: str) -> None:
    assert strip_terminal_codes(line) == shown


def test_a_character_is_shown_alike_alone_and_among_others() -> None:
    """A text of common characters is returned without a look at each of them."""
    for character in map(chr, range(0x400)):
        assert plain_text(character) + "中" == plain_text(character + "中"), hex(ord(character))
