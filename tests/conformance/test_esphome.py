"""ESPHome devices over their native API: encryption, log lines, states, losses, floods, and times."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.base.foreign import strip_terminal_codes
from harness.base.host_check import Level
from harness.devices.esphome import EsphomeDevice, EsphomeLogLevel, EsphomeOptions
from harness.devices.profiles.profile import load_profile
from harness.model.bench import DeviceProfile
from harness.model.errors import DeviceError, InputError, PluginError
from harness.model.observation import (
    DeviceDescribed,
    DeviceState,
    LinkBack,
    LinkLost,
    LogLine,
    ResponseText,
    StateTold,
    Status,
    Transcript,
    Wake,
)
from tests.conformance.esphome_far_end import HEARD, KEY, MUTE, OTHER_KEY, PLAYER, SENSITIVITY, EsphomeFarEnd, pb
from tests.seen import HELD, Around, Seen, share_held, until

WOKE = (
    "[D][micro_wake_word:371]: Detected 'Okay Nabu' with sliding average probability is 0.98 and max probability is 1"
)


@pytest.fixture
def profile(tmp_path: Path) -> DeviceProfile:
    return load_profile("esphome_voice", beside=tmp_path)


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_KEY", KEY)
    monkeypatch.setenv("OTHER_KEY", OTHER_KEY)
    monkeypatch.setenv("NO_KEY", "secret")


@contextmanager
def watched(device: EsphomeFarEnd, profile: DeviceProfile | None = None, **options: Any) -> Iterator[Seen]:
    """An open driver; closed afterwards."""
    driver = EsphomeDevice("pe", EsphomeOptions(address=device.address, **options), Around(profile=profile))
    observations = Seen()
    try:
        driver.open(observations)
        yield observations
    finally:
        driver.close()


@pytest.mark.parametrize("key_env", ["", "THE_KEY"])
def test_a_session_of_the_voice_assistant(key_env: str, profile: DeviceProfile) -> None:
    with EsphomeFarEnd(KEY if key_env else "") as device, watched(device, profile, key_env=key_env) as observations:
        device.log(WOKE)
        device.log("[D][voice_assistant:526]: State changed from IDLE to START_MICROPHONE")
        device.log('[D][voice_assistant:647]: Speech recognised as: "what time is it"')
        device.log('[D][voice_assistant:730]: Response: "It is noon."')
        observations.wait(lambda: observations.of(ResponseText), 30, "the answer")
        assert [(wake.phrase, wake.score) for wake in observations.of(Wake)] == [("Okay Nabu", 0.98)]
        assert observations.of(Status)[-1].state is DeviceState.LISTENING
        assert observations.of(Transcript)[0].text == "what time is it"
        assert device.log_levels == [5]
        about = observations.of(DeviceDescribed)[0]
        assert about.firmware == "Nabu Casa.Voice PE 25.11.0, ESPHome 2025.11.0, Nabu Casa Home Assistant Voice PE"
        assert about.serial == "20:F8:3B:00:00:01"


def test_states_are_reported_at_connection_and_when_they_change(profile: DeviceProfile) -> None:
    with EsphomeFarEnd() as device, watched(device, profile) as observations:
        observations.wait(lambda: len(observations.of(StateTold)) == 3, 30, "the states at connection")
        observations.wait(
            lambda: [line for line in observations.of(LogLine) if "heard is" in line.text], 30, "a state without a rule"
        )
        device.state(pb.SwitchStateResponse(key=MUTE, state=True))
        device.state(pb.SelectStateResponse(key=SENSITIVITY, state="Very"))
        device.state(pb.MediaPlayerStateResponse(key=PLAYER, state=4))
        device.state(pb.TextSensorStateResponse(key=HEARD, state="two\nlines"))
        observations.wait(
            lambda: observations.of(LogLine)[-1].text == "text_sensor.heard=two lines", 30, "the last state"
        )
    assert [(state.name, state.value) for state in observations.of(StateTold)] == [
        ("switch.mute", "off"),
        ("media_player.media_player", "idle"),
        ("select.wake_word_sensitivity", "Slightly"),
        ("switch.mute", "on"),
        ("select.wake_word_sensitivity", "Very"),
        ("media_player.media_player", "announcing"),
    ]


def test_states_can_be_left_out_and_the_level_chosen() -> None:
    with EsphomeFarEnd() as device, watched(device, states=False, log_level=EsphomeLogLevel.VERBOSE) as observations:
        device.state(pb.SwitchStateResponse(key=MUTE, state=True))
        device.log("[V][main:1]: the end")
        observations.wait(lambda: observations.of(LogLine), 30, "the line")
        assert [strip_terminal_codes(line.text) for line in observations.of(LogLine)] == ["[V][main:1]: the end"]
        assert device.log_levels == [6]


@pytest.mark.parametrize(
    ("device_key", "key_env", "message"),
    [
        (KEY, "OTHER_KEY", "Invalid encryption key"),
        (KEY, "", "requires encryption"),
        ("", "THE_KEY", "using plaintext protocol"),
    ],
)
def test_a_wrong_key_is_reported(device_key: str, key_env: str, message: str) -> None:
    with (
        EsphomeFarEnd(device_key) as device,
        pytest.raises(DeviceError, match=message) as caught,
        watched(device, key_env=key_env),
    ):
        pass
    assert "key_env" in caught.value.remedy


def test_a_device_that_restarts_is_lost_and_described_again(profile: DeviceProfile) -> None:
    with EsphomeFarEnd(KEY) as device, watched(device, profile, key_env="THE_KEY") as observations:
        device.lose()
        observations.wait(lambda: observations.of(LinkLost), 30, "the loss")
        device.mend()
        observations.wait(lambda: observations.of(LinkBack), 30, "the return")
        device.log(WOKE)
        observations.wait(lambda: observations.of(Wake), 30, "a wake event")
        assert len(observations.of(DeviceDescribed)) == 2
        assert device.address in observations.of(LinkLost)[0].what


def test_a_frozen_device_is_lost_and_comes_back() -> None:
    with EsphomeFarEnd() as device, watched(device, keepalive_s=0.2) as observations:
        device.frozen = True
        observations.wait(lambda: observations.of(LinkLost), 30, "the loss")
        assert "Ping response not received" in observations.of(LinkLost)[0].what
        device.frozen = False
        observations.wait(lambda: observations.of(LinkBack), 30, "the return")


def test_closing_does_not_wait_for_a_frozen_device() -> None:
    with EsphomeFarEnd() as device:
        driver = EsphomeDevice("pe", EsphomeOptions(address=device.address, keepalive_s=0.2), Around())
        observations, before = Seen(), set(threading.enumerate())
        driver.open(observations)
        device.frozen = True
        observations.wait(lambda: observations.of(LinkLost), 30, "the loss")
        time.sleep(1.0)  # it is connecting again, and has no answer
        began_s = time.monotonic()
        driver.close()
        assert time.monotonic() - began_s < 10
        until(lambda: not [thread for thread in set(threading.enumerate()) - before if "esphome" in thread.name], 30)


def test_bytes_that_are_no_frame_are_a_lost_link() -> None:
    with EsphomeFarEnd() as device, watched(device) as observations:
        device.garbage()
        observations.wait(lambda: observations.of(LinkLost), 30, "the loss")
        observations.wait(lambda: observations.of(LinkBack), 30, "the return")


def test_two_megabytes_at_once_and_long_lines_do_no_harm(profile: DeviceProfile) -> None:
    with EsphomeFarEnd() as device, watched(device, profile) as observations:
        for _ in range(16):
            device.log("x" * 60_000)  # aioesphomeapi takes at most 65,535 bytes in a frame
        for start in range(0, 50_000, 1000):
            device.log("\n".join(f"line {number} of a flood" for number in range(start, start + 1000)))
        device.log("\x00\x1b[31m garbage \x9b" * 1000)
        device.log(WOKE)
        observations.wait(lambda: observations.of(Wake), 20, "a wake event after the flood")
        observations.assert_flood_was_limited()
        assert not observations.of(LinkLost)


@pytest.mark.parametrize("key_env", ["", "THE_KEY"])
@pytest.mark.usefixtures("host_keeps_time")
def test_times_hold_against_an_independent_clock(key_env: str, profile: DeviceProfile) -> None:
    device = EsphomeFarEnd(KEY if key_env else "")
    with device, watched(device, profile, key_env=key_env, hold_back_ms=20.0) as observations:
        assert share_held(observations, lambda: device.log(WOKE)) >= HELD


def test_the_restart_button_is_pressed() -> None:
    with EsphomeFarEnd() as device:
        driver = EsphomeDevice("pe", EsphomeOptions(address=device.address, restart_button="restart"), Around())
        driver.open(Seen())
        try:
            driver.restart()
            until(lambda: device.restarts == 1)
        finally:
            driver.close()
        with pytest.raises(DeviceError, match="no button reboot") as caught, watched(device, restart_button="reboot"):
            pass
        assert "restart" in caught.value.remedy


def test_doctor_names_the_device_or_what_is_wrong() -> None:
    with EsphomeFarEnd(KEY) as device:
        good = EsphomeOptions(address=device.address, key_env="THE_KEY")
        bad = EsphomeOptions(address=device.address, key_env="NOT_SET_ANYWHERE")
        checks = list(EsphomeDevice.host_checks([("pe", good), ("other", bad)]))
    assert [check.level for check in checks] == [Level.OK, Level.FAIL]
    assert "Voice PE" in checks[0].says
    assert "NOT_SET_ANYWHERE" in checks[1].says


def test_the_monitor_shows_its_lines(profile: DeviceProfile) -> None:
    with EsphomeFarEnd() as device:
        source = EsphomeDevice.source(EsphomeOptions(address=device.address), profile, "pe", ())
        source.open()
        try:
            device.log(WOKE)
            heard = b""

            def came() -> bool:
                nonlocal heard
                heard += b"".join(piece.data for piece in source.queue.take(100_000))
                return b"Okay Nabu" in heard

            until(came)
        finally:
            source.close()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: EsphomeOptions(address="kitchen:70000"), "not an address"),
        (lambda: EsphomeOptions(address=""), "not an address"),
        (lambda: EsphomeOptions(address="kitchen", hold_back_ms=-1), "hold_back_ms is -1"),
        (lambda: EsphomeOptions(address="kitchen", keepalive_s=0), "keepalive_s is 0"),
        (lambda: EsphomeDevice.demand_host(EsphomeOptions("kitchen", key_env="NOT_SET_ANYWHERE")), "is not set"),
        (
            lambda: EsphomeDevice.demand_host(EsphomeOptions("kitchen", key_env="NO_KEY")),
            "does not contain a base64 key",
        ),
    ],
)
def test_wrong_options_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        make()
    assert "secret" not in str(caught.value)


def test_without_the_library_the_command_that_installs_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aioesphomeapi", None)
    with pytest.raises(PluginError) as caught:
        EsphomeDevice.demand_host(EsphomeOptions("kitchen"))
    assert "pip install 'aioesphomeapi>=" in caught.value.remedy
