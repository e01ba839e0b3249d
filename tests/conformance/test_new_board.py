"""Boards that nobody has a profile for work with one YAML file: from the first line seen to limits, log and JUnit."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import serial

from harness.offline.wake_log import Spot, differences
from harness.offline.wake_log_reading import read
from tests.conformance.boards import MICRO_BIT, micro_bit, qemu_installed
from tests.conformance.engine_runs import wait_for
from tests.conformance.typed import Typed, typing_in
from tests.unit.report.junit_schema import problems

PANEL = """\
device: panel
title: Door panel, prototype A
wake_phrases: [hey marvin]
reports: [wake, status]
console: {time: '^<(?P<time>[\\d.]+)s> ', clock: s}
audio: {dialogue: tflm_test_over_serial}
lines:
  - {match: '\\* named \\* len=\\d+ms sure=(?P<score>\\d+)/100 pos=(?P<time>\\d+)', kind: wake, score_scale: 100,
     clock: audio_ms}
  - {match: 'panel: power on, (?P<detail>.*)', kind: status, fields: {state: started}}
samples:
  - lines: ['<3.120s> panel: * named * len=520ms sure=86/100 pos=1016']
    gives: [{kind: wake, score: 0.86, device_s: 1.016}]
  - {lines: ['<4.001s> panel: temp 21 C, door shut'], gives: []}
"""
PANEL_RUN = """\
scenario: panel_wakes
needs: [wake_events, injection]
trials:
  - {id: call, kind: wake, repeat: 4}
  - {id: soak, kind: ambient, hours: 0.01, segment_s: 12, sources: [{noise: pink}]}
limits: {max_false_reject_share: 0, max_false_accepts_per_hour: 0, min_exposure_hours: 0.01}
"""
BADGE = """\
device: badge
wake_phrases: [hey badge]
reports: [wake]
lines:
  - {match: '^badge (?P<time>\\d+): woke, (?P<score>\\d+) %', kind: wake, score_scale: 100, clock: ms}
  - {match: '^ears on', kind: listening}
"""
BADGE_RUN = """\
scenario: badge_soak
needs: [wake_events]
trials:
  - {id: soak, kind: ambient, hours: 0.005, segment_s: 18, sources: [{noise: pink}]}
limits: {max_false_accepts_per_hour: 10}
"""
# Typed at its Python prompt: it wakes every 3 s, whatever it hears, and says other things in between.
CHATTER = (
    "import utime\r"
    "while True: print('badge %d: woke, %d %%' % (utime.ticks_ms(), 77)); utime.sleep_ms(1500);"
    " print('ears on'); print('battery fine'); utime.sleep_ms(1500)\r\r"
)


@pytest.fixture
def typed(tmp_path: Path) -> Iterator[Typed]:
    with typing_in(tmp_path) as run:
        yield run


@pytest.fixture
def panel(tmp_path: Path) -> Iterator[str]:
    """The port of a board of log lines that hears; see panel_board.py."""
    link = tmp_path / "panel"
    process = subprocess.Popen([sys.executable, Path(__file__).with_name("panel_board.py"), link])
    try:
        wait_for(link.exists, event="the panel's port")
        yield str(link)
    finally:
        process.kill()
        process.wait()


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")


def only_session(folder: Path) -> Path:
    (session,) = (folder / "sessions").iterdir()
    return session


def spots(log: Path) -> Sequence[Spot]:
    read_back = read(log.read_text(encoding="utf-8"))
    assert differences(read_back) == ()
    return [event for event in read_back.events if isinstance(event, Spot)]


def test_a_board_with_only_a_yaml_file_works_end_to_end(typed: Typed, panel: str, tmp_path: Path) -> None:
    write(tmp_path, panel="device: panel\nwake_phrases: []\n", wake=PANEL_RUN)
    # Before there is a rule, what it says is shown as it comes, and that nothing of it means anything.
    first = typed("devices", "test", "panel.yaml", "--port", panel, "--seconds", "2.5", status=1)
    assert "× <#.#s> panel: temp # C, door shut" in first.stdout

    write(tmp_path, panel=PANEL, bench=f"bench: desk\ndevices: {{door: {{profile: panel, connection: {{driver: serial, "
          f"port: {panel}}}}}}}\n")  # fmt: skip
    assert "2 of 2 samples pass" in typed("devices", "test", "panel.yaml").stdout
    assert "4 wake + 3 ambient = 7 trials" in typed("validate", tmp_path).stdout
    run = typed("run", "wake.yaml", "--bench", "bench.yaml", "--junit", "out/junit.xml")
    assert "4/4" in run.stdout or "0 of 4 = 0.00 %" in run.stdout

    report = (tmp_path / "out" / "junit.xml").read_bytes()
    assert problems(report) == []
    assert report.count(b"<testcase ") == 1 + 3 + 4 + 3  # the run, three limits, four calls, three segments
    assert b"<failure" not in report
    session = only_session(tmp_path)
    assert "0 of 4 = 0.00 %" in typed("show", session).stdout
    typed("show", session, "--check")
    typed("export", session, "--wake-log", "door.log")
    woke = spots(tmp_path / "door.log")
    assert [spot.key for spot in woke] == ["INVTA"] * 4
    # Its ear says so 0.3 s after a burst is over, by its own count of samples.
    assert all(0.2 < (spot.end_ms - spot.start_ms) / 1000 < 1.5 for spot in woke)


@pytest.mark.skipif(not MICRO_BIT.exists() or not qemu_installed(), reason="needs QEMU and the micro:bit's firmware")
def test_a_third_partys_firmware_that_wakes_to_anything_fails_its_limit(typed: Typed, tmp_path: Path) -> None:
    with micro_bit(tmp_path) as board:
        write(tmp_path, badge=BADGE, wake=BADGE_RUN, bench=(
            "bench: desk\nloudspeakers: {front: {driver: in_process}}\n"
            f"devices: {{badge: {{profile: badge, connection: {{driver: serial, port: {board.port}}}}}}}\n"
        ))  # fmt: skip
        _chatter(board.port)
        watched = typed("devices", "test", "badge.yaml", "--port", board.port, "--seconds", "6")
        assert "× kind: wake, score: 0.77" in watched.stdout
        assert "× battery fine" in watched.stdout
        run = typed("run", "wake.yaml", "--bench", "bench.yaml", "--junit", "junit.xml", status=1)
        assert "FAIL      false accepts per hour of badge" in run.stdout
    session = only_session(tmp_path)
    figures = json.loads(typed("export", session, "--json").stdout)["devices"][0]
    events = figures["false_accepts_before_review"]["count"]
    assert 2 <= events <= 7  # 18 s, one in 3 s, those between two proofs that it listens
    report = (tmp_path / "junit.xml").read_bytes()
    assert problems(report) == []
    assert report.count(b'type="false_accept"') == 1
    assert f'message="{events} false accepts; false accepts per hour of badge'.encode() in report


def _chatter(port: str) -> None:
    """Types its program at the prompt and leaves it running."""
    with serial.Serial(port, 115200, timeout=0.2, exclusive=True) as line:
        deadline, heard = time.monotonic() + 30, b""
        while b">>> " not in heard:
            assert time.monotonic() < deadline, heard
            line.write(b"\r")
            heard += line.read(256)
        for sign in CHATTER.encode():  # the micro:bit has no flow control
            line.write(bytes([sign]))
            heard = line.read(1)
        while b"woke, 77 %" not in heard:
            assert time.monotonic() < deadline, heard
            heard += line.read(256)
