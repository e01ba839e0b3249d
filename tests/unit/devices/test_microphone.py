"""A microphone whose speech detector fails."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from harness.devices.microphone import Microphone, MicrophoneOptions
from harness.devices.outlet import BROKEN
from harness.model.observation import LinkLost
from harness.sound.capture import Block
from tests.seen import Around, Seen


class FailingHearing:
    def feed(self, block: Block) -> None:
        raise ZeroDivisionError


def test_a_speech_detector_that_fails_is_a_lost_link() -> None:
    microphone, observations = Microphone("mic", MicrophoneOptions("none"), Around()), Seen()
    microphone._queue_block(Block(0, 50.0, 0.001, np.zeros(480, np.float32), 1))
    with pytest.raises(ZeroDivisionError):
        microphone._listen(cast(Any, FailingHearing()), observations)
    assert [(lost.source, lost.what) for lost in observations.of(LinkLost)] == [("mic", BROKEN)]
