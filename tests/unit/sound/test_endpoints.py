"""What a stretch of sound becomes, frame by frame: speech, tones or nothing."""

from __future__ import annotations

import pytest

from harness.sound.endpoints import EndpointEvent, Endpoints, SpeechOffset, SpeechOnset, ToneDetection
from harness.sound.frames import SoundFrame

TONE, VOICE, QUIET = 0.02, 0.4, 1.0


def found(*parts: tuple[int, float, bool]) -> list[EndpointEvent]:
    """parts: frames of 10 ms, the filled share of each (1.0: silence), and what the detector says of it."""
    endpoints, events, index = Endpoints(), list[EndpointEvent](), 0
    for count, filled, speech in ((30, QUIET, False), *parts, (80, QUIET, False)):
        for _ in range(count):
            level_dbfs = -70.0 if filled == QUIET else -25.0
            events += endpoints.feed(SoundFrame(index, level_dbfs, -70.0, filled, speech, False))
            index += 1
    return events


@pytest.mark.parametrize("rest", [1, 3, 5])
def test_noise_residue_is_not_speech_despite_a_slow_detector(rest: int) -> None:
    assert found((rest, VOICE, True), (10, QUIET, True)) == []


@pytest.mark.parametrize("rest", [1, 3, 5])
def test_chime_residue_is_not_speech_whatever_the_detector_reports(rest: int) -> None:
    """A tone that the detector takes for speech, a pause, and 10 to 50 ms of broad sound: its decay, cut by a gap."""
    events = found((25, TONE, True), (6, QUIET, True), (rest, VOICE, True))
    assert [type(event) for event in events] == [ToneDetection]


def test_a_short_word_after_an_earcon_is_speech() -> None:
    tone, began, finished = found((25, TONE, True), (8, QUIET, False), (12, VOICE, True))
    assert isinstance(tone, ToneDetection)
    assert isinstance(began, SpeechOnset)
    assert isinstance(finished, SpeechOffset)
    assert (began.start, finished.end) == (30 + 25 + 8, 30 + 25 + 8 + 12)


@pytest.mark.parametrize(("frames", "speech"), [(5, False), (6, True)])
def test_sound_below_the_minimum_length_is_not_speech(frames: int, speech: bool) -> None:
    assert any(isinstance(event, SpeechOnset) for event in found((frames, VOICE, True))) is speech
