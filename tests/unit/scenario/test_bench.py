"""Bench files and profiles that are right, how profiles are found, and scenarios and benches together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.devices.declared import driver_with_keys
from harness.devices.profiles.profile import load_profile
from harness.model.bench import (
    AfterRetries,
    Bench,
    MessageMapping,
    Notify,
    NotifyInput,
    NotifyOn,
    ObservationKind,
    OnFault,
    OperatorPresence,
)
from harness.model.errors import InputError, InputProblems, UnmetNeed
from harness.model.scenario import Scenario
from harness.scenario.bench import load_bench
from harness.scenario.compatibility import check_compatibility
from harness.scenario.scenario import load_scenario
from tests.files import file_with
from tests.unit.scenario.bench_drivers import EarsOptions, SpeakerOptions

BENCH = """\
bench: desk
sound_server: virtual_lab
operator: absent
labels: {firmware: "1.2"}
loudspeakers:
  near: {driver: test_speaker, sound_device: one, rooms: [kitchen, hall]}
  far: {driver: test_speaker, sound_device: two, volume: 1, position: door}
microphone: {driver: test_ears}
monitor: {same_as: far}
devices:
  assistant: {profile: lamp, position: shelf, connection: {same_as: near}}
  black_box: {profile: ./quiet.yaml}
"""
LAMP = """\
device: lamp
wake_phrases: [hey lamp]
reports: [transcript, status]
context_wait_s: 5
close_dialogue: {say: cancel}
mappings:
  - {topic: "vh/{device}/heard", kind: transcript, fields: {text: /text}, when: {/final: true, /n: 1, /s: no}}
  - {topic: "vh/+/state/#", kind: status, fields: {state: ""}, values: {on: idle, "1": gone}}
"""
QUIET = "device: quiet\nwake_phrases: []\n"
SCENARIO = """\
scenario: s
needs: [transcripts]
stimuli: [{id: q, text: hello}]
trials:
  - {query: q, device: assistant}
matrix:
  axes:
    position: [near, door]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "lab" / "benches"
    folder.mkdir(parents=True)
    (tmp_path / "devices").mkdir()
    (tmp_path / "devices" / "lamp.yaml").write_text(LAMP, encoding="utf-8")
    (folder / "quiet.yaml").write_text(QUIET, encoding="utf-8")
    (folder / "bench.yaml").write_text(BENCH, encoding="utf-8")
    (folder / "scenario.yaml").write_text(SCENARIO, encoding="utf-8")
    return folder


@pytest.fixture
def bench(folder: Path) -> Bench:
    return load_bench(folder / "bench.yaml")


@pytest.fixture
def scenario(folder: Path) -> Scenario:
    return load_scenario(folder / "scenario.yaml")


def test_options_are_instances_of_the_drivers_own_type(bench: Bench) -> None:
    near, far = bench.loudspeakers
    assert near.options == SpeakerOptions("one", rooms=("kitchen", "hall"))
    assert type(near.options) is SpeakerOptions
    assert (near.id, near.position, far.position) == ("near", "near", "door")
    assert near.place.line == 6
    assert bench.microphone is not None
    assert (bench.microphone.id, bench.microphone.options) == ("microphone", EarsOptions())
    assert (bench.sound_server, bench.operator, bench.labels) == (
        "virtual_lab",
        OperatorPresence.ABSENT,
        {"firmware": "1.2"},
    )


def test_a_device_of_a_bench_may_have_wake_phrases_of_its_own(folder: Path) -> None:
    text = BENCH.replace("profile: lamp,", "profile: lamp, wake_phrases: [computer, hey you],")
    (folder / "bench.yaml").write_text(text, encoding="utf-8")
    assert load_bench(folder / "bench.yaml").devices[0].profile.wake_phrases == ("computer", "hey you")
    (folder / "bench.yaml").write_text(text.replace("[computer, hey you]", "[]"), encoding="utf-8")
    with pytest.raises(InputProblems, match="list is empty"):
        load_bench(folder / "bench.yaml")


def test_a_bench_says_what_a_run_does_about_a_fault(folder: Path, bench: Bench) -> None:
    assert bench.on_fault is None
    text = BENCH + "on_fault: {retry_after_s: 30, then: skip}\n"
    (folder / "bench.yaml").write_text(text, encoding="utf-8")
    assert load_bench(folder / "bench.yaml").on_fault == OnFault(30.0, 10, AfterRetries.SKIP)


def test_a_bench_says_where_a_run_sends_messages(folder: Path, bench: Bench) -> None:
    assert bench.notify == ()
    text = """\
notify:
  - {command: [./tell.sh, "{subject}"], on: [paused, finished], input: text}
  - {mqtt: "broker:8883", topic: lab/nights, tls: true}
"""
    (folder / "bench.yaml").write_text(BENCH + text, encoding="utf-8")
    tell = str(folder / "tell.sh")
    events = (NotifyOn.PAUSED, NotifyOn.FINISHED)
    assert load_bench(folder / "bench.yaml").notify == (
        Notify(events, command=(tell, "{subject}"), input=NotifyInput.TEXT),
        Notify(mqtt="broker:8883", topic="lab/nights", tls=True),
    )


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{on: [paused]}", "exactly one destination"),
        ("{command: [mail], webhook: 'https://x/'}", "exactly one destination"),
        ("{webhook: 'ftp://x/'}", "not an HTTP address"),
        ("{mqtt: broker, topic: 'lab/#'}", "a topic without"),
        ("{mqtt: embedded, topic: lab}", "the embedded broker ends with the run"),
        ("{mqtt: 'broker:0', topic: lab}", "broker:0"),
        ("{command: [mail], token_env: X}", "`token_env` belongs to `webhook`"),
        ("{command: [mail], on: [coffee]}", "coffee"),
        ("{command: [mail], on: []}", "a list is empty"),
    ],
)
def test_an_impossible_notification_target_is_refused_with_its_place(folder: Path, entry: str, message: str) -> None:
    (folder / "bench.yaml").write_text(f"{BENCH}notify:\n  - {entry}\n", encoding="utf-8")
    with pytest.raises(InputProblems, match=f"(?s)bench.yaml:14:.*{message}"):
        load_bench(folder / "bench.yaml")


def test_a_driver_with_other_options_takes_no_keys() -> None:
    assert driver_with_keys(["usb"], load_profile("esp_skainet", beside=Path())) == "serial"


@pytest.mark.parametrize("driver", ["serial, port: /dev/ttyX", "tcp, address: 'a:1'", "websocket, url: 'ws://a'"])
def test_a_profile_of_mqtt_topics_is_refused_for_a_driver_that_reads_lines(folder: Path, driver: str) -> None:
    path = file_with(folder / "b.yaml", BENCH.replace("{same_as: near}", f"{{driver: {driver}}}"))
    with pytest.raises(InputProblems, match=r"b\.yaml:11:.*'lamp' has no rules for what the driver .* receives"):
        load_bench(path)
    load_bench(file_with(path, path.read_text(encoding="utf-8").replace("profile: lamp", "profile: esp_skainet")))


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("  black_box:", "  far: {profile: lamp, connection: {driver: mqtt, address: a}}\n  black_box:", 12),
        ("  near: {driver", "  microphone: {driver: test_speaker, sound_device: x}\n  near: {driver", 9),
    ],
)
def test_two_parts_of_one_name_are_refused(folder: Path, old: str, new: str, line: int) -> None:
    path = file_with(folder / "b.yaml", BENCH.replace(old, new))
    with pytest.raises(
        InputProblems, match=rf"b\.yaml:{line}:.* is also the name of another part of the bench, on line"
    ):
        load_bench(path)


def test_same_as_refers_to_the_same_equipment(bench: Bench) -> None:
    assert bench.monitor is bench.loudspeakers[1]
    assert bench.device("assistant").connection is bench.loudspeakers[0]
    assert bench.device("black_box").connection is None


def test_a_profile_keeps_its_mappings_as_text(bench: Bench) -> None:
    profile = bench.device("assistant").profile
    assert profile.reports == {ObservationKind.TRANSCRIPT, ObservationKind.STATUS}
    assert profile.close_dialogue_say == "cancel"
    assert profile.mappings == (
        MessageMapping(
            "vh/{device}/heard",
            ObservationKind.TRANSCRIPT,
            (("text", "/text"),),
            when=(("/final", "true"), ("/n", "1"), ("/s", "no")),
        ),
        MessageMapping(
            "vh/+/state/#", ObservationKind.STATUS, (("state", ""),), values=(("on", "idle"), ("1", "gone"))
        ),
    )


def test_the_profile_nearest_to_the_bench_is_used(folder: Path) -> None:
    (folder / "devices").mkdir()
    (folder / "devices" / "lamp.yaml").write_text(LAMP.replace("hey lamp", "hello lamp"), encoding="utf-8")
    assert load_profile("lamp", beside=folder).wake_phrases == ("hello lamp",)
    assert load_profile("../../devices/lamp.yaml", beside=folder).wake_phrases == ("hey lamp",)


def test_profiles_of_the_project_and_of_the_current_folder_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lonely, current = tmp_path / "lonely", tmp_path / "here" / "devices"
    lonely.mkdir()
    current.mkdir(parents=True)
    (current / "mine.yaml").write_text(QUIET, encoding="utf-8")
    monkeypatch.chdir(current.parent)
    assert load_profile("mine", beside=lonely).id == "quiet"
    assert load_profile("reference_assistant", beside=lonely).id == "reference_assistant"
    with pytest.raises(InputError, match="Did you mean 'mine'"):
        load_profile("mime", beside=lonely)


def test_profile_errors_are_reported_with_bench_errors(folder: Path) -> None:
    (folder / "quiet.yaml").write_text(QUIET + "reports: [wakes]\n", encoding="utf-8")
    (folder / "bench.yaml").write_text(BENCH + "rom: x\n", encoding="utf-8")
    with pytest.raises(InputProblems) as refused:
        load_bench(folder / "bench.yaml")
    assert [(Path(p.place.file).name, p.place.line) for p in refused.value.problems if p.place] == [
        ("bench.yaml", 13),
        ("quiet.yaml", 3),
    ]


def test_a_file_of_another_kind_is_refused_at_once(folder: Path) -> None:
    with pytest.raises(InputError, match="this is a bench file, but a scenario file is expected"):
        load_scenario(folder / "bench.yaml")
    with pytest.raises(InputError, match="this is a device file, but a bench file is expected"):
        load_bench(folder / "quiet.yaml")


@pytest.mark.parametrize("axis", ["device_settings: [{volume: '3'}]", "voice: [{talker: anna}]"])
def test_a_missing_device_is_reported_whatever_the_matrix_varies(folder: Path, bench: Bench, axis: str) -> None:
    text = SCENARIO.replace("device: assistant", "device: asistant").replace("position: [near, door]", axis)
    path = file_with(folder / "s.yaml", text)
    with pytest.raises(InputProblems, match="has no device 'asistant'"):
        check_compatibility(load_scenario(path), bench)


def test_reference_to_missing_bench_item_is_reported_at_its_line(folder: Path, bench: Bench) -> None:
    text = SCENARIO.replace("device: assistant", "device: asistant").replace("door", "dor")
    (folder / "scenario.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(InputProblems) as refused:
        check_compatibility(load_scenario(folder / "scenario.yaml"), bench)
    device, position = refused.value.problems
    assert device.place is not None
    assert position.place is not None
    assert (device.place.line, position.place.line) == (5, 8)
    assert "Did you mean 'assistant'" in device.remedy
    assert "Did you mean 'door'" in position.remedy


@pytest.mark.parametrize(
    ("need", "without"),
    [
        ("microphone", {"microphone": None}),
        ("monitor", {"monitor": None}),
        ("operator", {"operator": OperatorPresence.ABSENT}),
        ("loudspeaker", {"loudspeakers": ()}),
        ("noise", {"loudspeakers": ()}),
    ],
)
def test_a_need_that_is_not_met_is_named_with_what_to_add(
    need: str, without: dict[str, object], folder: Path, bench: Bench
) -> None:
    text = SCENARIO[: SCENARIO.index("matrix:")].replace("transcripts", need)
    (folder / "scenario.yaml").write_text(text, encoding="utf-8")
    scenario = load_scenario(folder / "scenario.yaml")
    check_compatibility(scenario, replace(bench, operator=OperatorPresence.AUTO))
    with pytest.raises(UnmetNeed) as unmet:
        check_compatibility(scenario, replace(bench, **without))  # type: ignore[arg-type]
    assert "does not offer" in unmet.value.what
    assert "bench" in unmet.value.remedy
    assert unmet.value.exit_code == 0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("device: assistant", "device: black_box", "'transcripts'"),
        ("[transcripts]", "[wake_events]", "'wake_events'"),
        ("device: assistant", "device: assistant, evidence: device", ""),
        ("[transcripts]\n", "[]\ndefaults: {evidence: device}\n", ""),
    ],
)
def test_evidence_is_required_of_used_devices_only(
    old: str, new: str, message: str, folder: Path, bench: Bench
) -> None:
    (folder / "scenario.yaml").write_text(SCENARIO.replace(old, new), encoding="utf-8")
    scenario = load_scenario(folder / "scenario.yaml")
    if message:
        with pytest.raises(UnmetNeed, match=message):
            check_compatibility(scenario, bench)
    else:
        check_compatibility(scenario, bench)


def test_required_evidence_of_a_black_box_is_refused(folder: Path, bench: Bench) -> None:
    text = SCENARIO.replace("[transcripts]", "[]").replace("device: assistant", "device: black_box, evidence: device")
    (folder / "scenario.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(UnmetNeed, match="'black_box' reports no transcript"):
        check_compatibility(load_scenario(folder / "scenario.yaml"), bench)


def test_positions_need_requires_several_loudspeakers(folder: Path, bench: Bench) -> None:
    text = SCENARIO[: SCENARIO.index("matrix:")].replace("transcripts", "positions")
    (folder / "scenario.yaml").write_text(text, encoding="utf-8")
    scenario = load_scenario(folder / "scenario.yaml")
    check_compatibility(scenario, bench)
    with pytest.raises(UnmetNeed, match="positions"):
        check_compatibility(scenario, replace(bench, loudspeakers=bench.loudspeakers[:1]))


ALSO = """\
bench: desk
devices:
  lamp:
    profile: lamp
    connection: {driver: test_ears}
    also:
      led: {driver: test_ears, profile: ./light.yaml}
      log: {driver: test_ears}
    merge_within_ms: 700
"""


def test_a_device_may_have_further_sources(folder: Path) -> None:
    (folder / "light.yaml").write_text("device: light\nwake_phrases: [hey lamp]\nreports: [wake]\nlines: []\n")
    path = file_with(folder / "also.yaml", ALSO)
    (device,) = load_bench(path).devices
    assert device.sources == ("lamp", "lamp.led", "lamp.log")
    assert (device.also[0].profile.id, device.also[1].profile.id) == ("light", "lamp")
    assert device.merge_within_ms == 700
    assert ObservationKind.WAKE in device.reports


@pytest.mark.parametrize(
    ("wrong", "place", "message"),
    [
        ("led: {profile: lamp}", "7:12", "the key 'driver' is missing"),
        ("led: {driver: no_such}", "7:21", "there is no driver 'no_such'"),
        ("led: {driver: network_bursts}", "7:21", "'network_bursts' was removed. Learn the device's chime"),
        ("led: {driver: test_ears, profile: nope}", "7:41", "the device profile 'nope' does not exist"),
        ("test_ears: {driver: test_ears}", "7:7", "two sources of 'lamp' are named 'test_ears'"),
        ("Led: {driver: test_ears}", "7:7", "'Led' is not a name"),
        ("led: {driver: test_ears, same_as: near}", "7:13", "`driver` cannot be combined with `same_as`"),
        ("led: {driver: test_ears, volume: 3}", "7:32", "there is no key 'volume' here"),
    ],
)
def test_invalid_further_sources_are_refused(folder: Path, wrong: str, place: str, message: str) -> None:
    path = file_with(folder / "also.yaml", ALSO.replace("led: {driver: test_ears, profile: ./light.yaml}", wrong))
    with pytest.raises(InputProblems) as raised:
        load_bench(path)
    assert f"also.yaml:{place}: " in str(raised.value)
    assert message in str(raised.value)
