"""Every colour of a text can be read on every background that it stands on (WCAG 2.2, 1.4.3: 4.5 to 1)."""

import pytest

from harness.dashboard import palette
from tests.contrast import contrast


@pytest.mark.parametrize("colour", palette.ON_TEXT)
@pytest.mark.parametrize("background", [palette.BACKGROUND, palette.PANEL, palette.SELECTED])
def test_every_text_colour_has_enough_contrast(colour: str, background: str) -> None:
    assert contrast(colour, background) >= 4.5
