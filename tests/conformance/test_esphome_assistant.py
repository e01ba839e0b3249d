"""An ESPHome device whose voice assistant is the harness."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import numpy as np
import pytest
import soxr

from harness.devices.esphome import EsphomeDevice, EsphomeOptions, EsphomeRole
from harness.devices.esphome_assistant import END_GAP_S, RATE_HZ
from harness.devices.profiles.profile import load_profile
from harness.engines.microwakeword import MicroWakeWord
from harness.model.errors import DeviceError, InputError, LogFull
from harness.model.observation import (
    Intent,
    LinkBack,
    LinkLost,
    LogLine,
    ResponseText,
    SoundKept,
    Status,
    Transcript,
    Unread,
    Wake,
)
from harness.model.stimulus import Clip, Waveform
from harness.session.log.clips import ClipStore
from harness.session.log.reader import read_clip
from harness.sound.capture import Block, Capture
from tests.conformance.esphome_far_end import API_AUDIO, KEY, VOICE, EsphomeFarEnd
from tests.conformance.sound_path import LAB, Told, play, player
from tests.conformance.sound_path import RATE_HZ as LAB_HZ
from tests.conformance.spoken import SAID, speech
from tests.heard import MAX_WRONG, word_error
from tests.seen import HELD, Around, Seen, share_held, until

MEDIA = "http://192.0.2.1/noon.flac"
USE_WAKE_WORD = 2


class Assisted:
    """A device and the driver that is its assistant."""

    def __init__(self, folder: Path, device: EsphomeFarEnd, **options: object) -> None:
        self.folder, self.device, self.seen = folder, device, Seen()
        esphome_options = EsphomeOptions(address=device.address, role=EsphomeRole.ASSISTANT, **options)  # type: ignore[arg-type]
        self.driver = EsphomeDevice(
            "pe", esphome_options, Around(folder, load_profile("esphome_assistant", beside=folder))
        )
        self.driver.keep_sound(ClipStore(folder / "clips").save)

    def opened(self) -> Assisted:
        self.driver.open(self.seen)
        return self

    def kept(self) -> Waveform:
        return read_clip(self.folder / "clips", self.seen.first(SoundKept).clip)

    def states(self) -> list[str]:
        return [status.state.value for status in self.seen.of(Status)]

    def wait_for_states(self, *states: str) -> None:
        self.seen.wait(lambda: self.states() == list(states), 30, f"{states}")

    def events(self) -> list[str]:
        return [name for name, _ in self.device.events]

    def wait_for_runs(self, ended: int) -> None:
        until(lambda: self.events().count("RUN_END") >= ended, otherwise="the run did not end")


Assist = Callable[..., Assisted]


@pytest.fixture
def device() -> Iterator[EsphomeFarEnd]:
    with EsphomeFarEnd() as far_end:
        yield far_end


@pytest.fixture
def assist(tmp_path: Path, device: EsphomeFarEnd) -> Iterator[Assist]:
    with ExitStack() as stack:

        def assisted(**options: object) -> Assisted:
            assistant = Assisted(tmp_path, device, **options)
            stack.callback(assistant.driver.close)
            return assistant.opened()

        yield assisted


def test_a_command_is_kept_recognised_and_answered(
    tmp_path: Path, assist: Assist, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_KEY", KEY)
    with EsphomeFarEnd(KEY) as device:
        assistant = Assisted(
            tmp_path, device, key_env="THE_KEY", recogniser="moonshine", media=MEDIA, answer="You: {text}"
        )
        with closing(assistant.opened().driver):
            sound, began_s = speech(), time.monotonic()
            device.wake()
            woke_s = time.monotonic()
            device.hear(sound)
            text = assistant.seen.first(Transcript, 30).text
            assert word_error(SAID, text) <= MAX_WRONG
            assistant.wait_for_states("listening", "thinking", "speaking", "idle")
        (wake,) = assistant.seen.of(Wake)
        assert wake.phrase == "Okay Nabu"
        assert began_s - wake.at.error_s <= wake.at.at_s <= woke_s + wake.at.error_s
        assert assistant.seen.first(ResponseText).text == f"You: {text}"
        assistant.wait_for_runs(1)
        assert device.played == [(MEDIA, f"You: {text}")]
        order = ["RUN_START", "STT_START", "STT_VAD_END", "STT_END", "INTENT_START", "INTENT_END", "RUN_END"]
        assert [name for name, _ in device.events] == order
        assert dict(device.events)["STT_END"] == {"text": text}
        waveform = assistant.kept()
        np.testing.assert_allclose(waveform.samples, sound[: len(waveform.samples)], atol=1e-4)
        assert len(sound) > len(waveform.samples) > len(sound) - RATE_HZ


def test_slow_disk_does_not_block_the_device(device: EsphomeFarEnd, tmp_path: Path) -> None:
    assistant, goes_on = Assisted(tmp_path, device), threading.Event()

    def keep(sound: Waveform, start_s: float) -> Clip:
        assert goes_on.wait(30)
        return ClipStore(tmp_path / "slow").save(sound, start_s)

    assistant.driver.keep_sound(keep)
    assistant.opened()
    device.wake()
    device.hear(speech())
    assistant.wait_for_states("listening", "thinking")
    assistant.driver.close()
    try:
        until(lambda: not device.connected, 10, "the device was not let go")
    finally:
        goes_on.set()
    until(lambda: len([*(tmp_path / "slow").glob("*")]) == 1, 10, "the command was not kept")


@pytest.mark.parametrize("features", [VOICE | API_AUDIO, VOICE])
def test_without_a_recogniser_the_run_ends_with_the_speech(
    features: int, assist: Assist, device: EsphomeFarEnd
) -> None:
    device.features = features
    assistant, sound = assist(), speech()
    device.wake("")
    assert bool(device.responses[0].port) == (features == VOICE)
    device.hear(sound)
    assistant.wait_for_states("listening", "thinking", "idle")
    # STT_VAD_END before it would leave the firmware waiting: RUN_END would come while its microphone stops.
    until(lambda: assistant.events() == ["RUN_START", "STT_START", "RUN_END"])
    waveform = assistant.kept()
    np.testing.assert_allclose(waveform.samples, sound[: len(waveform.samples)], atol=1e-4)
    assert not assistant.seen.of(Wake, Transcript, ResponseText)  # a button began it
    until(lambda: [line for line in assistant.seen.of(LogLine) if "without a wake phrase" in line.text])


def test_the_clip_begins_when_the_device_began_to_send(assist: Assist, device: EsphomeFarEnd) -> None:
    assistant = assist()
    began_s = time.monotonic()
    device.wake()
    device.hear(speech(), pace=True)
    row = assistant.seen.first(SoundKept)
    assert began_s - 0.1 <= row.clip.start_s
    assert row.clip.start_s + row.clip.duration_s <= row.at.at_s + 0.001


def test_silence_until_the_limit_is_reported_as_not_understood(assist: Assist, device: EsphomeFarEnd) -> None:
    assistant = assist(recogniser="moonshine", listen_limit_s=1)
    device.wake()
    device.hear(np.tile(speech()[-RATE_HZ:], 2))
    assert not assistant.seen.first(Intent, 30).name
    assistant.wait_for_states("listening", "thinking", "idle")
    assert assistant.kept().duration_s == pytest.approx(1, abs=0.1)
    until(lambda: assistant.events() == ["RUN_START", "STT_START", "STT_VAD_END", "ERROR", "RUN_END"])
    assert dict(device.events)["ERROR"]["code"] == "stt-no-text-recognized"
    device.stop(aborted=True)  # as the firmware does after an error
    device.wake()
    assistant.seen.wait(lambda: len(assistant.seen.of(Wake)) == 2, 30, "the second run")
    until(lambda: assistant.events().count("RUN_START") == 2, otherwise="no second run")
    second = [index for index, name in enumerate(assistant.events()) if name == "RUN_START"][1]
    assert assistant.events()[:second].count("RUN_END") == 1


def test_a_device_that_sends_no_sound_gets_the_end_of_its_run(assist: Assist, device: EsphomeFarEnd) -> None:
    assistant = assist(listen_limit_s=1)
    device.wake()
    assistant.wait_for_states("listening", "thinking", "idle")
    assistant.wait_for_runs(1)
    assert assistant.events()[-1] == "RUN_END"
    assert not assistant.seen.of(SoundKept)


def test_the_device_ends_its_sound_or_the_whole_run(assist: Assist, device: EsphomeFarEnd) -> None:
    assistant, sound = assist(media=MEDIA), speech()[: RATE_HZ // 2]
    device.wake()
    device.hear(sound)
    device.stop(aborted=True)
    assistant.wait_for_states("listening", "idle")
    assert assistant.kept().duration_s == pytest.approx(0.5, abs=0.001)
    assert not device.played
    device.wake()
    device.hear(sound)
    device.stop(aborted=False)
    until(lambda: device.played == [(MEDIA, "")], END_GAP_S + 10)
    assistant.wait_for_runs(2)
    assert assistant.events().count("RUN_END") == 2


def test_an_answer_that_cannot_be_played_is_reported(assist: Assist, device: EsphomeFarEnd) -> None:
    device.plays = False
    assistant = assist(media=MEDIA)
    device.wake()
    device.stop(aborted=False)
    assistant.seen.wait(
        lambda: [line for line in assistant.seen.of(LogLine) if "could not play" in line.text], 30, "the remark"
    )


def test_a_second_assistant_is_refused_and_says_so(tmp_path: Path, assist: Assist, device: EsphomeFarEnd) -> None:
    first, second = assist(), Assisted(tmp_path, device)
    with pytest.raises(DeviceError, match="another client is the voice assistant of voice-pe") as caught:
        second.opened()
    assert "Home Assistant" in caught.value.remedy

    def refusals() -> list[str]:
        return [line.text for line in first.seen.of(LogLine) if "refused another client" in line.text]

    until(refusals)
    assert refusals() == ["the device refused another client, such as Home Assistant: the harness is its assistant"]
    device.wake()
    assert first.seen.first(Wake)


def test_an_assistant_that_was_displaced_while_lost_names_the_reason(assist: Assist, device: EsphomeFarEnd) -> None:
    assistant = assist()
    device.lose()
    device.taken = True
    device.mend()
    assistant.seen.wait(
        lambda: [lost for lost in assistant.seen.of(LinkLost) if "another client is" in lost.what], 20, "the reason"
    )
    assert not assistant.seen.of(LinkBack)
    device.taken = False
    assistant.seen.first(LinkBack, 20)


def test_restart_during_a_command_keeps_the_sound_received_before(assist: Assist, device: EsphomeFarEnd) -> None:
    assistant = assist()
    device.wake()
    device.hear(speech()[: RATE_HZ // 2])
    time.sleep(0.2)
    device.lose()
    assert 0.1 < assistant.kept().duration_s <= 0.5
    assistant.seen.first(LinkLost)
    device.mend()
    assistant.seen.first(LinkBack, 20)
    device.wake()
    assistant.seen.wait(lambda: len(assistant.seen.of(Wake)) == 2, 30, "a wake event after it")


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [(LogFull("no space is left"), Unread, "no space is left"), (RuntimeError("a bug"), LinkLost, "a bug")],
)
def test_sound_that_cannot_be_kept_is_reported(
    error: Exception, kind: type[Unread | LinkLost], message: str, tmp_path: Path, device: EsphomeFarEnd
) -> None:
    def keep(waveform: Waveform, start_s: float) -> Clip:
        raise error

    assistant = Assisted(tmp_path, device)
    assistant.driver.keep_sound(keep)
    with closing(assistant.opened().driver):
        device.wake()
        device.hear(speech())
        assert message in assistant.seen.first(kind).what


def test_sound_without_a_run_and_a_flood_do_no_harm(assist: Assist, device: EsphomeFarEnd) -> None:
    assistant = assist(listen_limit_s=2)
    device.wake()
    device.stop(aborted=True)
    device.stop(aborted=True)
    device.stop(aborted=False)
    assistant.wait_for_states("listening", "idle")
    device.hear(np.zeros(10 * RATE_HZ, np.float32))  # nobody asked for it
    device.wake()
    device.hear(np.zeros(10 * RATE_HZ, np.float32))
    assert assistant.kept().duration_s == pytest.approx(2, abs=0.1)
    device.wake("Okay\nNabu")
    assistant.seen.wait(lambda: assistant.seen.of(Wake)[-1].phrase == "Okay Nabu", 30, "a phrase in one line")
    assert not assistant.seen.of(LinkLost)


@pytest.mark.parametrize("fault", ["frozen", "garbage"])
def test_a_device_that_fails_is_lost_in_a_command(fault: str, assist: Assist, device: EsphomeFarEnd) -> None:
    assistant = assist(keepalive_s=0.2)
    device.wake()
    device.hear(speech()[: RATE_HZ // 2])
    if fault == "frozen":
        device.frozen = True
    else:
        device.garbage()
    assistant.seen.first(LinkLost)
    assert assistant.kept().duration_s == pytest.approx(0.5, abs=0.01)


@pytest.mark.usefixtures("host_keeps_time")
def test_times_hold_against_the_clock_of_the_sender(assist: Assist, device: EsphomeFarEnd) -> None:
    assistant = assist(hold_back_ms=20.0)

    def ask() -> None:
        device.wake()
        device.hear(np.zeros(512, np.float32))

    assert share_held(assistant.seen, ask) >= HELD


def test_device_using_its_assistants_wake_word_loses_its_link(assist: Assist, device: EsphomeFarEnd) -> None:
    assistant = assist()
    device.wake(flags=USE_WAKE_WORD)
    assert "leaves wake word detection to its assistant" in assistant.seen.first(LinkLost).what
    assert device.responses[0].error


@pytest.mark.parametrize(
    ("features", "options", "message"),
    [(0, {}, "has no voice assistant"), (VOICE, {"media": MEDIA}, "cannot play announcements")],
)
def test_a_device_without_the_feature_is_refused(
    features: int, options: dict[str, str], message: str, assist: Assist, device: EsphomeFarEnd
) -> None:
    device.features = features
    with pytest.raises(DeviceError, match=message):
        assist(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"recogniser": "moonshine"}, "only an assistant has"),
        ({"role": EsphomeRole.ASSISTANT, "answer": "Yes."}, "`answer` needs `media`"),
        ({"role": EsphomeRole.ASSISTANT, "media": "noon.flac"}, "media is 'noon.flac'"),
        ({"role": EsphomeRole.ASSISTANT, "listen_limit_s": float("nan")}, "listen_limit_s is nan"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        EsphomeOptions(address="kitchen", **options)  # type: ignore[arg-type]


@pytest.mark.sound
@pytest.mark.speech
def test_a_real_wake_engine_on_the_microphone_of_the_lab(
    assist: Assist, device: EsphomeFarEnd, lab_sound: object
) -> None:
    assistant, engine = assist(recogniser="moonshine"), MicroWakeWord("alexa")
    resampled, woke = soxr.ResampleStream(LAB_HZ, RATE_HZ, 1, dtype="int16"), list[float]()

    def listen(block: Block) -> None:
        heard = resampled.resample_chunk((np.asarray(block.samples) * 32767).astype(np.int16).reshape(-1))
        if woke:
            device.send_sound(heard.tobytes())
        elif engine.feed(heard):
            woke.append(time.monotonic())
            device.wake("Alexa")

    events = Told()
    microphone = Capture(
        "dut_mic", LAB, on_block=listen, on_fault=events.fault, on_back=events.backs.append, on_overrun=events.overrun
    )
    with closing(microphone), player() as (loudspeaker, played):
        microphone.open()
        pieces = [np.zeros(RATE_HZ // 2), speech("alexa")[: -RATE_HZ // 2], speech(), np.zeros(RATE_HZ)]
        samples = soxr.resample(np.concatenate(pieces).astype(np.float32), RATE_HZ, LAB_HZ)
        play(loudspeaker, played, Waveform(samples, LAB_HZ), 30)
        assert word_error(SAID, assistant.seen.first(Transcript, 30).text) <= MAX_WRONG
    (wake,) = assistant.seen.of(Wake)
    assert wake.phrase == "Alexa"
    assert abs(wake.at.at_s - woke[0]) <= wake.at.error_s
