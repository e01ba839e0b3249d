"""Settings of an ESPHome device that a matrix varies: set for each cell, refused if wrong, and set back."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from harness.devices.esphome import EsphomeDevice, EsphomeLink, EsphomeOptions
from harness.model.bench import DeviceSetting
from harness.model.errors import DeviceError, InputProblems
from harness.model.observation import LinkBack, LinkLost
from harness.model.record import AttemptStarted, FaultMet, SettingsNoted, SettingsStage
from harness.report.junit import junit
from harness.report.session import read_session
from harness.report.wake_json import as_json
from harness.report.wake_log_session import wake_log
from harness.session.engine.launch import start_engine
from tests.conformance.engine_runs import Runs, kill, play_out, rows, wait_for
from tests.conformance.esphome_far_end import GAIN, SENSITIVITY, EsphomeFarEnd
from tests.known import known
from tests.seen import Around, opened
from tests.written_sessions import records

SCENARIO = """\
scenario: gain
defaults: {life_check_after: 0, between_trials_s: 0}
trials: [{id: call, kind: wake, lead_in_s: 0.1, tail_s: 0.1}]
matrix: {axes: {device_settings: [{}, %s, {number.gain: 31}]}}
"""


def session(runs: Runs, address: str, settings: str, driver: str = "esphome", scenario: str = SCENARIO) -> Path:
    (runs.root / "gain.yaml").write_text(scenario % settings, encoding="utf-8")
    (runs.root / "bench.yaml").write_text(
        "bench: desk\noperator: absent\nloudspeakers: {front: {driver: in_process}}\n"
        f"devices: {{pe: {{profile: esphome_voice, connection: {{driver: {driver}, address: '{address}'}}}}}}\n",
        encoding="utf-8",
    )
    return runs.prepare(runs.root / "gain.yaml", runs.root / "bench.yaml")


def test_settings_are_set_for_each_cell_and_set_back_after_a_kill(runs: Runs) -> None:
    with EsphomeFarEnd() as device:
        folder = session(runs, device.address, "{number.gain: 20.5, select.wake_word_sensitivity: Very}")
        place = start_engine(folder)
        wait_for(lambda: (SENSITIVITY, "Very") in device.commands, 120, "the second cell")
        kill(place)
        assert device.states[GAIN].state == 20.5
        play_out(folder)
        assert device.states[GAIN].state == pytest.approx(0.1)
        assert device.states[SENSITIVITY].state == "Slightly"
    noted = records(rows(folder), SettingsNoted)
    originals = [row.settings for row in noted if row.of is SettingsStage.ORIGINAL]
    assert originals == [(("number.gain", "0.1"), ("select.wake_word_sensitivity", "Slightly"))]
    assert noted[-1].of is SettingsStage.RESTORED
    third = [row.settings for row in noted if row.of is SettingsStage.TRIAL][-1]
    assert dict(third) == {"number.gain": "31", "select.wake_word_sensitivity": "Slightly"}
    exported_with_each_result(folder)


def exported_with_each_result(folder: Path) -> None:
    """The settings, and the device's firmware and model."""
    session = read_session(folder)
    report = as_json(session, ("pe",))
    assert [trial["conditions"]["device_settings"] for trial in report["devices"][0]["trials"]] == [
        "as it is",
        "number.gain=20.5, select.wake_word_sensitivity=Very",
        "number.gain=31",
    ]
    (board,) = report["boards"]
    assert "Voice PE 25.11.0" in board["firmware"]
    assert "Home Assistant Voice PE" in board["firmware"]
    assert {"device": "pe", "name": "number.gain", "value": "0.1"} in report["device_settings"]
    info = dict(wake_log(session, "pe").info)
    assert info["x-firmware"].startswith('"pe" "Nabu Casa.Voice PE 25.11.0')
    assert info["x-device-setting"] == '"pe" "select.wake_word_sensitivity" "Slightly"'
    assert b'name="setting number.gain of pe" value="0.1"' in junit(folder)


def test_settings_that_no_trial_takes_are_refused(runs: Runs) -> None:
    ambient = "{id: soak, kind: ambient, hours: 0.003, segment_s: 10.8, sources: [{noise: pink}]}"
    scenario = SCENARIO.replace("{id: call, kind: wake, lead_in_s: 0.1, tail_s: 0.1}", ambient)
    with pytest.raises(InputProblems, match="all trials are ambient"):
        session(runs, "127.0.0.1:1", "{number.gain: 3}", scenario=scenario)


def test_wrong_settings_are_refused_before_a_sound(runs: Runs) -> None:
    with EsphomeFarEnd() as device:
        folder = session(runs, device.address, "{number.gian: 3}")
        play_out(folder)
        message = "Did you mean 'number.gain'? Its settings: switch.mute, select.wake_word_sensitivity, number.gain"
        assert message in records(rows(folder), FaultMet)[-1].what
        assert not records(rows(folder), AttemptStarted)
        assert not device.commands


@pytest.mark.parametrize(
    ("name", "value", "refusal"),
    [
        ("number.gain", "32", "is out of range"),
        ("number.gain", "nan", "is out of range"),
        ("number.gain", "loud", "is not a number"),
        ("select.wake_word_sensitivity", "Loud", "is not an allowed value"),
        ("switch.mute", "On", "is not an allowed value"),
        ("number.gain", "31", ""),
        ("select.wake_word_sensitivity", "Very", ""),
        ("switch.mute", "on", ""),
    ],
)
def test_setting_values_are_checked_against_the_device(name: str, value: str, refusal: str) -> None:
    with EsphomeFarEnd() as device:
        link = EsphomeLink(EsphomeOptions(address=device.address)).open(threading.Event())
        assert link.settings()[name].refusal(value) == refusal
        link.close()


def test_the_remedy_for_a_number_without_limits_names_none() -> None:
    assert DeviceSetting("number.gain", "3").remedy == "Use a number"
    assert DeviceSetting("number.gain", "3", low=0, high=31).remedy == "Use a number from 0 to 31"


def test_a_driver_that_cannot_set_is_refused(runs: Runs) -> None:
    with pytest.raises(InputProblems, match=r"varies settings of 'pe', but its connection \(tcp\) cannot set them"):
        session(runs, "127.0.0.1:1", "{number.gain: 3}", driver="tcp")


def test_a_device_that_keeps_its_value_is_reported() -> None:
    with EsphomeFarEnd() as device:
        device.stubborn = True
        link = EsphomeLink(EsphomeOptions(address=device.address)).open(threading.Event())
        link.settings()
        with pytest.raises(DeviceError, match=r"did not report switch.mute=on within 0.3 s, but off"):
            link.set_setting("switch.mute", "on", 0.3)
        link.close()


def test_a_device_that_restarts_gets_its_settings_again() -> None:
    with EsphomeFarEnd() as device:
        driver = EsphomeDevice("pe", EsphomeOptions(address=device.address, states=False), Around())
        observations = opened(driver)
        try:
            driver.set_setting("number.gain", "12")
            device.lose()
            observations.wait(lambda: observations.of(LinkLost), 30, "the loss")
            device.states[GAIN] = type(device.states[GAIN])(key=GAIN, state=5)
            device.mend()
            observations.wait(lambda: observations.of(LinkBack), 30, "the return")
            assert known(driver.settings().get("number.gain")).value == "12"
        finally:
            driver.close()
