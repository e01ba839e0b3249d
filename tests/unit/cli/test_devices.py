"""`harness devices`, as a user types it: list, test, monitor."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from harness.cli import group
from harness.cli.devices import samples_file
from harness.devices.device_monitor import DeviceMonitor
from harness.devices.device_sources import DeviceOutput, DeviceOutputQueue, output_now
from harness.devices.profiles.profile import load_profile, profile_paths
from harness.devices.profiles.samples import check_samples
from harness.devices.serial.options import SerialOptions
from harness.devices.serial.port import SerialMonitorSource
from harness.devices.wire import messages
from harness.devices.wire.frames import FrameKind, encode
from harness.model.errors import DeviceError, InputError
from harness.model.time import Stamp
from tests.command import succeeded
from tests.files import file_with
from tests.known import known
from tests.seen import until

LAMP = """\
device: lamp
wake_phrases: [hey lamp]
reports: [wake]
lines:
  - {match: '^WAKE (?P<phrase>.+)$', kind: wake}
samples:
  - {lines: [WAKE hey lamp], gives: [{kind: wake, phrase: PHRASE}]}
"""


def harness(*arguments: str | Path, stdin: bytes = b"") -> Result:
    return CliRunner().invoke(group, [str(argument) for argument in arguments], input=stdin)


@contextmanager
def pty() -> Iterator[tuple[int, str]]:
    """A line whose far end is ours, and the port's name."""
    board, port = os.openpty()
    try:
        yield board, os.ttyname(port)
    finally:
        os.close(port)
        os.close(board)


def lamp(folder: Path, phrase: str = "hey lamp") -> Path:
    return file_with(folder / "lamp.yaml", LAMP.replace("PHRASE", phrase))


def test_the_list_has_every_profile() -> None:
    result = succeeded(harness("devices", "list"))
    assert "esp_skainet" in result.stdout
    assert "dfrobot_df2301q" in result.stdout
    rows = {row["id"]: row for row in json.loads(harness("devices", "list", "--json").stdout)}
    assert rows["tflm_test_over_serial"]["audio"] == "tflm_test_over_serial"
    assert rows["vh_board"]["framing"] == "vh"
    assert rows["reference_assistant"]["transport"] == "mqtt"


def test_an_invalid_profile_is_reported_with_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "devices").mkdir()
    (tmp_path / "devices" / "bad.yaml").write_text("device: bad\nwake_phrases: 7\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    result = harness("devices", "list")
    assert result.exit_code == 2
    assert "bad.yaml:2:15" in result.stderr
    assert "esp_skainet" in result.stdout


def test_samples_are_tested_and_differences_are_shown(tmp_path: Path) -> None:
    assert harness("devices", "test", "--all").exit_code == 0
    assert harness("devices", "test", lamp(tmp_path)).exit_code == 0
    wrong = harness("devices", "test", lamp(tmp_path, "hey you"))
    assert wrong.exit_code == 1
    assert "lamp.yaml:7" in wrong.stdout
    assert "input WAKE hey lamp" in wrong.stdout
    assert "wanted {kind: wake, phrase: 'hey you'}" in wrong.stdout
    assert "got {kind: wake, phrase: 'hey lamp'}" in wrong.stdout
    validated = harness("validate", tmp_path / "lamp.yaml")
    assert validated.exit_code == 2
    assert "lamp.yaml:7: the sample gives a different result" in validated.stderr


@pytest.mark.parametrize("arguments", [("test",), ("test", "x", "--all"), ("test", "--all", "--port", "p")])
def test_incomplete_or_contradictory_arguments_are_refused(arguments: tuple[str, ...]) -> None:
    assert isinstance(harness("devices", *arguments).exception, InputError)


def test_a_device_on_a_port_is_watched(tmp_path: Path) -> None:
    stop = threading.Event()

    def talk() -> None:
        while not stop.wait(0.05):
            os.write(board, b"WAKE hey lamp\r\ntick 17\r\n")

    with pty() as (board, name):
        thread = threading.Thread(target=talk)
        thread.start()
        watched = harness("devices", "test", lamp(tmp_path), "--port", name, "--seconds", "1")
        stop.set()
        thread.join()
    assert watched.exit_code == 0, watched.output
    assert "kind: wake, phrase: 'hey lamp'" in watched.stdout
    assert "× tick #" in watched.stdout


def test_an_unfinished_last_line_is_watched(tmp_path: Path) -> None:
    watched = harness(
        "devices", "test", lamp(tmp_path), "--driver", "command", "--set", "command=printf 'WAKE hey lamp'"
    )
    assert watched.exit_code == 0, watched.output
    assert "1 line: 1 mapped, 0 not" in watched.stdout


def test_samples_are_collected_beside_the_profile_unless_it_is_shipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = lamp(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert samples_file(load_profile("../lamp.yaml", beside=Path())).resolve() == path.with_name("lamp.samples.yaml")
    assert samples_file(load_profile("vh_board", beside=Path())) == Path("vh_board.samples.yaml")


def measured_times(profile: Path, seconds: float) -> str:
    """What `devices test` says about the times of a device that writes ten prompt lines per second."""
    stop = threading.Event()
    with pty() as (board, name):

        def talk() -> None:
            while not stop.wait(0.1):
                os.write(board, b"[%d] WAKE hey lamp\n" % (time.monotonic_ns() // 1000))

        thread = threading.Thread(target=talk)
        thread.start()
        watched = harness("devices", "test", profile, "--port", name, "--seconds", str(seconds))
        stop.set()
        thread.join()
    (line,) = (line for line in watched.stdout.splitlines() if line.startswith("  times: "))
    return line


def test_prompt_lines_do_not_shorten_the_hold_back_time(tmp_path: Path) -> None:
    assert "no `time`" in measured_times(lamp(tmp_path), 0.5)
    assert "too few lines" in measured_times(timed(tmp_path, "us"), 0.5)
    line = measured_times(timed(tmp_path, "us"), 4)
    late_ms = int(known(re.search(r"up to (\d+) ms later", line))[1])
    assert ("write `hold_back_ms" in line) == (late_ms > 16)
    assert late_ms > 16 or "The default, `hold_back_ms: 16`, covers this" in line


def test_a_silent_port_fails_and_a_missing_one_has_a_remedy(tmp_path: Path) -> None:
    with pty() as (_, name):
        silent = harness("devices", "test", lamp(tmp_path), "--port", name, "--seconds", "0.5")
    assert silent.exit_code == 1
    assert "no data received" in silent.stdout
    missing = harness("devices", "test", lamp(tmp_path), "--port", "/dev/ttyNONE")
    assert isinstance(missing.exception, DeviceError)
    assert missing.exception.exit_code == 3
    assert missing.exception.remedy


def test_the_monitor_prints_observations_into_a_pipe(tmp_path: Path) -> None:
    lines = file_with(tmp_path / "log.txt", b"WAKE hey lamp\n\x1b]0;owned\x07[/red]\nhalf a line")
    shown = succeeded(harness("devices", "monitor", lamp(tmp_path), "--from", lines))
    assert "=> kind: wake, phrase: 'hey lamp'" in shown.stdout
    assert "\\e]0;owned\\x07[/red]" in shown.stdout
    assert "\x1b" not in shown.stdout
    assert "*** 3 lines: 1 mapped, 2 not" in shown.stdout
    output = harness("devices", "monitor", lamp(tmp_path), "--from", lines, "--json", "--unmapped").stdout
    rows = [json.loads(row) for row in output.splitlines()]
    assert [row["said"] for row in rows if "said" in row] == ["\\e]0;owned\\x07[/red]", "half a line"]


def test_standard_input_ends_the_monitor(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-c", "from harness.cli import main; main()", "devices", "monitor", str(lamp(tmp_path))],
        input=b"WAKE hey lamp\n" * 6000,  # more than a pipe holds
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert b"6000 lines: 6000 mapped, 0 not" in result.stdout


def test_a_saved_profile_is_read_again_and_a_wrong_one_leaves_the_last_in_use(tmp_path: Path) -> None:
    path = lamp(tmp_path)
    monitor = DeviceMonitor(str(path), Path())
    assert [row.mapped for row in monitor.feed(output_now(b"GO hey lamp\n"))] == [False]
    path.write_text(path.read_text(encoding="utf-8").replace("^WAKE", "^(?:GO|WAKE"), encoding="utf-8")
    assert monitor.reload_if_changed(1.0)
    assert "lamp.yaml:5" in monitor.problem
    assert monitor.feed(output_now(b"WAKE hey lamp\n"))[0].mapped
    path.write_text(path.read_text(encoding="utf-8").replace("(?:GO|WAKE", "(?:GO|WAKE)"), encoding="utf-8")
    assert monitor.reload_if_changed(2.0)
    assert monitor.problem == ""
    assert [(row.said, row.mapped) for row in monitor.replay()] == [("GO hey lamp", True), ("WAKE hey lamp", True)]
    assert not monitor.reload_if_changed(3.0)


def test_saving_a_profile_rereads_those_that_share_its_lines(tmp_path: Path) -> None:
    profile = lamp(tmp_path)
    path = file_with(tmp_path / "desk.yaml", "device: desk\nwake_phrases: [hey lamp]\nlines_of: [lamp]\n")
    monitor = DeviceMonitor(str(path), tmp_path)
    for now_s, before, after in ((1.0, "^WAKE", "^(?:GO|WAKE"), (2.0, "(?:GO|WAKE", "(?:GO|WAKE)")):
        profile.write_text(profile.read_text(encoding="utf-8").replace(before, after), encoding="utf-8")
        assert monitor.reload_if_changed(now_s)
        assert ("lamp.yaml:5" in monitor.problem) == (now_s == 1.0)
    assert not monitor.reload_if_changed(3.0)
    assert monitor.feed(output_now(b"GO hey lamp\n"))[0].mapped


def test_a_copied_row_is_a_valid_sample(tmp_path: Path) -> None:
    path = lamp(tmp_path)
    monitor = DeviceMonitor(str(path), Path())
    (row,) = monitor.feed(output_now(b"\x1b[31mWAKE it's 5: [a]\x1b[0m\n"))
    path.write_text(path.read_text(encoding="utf-8") + row.snippet, encoding="utf-8")
    assert harness("devices", "test", path).exit_code == 0
    assert "2 of 2" in harness("devices", "test", path).stdout


def test_a_watched_port_is_held_back_as_in_a_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.devices.serial.port.USB_SERIAL", tmp_path)
    with pty() as (_, name):
        timer = tmp_path / Path(name).name / "latency_timer"
        timer.parent.mkdir()
        timer.write_text("16\n", encoding="ascii")
        source = SerialMonitorSource(SerialOptions(port=name), 115200)
        timer.write_text("1\n", encoding="ascii")  # as an FTDI driver does when its port is opened
        source.open()
        source.close()
        assert source.hold_back_s == pytest.approx(0.002)
        source = SerialMonitorSource(SerialOptions(port=name, hold_back_ms=5.0), 115200)
        source.open()
        source.close()
        assert source.hold_back_s == pytest.approx(0.005)


def test_a_lost_port_is_reported_and_the_queue_is_bounded() -> None:
    with pty() as (_, name):
        source = SerialMonitorSource(SerialOptions(port=name), 115200)
        source.open()
    until(lambda: source.trouble)
    source.close()
    assert "the port is gone" in source.trouble
    queue = DeviceOutputQueue()
    for _ in range(300):
        queue.put(output_now(b"x" * 10_000))
    assert sum(len(chunk.data) for chunk in queue.take(10**9)) + queue.lost_bytes == 3_000_000
    assert queue.lost_bytes >= 2_000_000


def test_collected_monitor_samples_are_not_validated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "devices").mkdir()
    lamp(tmp_path / "devices")
    (tmp_path / "devices" / "lamp.samples.yaml").write_text("  - lines: ['x']\n    gives: []\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    validated = succeeded(harness("validate", "devices"))
    assert "lamp.samples.yaml: ignored" in validated.output
    result = succeeded(harness("devices", "list"))
    assert "lamp.samples" not in result.output


@pytest.mark.parametrize("id", sorted(profile_paths(Path())))
def test_every_sample_that_the_monitor_writes_is_valid(id: str, tmp_path: Path) -> None:
    """As read again from a profile, whatever the device is called on its broker."""
    profile = load_profile(id, beside=Path())
    monitor = DeviceMonitor(id, Path(), "desk7" if profile.mappings else "")
    snippets: list[str] = []
    for sample in profile.samples:
        if sample.topic:
            topic = "/".join("desk7" if part == profile.id else part for part in sample.topic.split("/"))
            rows = monitor.feed(output_now(sample.payload, topic))
        else:
            rows = [row for line in sample.lines for row in monitor.feed(output_now(line))] + monitor.remaining_rows()
            monitor = DeviceMonitor(id, Path(), monitor.device)
        snippets += [row.snippet for row in rows if row.snippet]
    assert bool(snippets) == bool(profile.samples and not profile.thresholds)
    text = Path(profile.path).read_text(encoding="utf-8")
    head = text.partition("\nsamples:")[0] + "\nsamples:\n"
    path = tmp_path / f"{id}.yaml"
    for snippet in snippets:
        path.write_text(head + snippet, encoding="utf-8")
        (result,) = check_samples(load_profile(path.name, beside=tmp_path))
        assert not result.wrong, snippet


def test_frames_that_the_profile_does_not_expect_are_named_instead_of_the_rate(tmp_path: Path) -> None:
    monitor = DeviceMonitor(str(lamp(tmp_path)), Path(), baud=115200)
    monitor.feed(output_now(encode(FrameKind.WAKE, b"wake")))
    assert monitor.has_frames
    assert monitor.noise.startswith("the device sends frames of the harness's protocol: add `console: {framing: vh}`")


def test_a_rule_whose_events_also_come_in_frames_is_refused_with_its_place(tmp_path: Path) -> None:
    text = lamp(tmp_path).read_text(encoding="utf-8")
    path = file_with(tmp_path / "framed.yaml", text.replace("lines:", "console: {framing: vh}\nlines:", 1))
    assert path.read_text(encoding="utf-8") != text
    refused = harness("check", "validate", path)
    assert refused.exit_code == 2
    (line,) = (line for line in refused.stderr.splitlines() if "would count twice" in line)
    number = text.splitlines().index(next(row for row in text.splitlines() if "kind: wake" in row)) + 2
    assert f"framed.yaml:{number}:" in line
    assert "Remove the rule" in refused.stderr


def test_a_wrong_baud_rate_is_reported_with_the_received_bytes(tmp_path: Path) -> None:
    path = lamp(tmp_path)
    noise = random.Random(1).randbytes(2000).replace(b"\n", b"").replace(b"\r", b"")
    monitor = DeviceMonitor(str(path), Path(), baud=115200)
    assert monitor.feed(output_now(noise)) == []
    assert monitor.noise.startswith(f"{len(noise)} bytes received, without a line ending. Is 115200 baud right?")
    assert "9600" in monitor.noise
    (row,) = monitor.feed(output_now(b"\n"))
    assert "bytes that are not text" in row.said
    assert len(row.said) < 100
    good = DeviceMonitor(str(path), Path(), baud=115200)
    good.feed(output_now(b"WAKE hey lamp\nGr\xc3\xbc\xc3\x9fe\n" * 30))
    assert good.noise == ""


def timed(folder: Path, clock: str) -> Path:
    """A profile of a device whose lines begin with its time."""
    path = folder / "p.yaml"
    console = f"{{time: '^\\[(?P<time>\\d+)\\]', clock: {clock}}}"
    rules = "reports: [wake]\nlines: [{match: WAKE, kind: wake}]\n"
    path.write_text(f"device: p\nwake_phrases: []\nconsole: {console}\n{rules}", encoding="utf-8")
    return path


def test_the_monitor_marks_retained_messages_and_shows_times(tmp_path: Path) -> None:
    path = timed(tmp_path, "ms")
    monitor = DeviceMonitor(str(path), Path(), baud=115200, hold_back_s=0.016)
    (row,) = monitor.feed(output_now(b"[1500] WAKE\n"))
    assert row.times.startswith("device 1.5 s, ± ")
    assert 0.008 < known(row.error_s) < 0.02
    (retained_row,) = DeviceMonitor("reference_assistant", Path()).feed(output_now(b"{}", "x/y", retained=True))
    assert retained_row.times == "retained, not a current event"


def test_a_frame_is_shown_by_its_fields() -> None:
    event = messages.IntentEvent(7, 8, 1.0, "timer", (("time", "10 minutes"),))
    (row,) = DeviceMonitor("vh_board", Path()).feed(output_now(messages.to_frame(event, 3)))
    assert row.said == "frame INTENT 3"
    assert row.made == "kind: intent, time_us: 7, sample: 8, score: 1.0, name: timer, slots: ['time: 10 minutes']"


def test_held_back_lines_are_measured(tmp_path: Path) -> None:
    path = timed(tmp_path, "us")
    monitor, dice = DeviceMonitor(str(path), Path(), baud=115200, hold_back_s=0.016), random.Random(1)
    for number in range(60):
        written_s = 100 + number * 0.3
        late_s = dice.uniform(0.0, 0.04)
        monitor.feed(DeviceOutput(Stamp(written_s + late_s), 0.0, b"[%d] x\n" % int(written_s * 1e6)))
    assert 0.035 < known(monitor.held_back_s) < 0.045


RADIO = """\
device: radio
transport: mqtt
wake_phrases: [hey radio]
reports: [wake]
mappings:
  - {topic: '{device}/wake', kind: wake, fields: {phrase: ''}}
"""


class Stored:
    """A broker's messages, each with whether it is retained."""

    live, ended, trouble, name = True, False, "", "broker radio/wake"

    def __init__(self, *retained: bool, trouble: str = "", console: bytes = b"") -> None:
        self.queue, self.trouble = DeviceOutputQueue(), trouble
        self.queue.put(output_now(console))
        for is_retained in retained:
            self.queue.put(output_now(b"hey radio", "radio/wake", retained=is_retained))

    def open(self) -> None:
        """Is open."""

    def close(self) -> None:
        self.queue.close()


def watched(folder: Path, monkeypatch: pytest.MonkeyPatch, source: Stored) -> Result:
    (folder / "radio.yaml").write_text(RADIO, encoding="utf-8")
    monkeypatch.setattr("harness.cli.devices.DeviceReach.source", lambda *_: source)
    return harness("devices", "test", folder / "radio.yaml", "--address", "lab", "--seconds", "0.5")


def test_a_retained_wake_is_not_a_current_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = watched(tmp_path, monkeypatch, Stored(True))
    assert stored.exit_code == 1
    assert "0 lines: 0 mapped, 0 not; 1 retained message, not current" in stored.stdout
    current, _, earlier = stored.stdout.partition("retained: the broker stored these messages earlier")
    assert "kind: wake" in earlier
    assert "kind: wake" not in current
    result = succeeded(watched(tmp_path, monkeypatch, Stored(True, False)))
    assert "1 line: 1 mapped, 0 not; 1 retained message, not current" in result.stdout


def test_a_silent_source_without_a_baud_rate_gets_its_own_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = watched(tmp_path, monkeypatch, Stored())
    assert "the device sent nothing. Check that the device is on" in silent.stdout
    assert "baud" not in silent.stdout
    blank = watched(tmp_path, monkeypatch, Stored(console=b"\r\n\r\n"))
    assert "4 bytes received, but no line of text. Check that the device is on" in blank.stdout
    lost = watched(tmp_path, monkeypatch, Stored(trouble="the broker is gone"))
    assert "the broker is gone" in lost.stdout
    assert "sent nothing" not in lost.stdout
