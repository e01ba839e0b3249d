"""Every colour of a text can be read on every background that it stands on (WCAG 2.2, 1.4.3: 4.5 to 1)."""

import pytest
from textual.color import Color

from harness.dashboard import palette


def luminance(hexadecimal: str) -> float:
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in Color.parse(hexadecimal).normalized]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


@pytest.mark.parametrize("colour", palette.ON_TEXT)
@pytest.mark.parametrize("background", [palette.BACKGROUND, palette.PANEL, palette.SELECTED])
def test_every_text_colour_has_enough_contrast(colour: str, background: str) -> None:
    lighter, darker = sorted((luminance(colour), luminance(background)), reverse=True)
    assert (lighter + 0.05) / (darker + 0.05) >= 4.5
