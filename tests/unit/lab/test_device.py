"""The assistant as a device: which states it reports for what it hears."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from harness.engines.moonshine import Moonshine
from harness.lab.assistant.device import AssistantDevice
from harness.lab.assistant.faults import Faults
from harness.lab.assistant.mouth import AssistantMouth
from harness.lab.assistant.report import Reporter
from harness.lab.assistant.settings import AssistantSettings, FaultAction, FaultRule
from harness.sound.playback import Playback
from tests.seen import until
from tests.unit.engines.wake_sound import spoken
from tests.unit.lab.test_ears import ears, quiet

pytestmark = pytest.mark.speech


def test_a_missed_call_ends_listening() -> None:
    settings, states, stop = AssistantSettings(), list[str](), threading.Event()
    device = AssistantDevice(
        settings=settings,
        ears=ears(),
        recogniser=Moonshine(),
        mouth=AssistantMouth(settings),
        speaker=Playback("none", "system", on_fault=lambda stamp, reason: None),
        reporter=Reporter("dut", settings.reports, "", 0),
        faults=Faults((FaultRule(FaultAction.MISS_WAKE, wakes=frozenset({2})),), 0),
        on_state=lambda state: states.append(state.value),
    )
    sound = np.concatenate([quiet(1), spoken("alexa"), quiet(2.5), spoken("alexa"), quiet(1)])
    device.feed((np.clip(sound, -1, 1) * 32767).astype(np.int16))
    loop = threading.Thread(target=device.run, args=(stop,))
    loop.start()
    try:
        until(lambda: device.wakes == 2, 30)
        until(lambda: states == ["started", "idle", "listening", "idle"], 3, f"it went on: {states}")
    finally:
        stop.set()
        loop.join()
