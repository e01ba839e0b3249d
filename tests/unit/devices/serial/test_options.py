"""What a serial connection of a bench may contain, and what its profile adds."""

from __future__ import annotations

import pytest

from harness.devices.serial.options import FramingChoice, SerialInjection, SerialOptions
from harness.model.bench import AudioDialogue, AudioInput, ConsoleSettings, DeviceProfile, Framing
from harness.model.errors import InputError


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"port": ""}, "either `port` or `usb`"),
        ({"usb": "1234"}, "either `port` or `usb`"),
        ({"port": "unix:///tmp/line"}, "'unix:///tmp/line' is not supported"),
        ({"baud": -1}, "baud"),
        ({"ping_period_s": 0.0}, "ping_period_s"),
        ({"answer_limit_s": 1.5}, "answer_limit_s"),
        ({"framing": FramingChoice.NONE, "injection": SerialInjection.VH}, "`injection: vh` needs `framing: vh`"),
    ],
)
def test_contradictory_options_are_refused(changes: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        SerialOptions(**{"port": "/dev/ttyUSB0", **changes})  # type: ignore[arg-type]


def profile(framing: Framing, audio: AudioDialogue | None) -> DeviceProfile:
    input_ = AudioInput(audio) if audio is not None else None
    return DeviceProfile("p", "p", "p", "0", (), console=ConsoleSettings(framing=framing), audio=input_)


def test_profile_supplies_options_missing_from_the_bench() -> None:
    options = SerialOptions(port="x")
    lines, vh = profile(Framing.LINES, None), profile(Framing.VH, AudioDialogue.VH)
    assert not options.is_framed(lines)
    assert options.is_framed(vh)
    assert options.is_framed(None)
    assert options.dialogue(lines) is None
    assert options.dialogue(vh) is AudioDialogue.VH
    assert options.dialogue(profile(Framing.LINES, AudioDialogue.TFLM)) is AudioDialogue.TFLM
    assert SerialOptions(port="x", injection=SerialInjection.NONE).dialogue(vh) is None
    assert SerialOptions(port="x", framing=FramingChoice.VH).is_framed(lines)
