from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from harness.engines.microwakeword import MicroWakeWord
from harness.lab.assistant.ears import Ears, EarsEvent, NoRequest, PhraseDetection, SpokenRequest
from harness.lab.assistant.settings import AssistantSettings
from harness.sound.detectors.webrtc import WebrtcDetector
from tests.unit.engines.wake_sound import spoken

pytestmark = pytest.mark.speech
GAP = np.zeros(4000, np.float32)


def quiet(seconds: float) -> np.ndarray:
    return np.random.default_rng(3).normal(0, 3e-4, round(seconds * 16000)).astype(np.float32)


def ears(**changes: object) -> Ears:
    return Ears(MicroWakeWord(), WebrtcDetector(), replace(AssistantSettings(), **changes))  # type: ignore[arg-type]


def heard(listener: Ears, *parts: np.ndarray) -> list[tuple[float, EarsEvent]]:
    """What was heard, each with the time at which it was known, in blocks of 10 ms."""
    sound = (np.clip(np.concatenate(parts), -1, 1) * 32767).astype(np.int16)
    return [
        ((start + 160) / 16000, event)
        for start in range(0, len(sound), 160)
        for event in listener.feed(sound[start : start + 160])
    ]


@pytest.mark.parametrize("voice", ["en-gb+f2", "en-us"])
@pytest.mark.parametrize("level_dbfs", [-16.0, -26.0, -46.0])
def test_a_question_right_after_the_wake_phrase_is_heard(voice: str, level_dbfs: float) -> None:
    call, question = (spoken(text, voice, level_dbfs) for text in ("alexa", "what time is it"))
    events = heard(ears(), quiet(1), call, quiet(0.25), question, quiet(2))
    assert [type(event) for _, event in events] == [PhraseDetection, SpokenRequest]
    end_s = 1 + (len(call) + len(GAP) + len(question)) / 16000
    known_s, query = events[1]
    assert isinstance(query, SpokenRequest)
    assert 0.5 < known_s - end_s < 1.0
    assert query.waveform.duration_s == pytest.approx((len(question) + len(call)) / 16000 + 0.7, abs=0.5)


@pytest.mark.parametrize(
    ("parts", "kinds"),
    [
        (("alexa", 7.0), [PhraseDetection, NoRequest]),
        (("alexa", 2.0, "what time is it", 2.0), [PhraseDetection, SpokenRequest]),
        (("what is seven times eight", 2.0), []),
    ],
    ids=["a call and nothing more", "a pause after the call", "speech without the call"],
)
def test_spoken_sequence_gives_the_expected_events(parts: tuple[str | float, ...], kinds: list[type]) -> None:
    sound = [spoken(part) if isinstance(part, str) else quiet(part) for part in parts]
    assert [type(event) for _, event in heard(ears(), quiet(1), *sound)] == kinds


def test_an_answer_in_an_open_dialogue_needs_no_call_and_a_call_begins_anew() -> None:
    listener = ears()
    listener.listen_for_answer()
    events = heard(listener, quiet(3), spoken("pm please"), quiet(2))
    assert [type(event) for _, event in events] == [SpokenRequest]
    listener.listen_for_answer()
    events = heard(listener, quiet(1), spoken("alexa"), GAP, spoken("what time is it"), quiet(2))
    assert [type(event) for _, event in events] == [PhraseDetection, SpokenRequest]


def test_an_open_dialogue_ends_when_nobody_answers() -> None:
    listener = ears(dialogue_s=3.0)
    listener.listen_for_answer()
    ((known_s, event),) = heard(listener, quiet(6))
    assert isinstance(event, NoRequest)
    assert known_s == pytest.approx(3.0, abs=0.1)


def test_covered_ears_hear_nothing_unless_they_may_be_interrupted() -> None:
    for barge_in, expected in ((False, []), (True, [PhraseDetection, SpokenRequest])):
        listener = ears(barge_in=barge_in)
        heard(listener, quiet(1))
        listener.mute()
        events = heard(listener, spoken("alexa"), GAP, spoken("what time is it"), quiet(2))
        assert [type(event) for _, event in events] == expected


def test_a_question_without_end_is_cut() -> None:
    words = spoken("what is the weather in lincoln and in cambridge and in saint george and in springfield")
    events = heard(ears(query_max_s=3.0), quiet(1), spoken("alexa"), GAP, words, quiet(2))
    assert [type(event) for _, event in events] == [PhraseDetection, SpokenRequest]


def test_frames_are_counted_only_when_the_wake_engine_hears_them() -> None:
    listener = ears()
    heard(listener, quiet(1))
    assert listener.frames == 50 or listener.frames == 100
    before = listener.frames
    listener.mute()
    heard(listener, quiet(1))
    assert listener.frames == before, "while it speaks it is deaf"
    listener.unmute()
    heard(listener, quiet(0.19))
    assert listener.frames == before, "and for a moment afterwards"
    heard(listener, quiet(0.5))
    assert listener.frames > before
