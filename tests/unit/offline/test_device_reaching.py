"""Which device a task means: benches, profiles, and what is wrong with them, before anything is opened."""

from pathlib import Path

import pytest

from harness.devices.declared import far_end
from harness.devices.mqtt.options import MqttOptions
from harness.devices.serial.options import EncodingName, SerialOptions
from harness.engines.offline_loading import task_of
from harness.model.errors import InputError
from harness.offline.device_engine import DeviceEngine
from harness.offline.device_link import first_free, reached

BENCH = """\
bench: several
operator: absent
loudspeakers: {near: {driver: in_process}}
microphone: {driver: in_process}
devices:
  kitchen: {profile: vh_board, connection: {driver: serial, port: /dev/ttyUSB7}}
  radio: {profile: vh_board_mqtt, connection: {driver: mqtt, address: "127.0.0.1:1883"}}
  tflm: {profile: tflm_test_over_serial, connection: {driver: serial, port: /dev/ttyUSB8}}
  ears: {profile: esp_skainet, connection: {driver: serial, port: /dev/ttyUSB9}}
  box: {profile: reference_assistant_black_box}
"""


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("HARNESS_RUNTIME", str(tmp_path / "run"))
    path = tmp_path / "bench.yaml"
    path.write_text(BENCH, encoding="utf-8")
    return str(path)


def test_devices_of_a_bench_in_their_order(bench: str) -> None:
    found = reached(f"{bench}#radio, kitchen", {})
    assert [(one.id, one.driver, one.abilities.restarts) for one in found] == [
        ("radio", "mqtt", True),
        ("kitchen", "serial", True),
    ]
    (tflm,) = reached(f"{bench}#tflm", {})
    assert not tflm.abilities.restarts


def test_settings_stand_in_place_of_the_connections_keys(bench: str) -> None:
    (one,) = reached(f"{bench}#kitchen", {"encoding": "adpcm", "baud": "921600", "sensitivity": "3"})
    assert isinstance(one.options, SerialOptions)
    assert (one.options.encoding, one.options.baud) == (EncodingName.ADPCM, 921600)
    assert one.options.port == "/dev/ttyUSB7"


def test_a_profile_with_a_port_or_a_broker() -> None:
    (wired,) = reached("vh_board", {"port": "/dev/ttyACM0"})
    assert isinstance(wired.options, SerialOptions)
    (radio,) = reached("vh_board_mqtt", {"address": "localhost:1884"})
    assert isinstance(radio.options, MqttOptions)
    assert far_end(wired.driver, wired.options, wired.id) != far_end(radio.driver, radio.options, radio.id)


@pytest.mark.parametrize(
    ("device", "settings", "said"),
    [
        ("#attic", {}, "no device 'attic'"),
        ("#", {}, "names no device"),
        ("#kitchen,kitchen", {}, "one twice"),
        ("#box", {}, "no connection"),
        ("#ears", {}, "takes no sound over its connection"),
        ("#kitchen", {"address": "localhost"}, "has no 'address'"),
        ("#kitchen", {"baud": "fast"}, "baud"),
    ],
)
def test_what_is_wrong_is_said_with_what_there_is(bench: str, device: str, settings: dict[str, str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        reached(f"{bench}{device}", settings)


def test_a_profile_alone_does_not_say_where() -> None:
    with pytest.raises(InputError, match="does not say where") as refused:
        reached("vh_board", {})
    assert "bench.yaml#ID" in refused.value.remedy


def test_one_device_is_one_job(bench: str) -> None:
    assert DeviceEngine.most_jobs(f"{bench}#kitchen") == 1
    assert DeviceEngine.most_jobs("vh_board") == 1
    assert DeviceEngine.most_jobs(f"{bench}#kitchen,radio") == 2


def test_a_device_is_taken_until_it_is_given_back(bench: str) -> None:
    devices = reached(f"{bench}#kitchen,radio", {})
    with first_free(devices) as one, first_free(devices) as other:
        assert {one.id, other.id} == {"kitchen", "radio"}
        with pytest.raises(InputError, match="another process"), first_free(devices[:1]):
            pass
    with first_free(devices[:1]) as again:
        assert again.id == "kitchen"


def test_tasks_and_settings_are_checked_without_a_device(bench: str) -> None:
    task = task_of(f"device:{bench}#kitchen", [("sensitivity", "70"), ("between", "silence")])
    assert (task.engine, dict(task.settings)) == ("device", {"sensitivity": "70", "between": "silence"})
    with pytest.raises(InputError, match="Did you mean 'sensitivity'"):
        task_of(f"device:{bench}#kitchen", [("sensitivty", "70")])


def test_models_are_profiles_that_take_sound() -> None:
    names = {one.name for one in DeviceEngine.models()}
    assert {"vh_board", "vh_board_mqtt", "tflm_test_over_serial"} <= names
    assert "esp_skainet" not in names
