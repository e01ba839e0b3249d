"""What a loudspeaker's options may say."""

from __future__ import annotations

import math

import pytest

from harness.devices.loudspeaker import LoudspeakerOptions


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sound_device": ""}, "sound_device"),
        ({"gain_db": 1.0}, "gain_db"),
        ({"gain_db": math.nan}, "gain_db"),
        ({"frames_per_buffer": 0}, "frames_per_buffer"),
    ],
)
def test_impossible_options_are_refused(changes: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        LoudspeakerOptions(**{"sound_device": "speaker", **changes})  # type: ignore[arg-type]
