"""How an evaluation is cut into tasks, and which device a task means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from harness.devices.declared import far_end
from harness.devices.mqtt.options import MqttOptions
from harness.devices.profiles.profile import load_profile, profile_paths
from harness.devices.serial.options import EncodingName, SerialOptions
from harness.engines.offline_loading import task_of
from harness.model.bench import Framing
from harness.model.errors import InputError
from harness.model.offline import (
    EngineFacts,
    EngineKind,
    Evaluation,
    ListedFile,
    ListKind,
    RejectReason,
    SpotRule,
    Task,
)
from harness.offline.cluster import MAX_FILES, MIN_TASK_S, TaskPiece, TaskSplitter
from harness.offline.cluster_worker import ClusterOrder, facts_hash, probes_of, shortened_list
from harness.offline.device_engine import DeviceEngine
from harness.offline.device_link import lock_free_device, task_devices
from harness.offline.pool import WorkerLimits
from tests.unit.offline.figures.outcomes import sized


def cutting(folder: Path, seconds: Sequence[float], task_s: float = 3600.0) -> TaskSplitter:
    return TaskSplitter(sized(folder, seconds), np.ones(len(seconds), bool), task_s)


def drained(cut: TaskSplitter, slots: int) -> list[TaskPiece]:
    pieces = []
    while (piece := cut.next_piece(slots, 0)) is not None:
        pieces.append(piece)
    return pieces


def test_tasks_are_of_an_hour_and_of_less_towards_the_end(tmp_path: Path) -> None:
    pieces = drained(cutting(tmp_path, [600.0] * 300), 4)
    hours = [len(piece.positions) / 6 for piece in pieces]
    assert sorted(position for piece in pieces for position in piece.positions) == list(range(300))
    assert hours[:40] == [1.0] * 40
    assert hours == sorted(hours, reverse=True)
    # At the end every worker has something, and the last of it is short.
    assert hours[-4:] == [1 / 6] * 4


def test_a_file_longer_than_a_task_goes_by_itself_and_first(tmp_path: Path) -> None:
    pieces = drained(cutting(tmp_path, [100.0, 9000.0, *[100.0] * 500, 4000.0]), 2)
    assert [piece.positions for piece in pieces[:2]] == [(1,), (502,)]


def test_short_and_unknown_files_are_grouped_by_count(tmp_path: Path) -> None:
    files = [ListedFile(ListKind.OOV, n, f"s3://bucket/{n}.wav", f"s3://bucket/{n}.wav") for n in range(40_000)]
    pieces = drained(TaskSplitter(files, np.ones(len(files), bool), 3600.0), 4)
    assert max(len(piece.positions) for piece in pieces) == MAX_FILES
    assert len(pieces[-1].positions) == 1 or len(pieces[-1].positions) * 0.1 <= MIN_TASK_S
    assert sum(len(piece.positions) for piece in pieces) == 40_000


@pytest.mark.parametrize("guilty", [0, 3, 7])
def test_only_the_file_that_ends_workers_is_rejected_after_three_attempts(tmp_path: Path, guilty: int) -> None:
    cut = cutting(tmp_path, [300.0] * 8)
    deaths: list[TaskPiece] = []
    done: list[int] = []
    out: list[TaskPiece] = []
    rejected: list[int] = []
    while len(done) + len(rejected) < 8:
        while (piece := cut.next_piece(2, len(out))) is not None:
            assert not (piece.attempt == 3 and out)
            out.append(piece)
        piece = out.pop(0)
        if guilty not in piece.positions:
            done += piece.positions
            continue
        deaths.append(piece)
        if not cut.retry_suspect(piece):
            rejected += piece.positions
    assert rejected == [guilty]
    assert [piece.attempt for piece in deaths] == [1, 2, 3]
    assert [len(piece.positions) for piece in deaths[1:]] == [1, 1]
    assert cut.next_piece(2, 0) is None


def test_cluster_order_survives_serialisation() -> None:
    evaluation = Evaluation(Task("microwakeword", "/models/a.tflite", (("threshold", "0.5"),)), resample=True)
    order = ClusterOrder(
        "1f", "0.1.0", evaluation, WorkerLimits(hang_after_s=7), (("/a.wav",), ("s3://b/c", "é\n")), "00", True
    )
    assert ClusterOrder.decode(order.encode()) == order


def test_each_list_is_looked_for_by_the_first_file_that_is_here(tmp_path: Path) -> None:
    names = ["a.wav", "a.txt", "b.wav"]
    for name in names:
        (tmp_path / name).touch()
    a, text, b = (str(tmp_path / name) for name in names)
    gone = str(tmp_path / "gone.wav")
    files = [
        ListedFile(ListKind.REFERENCED, 0, "gone", gone, 1),
        ListedFile(ListKind.REFERENCED, 1, "twice", b, 2, rejected=RejectReason.TWICE),
        ListedFile(ListKind.REFERENCED, 2, "a", a, 3, text),
        ListedFile(ListKind.OOV, 0, "b", b, 1),
        ListedFile(ListKind.OOV, 1, "a", a, 2),
        # The second list of that kind.
        *(ListedFile(ListKind.OOV, 2 + number, f"{number}", f"{gone}{number}", 1 + number) for number in range(5)),
    ]
    probes = probes_of(files)
    assert probes == ((a,), (text,), (b,), (f"{gone}0", f"{gone}1", f"{gone}2"))
    order = ClusterOrder("1f", "0.1.0", Evaluation(Task("e", "m")), WorkerLimits(), probes)
    assert order.unreadable_probe().startswith(f"{gone}0 cannot be read there (")
    Path(f"{gone}2").touch()
    assert order.unreadable_probe() == ""


def test_engines_on_either_of_two_equal_paths_are_interchangeable() -> None:
    facts = EngineFacts(EngineKind.WAKE, "1", 16000, ("boom",), "00", rule=SpotRule(0.5, 16000, 8000))
    assert facts_hash(facts) == facts_hash(replace(facts, settings=(("path", "streaming"),)))
    for other in (replace(facts, version="2"), replace(facts, fingerprint="01"), replace(facts, rule=None)):
        assert facts_hash(other) != facts_hash(facts)


def test_long_name_lists_are_shortened() -> None:
    assert shortened_list(["a", "b"]) == "a, b"
    assert shortened_list(list("abcdef")) == "a, b, c and 3 more"


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


def test_devices_of_a_bench_keep_the_order_of_the_task(bench: str) -> None:
    devices = task_devices(f"{bench}#radio, kitchen", {})
    assert [(device.id, device.driver, device.abilities.restarts) for device in devices] == [
        ("radio", "mqtt", True),
        ("kitchen", "serial", True),
    ]
    (tflm,) = task_devices(f"{bench}#tflm", {})
    assert not tflm.abilities.restarts


def test_settings_override_keys_of_the_connection(bench: str) -> None:
    (device,) = task_devices(f"{bench}#kitchen", {"encoding": "adpcm", "baud": "921600", "sensitivity": "3"})
    assert isinstance(device.options, SerialOptions)
    assert (device.options.encoding, device.options.baud) == (EncodingName.ADPCM, 921600)
    assert device.options.port == "/dev/ttyUSB7"


def test_a_profile_may_be_given_a_port_or_a_broker() -> None:
    (wired,) = task_devices("vh_board", {"port": "/dev/ttyACM0"})
    assert isinstance(wired.options, SerialOptions)
    (radio,) = task_devices("vh_board_mqtt", {"address": "localhost:1884"})
    assert isinstance(radio.options, MqttOptions)
    assert far_end(wired.driver, wired.options, wired.id) != far_end(radio.driver, radio.options, radio.id)


@pytest.mark.parametrize(
    ("device", "settings", "message"),
    [
        ("#attic", {}, "no device 'attic'"),
        ("#", {}, "names no device"),
        ("#kitchen,kitchen", {}, "one twice"),
        ("#box", {}, "no connection"),
        ("#ears", {}, "does not accept sound over its connection"),
        ("#kitchen", {"address": "localhost"}, "has no key 'address'"),
        ("#kitchen", {"baud": "fast"}, "baud"),
    ],
)
def test_invalid_task_device_or_setting_lists_the_valid_ones(
    bench: str, device: str, settings: dict[str, str], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        task_devices(f"{bench}{device}", settings)


def test_profile_without_a_bench_is_refused() -> None:
    with pytest.raises(InputError, match="does not say how") as refused:
        task_devices("vh_board", {})
    assert "bench.yaml#ID" in refused.value.remedy


def test_each_device_runs_one_job(bench: str) -> None:
    assert DeviceEngine.most_jobs(f"{bench}#kitchen") == 1
    assert DeviceEngine.most_jobs("vh_board") == 1
    assert DeviceEngine.most_jobs(f"{bench}#kitchen,radio") == 2


def test_a_device_stays_reserved_until_released(bench: str) -> None:
    devices = task_devices(f"{bench}#kitchen,radio", {})
    with lock_free_device(devices) as device, lock_free_device(devices) as other:
        assert {device.id, other.id} == {"kitchen", "radio"}
        with pytest.raises(InputError, match="another process"), lock_free_device(devices[:1]):
            pass
    with lock_free_device(devices[:1]) as released:
        assert released.id == "kitchen"


def test_tasks_and_settings_are_checked_without_a_device(bench: str) -> None:
    task = task_of(f"device:{bench}#kitchen", [("sensitivity", "70"), ("between", "silence")])
    assert (task.engine, dict(task.settings)) == ("device", {"sensitivity": "70", "between": "silence"})
    with pytest.raises(InputError, match="Did you mean 'sensitivity'"):
        task_of(f"device:{bench}#kitchen", [("sensitivty", "70")])


def test_models_are_profiles_that_take_sound() -> None:
    names = {model.name for model in DeviceEngine.models()}
    assert {"vh_board", "vh_board_mqtt", "tflm_test_over_serial"} <= names
    assert "esp_skainet" not in names
    profiles = [load_profile(path, beside=Path.cwd()) for path in profile_paths(Path.cwd() / "devices").values()]
    assert names == {
        profile.id for profile in profiles if profile.audio is not None or profile.console.framing is Framing.VH
    }


@pytest.mark.parametrize("framing", ["framing: vh", "'framing' : 'vh'", '"framing": "vh"'])
def test_a_profile_with_our_framing_alone_is_a_model(
    framing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "devices").mkdir()
    (tmp_path / "devices" / "framed_board.yaml").write_text(
        f"device: framed_board\nwake_phrases: [alexa]\nreports: [wake]\nconsole: {{{framing}}}\n"
    )
    monkeypatch.chdir(tmp_path)
    assert "framed_board" in {model.name for model in DeviceEngine.models()}
