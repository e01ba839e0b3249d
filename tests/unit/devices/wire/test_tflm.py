"""The dialogue of TFLM's test over serial, line by line."""

from __future__ import annotations

import numpy as np
import pytest

from harness.devices.wire.tflm import ANSWER_LIMIT_S, TflmDialogue

ALL = 10**9


def begun(samples: int = 100) -> TflmDialogue:
    dialogue = TflmDialogue()
    dialogue.begin(np.arange(samples, dtype=np.int16), 0.0)
    assert dialogue.output(ALL, 0.0) == b"!TEST\n"
    return dialogue


def test_the_tflm_dialogue_sends_a_whole_sound() -> None:
    dialogue = begun(100)
    dialogue.receive("!OK TEST 181", 0.1)  # an odd size is made even: samples are not cut in two
    first = dialogue.output(ALL, 0.1).decode().splitlines()
    assert first[0] == "!DATA audio-pcm-16khz-mono-s16 200"
    assert len(first[1]) == 240
    assert (dialogue.sent, dialogue.acknowledged) == (90, 0)
    dialogue.receive("!DATA_ACK 180", 0.2)
    assert dialogue.output(ALL, 0.2).count(b"\n") == 1
    dialogue.receive("!DATA_ACK 20", 0.3)
    assert dialogue.acknowledged == 100
    assert not dialogue.complete
    dialogue.receive("!OK DATA audio-pcm-16khz-mono-s16 200", 0.4)
    assert dialogue.complete
    assert not dialogue.is_active


def test_a_dialogue_without_an_answer_ends_after_five_seconds() -> None:
    dialogue = begun()
    dialogue.tick(ANSWER_LIMIT_S - 0.1)
    assert dialogue.is_active
    dialogue.tick(ANSWER_LIMIT_S + 0.1)
    assert not dialogue.is_active
    assert "no answer" in dialogue.failed
    dialogue.begin(np.zeros(4, np.int16), 9.0)
    assert dialogue.output(ALL, 9.0) == b"!TEST\n"  # who knows what it is waiting for


def test_data_lines_wait_until_their_samples_are_due() -> None:
    dialogue = begun(1000)
    dialogue.receive("!OK TEST 200", 0.0)
    assert dialogue.output(50, 0.0) == b""
    assert dialogue.output(100, 0.1).startswith(b"!DATA ")


@pytest.mark.parametrize("line", ["!OK TEST", "!OK TEST 999999999999", "!DATA_ACK", "!WHAT", "!"])
def test_malformed_answers_do_not_change_the_dialogue(line: str) -> None:
    dialogue = begun()
    dialogue.receive(line, 0.1)
    assert dialogue.is_active
    assert dialogue.output(ALL, 0.1) == b""


def test_wrong_acknowledgement_ends_the_dialogue() -> None:
    dialogue = begun()
    dialogue.receive("!OK TEST 100", 0.1)
    dialogue.output(ALL, 0.1)
    dialogue.receive("!DATA_ACK 60", 0.2)
    assert "only 60 of the 100 bytes of a line" in dialogue.failed
